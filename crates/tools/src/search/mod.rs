//! Runs `search_events`, the full-text search over events.

mod context;
mod explain;
mod later;
mod page;
mod parsed;
mod quotes;
mod selection;

use std::cell::OnceCell;
use std::collections::HashSet;

use schemas::ToolError;
use schemas::envelope::{Severity, Warning, WarningCode};
use schemas::tool::search::{SearchArgs, SearchData, SearchSort};

use self::explain::excludes_current;
use self::page::{MatchPage, find_best_matches, find_matches_by_time};
pub(super) use self::parsed::ParsedSearch;
use self::parsed::is_ranked;
use self::selection::SelectedSessions;
use crate::error::search_error;
use crate::reply::answer::{Reply, RowTotal};
use crate::reply::call::Call;
use crate::reply::history::{NeededEvents, NeededMatches};
use crate::reply::tools::Tools;
use search::{AbsentWord, COUNTED_ROWS, KnownAbsence, Query, SearchError, SearchRequest};
use store::Snapshot;

/// Opens the view that a search answers from, with the events that it needs.
pub(super) fn prepare(
    tools: &Tools,
    parsed: &ParsedSearch<'_>,
    call: &Call<'_>,
) -> Result<(), ToolError> {
    let request = |snapshot: &Snapshot| {
        EventSearch::new(tools, snapshot, parsed, call).request(&parsed.query)
    };
    let needed = NeededMatches {
        request: &request,
        is_ranked: is_ranked(&parsed.query),
        may_rank_instead: parsed.may_rank_instead(),
    };
    tools.open_view(call, &NeededEvents::Matches(needed))?;
    Ok(())
}

pub(super) fn run(
    tools: &Tools,
    snapshot: &Snapshot,
    parsed: &ParsedSearch<'_>,
    call: &Call<'_>,
) -> Result<Reply<SearchData>, ToolError> {
    let args = parsed.args;
    let search = EventSearch::new(tools, snapshot, parsed, call);
    let ranked;
    let mut query = &parsed.query;
    let mut page = search.find_page(query)?;
    let mut is_ranked_instead = parsed.continues_ranking;
    if page.is_empty() && !page.is_timed_out && parsed.may_rank_instead() {
        ranked = Query { sort: SearchSort::Relevance, ..query.clone() };
        let ranked_page = search.find_page(&ranked)?;
        if !ranked_page.is_empty() {
            query = &ranked;
            page = ranked_page;
            is_ranked_instead = true;
        }
    }
    if page.is_timed_out && page.matches.is_empty() && page.next.is_none() {
        return Err(search_error(SearchError::TimedOut));
    }

    let absent = search.find_absent_words(query, &page)?;
    let mut reply = Reply::new(
        SearchData { query: query.to_parsed_query(), matches: std::mem::take(&mut page.matches) },
        0,
    );
    reply.returned = reply.data.matches.len();
    reply.next_cursor.clone_from(&page.next);
    reply.before = page.before;
    let matched = page.matched.max(reply.before + reply.returned);
    reply.total = Some(match call.examined().and_then(|examined| examined.matched) {
        // A page that is ranked instead has what was loaded for it.
        Some(RowTotal::Exact(count)) if !is_ranked(query) => {
            RowTotal::Exact(matched.max(reply.before + count))
        }
        Some(RowTotal::AtLeast(count)) => RowTotal::AtLeast(matched.max(reply.before + count)),
        Some(RowTotal::Exact(_)) | None if page.is_complete => RowTotal::Exact(matched),
        Some(RowTotal::Exact(_)) | None => RowTotal::AtLeast(matched),
    });
    if is_ranked(query) {
        let best = reply.data.matches.first().and_then(|found| found.confidence);
        reply.best_confidence = Some(best.unwrap_or(0.0));
    }

    let selected = search.selected()?;
    reply.scope = Some(explain::describe_scope(snapshot, args, selected, parsed.since));
    let mut hints: Vec<String> = explain::describe_absent_words(&absent).into_iter().collect();
    if !(page.is_timed_out && reply.data.matches.is_empty()) {
        hints.push(explain::describe_next_step(
            tools.caller.interface,
            snapshot,
            args,
            query,
            &reply.data,
            selected,
        )?);
    }
    reply.hint = Some(hints.join(" "));
    reply.warnings = caller_notes(tools, snapshot, args)?;
    reply.warnings.extend(selected.dropped_texts_note(snapshot)?);
    reply.warnings.extend(explain::unknown_qualifier_warning(&reply.data, is_ranked_instead));
    reply.warnings.extend(describe_page(query, &page, is_ranked_instead));
    Ok(reply)
}

/// The search of one call over a snapshot.
struct EventSearch<'a> {
    tools: &'a Tools,
    snapshot: &'a Snapshot,
    parsed: &'a ParsedSearch<'a>,
    call: &'a Call<'a>,
    /// The sessions that the filters select; see [`Self::selected`].
    selected: OnceCell<SelectedSessions<'a>>,
}

impl<'a> EventSearch<'a> {
    fn new(
        tools: &'a Tools,
        snapshot: &'a Snapshot,
        parsed: &'a ParsedSearch<'a>,
        call: &'a Call<'a>,
    ) -> Self {
        Self { tools, snapshot, parsed, call, selected: OnceCell::new() }
    }

