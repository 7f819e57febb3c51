//! Takes a JSON document apart that holds its records in one list: every record with its place in
//! the file, and the other fields. What stands before a cut or an error is kept.

use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

/// A document taken apart as far as it goes.
#[derive(Default)]
pub(super) struct Parts<'a> {
    pub(super) fields: serde_json::Map<String, serde_json::Value>,
    pub(super) records: Vec<&'a RawValue>,
    /// Why the rest is missing.
    pub(super) error: Option<serde_json::Error>,
}

/// Takes `text` apart; `list` is the field that holds the records.
pub(super) fn take_apart<'a>(text: &'a str, list: &str) -> Parts<'a> {
    let mut parts = Parts::default();
    let read = serde_json::Deserializer::from_str(text)
        .deserialize_map(Document { parts: &mut parts, list });
    parts.error = read.err();
    parts
}

/// Fills the parts while the document is read.
struct Document<'p, 'a> {
    parts: &'p mut Parts<'a>,
    list: &'p str,
}

impl<'de> Visitor<'de> for Document<'_, 'de> {
    type Value = ();

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "an object with a list of {}", self.list)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(key) = map.next_key::<String>()? {
            if key == self.list {
                map.next_value_seed(Records(&mut self.parts.records))?;
            } else {
                let value = map.next_value()?;
                self.parts.fields.insert(key, value);
            }
        }
        Ok(())
    }
}

struct Records<'p, 'a>(&'p mut Vec<&'a RawValue>);

impl<'de> DeserializeSeed<'de> for Records<'_, 'de> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for Records<'_, 'de> {
    type Value = ();

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("a list")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<(), A::Error> {
        while let Some(record) = seq.next_element()? {
            self.0.push(record);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_stands_before_a_cut_is_kept() {
        let whole =
            take_apart(r#"{"id":"T-1","messages":[{"a":1},{"b":2}],"title":"t"}"#, "messages");
        assert!(whole.error.is_none());
        assert_eq!(whole.records.len(), 2);
        assert_eq!(whole.fields["title"], "t");
        let cut = take_apart(r#"{"id":"T-1","messages":[{"a":1},{"b":"#, "messages");
        assert!(cut.error.is_some());
        assert_eq!(cut.records.iter().map(|r| r.get()).collect::<Vec<_>>(), [r#"{"a":1}"#]);
        assert_eq!(cut.fields["id"], "T-1");
    }
}
