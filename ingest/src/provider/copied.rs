//! Ids of records that `sessions resume --with AGENT --native` copied from another session. The id of such a
//! record is all that agents keep of it, so it names the record that it is a copy of:
//!
//! ```text
//! 5e550c09-0003-8000-a00f-3c21b5d07e64    a UUID of version 8
//! mark     number     identity of the original
//! ```

use serde_json::Value as Json;

use crate::text::json::{JsonFields as _, Value};

/// The beginning of an id of a copied record. Agents write UUIDs of other versions.
const MARK: &str = "5e550c09-";

/// Length of such an id in bytes.
const ID_BYTES: usize = 36;

/// The field of the first record of a copy that names the session it continues.
pub const CONTINUES_FIELD: &str = "continuesSession";

/// The beginning of the slug of an OpenCode session that continues another one as a copy, before the id of
/// that one. Its database keeps no field that OpenCode does not know.
pub const CONTINUES_SLUG: &str = "continues-";

/// Returns the id of a copy of the record with this identity. `number` tells copies of one record apart.
pub fn copied_id(identity: u64, number: u16) -> String {
    let digits = format!("{identity:018x}");
    let (first, rest) = digits.split_at(3);
    let (second, last) = rest.split_at(3);
    format!("{MARK}{number:04x}-8{first}-a{second}-{last}")
}

/// Returns the identity of the record that the record with this id is a copy of. The id may be a part of a
/// longer one. `None` if the record is not a copy.
pub(super) fn copied_identity(id: Option<&str>) -> Option<u64> {
    let id = id?;
    let start = id.find(MARK)?;
    let mark = id.get(start..start + ID_BYTES)?;
    let groups: Vec<&str> = mark.split('-').collect();
    let [_, number, first, second, last] = groups[..] else { return None };
    let is_whole = [number, first, second].iter().all(|group| group.len() == 4);
    if !is_whole || last.len() != 12 {
        return None;
    }
    let (first, second) = (first.strip_prefix('8')?, second.strip_prefix('a')?);
    u64::from_str_radix(&format!("{first}{second}{last}"), 16).ok()
}

/// Returns whether a record is the first one of a copy, which belongs to it.
pub(super) fn is_head_of_copy(record: Value<'_>) -> bool {
    record.field(CONTINUES_FIELD).is_some()
}

/// Returns the session that a log continues as a copy, as its first records name it.
pub(super) fn continued_session<'r>(
    mut records: impl Iterator<Item = &'r Json>,
) -> Option<&'r str> {
    let named = records.find_map(|record| record.get(CONTINUES_FIELD)?.as_str());
    named.filter(|id| !id.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_names_the_record_it_is_a_copy_of() {
        for identity in [0, 1, 0x00ff_3c21_b5d0_7e64, u64::MAX] {
            let id = copied_id(identity, 3);
            assert_eq!(id.len(), ID_BYTES, "{id}");
            assert_eq!(copied_identity(Some(&id)), Some(identity), "{id}");
            let longer = format!("msg_{id}_response");
            assert_eq!(copied_identity(Some(&longer)), Some(identity), "{longer}");
        }
        for other in [
            "5e550c09-0003-4000-a00f-3c21b5d07e64",
            "5e550c09-0003-8000-a00f-3c21b5d07e6",
            "5e550c09-0003-8000-a00f",
            "5e550c09-é003-8000-a00f-3c21b5d07e64",
            "",
        ] {
            assert_eq!(copied_identity(Some(other)), None, "{other}");
        }
    }
}
