//! Applies the retention of the settings file to the store.

use std::time::Duration;

use schemas::{ErrorCode, Timestamp, ToolError};

use super::write_lock::{BUSY_RETRY, take_write_lock, take_write_lock_within};
use crate::config::user_settings::KeepRule;
use store::{
    CompactionSums, GROUP_BYTES, KeepLevel, KeepLevels, Snapshot, Store, StoreError, StoreWriter,
    Verify,
};
use tools::compact::CompactData;
use tools::error::store_error;

/// Minimum time between two ingests that drop texts, in microseconds. Each writes a large part of
/// the store again.
const MIN_INTERVAL_US: i64 = 24 * 60 * 60 * 1_000_000;

/// Maximum time that `sessions compact` waits for another writer between two merges of full segments.
const MERGE_LOCK_TIMEOUT: Duration = Duration::from_secs(60);

/// Returns what a compaction would remove.
pub fn preview_compaction(store: &Store, rules: &[KeepRule]) -> Result<CompactData, ToolError> {
    let snapshot = store.take_lazy_snapshot().map_err(store_error)?;
    let levels = choose_keep_levels(&snapshot, rules);
    let sums = snapshot.measure_compaction(&levels).map_err(store_error)?;
    let freed_bytes = estimate_freed_bytes(&snapshot, &sums)?;
    Ok(CompactData { is_dry_run: true, freed_bytes, ..describe_sums(&snapshot, rules, sums) })
}

/// Drops what the rules do not keep, and returns when no file of the store has it any more.
pub fn compact_store(store: &Store, rules: &[KeepRule]) -> Result<CompactData, ToolError> {
    if store.is_absent() {
        let snapshot = store.take_lazy_snapshot().map_err(store_error)?;
        return Ok(describe_sums(&snapshot, rules, CompactionSums::default()));
    }
    let writer = take_write_lock(store)?;
    let before = store.take_lazy_snapshot().map_err(store_error)?;
    let sums = writer.compact(&choose_keep_levels(&before, rules)).map_err(store_error)?;
    let mut reduced = writer.reduced_sessions().map_err(store_error)?;
    reduced.announced = describe_rules(rules);
    writer.record_reduced(&reduced).map_err(store_error)?;
    writer.unlock();
    merge_full_segments(store)?;

    let after = store.take_lazy_snapshot().map_err(store_error)?;
    let freed_bytes = before.manifest().bytes().saturating_sub(after.manifest().bytes());
    let segments_after = after.manifest().segments.len();
    let data = describe_sums(&before, rules, sums);
    Ok(CompactData { freed_bytes, segments_after, ..data })
}

/// Merges the full segments into large ones, then removes the merged ones. Each merge takes seconds,
/// and another writer may take the lock between two merges. If a writer holds the lock for long, the
/// rest is left to the next compaction.
fn merge_full_segments(store: &Store) -> Result<(), ToolError> {
    loop {
        if store.is_absent() {
            return Err(store_error(StoreError::Replaced { path: store.dir().to_owned() }));
        }
        let writer = match take_write_lock_within(store, Verify::Some, MERGE_LOCK_TIMEOUT) {
            Err(error) if error.code == ErrorCode::StoreBusy => return Ok(()),
            result => result?,
        };
        if !writer.merge_full_segments(GROUP_BYTES).map_err(store_error)? {
            return writer.remove_retired().map_err(store_error);
        }
        writer.unlock();
        std::thread::sleep(BUSY_RETRY);
    }
}

/// Applies the rules after an ingest, at most once a day. The first ingest with new rules only
/// announces them. Returns what the user is told.
pub(super) fn keep_after_ingest(
    writer: &StoreWriter,
    rules: &[KeepRule],
) -> Result<Vec<String>, ToolError> {
    let mut notices = Vec::new();
    let restored = writer.settle_restored().map_err(store_error)?;
    if restored > 0 {
        notices.push(format!(
            "{restored} sessions were read again from their logs, because the settings keep more of them now"
        ));
    }

    let mut reduced = writer.reduced_sessions().map_err(store_error)?;
    let announced = describe_rules(rules);
    if reduced.announced != announced {
        if !rules.is_empty() {
            notices.push(format!(
                "settings.toml keeps less of old sessions (store.keep: {announced}). Nothing was dropped yet. `sessions compact --dry-run` shows what it frees; `sessions compact` or the next `sessions ingest` drops it"
            ));
        }
        reduced.announced = announced;
        writer.record_reduced(&reduced).map_err(store_error)?;
        return Ok(notices);
    }
    let age = Timestamp::now().0 - reduced.applied_at;
    if rules.is_empty() || (0..MIN_INTERVAL_US).contains(&age) {
        return Ok(notices);
    }

    let snapshot = writer.take_snapshot().map_err(store_error)?;
    let levels = choose_keep_levels(&snapshot, rules);
    let sums = writer.drop_unkept_texts(&levels).map_err(store_error)?;
    if sums.sessions > 0 {
        let bytes: u64 = sums.dropped.values().map(|dropped| dropped.bytes).sum();
        notices.push(format!(
            "Texts of {} sessions were dropped ({bytes} bytes), as store.keep in settings.toml \
            says: {}",
            sums.sessions, reduced.announced
        ));
    }
    Ok(notices)
}

/// Returns how much the rules keep of each session that is old enough for one: the least of them.
/// A session without any time is kept whole.
pub(super) fn choose_keep_levels(snapshot: &Snapshot, rules: &[KeepRule]) -> KeepLevels {
    let mut levels = KeepLevels::new();
    if rules.is_empty() {
        return levels;
    }
    for session in snapshot.sessions() {
        let Some(ended_at) = session.ended_at else { continue };
        let due = rules.iter().filter(|rule| ended_at < rule.before.0);
        let level = due.map(|rule| rule.level).max();
        if let Some(level) = level.filter(|level| *level > KeepLevel::Full) {
            levels.insert(session.session_id.clone(), level);
        }
    }
    levels
}

/// Returns the rules as the user wrote them; empty if there are none.
fn describe_rules(rules: &[KeepRule]) -> String {
    rules.iter().map(|rule| rule.text.as_str()).collect::<Vec<_>>().join(", ")
}

fn describe_sums(snapshot: &Snapshot, rules: &[KeepRule], sums: CompactionSums) -> CompactData {
    let segments = snapshot.manifest().segments.len();
    CompactData {
        is_dry_run: false,
        keep: rules.iter().map(|rule| rule.text.clone()).collect(),
        sessions: sums.sessions,
        dropped: sums.dropped,
        superseded_rows: sums.superseded_rows,
        segments,
        segments_after: segments,
        store_bytes: snapshot.manifest().bytes(),
        freed_bytes: 0,
    }
}

/// Estimates the bytes on disk of what is removed: all texts count as compressed alike, and all rows
/// as equally large.
fn estimate_freed_bytes(snapshot: &Snapshot, sums: &CompactionSums) -> Result<u64, ToolError> {
    let store_bytes = u128::from(snapshot.manifest().bytes());
    let dropped: u64 = sums.dropped.values().map(|dropped| dropped.bytes).sum();
    let text_bytes = snapshot.text_bytes().map_err(store_error)?.max(1);
    let live_rows = snapshot.event_count();
    let rows = (live_rows + sums.superseded_rows).max(1);
    let of_rows = store_bytes * u128::from(sums.superseded_rows) / u128::from(rows);
    let of_texts = (store_bytes - of_rows) * u128::from(dropped) / u128::from(text_bytes);
    Ok(u64::try_from((of_rows + of_texts).min(store_bytes)).unwrap_or(0))
}
