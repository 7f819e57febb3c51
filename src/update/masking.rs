//! Masks stored text by the rules in force, before it is shown or passed on.

use ingest::plan::version_of_rules;
use schemas::{ErrorCode, ToolError};

use super::write_lock::{LONG_LOCK_TIMEOUT, take_write_lock_within};
use crate::config::settings;
use store::{RowsToMask, Store, Verify};
use tools::error::store_error;

/// Maximum number of sessions that an error names.
const MAX_NAMED_SESSIONS: usize = 5;

/// Returns whether the store has text that other rules masked than those in force, because a rule was
/// added or the program has newer ones.
///
/// # Errors
/// Fails if the rules or the store cannot be read.
pub(crate) fn has_text_of_other_rules(store: &Store) -> Result<bool, ToolError> {
    let rules = version_of_rules(&settings::read_redaction_rules()?);
    store.has_text_of_other_rules(rules).map_err(store_error)
}

/// Masks the text of the store by the rules in force, if other rules masked some of it: rows of
/// sessions, also of those that came from a lake, labels and notes. What was ingested with
/// `--no-redact` stays as it is. Returns what the user should know about the store's folder.
///
/// # Errors
/// Fails if the rules are not valid, if the store cannot be written, and if some text cannot be masked
/// because a part of its session was lost by damage.
pub(crate) fn mask_by_rules_in_force(store: &Store) -> Result<Option<String>, ToolError> {
    if store.is_absent() || !has_text_of_other_rules(store)? {
        return Ok(None);
    }
    let redactor = settings::create_redactor()?;
    store.mask_labels_again(&redactor).map_err(store_error)?;
    let writer = take_write_lock_within(store, Verify::Some, LONG_LOCK_TIMEOUT)?;
    let masked = writer.mask_again(&redactor, RowsToMask::OfOtherRules).map_err(store_error)?;
    if masked.logs > 0 {
        writer.count_responses_once().map_err(store_error)?;
        writer.retire_superseded_segments().map_err(store_error)?;
        writer.merge_small_segments().map_err(store_error)?;
        tracing::info!(sessions = masked.logs, "masked by the rules in force");
    }
    let notice = writer.notice().map(str::to_owned);
    writer.unlock();
    if masked.damaged.is_empty() { Ok(notice) } else { Err(damaged_error(&masked.damaged)) }
}

/// Returns the error about sessions that cannot be masked.
fn damaged_error(sessions: &[String]) -> ToolError {
    let named = &sessions[..sessions.len().min(MAX_NAMED_SESSIONS)];
    let more = if named.len() < sessions.len() { " and others" } else { "" };
    let message = format!(
        "The rules for secrets changed, and {} sessions that lost events by damage cannot be \
        masked by them: {}{more}. `sessions ingest` reads their logs again; if these are gone, \
        `sessions forget ID` removes the rest",
        sessions.len(),
        named.join(", ")
    );
    ToolError::new(ErrorCode::StoreDamaged, message)
}
