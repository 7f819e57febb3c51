//! The state of the picker: the typed text, the filters, the rows and the preview.

use std::sync::Arc;

use ratatui::layout::Rect;
use schemas::tool::list::Session;
use schemas::{Provider, Zone};

use super::filters::Filters;
use super::finder::{FinderAnswer, FinderRequest};
use super::row::PickerRow;
use crate::output::conversation_blocks::Conversation;
use crate::screen::conversation_lines::ConversationLine;
use crate::screen::line_edit::LineEdit;
use crate::screen::setup::EnterAction;
use crate::screen::theme::Theme;

/// The part of the picker that gets the letters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Focus {
    Search,
    List,
}

/// The list of sessions on the screen.
pub(in crate::screen) struct Picker {
    pub(super) theme: Theme,
    pub(super) zone: Zone,
    pub(super) enter: EnterAction,
    /// The folder of the project in which the picker was started.
    pub(super) here: Option<String>,
    /// The agents that have sessions.
    pub(super) providers: Vec<Provider>,
    pub(super) search: LineEdit,
    pub(super) filters: Filters,
    pub(super) focus: Focus,
    pub(super) rows: Vec<PickerRow>,
    /// The position of the selected row.
    pub(super) selected: usize,
    /// The first row on the screen.
    pub(super) top: usize,
    /// The number of the last request.
    pub(super) number: u64,
    /// The number of the last request that has an answer.
    pub(super) answered: u64,
    pub(super) is_complete: bool,
    /// True if there are more sessions than the list may have.
    pub(super) has_more: bool,
    pub(super) trouble: Option<String>,
    pub(super) preview: Option<Preview>,
    /// The places of the list and of the preview when they were drawn.
    pub(super) list_area: Rect,
    pub(super) preview_area: Rect,
}

/// The conversation of the selected session.
pub(super) struct Preview {
    pub(super) session_id: String,
    pub(super) conversation: Arc<Conversation>,
    /// The lines, for one width, text and event; `None` until they are formatted.
    pub(super) lines: Option<Vec<ConversationLine>>,
    pub(super) width: u16,
    pub(super) text: String,
    pub(super) event_index: Option<u32>,
    pub(super) top: usize,
}

impl Picker {
    pub(in crate::screen) fn new(
        theme: Theme,
        zone: Zone,
        enter: EnterAction,
        here: Option<String>,
        providers: Vec<Provider>,
    ) -> Self {
        Self {
            theme,
            zone,
            enter,
            here,
            providers,
            search: LineEdit::default(),
            filters: Filters::default(),
            focus: Focus::Search,
            rows: Vec::new(),
            selected: 0,
            top: 0,
            number: 0,
            answered: 0,
            is_complete: false,
            has_more: false,
            trouble: None,
            preview: None,
            list_area: Rect::ZERO,
            preview_area: Rect::ZERO,
        }
    }

    /// Returns the request for the current text and filters, with a new number.
    pub(in crate::screen) fn next_request(&mut self) -> FinderRequest {
        self.number += 1;
        self.is_complete = false;
        FinderRequest {
            number: self.number,
            text: self.search.text().to_owned(),
            filters: self.filters.clone(),
        }
    }

    /// Returns the searched text and the filters, to notice that they changed.
    pub(in crate::screen) fn question(&self) -> (String, String) {
        (self.search.text().trim().to_owned(), self.filters.describe())
    }

    /// Returns the searched text.
    pub(in crate::screen) fn text(&self) -> &str {
        self.search.text()
    }

    /// True while sessions are being searched.
    pub(in crate::screen) fn is_waiting(&self) -> bool {
        !self.is_complete
    }

    /// Shows the sessions that were found, unless the text or the filters changed since. The selected
    /// session stays selected if it `keeps_selection`, and if the answer continues an earlier one.
    pub(in crate::screen) fn show_answer(&mut self, answer: FinderAnswer, keeps_selection: bool) {
        if answer.number != self.number {
            return;
        }
        let keeps_selection = keeps_selection || self.answered == answer.number;
        let selected = self.selected_row().map(|row| row.id.clone()).filter(|_| keeps_selection);
        self.answered = answer.number;
        self.rows = answer.rows;
        self.trouble = answer.trouble;
        self.is_complete = answer.is_complete;
        self.has_more = answer.has_more;
        let position = self.rows.iter().position(|row| Some(&row.id) == selected.as_ref());
        self.selected = position.unwrap_or(0);
        self.scroll_to_selected();
    }

    pub(super) fn selected_row(&self) -> Option<&PickerRow> {
        self.rows.get(self.selected)
    }

    /// Returns the id of the selected session.
    pub(in crate::screen) fn selected_id(&self) -> Option<&str> {
        self.selected_row().map(|row| row.id.as_str())
    }

    /// Returns the selected session.
    pub(in crate::screen) fn selected_session(&self) -> Option<&Session> {
        self.selected_row().map(|row| &row.session)
    }

    /// Returns the event of the best match in the selected session.
    pub(in crate::screen) fn selected_event(&self) -> Option<u32> {
        self.selected_row().and_then(|row| row.event_index)
    }

    /// Shows a conversation as the preview. If it is the shown part of one, which was read again, the
    /// place in it stays.
    pub(in crate::screen) fn show_preview(&mut self, conversation: Arc<Conversation>) {
        if let Some(shown) = &mut self.preview
            && shown.session_id == conversation.session.session_id
            && shown.conversation.first_event() == conversation.first_event()
        {
            shown.conversation = conversation;
            shown.lines = None;
            return;
        }
        self.preview = Some(Preview {
            session_id: conversation.session.session_id.clone(),
            conversation,
            lines: None,
            width: 0,
            text: String::new(),
            event_index: None,
            top: 0,
        });
    }

    /// Returns the conversation of the selected session, once it is read.
    pub(in crate::screen) fn previewed(&self) -> Option<&Arc<Conversation>> {
        let preview = self.preview.as_ref()?;
        let is_selected = Some(preview.session_id.as_str()) == self.selected_id();
        if is_selected { Some(&preview.conversation) } else { None }
    }

    /// Moves the selection by a number of rows.
    pub(super) fn select_by(&mut self, rows: isize) {
        let last = self.rows.len().saturating_sub(1);
        self.selected = self.selected.saturating_add_signed(rows).min(last);
        self.scroll_to_selected();
    }

    pub(super) fn select(&mut self, row: usize) {
        self.selected = row.min(self.rows.len().saturating_sub(1));
        self.scroll_to_selected();
    }

    pub(super) fn page_rows(&self) -> usize {
        usize::from(self.list_area.height).max(1)
    }

    /// Scrolls so that the selected row is on the screen.
    pub(super) fn scroll_to_selected(&mut self) {
        let height = self.page_rows();
        if self.selected < self.top {
            self.top = self.selected;
        } else if self.selected >= self.top + height {
            self.top = self.selected + 1 - height;
        }
        self.top = self.top.min(self.rows.len().saturating_sub(height));
    }
}
