//! Measures the JSON of a value without keeping it.

use std::io::{self, Write};

use serde::Serialize;

/// Returns the length in bytes of the JSON of `item`, without keeping it.
pub fn json_length(item: &impl Serialize) -> usize {
    let mut counter = ByteCounter(0);
    // A counter does not fail, and data that has no JSON fails when the answer is made.
    let _ = serde_json::to_writer(&mut counter, item);
    counter.0
}

/// Counts the bytes that are written to it.
struct ByteCounter(usize);

impl Write for ByteCounter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 += bytes.len();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_length_is_that_of_the_text() {
        let value = serde_json::json!({ "a": [1, "é\n", null] });
        assert_eq!(json_length(&value), value.to_string().len());
    }
}
