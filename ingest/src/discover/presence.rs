//! Finds known logs again by the keys under which the store has them.

use super::reach::{file_of, find_obstacle};
use super::walk::discover;
use crate::source::candidate::Candidate;

/// Finds the log that the store knows as `key`, plain or compressed. `None` if it does not exist.
pub(crate) fn find_candidate(key: &str) -> Option<Candidate> {
    let found = discover(file_of(key).as_slice());
    found.files.into_iter().find(|file| file.key() == key)
}

/// Returns whether the log that the store knows as `key` is in none of its possible files any more.
/// A file that cannot be reached, as in a folder without permission, is not gone.
pub(crate) fn is_gone(key: &str) -> bool {
    match file_of(key) {
        Some(file) => {
            let found = discover(&[file]);
            found.problems.is_empty() && found.files.iter().all(|file| file.key() != key)
        }
        None => find_obstacle(key).is_none(),
    }
}
