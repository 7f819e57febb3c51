//! Finds the value of a name that is in a field of its own, next to the field of the value:
//!
//! ```text
//! {"name": "DB_PASSWORD", "value": "..."}         {"value": "...", "name": "DB_PASSWORD"}
//! {"ParameterKey": "DbPassword", "ParameterValue": "..."}
//! variable "db_password" { default = "..." }
//! Content-Disposition: form-data; name="password"
//! ```

use super::pattern::LazyRegex;
use super::scan::{SecretScan, is_blank, is_name_byte, is_quote};

/// Names of the field of a value.
const VALUE_KEYS: &[&str] = &["value", "parametervalue"];

/// Maximum number of bytes of a field of a value that comes before the name.
const MAX_FIELD_BYTES: usize = 400;

/// A field of a value at the end of a text, up to the name that follows it. The group begins with the
/// value or its opening quote.
static FIELD_BEFORE: LazyRegex = LazyRegex::anywhere(concat!(
    r#"(?:^|[\s{,"'-])(?i:value)\\{0,3}["']?\s*[:=]\s*"#,
    r#"(\\{0,3}"[^"\n]{1,300}"|\\{0,3}'[^'\n]{1,300}'|[^\s"'{}\[\],]{1,300})"#,
    r#"\s*,?(?:\\n)?\s*\\{0,3}["']?(?i:name|key)\\{0,3}["']?\s*[:=]\s*\\{0,3}["']?$"#,
));

/// The block of a variable of Terraform, from the quote after its name up to its default value.
static TERRAFORM_DEFAULT: LazyRegex = LazyRegex::at_start(r#"\s*\{[^{}]{0,300}?\bdefault\s*=\s*"#);

/// The blank line between the head of a part of a form and its value, and the fields of the head that
/// come before it.
static PART_HEAD: LazyRegex = LazyRegex::at_start(
    r"(?:(?:\r?\n|(?:\\{1,2}r)?\\{1,2}n)[A-Za-z-]{4,30}: [^\r\n\\]{1,80}){0,2}(?:\r?\n|(?:\\{1,2}r)?\\{1,2}n){2}",
);

/// Returns where the value of the name at `start` begins if name and value are in two fields. `at` is
/// the position after the name and its closing quote.
pub(super) fn find_paired_value(scan: &SecretScan<'_>, start: usize, at: usize) -> Option<usize> {
    let value = find_value_key(scan, at).or_else(|| find_value_before(scan, start));
    if value.is_some() || !is_quote(scan.byte_before(start)) {
        return value;
    }
    find_default(scan, start, at).or_else(|| find_form_value(scan, start, at))
}

/// Returns whether a word is one of [`VALUE_KEYS`] in any case.
fn is_value_key(word: &str) -> bool {
    VALUE_KEYS.iter().any(|key| word.eq_ignore_ascii_case(key))
}

/// Returns where the value begins in `"value": ..., "name": "NAME"`. The name begins at `start`.
fn find_value_before(scan: &SecretScan<'_>, start: usize) -> Option<usize> {
    // Most names are not the value of a field.
    let quote = scan.run_start(start, 4, |byte| is_quote(byte) || byte == b'\\');
    let sign = scan.run_start(quote, 4, is_blank);
    if !matches!(scan.byte_before(sign), b':' | b'=') {
        return None;
    }
    let key_end =
        scan.run_start(sign - 1, 4, |byte| is_quote(byte) || is_blank(byte) || byte == b'\\');
    let key_start = scan.run_start(key_end, 5, is_name_byte);
    let key = scan.slice(key_start, key_end);
    if !key.eq_ignore_ascii_case("name") && !key.eq_ignore_ascii_case("key") {
        return None;
    }
    let before = scan.text_before(start, MAX_FIELD_BYTES);
    let value = FIELD_BEFORE.captures(before)?.get(1)?;
    Some(start - before.len() + value.start())
}

/// Returns where the default of the Terraform variable whose name begins at `start` begins.
fn find_default(scan: &SecretScan<'_>, start: usize, at: usize) -> Option<usize> {
    let is_variable =
        ["variable \"", "variable \\\""].iter().any(|opening| scan.has_text_before(start, opening));
    if !is_variable {
        return None;
    }
    let block = TERRAFORM_DEFAULT.captures(scan.text_from(at, MAX_FIELD_BYTES))?;
    Some(at + block.get(0)?.end())
}

/// Returns where the value of the part of a form whose name begins at `start` begins.
fn find_form_value(scan: &SecretScan<'_>, start: usize, at: usize) -> Option<usize> {
    let is_part = ["form-data; name=\"", "form-data; name=\\\""]
        .iter()
        .any(|opening| scan.has_text_before(start, opening));
    if !is_part {
        return None;
    }
    let head = PART_HEAD.captures(scan.text_from(at, MAX_FIELD_BYTES))?;
    Some(at + head.get(0)?.end())
}

/// Returns where the value begins in `"NAME", "value": ...`, in `key="NAME" value=...` and, over
/// two lines, in `name: NAME`, `value: ...`.
fn find_value_key(scan: &SecretScan<'_>, at: usize) -> Option<usize> {
    let comma = scan.skip_while(at, 1, |byte| byte == b',');
    let word = scan.skip_while(comma, 40, |byte| is_blank(byte) || matches!(byte, b'\r' | b'\n'));
    if word == at {
        return None;
    }
    let word = skip_quote(scan, word);
    let length = VALUE_KEYS
        .iter()
        .map(|key| key.len())
        .find(|length| is_value_key(scan.slice(word, word + length)))?;
    let end = word + length;
    let sign = scan.skip_while(skip_quote(scan, end), 4, is_blank);
    let is_sign = matches!(scan.byte(sign), b':' | b'=');
    is_sign.then(|| scan.skip_while(sign + 1, 4, is_blank))
}

/// Returns the position after a quote and the backslashes before it. Either may be absent.
fn skip_quote(scan: &SecretScan<'_>, at: usize) -> usize {
    let quote = scan.skip_while(at, 3, |byte| byte == b'\\');
    scan.skip_while(quote, 1, is_quote)
}
