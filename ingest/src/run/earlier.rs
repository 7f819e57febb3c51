//! Keeps what a log held before it was cut or begun again, as a session of its own: its earlier
//! version. Records that the log still has count in the session of the log, the others in the
//! earlier version.
//!
//! The rows of earlier versions are handed over together with the first rows of the log that is read
//! from its start: no commit has the new rows of the log without the records that it lost.

use std::collections::{HashMap, HashSet};
use std::io;
use std::ops::{ControlFlow, Range};

use arrow::array::{Array, AsArray, RecordBatch, StringArray};
use arrow::datatypes::TimestampMicrosecondType;
use schemas::EventType;
use schemas::event::Relation;
use schemas::session::{SessionRow, SourceRow, SourceStatus};
use schemas::table::EventColumn;
use xxhash_rust::xxh3::xxh3_64;

use super::copies::{ReadRecords, UnitRecords, surplus_records};
use super::line_reading::decode_log;
use super::records::open_decoder;
use super::report::EarlierVersion;
use super::target::{LogCheckpoint, Sink, Target};
use super::worker::{Worker, is_batch_full, session_row};
use crate::plan::compare::is_of_this_decoder;
use crate::plan::relatives::has_changed_ancestors;
use crate::plan::{PlannedLog, path_aside};
use crate::provider::format::LogReader;
use crate::provider::{format_of, is_sidecar};
use crate::source::container::{Content, MAX_DOCUMENT_BYTES};
use crate::source::fingerprint::Fingerprint;
use crate::stream::batch::{EventBatch, EventCells};
use crate::stream::replay::CopiedHistory;
use crate::stream::{DocumentMessages, Stream, StreamState, is_copied, without_counts};

/// Number of events that are read at once.
const EVENTS_AT_A_TIME: i32 = 1024;

/// The texts that tell events apart whose records have changed identities, next to their times.
const CONTENT_COLUMNS: [EventColumn; 5] = [
    EventColumn::EventType,
    EventColumn::Subtype,
    EventColumn::ToolCallId,
    EventColumn::RequestId,
    EventColumn::Text,
];

/// The records of a log as it is now.
#[derive(Default)]
struct LogScan {
    /// The identities of the records, in order.
    hashes: Vec<u64>,
    /// How often each content of an event occurs.
    contents: HashMap<u64, usize>,
    /// Number of events.
    events: i64,
}

/// A record of a session as the store has it.
struct StoredRecord {
    /// The identity of the record; 0 if it has none.
    hash: u64,
    /// The contents of its events, in order.
    contents: Vec<u64>,
    /// True if the store has it as a copy of another log's record.
    is_copy: bool,
    /// True if the user typed it.
    is_prompt: bool,
}

/// How many records of each identity some logs have.
struct RecordCounts {
    counts: HashMap<u64, usize>,
    has_unique_ids: bool,
    /// The records with unique ids that were taken.
    taken: HashSet<u64>,
}

impl RecordCounts {
    fn of_logs<'h>(has_unique_ids: bool, logs: impl IntoIterator<Item = &'h [u64]>) -> Self {
        let mut counts = Self { counts: HashMap::new(), has_unique_ids, taken: HashSet::new() };
        logs.into_iter().for_each(|hashes| counts.add_log(hashes));
        counts
    }

    /// Adds the records of a log. Records that several logs have are the same.
    fn add_log(&mut self, hashes: &[u64]) {
        let mut of_log: HashMap<u64, usize> = HashMap::new();
        for hash in hashes {
            *of_log.entry(*hash).or_default() += 1;
        }
        for (hash, count) in of_log {
            let known = self.counts.entry(hash).or_default();
            *known = count.max(*known);
        }
    }

    /// Returns whether the logs have one more record of this identity than were taken. Records with
    /// unique ids that are equal are one record.
    fn take(&mut self, hash: u64) -> bool {
        match self.counts.get_mut(&hash) {
            Some(_) if self.has_unique_ids => true,
            Some(count) if *count > 0 => {
                *count -= 1;
                true
            }
            Some(_) | None => false,
        }
    }

    /// Returns whether a record with a unique id was asked about before.
    fn is_repeated(&mut self, hash: u64) -> bool {
        self.has_unique_ids && hash != 0 && !self.taken.insert(hash)
    }
}

