//! Formats the state of the agents' logs.

use std::fmt::Write as _;

use super::health::UNREADABLE_ADVICE;
use super::layout::Layout;
use super::painted::{AGENT, DIM, FAILED, PLAIN, Painted, STRONG, WARNED};
use super::show::Show;
use super::wrapped::push_wrapped;
use base::cells::{truncate_end, truncate_start};
use base::numbers::{count_of, format_dollars, list_counts, to_megabytes};
use base::sanitize::{clean_text, one_line};
use ingest::provider::encrypted::EncryptedLogs;
use store::KeepLogs;
use tools::doctor::{CostDifference, DoctorData, Drift, LogFolder, ProviderHealth, Retention};

/// The cells before the lines about an agent.
const INDENT: &str = "    ";

/// What it means that an agent is not verified.
const UNVERIFIED: &str = "unverified: its folders and format are known from one other reader only";

impl Show for DoctorData {
    fn paint(&self, layout: &Layout) -> Painted {
        let mut painted = Painted::new();
        let (present, absent): (Vec<&ProviderHealth>, Vec<&ProviderHealth>) =
            self.providers.iter().partition(|health| layout.is_plain || is_present(health));
        let names = present.iter().map(|health| name_agent(health).len());
        let name_width = names.max().unwrap_or(0) + 2;
        for health in present {
            push_provider(&mut painted, health, name_width, layout);
        }
        if !absent.is_empty() {
            let names: Vec<String> = absent.into_iter().map(name_absent).collect();
            let text = format!("no logs or sessions of: {}", names.join(", "));
            push_wrapped(&mut painted, DIM, "", &text, layout.width, usize::MAX);
        }

        for logs in &self.encrypted {
            let text = describe_encrypted(logs);
            push_wrapped(&mut painted, WARNED, "", &text, layout.width, usize::MAX);
        }

        push_archive(&mut painted, self, layout);
        if !self.redactions.is_empty() {
            painted.push(STRONG, "Secrets masked");
            painted.end_line();
            let kinds = list_counts(&self.redactions);
            push_wrapped(&mut painted, PLAIN, INDENT, &kinds, layout.width, usize::MAX);
        }
        if !self.cost_differences.is_empty() {
            painted.push(STRONG, "Costs that differ by more than 5 % from those in the logs");
            painted.end_line();
        }
        for difference in &self.cost_differences {
            let text = describe_difference(difference);
            push_wrapped(&mut painted, PLAIN, INDENT, &text, layout.width, usize::MAX);
        }
        if self.drift.is_empty() {
            painted.push(DIM, "no unknown records or fields");
            painted.end_line();
        } else {
            push_drift(&mut painted, &self.drift, layout);
        }
        for warning in &self.warnings {
            let text = format!("WARNING: {}", clean_text(warning));
            push_wrapped(&mut painted, WARNED, "", &text, layout.width, usize::MAX);
        }
        painted
    }
}

/// Says, for the end of a message, which logs cannot be read; empty if there are none.
pub fn encrypted_logs_text(found: &DoctorData) -> String {
    found.encrypted.iter().map(|logs| format!(". {}", describe_encrypted(logs))).collect()
}

/// Says that the logs of an agent cannot be read.
fn describe_encrypted(logs: &EncryptedLogs) -> String {
    let EncryptedLogs { agent, folder, files, instead } = logs;
    format!(
        "{agent} encrypts its conversations ({} in {}): {instead}",
        count_of(*files, "file"),
        one_line(&clean_text(&folder.to_string_lossy()))
    )
}

fn describe_difference(difference: &CostDifference) -> String {
    let CostDifference { model, cost_usd, cost_as_logged } = difference;
    let [ours, logged] = [*cost_usd, *cost_as_logged].map(format_dollars);
    let percent = (cost_usd / cost_as_logged - 1.0) * 100.0;
    format!("{model}: {ours} by the price table, {logged} in the logs ({percent:+.0} %)")
}

/// Returns true if something is known of an agent: logs, sessions, or a folder.
fn is_present(health: &ProviderHealth) -> bool {
    health.sessions > 0 || health.places.iter().any(|place| place.exists)
}

/// Returns the name of an agent of which nothing is known.
fn name_absent(health: &ProviderHealth) -> String {
    let mark = if health.is_unverified { " (unverified)" } else { "" };
    format!("{}{mark}", health.agent)
}

/// Returns the name of an agent, and the one by which commands know it.
fn name_agent(health: &ProviderHealth) -> String {
    format!("{} ({})", health.agent, health.provider)
}

