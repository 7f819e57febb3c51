//! Ranks sessions by their scores, their titles and the identifiers that they have.

use std::collections::{HashMap, HashSet};

use super::score::{ScoredEvent, SessionPart, SessionScore};
use super::titles::TitleHit;
use super::totals::{Averages, Totals};
use base::parallel::in_parallel;
use store::StoreError;

/// What an identifier of several words counts in addition, in whatever event it is: a question about
/// `skipLibCheck` means a session that has it, also if only a command or its output does. Without it, a
/// session with such a rare identifier came first for 35 of 150 of the real logs, with it for 143.
const IDENTIFIER_WEIGHT: f32 = 2.0;

/// Number of sessions that a core scores at once.
const SESSIONS_AT_ONCE: usize = 64;

/// A session while it is ranked.
#[derive(Clone)]
pub(super) struct RankedSession {
    /// Position in `Snapshot::sessions`.
    pub(super) session: usize,
    pub(super) score: f32,
    /// The most that its windows may add to the score; 0 once they are scored.
    pub(super) open_score: f32,
    /// The words of the question that it has, a bit each.
    pub(super) words: u32,
    /// Number of events that have words.
    pub(super) matched: usize,
    pub(super) has_title_word: bool,
    /// The parts of it that the question names, besides words.
    pub(super) named: NamedParts,
    /// Its best events, once they are needed; see [`Self::find_events`].
    pub(super) events: Vec<ScoredEvent>,
}

/// The parts of a session that a question names, besides words.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct NamedParts {
    pub id: bool,
    pub agent: bool,
    pub project: bool,
    /// True if a date that the question names is near.
    pub date: bool,
}

impl RankedSession {
    /// Returns a session that has no word of the question.
    pub(super) fn without_words(session: usize) -> Self {
        Self {
            session,
            score: 0.0,
            open_score: 0.0,
            words: 0,
            matched: 0,
            has_title_word: false,
            named: NamedParts::default(),
            events: Vec::new(),
        }
    }

    /// Returns the highest score that it may have.
    pub(super) fn bound(&self) -> f32 {
        self.score + self.open_score
    }

    /// Adds its windows to its score, given the parts of all sessions.
    pub(super) fn add_windows(&mut self, averages: &Averages, parts: &[SessionPart<'_>]) {
        if self.open_score > 0.0 {
            let windows = averages.score_windows(parts_of(parts, self.session));
            self.score += windows / averages.total_weight();
            self.open_score = 0.0;
        }
    }

    /// Finds its best events if they are not known yet, given the parts of all sessions.
    pub(super) fn find_events(&mut self, averages: &Averages, parts: &[SessionPart<'_>]) {
        if self.events.is_empty() {
            self.events = averages.best_events(parts_of(parts, self.session));
        }
    }
}

/// Returns the parts of a session, given those of all sessions.
fn parts_of<'p, 'a>(parts: &'p [SessionPart<'a>], session: usize) -> &'p [SessionPart<'a>] {
    let first = parts.partition_point(|part| part.session() < session);
    let count = parts[first..].partition_point(|part| part.session() == session);
    &parts[first..first + count]
}

/// Scores sessions but for their windows, given the parts of each. Sessions of which only the title has
/// words come last.
pub(super) fn rank_scores(
    averages: &Averages,
    totals: &Totals,
    sessions: &[&[SessionPart<'_>]],
    titles: &[TitleHit],
) -> Result<Vec<RankedSession>, StoreError> {
    let title_of: HashMap<usize, &TitleHit> =
        titles.iter().map(|title| (title.session, title)).collect();
    let ranked = in_parallel(sessions, SESSIONS_AT_ONCE, |sessions| {
        let mut ranked = Vec::with_capacity(sessions.len());
        for parts in sessions {
            let session = parts[0].session();
            let title = title_of.get(&session).copied();
            let score = averages.score_events(parts);
            ranked.push(rank_score(averages, totals, session, &score, title));
        }
        Ok::<_, StoreError>(ranked)
    })?;
    let mut ranked = ranked.concat();
    let with_words: HashSet<usize> = ranked.iter().map(|session| session.session).collect();
    for (session, title) in title_of {
        if !with_words.contains(&session) {
            let score = SessionScore::empty(averages.weights.len());
            ranked.push(rank_score(averages, totals, session, &score, Some(title)));
        }
    }
    Ok(ranked)
}

fn rank_score(
    averages: &Averages,
    totals: &Totals,
    session: usize,
    score: &SessionScore,
    title: Option<&TitleHit>,
) -> RankedSession {
    let mut words = score.words;
    let mut best_event = score.best_event;
    if let Some(title) = title {
        best_event = best_event.max(averages.score_title(title));
        words |= title.values.iter().fold(0, |words, (term, _)| words | 1 << term);
    }
    let talk_length = totals.talk_length(session);
    let talk = averages.score_talk(&averages.session_weights, &score.talk_counts, talk_length);
    let identifiers = IDENTIFIER_WEIGHT * averages.weigh_identifiers(words);
    RankedSession {
        score: talk / averages.total_session_weight()
            + (best_event + identifiers) / averages.total_weight(),
        open_score: averages.bound_windows(score) / averages.total_weight(),
        words,
        matched: score.matched,
        has_title_word: title.is_some_and(|title| title.has_full_word()),
        ..RankedSession::without_words(session)
    }
}
