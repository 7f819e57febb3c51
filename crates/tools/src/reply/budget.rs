//! Keeps answers within their size limit.

use serde::Serialize;

use base::json_length::json_length;
use base::sanitize::{clean_text, truncate_for_json};

/// Maximum number of bytes of an unknown name that an answer repeats.
const MAX_ECHOED_BYTES: usize = 100;

/// Returns a requested name that does not exist, in the form in which an answer repeats it.
pub fn echoed_name(name: &str) -> String {
    truncate_for_json(&clean_text(name), MAX_ECHOED_BYTES).0.to_owned()
}

/// The number of bytes of JSON that may still be used.
pub struct Budget {
    bytes_left: usize,
    is_used: bool,
}

impl Budget {
    pub fn new(bytes: usize) -> Self {
        Self { bytes_left: bytes, is_used: false }
    }

    /// Takes the space that `item` needs; returns false if too little remains. The first item
    /// always fits, so that no page is empty.
    pub fn take(&mut self, item: &impl Serialize) -> bool {
        // One byte for the comma.
        self.take_bytes(json_length(item) + 1)
    }

    /// Takes a number of bytes, like [`Budget::take`].
    pub fn take_bytes(&mut self, bytes: usize) -> bool {
        if bytes > self.bytes_left && self.is_used {
            return false;
        }
        self.is_used = true;
        self.bytes_left = self.bytes_left.saturating_sub(bytes);
        true
    }

    /// Returns the number of bytes left.
    pub fn remaining_bytes(&self) -> usize {
        self.bytes_left
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_item_fits_and_the_rest_by_size() {
        let mut budget = Budget::new(10);
        assert!(budget.take(&"a long first item"));
        assert!(!budget.take(&"x"));
    }
}
