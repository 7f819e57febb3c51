//! Runs the ranking of sessions.

use std::collections::{HashMap, HashSet};
use std::time::Instant;

use serde::{Deserialize, Serialize};

use super::named::is_word_of_project;
use super::passages::{
    PassageSize, TermPair, bound_pairs, cut_passage, find_places, read_texts, weigh_pairs,
};
use super::postings::{AskedRows, SegmentHits};
use super::question::{QuestionTerm, SessionQuestion};
use super::ranked_session::{NamedParts, RankedSession, rank_scores};
use super::score::{ScoredEvent, SessionPart, collect_parts, group_parts, type_factor};
use super::text_terms::find_text_terms;
use super::titles::find_title_hits;
use super::totals::{Averages, Totals};
use crate::by_bound::ByBound;
use crate::error::SearchError;
use base::parallel::in_parallel;
use store::{Snapshot, StoreError};

/// The weight of neighbouring words and of a named date, relative to that of the best event. The whole
/// talk counts as much as the best event.
const PAIR_WEIGHT: f32 = 3.0;
const DATE_WEIGHT: f32 = 3.0;

/// The weight of a named date for a session without any word of the question. A session with most of the
/// words comes before those that only began in the same month.
const DATE_ALONE_WEIGHT: f32 = 1.0;

/// The weight of the agent and of the project that a question names, for sessions that have words of it
/// or are near its date. They come before sessions that fit as well.
const AGENT_WEIGHT: f32 = 0.5;
const PROJECT_WEIGHT: f32 = 0.5;

/// What a session counts that the question names by its id: more than any other.
const ID_SCORE: f32 = 1000.0;

/// How many times the score of the tenth session the best one has at least if it stands out. Of 360
/// questions over the real logs 24 have less. Of these, 42 % find the right session first, of the
/// others 88 %.
const UNDECIDED_LEAD: f32 = 1.4;

/// If the best session has less than this share of the weight of the question's words, it is uncertain: of
/// 215 questions (`benches/retrieval/coding`) 46 have less. 10 of these are about things that no session did,
/// and 20 find the right session first; of the 143 others with an answer 108 do.
const LEAST_SHARE: f32 = 0.5;

/// The best sessions in which neighbouring words are looked for.
const PAIR_SESSIONS: usize = 20;

/// Events of such a session whose text is read.
const PAIR_EVENTS: usize = 6;

/// An event becomes a passage if its score is at least this part of the best one's.
const PASSAGE_SHARE: f32 = 0.4;

/// A question about some sessions.
pub struct SessionRequest<'a> {
    pub question: &'a SessionQuestion,
    /// Positions in `Snapshot::sessions`; `None` means all.
    pub sessions: Option<HashSet<usize>>,
    /// Most sessions of the result.
    pub limit: usize,
    /// Only sessions after this one are returned.
    pub after: Option<SessionRank>,
    /// Only events before this time count, in microseconds since the epoch; `None` means all.
    pub until: Option<i64>,
    /// True if passages of the best sessions continue after the part that has the words of the
    /// question: what answers it often comes next.
    pub continues_passages: bool,
    /// The search ends with an error at this time.
    pub deadline: Instant,
}

/// The place of a session in the ranking.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionRank {
    /// The bits of the score, because JSON would round the number.
    #[serde(rename = "s")]
    score: u32,
    #[serde(rename = "i")]
    session_id: String,
}

impl SessionRank {
    /// True if a session of this rank comes after the one of `other`.
    fn is_after(&self, other: &Self) -> bool {
        // Scores are not negative, so their bits have their order.
        let by_score = other.score.cmp(&self.score);
        by_score.then_with(|| self.session_id.cmp(&other.session_id)).is_gt()
    }
}