/// What is known of a log that is read again from its start, with other content than before.
struct ChangedLog<'w> {
    planned: &'w PlannedLog,
    session: &'w SessionRow,
    source: &'w SourceRow,
    scan: LogScan,
    /// The records that the log no longer has.
    lost: HashSet<u64>,
    /// Its earlier versions, each after those that it may repeat.
    versions: Vec<&'w PlannedLog>,
}

/// The rows of an earlier version that is written.
struct VersionRows<'v> {
    /// The session in the store that has the events.
    rows_of: &'v str,
    /// Number of these events.
    events: i64,
    /// Whether each of them is a copy.
    copies: Vec<bool>,
    session: SessionRow,
    source: SourceRow,
}

impl<T: Target> Worker<'_, T> {
    /// Keeps the records that a log no longer has, before it is read again from its start. Returns
    /// them. A log with the content that was read before has lost none: it is read again because of
    /// other rules or another decoder.
    pub(super) fn keep_lost_records<'w>(
        &mut self,
        log: &'w PlannedLog,
        records: &mut UnitRecords<'w>,
        sink: &mut T::Sink,
    ) -> Result<io::Result<Vec<u64>>, T::Error> {
        let (Some(session), Some(source)) = (&log.session, &log.source) else {
            return Ok(Ok(Vec::new()));
        };
        // A log that tells more of a session takes the place of a file that told less.
        let has_new_log = source.path != log.file.key() && is_sidecar(source.path.as_ref());
        if session.events == 0 || has_new_log || self.keeps_messages(log, source)? {
            return Ok(Ok(Vec::new()));
        }
        let scan = match self.scan_changed_log(log, source) {
            Ok(Some(scan)) => scan,
            Ok(None) => return Ok(Ok(Vec::new())),
            Err(error) => return Ok(Err(error)),
        };

        let committed = self.committed_records(&log.session_id, records)?.to_vec();
        let has_unique_ids = format_of(log.claim.provider).has_unique_ids;
        let lost = lost_records(has_unique_ids, &committed, &scan.hashes);
        let versions = records.versions.get(log.session_id.as_str()).cloned().unwrap_or_default();
        let log = ChangedLog { planned: log, session, source, scan, lost, versions };
        self.hand_over_read_logs(sink)?;
        self.recount_versions(&log, records, sink)?;
        if (log.lost.is_empty() && log.scan.events >= session.events)
            || !self.keep_version(&log, &committed, records, sink)?
        {
            return Ok(Ok(Vec::new()));
        }
        Ok(Ok(committed.into_iter().filter(|hash| log.lost.contains(hash)).collect()))
    }

    /// Returns whether the messages of a document that it no longer holds are put back into its
    /// session.
    fn keeps_messages(&self, log: &PlannedLog, source: &SourceRow) -> Result<bool, T::Error> {
        if is_log_of_lines(log) {
            return Ok(false);
        }
        let state = self.target.state(&source.path)?;
        Ok(DocumentMessages::from_state(state.as_deref()).is_some())
    }

    /// Reads the records of a log. `None` if the log has the content that was read before, or is a
    /// document that is too large to be read.
    fn scan_changed_log(
        &self,
        log: &PlannedLog,
        source: &SourceRow,
    ) -> io::Result<Option<LogScan>> {
        let mut file = Content::open(&log.file)?;
        let format = format_of(log.claim.provider);
        if Fingerprint::is_unchanged(&mut file, source)?
            || !is_log_of_lines(log) && file.length()? > MAX_DOCUMENT_BYTES
        {
            return Ok(None);
        }
        drop(file);

        let own = format.has_unique_ids.then(HashSet::new);
        let mut stream = Stream::new(
            log.claim.provider,
            session_row(log, false, 0),
            StreamState::default(),
            own,
            CopiedHistory::default(),
            self.redactor.clone(),
            Box::default(),
        );
        stream.aliases = self.target.record_aliases();
        let mut scan = LogScan::default();
        let decoder = open_decoder(log, &format.reader, &mut None);
        let open = |_: &mut Stream| Content::open(&log.file);
        decode_log(decoder, open, log.file.size, 0, &mut stream, &mut |stream| {
            if is_batch_full(stream) {
                scan.add_events(&stream.take_rows(&self.schema, 0));
            }
            ControlFlow::Continue(())
        })?;
        scan.add_events(&stream.take_rows(&self.schema, 0));
        scan.hashes = stream.take_sequence();
        Ok(Some(scan))
    }

    /// Counts the earlier versions of a log again: what it lost counts in them, and what it has again
    /// no longer does.
    fn recount_versions<'w>(
        &mut self,
        log: &ChangedLog<'w>,
        records: &mut UnitRecords<'w>,
        sink: &mut T::Sink,
    ) -> Result<(), T::Error> {
        for version in &log.versions {
            // Another decoder may give the same records other identities.
            let lost = if !is_of_this_decoder(log.source) {
                HashSet::new()
            } else if records.interrupted.contains(log.planned.session_id.as_str()) {
                self.committed_records(&version.session_id, records)?.iter().copied().collect()
            } else {
                log.lost.clone()
            };
            self.recount_version(version, &log.scan.hashes, &lost, records, sink)?;
            records.recounted.insert(&version.session_id);
        }
        Ok(())
    }

    /// Counts an earlier version again after the log whose earlier version it is grew, or after one of
    /// its ancestors changed.
    pub(super) fn recount_earlier_version<'w>(
        &mut self,
        log: &'w PlannedLog,
        records: &mut UnitRecords<'w>,
        sink: &mut T::Sink,
    ) -> Result<(), T::Error> {
        let Some(later) = log.claim.parent.as_deref() else { return Ok(()) };
        if records.recounted.contains(log.session_id.as_str()) {
            return Ok(());
        }

        let own: HashSet<u64> =
            self.committed_records(&log.session_id, records)?.iter().copied().collect();
        let read = log.ancestors.iter().filter_map(|id| records.read.get(id.as_str()));
        let has_read = read.flat_map(|read| &read.hashes).any(|hash| own.contains(hash));
        // A run that ended while it read the log has counted records as copies that it had not read
        // yet, and that the log may have lost since.
        let is_interrupted = records.interrupted.contains(later);
        if !has_read && !is_interrupted && !has_changed_ancestors(log) {
            return Ok(());
        }
        let present = self.present_records(later, records)?;
        let lost = if is_interrupted { own } else { HashSet::new() };
        self.hand_over_read_logs(sink)?;
        self.recount_version(log, &present, &lost, records, sink)
    }

    /// Counts an earlier version again, given the records that the log has now and those that it has
    /// lost since it was read before.
    fn recount_version(
        &mut self,
        version: &PlannedLog,
        present: &[u64],
        lost: &HashSet<u64>,
        records: &mut UnitRecords<'_>,
        sink: &mut T::Sink,
    ) -> Result<(), T::Error> {
        let (Some(session), Some(source)) = (&version.session, &version.source) else {
            return Ok(());
        };
        let later = version.claim.parent.as_deref();
        let mut logs = vec![present.to_vec()];
        for ancestor in version.ancestors.iter().filter(|id| Some(id.as_str()) != later) {
            logs.push(self.present_records(ancestor, records)?);
        }
        let has_unique_ids = format_of(version.claim.provider).has_unique_ids;
        let mut counts = RecordCounts::of_logs(has_unique_ids, logs.iter().map(Vec::as_slice));

        let stored = self.read_stored_records(&version.session_id, session.events)?;
        let mut copies = Vec::new();
        let mut has_changed = has_changed_ancestors(version);
        for record in &stored {
            let is_present = counts.take(record.hash);
            let is_repeated = counts.is_repeated(record.hash);
            let stays_copy = record.is_copy && !lost.contains(&record.hash);
            let is_copy = is_present || is_repeated || stays_copy;
            has_changed |= is_copy != record.is_copy;
            copies.extend(record.contents.iter().map(|_| is_copy));
        }
        if !has_changed {
            return Ok(());
        }
        let rows = VersionRows {
            rows_of: &version.session_id,
            events: session.events,
            copies,
            session: session_row(version, true, 0),
            source: SourceRow {
                ancestors: Some(version.ancestors.join(" ")),
                ..SourceRow::clone(source)
            },
        };
        self.write_version(rows, sink)
    }

    /// Keeps what a log held as a session of its own, unless other sessions have all that it lost.
    /// Returns whether everything that it lost is kept.
    fn keep_version(
        &mut self,
        log: &ChangedLog<'_>,
        committed: &[u64],
        records: &mut UnitRecords<'_>,
        sink: &mut T::Sink,
    ) -> Result<bool, T::Error> {
        let ChangedLog { planned, session, source, .. } = log;
        let version_ids = log.versions.iter().map(|version| &version.session_id);
        let mut ancestors: Vec<&String> = planned.ancestors.iter().chain(version_ids).collect();
        let mut others = Vec::new();
        for ancestor in &ancestors {
            others.push(self.present_records(ancestor, records)?);
        }
        let stored = self.read_stored_records(&planned.session_id, session.events)?;
        let now = Presence::of_records(log, &stored, &others);
        let is_lost = |(record, place): (&StoredRecord, &Place)| {
            // Messages of a document grow: only a prompt of which nothing is left was taken out.
            *place == Place::Lost && (is_log_of_lines(planned) || record.is_prompt)
        };
        if !stored.iter().zip(&now.places).any(is_lost) {
            return Ok(now.places.iter().all(|place| *place != Place::Lost));
        }

        let id = self.new_version_id(&planned.session_id, committed, session.events)?;
        let path = path_aside(&planned.file.key(), &id);
        ancestors.push(&planned.session_id);
        ancestors.sort_unstable();
        ancestors.dedup();
        let ancestors: Vec<&str> = ancestors.into_iter().map(String::as_str).collect();
        let copies = stored.iter().zip(&now.places).flat_map(|(record, place)| {
            let is_copy = *place != Place::Lost || record.is_copy;
            record.contents.iter().map(move |_| is_copy)
        });
        let rows = VersionRows {
            rows_of: &planned.session_id,
            events: session.events,
            copies: copies.collect(),
            session: SessionRow {
                session_id: id.clone(),
                native_id: Some(id.clone()),
                agent_id: None,
                parent_session_id: Some(planned.session_id.clone()),
                relation: Some(Relation::EarlierVersionOf.to_string()),
                source_path: path.clone(),
                // The log still shows what its decoder does not know.
                drift: None,
                ..SessionRow::clone(session)
            },
            source: SourceRow {
                path,
                session_id: Some(id.clone()),
                ancestors: Some(ancestors.join(" ")),
                modified_us: source.modified_us.max(0),
                reason: None,
                ..SourceRow::clone(source)
            },
        };
        if self.target.find_excluded_row(&rows.session, &rows.source).is_some() {
            return Ok(true);
        }
        self.write_version(rows, sink)?;
        self.report
            .earlier_versions
            .push(EarlierVersion { session_id: planned.session_id.clone(), kept_as: id });
        Ok(true)
    }

    /// Returns an id for an earlier version of a session. The same records give the same id.
    fn new_version_id(
        &self,
        session_id: &str,
        committed: &[u64],
        events: i64,
    ) -> Result<String, T::Error> {
        let events = events.cast_unsigned();
        let numbers = committed.iter().chain([&events]);
        let bytes: Vec<u8> = numbers.flat_map(|number| number.to_le_bytes()).collect();
        let mut digest = xxh3_64(&bytes);
        loop {
            let id = format!("{session_id}~{:08x}", digest as u32);
            if self.target.record_hashes(&id)?.is_empty() {
                return Ok(id);
            }
            digest = xxh3_64(&digest.to_le_bytes());
        }
    }

    /// Returns the records that a session has as of this run.
    fn present_records(
        &self,
        session_id: &str,
        records: &mut UnitRecords<'_>,
    ) -> Result<Vec<u64>, T::Error> {
        let mut hashes = Vec::new();
        if !records.read.get(session_id).is_some_and(|read| read.is_from_start) {
            hashes.extend(self.committed_records(session_id, records)?);
        }
        let read = records.read.get(session_id).map(ReadRecords::all);
        hashes.extend(read.into_iter().flatten());
        Ok(hashes)
    }

    /// Reads the records of a session from the store.
    fn read_stored_records(
        &self,
        session_id: &str,
        events: i64,
    ) -> Result<Vec<StoredRecord>, T::Error> {
        let mut records: Vec<StoredRecord> = Vec::new();
        let mut last = None;
        for range in event_ranges(events) {
            let rows = self.target.events(session_id, std::slice::from_ref(&range))?;
            let mut batch = EventBatch::default();
            for event in &rows {
                batch.push(&EventCells::of(event));
            }
            let contents = event_contents(&batch.finish(&self.schema, 0));
            for (event, content) in rows.iter().zip(contents) {
                let place = Some((event.source_offset, event.record_hash, event.copy_hash));
                if last != place {
                    last = place;
                    records.push(StoredRecord {
                        hash: event.record_hash.cast_unsigned(),
                        contents: Vec::new(),
                        is_copy: is_copied(event),
                        is_prompt: false,
                    });
                }
                if let Some(record) = records.last_mut() {
                    record.contents.push(content);
                    record.is_prompt |= event.event_type == EventType::User;
                }
            }
        }
        Ok(records)
    }

    /// Writes the rows of an earlier version. They are committed with the logs that are handed over
    /// next.
    fn write_version(
        &mut self,
        version: VersionRows<'_>,
        sink: &mut T::Sink,
    ) -> Result<(), T::Error> {
        let VersionRows { rows_of, events, copies, session, source } = version;
        let segment = sink.segment()?;
        let (model, confidence) = (session.model.clone(), session.usage_confidence.clone());
        let id = session.session_id.clone();
        let mut stream = Stream::for_count(without_counts(session), None, CopiedHistory::default());
        let mut copies = copies.into_iter();
        let mut batch = EventBatch::default();
        for range in event_ranges(events) {
            for event in self.target.events(rows_of, std::slice::from_ref(&range))? {
                // Rows that damage took leave no gap.
                let event_index = stream.position();
                let is_replay = copies.next().unwrap_or(false);
                stream.count_decided_event(&event, is_replay);
                batch.push(&EventCells {
                    session_id: &id,
                    event_index,
                    is_replay,
                    is_counted_elsewhere: false,
                    ..EventCells::of(&event)
                });
            }
            if !batch.is_empty() {
                sink.events(&batch.finish(&self.schema, segment))?;
            }
        }

        let session = SessionRow {
            source_gone: true,
            live_from: segment,
            row_start: 0,
            row_count: 0,
            model,
            usage_confidence: confidence,
            ..stream.session_row()
        };
        let source = SourceRow { status: SourceStatus::Gone, state: None, ..source };
        let (session, source) = (Box::new(session), Box::new(source));
        self.read_logs.push(LogCheckpoint { session, source, problems: Vec::new() });
        Ok(())
    }
}

