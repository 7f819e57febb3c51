//! Decodes a log as an ingest does, to find the secrets in it with their text. Nothing is stored.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::io;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;

use schemas::session::SessionRow;
use schemas::table::SESSIONS;

use super::line_reading::decode_log;
use super::masked_target::add_counts;
use super::records::LogDecoder;
use crate::provider::format::{LogReader, SessionClaim};
use crate::provider::format_of;
use crate::redact::columns::ColumnMasker;
use crate::redact::{MaskedSecrets, Redactor};
use crate::source::container::Content;
use crate::stream::batch::events_schema;
use crate::stream::replay::CopiedHistory;
use crate::stream::{FoundSecret, RecordAliases, Stream, StreamState};

/// Number of events after which their rows are dropped.
const EVENTS_AT_A_TIME: usize = 8192;

/// A log to decode.
pub(crate) struct DecodedLog<'l> {
    pub(crate) claim: &'l SessionClaim,
    /// The path of the log, next to which other files may describe it.
    pub(crate) path: &'l str,
    pub(crate) redactor: &'l Arc<Redactor>,
    pub(crate) aliases: &'l Arc<RecordAliases>,
}

/// What is in a log.
pub(crate) struct LogSecrets {
    /// The identities of the records that gave events, in order.
    pub(crate) identities: Vec<u64>,
    /// The number of events.
    pub(crate) events: i64,
    /// The secrets in events, in order.
    pub(crate) secrets: Vec<FoundSecret>,
    /// The number of secrets of each kind, as an ingest counts them: also those of the session's own
    /// values.
    pub(crate) counts: BTreeMap<String, u64>,
}

impl DecodedLog<'_> {
    /// Decodes the content of the log, which has `size` bytes.
    ///
    /// # Errors
    /// Returns the errors of reading.
    pub(crate) fn read_secrets(&self, content: Content, size: u64) -> io::Result<LogSecrets> {
        let format = format_of(self.claim.provider);
        let session = SessionRow {
            session_id: self.claim.native_id.clone(),
            provider: self.claim.provider,
            source_path: self.path.to_owned(),
            ..SessionRow::default()
        };
        let mut stream = Stream::new(
            self.claim.provider,
            session,
            StreamState::default(),
            format.has_unique_ids.then(HashSet::new),
            CopiedHistory::default(),
            Some(Arc::clone(self.redactor)),
            Box::default(),
        );
        stream.aliases = Arc::clone(self.aliases);
        stream.collect_secrets();
        let mut found = ColumnSecrets::default();
        let decoder = match format.reader {
            LogReader::Lines(open) => {
                let mut decoder = open(self.claim, None);
                decoder.prepare(Path::new(self.path));
                LogDecoder::Lines(decoder)
            }
            LogReader::Document(read) => LogDecoder::Document(read),
        };
        decode_log(decoder, |_| Ok(content), size, 0, &mut stream, &mut |stream| {
            if stream.row_count() >= EVENTS_AT_A_TIME && !stream.is_call_expected() {
                found.take_rows(stream, self.redactor);
            }
            ControlFlow::Continue(())
        })?;
        found.take_rows(&mut stream, self.redactor);

        let secrets = stream.take_found_secrets();
        let identities = stream.take_sequence();
        let mut row = stream.session_row();
        found.masker.mask_row(Some(self.redactor), &SESSIONS, &mut row, &mut MaskedSecrets::new());
        add_counts(&mut row.redactions, &found.secrets);
        let counts = row.redactions.as_deref().and_then(|json| serde_json::from_str(json).ok());
        Ok(LogSecrets {
            identities,
            events: row.events,
            secrets,
            counts: counts.unwrap_or_default(),
        })
    }
}

/// The secrets in the columns of events that are not masked when the events are read: names and ids.
#[derive(Default)]
struct ColumnSecrets {
    masker: ColumnMasker,
    /// From hash to kind.
    secrets: HashMap<u64, String>,
}

impl ColumnSecrets {
    /// Takes the rows collected in a stream.
    fn take_rows(&mut self, stream: &mut Stream, redactor: &Redactor) {
        let batch = stream.take_rows(&events_schema(), 0);
        let mut found = MaskedSecrets::new();
        // The rows come from ingest, so their columns are those of the table.
        if self.masker.mask_events(Some(redactor), &batch, &mut found).is_ok() {
            self.secrets.extend(found.into_iter().map(|(kind, secret)| (secret, kind)));
        }
    }
}