/// The best sessions.
pub struct SessionResults {
    /// Best first.
    pub sessions: Vec<FoundSession>,
    /// Sessions with any word of the question, near a date that it names, or named by their ids.
    pub matched: usize,
    /// Words of the question that no event has, as they were written.
    pub absent: Vec<String>,
    /// Where the next page begins, if there is one.
    pub next: Option<SessionRank>,
    /// True if the best session lacks most of the weight of the question's words.
    pub is_uncertain: bool,
    /// True if the best session is hardly better than the tenth, so that the words of the question fit
    /// many sessions alike.
    pub is_undecided: bool,
}

/// A session that fits the question.
pub struct FoundSession {
    /// Position in `Snapshot::sessions`.
    pub session: usize,
    pub rank: SessionRank,
    /// The words of the question that the session has, as they were written.
    pub words: Vec<String>,
    /// Those that neither the session nor the name of its project has.
    pub lacks: Vec<String>,
    /// True if the title has a word of the question in full.
    pub has_title_word: bool,
    /// The parts of it that the question names, besides words.
    pub named: NamedParts,
    /// Events that have words of the question.
    pub matched_events: usize,
    /// In the order of events.
    pub passages: Vec<FoundPassage>,
}

/// A part of an event that has words of the question.
pub struct FoundPassage {
    pub event_index: u32,
    pub text: String,
}

/// Ranks the sessions that are asked about. `stop` is called between segments and between pages of
/// text; true ends the search with an error.
pub fn search_sessions(
    snapshot: &Snapshot,
    request: &SessionRequest<'_>,
    stop: &(dyn Fn() -> bool + Sync),
) -> Result<SessionResults, SearchError> {
    let must_stop = || stop() || Instant::now() >= request.deadline;
    let wanted = request.sessions.as_ref();
    let asked = AskedRows { sessions: wanted, until: request.until, includes_copies: false };
    let found = find_hits(snapshot, &request.question.terms, asked, &must_stop)?;
    let Some((hits, mut totals)) = found else {
        return Err(if stop() { SearchError::Cancelled } else { SearchError::TimedOut });
    };
    let titles = find_title_hits(snapshot, request.question, asked)?;
    totals.add_titles(&titles);
    let searched = wanted.map_or(snapshot.sessions().len(), HashSet::len);
    let averages = totals.averages(&request.question.terms, searched);

    let parts = collect_parts(&hits);
    let mut others = rank_scores(&averages, &totals, &group_parts(&parts), &titles)?;
    add_dates(snapshot, request, &mut others);
    add_names(snapshot, request, &mut others);
    let mut ranking = Ranking::new(snapshot, &averages, &parts, others);
    ranking.complete(PAIR_SESSIONS, None)?;
    for session in ranking.best.iter_mut().take(PAIR_SESSIONS) {
        session.find_events(&averages, &parts);
    }
    let pairs = TermPair::collect_pairs(&totals.exact);
    add_pairs(snapshot, request.question, &pairs, &averages, &mut ranking.best)?;
    ranking.complete(request.limit + 1, request.after.as_ref())?;

    let matched = ranking.len();
    let mut ranked = ranking.best;
    let is_undecided = is_undecided(&ranked);
    let is_uncertain = ranked.first().is_some_and(|best| {
        let project = best.project_words(snapshot, request.question);
        share_of_words(best, &averages, &totals, project) < LEAST_SHARE
    });
    let next = take_page(snapshot, request, &mut ranked);
    let mut sessions = Vec::new();
    for (place, session) in ranked.iter_mut().enumerate() {
        session.find_events(&averages, &parts);
        let size = PassageSize::at_place(place, request.continues_passages);
        let passages = cut_passages(snapshot, request.question, &averages, session, size)?;
        sessions.push(session.describe(snapshot, request.question, passages));
    }
    let absent = totals.absent_words(request.question);
    Ok(SessionResults { sessions, matched, absent, next, is_uncertain, is_undecided })
}

/// Returns the share of the weight of the question's words that a session has, or the name of its
/// project. A session that is named by its id has all that was asked for.
fn share_of_words(
    session: &RankedSession,
    averages: &Averages,
    totals: &Totals,
    project_words: u32,
) -> f32 {
    let absent = totals.absent_terms().fold(0, |words, term| words | 1_u32 << term);
    let whole = averages.total_weight() + totals.absent_weight_of(absent.count_ones());
    let found = averages.weigh(session.words | project_words)
        + totals.absent_weight_of((absent & project_words).count_ones());
    if session.named.id || averages.weights.is_empty() { 1.0 } else { found / whole }
}

