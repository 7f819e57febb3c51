//! Words what is wrong with a store, for answers and for commands without an answer.

use schemas::envelope::{Severity, Warning, WarningCode};

use base::sanitize::clean_text;
use store::{FoundFiles, LostLogs, Snapshot};

/// Returns the warnings about the store that a snapshot was taken of.
pub fn store_warnings(snapshot: &Snapshot) -> Vec<Warning> {
    let mut warnings = Vec::new();
    let condition = snapshot.condition();
    if let Some(found) = &condition.resized {
        let message = format!(
            "The store is damaged, so events may be missing: {}. Run `sessions ingest --verify`: it sets damaged segments aside and reads their logs again",
            describe_files(found)
        );
        warnings.push(Warning::new(WarningCode::StoreDamaged, Severity::Error, message));
    }
    for message in describe_lost_logs(&snapshot.manifest().lost) {
        warnings.push(Warning::new(WarningCode::StoreDamaged, Severity::Error, message));
    }
    if let Some(damage) = snapshot.labels().damage() {
        let message = format!("labels.json cannot be read, so labels are missing: {damage}");
        warnings.push(Warning::new(WarningCode::LabelsUnreadable, Severity::Error, message));
    }
    if let Some(found) = &condition.writable {
        let message = format!(
            "Other users can write to the store: {}. Run `sessions ingest --verify`: it makes the store private and compares it with its checksums",
            describe_files(found)
        );
        warnings.push(Warning::new(WarningCode::StoreNotPrivate, Severity::Warning, message));
    }
    warnings
}

/// Describes the first of some files, and how many others there are.
fn describe_files(found: &FoundFiles) -> String {
    let first = format!("{} {}", clean_text(&found.first.to_string_lossy()), found.reason);
    match found.count {
        1 => first,
        2 => format!("{first}, and 1 other place"),
        count => format!("{first}, and {} other places", count - 1),
    }
}

/// Describes what was lost with damaged segments and is not read again yet, in whole sentences.
pub fn describe_lost_logs(lost: &LostLogs) -> Vec<String> {
    let mut sentences = Vec::new();
    if let Some(first) = lost.paths.first() {
        let logs = match lost.paths.len() {
            1 => "1 log is".to_owned(),
            count => format!("{count} logs are"),
        };
        sentences.push(format!(
            "The events of {logs} missing since a damaged segment was set aside: {}. `sessions ingest` reads them when the logs are back; `sessions ingest --verify` forgets those that are gone",
            clean_text(first)
        ));
    }
    if !lost.segments.is_empty() {
        let segments: Vec<_> = lost.segments.iter().map(i64::to_string).collect();
        sentences.push(format!(
            "Segment {} was damaged together with the list of its logs, so sessions may be missing. Run `sessions ingest` for every folder that you ingested before; `sessions ingest --verify` ends this message",
            segments.join(", ")
        ));
    }
    sentences
}
