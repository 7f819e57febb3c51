//! Remembers the masked forms of names, ids and paths, which the rows of logs repeat.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

use super::secrets::MaskedSecrets;

/// Maximum number of names remembered with their masked form.
const MAX_NAMES: usize = 1024;

/// Maximum length in bytes of a name that is remembered.
pub(super) const MAX_NAME_BYTES: usize = 256;

/// Number of names of which a hash is remembered.
const MAX_SEEN_NAMES: usize = 64;

/// Number of the last names that are remembered for the rows of the same log.
const MAX_RECENT_NAMES: usize = 4;

/// The masked form of a name that differs from it, and its secrets.
pub(super) type MaskedName = (String, MaskedSecrets);

/// The names that were masked.
#[derive(Default)]
pub(super) struct KnownNames {
    /// The masked form of each name; `None` if it equals the name.
    masked: HashMap<String, Option<MaskedName>, BuildHasherDefault<NameHasher>>,
    /// Only a name that is seen again is added to `masked`: the ids and paths of many small logs
    /// would drive all others out.
    seen: SeenNames,
    /// The last names that equal their masked form. The rows of a log repeat its id.
    recent: [String; MAX_RECENT_NAMES],
    /// Position of the oldest of them.
    oldest: usize,
}

impl KnownNames {
    /// Returns the masked form of a name, which is `None` if it equals the name. The outer `None`
    /// means that the name is not remembered.
    pub(super) fn find(&self, name: &str) -> Option<Option<&MaskedName>> {
        if self.recent.iter().any(|recent| recent == name) {
            return Some(None);
        }
        self.masked.get(name).map(Option::as_ref)
    }

    /// Notes the masked form of a name; `None` if it equals the name.
    pub(super) fn remember(&mut self, name: &str, masked: Option<&MaskedName>) {
        if name.len() > MAX_NAME_BYTES {
            return;
        }
        if masked.is_none() {
            name.clone_into(&mut self.recent[self.oldest]);
            self.oldest = (self.oldest + 1) % MAX_RECENT_NAMES;
        }
        if self.seen.replace(name) {
            if self.masked.len() >= MAX_NAMES {
                self.masked.clear();
            }
            self.masked.insert(name.to_owned(), masked.cloned());
        }
    }
}

/// The hashes of some names that were seen.
struct SeenNames([u64; MAX_SEEN_NAMES]);

impl Default for SeenNames {
    fn default() -> Self {
        Self([0; MAX_SEEN_NAMES])
    }
}

impl SeenNames {
    /// Remembers a name in the place of another one. Returns whether it was remembered before.
    fn replace(&mut self, name: &str) -> bool {
        let hash = xxh3_64(name.as_bytes());
        let slot = &mut self.0[(hash % MAX_SEEN_NAMES as u64) as usize];
        std::mem::replace(slot, hash) == hash
    }
}

/// Hashes names faster than the hasher of the standard library. The writer of a log may choose
/// names with equal hashes, but few of them are remembered at a time.
#[derive(Default)]
struct NameHasher(u64);

impl Hasher for NameHasher {
    fn write(&mut self, bytes: &[u8]) {
        self.0 = xxh3_64_with_seed(bytes, self.0);
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_remembered_when_they_are_seen_again() {
        let mut names = KnownNames::default();
        let secret = ("[REDACTED:x]".to_owned(), MaskedSecrets::new());
        names.remember("secret", Some(&secret));
        assert_eq!(names.find("secret"), None, "seen once");
        names.remember("secret", Some(&secret));
        assert_eq!(names.find("secret"), Some(Some(&secret)));

        names.remember("plain", None);
        assert_eq!(names.find("plain"), Some(None), "one of the last");
        for number in 0..10_000 {
            names.remember(&format!("id {number}"), None);
        }
        assert_eq!(names.find("plain"), None);
        assert_eq!(names.find("secret"), Some(Some(&secret)), "ids do not drive it out");
        assert!(names.masked.len() <= MAX_NAMES);
        let long = "x".repeat(MAX_NAME_BYTES + 1);
        names.remember(&long, None);
        assert_eq!(names.find(&long), None);
    }
}
