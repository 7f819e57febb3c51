//! Formats the results of an ingest and of setting up clients, and the agents whose logs were found, as
//! text.

use std::fmt::Write as _;
use std::path::Path;
use std::time::Duration;

use ingest::run::report::IngestReport;
use schemas::Provider;
use schemas::problem::{Problem, ProblemKind};

use super::layout::Layout;
use super::painted::Painted;
use super::show::{Show, append_omitted};
use crate::setup::check::RegistrationChecks;
use crate::setup::installation::Installation;
use crate::setup::uninstall::Uninstall;
use crate::setup::{AllClientsSetup, ConfigWritten};
use base::numbers::{count_of, list_counts, to_megabytes};
use base::sanitize::one_line;
use tools::doctor::{DoctorData, LogFolder};

/// The next step for files and folders that cannot be read.
pub(super) const UNREADABLE_ADVICE: &str =
    "Check their permissions and those of the folders above them, then run `sessions ingest` again";

/// The last line after an ingest that read something.
const NEXT_STEP: &str =
    "next: `sessions list` shows the sessions, `sessions search WORDS` finds what was said\n";

/// Maximum number of problems shown after an ingest.
const MAX_PROBLEMS: usize = 10;

/// Maximum number of logs shown that a dry run leaves out.
const MAX_EXCLUDED_LOGS: usize = 50;

/// Maximum number of earlier versions listed.
const MAX_EARLIER_VERSIONS: usize = 20;

impl Show for IngestReport {
    fn paint(&self, _: &Layout) -> Painted {
        let mut out = String::new();
        if self.is_dry_run {
            out.push_str("Dry run: nothing was written. An ingest would read:\n");
        }
        out.push_str(&file_counts(self));
        if self.sessions > 0 {
            let copied = match self.replay_events {
                0 => String::new(),
                copied => format!(" ({copied} copied)"),
            };
            let speed = if self.mb_per_second < 1.0 {
                String::new()
            } else {
                format!(", {:.0} MB/s", self.mb_per_second)
            };
            let _ = writeln!(
                out,
                "{} read, {}{copied} from {}, {:.1} MB in {:.2} s{speed}",
                count_of(self.sessions, "session"),
                count_of(self.events, "event"),
                count_of(self.objects, "record"),
                to_megabytes(self.bytes_read),
                self.elapsed_ms as f64 / 1000.0,
            );
        }
        if !self.sessions_by_class.is_empty() {
            let total: usize = self.sessions_by_class.values().sum();
            let classes = list_counts(&self.sessions_by_class);
            let _ = writeln!(out, "{} in the store ({classes})", count_of(total, "session"));
        }
        for (provider, numbers) in &self.by_provider {
            let _ = writeln!(
                out,
                "    {provider}: {}, {:.1} MB, {}, {}",
                count_of(numbers.files, "file"),
                to_megabytes(numbers.bytes),
                count_of(numbers.objects, "record"),
                count_of(numbers.events, "event")
            );
        }

        for version in self.earlier_versions.iter().take(MAX_EARLIER_VERSIONS) {
            let _ = writeln!(
                out,
                "the log of {} was rewritten; what it no longer contains is kept as {}",
                version.session_id, version.kept_as
            );
        }
        append_omitted(self.earlier_versions.len(), MAX_EARLIER_VERSIONS, &mut out);
        if self.files_excluded > 0 {
            let logs = count_of(self.files_excluded, "log");
            let _ = writeln!(out, "{logs} left out: excluded or forgotten");
        }
        for log in self.excluded_logs.iter().take(MAX_EXCLUDED_LOGS) {
            let project = log.project.as_deref().map(|name| format!(" ({})", one_line(name)));
            let _ = writeln!(out, "    {}{}", one_line(&log.path), project.unwrap_or_default());
        }
        append_omitted(self.excluded_logs.len(), MAX_EXCLUDED_LOGS, &mut out);
        for session in self.continued.iter().take(MAX_EXCLUDED_LOGS) {
            let _ = writeln!(
                out,
                "session {} continues a forgotten one: {} left out, {} kept",
                session.session_id,
                count_of(session.events_left_out.cast_unsigned(), "event"),
                session.events_kept
            );
        }
        append_omitted(self.continued.len(), MAX_EXCLUDED_LOGS, &mut out);
        if self.segments_set_aside > 0 {
            let _ = writeln!(out, "{}", describe_set_aside(self));
        }
        for notice in &self.notices {
            let _ = writeln!(out, "{notice}");
        }
        out.push_str(&problem_lines(self));
        if self.sessions > 0 && !self.is_dry_run {
            out.push_str(NEXT_STEP);
        }
        Painted::from_text(&out)
    }
}

