//! Runs `sessions`, the small tool: chooses the tool that a call is for, and answers a question over all
//! sessions with what the best one says.

use schemas::envelope::{Severity, Warning, WarningCode};
use schemas::tool::analyze::AnalyzeArgs;
use schemas::tool::checked_limit;
use schemas::tool::details::{DetailArgs, DetailLevel};
use schemas::tool::event::{EventArgs, EventField};
use schemas::tool::find::FindArgs;
use schemas::tool::list::{ListArgs, ListFormat};
use schemas::tool::memory::{MemoryArgs, MemoryData};
use schemas::tool::search::{SearchArgs, SearchSort};
use schemas::{ToolError, limits};

use super::analyze::names_error;
use super::event::EventSpan;
use super::find;
use super::reply::answer::Reply;
use super::reply::call::Call;
use super::reply::interface::given;
use super::reply::tools::Tools;
use super::search::{self, ParsedSearch};
use ::search::{Query, QueryErrorKind, QueryPattern};
use store::Snapshot;

/// Number of entries on a page, unless the call gives a limit.
const USUAL_ENTRIES: u32 = 5;

/// Number of matches of the best session.
const BEST_MATCHES: u32 = 3;

/// Number of sessions, after the best one, that keep their passages.
const NEXT_WITH_PASSAGES: usize = 2;

/// Minimum number of characters of a session id that is given as the query. Less is more likely a word.
const MIN_ID_CHARS: usize = 8;

/// The call of another tool that answers a call of the small tool.
pub(super) enum MemoryRequest {
    Events(EventArgs),
    Session(DetailArgs),
    Sessions(ListArgs),
    Analysis(AnalyzeArgs),
    Matches(SearchArgs),
    Question(FindArgs),
    /// An error as the terminal printed it: a question, if no failure has it.
    Error(AnalyzeArgs, FindArgs),
}

impl MemoryRequest {
    /// Chooses the tool for a call. `is_known_id` says whether there is a session with an id; over a
    /// history that does not have all events, only some tools answer.
    pub(super) fn parse(
        args: &MemoryArgs,
        is_known_id: &dyn Fn(&str) -> bool,
        has_all_events: bool,
        call: &Call<'_>,
    ) -> Result<Self, ToolError> {
        checked_limit("limit", args.limit, USUAL_ENTRIES, limits::FIND_LIMIT_MAX)?;
        let mut query = args.query.as_deref().map(str::trim).filter(|query| !query.is_empty());
        let mut session_id = args.session_id.as_deref().map(str::trim);
        if let Some(ids) = query
            && (session_id.is_none() || split_event_ids(ids).is_some())
            && named_session(ids).is_some_and(|session| is_known_id(&session))
        {
            session_id = Some(ids);
            query = None;
        }

        if args.explain.unwrap_or(false) {
            return Ok(Self::Analysis(to_analysis(args, query, session_id)));
        }
        let Some(query) = query else {
            return Ok(match session_id {
                None => Self::Sessions(to_list(args)),
                Some(id) => match split_event_ids(id) {
                    Some(ids) if args.turns.is_none() => Self::Events(to_events(args, ids)),
                    Some(_) | None => Self::Session(to_session(args, id)),
                },
            });
        };

        let form = QueryForm::of(query, call);
        let ranked = Some(SearchSort::Relevance);
        Ok(match (form, session_id) {
            (QueryForm::Exact, _) => Self::Matches(to_matches(args, query, session_id, None)),
            (QueryForm::Error, None) if has_all_events => {
                Self::Error(to_analysis(args, Some(query), None), to_question(args, query))
            }
            (QueryForm::Phrase, _) => Self::Matches(to_matches(args, query, session_id, None)),
            (QueryForm::Words, None) if has_all_events => Self::Question(to_question(args, query)),
            (QueryForm::Error | QueryForm::Words, _) => {
                Self::Matches(to_matches(args, query, session_id, ranked))
            }
        })
    }

