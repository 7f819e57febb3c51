//! Finds the sessions for the typed text, in a thread of its own.
//!
//! Without a text, the newest sessions come first. With a text, the sessions whose title has all of
//! its words come first, the newest of them at the top. They are found in memory, so they are shown
//! before the events are searched. The sessions with the best events follow.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use schemas::envelope::EncodedAnswer;
use schemas::tool::list::{ListArgs, ListData, Session};
use schemas::tool::search::{SearchArgs, SearchSort};
use schemas::{Timestamp, ToolError, Zone, limits};

use super::filters::Filters;
use super::row::PickerRow;
use super::titles::TitleIndex;
use crate::screen::latest::LatestWorker;
use tools::error::store_error;
use tools::{Call, Tools, session_filter};

/// The most sessions that are listed without a text.
const MAX_LISTED_SESSIONS: usize = 1_000;

/// The most sessions found by their titles.
const MAX_TITLE_HITS: usize = limits::SESSION_IDS_MAX;

/// The fewest bytes of a word for which events are searched. The index decides nothing about shorter
/// words.
const MIN_SEARCHED_WORD_BYTES: usize = 3;

/// A text and the filters, to be answered by sessions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::screen) struct FinderRequest {
    /// Distinguishes the answers to this request from those to others.
    pub(super) number: u64,
    pub(super) text: String,
    pub(super) filters: Filters,
}

/// The sessions found for a request so far.
#[derive(Debug)]
pub(in crate::screen) struct FinderAnswer {
    pub(super) number: u64,
    pub(super) rows: Vec<PickerRow>,
    /// The reason why events could not be searched.
    pub(super) trouble: Option<String>,
    /// False if more sessions may follow.
    pub(super) is_complete: bool,
    /// True if there are more sessions than the list may have.
    pub(super) has_more: bool,
}

/// Starts the thread that answers requests through `answer`.
pub(in crate::screen) fn start_finder(
    tools: Arc<Tools>,
    zone: Zone,
    answer: impl Fn(FinderAnswer) + Send + 'static,
) -> std::io::Result<LatestWorker<FinderRequest>> {
    let mut titles = TitleIndex::default();
    LatestWorker::start("finder", move |request: FinderRequest, is_stale| {
        let titles = &mut titles;
        let tools = &*tools;
        let mut search =
            Search { tools, zone: &zone, request: &request, is_stale, titles, has_more: false };
        let mut rows = Vec::new();
        let trouble = search.find_sessions(&mut rows, &answer).err().map(|error| error.message);
        if !is_stale() {
            let Search { has_more, .. } = search;
            let number = request.number;
            answer(FinderAnswer { number, rows, trouble, is_complete: true, has_more });
        }
    })
}

/// The search for one request.
struct Search<'a> {
    tools: &'a Tools,
    zone: &'a Zone,
    request: &'a FinderRequest,
    is_stale: &'a (dyn Fn() -> bool + Sync),
    titles: &'a mut TitleIndex,
    /// True if more sessions were found than the list may have.
    has_more: bool,
}

