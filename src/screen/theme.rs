//! The styles of the output, as the screens draw them.

use anstyle::Effects;
use ratatui::style::{Color, Modifier, Style};

use crate::output::painted::FOUND;

/// Draws styles, with or without colours.
#[derive(Debug, Clone, Copy)]
pub(super) struct Theme {
    has_color: bool,
}

impl Theme {
    pub(super) const fn new(has_color: bool) -> Self {
        Self { has_color }
    }

    /// Returns a style of the output as it is drawn.
    pub(super) fn style(self, style: anstyle::Style) -> Style {
        let mut drawn = Style::new();
        if self.has_color {
            drawn.fg = style.get_fg_color().and_then(draw_color);
            drawn.bg = style.get_bg_color().and_then(draw_color);
        }
        let effects = style.get_effects();
        for (effect, modifier) in
            [(Effects::BOLD, Modifier::BOLD), (Effects::DIMMED, Modifier::DIM)]
        {
            if effects.contains(effect) {
                drawn = drawn.add_modifier(modifier);
            }
        }
        drawn
    }

    /// A match of the search.
    pub(super) fn found(self) -> Style {
        let style = self.style(FOUND);
        if self.has_color { style } else { style.add_modifier(Modifier::UNDERLINED) }
    }

    /// The selected row.
    pub(super) fn selected(self) -> Style {
        Style::new().add_modifier(Modifier::REVERSED)
    }
}

/// Returns a colour of the terminal's palette, the only ones that the output has.
fn draw_color(color: anstyle::Color) -> Option<Color> {
    match color {
        anstyle::Color::Ansi(color) => {
            Some(Color::Indexed(anstyle::Ansi256Color::from_ansi(color).index()))
        }
        anstyle::Color::Ansi256(_) | anstyle::Color::Rgb(_) => None,
    }
}
