//! The list without which an agent does not show a session whose log is there.
//!
//! ```text
//! Continue, ~/.continue/sessions/sessions.json; the time in milliseconds since 1970
//! [{"sessionId":"e5c8...","title":"...","dateCreated":"1792996200000","workspaceDirectory":"file:///..."}]
//! ```
//!
//! Source: the history manager of Continue (core/util), which adds an entry when it saves a session that has none.

use std::path::{Path, PathBuf};

use schemas::Provider;
use serde_json::{Value as Json, json};

use super::continuedev;

/// Returns the list in which an agent looks for the log of a session. `None` if no such list of it
/// is known.
pub fn session_list_of(provider: Provider, log: &Path) -> Option<PathBuf> {
    (provider == Provider::Continue).then(|| log.with_file_name(continuedev::INDEX))
}

/// Returns a list of Continue with an entry for the session of a log, which began at `started_us` in microseconds
/// since 1970. All bytes of `list` stay; `None` is one that does not exist. Returns `None` if it has the session.
///
/// # Errors
/// Returns the reason if the list or the log is not valid.
pub fn add_to_session_list(
    list: Option<&str>,
    log: &str,
    started_us: i64,
) -> Result<Option<String>, String> {
    let list = list.filter(|list| !list.trim().is_empty()).unwrap_or("[]");
    let entries: Vec<Json> = serde_json::from_str(list).map_err(|error| error.to_string())?;
    let log: Json = serde_json::from_str(log).map_err(|error| error.to_string())?;
    let id = &log["sessionId"];
    if entries.iter().any(|entry| entry["sessionId"] == *id) {
        return Ok(None);
    }
    let entry = json!({
        "sessionId": id,
        "title": log["title"],
        "dateCreated": (started_us / 1000).to_string(),
        "workspaceDirectory": log["workspaceDirectory"],
    });
    let (before, after) = list.rsplit_once(']').ok_or("it is not a list")?;
    let comma = if entries.is_empty() { "" } else { "," };
    Ok(Some(format!("{before}{comma}{entry}]{after}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_is_added_once_and_every_other_byte_stays() {
        let log =
            r#"{"sessionId":"b","title":"Moor","workspaceDirectory":"file:///x","history":[]}"#;
        let entry = r#"{"sessionId":"b","title":"Moor","dateCreated":"5","workspaceDirectory":"file:///x"}"#;
        for (list, wanted) in [
            (None, Some(format!("[{entry}]"))),
            (Some(""), Some(format!("[{entry}]"))),
            (Some("[ ]\n"), Some(format!("[ {entry}]\n"))),
            (Some(r#"[{"sessionId":"a]"} ]"#), Some(format!(r#"[{{"sessionId":"a]"}} ,{entry}]"#))),
            (Some(r#"[{"sessionId":"b"}]"#), None),
        ] {
            assert_eq!(add_to_session_list(list, log, 5000), Ok(wanted), "{list:?}");
        }
        assert!(add_to_session_list(Some("{}"), log, 0).is_err());
        assert!(add_to_session_list(None, "x", 0).is_err());
    }
}
