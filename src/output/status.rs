//! Formats what a store holds and how fresh it is.

use anstyle::Style;

use super::layout::Layout;
use super::painted::{DIM, FAILED, PLAIN, Painted, WARNED};
use super::show::Show;
use super::wrapped::wrap_lines;
use base::numbers::{count_of, list_counts, to_megabytes};
use base::sanitize::{clean_text, one_line};
use tools::status::{ArchiveFigures, StatusData};

/// The cells of the names of figures.
const LABEL_WIDTH: usize = 11;

/// Number of segments that a compaction has to save before it is recommended. A search for an absent
/// word spends about 5 µs on each.
const MANY_SEGMENTS: usize = 32;

/// A figure of a store. Its name is empty if it continues the figure before it.
struct StatusRow {
    style: Style,
    label: &'static str,
    value: String,
}

impl Show for StatusData {
    fn paint(&self, layout: &Layout) -> Painted {
        let mut painted = Painted::new();
        for row in collect_rows(self, layout) {
            let width = layout.width.saturating_sub(LABEL_WIDTH);
            for (at, line) in wrap_lines(&clean_text(&row.value), width).iter().enumerate() {
                let label = if at == 0 { row.label } else { "" };
                let label_style = if row.style == PLAIN { DIM } else { row.style };
                painted.push(label_style, &format!("{label:<LABEL_WIDTH$}"));
                painted.push(row.style, line);
                painted.end_line();
            }
        }
        painted
    }
}

/// Collects the figures.
fn collect_rows(data: &StatusData, layout: &Layout) -> Vec<StatusRow> {
    let mut rows = Vec::new();
    let mut push = |label, value| rows.push(StatusRow { style: PLAIN, label, value });
    push("store", data.store.clone());
    if data.segments - data.segments_after_compaction >= MANY_SEGMENTS {
        let after = data.segments_after_compaction;
        let advice = format!("`sessions compact` merges them into about {after} large ones");
        push("", advice);
    }
    let updated = data.last_updated.as_deref().map(|time| layout.time(Some(time)));
    push("updated", updated.unwrap_or_else(|| "never: run `sessions ingest`".to_owned()));
    let classes = list_counts(&data.sessions_by_class);
    push("sessions", format!("{} ({classes})", layout.count(data.sessions as u64)));
    let copied = layout.count(data.replay_events.unsigned_abs());
    push("events", format!("{} ({copied} copied)", layout.count(data.events)));
    let by_provider: Vec<(&String, String)> = data
        .events_by_provider
        .iter()
        .map(|(provider, events)| (provider, layout.count(events.unsigned_abs())))
        .collect();
    let names = by_provider.iter().map(|(provider, _)| provider.len()).max().unwrap_or(0);
    let digits = by_provider.iter().map(|(_, events)| events.len()).max().unwrap_or(0);
    for (provider, events) in by_provider {
        push("", format!("{provider:<names$}  {events:>digits$}"));
    }
    let newest = data.newest_event.as_deref().map(|time| layout.time(Some(time)));
    push("newest", newest.unwrap_or_else(|| "none".to_owned()));
    let mut size = format!("{:.1} MB", to_megabytes(data.store_bytes));
    if data.log_bytes > 0 {
        let logs = to_megabytes(data.log_bytes);
        size.push_str(&format!(" for {logs:.1} MB of logs ({:.1} %)", data.store_ratio * 100.0));
    }
    push("size", size);

    push("files", list_counts(&data.files));
    if data.pending > 0 {
        push("pending", data.pending.to_string());
    }
    for file in &data.pending_files {
        push("", one_line(file));
    }
    if !data.redactions.is_empty() {
        push("masked", list_counts(&data.redactions));
    }
    for (kept, sessions) in &data.reduced_sessions {
        push("reduced", format!("{} to {kept} by the retention", count_of(sessions, "session")));
    }
    append_lost_logs(data, &mut rows);
    append_incomplete(data, &mut rows);
    rows
}

/// Appends which logs are gone, and what the archive has.
fn append_lost_logs(data: &StatusData, rows: &mut Vec<StatusRow>) {
    let mut push = |label, value| rows.push(StatusRow { style: PLAIN, label, value });
    let lost = data.lost_logs.iter().map(|(provider, lost)| {
        format!("{provider} {} ({} archived)", lost.sessions, lost.archived)
    });
    let lost: Vec<String> = lost.collect();
    if !lost.is_empty() {
        push("logs gone", lost.join(", "));
    }
    if let Some(ArchiveFigures { sessions, exact, bytes }) = data.archive {
        let exact = if exact > 0 { format!(", {exact} with their secrets") } else { String::new() };
        let sessions = count_of(sessions, "session");
        push("archive", format!("{:.1} MB: logs of {sessions}{exact}", to_megabytes(bytes)));
    }
}

/// Appends what the store could not read as expected.
fn append_incomplete(data: &StatusData, rows: &mut Vec<StatusRow>) {
    let mut push = |style, label, value| rows.push(StatusRow { style, label, value });
    if data.outdated_logs + data.outdated_gone > 0 {
        let outdated = format!(
            "{} logs were read by another version: `sessions ingest` reads them again; {} more are gone and keep what was read",
            data.outdated_logs, data.outdated_gone
        );
        push(PLAIN, "outdated", outdated);
    }
    for (record, sessions) in &data.uncounted_usage {
        let record = one_line(record);
        let sessions = count_of(sessions, "session");
        let uncounted = format!("tokens in {record}, a record unknown to its decoder ({sessions})");
        push(PLAIN, "uncounted", uncounted);
    }
    if data.incomplete_files > 0 {
        let end = if data.incomplete_files == 1 { "file ends" } else { "files end" };
        let incomplete = format!(
            "{} {end} inside a line ({} bytes pending)",
            data.incomplete_files, data.incomplete_bytes
        );
        push(PLAIN, "incomplete", incomplete);
    }
    if !data.problems.is_empty() {
        push(PLAIN, "problems", list_counts(&data.problems));
    }

    for session in &data.incomplete_sessions {
        let lost = format!("events of {session}: its log and one of its segments are gone");
        push(FAILED, "LOST", lost);
    }
    for damage in &data.damaged_segments {
        let damaged = format!("segment {damage}; run `sessions ingest` to read the logs again");
        push(FAILED, "DAMAGED", damaged);
    }
    for warning in &data.warnings {
        push(WARNED, "WARNING", warning.clone());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_compaction_is_recommended_if_it_saves_many_segments() {
        for (after, is_recommended) in [(95, false), (64, false), (63, true), (27, true)] {
            let data = StatusData {
                segments: 95,
                segments_after_compaction: after,
                ..StatusData::default()
            };
            let advice = format!("`sessions compact` merges them into about {after} large");
            assert_eq!(
                data.paint(&Layout::plain(None)).as_str().contains(&advice),
                is_recommended,
                "{after}"
            );
        }
    }
}
