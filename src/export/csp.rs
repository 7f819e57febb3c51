//! Builds the content security policy of our HTML pages. A browser runs and applies only the
//! scripts and styles that are named by their hash. So no text from a log can run, and nothing is
//! loaded from elsewhere.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest, Sha256};

/// Returns the content of the `Content-Security-Policy` of a page with these scripts and styles.
pub(crate) fn content_security_policy(scripts: &[&str], styles: &[&str]) -> String {
    format!(
        "default-src 'none'; script-src {}; style-src {}; base-uri 'none'; form-action 'none'",
        allowed_sources(scripts),
        allowed_sources(styles)
    )
}

/// Returns the sources that a policy allows: these, or none.
fn allowed_sources(sources: &[&str]) -> String {
    if sources.is_empty() {
        return "'none'".to_owned();
    }
    sources.iter().map(|source| source_hash(source)).collect::<Vec<_>>().join(" ")
}

/// Returns the hash of a source in the form of a policy.
fn source_hash(source: &str) -> String {
    let digest = Sha256::digest(source.as_bytes());
    let bytes: &[u8] = &digest;
    format!("'sha256-{}'", STANDARD.encode(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_what_is_inside() {
        assert_eq!(source_hash("abc"), "'sha256-ungWv48Bz+pBQUDeXa4iI7ADYaOWF3qctBD/YfIAFa0='");
        assert!(
            content_security_policy(&[], &["abc"])
                .contains("script-src 'none'; style-src 'sha256-ung")
        );
    }
}
