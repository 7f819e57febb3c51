//! Private keys in PEM blocks: on lines of their own, indented, numbered, in a diff, in strings
//! of JSON or code, with their end or cut off.

use super::scan::{Rank, Scan};

/// Longest key.
const MAX_KEY: usize = 64 << 10;

/// A run of base64 this long is a line of the key.
const LINE: usize = 16;

/// A key has so many characters at least; less is an example.
const LEAST: usize = 32;

/// What may lie between two lines of the key, and, as for its headers, before the first.
const MAX_GAP: usize = 90;
const MAX_HEAD: usize = 160;

/// What may lie between the last two lines of a key that is cut off.
const MAX_BREAK: usize = 24;

/// Masks the private key whose `BEGIN` stands at `at`.
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
    let kind = if name.starts_with("OPENSSH") {
        "ssh_private_key"
    } else if name.starts_with("PGP") {
        "pgp_private_key"
    } else {
        "private_key"
    };
    key(scan, start, at + "BEGIN ".len() + label.len() + 5, kind);
}

/// How a block begins that is in base64 as a whole.
const ENCODED: &str = "LS0tLS1CRUdJTiB";

/// Masks a key of SSH whose head is missing or of another form, and any key in base64.
pub(super) fn body(scan: &mut Scan<'_>, at: usize) {
    if at >= scan.key_end && scan.begins_word(at) {
        let encoded = scan.slice(at, at + ENCODED.len()) == ENCODED;
        key(scan, at, at, if encoded { "private_key" } else { "ssh_private_key" });
    }
}

/// Masks from `start` to the end of the key whose first line comes at `from` or soon after.
fn key(scan: &mut Scan<'_>, start: usize, from: usize, kind: &'static str) {
    let highest = scan.len().min(from + MAX_KEY);
    let (mut at, mut end) = (from, from);
    let (mut length, mut gap, mut open) = (0, 0, true);
    while at < highest {
        let allowed = if length == 0 { MAX_HEAD } else { MAX_GAP };
        if gap > allowed {
            break;
        }
        let run = at;
        at = scan.skip(run, highest - run, is_base64);
        if at > run {
            // The letter of an escape is no part of it: `\nMII`.
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
                // Numbers of lines may stand between two lines, but no words.
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
