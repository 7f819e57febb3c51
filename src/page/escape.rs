//! Escapes text from logs for HTML.

/// Escapes the characters that have a meaning in HTML.
pub(crate) fn escape_html(text: &str) -> String {
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

/// Escapes the value of an attribute in single quotes. The double quotes of JSON stay as they are.
pub(crate) fn escape_attribute(value: &str) -> String {
    value.replace('&', "&amp;").replace('\'', "&#39;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escaped_text_is_text() {
        assert_eq!(
            escape_html("<a href='x'>&\"</a>"),
            "&lt;a href=&#39;x&#39;&gt;&amp;&quot;&lt;/a&gt;"
        );
        assert_eq!(escape_attribute("{\"a\":\"'<>&\"}"), "{\"a\":\"&#39;&lt;&gt;&amp;\"}");
    }
}
