//! The session that is written: its id, its folder, the ids of its records, and the place of its log.

use std::collections::HashMap;

use ingest::provider::copied::{CONTINUES_FIELD, copied_id};
use ingest::provider::format::AgentFolders;
use ingest::relocate::{LogPlace, place_log};
use ingest::text::names::encode_hex;
use schemas::Provider;
use serde_json::Value;

use base::random::random_bytes;
use tools::reply::convert::format_time;

/// A session that another agent continues.
pub(super) struct NewSession<'a> {
    /// The id, as the agent gives ids.
    pub(super) id: String,
    /// The working directory.
    pub(super) folder: &'a str,
    /// When it is written, in microseconds since the epoch.
    pub(super) now: i64,
}

/// Names the session that a new one continues in the first record of the new one.
pub(super) fn name_continued(record: &mut Value, session_id: &str) {
    record[CONTINUES_FIELD] = session_id.into();
}

/// The ids of records, which name the records that they are copies of.
#[derive(Default)]
pub(super) struct RecordIds {
    numbers: HashMap<u64, u16>,
}

impl RecordIds {
    /// Returns the id of the next copy of a record.
    pub(super) fn next(&mut self, identity: u64) -> String {
        let number = self.numbers.entry(identity).or_default();
        let id = copied_id(identity, *number);
        *number = number.wrapping_add(1);
        id
    }
}

/// Returns a new UUID. Its version is 7: the time comes first, as Codex expects it.
///
/// # Errors
/// Fails if the system has no random bytes.
pub(super) fn new_uuid(now_us: i64) -> Result<String, String> {
    let random: [u8; 10] = random_bytes()?;
    let millis = (now_us / 1000).cast_unsigned();
    let mut digits = format!("{:012x}{}", millis & 0xffff_ffff_ffff, encode_hex(random));
    digits.replace_range(12..13, "7");
    digits.replace_range(16..17, "a");
    let at = |range| &digits[range];
    Ok(format!("{}-{}-{}-{}-{}", at(0..8), at(8..12), at(12..16), at(16..20), at(20..32)))
}

/// Returns a time in microseconds as agents write it: `2026-11-30T02:08:27.625Z`.
pub(super) fn time_text(micros: i64) -> String {
    format_time(Some(micros)).unwrap_or_else(|| "1970-01-01T00:00:00.000Z".to_owned())
}

/// Returns the place of the log of a new session. `None` if the agent imports it.
///
/// # Errors
/// Returns the reason if the place cannot be computed.
pub(super) fn place_new_log(
    agent: Provider,
    new: &NewSession<'_>,
    folders: &AgentFolders<'_>,
) -> Result<Option<LogPlace>, String> {
    let id = &new.id;
    let time = time_text(new.now);
    // In place of `project` comes the name that the agent gives the folder.
    #[expect(clippy::wildcard_enum_match_arm, reason = "OpenCode imports its sessions")]
    let below = match agent {
        Provider::Claude => format!("project/{id}.jsonl"),
        Provider::Codex => {
            let day = time[..10].replace('-', "/");
            format!("{day}/rollout-{}-{id}.jsonl", time[..19].replace(':', "-"))
        }
        // The end of a UUID of version 7 is random, and its beginning is the time.
        Provider::Gemini => {
            let minute = time[..16].replace(':', "-");
            format!("project/chats/session-{minute}-{}.jsonl", &id[id.len() - 8..])
        }
        Provider::Pi => format!("project/{}_{id}.jsonl", time.replace([':', '.'], "-")),
        _ => return Ok(None),
    };
    place_log(agent, &below, new.folder, folders).map(Some)
}
