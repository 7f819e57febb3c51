//! Converts text from logs for documents: to Markdown without HTML, and to HTML without active
//! content.

use std::fmt::Write as _;
use std::ops::Range;

use pulldown_cmark::{Alignment, CowStr, Event, HeadingLevel, Options, Parser, Tag, TagEnd, html};

use crate::base::sanitize::one_line;

/// Maximum number of passes that remove HTML from a text. The remaining text may parse differently,
/// so one pass may not be enough.
const MAX_PASSES: usize = 8;

/// Returns the parser options: answers are Markdown with GitHub's extensions.
fn parser_options() -> Options {
    Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH
}

/// Escapes the characters that have a meaning in HTML.
pub(super) fn escape_html(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            c => out.push(c),
        }
    }
    out
}

/// Renders Markdown as HTML. Tags in it are shown as text, images are shown by their description,
/// and links that could run something lead nowhere.
pub(super) fn render_html(markdown: &str) -> String {
    let mut out = String::with_capacity(markdown.len() * 3 / 2);
    html::push_html(
        &mut out,
        Parser::new_ext(markdown, parser_options()).filter_map(make_harmless),
    );
    out
}

/// Returns a part of Markdown in a form that is harmless as HTML; `None` removes it.
#[expect(clippy::wildcard_enum_match_arm, reason = "all other parts of Markdown stay as they are")]
fn make_harmless(event: Event<'_>) -> Option<Event<'_>> {
    Some(match event {
        Event::Html(text) | Event::InlineHtml(text) => Event::Text(text),
        Event::Start(Tag::Image { .. }) | Event::End(TagEnd::Image) => return None,
        Event::Start(Tag::HtmlBlock) => Event::Start(Tag::Paragraph),
        Event::End(TagEnd::HtmlBlock) => Event::End(TagEnd::Paragraph),
        // Headings of an answer are below the headings of the page.
        Event::Start(Tag::Heading { .. }) => Event::Start(Tag::Heading {
            level: HeadingLevel::H4,
            id: None,
            classes: Vec::new(),
            attrs: Vec::new(),
        }),
        Event::End(TagEnd::Heading(_)) => Event::End(TagEnd::Heading(HeadingLevel::H4)),
        // Alignment would need a style attribute, which the page's policy forbids.
        Event::Start(Tag::Table(columns)) => {
            Event::Start(Tag::Table(vec![Alignment::None; columns.len()]))
        }
        Event::Start(Tag::Link { link_type, dest_url, title, id }) => {
            let dest_url = if is_harmless(&dest_url) { dest_url } else { CowStr::Borrowed("#") };
            Event::Start(Tag::Link { link_type, dest_url, title, id })
        }
        other => other,
    })
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
    for line in text.lines() {
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
    fn html_has_only_what_markdown_makes() {
        for text in HOSTILE {
            let html = render_html(text).to_lowercase();
            for bad in ["<script", "<img", "<div", "<!--", "<b>", "href=\"javascript", "style="] {
                assert!(!html.contains(bad), "{text:?} gives {html}");
            }
            assert!(!html.contains("href=\"data:"), "{html}");
        }
        assert_eq!(render_html("# *a*"), "<h4><em>a</em></h4>\n");
        assert!(render_html("[x](https://h.example/)").contains("href=\"https://h.example/\""));
    }

    #[test]
    fn quoted_markdown_is_inert_and_stays_a_quotation() {
        for text in HOSTILE {
            let quoted = quote_markdown(text);
            assert!(find_active_parts(&quoted).is_empty(), "{text:?} gives {quoted}");
            assert!(quoted.lines().all(|line| line.starts_with('>')), "{quoted}");
            let document = format!("{quoted}\nafter\n");
            let html = render_html(&document);
            assert!(html.contains("<p>after</p>"), "{text:?} swallows what follows: {html}");
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

    #[test]
    fn escaped_text_is_text() {
        assert_eq!(
            escape_html("<a href='x'>&\"</a>"),
            "&lt;a href=&#39;x&#39;&gt;&amp;&quot;&lt;/a&gt;"
        );
    }
}
