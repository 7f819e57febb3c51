//! Formats what `push`, `pull` and `lake compact` did as text.

use std::fmt::Write as _;

use super::layout::Layout;
use super::painted::Painted;
use super::show::{Show, append_omitted};
use crate::lake::{LakeCompaction, PullReport, PushReport};
use base::numbers::{count_of, to_megabytes};
use base::sanitize::one_line;

/// Maximum number of sessions and problems listed.
const MAX_LISTED: usize = 100;

impl Show for PushReport {
    fn paint(&self, _: &Layout) -> Painted {
        let mut out = String::new();
        if self.is_dry_run {
            out.push_str("Dry run: nothing was written. A push would do this:\n");
            for session in self.published.iter().take(MAX_LISTED) {
                let _ = writeln!(
                    out,
                    "  {}  {}  {}  {}  {}{}{}{}",
                    session.session_id,
                    one_line(session.project.as_deref().unwrap_or("")),
                    count_of(session.events, "event"),
                    count_of(session.objects, "object"),
                    count_of(session.bytes, "byte"),
                    session.log_bytes.map_or("", |_| " with its log"),
                    describe_counts("masked", &session.masked),
                    describe_counts("unmasked in the lake until now", &session.unmasked)
                );
            }
            append_omitted(self.published.len(), MAX_LISTED, &mut out);
        }
        let _ = writeln!(out, "lake       {}", one_line(&self.destination));
        let _ = writeln!(out, "as         {} of {}", self.user_name, self.machine);
        let _ = writeln!(
            out,
            "published  {}, {}, {:.1} MB{}",
            count_of(self.published.len(), "session"),
            count_of(self.objects, "object"),
            to_megabytes(self.bytes),
            describe_counts("masked", &self.masked)
        );
        for session in self.published.iter().take(MAX_LISTED) {
            if let Some(other) = &session.forked_from {
                let id = &session.session_id;
                let _ = writeln!(
                    out,
                    "fork       {id}: another machine has a different continuation of {other}"
                );
            }
        }
        let _ = writeln!(out, "unchanged  {}", self.unchanged);
        if self.logs > 0 {
            let _ = writeln!(out, "logs       {} in the lake, with secrets masked", self.logs);
        }
        if self.unarchived > 0 {
            let sessions = count_of(self.unarchived, "published session");
            let _ = writeln!(
                out,
                "no log     {sessions}: set keep_logs = \"masked\" under [store] and run `sessions ingest`, so that other machines can resume them"
            );
        }
        if self.unmovable > 0 {
            let sessions = count_of(self.unmovable, "published session");
            let _ = writeln!(
                out,
                "no log     {sessions}: the logs are in databases other than OpenCode's, larger than 128 MB, outside the folders of their agents or named by a secret, so that other machines cannot resume them"
            );
        }
        if self.held_by_others > 0 {
            let _ =
                writeln!(out, "elsewhere  {} published by another machine", self.held_by_others);
        }
        if !self.removed.is_empty() {
            let _ = writeln!(out, "removed    {} from the lake", self.removed.len());
        }
        if self.unredacted > 0 {
            let _ = writeln!(out, "refused    {} whose secrets are not masked", self.unredacted);
        }
        for warning in self.warnings.iter().take(MAX_LISTED) {
            let _ = writeln!(out, "warning    {}", one_line(warning));
        }
        let _ = writeln!(out, "requests   {}", self.requests);
        Painted::from_text(&out)
    }
}

impl Show for PullReport {
    fn paint(&self, _: &Layout) -> Painted {
        let mut out = String::new();
        let _ = writeln!(out, "lake       {}", one_line(&self.source));
        let _ = writeln!(out, "machines   {}", self.machines);
        let _ = writeln!(
            out,
            "imported   {}, {}, {:.1} MB",
            count_of(self.imported, "session"),
            count_of(self.events, "event"),
            to_megabytes(self.bytes)
        );
        let _ = writeln!(out, "unchanged  {}", self.unchanged);
        if self.logs > 0 {
            let _ = writeln!(out, "logs       {} for `sessions resume`", self.logs);
        }
        if self.removed > 0 {
            let _ = writeln!(out, "removed    {} that the lake no longer has", self.removed);
        }
        if self.filtered > 0 {
            let _ = writeln!(out, "left out   {} by the filters", self.filtered);
        }
        if self.excluded > 0 {
            let _ = writeln!(out, "excluded   {} by the settings", self.excluded);
        }
        if self.known_here > 0 {
            let _ = writeln!(
                out,
                "known      {} from logs of this machine, or forgotten",
                self.known_here
            );
        }
        if self.forgotten_events > 0 {
            let events = count_of(self.forgotten_events, "event");
            let _ = writeln!(out, "forgotten  {events} of these sessions, which are copies");
        }
        for problem in self.problems.iter().take(MAX_LISTED) {
            let _ = writeln!(out, "problem    {}", one_line(problem));
        }
        append_omitted(self.problems.len(), MAX_LISTED, &mut out);
        let _ = writeln!(out, "requests   {}", self.requests);
        Painted::from_text(&out)
    }
}

impl Show for LakeCompaction {
    fn paint(&self, _: &Layout) -> Painted {
        let mut out = String::new();
        let _ = writeln!(out, "lake       {}", one_line(&self.destination));
        let _ = writeln!(out, "days       {} past ones, {} changed", self.days, self.changed_days);
        let _ = writeln!(
            out,
            "written    {} of {}, {:.1} MB",
            count_of(self.written, "large object"),
            count_of(self.joined, "small one"),
            to_megabytes(self.bytes)
        );
        let _ = writeln!(out, "unchanged  {}", self.unchanged);
        if self.removed > 0 {
            let removed = count_of(self.removed, "file");
            let _ = writeln!(out, "removed    {removed} no longer needed");
        }
        if self.left_out > 0 {
            let _ = writeln!(
                out,
                "left out   {} that changed meanwhile; the next compaction joins them",
                count_of(self.left_out, "object")
            );
        }
        for problem in self.problems.iter().take(MAX_LISTED) {
            let _ = writeln!(out, "problem    {}", one_line(problem));
        }
        append_omitted(self.problems.len(), MAX_LISTED, &mut out);
        let _ = writeln!(out, "requests   {}", self.requests);
        Painted::from_text(&out)
    }
}

/// Returns counts of secrets after a comma: `, masked 3 github_token, 1 password`; nothing if there are
/// none.
fn describe_counts(what: &str, secrets: &std::collections::BTreeMap<String, u64>) -> String {
    if secrets.is_empty() {
        return String::new();
    }
    let kinds: Vec<_> = secrets.iter().map(|(kind, count)| format!("{count} {kind}")).collect();
    format!(", {what} {}", one_line(&kinds.join(", ")))
}
