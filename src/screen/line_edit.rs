//! A line that the user types, with the usual keys of a shell.
//!
//! `tui-input` has other keys (Ctrl-U empties the whole line) and enables the default features of
//! ratatui; without its keys, what it replaces is shorter than the calls of it.

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui::style::Style;
use ratatui::text::{Line, Span};

use base::sanitize::{clean_text, one_line};

/// The longest line, in bytes. A longer paste is cut.
const MAX_LINE_BYTES: usize = 1_000;

/// A line with a cursor.
#[derive(Debug, Clone, Default)]
pub(super) struct LineEdit {
    text: String,
    /// The byte before which the next character is inserted.
    cursor: usize,
}

impl LineEdit {
    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// Empties the line.
    pub(super) fn clear(&mut self) {
        self.text.clear();
        self.cursor = 0;
    }

    /// Inserts a text at the cursor, on one line.
    pub(super) fn insert(&mut self, text: &str) {
        for c in one_line(&clean_text(text)).chars() {
            if self.text.len() + c.len_utf8() > MAX_LINE_BYTES {
                return;
            }
            self.text.insert(self.cursor, c);
            self.cursor += c.len_utf8();
        }
    }

    /// Edits the line with a key. Returns true if the key means something for a line.
    #[expect(clippy::wildcard_enum_match_arm, reason = "other keys mean nothing here")]
    pub(super) fn edit(&mut self, key: KeyEvent) -> bool {
        let has_control = key.modifiers.contains(KeyModifiers::CONTROL);
        let has_alt = key.modifiers.contains(KeyModifiers::ALT);
        match key.code {
            KeyCode::Char('a') if has_control => self.cursor = 0,
            KeyCode::Char('e') if has_control => self.cursor = self.text.len(),
            KeyCode::Char('b') if has_control => self.cursor = self.before_cursor(),
            KeyCode::Char('f') if has_control => self.cursor = self.after_cursor(),
            KeyCode::Char('u') if has_control => self.remove(0, self.cursor),
            KeyCode::Char('k') if has_control => self.remove(self.cursor, self.text.len()),
            KeyCode::Char('w') if has_control => self.remove(self.word_start(), self.cursor),
            KeyCode::Char('h') if has_control => self.remove(self.before_cursor(), self.cursor),
            KeyCode::Backspace if has_alt => self.remove(self.word_start(), self.cursor),
            KeyCode::Backspace => self.remove(self.before_cursor(), self.cursor),
            KeyCode::Delete => self.remove(self.cursor, self.after_cursor()),
            KeyCode::Left => self.cursor = self.before_cursor(),
            KeyCode::Right => self.cursor = self.after_cursor(),
            KeyCode::Home => self.cursor = 0,
            KeyCode::End => self.cursor = self.text.len(),
            KeyCode::Char(c) if !has_control && !has_alt => self.insert(c.encode_utf8(&mut [0; 4])),
            _ => return false,
        }
        true
    }

    fn remove(&mut self, start: usize, end: usize) {
        self.text.replace_range(start..end, "");
        self.cursor = start;
    }

    fn before_cursor(&self) -> usize {
        self.text[..self.cursor].char_indices().next_back().map_or(0, |(at, _)| at)
    }

    fn after_cursor(&self) -> usize {
        let next = self.text[self.cursor..].chars().next();
        self.cursor + next.map_or(0, char::len_utf8)
    }

    fn word_start(&self) -> usize {
        let before = self.text[..self.cursor].trim_end();
        before
            .rfind(char::is_whitespace)
            .map_or(0, |at| at + before[at..].chars().next().map_or(0, char::len_utf8))
    }

    /// Returns the line after `prompt`, with a block for the cursor if it `has_cursor`.
    pub(super) fn to_line(&self, prompt: Span<'static>, cursor: Option<Style>) -> Line<'static> {
        let Some(cursor_style) = cursor else {
            return Line::from(vec![prompt, Span::raw(self.text.clone())]);
        };
        let end = self.after_cursor();
        let under_cursor = if end == self.cursor { " " } else { &self.text[self.cursor..end] };
        Line::from(vec![
            prompt,
            Span::raw(self.text[..self.cursor].to_owned()),
            Span::styled(under_cursor.to_owned(), cursor_style),
            Span::raw(self.text[end..].to_owned()),
        ])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn press(line: &mut LineEdit, code: KeyCode, modifiers: KeyModifiers) {
        assert!(line.edit(KeyEvent::new(code, modifiers)));
    }

    #[test]
    fn keys_edit_the_line() {
        let mut line = LineEdit::default();
        line.insert("retry\n\u{1b}[31mbüdget");
        assert_eq!(line.text(), "retry büdget");
        press(&mut line, KeyCode::Left, KeyModifiers::NONE);
        press(&mut line, KeyCode::Backspace, KeyModifiers::NONE);
        assert_eq!(line.text(), "retry büdgt");
        press(&mut line, KeyCode::Char('w'), KeyModifiers::CONTROL);
        assert_eq!(line.text(), "retry t");
        press(&mut line, KeyCode::Char('u'), KeyModifiers::CONTROL);
        assert_eq!(line.text(), "t");
        press(&mut line, KeyCode::Char('x'), KeyModifiers::SHIFT);
        assert_eq!(line.text(), "xt");
        assert!(!line.edit(KeyEvent::new(KeyCode::Char('r'), KeyModifiers::ALT)));
        assert!(!line.edit(KeyEvent::new(KeyCode::Enter, KeyModifiers::NONE)));
    }
}
