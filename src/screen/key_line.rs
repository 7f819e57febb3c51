//! The last row of a screen: the keys and what they do.

use ratatui::text::{Line, Span};

use super::text::justify;
use super::theme::Theme;
use crate::output::painted::{DIM, STRONG};

/// Returns a line with the keys that fit into `width`, and with `place` at its end.
pub(super) fn key_line(
    keys: &[(&'static str, &'static str)],
    place: &str,
    width: usize,
    theme: Theme,
) -> Line<'static> {
    let place = Line::styled(place.to_owned(), theme.style(DIM));
    let mut rest = width.saturating_sub(place.width() + 1);
    let mut spans = Vec::new();
    for (key, meaning) in keys {
        let separator = if spans.is_empty() { "" } else { "  " };
        let own = [
            Span::raw(separator),
            Span::styled(*key, theme.style(STRONG)),
            Span::styled(format!(" {meaning}"), theme.style(DIM)),
        ];
        let cells: usize = own.iter().map(Span::width).sum();
        if cells > rest {
            break;
        }
        rest -= cells;
        spans.extend(own);
    }
    justify(Line::from(spans), place, width)
}
