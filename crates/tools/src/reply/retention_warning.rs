//! Warns about sessions whose texts the retention dropped.

use schemas::envelope::{Severity, Warning, WarningCode};

use store::{KeepLevel, Snapshot, StoreError, StoredSession};

/// Returns the warning about the sessions that `passes` selects; `None` if they are all whole.
pub fn dropped_texts_warning(
    snapshot: &Snapshot,
    passes: impl Fn(&StoredSession) -> bool,
) -> Result<Option<Warning>, StoreError> {
    let reduced = snapshot.reduced_sessions()?;
    if reduced.is_empty() {
        return Ok(None);
    }
    let is_reduced = |row: &StoredSession| reduced.level_of(row.id()) > KeepLevel::Full;
    let rows = snapshot.sessions().iter();
    let sessions = rows.filter(|row| is_reduced(row) && passes(row)).count();
    if sessions == 0 {
        return Ok(None);
    }
    let these = if sessions == 1 { "1 session".to_owned() } else { format!("{sessions} sessions") };
    let message = format!(
        "Texts of {these} were dropped by the retention settings (store.keep in settings.toml); \
        they are not searched, analyzed or shown"
    );
    Ok(Some(Warning::new(WarningCode::TextsDropped, Severity::Info, message)))
}