/// Returns true if the best of some sessions, which come best first, is hardly better than the tenth.
fn is_undecided(ranked: &[RankedSession]) -> bool {
    let (Some(best), Some(tenth)) = (ranked.first(), ranked.get(9)) else { return false };
    best.score < UNDECIDED_LEAD * tenth.score
}

/// Finds words in the events that are asked about, and counts both. Returns `None` if `must_stop`
/// returned true.
pub(crate) fn find_hits(
    snapshot: &Snapshot,
    terms: &[QuestionTerm],
    asked: AskedRows<'_>,
    must_stop: &(dyn Fn() -> bool + Sync),
) -> Result<Option<(Vec<SegmentHits>, Totals)>, StoreError> {
    let mut segments: Vec<usize> = Vec::new();
    for (number, segment) in snapshot.segments().iter().enumerate() {
        if segment.spans.iter().any(|span| asked.includes(span.session)) {
            segments.push(number);
        }
    }

    let Some(text_hits) = find_text_terms(snapshot, &segments, terms, asked, must_stop)? else {
        return Ok(None);
    };
    let parts = in_parallel(&segments, 1, |numbers| {
        let mut found = Vec::new();
        let mut totals = Totals::new(terms.len());
        for number in numbers {
            if must_stop() {
                return Ok(None);
            }
            let hits = SegmentHits::find(snapshot, *number, terms, &text_hits.by_segment, asked)?;
            totals.add_segment(&hits);
            found.push(hits);
        }
        Ok::<_, StoreError>(Some((found, totals)))
    })?;

    let mut hits: Vec<SegmentHits> = Vec::new();
    let mut totals = Totals::new(terms.len());
    totals.unread = text_hits.unread;
    for part in parts {
        let Some((found, counted)) = part else { return Ok(None) };
        hits.extend(found);
        totals.add(&counted);
    }
    totals.join_sessions();
    Ok(Some((hits, totals)))
}

/// Keeps the sessions of the page that is asked for. Returns where the next one begins, if there is
/// one.
fn take_page(
    snapshot: &Snapshot,
    request: &SessionRequest<'_>,
    ranked: &mut Vec<RankedSession>,
) -> Option<SessionRank> {
    if let Some(after) = &request.after {
        ranked.retain(|session| session.rank(snapshot).is_after(after));
    }
    let has_more = ranked.len() > request.limit;
    ranked.truncate(request.limit);
    let last = ranked.last()?;
    if has_more { Some(last.rank(snapshot)) } else { None }
}

impl RankedSession {
    fn rank(&self, snapshot: &Snapshot) -> SessionRank {
        SessionRank {
            score: self.score.to_bits(),
            session_id: snapshot.sessions()[self.session].id().to_owned(),
        }
    }

    /// Returns the words of the question that name the project of the session, a bit each.
    fn project_words(&self, snapshot: &Snapshot, question: &SessionQuestion) -> u32 {
        if !self.named.project {
            return 0;
        }
        let project =
            snapshot.sessions()[self.session].origin.project.as_deref().unwrap_or_default();
        let terms = question.terms.iter().enumerate();
        let named = terms.filter(|(_, term)| is_word_of_project(&term.word, project));
        named.fold(0, |words, (position, _)| words | 1 << position)
    }

    /// Returns what the answer says about the session.
    fn describe(
        &self,
        snapshot: &Snapshot,
        question: &SessionQuestion,
        passages: Vec<FoundPassage>,
    ) -> FoundSession {
        let project = self.project_words(snapshot, question);
        let mut words = Vec::new();
        let mut lacks = Vec::new();
        for (position, term) in question.terms.iter().enumerate() {
            if self.words >> position & 1 != 0 {
                words.push(term.word.clone());
            } else if project >> position & 1 == 0 {
                lacks.push(term.word.clone());
            }
        }
        FoundSession {
            session: self.session,
            rank: self.rank(snapshot),
            words,
            lacks,
            has_title_word: self.has_title_word,
            named: self.named,
            matched_events: self.matched,
            passages,
        }
    }
}

