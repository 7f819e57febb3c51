//! The colours of the screens. They are those of the terminal's own palette, so that they fit a light
//! and a dark one. Plain blue is hard to read on many dark palettes, and yellow text on all light ones.

use ratatui::style::{Color, Modifier, Style};

/// The styles of the screens.
#[derive(Debug, Clone, Copy)]
pub(super) struct Theme {
    has_color: bool,
}

impl Theme {
    pub(super) const fn new(has_color: bool) -> Self {
        Self { has_color }
    }

    fn color(self, color: Color) -> Style {
        if self.has_color { Style::new().fg(color) } else { Style::new() }
    }

    /// A heading, or a name that matters.
    pub(super) fn strong(self) -> Style {
        Style::new().add_modifier(Modifier::BOLD)
    }

    /// Less important text.
    pub(super) fn dim(self) -> Style {
        Style::new().add_modifier(Modifier::DIM)
    }

    /// What the user typed.
    pub(super) fn prompt(self) -> Style {
        self.color(Color::Cyan).add_modifier(Modifier::BOLD)
    }

    /// Code in the text of an answer.
    pub(super) fn code(self) -> Style {
        self.color(Color::Cyan)
    }

    /// A match of the search.
    pub(super) fn found(self) -> Style {
        let style = Style::new().add_modifier(Modifier::BOLD);
        if self.has_color {
            style.fg(Color::Black).bg(Color::Yellow)
        } else {
            style.add_modifier(Modifier::UNDERLINED)
        }
    }

    /// A failure.
    pub(super) fn failed(self) -> Style {
        self.color(Color::Red)
    }

    /// A success.
    pub(super) fn succeeded(self) -> Style {
        self.color(Color::Green)
    }

    /// The name of an agent.
    pub(super) fn agent(self) -> Style {
        self.color(Color::Magenta)
    }

    /// The name of a project.
    pub(super) fn project(self) -> Style {
        self.color(Color::LightBlue)
    }

    /// The selected row.
    pub(super) fn selected(self) -> Style {
        Style::new().add_modifier(Modifier::REVERSED)
    }

    /// A key in the line of keys.
    pub(super) fn key(self) -> Style {
        self.strong()
    }
}
