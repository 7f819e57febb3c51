//! Removes sessions from the store for good, and lets their logs be read again.

use std::collections::HashMap;

use schemas::{ErrorCode, ToolError, nearest};

use super::log_rules::{ForgottenRules, LogRules};
use super::write_lock::take_write_lock;
use store::{SessionSummary, Store};
use tools::error::store_error;
use tools::forget::ForgetData;

/// Returns the rule that tells which sessions the settings and marker files exclude.
pub fn exclusion_rule() -> Result<impl Fn(&SessionSummary) -> bool, ToolError> {
    let rules = LogRules::read(ForgottenRules::default())?;
    Ok(move |session: &SessionSummary| rules.is_unwanted_session(session))
}

/// Forgets the sessions of `data`. `hidden_by` has the pattern for each that is forgotten because its
/// project is hidden.
pub fn forget_sessions(
    store: &Store,
    data: &mut ForgetData,
    hidden_by: &HashMap<String, String>,
) -> Result<(), ToolError> {
    let writer = take_write_lock(store)?;
    writer.forget_sessions(&data.session_ids(), hidden_by).map_err(store_error)?;
    data.is_done = true;
    Ok(())
}

/// Lets the logs be read again of the sessions that were forgotten when their projects were hidden by
/// patterns. Returns the number of sessions.
pub fn undo_hide(store: &Store, patterns: &[String]) -> Result<usize, ToolError> {
    let writer = take_write_lock(store)?;
    let forgotten = writer.forgotten_logs().map_err(store_error)?;
    let ids: Vec<String> =
        patterns.iter().flat_map(|pattern| forgotten.hidden_by(pattern)).collect();
    if ids.is_empty() {
        return Ok(0);
    }
    writer.allow_forgotten(&ids).map_err(store_error)
}

/// Returns whether `id` is the id of an earlier version of the session `of`: the same with eight
/// digits of a hash.
fn is_version_id(id: &str, of: &str) -> bool {
    let digits = id.strip_prefix(of).and_then(|end| end.strip_prefix('~'));
    digits.is_some_and(|digits| {
        digits.len() == 8 && digits.bytes().all(|byte| byte.is_ascii_hexdigit())
    })
}

/// Lets the logs of forgotten sessions be read again: of these, given by unique prefixes, or of all
/// of them. Returns their ids.
pub fn undo_forget(store: &Store, prefixes: &[String]) -> Result<Vec<String>, ToolError> {
    let writer = take_write_lock(store)?;
    let forgotten = writer.forgotten_logs().map_err(store_error)?;
    let known: Vec<&str> = forgotten.session_ids().collect();
    let mut ids: Vec<String> = Vec::new();
    if prefixes.is_empty() {
        ids.extend(known.iter().map(|id| (*id).to_owned()));
    }
    for prefix in prefixes {
        let prefix = prefix.trim();
        let mut matching = known.iter().filter(|id| id.starts_with(prefix)).peekable();
        let first = matching.next();
        // The earlier versions of a session were forgotten with it.
        while let Some(id) = matching.next_if(|id| first.is_some_and(|of| is_version_id(id, of))) {
            ids.push((*id).to_owned());
        }
        match (first, matching.next()) {
            (Some(id), None) => ids.push((*id).to_owned()),
            (Some(first), Some(second)) => {
                let message = format!(
                    "forget --undo: '{prefix}' begins more than one forgotten session, such as {first} and {second}. Give more of the id"
                );
                return Err(ToolError::new(ErrorCode::AmbiguousSessionPrefix, message));
            }
            (None, _) => {
                let message = format!("forget --undo: no forgotten session is called '{prefix}'");
                let error = ToolError::new(ErrorCode::SessionNotFound, message);
                return Err(error.with_suggestion(nearest(prefix, known.iter().copied())));
            }
        }
    }
    writer.allow_forgotten(&ids).map_err(store_error)?;
    Ok(ids)
}
