//! Draws the reading view.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};
use ratatui::widgets::Paragraph;

use super::areas::{ReaderAreas, divide_screen};
use super::state::Reader;
use crate::output::painted::STRONG;
use crate::screen::facts::heading_lines;
use crate::screen::key_line::key_line;
use base::cells::truncate_end;

/// The keys that the last row names, the most important first.
const KEYS: &[(&str, &str)] = &[
    ("q", "back"),
    ("o", "unfold"),
    ("[ ]", "prompts"),
    ("/", "find"),
    ("r", "resume"),
    ("y", "copy id"),
    ("e", "export"),
    ("c", "cost"),
    ("?", "keys"),
];

impl Reader {
    /// Draws the view. `message` takes the place of the keys.
    pub(in crate::screen) fn render(&self, frame: &mut Frame<'_>, message: Option<&str>) {
        let ReaderAreas { header, body, footer } = divide_screen(frame.area());
        let width = usize::from(header.width);
        let heading = heading_lines(&self.conversation, &self.zone, width, self.theme);
        frame.render_widget(Paragraph::new(heading), header);

        let shown = self.lines.iter().skip(self.top).take(usize::from(body.height));
        let lines: Vec<Line<'_>> = shown.map(|line| line.line.clone()).collect();
        frame.render_widget(Paragraph::new(lines), body);
        frame.render_widget(Paragraph::new(self.footer(footer, message)), footer);
    }

    fn footer(&self, area: Rect, message: Option<&str>) -> Line<'static> {
        if let Some(search) = &self.search {
            return search
                .to_line(Span::styled("/", self.theme.style(STRONG)), Some(self.theme.selected()));
        }
        if let Some(message) = message {
            return Line::styled(
                truncate_end(message, usize::from(area.width)),
                self.theme.style(STRONG),
            );
        }
        let place = match self.lines.len().saturating_sub(self.height()) {
            0 => "all".to_owned(),
            last => format!("{} %", self.top * 100 / last),
        };
        key_line(KEYS, &place, usize::from(area.width), self.theme)
    }
}