/// Formats the numbers of files by what became of them. Those that are zero are left out.
fn file_counts(report: &IngestReport) -> String {
    let counts = [
        (report.files_new, "new"),
        (report.files_grown, "grown"),
        (report.files_rewritten, "rewritten"),
        (report.files_unchanged, "unchanged"),
        (report.files_vanished, "vanished"),
        (report.files_empty, "empty"),
        (report.files_sidecar, "next to their logs"),
        (report.files_unknown, "of unknown format"),
        (report.files_failed, "unreadable"),
    ];
    let counts: Vec<String> = counts
        .iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, what)| format!("{count} {what}"))
        .collect();
    let files = count_of(report.files, "file");
    if counts.is_empty() {
        format!("{files}\n")
    } else {
        format!("{files}: {}\n", counts.join(", "))
    }
}

/// Formats the numbers of problems by kind, and the first of them.
fn problem_lines(report: &IngestReport) -> String {
    let mut out = String::new();
    if !report.problems.is_empty() {
        let _ = writeln!(out, "problems: {}", list_counts(&report.problems));
    }
    for problem in report.problem_list.iter().take(MAX_PROBLEMS) {
        let _ = writeln!(
            out,
            "    {}:{} (byte {}) {}: {}",
            one_line(&problem.path),
            problem.line,
            problem.byte,
            problem.kind,
            one_line(&problem.message)
        );
    }
    if report.problems.contains_key(ProblemKind::Unreadable.as_str()) {
        let _ = writeln!(
            out,
            "unreadable files and folders: events read from them earlier are kept. \
            {UNREADABLE_ADVICE}"
        );
    }
    out
}

impl Show for ConfigWritten {
    fn paint(&self, _: &Layout) -> Painted {
        Painted::from_text(&describe_written(self))
    }
}

fn describe_written(written: &ConfigWritten) -> String {
    let path = written.path.display();
    match (&written.backup, written.changed) {
        (_, false) => format!("{path} is already up to date\n"),
        (None, true) => format!("wrote {path}\n"),
        (Some(backup), true) => {
            format!("wrote {path}; the previous file is {}\n", backup.display())
        }
    }
}

impl Show for Installation {
    fn paint(&self, _: &Layout) -> Painted {
        Painted::from_text(&format!(
            "sessions {} at {}, installed by: {}\nto upgrade: {}\n",
            self.version,
            self.path.display(),
            self.installed_by,
            self.upgrade
        ))
    }
}

impl Show for Uninstall {
    fn paint(&self, _: &Layout) -> Painted {
        let mut out = String::new();
        let verb = if self.is_done { "removed" } else { "would remove" };
        for part in &self.parts {
            let path = part.path.display();
            let _ = match &part.error {
                Some(error) => writeln!(out, "not removed: {}: {error}", part.what),
                None => writeln!(out, "{verb}: {} in {path}", part.what),
            };
        }
        for sentence in &self.remaining {
            let _ = writeln!(out, "{sentence}");
        }
        if !self.is_done {
            out.push_str("Nothing was changed. Add --yes to remove this.\n");
        }
        Painted::from_text(&out)
    }
}

impl Show for RegistrationChecks {
    fn paint(&self, _: &Layout) -> Painted {
        let mut out = String::new();
        for check in &self.checks {
            let _ = match (&check.problem, check.tools, check.start_ms) {
                (None, Some(tools), Some(ms)) => {
                    writeln!(out, "{}: works: {tools} tools after {ms} ms", check.client)
                }
                (Some(problem), ..) => writeln!(out, "{}: {problem}", check.client),
                (None, ..) => writeln!(out, "{}: works", check.client),
            };
        }
        Painted::from_text(&out)
    }
}

impl Show for AllClientsSetup {
    fn paint(&self, _: &Layout) -> Painted {
        let mut out = String::new();
        for setup in &self.clients {
            let _ = match (&setup.written, &setup.error) {
                (Some(written), _) => {
                    write!(out, "{}: {}", setup.client, describe_written(written))
                }
                (None, Some(error)) => writeln!(out, "{}: {error}", setup.client),
                (None, None) => writeln!(out, "{}: {}", setup.client, setup.path.display()),
            };
        }
        Painted::from_text(&out)
    }
}

