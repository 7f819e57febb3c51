//! Reads the answer of a tool as the forks of Gemini CLI write it (Qwen Code and iFlow;
//! docs/formats.md#qwen-code, docs/formats.md#iflow): a `functionResponse` with `output` or
//! `error`. The exit code of a shell is inside its output.

use crate::text::json::{Fields, Value};
use crate::text::render;

/// Appends the text of a `functionResponse`. Returns true if it has an error.
pub(crate) fn read(response: Value<'_>, text: &mut String) -> bool {
    let body = response.field("response");
    let field = |key: &str| body.and_then(|body| body.given(key));
    let error = field("error");
    if let Some(said) = field("output").or(error).or(body) {
        render::content(said, text);
    }
    // Pictures and documents are in `parts`, outside the text.
    for part in response.items("parts") {
        if !text.is_empty() {
            text.push('\n');
        }
        render::block(part, text);
    }
    error.is_some()
}

/// Parses the exit code of a command, which is on a line of its own near the end of the output.
pub(crate) fn exit_code(text: &str) -> Option<i32> {
    text.lines()
        .rev()
        .take(6)
        .find_map(|line| line.strip_prefix("Exit Code: ")?.trim().parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::json::{Found, Parser};

    fn check(json: &str, want: (&str, bool)) {
        let mut text = String::new();
        let mut failed = false;
        Parser::default().each(json.as_bytes(), &mut |found| {
            let Found::Object(response, _) = found else { panic!("{json}") };
            failed = read(response, &mut text);
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
        assert_eq!(exit_code("Output: x\nExit Code: 101\nSignal: (none)"), Some(101));
        assert_eq!(exit_code("Exit Code: (none)"), None);
    }
}
