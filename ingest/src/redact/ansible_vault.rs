//! Masks the body of files that Ansible encrypted: lines of hexadecimal digits.
//!
//! ```text
//! $ANSIBLE_VAULT;1.1;AES256
//! 33363965326261303234653839326337...
//! ```

use super::scan::{Rank, Scan};

/// Fewest digits of a line other than the last one.
const MIN_LINE: usize = 32;

/// Most bytes between two lines: a line break, an indentation and the number of the line.
const MAX_GAP: usize = 64;

/// Longest body, in bytes.
const MAX_BODY: usize = 64 << 10;

/// Masks the lines after the header at `at`.
pub(super) fn find(scan: &mut Scan<'_>, at: usize) {
    let header = scan.window(at, 80);
    let length = header.find(['\n', '\\', '"', ' ']).unwrap_or(header.len());
    let from = at + length;
    let (mut start, mut end, mut here) = (from, from, from);
    while here - end <= MAX_GAP && here - from < MAX_BODY && here < scan.len() {
        let run_end = scan.skip(here, MAX_BODY, |byte| byte.is_ascii_hexdigit());
        if run_end - here >= MIN_LINE {
            if end == from {
                start = here;
            }
            end = run_end;
        }
        here = run_end + 1;
    }
    // The last line may be shorter than the others.
    let last = scan.skip(end, MAX_GAP, |byte| byte.is_ascii_whitespace());
    let last_end = scan.skip(last, MIN_LINE, |byte| byte.is_ascii_hexdigit());
    let is_line = last_end > last && matches!(scan.byte(last_end), 0 | b'\n' | b'\r');
    if end > start && last > end && is_line {
        end = last_end;
    }
    scan.add(start, end, "ansible_vault", Rank::Shape);
}