/// The logs of an agent that were found.
struct FoundLogs {
    provider: Provider,
    files: usize,
    bytes: u64,
}

/// Returns what was found of each agent that has logs.
fn found_logs(found: &DoctorData) -> Vec<FoundLogs> {
    let found = found.providers.iter().map(|health| FoundLogs {
        provider: health.provider,
        files: health.places.iter().map(|place| place.files).sum(),
        bytes: health.places.iter().map(|place| place.bytes).sum(),
    });
    found.filter(|logs| logs.files > 0).collect()
}

/// Returns the agents whose logs were found, with the number and size of the files. `None` if there
/// are no logs.
pub fn found_logs_text(found: &DoctorData) -> Option<String> {
    let mut out = String::from("Found the logs of:\n");
    let found = found_logs(found);
    for FoundLogs { provider, files, bytes } in &found {
        let provider = provider.as_str();
        let _ = writeln!(out, "    {provider:<12} {files} files, {:.1} MB", to_megabytes(*bytes));
    }
    (!found.is_empty()).then_some(out)
}

/// Number of agents that the message about missing logs names.
const NAMED_AGENTS: usize = 4;

/// Says in which folders logs were looked for: those of the first agents, and how many more there are.
/// Folders in `home` begin with `~`.
pub fn searched_folders(found: &DoctorData, home: &Path) -> String {
    let with_decoder = found.providers.iter().filter(|health| health.base.is_none());
    let mut with_decoder: Vec<_> = with_decoder.collect();
    with_decoder.sort_by_key(|health| health.provider);
    let mut places = with_decoder.iter().filter_map(|health| health.places.first());
    let shown = |place: &LogFolder| path_below_home(&place.path, home);
    let named: Vec<String> = places.by_ref().take(NAMED_AGENTS).map(shown).collect();
    let more = places.count();
    format!("{} and {more} more folders (`sessions doctor` lists them)", named.join(", "))
}

/// Formats a path. One in `home` begins with `~`.
pub fn path_below_home(path: &Path, home: &Path) -> String {
    match path.strip_prefix(home) {
        Ok(below) => Path::new("~").join(below).display().to_string(),
        Err(_) => path.display().to_string(),
    }
}

/// Returns the agents whose logs were found, on one line. `None` if there are no logs.
pub fn found_logs_line(found: &DoctorData) -> Option<String> {
    let found = found_logs(found);
    let size = to_megabytes(found.iter().map(|logs| logs.bytes).sum());
    let agents =
        found.iter().map(|logs| format!("{} of {}", count_of(logs.files, "log"), logs.provider));
    let agents = agents.collect::<Vec<_>>().join(", ");
    (!found.is_empty()).then(|| format!("{agents} ({size:.1} MB)"))
}

/// Returns what failed in a run, for output that has no report.
pub fn describe_ingest_failures(report: &IngestReport) -> Vec<String> {
    let mut failures = Vec::new();
    if report.segments_set_aside > 0 {
        failures.push(describe_set_aside(report));
    }
    if report.files_failed > 0 {
        let is_unreadable = |problem: &&Problem| problem.kind == ProblemKind::Unreadable;
        let first = report.problem_list.iter().find(is_unreadable).map(|problem| {
            format!(", the first {}: {}", one_line(&problem.path), one_line(&problem.message))
        });
        failures.push(format!(
            "{} could not be read{}. {UNREADABLE_ADVICE}",
            count_of(report.files_failed, "file"),
            first.unwrap_or_default()
        ));
    }
    failures
}

/// Describes the damaged segments of the store that a run set aside.
fn describe_set_aside(report: &IngestReport) -> String {
    format!(
        "{} damaged segments were set aside, and their logs were read again. Events whose log is gone are lost",
        report.segments_set_aside
    )
}

/// Returns the line about the first ingest, which ran before another command.
pub fn first_ingest_line(report: &IngestReport) -> String {
    let seconds = Duration::from_millis(report.elapsed_ms).as_secs_f64();
    format!(
        "{} with {} read in {seconds:.1} s",
        count_of(report.sessions, "session"),
        count_of(report.events, "event")
    )
}
