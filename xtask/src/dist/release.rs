//! What packages are made of, and what packaging makes.

use serde_json::Value;
use sha2::{Digest as _, Sha256};

use super::target::Target;

/// What packages are made of.
pub(super) struct Release {
    pub(super) version: String,
    pub(super) target: &'static Target,
    pub(super) program: Vec<u8>,
    pub(super) sbom: String,
    pub(super) readme: String,
    /// Names and texts of the licences.
    pub(super) licences: Vec<(String, String)>,
    /// The answer of `sessions tools --json`.
    pub(super) tools: Value,
    /// From 0 (store) to 9 (smallest).
    pub(super) compression: u32,
}

/// A file of the release.
#[derive(Debug)]
pub(crate) struct Artifact {
    pub(crate) name: String,
    pub(crate) bytes: Vec<u8>,
}

impl Artifact {
    pub(super) fn text(name: impl Into<String>, text: String) -> Self {
        Self { name: name.into(), bytes: text.into_bytes() }
    }
}

/// Returns the SHA-256 in hexadecimal digits.
pub(super) fn hex_sha256(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}
