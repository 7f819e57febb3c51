//! Draws the picker: the search, the list, the preview and the keys.

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::Style;
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Borders, Paragraph};
use schemas::Timestamp;

use super::filters::Filters;
use super::row::PickerRow;
use super::state::{Focus, Picker, Preview};
use crate::output::Highlighter;
use crate::output::painted::{AGENT, DIM, FAILED, PROJECT, PROMPT, STRONG};
use crate::screen::conversation_lines::{ConversationFormat, Detail};
use crate::screen::facts::heading_lines;
use crate::screen::key_line::key_line;
use crate::screen::text::{fit_text, highlight_query, justify, mark_words};
use crate::screen::theme::Theme;
use base::cells::{text_width, truncate_end};
use base::numbers::format_dollars;

/// The fewest columns at which the preview is next to the list.
const MIN_COLUMNS_FOR_RIGHT_PREVIEW: u16 = 110;

/// The fewest rows at which there is a preview below the list.
const MIN_ROWS_FOR_LOWER_PREVIEW: u16 = 16;

/// The fewest cells of a row that has more than the age, the agent, the title and the cost.
const MIN_CELLS_FOR_PROJECT: usize = 56;
const MIN_CELLS_FOR_COUNTS: usize = 76;

const MICROS_PER_MINUTE: i64 = 60_000_000;

const AGE_CELLS: usize = 4;
const COUNT_CELLS: usize = 11;

/// The most cells of columns that are as wide as their rows need.
const MAX_AGENT_CELLS: usize = 11;
const MAX_PROJECT_CELLS: usize = 14;

/// The keys that the last row names after Enter while the search has the focus.
const SEARCH_KEYS: &[(&str, &str)] = &[
    ("Tab", "list"),
    ("Alt+r", "resume"),
    ("Alt+e", "export"),
    ("Alt+p", "project"),
    ("Alt+a", "agent"),
    ("Alt+t", "time"),
    ("F1", "keys"),
    ("Esc", "leave"),
];

/// The keys that the last row names after Enter while the list has the focus.
const LIST_KEYS: &[(&str, &str)] = &[
    ("r", "resume"),
    ("y", "copy id"),
    ("e", "export"),
    ("c", "cost"),
    ("p", "project"),
    ("a", "agent"),
    ("t", "time"),
    ("?", "keys"),
    ("/", "search"),
    ("q", "leave"),
];

/// The parts of the screen.
struct PickerAreas {
    search: Rect,
    list: Rect,
    preview: Option<Rect>,
    keys: Rect,
}

/// Divides the screen.
fn divide_screen(area: Rect) -> PickerAreas {
    let rows = [Constraint::Length(2), Constraint::Min(1), Constraint::Length(1)];
    let [search, middle, keys] = Layout::vertical(rows).areas(area);
    if area.width >= MIN_COLUMNS_FOR_RIGHT_PREVIEW {
        let halves = [Constraint::Percentage(52), Constraint::Percentage(48)];
        let [list, preview] = Layout::horizontal(halves).areas(middle);
        return PickerAreas { search, list, preview: Some(preview), keys };
    }
    if area.height >= MIN_ROWS_FOR_LOWER_PREVIEW {
        let halves = [Constraint::Percentage(50), Constraint::Percentage(50)];
        let [list, preview] = Layout::vertical(halves).areas(middle);
        return PickerAreas { search, list, preview: Some(preview), keys };
    }
    PickerAreas { search, list: middle, preview: None, keys }
}

impl Picker {
    /// Draws the picker. `message` takes the place of the keys.
    pub(in crate::screen) fn render(&mut self, frame: &mut Frame<'_>, message: Option<&str>) {
        let areas = divide_screen(frame.area());
        self.list_area = areas.list;
        self.scroll_to_selected();
        self.render_search(frame, areas.search);
        self.render_list(frame, areas.list);
        self.preview_area = Rect::ZERO;
        if let Some(area) = areas.preview {
            self.render_preview(frame, area);
        }
        self.render_keys(frame, areas.keys, message);
    }

    fn render_search(&self, frame: &mut Frame<'_>, area: Rect) {
        let cursor = (self.focus == Focus::Search).then(|| self.theme.selected());
        let left = self.search.to_line(Span::styled("> ", self.theme.style(PROMPT)), cursor);
        let count = match (self.rows.len(), self.is_complete) {
            (count, false) => format!("{count} …"),
            (count, true) if self.has_more => format!("{count}+ sessions"),
            (1, true) => "1 session".to_owned(),
            (count, true) => format!("{count} sessions"),
        };
        let right = format!("{} · {count}", self.filters.describe());
        let right = Line::styled(right, self.theme.style(DIM));
        let line = justify(left, right, usize::from(area.width));
        let border = Block::new().borders(Borders::BOTTOM).border_style(self.theme.style(DIM));
        frame.render_widget(Paragraph::new(line).block(border), area);
    }