    /// Returns a warning about arguments that the chosen tool does not have.
    pub(super) fn ignored_arguments_warning(&self, args: &MemoryArgs) -> Option<Warning> {
        let is_of_one = matches!(self, Self::Events(_) | Self::Session(_));
        let names = given([
            ("turns", args.turns.is_some() && !matches!(self, Self::Session(_))),
            ("limit", args.limit.is_some() && matches!(self, Self::Events(_))),
            ("project", args.project.is_some() && is_of_one),
            ("provider", args.provider.is_some() && is_of_one),
            ("since", args.since.is_some() && is_of_one),
            ("until", args.until.is_some() && is_of_one),
        ]);
        if names.is_empty() {
            return None;
        }
        let message = format!("No effect on this call: {}", names.join(", "));
        Some(Warning::new(WarningCode::ParameterIgnored, Severity::Warning, message))
    }
}

/// Returns the ids of events and ranges that a text consists of; `None` if it is anything else. An id
/// may have a space in it.
fn split_event_ids(text: &str) -> Option<Vec<String>> {
    let words = text.split([' ', ',', '\n']).filter(|word| !word.is_empty());
    let ids: Vec<String> = words.map(str::to_owned).collect();
    if ids.iter().all(|id| EventSpan::parse(id).is_ok()) {
        return Some(ids);
    }
    EventSpan::parse(text).is_ok().then(|| vec![text.to_owned()])
}

/// Returns the session that a query names if it is ids: that of the first event or range, or a session
/// id.
fn named_session(query: &str) -> Option<String> {
    if let Some(ids) = split_event_ids(query) {
        return EventSpan::parse(ids.first()?).ok().map(|span| span.session);
    }
    let is_id = query.len() >= MIN_ID_CHARS
        && query.contains(|c: char| c.is_ascii_digit())
        && !query.contains(char::is_whitespace);
    is_id.then(|| query.to_owned())
}

/// What a query looks like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum QueryForm {
    /// It has a qualifier or a regex, which may be wrong.
    Exact,
    /// It names an error, as the terminal printed it.
    Error,
    /// It requires a phrase in quotes.
    Phrase,
    Words,
}

impl QueryForm {
    fn of(query: &str, call: &Call<'_>) -> Self {
        let is_error = names_error(query);
        // What a program printed over several lines was not written as a query.
        if is_error && query.contains('\n') {
            return Self::Error;
        }
        let is_phrase = match Query::parse_in_zone(query, call.now, &call.zone) {
            Ok(parsed) => {
                let required = parsed.clauses.iter().filter(|clause| !clause.is_excluded);
                let mut patterns = required.clone().flat_map(|clause| &clause.any);
                let has_regex =
                    patterns.any(|pattern| matches!(pattern, QueryPattern::Regex { .. }));
                if has_regex || !parsed.qualifiers.is_empty() {
                    return Self::Exact;
                }
                required.clone().any(|clause| !clause.is_optional)
            }
            Err(error) => match error.kind {
                QueryErrorKind::UnknownQualifier { .. }
                | QueryErrorKind::NoValue { .. }
                | QueryErrorKind::WrongTime { .. }
                | QueryErrorKind::WrongRegex { .. } => return Self::Exact,
                QueryErrorKind::TooLong { .. }
                | QueryErrorKind::NothingToFind
                | QueryErrorKind::OpenQuote
                | QueryErrorKind::MissingTerm { .. }
                | QueryErrorKind::ExcludedNextToOr => false,
            },
        };
        match (is_error, is_phrase) {
            (true, _) => Self::Error,
            (false, true) => Self::Phrase,
            (false, false) => Self::Words,
        }
    }
}

fn to_events(args: &MemoryArgs, event_ids: Vec<String>) -> EventArgs {
    let is_one = |id: &String| EventSpan::parse(id).is_ok_and(|span| span.indexes().len() == 1);
    // A range has its own fields.
    let fields = event_ids.iter().all(is_one).then(|| vec![EventField::Text, EventField::Tool]);
    EventArgs { event_ids, fields, cursor: args.cursor.clone(), ..EventArgs::default() }
}

