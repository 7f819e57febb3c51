//! Keeps answers within their size.

use serde::Serialize;

/// Bytes of JSON that may still be used.
pub(super) struct Budget {
    left: usize,
    used: bool,
}

impl Budget {
    pub(super) fn new(bytes: usize) -> Self {
        Self { left: bytes, used: false }
    }

    /// Takes the room `item` needs; false when there is not enough. The first item always fits,
    /// so that no page is empty.
    pub(super) fn take(&mut self, item: &impl Serialize) -> bool {
        // One byte for the comma.
        let bytes = serde_json::to_vec(item).map_or(0, |json| json.len() + 1);
        if bytes > self.left && self.used {
            return false;
        }
        self.used = true;
        self.left = self.left.saturating_sub(bytes);
        true
    }

    /// Bytes left.
    pub(super) fn left(&self) -> usize {
        self.left
    }
}

/// Bytes that a character takes inside a JSON string.
fn json_bytes(c: char) -> usize {
    match c {
        '"' | '\\' | '\n' | '\r' | '\t' | '\u{8}' | '\u{c}' => 2,
        c if c < ' ' => 6,
        c => c.len_utf8(),
    }
}

/// The beginning of `text` that takes at most `bytes` inside a JSON string, and how many
/// characters it leaves out.
pub(super) fn head(text: &str, bytes: usize) -> (&str, usize) {
    let mut room = bytes;
    for (at, c) in text.char_indices() {
        match room.checked_sub(json_bytes(c)) {
            Some(rest) => room = rest,
            None => return (&text[..at], text[at..].chars().count()),
        }
    }
    (text, 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_item_fits_and_the_rest_by_size() {
        let mut budget = Budget::new(10);
        assert!(budget.take(&"a long first item"));
        assert!(!budget.take(&"x"));
    }

    #[test]
    fn heads_are_cut_by_their_json_size() {
        assert_eq!(head("abc", 3), ("abc", 0));
        assert_eq!(head("a\nbc", 3), ("a\n", 2));
        assert_eq!(head("日本語", 6), ("日本", 1));
    }
}