    fn render_list(&self, frame: &mut Frame<'_>, area: Rect) {
        if self.rows.is_empty() {
            let text = if self.is_complete { self.describe_nothing() } else { String::new() };
            frame.render_widget(Paragraph::new(text).style(self.theme.style(DIM)), area);
            return;
        }
        let format = RowFormat {
            width: usize::from(area.width).saturating_sub(1),
            columns: RowColumns::fit(&self.rows),
            theme: self.theme,
            words: &highlight_query(self.search.text()),
            now: Timestamp::now(),
        };
        let shown = self.rows.iter().enumerate().skip(self.top).take(usize::from(area.height));
        let lines: Vec<Line<'_>> =
            shown.map(|(at, row)| format.format(row, at == self.selected)).collect();
        frame.render_widget(Paragraph::new(lines), area);
    }

    /// Describes an empty list and the next step.
    fn describe_nothing(&self) -> String {
        let is_filtered = self.filters != Filters::default();
        match (self.search.text().trim().is_empty(), is_filtered) {
            (true, false) => "no session has a conversation".to_owned(),
            (true, true) => {
                "no session matches the filters; Alt+p, Alt+a and Alt+t change them".to_owned()
            }
            (false, true) => "nothing found; Alt+p, Alt+a and Alt+t change the filters".to_owned(),
            (false, false) => "nothing found; try fewer or other words".to_owned(),
        }
    }

    fn render_preview(&mut self, frame: &mut Frame<'_>, area: Rect) {
        let is_right = area.y == self.list_area.y;
        let borders = if is_right { Borders::LEFT } else { Borders::TOP };
        let border = Block::new().borders(borders).border_style(self.theme.style(DIM));
        let inner = border.inner(area);
        frame.render_widget(border, area);
        if self.previewed().is_none() {
            return;
        }
        let heading_rows = [Constraint::Length(3), Constraint::Min(1)];
        let [heading, body] = Layout::vertical(heading_rows).areas(inner);
        self.preview_area = body;

        let width = usize::from(heading.width);
        let event_index = self.selected_event();
        let theme = self.theme;
        let zone = self.zone.clone();
        let text = self.search.text().to_owned();
        let Some(preview) = &mut self.preview else { return };
        preview.format_lines(body.width, &text, event_index, theme, &zone);
        let heading_lines = heading_lines(&preview.conversation, &zone, width, theme);
        frame.render_widget(Paragraph::new(heading_lines), heading);
        let lines = preview.lines.as_deref().unwrap_or_default();
        let shown = lines.iter().skip(preview.top).take(usize::from(body.height));
        let lines: Vec<Line<'_>> = shown.map(|line| line.line.clone()).collect();
        frame.render_widget(Paragraph::new(lines), body);
    }

    fn render_keys(&self, frame: &mut Frame<'_>, area: Rect, message: Option<&str>) {
        let width = usize::from(area.width);
        let line = match message.or(self.trouble.as_deref()) {
            Some(message) => Line::styled(truncate_end(message, width), self.theme.style(STRONG)),
            None => {
                let further = if self.focus == Focus::List { LIST_KEYS } else { SEARCH_KEYS };
                let enter = self.enter.name();
                let mut keys = vec![("Enter", enter)];
                keys.extend(further.iter().filter(|(_, meaning)| *meaning != enter));
                key_line(&keys, "", width, self.theme)
            }
        };
        frame.render_widget(Paragraph::new(line), area);
    }
}

impl Preview {
    /// Formats the lines, if the width, the text or the match changed.
    fn format_lines(
        &mut self,
        width: u16,
        text: &str,
        event_index: Option<u32>,
        theme: Theme,
        zone: &schemas::Zone,
    ) {
        let is_same = self.width == width && self.text == text && self.event_index == event_index;
        if is_same && self.lines.is_some() {
            return;
        }
        self.width = width;
        text.clone_into(&mut self.text);
        self.event_index = event_index;
        let words = highlight_query(text);
        let format = ConversationFormat { width: usize::from(width), theme, words: &words, zone };
        let found = event_index.map(|event| self.conversation.block_of_event(event));
        let detail = |block| if Some(block) == found { Detail::Outputs } else { Detail::Folded };
        let lines = format.format(&self.conversation, detail);

        if !is_same {
            let is_found = |block: usize| Some(block) == found;
            let of_match = lines.iter().position(|line| is_found(line.block) && line.is_match);
            let of_block = || lines.iter().position(|line| is_found(line.block));
            // One line before it shows what it belongs to.
            self.top = of_match.or_else(of_block).unwrap_or(0).saturating_sub(1);
        }
        self.lines = Some(lines);
    }
}

