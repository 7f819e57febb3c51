//! Formats which secrets were replaced in logs, and what became of the backup.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::layout::Layout;
use super::painted::Painted;
use super::show::{Show, append_omitted};
use super::wrapped::wrap_lines;
use crate::scrub::{BackupAction, BackupData, LeftCells, LeftOutLog, ScrubData, ScrubbedFile};
use base::numbers::{count_of, format_bytes};
use tools::secrets::{LogBackup, UnsearchedFile};

/// Maximum number of logs listed.
const MAX_LISTED: usize = 100;

impl Show for ScrubData {
    fn paint(&self, layout: &Layout) -> Painted {
        let mut out = String::new();
        append_list(&self.logs, &mut out, |log| describe_log(log, layout));
        if !self.left_out.is_empty() {
            out.push_str("Left as they are:\n");
            append_list(&self.left_out, &mut out, |log| describe_left_out(log, layout));
        }
        if !self.left_cells.is_empty() {
            let verb = if self.is_done { "are" } else { "would be" };
            let _ = writeln!(out, "Replaced secrets {verb} still in other cells of the databases:");
            append_list(&self.left_cells, &mut out, describe_left_cells);
        }
        append_unsearched(&self.unsearched_files, &mut out);
        for line in wrap_lines(&summarize(self), layout.width) {
            let _ = writeln!(out, "{line}");
        }
        Painted::from_text(&out)
    }
}

impl Show for BackupData {
    fn paint(&self, layout: &Layout) -> Painted {
        let mut out = String::new();
        append_list(&self.restored, &mut out, Clone::clone);
        if !self.left_out.is_empty() {
            out.push_str("Left as they are:\n");
            append_list(&self.left_out, &mut out, |log| {
                format!("{}: {} (backup: {})", log.file, log.reason, log.backup)
            });
        }
        let kept = describe_backup(&self.backup);
        let restored = count_of(self.restored.len(), "log");
        let summary = match (self.action, self.is_done) {
            (BackupAction::Forget, true) => format!("Removed {kept}."),
            (BackupAction::Forget, false) => {
                format!("Would remove {kept}. Nothing was changed. Add --yes to remove them.")
            }
            (BackupAction::Restore, true) => format!(
                "Put {restored} back, with the secrets. The backup stays until `sessions secrets --forget-backup --yes`."
            ),
            (BackupAction::Restore, false) => format!(
                "Would put {restored} back, with the secrets. Nothing was changed. Add --yes to put them back."
            ),
        };
        for line in wrap_lines(&summary, layout.width) {
            let _ = writeln!(out, "{line}");
        }
        Painted::from_text(&out)
    }
}

fn append_list<T>(items: &[T], out: &mut String, describe: impl Fn(&T) -> String) {
    for item in items.iter().take(MAX_LISTED) {
        let _ = writeln!(out, "  {}", describe(item));
    }
    append_omitted(items.len(), MAX_LISTED, out);
}

fn describe_log(log: &ScrubbedFile, layout: &Layout) -> String {
    let replaced = describe_kinds(&log.replaced);
    let mut line = format!("{}  {}  {replaced}", layout.session_id(&log.session_id), log.provider);
    if !log.remaining.is_empty() {
        let _ = write!(line, "; remain: {}", describe_kinds(&log.remaining));
    }
    let _ = write!(line, "  {}", log.file);
    line
}

fn describe_left_out(log: &LeftOutLog, layout: &Layout) -> String {
    format!("{}  {}: {}", layout.session_id(&log.session_id), log.file, log.reason)
}

fn describe_left_cells(left: &LeftCells) -> String {
    let LeftCells { file, table, column, cells } = left;
    format!("{file}: {} in {table}.{column}", describe_kinds(cells))
}

/// Returns the numbers of secrets, as in `2 github_token, 1 jwt`.
fn describe_kinds(counts: &BTreeMap<String, u64>) -> String {
    if counts.is_empty() {
        return "nothing to replace".to_owned();
    }
    let counts: Vec<String> =
        counts.iter().map(|(kind, count)| format!("{count} {kind}")).collect();
    counts.join(", ")
}

fn summarize(data: &ScrubData) -> String {
    if data.logs.is_empty() && data.left_out.is_empty() {
        return "No secrets were found in these logs.\n".to_owned();
    }
    let verb = if data.is_done { "Replaced" } else { "Would replace" };
    let replaced_logs = data.logs.iter().filter(|log| !log.replaced.is_empty()).count();
    let mut out = format!(
        "{verb} {} in {}.\n",
        count_of(data.replaced.values().sum::<u64>(), "place"),
        count_of(replaced_logs, "log"),
    );
    if !data.remaining.is_empty() {
        let count = data.remaining.values().sum::<u64>();
        let _ = writeln!(
            out,
            "{} {}: {}. They are in names, ids or other values that are not replaced, or only the text of an event shows them.",
            count_of(count, "secret"),
            if count == 1 { "remains" } else { "remain" },
            describe_kinds(&data.remaining)
        );
    }
    if !data.is_done {
        out.push_str("Nothing was changed. End the agents, then add --yes.\n");
        return out;
    }
    if let Some(backup) = &data.backup {
        let _ = writeln!(
            out,
            "The logs as they were: {}. `sessions secrets --forget-backup --yes` removes them, --restore-backup puts back what --scrub replaced.",
            describe_backup(backup)
        );
    }
    out
}

/// Describes the backup of logs.
pub(super) fn describe_backup(backup: &LogBackup) -> String {
    format!(
        "{} ({}, with their secrets) in {}",
        count_of(backup.logs, "log"),
        format_bytes(backup.bytes),
        backup.folder
    )
}

/// Appends which files were not searched.
pub(super) fn append_unsearched(files: &[UnsearchedFile], out: &mut String) {
    if let Some(first) = files.first() {
        let files = count_of(files.len(), "file");
        let _ = writeln!(out, "Not searched: {files}, such as {}: {}", first.file, first.reason);
    }
}
