//! Masks the body of files that Ansible encrypted: lines of hexadecimal digits.
//!
//! ```text
//! $ANSIBLE_VAULT;1.1;AES256
//! 33363965326261303234653839326337...
//! ```

use super::scan::{Rank, SecretScan};

/// Minimum number of digits in a line other than the last one.
const MIN_LINE_DIGITS: usize = 32;

/// Maximum number of bytes between two lines: a line break, an indentation and a line number.
const MAX_GAP_BYTES: usize = 64;

/// Maximum length of a body in bytes.
const MAX_BODY_BYTES: usize = 64 << 10;

/// Masks the lines after the header at `at`.
pub(super) fn mask_vault_body(scan: &mut SecretScan<'_>, at: usize) {
    let header = scan.text_from(at, 80);
    let length = header.find(['\n', '\\', '"', ' ']).unwrap_or(header.len());
    let header_end = at + length;

    let mut start = header_end;
    let mut end = header_end;
    let mut line_start = header_end;
    while line_start - end <= MAX_GAP_BYTES
        && line_start - header_end < MAX_BODY_BYTES
        && line_start < scan.len()
    {
        let run_end = scan.skip_while(line_start, MAX_BODY_BYTES, |byte| byte.is_ascii_hexdigit());
        if run_end - line_start >= MIN_LINE_DIGITS {
            if end == header_end {
                start = line_start;
            }
            end = run_end;
        }
        line_start = run_end + 1;
    }

    // The last line may be shorter than the others.
    let last = scan.skip_while(end, MAX_GAP_BYTES, |byte| byte.is_ascii_whitespace());
    let last_end = scan.skip_while(last, MIN_LINE_DIGITS, |byte| byte.is_ascii_hexdigit());
    let is_line = last_end > last && matches!(scan.byte(last_end), 0 | b'\n' | b'\r');
    if end > start && last > end && is_line {
        end = last_end;
    }

    scan.add_secret(start, end, "ansible_vault", Rank::Shape);
}