/// The cells of the columns whose width follows from the rows.
struct RowColumns {
    agent: usize,
    project: usize,
    cost: usize,
}

impl RowColumns {
    /// Makes room for the widest value of each column.
    fn fit(rows: &[PickerRow]) -> Self {
        let mut columns = Self { agent: 0, project: 0, cost: 0 };
        for row in rows {
            columns.agent = columns.agent.max(row.session.provider.as_str().len());
            columns.project = columns.project.max(text_width(&row.project));
            columns.cost =
                columns.cost.max(row.cost().map_or(0, |cost| format_dollars(cost).len()));
        }
        columns.agent = columns.agent.min(MAX_AGENT_CELLS);
        columns.project = columns.project.min(MAX_PROJECT_CELLS);
        columns
    }
}

/// Formats the rows of the list.
struct RowFormat<'a> {
    width: usize,
    columns: RowColumns,
    theme: Theme,
    words: &'a Highlighter,
    now: Timestamp,
}

impl RowFormat<'_> {
    fn format(&self, row: &PickerRow, is_selected: bool) -> Line<'static> {
        let age = row.ended.map(|ended| describe_age(ended, self.now)).unwrap_or_default();
        let mut spans = vec![Span::styled(format!("{age:>AGE_CELLS$}  "), self.theme.style(DIM))];
        let agent = fit_text(row.session.provider.as_str(), self.columns.agent);
        spans.push(Span::styled(format!("{agent}  "), self.theme.style(AGENT)));
        if self.width >= MIN_CELLS_FOR_PROJECT && self.columns.project > 0 {
            let project = fit_text(&row.project, self.columns.project);
            spans.push(Span::styled(format!("{project}  "), self.theme.style(PROJECT)));
        }
        let right = self.numbers(row);
        let used: usize = spans.iter().map(Span::width).sum();
        let width = self.width.saturating_sub(used + right.width() + 1);
        let title = if row.title.is_empty() { &row.id } else { &row.title };
        let title = truncate_end(title, width);
        let pieces = [(Style::new(), title.as_str())];
        spans.extend(mark_words(self.words, &pieces, self.theme.found()));
        let mut line = justify(Line::from(spans), right, self.width);
        if is_selected {
            let missing = self.width.saturating_sub(line.width());
            line.push_span(" ".repeat(missing));
            // Colours of the parts would be hard to read on the reversed background.
            for span in &mut line.spans {
                span.style = self.theme.selected();
            }
        }
        line
    }

    /// Returns the turns, the failures and the cost.
    fn numbers(&self, row: &PickerRow) -> Line<'static> {
        let mut spans = Vec::new();
        if self.width >= MIN_CELLS_FOR_COUNTS {
            let counts = row.session.counts.unwrap_or_default();
            let failed = match counts.tool_errors {
                0 => String::new(),
                failed => format!(" {failed}✗"),
            };
            let turns = format!("{}t", counts.turns);
            let width = COUNT_CELLS.saturating_sub(failed.chars().count());
            spans.push(Span::styled(format!("{turns:>width$}"), self.theme.style(DIM)));
            spans.push(Span::styled(failed, self.theme.style(FAILED)));
        }
        let cost = row.cost().map(format_dollars).unwrap_or_default();
        let gap = if spans.is_empty() { "" } else { "  " };
        let cells = self.columns.cost;
        spans.push(Span::raw(format!("{gap}{cost:>cells$}")));
        Line::from(spans)
    }
}

/// Returns how long ago a time was: `now`, `5m`, `3h`, `2d`, `6w`, `4mo` or `2y`.
fn describe_age(time: Timestamp, now: Timestamp) -> String {
    let minutes = now.0.saturating_sub(time.0) / MICROS_PER_MINUTE;
    let hours = minutes / 60;
    let days = hours / 24;
    match (minutes, hours, days) {
        (..1, _, _) => "now".to_owned(),
        (1..60, _, _) => format!("{minutes}m"),
        (_, ..24, _) => format!("{hours}h"),
        (_, _, ..14) => format!("{days}d"),
        (_, _, 14..60) => format!("{}w", days / 7),
        (_, _, 60..730) => format!("{}mo", days / 30),
        (_, _, 730..) => format!("{}y", days / 365),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_are_short() {
        let day = 24 * 60;
        let ages = [0, 5, 90, 2 * day, 20 * day, 100 * day, 800 * day]
            .map(|minutes| describe_age(Timestamp(0), Timestamp(minutes * MICROS_PER_MINUTE)));
        assert_eq!(ages, ["now", "5m", "1h", "2d", "2w", "3mo", "2y"]);
    }
}
