//! What the fuzz targets share: a store in memory, and the rows that it must hold.

mod mutate;

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::ops::Range;
use std::path::Path;
use std::sync::{Arc, LazyLock, Mutex};

use arrow::array::{AsArray, RecordBatch};
use arrow::compute::concat_batches;
use arrow::datatypes::{Int32Type, Int64Type};
use ingest::plan::{Known, Plan};
use ingest::redact::Redactor;
use ingest::run::report::IngestReport;
use ingest::run::{LogCheckpoint, Sink, Target, run};
use ingest::stream::batch::{SessionRows, events_schema, rows_by_session};
use schemas::session::{EventRow, SessionRow, SourceRow};

pub use mutate::mutate_log;

/// The built-in rules.
pub static REDACTOR: LazyLock<Arc<Redactor>> =
    LazyLock::new(|| Arc::new(Redactor::new(&[]).expect("the built-in rules")));

/// A store in memory. It keeps the batches as they come.
#[derive(Default)]
pub struct Memory(Mutex<Rows>);

#[derive(Default)]
struct Rows {
    /// By session.
    batches: BTreeMap<String, Vec<RecordBatch>>,
    sessions: BTreeMap<String, SessionRow>,
    sources: BTreeMap<String, SourceRow>,
    /// Those of logs that are re-read, as they were before.
    before: BTreeMap<String, Vec<RecordBatch>>,
}

impl Memory {
    /// Supersedes all events: every log is re-read.
    pub fn read_anew(&self) {
        let mut rows = self.0.lock().expect("lock");
        rows.before = std::mem::take(&mut rows.batches);
    }

    /// Carries out a plan, with secrets masked as by default.
    pub fn run(&self, plan: Plan) -> IngestReport {
        run(plan, &self, Some(&REDACTOR), &()).expect("infallible")
    }

    /// What the next plan has to know.
    pub fn known(&self) -> Known {
        let rows = self.0.lock().expect("lock");
        let sources = rows.sources.values().map(|row| SourceRow { state: None, ..row.clone() });
        Known {
            sources: sources.map(|row| (row.path.clone(), row)).collect(),
            sessions: rows
                .sessions
                .iter()
                .map(|(id, row)| (id.clone(), Arc::new(row.clone())))
                .collect(),
            ..Known::default()
        }
    }

    /// The row of a log.
    pub fn source(&self, path: &Path) -> Option<SourceRow> {
        self.0.lock().expect("lock").sources.get(&*path.to_string_lossy()).cloned()
    }

    /// The sessions and their events.
    pub fn sessions(&self) -> Vec<(SessionRow, RecordBatch)> {
        let rows = self.0.lock().expect("lock");
        let events = |id: &str| {
            let batches = rows.batches.get(id).map_or(&[][..], Vec::as_slice);
            concat_batches(&events_schema(), batches).expect("one schema")
        };
        rows.sessions.values().map(|row| (row.clone(), events(&row.session_id))).collect()
    }
}

impl Target for &Memory {
    type Error = Infallible;
    type Sink = Self;

    fn sink(&self) -> Result<Self, Infallible> {
        Ok(self)
    }

    fn record_hashes(&self, session_id: &str) -> Result<Vec<u64>, Infallible> {
        let rows = self.0.lock().expect("lock");
        let (mut hashes, mut last) = (Vec::new(), None);
        for batch in rows.batches.get(session_id).map_or(&[][..], Vec::as_slice) {
            let column = |name: &str| {
                batch.column_by_name(name).expect("a column").as_primitive::<Int64Type>().values()
            };
            let both = column("record_hash").iter().zip(column("copy_hash"));
            for (offset, (hash, copy)) in column("source_offset").iter().zip(both) {
                let record = Some((*offset, *hash, *copy));
                if last != record {
                    let known = [hash, copy].into_iter().filter(|hash| **hash != 0);
                    hashes.extend(known.map(|hash| hash.cast_unsigned()));
                }
                last = record;
            }
        }
        Ok(hashes)
    }

    fn state(&self, path: &str) -> Result<Option<String>, Infallible> {
        let rows = self.0.lock().expect("lock");
        Ok(rows.sources.get(path).and_then(|row| row.state.clone()))
    }

    fn events(&self, session_id: &str, of: &[Range<i32>]) -> Result<Vec<EventRow>, Infallible> {
        let rows = self.0.lock().expect("lock");
        let batches = rows.before.get(session_id).map_or(&[][..], Vec::as_slice);
        let events = batches.iter().flat_map(|batch| {
            serde_arrow::from_record_batch::<Vec<EventRow>>(batch).expect("rows of events")
        });
        let is_asked = |event: &EventRow| of.iter().any(|of| of.contains(&event.event_index));
        Ok(events.filter(is_asked).collect())
    }
}

impl Sink for &Memory {
    type Error = Infallible;

    fn segment(&mut self) -> Result<i64, Infallible> {
        Ok(1)
    }

    fn events(&mut self, batch: &RecordBatch) -> Result<(), Infallible> {
        let mut stored = self.0.lock().expect("lock");
        for SessionRows { session_id, rows } in rows_by_session(batch) {
            let rows = batch.slice(rows.start, rows.len());
            stored.batches.entry(session_id.to_owned()).or_default().push(rows);
        }
        Ok(())
    }

    fn checkpoint(&mut self, logs: Vec<LogCheckpoint>) -> Result<(), Infallible> {
        let mut rows = self.0.lock().expect("lock");
        for LogCheckpoint { session, source, .. } in logs {
            if !session.session_id.is_empty() {
                rows.sessions.insert(session.session_id.clone(), *session);
            }
            rows.sources.insert(source.path.clone(), *source);
        }
        Ok(())
    }

    fn finish(self) -> Result<(), Infallible> {
        Ok(())
    }
}

/// What is true of the events of any session whose content has this number of bytes.
pub fn check_events(session: &SessionRow, events: &RecordBatch, length: u64) {
    let column = |name: &str| events.column_by_name(name).expect("a column");
    let (index, turn) = (column("event_index"), column("turn_index"));
    let (index, turn) = (index.as_primitive::<Int32Type>(), turn.as_primitive::<Int32Type>());
    let (offset, size) = (column("source_offset"), column("source_length"));
    let (offset, size) = (offset.as_primitive::<Int64Type>(), size.as_primitive::<Int64Type>());
    assert_eq!(session.events, i64::try_from(events.num_rows()).expect("few"));
    for row in 0..events.num_rows() {
        assert_eq!(index.value(row), i32::try_from(row).expect("few"), "events are numbered");
        assert!(turn.value(row) >= turn.value(row.saturating_sub(1)), "turns go on: {row}");
        let place = offset.value(row)..offset.value(row).saturating_add(size.value(row));
        let inside = place.start >= 0 && size.value(row) >= 0;
        assert!(inside && place.end.cast_unsigned() <= length, "event {row} lies at {place:?}");
    }
}

/// Panics with the first event that is not the same.
pub fn check_same(a: &RecordBatch, b: &RecordBatch) {
    for row in 0..a.num_rows().min(b.num_rows()) {
        let (a, b) = (a.slice(row, 1), b.slice(row, 1));
        assert!(a == b, "event {row} differs:\n{a:#?}\n{b:#?}");
    }
    assert_eq!(a.num_rows(), b.num_rows(), "as many events");
}
