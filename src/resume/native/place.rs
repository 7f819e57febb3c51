//! Where agents look for the log of a new session of a folder.

use ingest::provider::format::AgentFolders;
use ingest::relocate::{LogPlace, place_log};
use schemas::Provider;

use super::new_session::{NewSession, time_text};

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