/// Where a record is now that a session had when its log was read before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    /// The log still has it.
    Log,
    /// It is a copy of one that another session has, or of one before it.
    OtherSession,
    Lost,
}

/// Where the records of a session are now.
struct Presence {
    places: Vec<Place>,
}

impl Presence {
    /// Finds the records `stored` in the log as it is now, and in the logs of `others`. A record of the
    /// log whose identity has changed is found by what its events say.
    fn of_records(log: &ChangedLog<'_>, stored: &[StoredRecord], others: &[Vec<u64>]) -> Self {
        let has_unique_ids = format_of(log.planned.claim.provider).has_unique_ids;
        let now = &log.scan.hashes;
        let mut in_log = RecordCounts::of_logs(has_unique_ids, [now.as_slice()]);
        let all = others.iter().chain([now]).map(Vec::as_slice);
        let mut in_any = RecordCounts::of_logs(has_unique_ids, all);
        let mut contents = log.scan.contents.clone();

        let mut places = Vec::with_capacity(stored.len());
        for record in stored {
            let is_in_log = in_log.take(record.hash);
            let is_in_other = in_any.take(record.hash) || in_any.is_repeated(record.hash);
            places.push(match (is_in_log, is_in_other) {
                (true, _) => Place::Log,
                (false, true) => Place::OtherSession,
                (false, false) => Place::Lost,
            });
            if is_in_log {
                take_contents(&mut contents, &record.contents);
            }
        }
        for (record, place) in stored.iter().zip(&mut places) {
            if *place == Place::Lost && take_contents(&mut contents, &record.contents) {
                *place = Place::Log;
            }
        }
        Self { places }
    }
}

