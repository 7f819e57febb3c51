//! The keys and the mouse of the picker.
//!
//! While the search has the focus, letters are typed into it, and actions need Alt. While the list has
//! the focus, the letter alone is enough. Tab switches.

use ratatui::crossterm::event::{
    KeyCode, KeyEvent, KeyModifiers, MouseButton, MouseEvent, MouseEventKind,
};
use ratatui::layout::Position;

use super::state::{Focus, Picker};
use crate::screen::actions::SessionAction;

/// The rows by which the wheel scrolls.
const WHEEL_ROWS: isize = 3;

/// What a key asks of the screen around the picker.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::screen) enum PickerEffect {
    None,
    Close,
    /// What Enter does with the selected session.
    Choose,
    Open,
    ShowHelp,
    Run(SessionAction),
}

impl Picker {
    /// Handles a key.
    #[expect(clippy::wildcard_enum_match_arm, reason = "all other keys edit the text")]
    pub(in crate::screen) fn handle_key(&mut self, key: KeyEvent) -> PickerEffect {
        let has_control = key.modifiers.contains(KeyModifiers::CONTROL);
        let has_alt = key.modifiers.contains(KeyModifiers::ALT);
        let page = isize::try_from(self.page_rows()).unwrap_or(1);
        match key.code {
            KeyCode::Char('c') if has_control => return PickerEffect::Close,
            KeyCode::Char('d') if has_control && self.search.text().is_empty() => {
                return PickerEffect::Close;
            }
            KeyCode::Enter => return PickerEffect::Choose,
            KeyCode::Esc => return self.go_back(),
            KeyCode::Tab | KeyCode::BackTab => self.switch_focus(),
            KeyCode::F(1) => return PickerEffect::ShowHelp,
            KeyCode::Down => self.select_by(1),
            KeyCode::Up => self.select_by(-1),
            KeyCode::Char('n' | 'j') if has_control => self.select_by(1),
            KeyCode::Char('p') if has_control => self.select_by(-1),
            KeyCode::PageDown => self.select_by(page),
            KeyCode::PageUp => self.select_by(-page),
            KeyCode::Char(c) if has_alt => return self.run_letter(c),
            KeyCode::Char(c) if self.focus == Focus::List && !has_control => {
                return self.run_list_letter(c);
            }
            _ => {
                // What edits the text also gives it the focus.
                if self.search.edit(key) {
                    self.focus = Focus::Search;
                }
            }
        }
        PickerEffect::None
    }

    /// Leaves the list for the search, empties the search, and then closes the picker.
    fn go_back(&mut self) -> PickerEffect {
        if self.focus == Focus::List {
            self.focus = Focus::Search;
        } else if self.search.text().is_empty() {
            return PickerEffect::Close;
        } else {
            self.search.clear();
        }
        PickerEffect::None
    }

    fn switch_focus(&mut self) {
        self.focus = match self.focus {
            Focus::Search => Focus::List,
            Focus::List => Focus::Search,
        };
    }

    /// Runs the action or the filter of a letter.
    fn run_letter(&mut self, letter: char) -> PickerEffect {
        match letter {
            'p' => self.filters.switch_project(self.here.as_deref()),
            'a' => self.filters.switch_provider(&self.providers),
            't' => self.filters.switch_period(),
            '?' => return PickerEffect::ShowHelp,
            _ => {
                let action = SessionAction::of_key(letter);
                return action.map_or(PickerEffect::None, PickerEffect::Run);
            }
        }
        PickerEffect::None
    }

    /// Handles a letter while the list has the focus.
    fn run_list_letter(&mut self, letter: char) -> PickerEffect {
        match letter {
            'q' => return PickerEffect::Close,
            '/' => self.focus = Focus::Search,
            'j' => self.select_by(1),
            'k' => self.select_by(-1),
            'g' => self.select(0),
            'G' => self.select(self.rows.len()),
            _ => return self.run_letter(letter),
        }
        PickerEffect::None
    }

    /// Inserts a pasted text into the search.
    pub(in crate::screen) fn handle_paste(&mut self, text: &str) {
        self.focus = Focus::Search;
        self.search.insert(text);
    }

    /// Handles the mouse: a click selects a session, another one on it is Enter, a click on the preview
    /// opens it, and the wheel scrolls the list or the preview.
    pub(in crate::screen) fn handle_mouse(&mut self, mouse: MouseEvent) -> PickerEffect {
        let at = Position::new(mouse.column, mouse.row);
        match mouse.kind {
            MouseEventKind::ScrollDown => self.scroll_at(at, WHEEL_ROWS),
            MouseEventKind::ScrollUp => self.scroll_at(at, -WHEEL_ROWS),
            MouseEventKind::Down(MouseButton::Left) if self.list_area.contains(at) => {
                let row = self.top + usize::from(at.y - self.list_area.y);
                if row == self.selected && row < self.rows.len() {
                    return PickerEffect::Choose;
                }
                self.select(row);
            }
            MouseEventKind::Down(MouseButton::Left) if self.preview_area.contains(at) => {
                return PickerEffect::Open;
            }
            MouseEventKind::Down(_)
            | MouseEventKind::Up(_)
            | MouseEventKind::Drag(_)
            | MouseEventKind::Moved
            | MouseEventKind::ScrollLeft
            | MouseEventKind::ScrollRight => {}
        }
        PickerEffect::None
    }

    fn scroll_at(&mut self, at: Position, rows: isize) {
        if !self.preview_area.contains(at) {
            self.select_by(rows);
            return;
        }
        let height = usize::from(self.preview_area.height);
        if let Some(preview) = &mut self.preview {
            let lines = preview.lines.as_ref().map_or(0, Vec::len);
            let last = lines.saturating_sub(height);
            preview.top = preview.top.saturating_add_signed(rows).min(last);
        }
    }
}
