//! Masks private keys that a program wrote out number by number: in the XML of .NET, and in the
//! hexadecimal blocks of `openssl rsa -text`.
//!
//! ```text
//! privateExponent:
//!     13:d3:0a:...
//! prime1:
//!     00:f2:...
//! ```

use std::sync::LazyLock;

use regex::Regex;

use super::scan::{Rank, SecretScan, is_blank};

/// Maximum number of bytes of a number in hexadecimal digits, with the blanks between its lines. The
/// longest numbers, of keys with 8192 bits, have about 4,000.
const MAX_NUMBER_BYTES: usize = 8 << 10;

/// Minimum number of bytes of a private number. Shorter ones are examples.
const MIN_NUMBER_PAIRS: usize = 16;

/// Maximum number of bytes between two lines of a number.
const MAX_BREAK_BYTES: usize = 24;

/// Masks the hexadecimal digits after the name of a private number that ends at `name_end`.
pub(super) fn mask_hex_number(scan: &mut SecretScan<'_>, name_end: usize) {
    let start = skip_line_break(scan, name_end);
    if start == name_end || start < scan.key_end {
        return;
    }
    let mut at = start;
    let mut end = start;
    let mut pairs = 0;
    while at - start < MAX_NUMBER_BYTES && is_hex_pair(scan, at) {
        pairs += 1;
        end = at + 2;
        if scan.byte(end) != b':' {
            break;
        }
        at = end + 1;
        if !is_hex_pair(scan, at) {
            at = skip_line_break(scan, at);
        }
    }
    scan.key_end = scan.key_end.max(end);
    if pairs >= MIN_NUMBER_PAIRS {
        scan.add_secret(start, end, "private_key", Rank::Shape);
    }
}

/// Returns whether two hexadecimal digits and no third one are at `at`.
fn is_hex_pair(scan: &SecretScan<'_>, at: usize) -> bool {
    scan.byte(at).is_ascii_hexdigit()
        && scan.byte(at + 1).is_ascii_hexdigit()
        && !scan.byte(at + 2).is_ascii_hexdigit()
}

/// Returns the position after a line break, real or escaped, and the indentation of the next line.
/// Returns `at` if no line ends there.
fn skip_line_break(scan: &SecretScan<'_>, at: usize) -> usize {
    let line_end = scan.skip_while(at, MAX_BREAK_BYTES, |byte| is_blank(byte) || byte == b'\r');
    let next_line = match scan.byte(line_end) {
        b'\n' => line_end + 1,
        b'\\' if scan.byte(line_end + 1) == b'n' => line_end + 2,
        _ => return at,
    };
    scan.skip_while(next_line, MAX_BREAK_BYTES, is_blank)
}

/// Number of bytes of an RSA key in XML that are examined. One with 4096 bits has about 3,500.
const MAX_XML_BYTES: usize = 8 << 10;

/// A private member of a key.
static XML_MEMBER: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(r"<(?:P|Q|DP|DQ|InverseQ|D)>\s{0,80}([A-Za-z0-9+/=\s]{16,3000}?)\s{0,80}<").ok()
});

/// Masks the private members of the key whose element begins at `at`.
pub(super) fn mask_xml_key(scan: &mut SecretScan<'_>, at: usize) {
    if at < scan.key_end {
        return;
    }
    let text = scan.text_from(at, MAX_XML_BYTES);
    let key = text.split("RSAKeyValue>").nth(1).unwrap_or_default();
    let key_start = at + "<RSAKeyValue>".len();
    scan.key_end = key_start + key.len();
    let Some(member) = XML_MEMBER.as_ref() else { return };
    for found in member.captures_iter(key) {
        let Some(value) = found.get(1) else { continue };
        let (start, end) = (key_start + value.start(), key_start + value.end());
        scan.add_secret(start, end, "private_key", Rank::Shape);
    }
}