/// Adds to the sessions near a date that the question names, also to those that have none of its
/// words. Sessions that only repeat others are left out.
fn add_dates(snapshot: &Snapshot, request: &SessionRequest<'_>, ranked: &mut Vec<RankedSession>) {
    let dates = &request.question.dates;
    if dates.is_empty() {
        return;
    }
    let mut values: HashMap<usize, f32> = HashMap::new();
    for (position, session) in snapshot.sessions().iter().enumerate() {
        let is_wanted = request.sessions.as_ref().is_none_or(|wanted| wanted.contains(&position))
            && session.replay_events < session.events;
        let Some(started) = session.started_at.filter(|_| is_wanted) else { continue };
        let nearness = dates.iter().map(|date| date.nearness(started)).fold(0.0, f64::max);
        if nearness > 0.0 {
            values.insert(position, nearness as f32);
        }
    }
    for session in ranked.iter_mut() {
        if let Some(value) = values.remove(&session.session) {
            session.score += DATE_WEIGHT * value;
            session.named.date = true;
        }
    }
    ranked.extend(values.into_iter().map(|(session, value)| RankedSession {
        score: DATE_ALONE_WEIGHT * value,
        named: NamedParts { date: true, ..NamedParts::default() },
        ..RankedSession::without_words(session)
    }));
}

/// Adds to the sessions of an agent or a project that the question names, and adds those that it names
/// by their ids.
fn add_names(snapshot: &Snapshot, request: &SessionRequest<'_>, ranked: &mut Vec<RankedSession>) {
    let question = request.question;
    let mut projects: HashMap<&str, bool> = HashMap::new();
    for session in ranked.iter_mut() {
        let summary = &snapshot.sessions()[session.session];
        if question.agents.contains(&summary.provider) {
            session.score += AGENT_WEIGHT;
            session.named.agent = true;
        }
        let project = summary.origin.project.as_deref().unwrap_or_default();
        if *projects.entry(project).or_insert_with(|| question.projects.has(project)) {
            session.score += PROJECT_WEIGHT;
            session.named.project = true;
        }
    }
    for position in &question.sessions {
        if request.sessions.as_ref().is_some_and(|wanted| !wanted.contains(position)) {
            continue;
        }
        let known = ranked.iter().position(|session| session.session == *position);
        let at = known.unwrap_or(ranked.len());
        if known.is_none() {
            ranked.push(RankedSession::without_words(*position));
        }
        ranked[at].score += ID_SCORE;
        ranked[at].named.id = true;
    }
}

/// The sessions of an answer, of which only the best are scored in full.
struct Ranking<'a> {
    snapshot: &'a Snapshot,
    averages: &'a Averages,
    /// The parts of all sessions.
    parts: &'a [SessionPart<'a>],
    /// Those that are scored in full, best first.
    best: Vec<RankedSession>,
    others: ByBound<RankedSession>,
}

