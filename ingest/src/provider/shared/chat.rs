//! Helpers that the decoders of several chat-shaped logs share: content parts with media behind
//! URLs, numeric times, and exit codes in text (docs/formats.md#what-all-formats-share).

use schemas::Usage;
use simd_json::prelude::*;

use crate::stream::parse_micros;
use crate::text::json::{JsonFields, Value, string_value};
use crate::text::render;

/// Fields of a content part that hold the address of its media, or an object with that address.
const MEDIA_KEYS: &[&str] = &["image_url", "audio_url", "video_url", "url"];

/// Texts that precede the exit code of a command.
const EXIT_CODE_PREFIXES: &[&str] = &["exit code: ", "exit code ", "exited with code "];

/// Appends the content of a message, which is a string or a list of parts. Texts are joined by
/// newlines, and media are named by type and size. Null appends nothing.
pub(crate) fn append_content(content: Value<'_>, out: &mut String) {
    if let Some(parts) = content.as_array() {
        for part in &parts {
            render::begin_new_line(out);
            self::append_part(part, out);
        }
    } else if !content.is_null() {
        render::append_value(content, out);
    }
}

/// Appends the content in a field of a message, if it has the field.
pub(crate) fn append_field(message: Value<'_>, key: &str, out: &mut String) {
    if let Some(content) = message.field(key) {
        append_content(content, out);
    }
}

/// Appends one content part.
pub(crate) fn append_part(part: Value<'_>, out: &mut String) {
    match media_url(part) {
        Some(url) if part.text("text").is_none() => {
            render::note_block(part);
            append_media(url, out);
        }
        _ => render::append_block(part, out),
    }
}

/// Returns the address of the media in a content part.
fn media_url(part: Value<'_>) -> Option<&str> {
    MEDIA_KEYS.iter().find_map(|key| {
        let media = part.field(key)?;
        string_value(media).or_else(|| media.text("url"))
    })
}

/// Appends `[image/png 48213 bytes]` for media encoded in the address itself, otherwise
/// `[address]`.
pub(crate) fn append_media(url: &str, out: &mut String) {
    let data = url.strip_prefix("data:").and_then(|data| data.split_once(";base64,"));
    match data {
        Some((kind, base64)) => render::append_binary_summary(Some(kind), Some(base64), out),
        None => out.push_str(&format!("[{url}]")),
    }
}

/// Parses a time into microseconds. The time is RFC 3339 text, or a number of seconds, milliseconds
/// or microseconds since 1970; the size of the number decides the unit.
pub(crate) fn parse_time(time: Value<'_>) -> Option<i64> {
    if let Some(text) = string_value(time) {
        return parse_micros(Some(text));
    }
    let number = time.cast_f64().filter(|number| (1.0..1e17).contains(number))?;
    let scale = match number {
        seconds if seconds < 1e11 => 1e6,
        milliseconds if milliseconds < 1e14 => 1e3,
        _ => 1.0,
    };
    #[expect(clippy::cast_possible_truncation, reason = "below 1e17")]
    let micros = (number * scale).round() as i64;
    Some(micros)
}

/// Parses RFC 3339 text, or a time without a zone, which is read as UTC, also as SQLite writes it
/// (`2026-10-25 07:40:02`).
pub(crate) fn parse_unzoned(text: &str) -> Option<i64> {
    parse_micros(Some(text))
        .or_else(|| parse_micros(Some(&format!("{}Z", text.replacen(' ', "T", 1)))))
}

/// Returns the time in a field with milliseconds, converted to microseconds.
pub(crate) fn read_millis(object: Option<Value<'_>>, key: &str) -> Option<i64> {
    let millis = object?.int(key).filter(|millis| *millis > 0)?;
    Some(millis.saturating_mul(1000))
}

/// Returns the first whole number under one of several keys, in the order of `keys`.
pub(crate) fn first_int(object: Value<'_>, keys: &[&str]) -> Option<i64> {
    keys.iter().find_map(|key| object.int(key))
}

/// Reads token counts with the names of Anthropic, whose input is without the cache.
pub(crate) fn read_anthropic_usage(usage: Value<'_>) -> Usage {
    Usage {
        input: usage.int("input_tokens"),
        output: usage.int("output_tokens"),
        cache_read: usage.int("cache_read_input_tokens"),
        cache_write: usage.int("cache_creation_input_tokens"),
        ..Usage::default()
    }
}

/// Returns the counts of an input that includes what was read from and written to the cache.
pub(crate) fn without_cache(input: Option<i64>, [read, written]: [Option<i64>; 2]) -> Usage {
    let cached = read.unwrap_or(0).saturating_add(written.unwrap_or(0));
    Usage {
        input: input.map(|input| input.saturating_sub(cached).max(0)),
        cache_read: read,
        cache_write: written,
        ..Usage::default()
    }
}

/// Parses the exit code that a line reports.
pub(crate) fn parse_exit_code(line: &str) -> Option<i32> {
    let (_, rest) = EXIT_CODE_PREFIXES.iter().find_map(|words| line.split_once(words))?;
    let end = rest.find(|c: char| !c.is_ascii_digit() && c != '-').unwrap_or(rest.len());
    rest.get(..end)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::json::{LineItem, Parser};

    fn with(json: &str, look: &mut dyn FnMut(Value<'_>)) {
        Parser::default().for_each_item(format!("{{\"x\":{json}}}").as_bytes(), &mut |found| {
            let LineItem::Object(object, _) = found else { panic!("{json}") };
            look(object.field("x").expect("there"));
        });
    }

    #[test]
    fn media_are_named_and_text_is_joined() {
        let check = |json: &str, want: &str| {
            let mut out = String::new();
            with(json, &mut |value| append_content(value, &mut out));
            assert_eq!(out, want, "{json}");
        };
        check("null", "");
        check(r#""plain""#, "plain");
        check(r#"[{"type":"text","text":"a"},"b"]"#, "a\nb");
        let inside =
            r#"[{"type":"image_url","image_url":{"url":"data:image/png;base64,AAAABB=="}}]"#;
        check(inside, "[image/png 4 bytes]");
        check(
            r#"[{"type":"image","url":"https://example.org/a.png"}]"#,
            "[https://example.org/a.png]",
        );
    }

    #[test]
    fn times_are_told_by_their_size() {
        let check = |json: &str, want: Option<i64>| {
            with(json, &mut |value| assert_eq!(parse_time(value), want, "{json}"));
        };
        check("1775953944.25", Some(1_775_953_944_250_000));
        check("1785612803281", Some(1_785_612_803_281_000));
        check(r#""2026-10-12T08:00:00Z""#, Some(1_791_792_000_000_000));
        check("0", None);
        check("null", None);
    }

    #[test]
    fn exit_codes_are_read_from_words() {
        assert_eq!(parse_exit_code("Command failed with exit code: 101."), Some(101));
        assert_eq!(parse_exit_code("The command exited with code 2"), Some(2));
        assert_eq!(parse_exit_code("no code here"), None);
    }
}
