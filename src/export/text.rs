//! Converts text from logs for Markdown documents, without HTML and without active content.

use std::fmt::Write as _;
use std::ops::Range;

use pulldown_cmark::{Event, Options, Parser, Tag};

use base::sanitize::one_line;

/// Maximum number of passes that remove HTML from a text. The remaining text may parse differently,
/// so one pass may not be enough.
const MAX_PASSES: usize = 8;

/// Returns the parser options: answers are Markdown with GitHub's extensions.
fn parser_options() -> Options {
    Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH
}

/// Converts Markdown to a quotation that no text inside can end. Its HTML becomes text, its images
/// become links, and its links cannot run anything.
pub(super) fn quote_markdown(markdown: &str) -> String {
    let mut text = markdown.to_owned();
    for _ in 0..MAX_PASSES {
        let found = find_active_parts(&text);
        if found.is_empty() {
            return format_quotation(&text);
        }
        text = defuse_parts(&text, &found);
    }
    format_quotation(&text.replace('<', "&lt;").replace('[', "&#91;"))
}

/// Formats a text as a quotation of Markdown.
fn format_quotation(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + text.len() / 16);
    // Some answers begin with empty lines, which would be an empty quotation.
    for line in text.trim_end().lines().skip_while(|line| line.trim().is_empty()) {
        let _ = writeln!(out, "{}", format!("> {line}").trim_end());
    }
    out
}

/// Finds HTML, images, and links that could run something; the ranges are in order.
fn find_active_parts(text: &str) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    for (event, range) in Parser::new_ext(text, parser_options()).into_offset_iter() {
        if is_active(&event) {
            found.push(range);
        }
    }
    found.sort_by_key(|range| (range.start, range.end));
    found
}

/// Returns true if a part of Markdown is HTML, an image, or a link that could run something.
#[expect(clippy::wildcard_enum_match_arm, reason = "no other part of Markdown does anything")]
fn is_active(event: &Event<'_>) -> bool {
    match event {
        Event::Html(_) | Event::InlineHtml(_) | Event::Start(Tag::Image { .. }) => true,
        Event::Start(Tag::Link { dest_url, .. }) => !is_harmless(dest_url),
        _ => false,
    }
}

/// Removes what makes these parts of a text active; `parts` are in order.
fn defuse_parts(text: &str, parts: &[Range<usize>]) -> String {
    let mut out = String::with_capacity(text.len() + 8 * parts.len());
    let mut parts = parts.iter().peekable();
    let mut end = 0;
    for (at, c) in text.char_indices() {
        let mut is_start = false;
        while let Some(part) = parts.next_if(|part| part.start <= at) {
            is_start |= part.start == at;
            end = end.max(part.end);
        }
        match c {
            '<' if at < end => out.push_str("&lt;"),
            '!' | '[' if is_start => {
                out.push('\\');
                out.push(c);
            }
            c => out.push(c),
        }
    }
    out
}

/// Returns true if an address leads to the web or to a file, and runs nothing.
fn is_harmless(url: &str) -> bool {
    match url.split_once(':') {
        None => true,
        Some((scheme, _)) => {
            scheme.contains(['/', '?', '#'])
                || ["https", "http", "mailto"]
                    .iter()
                    .any(|known| scheme.eq_ignore_ascii_case(known))
        }
    }
}

/// Puts a text in a fence that no text inside can close.
pub(super) fn fence_text(text: &str) -> String {
    fence_language(text, "text")
}

/// Puts a text in a fence of this language that no text inside can close.
pub(super) fn fence_language(text: &str, language: &str) -> String {
    let fence = "`".repeat(longest_run(text).max(2) + 1);
    format!("{fence}{language}\n{}\n{fence}\n", text.trim_end_matches('\n'))
}

/// Formats a line as inline code.
pub(super) fn inline_code(line: &str) -> String {
    let line = one_line(line);
    let ticks = "`".repeat(longest_run(&line) + 1);
    let space = if line.starts_with('`') || line.ends_with('`') { " " } else { "" };
    if line.is_empty() { String::new() } else { format!("{ticks}{space}{line}{space}{ticks}") }
}

/// Escapes a line so that no character has a meaning in Markdown.
pub(super) fn escape_markdown(line: &str) -> String {
    let mut out = String::with_capacity(line.len());
    for c in line.chars() {
        match c {
            '\n' | '\t' => out.push(' '),
            '<' => out.push_str("&lt;"),
            '&' => out.push_str("&amp;"),
            c if c.is_ascii_punctuation() && !matches!(c, ',' | ';' | '.' | ':' | '-' | '/') => {
                out.push('\\');
                out.push(c);
            }
            c => out.push(c),
        }
    }
    out
}

/// Returns the length of the longest run of backticks.
fn longest_run(text: &str) -> usize {
    text.split(|c| c != '`').map(str::len).max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn empty_lines_around_an_answer_are_left_out() {
        assert_eq!(quote_markdown("\n\n    code\n\nlast\n\n"), ">     code\n>\n> last\n");
    }

    /// Texts that try to become more than text.
    const HOSTILE: &[&str] = &[
        "<script>alert(1)</script>",
        "a <img src=x onerror=alert(1)> b",
        "<div>\n\n```\n</div>\n<script>alert(1)</script>\n",
        "<pre>\n```\n</pre>\n\n```\n<script>alert(1)</script>\n```\n",
        "![x](https://h.example/track.png)",
        "[x](javascript:alert(1)) [y](data:text/html,x) <javascript:alert(1)>",
        "[a]: javascript:alert(1)\n\n[a]\n",
        "`\n` <script> `",
        "```\nnever closed <b>",
        "<!-- never closed",
        "# one\n\n| a | b |\n|--:|---|\n| <b> | c |\n",
    ];

    #[test]
    fn quoted_markdown_is_inert_and_stays_a_quotation() {
        for text in HOSTILE {
            let quoted = quote_markdown(text);
            assert!(find_active_parts(&quoted).is_empty(), "{text:?} gives {quoted}");
            assert!(quoted.lines().all(|line| line.starts_with('>')), "{quoted}");
            let document = format!("{quoted}\nafter\n");
            let last = Parser::new_ext(&document, parser_options()).collect::<Vec<_>>();
            let [.., Event::Start(Tag::Paragraph), Event::Text(after), Event::End(_)] =
                last.as_slice()
            else {
                panic!("{text:?} swallows what follows: {last:?}");
            };
            assert_eq!(&**after, "after", "{text:?}");
        }
        assert_eq!(quote_markdown("use `Vec<T>`\n\n- <b>"), "> use `Vec<T>`\n>\n> - &lt;b>\n");
    }

    #[test]
    fn fences_and_code_hold_any_backticks() {
        assert_eq!(fence_text("a"), "```text\na\n```\n");
        assert_eq!(fence_text("```\nx\n`````"), "``````text\n```\nx\n`````\n``````\n");
        assert_eq!(inline_code("a`b"), "``a`b``");
        assert_eq!(inline_code("`a"), "`` `a ``");
        assert_eq!(escape_markdown("a *b* <c>"), "a \\*b\\* &lt;c\\>");
    }
}