impl<'a> Ranking<'a> {
    fn new(
        snapshot: &'a Snapshot,
        averages: &'a Averages,
        parts: &'a [SessionPart<'a>],
        sessions: Vec<RankedSession>,
    ) -> Self {
        let others = sessions.into_iter().map(|session| (session.bound(), session)).collect();
        Self { snapshot, averages, parts, best: Vec::new(), others: ByBound::new(others) }
    }

    fn len(&self) -> usize {
        self.best.len() + self.others.len()
    }

    /// Scores sessions in full until the best `count` after a rank are known, or all are scored.
    fn complete(&mut self, count: usize, after: Option<&SessionRank>) -> Result<(), StoreError> {
        while !self.is_complete(count, after) {
            let scored = self.others.score_next(|session| {
                let mut session = session.clone();
                session.add_windows(self.averages, self.parts);
                session
            })?;
            self.best.extend(scored);
        }
        let id = |session: &RankedSession| self.snapshot.sessions()[session.session].id();
        self.best.sort_by(|a, b| b.score.total_cmp(&a.score).then_with(|| id(a).cmp(id(b))));
        Ok(())
    }

    /// True if no other session can be among the best `count` after a rank.
    fn is_complete(&self, count: usize, after: Option<&SessionRank>) -> bool {
        let Some(bound) = self.others.next_bound() else { return true };
        let certain = self.best.iter().filter(|session| {
            let is_after = |after| session.rank(self.snapshot).is_after(after);
            session.score > bound && after.is_none_or(is_after)
        });
        certain.take(count).count() == count
    }
}

/// Adds to the best sessions in which words of the question are neighbours.
fn add_pairs(
    snapshot: &Snapshot,
    question: &SessionQuestion,
    pairs: &[TermPair],
    averages: &Averages,
    ranked: &mut [RankedSession],
) -> Result<(), StoreError> {
    let mut events: Vec<ScoredEvent> = Vec::new();
    let mut owners: Vec<usize> = Vec::new();
    for (owner, session) in ranked.iter().take(PAIR_SESSIONS).enumerate() {
        let mut promising: Vec<(f32, &ScoredEvent)> = Vec::new();
        for event in &session.events {
            let bound = bound_pairs(event.exact, pairs, &averages.weights);
            if bound > 0.0 {
                promising.push((bound * type_factor(event.event_type), event));
            }
        }
        promising.sort_by(|(a, _), (b, _)| b.total_cmp(a));
        for (_, event) in promising.into_iter().take(PAIR_EVENTS) {
            events.push(*event);
            owners.push(owner);
        }
    }

    let values = read_texts(snapshot, &events, |event, text| {
        let places = find_places(question, text);
        weigh_pairs(&places, pairs, &averages.weights) * type_factor(event.event_type)
    })?;
    let mut best: HashMap<usize, f32> = HashMap::new();
    for (position, value) in values {
        let known = best.entry(owners[position]).or_default();
        *known = known.max(value);
    }
    for (owner, value) in best {
        ranked[owner].score += PAIR_WEIGHT * value / averages.total_weight();
    }
    Ok(())
}

/// Returns the best passages of a session, in the order of events. The newest of the good ones is
/// among them, because it may revise what the others say.
fn cut_passages(
    snapshot: &Snapshot,
    question: &SessionQuestion,
    averages: &Averages,
    session: &RankedSession,
    size: PassageSize,
) -> Result<Vec<FoundPassage>, StoreError> {
    let mut chosen = choose_events(&session.events, size.count);
    chosen.sort_by_key(|event| event.event_index);

    let mut texts = read_texts(snapshot, &chosen, |_, text| {
        let places = find_places(question, text);
        cut_passage(text, &places, &averages.weights, size)
    })?;
    texts.sort_by_key(|(position, _)| *position);
    let passages = texts
        .into_iter()
        .map(|(position, text)| FoundPassage { event_index: chosen[position].event_index, text });
    Ok(passages.collect())
}

/// Chooses events for passages from those of a session, which come best first: the best one, the
/// newest good one, and then the next best ones.
fn choose_events(events: &[ScoredEvent], count: usize) -> Vec<ScoredEvent> {
    let Some(best) = events.first() else { return Vec::new() };
    let good: Vec<ScoredEvent> =
        events.iter().filter(|event| event.score >= best.score * PASSAGE_SHARE).copied().collect();
    let newest = good.iter().max_by_key(|event| event.event_index);
    let mut chosen: Vec<ScoredEvent> = Vec::new();
    for event in [best].into_iter().chain(newest).chain(&good) {
        let is_new = chosen.iter().all(|known| known.event_index != event.event_index);
        if is_new && chosen.len() < count {
            chosen.push(*event);
        }
    }
    chosen
}
