//! Brings the logs that machines publish with their sessions into the archive of this machine.

use std::collections::{HashMap, HashSet};

use ingest::plan::rules_version;
use schemas::ToolError;

use super::known::{ListedLog, shared_key};
use super::round::Pull;
use crate::lake::listing::ListedObject;
use crate::lake::pull_report::PullContent;
use crate::lake::requests::{count_within, run_requests};
use store::{ForeignLog, KeepLevel, PublishedLog};
use tools::error::store_error;

/// Bytes of the objects that are fetched at a time, unless one has more. Unpacked they have many times
/// more.
const BYTES_AT_A_TIME: u64 = 8 << 20;

/// A log to fetch for a session of the store.
struct WantedLog {
    session_id: String,
    log: ListedLog,
    object: ListedObject,
}

impl Pull<'_> {
    /// Brings the archive up to what the listings say that were read in this round.
    pub(super) fn import_logs(&mut self) -> Result<(), ToolError> {
        let logs = std::mem::take(&mut self.logs);
        if self.context.content == PullContent::Rows || logs.is_empty() {
            return Ok(());
        }
        let (wanted, outdated) = self.select_logs(logs)?;
        if wanted.is_empty() && outdated.is_empty() {
            return Ok(());
        }
        let writer = (self.context.open_writer)()?;
        writer.remove_foreign_logs(&outdated).map_err(store_error)?;
        let mut rest = wanted.as_slice();
        while !rest.is_empty() {
            let sizes = rest.iter().map(|one| one.object.bytes);
            let (some, others) = rest.split_at(count_within(sizes, BYTES_AT_A_TIME));
            let place = self.context.place;
            let fetched = run_requests(some, |wanted| wanted.object.read(place))?;
            for (wanted, bytes) in some.iter().zip(fetched) {
                let WantedLog { session_id, log: ListedLog { lake_id, provider, .. }, object } =
                    wanted;
                let log = bytes.and_then(|bytes| PublishedLog::decode(&bytes, lake_id, *provider));
                let log = match log {
                    Ok(log) => log,
                    Err(reason) => {
                        self.note_failed_log(&wanted.log, &reason);
                        continue;
                    }
                };
                let foreign = ForeignLog {
                    session_id,
                    provider: *provider,
                    log: &log,
                    object: &object.sha256,
                };
                let archived = writer.archive_foreign_logs(&[foreign], self.context.redactor);
                archived.map_err(store_error)?;
                self.report.logs += 1;
                self.report.bytes += object.bytes;
            }
            rest = others;
        }
        Ok(())
    }

    /// Returns the logs to fetch, and the sessions whose log is archived but no longer published.
    fn select_logs(
        &self,
        logs: Vec<ListedLog>,
    ) -> Result<(Vec<WantedLog>, HashSet<String>), ToolError> {
        // One that is damaged is repaired when it is written.
        let archive = self.context.store.open_archive().ok().flatten();
        let archived = archive.iter().flat_map(|archive| archive.foreign_logs());
        let archived: HashMap<&str, _> = archived
            .filter_map(|(id, log)| Some((id, (log.rules, log.origin.as_ref()?.object.as_str()))))
            .collect();
        let rules = rules_version(Some(self.context.redactor));
        let reduced = self.snapshot.reduced_sessions().map_err(store_error)?;
        let mut wanted = Vec::new();
        let mut outdated = HashSet::new();
        for log in logs {
            let Some(session_id) = self.find_imported(&log) else { continue };
            let known = archived.get(session_id);
            match &log.object {
                // The retention takes a log with the texts.
                Some(_) if reduced.level_of(session_id) > KeepLevel::Full => {}
                Some(object) if known == Some(&(rules, object.sha256.as_str())) => {}
                Some(object) => wanted.push(WantedLog {
                    session_id: session_id.to_owned(),
                    object: object.clone(),
                    log,
                }),
                None => outdated.extend(known.map(|_| session_id.to_owned())),
            }
        }
        Ok((wanted, outdated))
    }

    /// Returns the session that was imported from the machine that lists a log. `None` if the store has it
    /// from another machine, or not at all.
    fn find_imported(&self, log: &ListedLog) -> Option<&str> {
        let apart = shared_key(&log.lake_id, &log.publisher);
        let imported = [apart.as_str(), &log.lake_id].into_iter().find_map(|key| {
            let imported = self.known.imported.get(key)?;
            let from = imported.from.as_ref()?;
            (from.publisher == log.publisher).then_some(imported)
        });
        imported.map(|imported| imported.session_id.as_str())
    }
}
