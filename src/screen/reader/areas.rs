//! The parts of the reading view.

use ratatui::layout::{Constraint, Layout, Rect};

/// The rows above and below the conversation.
const HEADER_ROWS: u16 = 3;
const FOOTER_ROWS: u16 = 1;

/// The parts of the reading view, from top to bottom.
pub(super) struct ReaderAreas {
    pub(super) header: Rect,
    pub(super) body: Rect,
    pub(super) footer: Rect,
}

/// Divides the screen.
pub(super) fn divide_screen(area: Rect) -> ReaderAreas {
    let rows =
        [Constraint::Length(HEADER_ROWS), Constraint::Min(1), Constraint::Length(FOOTER_ROWS)];
    let [header, body, footer] = Layout::vertical(rows).areas(area);
    ReaderAreas { header, body, footer }
}
