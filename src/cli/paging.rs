//! Pages of answers: `--page N` and `--all` follow the cursors of the tools.

use schemas::envelope::{EncodedAnswer, EncodedData, Pagination};
use schemas::tool::analyze::AnalyzeData;
use schemas::tool::find::FindData;
use schemas::tool::list::ListData;
use schemas::tool::search::SearchData;
use schemas::{ErrorCode, ToolError};
use serde::Serialize;

use tools::{AnswerResult, encoding_error};

/// Maximum number of pages that `--all` reads.
const MAX_PAGES: u32 = 10_000;

/// The flags that choose one page of an answer.
#[derive(Debug, Clone, Default, clap::Args)]
pub(super) struct OnePageFlags {
    /// Show this page, from 1
    #[arg(long, value_name = "N", conflicts_with = "cursor")]
    page: Option<u32>,
    /// Cursor from the previous page (shown by --json)
    #[arg(long)]
    cursor: Option<String>,
}

/// The flags of a command whose pages can be joined.
#[derive(Debug, Clone, Default, clap::Args)]
pub(super) struct PageFlags {
    #[command(flatten)]
    one: OnePageFlags,
    /// Show all pages
    #[arg(long, conflicts_with_all = ["cursor", "page"])]
    all: bool,
}

/// The data of an answer whose pages can be joined.
pub(super) trait JoinPages: Serialize {
    /// Adds the rows of the next page.
    fn append(&mut self, next: Self);
}

impl JoinPages for ListData {
    fn append(&mut self, next: Self) {
        self.sessions.extend(next.sessions);
    }
}

impl JoinPages for SearchData {
    fn append(&mut self, next: Self) {
        self.matches.extend(next.matches);
    }
}

impl JoinPages for FindData {
    fn append(&mut self, next: Self) {
        self.sessions.extend(next.sessions);
    }
}

impl JoinPages for AnalyzeData {
    fn append(&mut self, next: Self) {
        self.findings.extend(next.findings);
    }
}

impl OnePageFlags {
    /// True if the user names a page.
    pub(super) fn is_given(&self) -> bool {
        self.page.is_some() || self.cursor.is_some()
    }

    /// Returns the number of the page that is shown; `None` if a cursor names it.
    pub(super) fn shown_page(&self) -> Option<u32> {
        if self.cursor.is_some() { None } else { Some(self.page.unwrap_or(1)) }
    }

    /// Reads the wanted page. `read` returns the page at a cursor.
    ///
    /// # Errors
    /// Fails if a page cannot be read, or if there are fewer pages.
    pub(super) fn read<T>(
        &self,
        mut read: impl FnMut(Option<String>) -> AnswerResult<T>,
    ) -> AnswerResult<T> {
        let wanted = self.page.unwrap_or(1);
        if wanted == 0 {
            return Err(ToolError::invalid_value("page", "0", &["a number from 1"]));
        }
        let mut answer = read(self.cursor.clone())?;
        for page in 1..wanted {
            let Some(cursor) = next_cursor(&answer) else {
                let pages = if page == 1 { "1 page".to_owned() } else { format!("{page} pages") };
                let message = format!("page {wanted} not found: there is only {pages}");
                return Err(ToolError::new(ErrorCode::InvalidArgument, message));
            };
            answer = read(Some(cursor))?;
        }
        Ok(answer)
    }
}

impl PageFlags {
    /// True if all pages are wanted.
    pub(super) fn has_all(&self) -> bool {
        self.all
    }

    /// Returns the number of the page that is shown; `None` if a cursor names it, or with `--all`.
    pub(super) fn shown_page(&self) -> Option<u32> {
        if self.all { None } else { self.one.shown_page() }
    }

    /// Reads the wanted page, or all pages as one. `read` returns the page at a cursor.
    ///
    /// # Errors
    /// Fails if a page cannot be read, or if there are fewer pages.
    pub(super) fn read<T: JoinPages>(
        &self,
        read: impl FnMut(Option<String>) -> AnswerResult<T>,
    ) -> AnswerResult<T> {
        if self.all { read_all(read) } else { self.one.read(read) }
    }
}

/// Reads all pages and joins them.
fn read_all<T: JoinPages>(
    mut read: impl FnMut(Option<String>) -> AnswerResult<T>,
) -> AnswerResult<T> {
    let mut last = read(None)?;
    let mut pages = Vec::new();
    while let Some(cursor) = next_cursor(&last)
        && pages.len() < MAX_PAGES as usize
    {
        pages.push(std::mem::replace(&mut last, read(Some(cursor))?));
    }
    let mut pages = pages.into_iter();
    let Some(first) = pages.next() else { return Ok(last) };

    let mut metadata = last.metadata.clone();
    metadata.results_returned += first.metadata.results_returned;
    let mut data = first.data.into_value();
    for page in pages {
        metadata.results_returned += page.metadata.results_returned;
        data.append(page.data.into_value());
    }
    data.append(last.data.into_value());
    let pagination =
        Pagination { total_in_page: metadata.results_returned, has_more: false, next_cursor: None };
    Ok(EncodedAnswer {
        status: last.status,
        data: EncodedData::new(data).map_err(encoding_error)?,
        pagination: Some(pagination),
        hint: last.hint,
        warnings: first.warnings,
        metadata,
    })
}

/// Returns the cursor of the next page, if there is one.
fn next_cursor<T>(answer: &EncodedAnswer<T>) -> Option<String> {
    answer.pagination.as_ref().filter(|page| page.has_more)?.next_cursor.clone()
}
