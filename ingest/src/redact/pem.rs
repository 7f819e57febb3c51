//! Masks private keys in PEM blocks: on lines of their own, indented, numbered, in a diff, in
//! strings of JSON or code, after the file names that `grep` prints, URL-encoded, in base64, as lines
//! of HTML, and with either end cut off.

use super::scan::SecretScan;

/// Maximum length of a key in bytes.
const MAX_KEY_BYTES: usize = 64 << 10;

/// Minimum number of characters in a run of base64 that counts as a line of a key.
const MIN_LINE_CHARS: usize = 16;

/// Minimum number of characters in a key. Shorter ones are examples.
const MIN_KEY_CHARS: usize = 32;

/// Maximum number of bytes between two lines of a key.
const MAX_GAP_BYTES: usize = 90;

/// Maximum number of bytes before the first line of a key, where headers may be.
const MAX_HEAD_BYTES: usize = 160;

/// Maximum number of bytes between the last two lines of a key that is cut off.
const MAX_BREAK_BYTES: usize = 24;

/// Masks the private key whose word `BEGIN` is at `at`.
pub(super) fn mask_key_block(scan: &mut SecretScan<'_>, at: usize) {
    if !scan.has_text_before(at, "-----") {
        return;
    }
    let head = scan.text_from(at + "BEGIN ".len(), 64);
    let Some((label, _)) = head.split_once("-----") else { return };
    let name = label.strip_suffix(" BLOCK").unwrap_or(label);
    if !name.ends_with("PRIVATE KEY") {
        return;
    }
    let head_end = at + "BEGIN ".len() + label.len() + "-----".len();
    mask_key(scan, at - "-----".len(), head_end, kind_of(name));
}

/// The kinds of keys that their labels tell.
pub(super) const KEY_KINDS: &[&str] = &["ssh_private_key", "pgp_private_key"];

/// Returns the kind of the key that a line with this label begins or ends.
fn kind_of(label: &str) -> &'static str {
    match label.split(' ').next() {
        Some("OPENSSH") => "ssh_private_key",
        Some("PGP") => "pgp_private_key",
        _ => "private_key",
    }
}

/// Masks the URL-encoded key whose word `BEGIN` is at `at`:
/// `-----BEGIN+PRIVATE+KEY-----%0AMIIE...%0A-----END+PRIVATE+KEY-----`.
pub(super) fn mask_encoded_key(scan: &mut SecretScan<'_>, at: usize) {
    if at < scan.key_end || !scan.has_text_before(at, "-----") {
        return;
    }
    let head = scan.text_from(at + "BEGIN".len(), 96);
    let Some((label, _)) = head.split_once("-----") else { return };
    let name = label.replace("%20", " ").replace('+', " ");
    let name = name.trim_start();
    let name = name.strip_suffix(" BLOCK").unwrap_or(name);
    if !name.ends_with("PRIVATE KEY") {
        return;
    }

    let body_start = at + "BEGIN".len() + label.len() + "-----".len();
    let body_end = scan.skip_while(body_start, MAX_KEY_BYTES, is_encoded_base64);
    let end_line = scan.text_from(body_end, 96).strip_prefix("-----END");
    let label_length = end_line.and_then(|line| line.find("-----"));
    let end = body_end + label_length.map_or(0, |length| "-----END".len() + length + "-----".len());
    scan.key_end = end;
    if body_end - body_start >= MIN_KEY_CHARS {
        scan.add_secret_of(at - "-----".len(), end, kind_of(name));
    }
}

/// Returns whether a byte is a digit of base64, its padding, or part of an escape of URLs.
fn is_encoded_base64(byte: u8) -> bool {
    is_base64(byte) || byte == b'%'
}

/// Beginning of `-----BEGIN EC PARAMETERS-----` in base64. Files of keys with elliptic curves begin
/// with these public lines.
const ENCODED_PARAMETERS: &str = "LS0tLS1CRUdJTiBFQyBQQVJBTUVURVJT";

/// Number of characters of base64 after the parameters in which the label of the key is searched.
const MAX_PARAMETERS_CHARS: usize = 400;

/// `PRIVATE KEY` in base64, at each of the three offsets of a byte.
const ENCODED_LABELS: &[&str] = &["UFJJVkFURSBLRV", "BSSVZBVEUgS0VZ", "QUklWQVRFIEtFW"];

/// Returns whether the base64 at `at` begins with public parameters that no private key follows.
fn is_only_parameters(scan: &SecretScan<'_>, at: usize) -> bool {
    if !scan.has_text_at(at, ENCODED_PARAMETERS) {
        return false;
    }
    let text: String = scan
        .text_from(at, MAX_PARAMETERS_CHARS)
        .chars()
        .filter(|c| c.is_ascii_alphanumeric() || matches!(*c, '+' | '/'))
        .collect();
    !ENCODED_LABELS.iter().any(|label| text.contains(label))
}

