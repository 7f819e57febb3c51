//! Masks the private members of JSON Web Keys, which have no shape of their own:
//!
//! ```text
//! {"kty":"EC","crv":"P-256","x":"...","y":"...","d":"..."}
//! ```

use std::sync::LazyLock;

use regex::Regex;

use super::entropy::is_placeholder;
use super::scan::{Rank, SecretScan};

/// Number of bytes that are searched on each side of `"kty"`. An RSA key with 4096 bits has about
/// 3,200.
const MAX_SIDE_BYTES: usize = 4 << 10;

/// A private member of a key. `k` is private only in symmetric keys, whose type is `oct`.
static MEMBER: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(
        r#"\\{0,3}["'](d|p|q|dp|dq|qi|k)\\{0,3}["']\s{0,8}:\s{0,8}\\{0,3}["']([A-Za-z0-9_=-]{16,1500})\\{0,3}["']"#,
    )
    .ok()
});

/// Masks the private members of the key whose type is at `at`.
pub(super) fn mask_web_key(scan: &mut SecretScan<'_>, at: usize) {
    if at < scan.web_key_end {
        return;
    }
    let before = scan.text_before(at, MAX_SIDE_BYTES);
    // The window is twice as long for the types that follow before `web_key_end`.
    let after = scan.text_from(at, 2 * MAX_SIDE_BYTES);
    let open = before.rfind('{').unwrap_or(before.len());
    let close = after.find('}');
    let start = at - before.len() + open;
    let end = at + close.unwrap_or(after.len());
    scan.web_key_end = close.map_or(at + MAX_SIDE_BYTES, |close| at + close);

    let key = scan.slice(start, end);
    let is_symmetric = key.contains("oct");
    let Some(member) = MEMBER.as_ref() else { return };
    for found in member.captures_iter(key) {
        let Some(name) = found.get(1) else { continue };
        let Some(value) = found.get(2) else { continue };
        if (name.as_str() == "k") == is_symmetric && !is_placeholder(value.as_str()) {
            scan.add_secret(start + value.start(), start + value.end(), "jwk_secret", Rank::Around);
        }
    }
}
