//! Masks private keys in PEM blocks: on lines of their own, indented, numbered, in a diff, in
//! strings of JSON or code, after the file names that `grep` prints, and with either end cut off.

use super::scan::{Rank, Scan};

/// Longest key, in bytes.
const MAX_KEY: usize = 64 << 10;

/// Fewest characters of a run of base64 that counts as a line of a key.
const LINE: usize = 16;

/// Fewest characters of a key. Shorter ones are examples.
const LEAST: usize = 32;

/// Most bytes between two lines of a key (`MAX_GAP`), and before its first line, where headers may
/// be (`MAX_HEAD`).
const MAX_GAP: usize = 90;
const MAX_HEAD: usize = 160;

/// Most bytes between the last two lines of a key that is cut off.
const MAX_BREAK: usize = 24;

/// Masks the private key whose word `BEGIN` is at `at`.
pub(super) fn block(scan: &mut Scan<'_>, at: usize) {
    let Some(start) = at.checked_sub(5).filter(|start| scan.slice(*start, at) == "-----") else {
        return;
    };
    let head = scan.window(at + "BEGIN ".len(), 64);
    let Some((label, _)) = head.split_once("-----") else { return };
    let name = label.strip_suffix(" BLOCK").unwrap_or(label);
    if !name.ends_with("PRIVATE KEY") {
        return;
    }
    key(scan, start, at + "BEGIN ".len() + label.len() + 5, kind_of(name));
}

/// Returns the kind of the key that a line with this label begins or ends.
fn kind_of(label: &str) -> &'static str {
    match label.split(' ').next() {
        Some("OPENSSH") => "ssh_private_key",
        Some("PGP") => "pgp_private_key",
        _ => "private_key",
    }
}

/// Beginnings of the body of an OpenSSH key, and of a line of a PuTTY key.
const SSH_BODIES: &[&str] = &["b3BlbnNzaC1r", "Private-Lines: "];

/// Longest file name in bytes that `grep` prints before a line.
const MAX_FILE_NAME: usize = 256;

/// Longest line in bytes that is read before the `END` line of a key.
const MAX_LINE: usize = 400;

/// Masks a key whose first line is missing, and any key in base64.
pub(super) fn body(scan: &mut Scan<'_>, at: usize) {
    // `grep -A` puts `12-` before a line.
    let is_numbered = scan.before(at) == b'-' && scan.before(at - 1).is_ascii_digit();
    if at < scan.key_end || !(scan.begins_word(at) || is_numbered) {
        return;
    }
    let is_ssh = SSH_BODIES.iter().any(|begins| scan.slice(at, at + begins.len()) == *begins);
    key(scan, at, at, if is_ssh { "ssh_private_key" } else { "private_key" });
}

/// Masks a key whose first line is missing if the text at `at` begins like a private key in DER.
/// Certificates and public keys begin with other fields.
pub(super) fn der(scan: &mut Scan<'_>, at: usize) {
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
    let is_head = |head: &&&str| {
        let text = scan.slice(at, at + head.len()).bytes();
        text.len() == head.len() && head.bytes().zip(text).all(|(a, b)| a == b'_' || a == b)
    };
    if HEADS.iter().any(|head| is_head(&head)) {
        body(scan, at);
    }
}

/// Masks the lines of a key above its `END` line if its `BEGIN` line is missing. `at` is where the
/// words `PRIVATE KEY` begin.
pub(super) fn end(scan: &mut Scan<'_>, at: usize) {
    let lead = scan.lead(at, 32);
    let Some(label) = lead.rfind("-----END ") else { return };
    let is_label = |byte: u8| byte.is_ascii_uppercase() || byte == b' ';
    let end_line = at - (lead.len() - label);
    if end_line < scan.key_end || !lead.bytes().skip(label + 5).all(is_label) {
        return;
    }
    let (mut start, mut length) = (end_line, 0);
    let mut line_end = line_before(scan, end_line).0;
    while let Some(to) = line_end.filter(|_| end_line - start < MAX_KEY) {
        let (above, from, line) = line_before(scan, to);
        let line = line.trim_end_matches(|c: char| !c.is_ascii() || !is_base64(c as u8));
        let body_length = line.bytes().rev().take_while(|byte| is_base64(*byte)).count();
        let body = line.len() - body_length;
        let has = |fits: fn(&u8) -> bool| line.bytes().skip(body).any(|byte| fits(&byte));
        let is_line =
            body_length >= LINE && has(u8::is_ascii_uppercase) && has(u8::is_ascii_lowercase);
        // Only the last line of a key is short.
        if !is_line && (length > 0 || body_length < 2) {
            break;
        }
        (start, length, line_end) = (from + body, length + body_length, above);
    }
    if length >= LEAST {
        let label_end = at + "PRIVATE KEY".len();
        let rest = scan.window(label_end, 16);
        let to = label_end + rest.find("-----").map_or(0, |dashes| dashes + 5);
        scan.key_end = to;
        let label = lead.get(label + "-----END ".len()..).unwrap_or_default();
        scan.add(start, to, kind_of(label), Rank::Shape);
    }
}

