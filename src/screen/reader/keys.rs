//! The keys of the reading view.

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::state::Reader;
use crate::screen::actions::SessionAction;
use crate::screen::line_edit::LineEdit;

/// What a key asks of the screen around the reading view.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::screen) enum ReaderEffect {
    None,
    Close,
    ShowHelp,
    Run(SessionAction),
    /// A remark for the user.
    Say(String),
}

impl Reader {
    /// Handles a key.
    #[expect(clippy::wildcard_enum_match_arm, reason = "other keys mean nothing here")]
    pub(in crate::screen) fn handle_key(&mut self, key: KeyEvent) -> ReaderEffect {
        if self.search.is_some() {
            return self.handle_search_key(key);
        }
        let page = isize::try_from(self.height()).unwrap_or(1).saturating_sub(2).max(1);
        let has_control = key.modifiers.contains(KeyModifiers::CONTROL);
        match key.code {
            KeyCode::Char('c') if has_control => return ReaderEffect::Close,
            KeyCode::Char('d') if has_control => self.scroll_by(page / 2),
            KeyCode::Char('u') if has_control => self.scroll_by(-page / 2),
            KeyCode::Char('q') | KeyCode::Esc => return ReaderEffect::Close,
            KeyCode::Char('?') | KeyCode::F(1) => return ReaderEffect::ShowHelp,
            KeyCode::Char('j') | KeyCode::Down => self.scroll_by(1),
            KeyCode::Char('k') | KeyCode::Up => self.scroll_by(-1),
            KeyCode::Char(' ' | 'f') | KeyCode::PageDown => self.scroll_by(page),
            KeyCode::Char('b') | KeyCode::PageUp => self.scroll_by(-page),
            KeyCode::Char('g') | KeyCode::Home => self.scroll_to(0),
            KeyCode::Char('G') | KeyCode::End => self.scroll_to(self.lines.len()),
            KeyCode::Char(']') | KeyCode::Tab => self.show_prompt(true),
            KeyCode::Char('[') | KeyCode::BackTab => self.show_prompt(false),
            KeyCode::Char('o') | KeyCode::Enter => self.switch_detail(),
            KeyCode::Char('/') => self.search = Some(LineEdit::default()),
            KeyCode::Char('n') => return self.show_match_or_say(true),
            KeyCode::Char('N') => return self.show_match_or_say(false),
            KeyCode::Char(c) => {
                return SessionAction::of_key(c).map_or(ReaderEffect::None, ReaderEffect::Run);
            }
            _ => {}
        }
        ReaderEffect::None
    }

    fn show_match_or_say(&mut self, is_next: bool) -> ReaderEffect {
        if self.show_match(is_next) {
            return ReaderEffect::None;
        }
        let place = if is_next { "below" } else { "above" };
        ReaderEffect::Say(format!("no match {place}; / looks for a text"))
    }

    /// Handles a key while the text to look for is typed.
    #[expect(clippy::wildcard_enum_match_arm, reason = "all other keys edit the text")]
    fn handle_search_key(&mut self, key: KeyEvent) -> ReaderEffect {
        let Some(mut line) = self.search.take() else { return ReaderEffect::None };
        let has_control = key.modifiers.contains(KeyModifiers::CONTROL);
        match key.code {
            KeyCode::Esc => return ReaderEffect::None,
            KeyCode::Char('c') if has_control => return ReaderEffect::None,
            KeyCode::Enter => {
                if line.text().trim().is_empty() || self.run_search(line.text()) {
                    return ReaderEffect::None;
                }
                // It may be in what is folded.
                let before = self.show_outputs();
                if self.run_search(line.text()) {
                    return ReaderEffect::None;
                }
                (self.detail, self.block_details) = before;
                self.format_again();
                return ReaderEffect::Say(format!("'{}' is not in this session", line.text()));
            }
            _ => {
                line.edit(key);
            }
        }
        self.search = Some(line);
        ReaderEffect::None
    }

    /// Adds a pasted text to the one to look for.
    pub(in crate::screen) fn handle_paste(&mut self, text: &str) {
        if let Some(line) = &mut self.search {
            line.insert(text);
        }
    }
}
