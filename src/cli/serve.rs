//! What can be typed behind `mcp` and `label`.

use std::time::Duration;

use schemas::envelope::MetadataLevel;
use schemas::limits;
use schemas::tool::label::{LabelArgs, LabelUpdate};

use crate::server::Options;

/// A day.
const MOST_MS: u64 = 86_400_000;

#[derive(Debug, clap::Args)]
pub(super) struct ServeFlags {
    /// Let clients set labels and notes on sessions
    #[arg(long)]
    allow_labels: bool,
    /// Tool calls, resources, prompts, completions and ai_help a minute; 0 is no limit
    #[arg(long, value_name = "N", default_value_t = limits::RATE_LIMIT)]
    rate_limit: u32,
    /// How long a call may take, in milliseconds
    #[arg(long, value_name = "MS", default_value_t = limits::CALL_MS, value_parser = clap::value_parser!(u64).range(..=MOST_MS))]
    time_limit: u64,
}

impl ServeFlags {
    pub(super) fn options(&self, metadata: MetadataLevel) -> Options {
        Options {
            allow_labels: self.allow_labels,
            rate_limit: self.rate_limit,
            time_limit: Duration::from_millis(self.time_limit),
            metadata,
        }
    }
}

#[derive(Debug, clap::Args)]
pub(super) struct LabelFlags {
    /// Session ids; any unique prefixes, or 'current'
    #[arg(required = true, value_name = "ID")]
    session_ids: Vec<String>,
    /// Label to add (can be repeated)
    #[arg(long, value_name = "LABEL", required_unless_present_any = ["remove", "note"])]
    add: Vec<String>,
    /// Label to remove (can be repeated)
    #[arg(long, value_name = "LABEL")]
    remove: Vec<String>,
    /// Note in place of the present one; empty removes it
    #[arg(long)]
    note: Option<String>,
}

impl From<LabelFlags> for LabelArgs {
    fn from(flags: LabelFlags) -> Self {
        let some = |labels: &Vec<String>| (!labels.is_empty()).then(|| labels.clone());
        let update = |session_id| LabelUpdate {
            session_id,
            add: some(&flags.add),
            remove: some(&flags.remove),
            note: flags.note.clone(),
        };
        Self { updates: flags.session_ids.iter().cloned().map(update).collect() }
    }
}