/// Maximum length in bytes of a file name that `grep` prints before a line.
const MAX_FILE_NAME_BYTES: usize = 256;

/// Maximum length in bytes of a line that is read before the `END` line of a key.
const MAX_LINE_BYTES: usize = 400;

/// Masks a key whose first line is missing, and any key in base64. The kind of the key is that of the
/// rule.
pub(super) fn mask_key_body(scan: &mut SecretScan<'_>, at: usize) {
    // `grep -A` puts `12-` before a line.
    let is_numbered = scan.byte_before(at) == b'-' && scan.byte_before(at - 1).is_ascii_digit();
    let may_begin = scan.may_begin_token(at) || is_numbered;
    if at < scan.key_end || !may_begin || is_only_parameters(scan, at) {
        return;
    }
    mask_key(scan, at, at, scan.kind());
}

/// Masks a key whose first line is missing if the text at `at` begins like a private key in DER.
/// Certificates and public keys begin with other fields.
pub(super) fn mask_der_key(scan: &mut SecretScan<'_>, at: usize) {
    // `_` matches any character: it is where the length of the key is encoded.
    const HEADS: &[&str] = &[
        "MII___IBAAK",
        "MII___IBADANBgkqhkiG9w0B",
        "MII____TBXBgkqhkiG9w0BBQ",
        "MII____DBOBgkqhkiG9w0BBQ",
        "MIG_AgEAMBMGByqGSM49",
        "MIG_AgEAMBAGByqGSM49",
        "MIG_AgEBBD",
        "MIH_AgEBBE",
        "MHcCAQEEI",
        "MC4CAQAwBQYDK2V",
        "MFECAQEwBQYDK2V",
    ];
    if HEADS.iter().any(|head| is_der_head(scan.slice(at, at + head.len()), head)) {
        mask_key_body(scan, at);
    }
}

/// Returns whether a text matches a head of DER, in which `_` matches any character.
fn is_der_head(text: &str, head: &str) -> bool {
    text.len() == head.len()
        && head.bytes().zip(text.bytes()).all(|(want, byte)| want == b'_' || want == byte)
}

/// Masks the lines of a key above its `END` line if its `BEGIN` line is missing. `at` is where the
/// words `PRIVATE KEY` begin.
pub(super) fn mask_key_above_end(scan: &mut SecretScan<'_>, at: usize) {
    let lead = scan.text_before(at, 32);
    let Some(label_start) = lead.rfind("-----END ") else { return };
    let label = lead.get(label_start + "-----END ".len()..).unwrap_or_default();
    let end_line = at - (lead.len() - label_start);
    let is_label = label.bytes().all(|byte| byte.is_ascii_uppercase() || byte == b' ');
    if end_line < scan.key_end || !is_label {
        return;
    }

    let Some(start) = key_above(scan, end_line) else { return };
    let label_end = at + "PRIVATE KEY".len();
    let rest = scan.text_from(label_end, 16);
    let key_end = label_end + rest.find("-----").map_or(0, |dashes| dashes + 5);
    scan.key_end = key_end;
    scan.add_secret_of(start, key_end, kind_of(label));
}

/// Tags that end the lines of a key in HTML.
const LINE_TAGS: &[&str] = &["<br>", "<br/>", "<br />"];

/// Returns the end of the tag of HTML at `at` that ends a line, or `None` if there is none.
fn line_tag_end(scan: &SecretScan<'_>, at: usize) -> Option<usize> {
    if scan.byte(at) != b'<' {
        return None;
    }
    LINE_TAGS.iter().find(|tag| scan.has_text_at(at, tag)).map(|tag| at + tag.len())
}

/// Returns where the key above the `END` line at `end_line` begins. `None` if the lines there are
/// too short for a key.
fn key_above(scan: &SecretScan<'_>, end_line: usize) -> Option<usize> {
    let mut start = end_line;
    let mut length = 0;
    let mut line_end = line_before(scan, end_line).line_break;
    while let Some(end) = line_end {
        if end_line - start >= MAX_KEY_BYTES {
            break;
        }
        let line = line_before(scan, end);
        let text = LINE_TAGS.iter().fold(line.text, |text, tag| text.trim_end_matches(tag));
        let text = text.trim_end_matches(|c: char| !c.is_ascii() || !is_base64(c as u8));
        let body_length = text.bytes().rev().take_while(|byte| is_base64(*byte)).count();
        let body_start = text.len() - body_length;
        let body = text.as_bytes().get(body_start..).unwrap_or_default();

        let is_whole_line = body_length >= MIN_LINE_CHARS
            && body.iter().any(u8::is_ascii_uppercase)
            && body.iter().any(u8::is_ascii_lowercase);
        // Only the last line of a key is short.
        if !is_whole_line && (length > 0 || body_length < 2) {
            break;
        }
        start = line.start + body_start;
        length += body_length;
        line_end = line.line_break;
    }
    (length >= MIN_KEY_CHARS).then_some(start)
}