    /// Returns the sessions that the filters of the call select. The first access finds them.
    fn selected(&self) -> Result<&SelectedSessions<'a>, ToolError> {
        if let Some(selected) = self.selected.get() {
            return Ok(selected);
        }
        let found = SelectedSessions::find(self.tools, self.snapshot, self.parsed.args)?;
        Ok(self.selected.get_or_init(|| found))
    }

    /// Returns the positions of the sessions to search; `None` means all.
    fn searched_sessions(&self) -> Result<Option<HashSet<usize>>, ToolError> {
        let is_excluded = excludes_current(self.parsed.args);
        let current =
            if is_excluded { self.tools.caller.current_session(self.snapshot) } else { None };
        Ok(self.selected()?.without(current, self.snapshot))
    }

    /// True if the best matches come with more of their texts than snippets: in one session, for a
    /// caller that reads no screen.
    fn shows_texts(&self) -> bool {
        !self.tools.caller.interface.is_terminal() && self.parsed.args.session_id.is_some()
    }

    fn request<'q>(&self, query: &'q Query) -> Result<SearchRequest<'q>, ToolError> {
        let parsed = self.parsed;
        let event_types = parsed.args.event_type.as_ref().map(|types| types.to_vec());
        Ok(SearchRequest {
            query,
            sessions: self.searched_sessions()?,
            event_types: event_types.unwrap_or_default(),
            since: parsed.since.map(|since| since.0),
            limit: parsed.limit,
            one_per_session: parsed.one_per_session,
            after: parsed.after_time.clone(),
            counted_rows: COUNTED_ROWS,
            deadline: Some(self.call.search_deadline()),
        })
    }

    /// Finds the page of matches that the cursor names, or the first one.
    fn find_page(&self, query: &Query) -> Result<MatchPage, ToolError> {
        let Self { snapshot, parsed, call, .. } = self;
        let request = self.request(query)?;
        let mut page = if is_ranked(query) {
            find_best_matches(snapshot, &request, parsed, self.shows_texts(), call)?
        } else {
            find_matches_by_time(snapshot, &request, parsed, call)?
        };
        if is_ranked(query) && parsed.args.cursor.is_none() && self.shows_texts() {
            later::add_later_messages(snapshot, &mut page.matches)?;
        }
        context::add_context(snapshot, &mut page.matches, parsed.context)?;
        Ok(page)
    }

    /// Returns the words of the query that no searched event has.
    fn find_absent_words(
        &self,
        query: &Query,
        page: &MatchPage,
    ) -> Result<Vec<AbsentWord>, ToolError> {
        let is_ranked = is_ranked(query);
        let known = if !page.is_empty() {
            KnownAbsence::Words(&page.absent_words)
        } else if page.is_complete && !is_ranked && query.clauses.len() == 1 {
            // The page has all events with one of these words, and there are none.
            KnownAbsence::EveryWord
        } else {
            KnownAbsence::Unknown
        };
        if page.is_timed_out || matches!(known, KnownAbsence::Words([])) {
            return Ok(Vec::new());
        }
        let request = self.request(query)?;
        search::find_absent_words(self.snapshot, &request, is_ranked, known, self.call.stop)
            .map_err(search_error)
    }
}

/// Returns notes on how the page differs from what the query asks for.
fn describe_page(query: &Query, page: &MatchPage, is_ranked_instead: bool) -> Vec<Warning> {
    let mut notes = Vec::new();
    if is_ranked_instead {
        let message = "No event has all of these words; the best matches for some of them are shown. With sort newest, all are required";
        notes.push(Warning::new(WarningCode::RankedInstead, Severity::Warning, message));
    }
    if page.is_timed_out {
        notes.push(Warning::new(
            WarningCode::ResultsTruncated,
            Severity::Warning,
            describe_timeout(query, page),
        ));
    }
    if !page.includes_all_hits {
        let message = "The page was cut to the maximum size of an answer";
        notes.push(Warning::new(WarningCode::ResultsTruncated, Severity::Info, message));
    }
    if query.sort == SearchSort::Relevance && !is_ranked(query) {
        let message =
            "Sorting by relevance needs a word to rank by; the newest matches are shown first";
        notes.push(Warning::new(WarningCode::ParameterIgnored, Severity::Info, message));
    }
    if query.includes_replay {
        let message =
            "Copied history (is_replay) is included; the same event may appear once per copy";
        notes.push(Warning::new(WarningCode::ReplayExcluded, Severity::Info, message));
    }
    notes
}

/// Describes what a search that ran out of time did not examine, and how to continue.
fn describe_timeout(query: &Query, page: &MatchPage) -> String {
    let narrow = "narrow the search with since, session_id, project or a rarer word";
    let newer = if query.sort == SearchSort::Oldest { "later" } else { "older" };
    match &page.next {
        Some(_) => format!(
            "The search ran out of time: {newer} events were not searched. Pass pagination.next_cursor as cursor to continue, or {narrow}"
        ),
        None => format!(
            "The search ran out of time: events that match better may be missing. To search all, {narrow}"
        ),
    }
}

/// Returns notes on which session was taken as the current one, or that it is unknown.
fn caller_notes(
    tools: &Tools,
    snapshot: &Snapshot,
    args: &SearchArgs,
) -> Result<Vec<Warning>, ToolError> {
    let mut notes = Vec::new();
    if let Some(id) = &args.session_id {
        let session = &snapshot.sessions()[tools.caller.find_session(snapshot, id)?];
        notes.extend(tools.caller.session_note(id, session));
    }
    if excludes_current(args) && tools.caller.current_session(snapshot).is_none() {
        let message = "exclude_current has no effect: the session you are in is not known";
        notes.push(Warning::new(WarningCode::ParameterIgnored, Severity::Warning, message));
    }
    Ok(notes)
}