fn to_session(args: &MemoryArgs, id: &str) -> DetailArgs {
    DetailArgs {
        session_id: id.to_owned(),
        detail_level: args.turns.as_ref().map(|_| DetailLevel::Turns),
        turns: args.turns.clone(),
        limit: args.limit,
        cursor: args.cursor.clone(),
        ..DetailArgs::default()
    }
}

fn to_list(args: &MemoryArgs) -> ListArgs {
    ListArgs {
        project: args.project.clone(),
        provider: args.provider,
        since: args.since.clone(),
        until: args.until.clone(),
        format: Some(ListFormat::Minimal),
        limit: args.limit.or(Some(USUAL_ENTRIES)),
        cursor: args.cursor.clone(),
        ..ListArgs::default()
    }
}

fn to_analysis(args: &MemoryArgs, query: Option<&str>, session_id: Option<&str>) -> AnalyzeArgs {
    // Of several events, the session of the first one.
    let first_id = |id: &str| split_event_ids(id).and_then(|ids| ids.into_iter().next());
    AnalyzeArgs {
        session_id: session_id.map(|id| first_id(id).unwrap_or_else(|| id.to_owned())),
        query: query.map(str::to_owned),
        project: args.project.clone(),
        provider: args.provider,
        since: args.since.clone(),
        until: args.until.clone(),
        limit: args.limit.or(Some(USUAL_ENTRIES)),
        cursor: args.cursor.clone(),
        ..AnalyzeArgs::default()
    }
}

fn to_matches(
    args: &MemoryArgs,
    query: &str,
    session_id: Option<&str>,
    sort: Option<SearchSort>,
) -> SearchArgs {
    SearchArgs {
        query: query.to_owned(),
        session_id: session_id.map(str::to_owned),
        project: args.project.clone(),
        provider: args.provider,
        since: args.since.clone(),
        until: args.until.clone(),
        sort,
        limit: args.limit.or(Some(USUAL_ENTRIES)),
        cursor: args.cursor.clone(),
        ..SearchArgs::default()
    }
}

fn to_question(args: &MemoryArgs, query: &str) -> FindArgs {
    FindArgs {
        query: query.to_owned(),
        project: args.project.clone(),
        provider: args.provider,
        since: args.since.clone(),
        until: args.until.clone(),
        limit: args.limit.or(Some(USUAL_ENTRIES)),
        cursor: args.cursor.clone(),
    }
}

/// Answers a question: the sessions that it is about, and on the first page what the best one says.
pub(super) fn answer_question(
    tools: &Tools,
    snapshot: &Snapshot,
    args: &FindArgs,
    call: &Call<'_>,
) -> Result<Reply<MemoryData>, ToolError> {
    let found = find::run(tools, snapshot, args, call)?;
    let mut reply = found.map(|found| MemoryData { found, best: Vec::new() });
    let Some((best, next)) = reply.data.found.sessions.split_first_mut() else { return Ok(reply) };
    if args.cursor.is_some() {
        return Ok(reply);
    }

    let matches = SearchArgs {
        query: args.query.clone(),
        session_id: Some(best.session_id.clone()),
        since: args.since.clone(),
        until: args.until.clone(),
        sort: Some(SearchSort::Relevance),
        limit: Some(BEST_MATCHES),
        ..SearchArgs::default()
    };
    // A question may be no valid query, as with an open quote.
    let parsed = ParsedSearch::parse(&matches, false, tools.caller.interface, call);
    let Ok(parsed) = parsed else { return Ok(reply) };
    let matches = search::run(tools, snapshot, &parsed, call)?.data.matches;
    if !matches.is_empty() {
        best.passages.clear();
    }
    for session in next.iter_mut().skip(NEXT_WITH_PASSAGES) {
        session.passages.clear();
        session.since = None;
    }
    reply.data.best = matches;
    Ok(reply)
}