/// Returns the folders of an agent that exist, or the first one if none does.
fn shown_places(health: &ProviderHealth) -> Vec<&LogFolder> {
    let existing: Vec<&LogFolder> = health.places.iter().filter(|place| place.exists).collect();
    if existing.is_empty() { health.places.first().into_iter().collect() } else { existing }
}

/// Appends an agent: what the store has of it, and the folders of its logs.
fn push_provider(
    painted: &mut Painted,
    health: &ProviderHealth,
    name_width: usize,
    layout: &Layout,
) {
    let name = name_agent(health);
    painted.push(AGENT, &format!("{name:<name_width$}"));
    let sessions = count_of(layout.count(health.sessions as u64), "session");
    let events = count_of(layout.count(health.events.unsigned_abs()), "event");
    let mut facts = format!("{sessions}, {events}");
    if health.sources_gone > 0 {
        let _ = write!(facts, ", {} gone", count_of(health.sources_gone, "log"));
        if health.gone_archived > 0 {
            let _ = write!(facts, " ({} archived)", health.gone_archived);
        }
    }
    if !health.versions.is_empty() {
        let _ = write!(facts, ", version {}", health.versions.join(", "));
    }
    painted.push_inline(PLAIN, &truncate_end(&facts, layout.width.saturating_sub(name_width)));
    painted.end_line();

    if health.is_unverified {
        push_wrapped(painted, DIM, INDENT, UNVERIFIED, layout.width, usize::MAX);
    }
    for place in shown_places(health) {
        push_folder(painted, place, layout);
    }
    if let Some(retention) = health.retention.as_ref().filter(|_| is_present(health)) {
        let text = describe_retention(retention);
        push_wrapped(painted, DIM, INDENT, &text, layout.width, usize::MAX);
    }
}

fn describe_retention(retention: &Retention) -> String {
    let Retention { days, count, setting, file, due, due_archived } = retention;
    let archived = match due_archived {
        0 => String::new(),
        archived => format!(" ({archived} archived)"),
    };
    let file = clean_text(&file.to_string_lossy());
    let beyond = count.map_or_else(String::new, |count| {
        format!(", and all but the newest {count} of a project when a session begins")
    });
    format!(
        "deletes logs after {days} days{beyond} ({setting} in {}): {due} within a week{archived}. The store keeps their text",
        one_line(&file)
    )
}

/// Appends how logs are archived, and how many sessions can be restored.
fn push_archive(painted: &mut Painted, data: &DoctorData, layout: &Layout) {
    let kept = match data.keep_logs {
        KeepLogs::No => "off",
        KeepLogs::Masked => "on, with secrets masked",
        KeepLogs::Exact => "on, byte for byte with the secrets in them",
    };
    let archived: usize = data.providers.iter().map(|health| health.archived).sum();
    let gone: usize = data.providers.iter().map(|health| health.gone_archived).sum();
    let mut text = format!("{kept} (store.keep_logs)");
    if archived > 0 {
        let sessions = count_of(archived, "session");
        let _ = write!(
            text,
            "; {sessions}, {gone} of them without a log: `sessions restore` writes it back"
        );
    }
    painted.push(STRONG, "Archive of logs");
    painted.end_line();
    push_wrapped(painted, PLAIN, INDENT, &text, layout.width, usize::MAX);
}

fn push_folder(painted: &mut Painted, place: &LogFolder, layout: &Layout) {
    let found = if place.exists {
        format!("{}, {:.1} MB", count_of(place.files, "file"), to_megabytes(place.bytes))
    } else {
        "does not exist".to_owned()
    };
    let path = place.path.to_string_lossy();
    let width = layout.width.saturating_sub(INDENT.len() + found.len() + 2);
    painted.push(PLAIN, INDENT);
    layout.push_path(painted, PLAIN, &path, &truncate_start(&one_line(&path), width));
    painted.push(DIM, &format!("  {found}"));
    painted.end_line();
    for unreadable in &place.unreadable {
        let text = format!("cannot be read: {}. {UNREADABLE_ADVICE}", one_line(unreadable));
        push_wrapped(painted, FAILED, INDENT, &clean_text(&text), layout.width, usize::MAX);
    }
}

fn push_drift(painted: &mut Painted, drift: &[Drift], layout: &Layout) {
    painted.push(STRONG, "Unknown to the decoders").push(DIM, " (kept as notifications)");
    painted.end_line();
    for drift in drift {
        let version = if drift.version.is_empty() { "no version" } else { &drift.version };
        let text = format!(
            "{INDENT}{} {version}: {} {} ×{}",
            drift.provider, drift.kind, drift.name, drift.count
        );
        painted.push_inline(PLAIN, &truncate_end(&one_line(&clean_text(&text)), layout.width));
        painted.end_line();
    }
}
