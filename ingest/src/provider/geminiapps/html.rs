//! Converts the HTML of an answer to text.

/// Elements that begin a line.
const LINE_TAGS: &[&str] = &[
    "blockquote",
    "br",
    "div",
    "h1",
    "h2",
    "h3",
    "h4",
    "h5",
    "h6",
    "hr",
    "li",
    "ol",
    "p",
    "pre",
    "table",
    "tr",
    "ul",
];

/// Entities with a name.
const ENTITIES: &[(&str, char)] =
    &[("amp", '&'), ("apos", '\''), ("gt", '>'), ("lt", '<'), ("nbsp", ' '), ("quot", '"')];

/// Maximum length in bytes of an entity.
const MAX_ENTITY_BYTES: usize = 10;

/// Appends the text of `html`. Elements of a list begin with a hyphen.
pub(super) fn append_html(html: &str, out: &mut String) {
    // A tag is looked for only where one ends, so each part of the text is read once.
    let last_end = html.rfind('>').unwrap_or(0);
    let mut rest = html;
    while let Some(at) = rest.find(['<', '&']) {
        out.push_str(&rest[..at]);
        rest = &rest[at..];
        let length = if rest.starts_with('&') {
            append_entity(rest, out)
        } else if html.len() - rest.len() < last_end {
            append_tag(rest, out)
        } else {
            out.push('<');
            1
        };
        rest = &rest[length..];
    }
    out.push_str(rest);
    out.truncate(out.trim_end().len());
}

/// Appends what the tag at the beginning of `html` stands for. Returns its length in bytes.
fn append_tag(html: &str, out: &mut String) -> usize {
    let Some(end) = html.find('>') else { return html.len() };
    let name = html[1..end].trim_start_matches('/').trim_end_matches('/');
    let name = name.split_whitespace().next().unwrap_or("").to_ascii_lowercase();
    if LINE_TAGS.contains(&name.as_str()) && !out.is_empty() && !out.ends_with(['\n', '-']) {
        out.push('\n');
    }
    if name == "li" && html.starts_with("<l") {
        out.push_str("- ");
    }
    if matches!(name.as_str(), "td" | "th") && html.starts_with("</") {
        out.push('\t');
    }
    end + 1
}

/// Appends the character of the entity at the beginning of `html`. Returns its length in bytes.
fn append_entity(html: &str, out: &mut String) -> usize {
    let end = html.bytes().take(MAX_ENTITY_BYTES).position(|byte| byte == b';');
    let found = end.and_then(|end| {
        let name = &html[1..end];
        let number =
            name.strip_prefix('#').and_then(|number| match number.strip_prefix(['x', 'X']) {
                Some(hex) => u32::from_str_radix(hex, 16).ok(),
                None => number.parse().ok(),
            });
        let named = ENTITIES.iter().find(|(known, _)| *known == name).map(|(_, c)| *c);
        Some((end + 1, number.and_then(char::from_u32).or(named)?))
    });
    let (length, character) = found.unwrap_or((1, '&'));
    out.push(character);
    length
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn answers_become_text() {
        let mut text = String::new();
        append_html(
            "<p>Naxos &amp; <b>Crete</b></p><ul><li>one</li><li>two &#39;2&#x27;</li></ul>a<br />b &x; 1 < 2",
            &mut text,
        );
        assert_eq!(text, "Naxos & Crete\n- one\n- two '2'\na\nb &x; 1 < 2");
    }

    #[test]
    fn signs_that_open_no_tag_are_text_however_many_there_are() {
        let signs = "< ".repeat(1_000_000);
        let mut text = String::new();
        append_html(&format!("<b>{signs}"), &mut text);
        assert_eq!(text, signs.trim_end());
    }

    proptest! {
        #[test]
        fn any_text_is_read(html in "[<>&;#x/a-c1é \n\"]{0,40}") {
            append_html(&html, &mut String::new());
        }
    }
}
