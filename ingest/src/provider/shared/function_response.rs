//! Reads the answer of a tool as the forks of Gemini CLI write it: a `functionResponse` with
//! `output` or `error`. The exit code of a shell is inside its output. The forks are Qwen Code
//! (docs/formats.md#qwen-code) and iFlow (docs/formats.md#iflow).

use crate::text::json::{JsonFields, Value};
use crate::text::render;

/// Number of lines at the end of an output that are searched for an exit code.
const SEARCHED_LINES: usize = 6;

/// Subtype of the notification for answers of tools in the role of the user.
pub(crate) const SUBTYPE: &str = "function_response";

/// Returns whether the parts of a message in the user's role are answers of tools, with their
/// pictures, and no text. The calls have the answers as well.
pub(crate) fn is_answer_only(parts: Value<'_>) -> bool {
    let Some(parts) = parts.as_array() else { return false };
    parts.iter().any(|part| part.object("functionResponse").is_some())
        && parts.iter().all(|part| part.text("text").is_none_or(|text| text.trim().is_empty()))
}

/// Appends the text of a `functionResponse`. Returns true if it has an error.
pub(crate) fn append_response(response: Value<'_>, text: &mut String) -> bool {
    let body = response.field("response");
    let output = body.and_then(|body| body.non_null("output"));
    let error = body.and_then(|body| body.non_null("error"));
    if let Some(answer) = output.or(error).or(body) {
        render::append_content(answer, text);
    }

    // Pictures and documents are in `parts`, outside the text.
    for part in response.items("parts") {
        if !text.is_empty() {
            text.push('\n');
        }
        render::append_block(part, text);
    }
    error.is_some()
}

/// Parses the exit code of a command, which is on a line of its own near the end of the output.
pub(crate) fn parse_exit_code(text: &str) -> Option<i32> {
    text.lines()
        .rev()
        .take(SEARCHED_LINES)
        .find_map(|line| line.strip_prefix("Exit Code: ")?.trim().parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::json::{LineItem, Parser};

    fn check(json: &str, want: (&str, bool)) {
        let mut text = String::new();
        let mut failed = false;
        Parser::default().for_each_item(json.as_bytes(), &mut |found| {
            let LineItem::Object(response, _) = found else { panic!("{json}") };
            failed = append_response(response, &mut text);
        });
        assert_eq!((text.as_str(), failed), want, "{json}");
    }

    #[test]
    fn outputs_errors_and_pictures() {
        check(r#"{"name":"x","response":{"output":"a\nb"}}"#, ("a\nb", false));
        check(r#"{"name":"x","response":{"error":"no such file"}}"#, ("no such file", true));
        check(r#"{"name":"x","response":{"output":"a","error":null}}"#, ("a", false));
        check(r#"{"name":"x","response":{"rows":2}}"#, ("rows: 2", false));
        check(
            r#"{"response":{"output":"a"},"parts":[{"inlineData":{"mimeType":"image/png","data":"AAAA"}}]}"#,
            ("a\n[image/png 3 bytes]", false),
        );
        check(r#"{"name":"x"}"#, ("", false));
    }

    #[test]
    fn exit_codes_stand_near_the_end() {
        assert_eq!(parse_exit_code("Output: x\nExit Code: 101\nSignal: (none)"), Some(101));
        assert_eq!(parse_exit_code("Exit Code: (none)"), None);
    }
}
