//! Decodes a log as an ingest does, to find the secrets in it with their text. Nothing is stored.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::io::{self, Read as _};
use std::path::Path;
use std::sync::Arc;

use schemas::session::SessionRow;
use schemas::table::SESSIONS;

use super::line_reading::LineReading;
use super::masked_target::add_counts;
use super::records::{decode_document, finish_lines};
use crate::provider::format::{LogReader, RecordTally, SessionClaim};
use crate::provider::format_of;
use crate::redact::columns::ColumnMasker;
use crate::redact::{MaskedSecrets, Redactor};
use crate::source::container::{Content, lock_giant_document};
use crate::source::lines::LogLines;
use crate::stream::batch::events_schema;
use crate::stream::replay::CopiedHistory;
use crate::stream::{FoundSecret, RecordAliases, RecordAt, Stream, StreamState};

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
    pub(crate) fn read_secrets(&self, mut content: Content, size: u64) -> io::Result<LogSecrets> {
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
        match format.reader {
            LogReader::Lines(_) => self.read_lines(content, size, &mut stream, &mut found)?,
            LogReader::Document(read) => {
                let _turn = lock_giant_document(size);
                let mut bytes = Vec::new();
                content.read_to_end(&mut bytes)?;
                decode_document(&bytes, read, &mut stream, &mut RecordTally::default());
            }
        }
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

    fn read_lines(
        &self,
        content: Content,
        size: u64,
        stream: &mut Stream,
        found: &mut ColumnSecrets,
    ) -> io::Result<()> {
        let LogReader::Lines(open) = format_of(self.claim.provider).reader else { return Ok(()) };
        let mut decoder = open(self.claim, None);
        decoder.prepare(Path::new(self.path));
        let mut lines = LogLines::of_size(content, 0, size);
        let mut reading = LineReading::new(decoder);
        while let Some(line) = lines.next_line()? {
            if reading.decode_line(line, stream).is_break() {
                break;
            }
            if stream.row_count() >= EVENTS_AT_A_TIME && !stream.is_call_expected() {
                found.take_rows(stream, self.redactor);
            }
        }
        let end = RecordAt { offset: lines.offset(), length: 0, line: reading.cursor.line };
        finish_lines(reading.decoder.as_mut(), end, stream);
        Ok(())
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
