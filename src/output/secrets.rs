//! Formats the secrets in logs: one line for each kind of secret in a session.

use std::fmt::Write as _;

use super::columns::{Cell, Column, FittedTable};
use super::layout::Layout;
use super::painted::{AGENT, DIM, FAILED, ID, PLAIN, PROJECT, Painted};
use super::scrub::{append_unsearched, describe_backup};
use super::show::Show;
use base::numbers::count_of;
use tools::secrets::{LoggedSecrets, SecretsData};

const COLUMNS: &[Column] = &[
    Column::text("first event").spill(),
    Column::text("kind"),
    Column::number("places").drop_at(2),
    Column::text("last seen"),
    Column::text("agent").drop_at(3),
    Column::text("project").cut_to(8).drop_at(4),
    Column::text("pushed").drop_at(1),
    Column::text("log").cut_to(16),
];

impl Show for SecretsData {
    fn paint(&self, layout: &Layout) -> Painted {
        let mut painted = Painted::new();
        if !self.secrets.is_empty() {
            let mut table = FittedTable::new(COLUMNS);
            for secrets in &self.secrets {
                table.push(secrets_row(secrets, layout));
            }
            painted.append(&table.paint(layout.width));
        }
        painted.append(&Painted::from_text(&summarize(self)));
        painted
    }
}

fn secrets_row(secrets: &LoggedSecrets, layout: &Layout) -> Vec<Cell> {
    let log = if secrets.log_exists {
        Cell::new(PLAIN, &secrets.file)
    } else {
        Cell::new(DIM, "the log is gone")
    };
    vec![
        Cell::new(ID, &layout.event_id(first_place(secrets))),
        Cell::new(FAILED, &secrets.kind),
        Cell::new(PLAIN, &layout.count(secrets.count)),
        Cell::new(DIM, &layout.time(secrets.timestamp.as_deref())),
        Cell::new(AGENT, secrets.provider.as_str()),
        Cell::new(PROJECT, secrets.project.as_deref().unwrap_or("")),
        Cell::new(PLAIN, if secrets.published { "yes" } else { "" }),
        log,
    ]
}

/// Returns the first event with such a secret, or the session if no event has one.
fn first_place(secrets: &LoggedSecrets) -> &str {
    let event = secrets.places.first().and_then(|place| place.event_id.as_ref());
    event.unwrap_or(&secrets.session_id)
}

fn summarize(data: &SecretsData) -> String {
    let mut out = match data.sessions {
        0 => "No secrets were found in the logs.\n".to_owned(),
        sessions => format!(
            "{} with secrets of {} in the logs of {}. The store and what is pushed have them masked; \
             the logs themselves do not.\n",
            count_of(data.by_kind.values().sum::<u64>(), "place"),
            count_of(data.by_kind.len(), "kind"),
            count_of(sessions, "session"),
        ),
    };
    let is_only_in_file = |secrets: &&LoggedSecrets| !secrets.in_store;
    let unshown: u64 = data.secrets.iter().filter(is_only_in_file).map(|one| one.count).sum();
    if unshown > 0 {
        let _ = writeln!(
            out,
            "Only the files have {}, no event shows them.",
            count_of(unshown, "place")
        );
    }
    append_unsearched(&data.unsearched_files, &mut out);
    if data.unmasked_logs > 0 {
        let logs = count_of(data.unmasked_logs, "log");
        let _ = writeln!(
            out,
            "Not known: the secrets of {logs} read with --no-redact. `sessions ingest` masks them."
        );
    }
    if let Some(backup) = &data.backup {
        let _ = writeln!(
            out,
            "Logs as they were before --scrub or `resume` changed them: {}. `sessions secrets --forget-backup --yes` removes them.",
            describe_backup(backup)
        );
    }
    out
}
