//! Boxes over a screen: the keys, and the cost of a session.

use ratatui::Frame;
use ratatui::layout::{Constraint, Flex, Layout, Rect};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Clear, Padding, Paragraph};
use schemas::tool::list::{Session, Tokens};

use super::setup::EnterAction;
use super::text::fit_text;
use super::theme::Theme;
use crate::output::painted::STRONG;
use base::numbers::{format_count, format_dollars};
use base::sanitize::{clean_text, one_line};

/// The cells and rows that the border and its padding take.
const BORDER_CELLS: u16 = 6;
const BORDER_ROWS: u16 = 2;

/// The cells of the first column.
const NAME_CELLS: usize = 18;

/// A box with text, which any key closes.
#[derive(Debug)]
pub(super) struct Popup {
    title: &'static str,
    rows: Vec<(String, String)>,
}

/// The keys of the list, and what they do. What Enter does depends on the command.
const PICKER_KEYS: &[(&str, &str)] = &[
    ("letters", "search titles and events"),
    ("↑ ↓ PgUp PgDn", "select a session"),
    ("Enter", ""),
    ("Tab", "switch between the search and the list"),
    ("Alt+r, in the list r", "resume it in its agent"),
    ("Alt+y, in the list y", "copy its id"),
    ("Alt+e, in the list e", "export it as Markdown"),
    ("Alt+c, in the list c", "show its cost"),
    ("Alt+p, in the list p", "this project or all"),
    ("Alt+a, in the list a", "the next agent or all"),
    ("Alt+t, in the list t", "last 24h, 7d, 30d or any time"),
    ("Esc", "clear the search, then quit"),
    ("Ctrl+C", "leave"),
];

/// The keys of the reading view, and what they do.
const READER_KEYS: &[(&str, &str)] = &[
    ("↑ ↓ j k", "scroll by a line"),
    ("Space b PgDn PgUp", "scroll by a page"),
    ("g G", "first and last line"),
    ("] [", "next and previous prompt"),
    ("o Enter", "unfold the calls, then their output"),
    ("click", "unfold one block"),
    ("/ n N", "find a text, next, previous"),
    ("r", "resume in its agent"),
    ("y", "copy the id"),
    ("e", "export as Markdown"),
    ("c", "show the cost"),
    ("q Esc", "back"),
];

impl Popup {
    /// Returns the box with the keys of the list.
    pub(super) fn picker_keys(enter: EnterAction) -> Self {
        let mut popup = Self::with_keys("Keys of the list", PICKER_KEYS);
        for (_, does) in popup.rows.iter_mut().filter(|(key, _)| key == "Enter") {
            *does = format!("{} it", enter.name());
        }
        popup
    }

    /// Returns the box with the keys of the reading view.
    pub(super) fn reader_keys() -> Self {
        Self::with_keys("Keys of the reading view", READER_KEYS)
    }

    fn with_keys(title: &'static str, keys: &[(&str, &str)]) -> Self {
        let rows = keys.iter().map(|(key, does)| ((*key).to_owned(), (*does).to_owned()));
        Self { title, rows: rows.collect() }
    }

    /// Returns the box with the tokens and the cost of a session.
    pub(super) fn cost(session: &Session) -> Self {
        let mut rows = Vec::new();
        if let Some(tokens) = &session.tokens {
            append_tokens(&mut rows, tokens);
        }
        if let Some(family) = &session.with_subagents {
            let cost =
                family.tokens.cost_usd.map_or_else(|| "not known".to_owned(), format_dollars);
            rows.push((format!("with {} subagents", family.subagents), cost));
        }
        if rows.is_empty() {
            rows.push(("tokens".to_owned(), "the log has none".to_owned()));
        }
        Self { title: "Cost", rows }
    }

    /// Draws the box in the middle of the screen.
    pub(super) fn render(&self, frame: &mut Frame<'_>, theme: Theme) {
        let longest = |text: &str| Span::raw(text).width();
        let name_cells =
            self.rows.iter().map(|(name, _)| longest(name)).max().unwrap_or(0).max(NAME_CELLS);
        let value_cells = self.rows.iter().map(|(_, value)| longest(value)).max().unwrap_or(0);
        let width = u16::try_from(name_cells + 2 + value_cells).unwrap_or(u16::MAX);
        let rows = u16::try_from(self.rows.len()).unwrap_or(u16::MAX);
        let area = centered(
            frame.area(),
            width.saturating_add(BORDER_CELLS),
            rows.saturating_add(BORDER_ROWS),
        );

        let lines: Vec<Line<'_>> = self
            .rows
            .iter()
            .map(|(name, value)| {
                let name = Span::styled(fit_text(name, name_cells + 2), theme.style(STRONG));
                Line::from(vec![name, Span::raw(value.as_str())])
            })
            .collect();
        let border = Block::bordered().title(self.title).padding(Padding::horizontal(2));
        // A wide character next to the box would reach into it.
        let left = area.x.saturating_sub(1);
        let cleared = Rect { x: left, width: area.width.saturating_add(area.x - left), ..area };
        frame.render_widget(Clear, cleared);
        frame.render_widget(Paragraph::new(lines).block(border), area);
    }
}

fn append_tokens(rows: &mut Vec<(String, String)>, tokens: &Tokens) {
    let usage = tokens.counted_once;
    let counts = [
        ("input", usage.input),
        ("output", usage.output),
        ("cache read", usage.cache_read),
        ("cache write", usage.cache_write),
    ];
    for (name, count) in counts {
        rows.extend(
            count.map(|count| (format!("{name} tokens"), format_count(count.unsigned_abs()))),
        );
    }
    let cost = tokens.cost_usd.map_or_else(|| "not known".to_owned(), format_dollars);
    rows.push(("cost".to_owned(), cost));
    if !tokens.unpriced_models.is_empty() {
        let models = one_line(&clean_text(&tokens.unpriced_models.join(", ")));
        rows.push(("no price for".to_owned(), models));
    }
    rows.push(("counts are".to_owned(), tokens.confidence.to_string()));
}

/// Returns a place of this size in the middle of `area`.
fn centered(area: Rect, width: u16, height: u16) -> Rect {
    let [area] = Layout::horizontal([Constraint::Length(width)]).flex(Flex::Center).areas(area);
    let [area] = Layout::vertical([Constraint::Length(height)]).flex(Flex::Center).areas(area);
    area
}
