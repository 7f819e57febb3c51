//! Repairs the bytes of a damaged line, so that the JSON in it can be parsed.

use std::borrow::Cow;
use std::ops::Range;

use schemas::problem::ProblemKind;

/// The text of a line after its repair.
#[derive(Default)]
pub(super) struct RepairedLine<'b> {
    pub(super) json: Cow<'b, str>,
    /// Pairs of a position in `json` and the matching position in the body, ascending. Both advance
    /// together from one pair to the next.
    seams: Vec<(usize, usize)>,
}

impl RepairedLine<'_> {
    /// Returns the range of the line for a range of `json`. The body begins at `start` of the line.
    pub(super) fn line_range(&self, start: usize, range: Range<usize>) -> Range<usize> {
        start + self.body_position(range.start)..start + self.body_position(range.end)
    }

    /// Returns the position in the body for a position in `json`.
    fn body_position(&self, at: usize) -> usize {
        let next = self.seams.partition_point(|(here, _)| *here <= at);
        let before = next.checked_sub(1).and_then(|last| self.seams.get(last));
        before.map_or(at, |(here, there)| there + (at - here))
    }
}

/// Returns whether a body consists of printable ASCII characters without escapes, so that nothing
/// in it can need a repair.
pub(super) fn is_plain(body: &[u8]) -> bool {
    body.iter().all(|b| matches!(b, b' '..=b'~') && *b != b'\\')
}

/// Makes the body of a line valid UTF-8 without raw control characters or lone surrogate escapes,
/// and returns the problems repaired. Each repair depends only on its own place in the line.
pub(super) fn repair_body(body: &[u8]) -> (RepairedLine<'_>, Vec<(ProblemKind, String)>) {
    use std::fmt::Write as _;
    if is_plain(body)
        && let Ok(text) = str::from_utf8(body)
    {
        return (RepairedLine { json: Cow::Borrowed(text), seams: Vec::new() }, Vec::new());
    }

    let mut json = String::with_capacity(body.len());
    let mut seams = Vec::new();
    let mut has_invalid = false;
    let mut controls = 0;
    let mut is_in_string = false;
    let mut is_escaped = false;
    // Position in the body after the bytes that were repaired.
    let mut at = 0;
    for chunk in body.utf8_chunks() {
        for c in chunk.valid().chars() {
            at += c.len_utf8();
            let is_control = c < ' ' && (is_in_string || !matches!(c, '\t' | '\n' | '\r'));
            controls += usize::from(is_control);
            if is_control && is_in_string {
                let _ = write!(json, "\\u{:04x}", u32::from(c));
                seams.push((json.len(), at));
            } else {
                // Between values only blanks are valid JSON.
                json.push(if is_control { ' ' } else { c });
            }
            is_in_string ^= c == '"' && !is_escaped;
            is_escaped = is_in_string && c == '\\' && !is_escaped;
        }
        if !chunk.invalid().is_empty() {
            has_invalid = true;
            at += chunk.invalid().len();
            json.push(char::REPLACEMENT_CHARACTER);
            seams.push((json.len(), at));
        }
    }

    let mut repairs = Vec::new();
    if has_invalid {
        repairs.push((ProblemKind::InvalidUtf8, "invalid UTF-8 was replaced".to_owned()));
    }
    if controls > 0 {
        let message = format!("{controls} raw control characters were escaped");
        repairs.push((ProblemKind::ControlCharacters, message));
    }
    if let Some(repaired) = replace_lone_surrogates(&json) {
        repairs.push((ProblemKind::LoneSurrogate, "half a surrogate pair was replaced".to_owned()));
        json = repaired;
    }
    (RepairedLine { json: Cow::Owned(json), seams }, repairs)
}

/// Replaces `\uD8xx` without its other half by `\ufffd`, which is as long. Returns `None` if there is
/// nothing to replace.
pub(crate) fn replace_lone_surrogates(text: &str) -> Option<String> {
    let bytes = text.as_bytes();
    let mut out: Option<Vec<u8>> = None;
    let mut at = 0;
    while let Some(found) = memchr::memchr(b'\\', &bytes[at..]) {
        let escape = at + found;
        at = match escaped_unit(text, escape) {
            Some(0xd800..=0xdbff)
                if matches!(escaped_unit(text, escape + 6), Some(0xdc00..=0xdfff)) =>
            {
                escape + 12
            }
            Some(0xd800..=0xdfff) => {
                let out = out.get_or_insert_with(|| bytes.to_vec());
                out[escape..escape + 6].copy_from_slice(b"\\ufffd");
                escape + 6
            }
            _ => (escape + 2).min(bytes.len()),
        };
    }
    out.and_then(|bytes| String::from_utf8(bytes).ok())
}

/// Returns the UTF-16 code unit of the escape `\uXXXX` at `at`.
fn escaped_unit(text: &str, at: usize) -> Option<u32> {
    let hex = text.get(at..at + 6)?.strip_prefix("\\u")?;
    u32::from_str_radix(hex, 16).ok()
}