impl<'a> Search<'a> {
    fn call(&self) -> Call<'a> {
        Call::new(Timestamp::now(), self.is_stale).with_zone(self.zone.clone())
    }

    /// Adds the sessions that are found to `rows`. What is found early is passed to `answer`. Before
    /// an error, `rows` has what was found until then.
    fn find_sessions(
        &mut self,
        rows: &mut Vec<PickerRow>,
        answer: &dyn Fn(FinderAnswer),
    ) -> Result<(), ToolError> {
        let text = self.request.text.trim();
        if text.is_empty() {
            return self.list_newest(rows, answer);
        }
        *rows = self.find_by_title(text)?;
        if text.split_whitespace().all(|word| word.len() < MIN_SEARCHED_WORD_BYTES) {
            return Ok(());
        }
        if !(self.is_stale)() {
            answer(self.early_answer(rows.clone()));
        }
        let found = self.find_by_events(text)?;
        add_event_hits(rows, found);
        Ok(())
    }

    fn early_answer(&self, rows: Vec<PickerRow>) -> FinderAnswer {
        let number = self.request.number;
        FinderAnswer { number, rows, trouble: None, is_complete: false, has_more: false }
    }

    /// Lists the newest sessions, page by page.
    fn list_newest(
        &mut self,
        rows: &mut Vec<PickerRow>,
        answer: &dyn Fn(FinderAnswer),
    ) -> Result<(), ToolError> {
        let call = self.call();
        let mut cursor = None;
        while rows.len() < MAX_LISTED_SESSIONS && !(self.is_stale)() {
            let Filters { project, provider, period } = self.request.filters.clone();
            let args = ListArgs {
                project,
                provider,
                since: period.since().map(str::to_owned),
                limit: Some(limits::LIST_LIMIT_MAX),
                cursor,
                ..ListArgs::default()
            };
            let page = self.tools.list_sessions(&args, &call)?;
            cursor = next_cursor(&page);
            rows.extend(page.data.sessions.iter().cloned().map(PickerRow::new));
            if cursor.is_none() {
                break;
            }
            answer(self.early_answer(rows.clone()));
        }
        self.has_more = cursor.is_some();
        Ok(())
    }

    /// Finds the sessions whose title, project, branch or id has all words of the text, the newest
    /// first.
    fn find_by_title(&mut self, text: &str) -> Result<Vec<PickerRow>, ToolError> {
        let call = self.call();
        let Filters { project, provider, period } = &self.request.filters;
        let since = period.since();
        let since =
            since.map(|since| call.zone.parse_since("since", since, call.now)).transpose()?;
        let passes = session_filter(project.as_deref(), *provider, since.map(|since| since.0));
        let words: Vec<String> = text.split_whitespace().map(str::to_lowercase).collect();

        let snapshot = self.tools.snapshot(&call)?;
        self.titles.update(snapshot).map_err(store_error)?;
        let sessions = snapshot.sessions();
        let found = self.titles.find(&words).filter_map(|at| sessions.get(at));
        let found = found.filter(|session| passes(session)).take(MAX_TITLE_HITS + 1);
        let mut ids: Vec<String> = found.map(|session| session.id().to_owned()).collect();
        self.has_more = ids.len() > MAX_TITLE_HITS;
        ids.truncate(MAX_TITLE_HITS);
        let sessions = self.read_sessions(&ids, &call)?;
        Ok(ids.iter().filter_map(|id| sessions.get(id).cloned()).map(PickerRow::new).collect())
    }

    /// Finds the sessions with the best events, the best first.
    fn find_by_events(&mut self, text: &str) -> Result<Vec<PickerRow>, ToolError> {
        let call = self.call();
        let Filters { project, provider, period } = self.request.filters.clone();
        let args = SearchArgs {
            query: text.to_owned(),
            project,
            provider,
            since: period.since().map(str::to_owned),
            sort: Some(SearchSort::Relevance),
            limit: Some(limits::SEARCH_LIMIT_MAX),
            ..SearchArgs::default()
        };
        let answer = self.tools.search_best_events(&args, &call)?;

        // The best event of each session, the best session first.
        let mut best: Vec<(String, u32)> = Vec::new();
        let mut known = HashSet::new();
        for found in &answer.data.matches {
            if known.insert(found.session_id.clone()) {
                best.push((found.session_id.clone(), found.event_index));
            }
        }
        let limit = usize::try_from(limits::SEARCH_LIMIT_MAX).unwrap_or(usize::MAX);
        self.has_more |= answer.data.matches.len() >= limit;
        let ids: Vec<String> = best.iter().map(|(id, _)| id.clone()).collect();
        let sessions = self.read_sessions(&ids, &call)?;
        let mut rows = Vec::new();
        for (id, event_index) in best {
            if let Some(session) = sessions.get(&id) {
                let row = PickerRow::new(session.clone());
                rows.push(PickerRow { event_index: Some(event_index), ..row });
            }
        }
        Ok(rows)
    }

    /// Reads the sessions with these ids.
    fn read_sessions(
        &self,
        ids: &[String],
        call: &Call<'_>,
    ) -> Result<HashMap<String, Session>, ToolError> {
        let mut sessions = HashMap::new();
        for ids in ids.chunks(limits::SESSION_IDS_MAX) {
            let args = ListArgs {
                session_ids: Some(ids.to_vec()),
                limit: Some(limits::LIST_LIMIT_MAX),
                ..ListArgs::default()
            };
            let page = self.tools.list_sessions(&args, call)?;
            for session in &page.data.sessions {
                sessions.insert(session.session_id.clone(), session.clone());
            }
        }
        Ok(sessions)
    }
}

/// Returns the cursor of the next page.
fn next_cursor(page: &EncodedAnswer<ListData>) -> Option<String> {
    page.pagination.as_ref().and_then(|page| page.next_cursor.clone())
}

/// Adds the sessions found by their events to those found by their titles.
fn add_event_hits(rows: &mut Vec<PickerRow>, found: Vec<PickerRow>) {
    let mut known: HashSet<String> = rows.iter().map(|row| row.id.clone()).collect();
    for hit in found {
        if known.insert(hit.id.clone()) {
            rows.push(hit);
            continue;
        }
        if let Some(row) = rows.iter_mut().find(|row| row.id == hit.id) {
            row.event_index = hit.event_index;
        }
    }
}