/// A line above a position of the text.
struct LineAbove<'a> {
    /// Where the line break before the line begins; `None` if the line is the first of the text or
    /// too long.
    line_break: Option<usize>,
    start: usize,
    text: &'a str,
}

/// Returns the line that ends at `end`. Strings of JSON write a line break as `\\n`.
fn line_before<'a>(scan: &SecretScan<'a>, end: usize) -> LineAbove<'a> {
    let lead = scan.text_before(end, MAX_LINE_BYTES);
    let lead_start = end - lead.len();
    let real = lead.rfind('\n').map(|at| (at, at + 1));
    let escaped = lead.rfind("\\n").map(|at| (at, at + 2));
    let Some((break_start, break_end)) = real.max(escaped) else {
        return LineAbove { line_break: None, start: lead_start, text: lead };
    };
    LineAbove {
        line_break: Some(lead_start + break_start),
        start: lead_start + break_end,
        text: &lead[break_end..],
    }
}

/// Returns the file name that `grep` prints before the line at `at` and before the lines that
/// follow, or an empty text if there is none.
fn printed_name<'a>(scan: &SecretScan<'a>, at: usize) -> &'a str {
    let lead = line_before(scan, at).text;
    let numbered = lead.trim_end_matches([':', '-']);
    let name = numbered.trim_end_matches(|c: char| c.is_ascii_digit()).trim_end_matches([':', '-']);
    let is_name = name.len() <= MAX_FILE_NAME_BYTES
        && name.len() < lead.len()
        && !name.bytes().any(|byte| byte.is_ascii_whitespace() || b"\"'`".contains(&byte));
    if is_name { name } else { "" }
}

/// Returns the end of the file name that `grep` prints after the line break at `at`. `None` if
/// `file_name` is empty, if there is no line break, or if another text follows it.
fn printed_name_end(scan: &SecretScan<'_>, at: usize, file_name: &str) -> Option<usize> {
    if file_name.is_empty() {
        return None;
    }
    let name_start = match scan.byte(at) {
        b'\n' => at + 1,
        b'\\' if scan.byte(at + 1) == b'n' => at + 2,
        _ => return None,
    };
    scan.has_text_at(name_start, file_name).then_some(name_start + file_name.len())
}

/// Masks from `mask_start` to the end of the key whose first line begins at `search_from` or soon
/// after. Masks nothing if the key is too short. Moves `scan.key_end` in any case.
fn mask_key(scan: &mut SecretScan<'_>, mask_start: usize, search_from: usize, kind: &'static str) {
    let search_end = scan.len().min(search_from + MAX_KEY_BYTES);
    let file_name = printed_name(scan, mask_start);
    let mut at = search_from;
    let mut end = search_from;
    let mut length = 0;
    // Bytes since the last line of the key.
    let mut gap = 0;
    let mut may_have_lines = true;
    while at < search_end {
        if let Some(name_end) = printed_name_end(scan, at, file_name) {
            at = name_end;
            continue;
        }
        if let Some(tag_end) = line_tag_end(scan, at) {
            at = tag_end;
            continue;
        }
        let max_gap = if length == 0 { MAX_HEAD_BYTES } else { MAX_GAP_BYTES };
        if gap > max_gap {
            break;
        }

        let run = at;
        at = scan.skip_while(run, search_end - run, is_base64);
        if at > run {
            // The letter of an escape is not part of the run: `\nMII`.
            let is_escape = scan.is_escape_letter(run);
            let run_length = at - run - usize::from(is_escape);
            // A key that is cut off ends within a line.
            let between = scan.slice(end, run);
            let is_last = at == scan.len()
                && (1..=MAX_BREAK_BYTES).contains(&between.len())
                && (is_escape || between.contains('\n'))
                && !between.bytes().any(is_base64);
            if (run_length >= MIN_LINE_CHARS && may_have_lines)
                || (is_last && length > 0 && run_length > 0)
            {
                length += run_length;
                end = at;
                gap = 0;
            } else {
                // Line numbers may be between two lines of a key, but words may not.
                let has_letters = scan.slice(at - run_length, at).contains(char::is_alphabetic);
                may_have_lines &= length == 0 || !has_letters;
                gap += run_length;
            }
            continue;
        }

        let rest = scan.text_from(at, 64);
        if let Some(label) = rest.strip_prefix("-----END") {
            end = at + "-----END".len() + label.find("-----").map_or(0, |label| label + 5);
            break;
        }
        if rest.starts_with("-----BEGIN") {
            break;
        }
        gap += 1;
        at += 1;
    }

    scan.key_end = at.max(end);
    if length >= MIN_KEY_CHARS {
        scan.add_secret_of(mask_start, end, kind);
    }
}

/// Returns whether the byte is a digit of base64 or its padding.
fn is_base64(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'=')
}
