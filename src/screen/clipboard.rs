//! Copies a text into the clipboard through the terminal (OSC 52), which works over ssh as well.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

/// Returns the sequence that asks the terminal to put `text` into the clipboard. The text is encoded,
/// so it cannot end the sequence.
pub(super) fn copy_sequence(text: &str) -> String {
    format!("\u{1b}]52;c;{}\u{7}", STANDARD.encode(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_cannot_end_the_sequence() {
        assert_eq!(copy_sequence("a-1"), "\u{1b}]52;c;YS0x\u{7}");
        let sequence = copy_sequence("\u{7}\u{1b}[2J");
        assert_eq!(sequence.matches(['\u{7}', '\u{1b}']).count(), 2);
    }
}