impl LogScan {
    /// Adds events of the log.
    fn add_events(&mut self, batch: &RecordBatch) {
        self.events += batch.num_rows() as i64;
        for content in event_contents(batch) {
            *self.contents.entry(content).or_default() += 1;
        }
    }
}

/// Takes the events of a record from those that a log has. Returns false, and takes none, if the log
/// does not have all of them.
fn take_contents(contents: &mut HashMap<u64, usize>, record: &[u64]) -> bool {
    let mut taken = Vec::with_capacity(record.len());
    for content in record {
        match contents.get_mut(content) {
            Some(count) if *count > 0 => {
                *count -= 1;
                taken.push(*content);
            }
            Some(_) | None => {
                for content in taken {
                    *contents.entry(content).or_default() += 1;
                }
                return false;
            }
        }
    }
    true
}

/// Returns the records of `before` that a log no longer has.
fn lost_records(has_unique_ids: bool, before: &[u64], now: &[u64]) -> HashSet<u64> {
    if !has_unique_ids {
        return surplus_records(before, now);
    }
    let now: HashSet<u64> = now.iter().copied().collect();
    before.iter().copied().filter(|hash| !now.contains(hash)).collect()
}

/// Returns whether a log is one of lines, not a document.
fn is_log_of_lines(log: &PlannedLog) -> bool {
    matches!(format_of(log.claim.provider).reader, LogReader::Lines(_))
}

