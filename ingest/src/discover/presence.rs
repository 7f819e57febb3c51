//! Finds known logs again by the keys under which the store has them.

use super::reach::{find_file, find_obstacle};
use super::walk::discover;
use crate::source::candidate::LogCandidate;

/// Finds the log that the store knows as `key`, plain or compressed. `None` if it does not exist.
pub(crate) fn find_candidate(key: &str) -> Option<LogCandidate> {
    let found = discover(find_file(key).as_slice());
    found.files.into_iter().find(|file| file.key() == key)
}

/// Returns whether the log that the store knows as `key` is no longer in any of its possible files.
/// A file that cannot be reached, as in a folder without permission, is not gone.
pub(crate) fn is_gone(key: &str) -> bool {
    match find_file(key) {
        Some(file) => {
            let found = discover(&[file]);
            found.problems.is_empty() && found.files.iter().all(|candidate| candidate.key() != key)
        }
        None => find_obstacle(key).is_none(),
    }
}
