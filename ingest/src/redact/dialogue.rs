//! Masks passwords that a script types when a program asks for them, as `expect` and `pexpect` do:
//!
//! ```text
//! expect "*assword:"
//! send "Quokka91!\r"
//! ```

use super::entropy::is_placeholder;
use super::pattern::PrefixPattern;
use super::scan::{Rank, SecretScan};

/// Maximum number of bytes from the question to its answer.
const MAX_QUESTION_BYTES: usize = 240;

/// The text that the script types, without the line break at its end.
static ANSWER: PrefixPattern = PrefixPattern::new(
    r#"send(?:line)?(?: -- |[ (])\\{0,3}["']([^\s"'\\$\[\]]{4,128})(?:\\{1,4}[rn])*\\{0,3}["']"#,
);

/// Masks the text that the `send` at `at` types if the question before it asks for a password.
pub(super) fn mask_typed_password(scan: &mut SecretScan<'_>, at: usize) {
    let before = scan.text_before(at, MAX_QUESTION_BYTES);
    let Some(question) = before.rfind("expect").and_then(|expect_at| before.get(expect_at..))
    else {
        return;
    };
    let question = question.to_ascii_lowercase();
    // If another `send` is between, that one answered the question.
    let is_for_password = !question.contains("send")
        && ["assword", "assphrase", "asscode"].iter().any(|word| question.contains(word));
    if !is_for_password {
        return;
    }

    let Some(found) = ANSWER.at_start(scan.text_from(at, 160)) else { return };
    let Some(answer) = found.get(1) else { return };
    if !is_placeholder(answer.as_str()) {
        scan.add_secret(at + answer.start(), at + answer.end(), "password", Rank::Around);
    }
}