/// Returns the line that ends at `end`: where the line break before it begins, where the line
/// begins, and its text. Strings of JSON write a line break as `\\n`.
fn line_before<'a>(scan: &Scan<'a>, end: usize) -> (Option<usize>, usize, &'a str) {
    let lead = scan.lead(end, MAX_LINE);
    let lead_start = end - lead.len();
    let real = lead.rfind('\n').map(|at| (at, at + 1));
    let escaped = lead.rfind("\\n").map(|at| (at, at + 2));
    match real.max(escaped) {
        Some((at, from)) => (Some(lead_start + at), lead_start + from, &lead[from..]),
        None => (None, lead_start, lead),
    }
}

/// Returns the file name that `grep` prints before the line at `at` and before the lines that
/// follow, or an empty text if there is none.
fn printed_name<'a>(scan: &Scan<'a>, at: usize) -> &'a str {
    let (_, _, lead) = line_before(scan, at);
    let is_number = |c: char| c.is_ascii_digit();
    let name = lead.trim_end_matches([':', '-']).trim_end_matches(is_number);
    let name = name.trim_end_matches([':', '-']);
    let is_name = name.len() <= MAX_FILE_NAME
        && name.len() < lead.len()
        && !name.bytes().any(|byte| byte.is_ascii_whitespace() || b"\"'`".contains(&byte));
    if is_name { name } else { "" }
}

/// Masks from `start` to the end of the key whose first line begins at `from` or soon after.
fn key(scan: &mut Scan<'_>, start: usize, from: usize, kind: &'static str) {
    let highest = scan.len().min(from + MAX_KEY);
    let (mut at, mut end) = (from, from);
    let (mut length, mut gap, mut open) = (0, 0, true);
    let file_name = printed_name(scan, start);
    while at < highest {
        if !file_name.is_empty() {
            let line_break = match scan.byte(at) {
                b'\n' => 1,
                b'\\' if scan.byte(at + 1) == b'n' => 2,
                _ => 0,
            };
            let name_end = at + line_break + file_name.len();
            if line_break > 0 && scan.slice(at + line_break, name_end) == file_name {
                at = name_end;
                continue;
            }
        }
        let allowed = if length == 0 { MAX_HEAD } else { MAX_GAP };
        if gap > allowed {
            break;
        }
        let run = at;
        at = scan.skip(run, highest - run, is_base64);
        if at > run {
            // The letter of an escape is not part of the run: `\nMII`.
            let escape = scan.before(run) == b'\\' && matches!(scan.byte(run), b'n' | b'r' | b't');
            let run_length = at - run - usize::from(escape);
            // A key that is cut off ends within a line.
            let between = scan.slice(end, run);
            let last = at == scan.len()
                && (1..=MAX_BREAK).contains(&between.len())
                && (escape || between.contains('\n'))
                && !between.bytes().any(is_base64);
            if (run_length >= LINE && open) || (last && length > 0 && run_length > 0) {
                (length, end, gap) = (length + run_length, at, 0);
            } else {
                // Line numbers may be between two lines of a key, but words may not.
                let is_word = scan.slice(at - run_length, at).contains(char::is_alphabetic);
                open &= length == 0 || !is_word;
                gap += run_length;
            }
            continue;
        }
        let rest = scan.window(at, 64);
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
    if length >= LEAST {
        scan.add(start, end, kind, Rank::Shape);
    }
}

fn is_base64(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'=')
}
