//! Masks passwords that a script types when a program asks for them, as `expect` and `pexpect` do:
//!
//! ```text
//! expect "*assword:"
//! send "Quokka91!\r"
//! ```

use super::entropy::is_placeholder;
use super::pattern::Pattern;
use super::scan::{Rank, Scan};

/// Most bytes between the question and its answer.
const MAX_QUESTION: usize = 240;

/// The text that the script types, without the line break at its end.
static ANSWER: Pattern = Pattern::new(
    r#"send(?:line)?(?: -- |[ (])\\{0,3}["']([^\s"'\\$\[\]]{4,128})(?:\\{1,4}[rn])*\\{0,3}["']"#,
);

/// Masks the text typed at `at` if the question before it asks for a password.
pub(super) fn find(scan: &mut Scan<'_>, at: usize) {
    let before = scan.lead(at, MAX_QUESTION);
    let Some(question) = before.rfind("expect").and_then(|from| before.get(from..)) else { return };
    let question = question.to_ascii_lowercase();
    // One answer belongs to one question.
    let is_asked = ["assword", "assphrase", "asscode"].iter().any(|word| question.contains(word))
        && !question.contains("send");
    if !is_asked {
        return;
    }
    let Some(found) = ANSWER.at_start(scan.window(at, 160)) else { return };
    let Some(answer) = found.get(1).filter(|answer| !is_placeholder(answer.as_str())) else {
        return;
    };
    scan.add(at + answer.start(), at + answer.end(), "password", Rank::Around);
}