/// Returns the indexes of events in ranges that are read at once.
fn event_ranges(events: i64) -> impl Iterator<Item = Range<i32>> {
    let events = i32::try_from(events).unwrap_or(i32::MAX);
    let starts = (0..events).step_by(EVENTS_AT_A_TIME as usize);
    starts.map(|from| from..from.saturating_add(EVENTS_AT_A_TIME))
}

/// Returns a hash of what each event of a batch says.
fn event_contents(batch: &RecordBatch) -> Vec<u64> {
    let times = batch
        .column_by_name(EventColumn::Timestamp.name())
        .and_then(|column| column.as_primitive_opt::<TimestampMicrosecondType>());
    let texts: Vec<Option<&StringArray>> = CONTENT_COLUMNS
        .iter()
        .map(|column| batch.column_by_name(column.name())?.as_string_opt::<i32>())
        .collect();
    let mut bytes = Vec::new();
    let mut contents = Vec::with_capacity(batch.num_rows());
    for row in 0..batch.num_rows() {
        bytes.clear();
        let time = times.filter(|times| times.is_valid(row)).map(|times| times.value(row));
        bytes.extend(time.unwrap_or(i64::MIN).to_le_bytes());
        for column in texts.iter().flatten() {
            let text = if column.is_valid(row) { column.value(row) } else { "" };
            bytes.extend((text.len() as u64).to_le_bytes());
            bytes.extend(text.as_bytes());
        }
        contents.push(xxh3_64(&bytes));
    }
    contents
}
