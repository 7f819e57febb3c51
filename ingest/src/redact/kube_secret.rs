//! Masks the values of secrets in manifests of Kubernetes, in YAML and JSON:
//!
//! ```text
//! kind: Secret
//! data:
//!   password: ZmowcmQtbjBydGg=
//! ```

use super::command::is_public_name;
use super::encoded::decode_base64;
use super::env;
use super::names::Strength;
use super::pattern::{LINE_LEAD, LazyRegex};
use super::scan::{SecretScan, is_identifier_byte};

/// Number of bytes of a manifest that are read before its kind, and after it.
const MAX_SIDE_BYTES: usize = 8 << 10;

/// Maximum length in bytes of the line with the kind of a manifest.
const MAX_KIND_LINE_BYTES: usize = 120;

/// Minimum length in bytes of a value in base64 whose text is not printable.
const MIN_BINARY_BYTES: usize = 16;

/// The values of a manifest in JSON, which may be escaped. The second group holds all pairs.
static JSON_VALUES: LazyRegex =
    LazyRegex::anywhere(r#"\\{0,3}"(data|stringData)\\{0,3}"\s*:\s*\{([^{}]{1,8000})\}"#);

/// A name and its value in JSON.
static JSON_PAIR: LazyRegex =
    LazyRegex::anywhere(r#"\\{0,3}"([^"\\\s]{1,128})\\{0,3}"\s*:\s*\\{0,3}"([^"\\]{4,})"#);

/// The kind of a manifest in YAML.
static YAML_KIND: LazyRegex =
    LazyRegex::at_start(r#"kind: ["']?Secret["']?(?:[ \t]*(?:#|\r?\n|$)|\\|")"#);

/// Masks the values of the manifest whose kind is at `at`.
pub(super) fn mask_manifest(scan: &mut SecretScan<'_>, at: usize) {
    if scan.has_text_at(at, "kind: ") {
        if YAML_KIND.captures(scan.text_from(at, 24)).is_some() {
            mask_yaml(scan, at);
        }
        return;
    }
    let end = scan.skip_while(at, 24, |byte| is_identifier_byte(byte) || b"\\\": ".contains(&byte));
    if scan.slice(at, end).trim_end_matches(['\\', '"', ' ']).ends_with("\"Secret") {
        mask_json(scan, at);
    }
}

/// Masks the values of a manifest in JSON. Another `"kind"` belongs to another object.
fn mask_json(scan: &mut SecretScan<'_>, at: usize) {
    let before = scan.text_before(at, MAX_SIDE_BYTES);
    let after = scan.text_from(at + 4, MAX_SIDE_BYTES);
    let lead = before.rfind("\"kind").unwrap_or(0);
    let tail = after.find("\"kind").unwrap_or(after.len());
    let start = at - before.len() + lead;
    let manifest = scan.slice(start, at + 4 + tail);

    for found in JSON_VALUES.captures_iter(manifest) {
        let (Some(field), Some(pairs)) = (found.get(1), found.get(2)) else { continue };
        for found in JSON_PAIR.captures_iter(pairs.as_str()) {
            let (Some(name), Some(value)) = (found.get(1), found.get(2)) else { continue };
            if is_secret(field.as_str() == "data", name.as_str(), value.as_str()) {
                let value_start = start + pairs.start() + value.start();
                scan.add_secret(value_start, value_start + value.len());
            }
        }
    }
}

/// A line of a manifest in YAML.
struct YamlLine<'a> {
    /// Where the text of the line begins, after its indentation.
    start: usize,
    /// Number of bytes before the text, of which a `- ` is a part.
    indent: usize,
    text: &'a str,
}

impl<'a> YamlLine<'a> {
    /// Splits a line that begins at `line_start`.
    fn new(line: &'a str, line_start: usize) -> Self {
        let lead = LINE_LEAD.captures(line);
        let lead = lead.and_then(|found| found.get(0)).map_or(0, |lead| lead.len());
        let line = line.get(lead..).unwrap_or_default();
        let blanks = line.bytes().take_while(|byte| *byte == b' ').count();
        let is_item = line.get(blanks..).is_some_and(|text| text.starts_with("- "));
        let indent = if is_item { blanks + 2 } else { blanks };
        let text = line.get(indent..).unwrap_or_default();
        Self { start: line_start + lead + indent, indent, text }
    }
}

/// Masks the values of a manifest in YAML. `at` is where its kind begins.
fn mask_yaml(scan: &mut SecretScan<'_>, at: usize) {
    let before = scan.text_before(at, MAX_SIDE_BYTES);
    let after = scan.text_from(at, MAX_SIDE_BYTES);
    let kind_line = scan.text_from(at, MAX_KIND_LINE_BYTES);
    // Strings of JSON write a line break as `\n`.
    let is_escaped = match (kind_line.find('\n'), kind_line.find("\\n")) {
        (Some(real), Some(escaped)) => escaped < real,
        (None, Some(_)) => true,
        (Some(_) | None, None) => before.trim_end_matches([' ', '-']).ends_with("\\n"),
    };
    let line_break = if is_escaped { "\\n" } else { "\n" };
    let escaped_lead = before.rsplit(line_break).next().unwrap_or_default();
    let lead = escaped_lead.rsplit('\n').next().unwrap_or_default();
    let mut kind = YamlLine::new(lead, at - lead.len());
    let quotes = ['"', '\'', '\\'];
    let begins_text = is_field_name(kind.text.trim_end_matches(quotes));
    if begins_text {
        // The manifest is the text of a field: `content: kind: Secret`. Its next line is indented
        // like its first.
        let next = after.split(line_break).nth(1).unwrap_or_default();
        kind.indent = YamlLine::new(next, at).indent;
    } else if !kind.text.trim_matches(quotes).is_empty() {
        return;
    }

    // Another document, or another object of a list, has a kind of its own.
    let is_other = |line: &YamlLine<'_>| {
        line.text.starts_with("---")
            || line.indent < kind.indent && !line.text.is_empty()
            || line.indent == kind.indent && line.text.starts_with("kind:")
    };
    let mut lines = Vec::new();
    let mut end = at - lead.len();
    // The lines of a string do not continue in the lines around it.
    let is_first_line = begins_text || lead.len() < escaped_lead.len();
    let before = if is_first_line { "" } else { before };
    for text in before.rsplit(line_break).skip(1) {
        end -= line_break.len();
        let line = YamlLine::new(text, end - text.len());
        end -= text.len();
        if is_other(&line) {
            break;
        }
        lines.push(line);
    }
    lines.reverse();
    let mut start = at;
    for (number, text) in after.split(line_break).enumerate() {
        let line = YamlLine::new(text, start);
        start += text.len() + line_break.len();
        if number == 0 {
            continue;
        }
        if is_other(&line) {
            break;
        }
        lines.push(line);
    }
    mask_yaml_values(scan, &lines, kind.indent);
}

/// Returns whether a text is the name of a field, a colon and a blank.
fn is_field_name(text: &str) -> bool {
    let name = text.strip_suffix(": ").unwrap_or_default();
    !name.is_empty() && name.bytes().all(is_identifier_byte)
}

/// Masks the values below `data:` and `stringData:` in the lines of a manifest.
fn mask_yaml_values(scan: &mut SecretScan<'_>, lines: &[YamlLine<'_>], indent: usize) {
    // Whether the values are in base64; `None` outside both fields.
    let mut is_encoded = None;
    // The indentation of the name of a text over several lines.
    let mut block_indent = None;
    for line in lines {
        if line.text.is_empty() {
            continue;
        }
        if line.indent <= indent {
            block_indent = None;
            is_encoded = match line.text.trim_end() {
                "data:" => Some(true),
                "stringData:" => Some(false),
                _ => None,
            };
            continue;
        }
        let Some(is_encoded) = is_encoded else { continue };
        if block_indent.is_some_and(|name| line.indent > name) {
            let text = line.text.trim_end();
            if text.len() >= 4 {
                scan.add_secret(line.start, line.start + text.len());
            }
            continue;
        }

        let Some((name, value)) = line.text.split_once(':') else { continue };
        let quoted = value.trim();
        block_indent = quoted.starts_with(['|', '>']).then_some(line.indent);
        let plain = quoted.trim_matches(['"', '\'']);
        if block_indent.is_none() && is_secret(is_encoded, name.trim_matches(['"', '\'']), plain) {
            let offset = line.text.len() - value.len() + value.find(plain).unwrap_or_default();
            let start = line.start + offset;
            scan.add_secret(start, start + plain.len());
        }
    }
}

/// Returns whether a value of a manifest is a secret.
fn is_secret(is_encoded: bool, name: &str, value: &str) -> bool {
    if value.len() < 4 || is_public_name(name) {
        return false;
    }
    if !is_encoded {
        return env::is_secret(value, Strength::Password);
    }
    let is_base64 = value
        .bytes()
        .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'='));
    match decode_base64(value) {
        Some(text) => is_base64 && env::is_secret(&text, Strength::Password),
        // Bytes, or a text with a line break at its end.
        None => is_base64 && value.len() >= MIN_BINARY_BYTES,
    }
}
