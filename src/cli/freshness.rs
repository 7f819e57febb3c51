//! Reads new log data before a command answers, as a server does before each call.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use schemas::limits::REFRESH_MS;

use crate::app;
use crate::config::environment;
use crate::hooks::background;
use crate::output::Printer;
use store::Store;
use tools::{Refresh, UnreadReason};

/// Maximum time that a command waits which must know all logs.
const MAX_REFRESH: Duration = Duration::from_secs(600);

/// What keeps the store up to date while a command runs.
pub(super) struct StoreRefresh {
    refresh: Arc<dyn Refresh>,
    store: Arc<Store>,
}

impl StoreRefresh {
    /// Reads new log data for a moment, or all of it. The rest continues while the command runs. A store
    /// that others can write to, or that cannot be read, stays as it is: the answer says so.
    pub(super) fn start(store: &Arc<Store>, reads_all: bool) -> Self {
        let refresh = app::create_refresh(Arc::clone(store));
        refresh.refresh(if reads_all { MAX_REFRESH } else { Duration::from_millis(REFRESH_MS) });
        Self { refresh, store: Arc::clone(store) }
    }

    /// Says which logs the answer does not include yet, and lets another process read them.
    pub(super) fn finish(&self, printer: &Printer) -> std::io::Result<()> {
        let freshness = self.refresh.current_freshness();
        let logs = match freshness.pending {
            0 => "Some logs may be".to_owned(),
            1 => "1 log is".to_owned(),
            logs => format!("{logs} logs are"),
        };
        match &freshness.unread_reason {
            UnreadReason::None => Ok(()),
            UnreadReason::Looking | UnreadReason::Reading => {
                let is_started = self.continue_in_background();
                let next = if is_started {
                    "they are being read now"
                } else {
                    "`sessions ingest` reads them"
                };
                printer.print_note(&format!("{logs} newer than the store; {next}"))
            }
            UnreadReason::Busy => printer.print_note(&format!(
                "{logs} newer than the store; another process is writing to it"
            )),
            UnreadReason::Trouble(reason) => printer.print_failure(&format!(
                "{logs} newer than the store and could not be read: {reason}"
            )),
            // Only servers report this here: a command masks the store before it runs.
            UnreadReason::Unmasked(_) => Ok(()),
        }
    }

    fn continue_in_background(&self) -> bool {
        let program: &Path = &environment::program_path();
        background::start_ingest(program, self.store.dir()).is_ok()
    }
}
