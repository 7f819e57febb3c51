//! A store in memory that keeps every row.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicI64, Ordering};

use arrow::array::RecordBatch;
use ingest::discover::discover;
use ingest::plan::{Known, plan};
use ingest::run::report::IngestReport;
use ingest::run::{LogCheckpoint, Progress, Sink, Target, run};
use schemas::problem::Problem;
use schemas::session::{EventRow, SessionRow, SourceRow};

#[derive(Default)]
pub struct Memory {
    rows: Mutex<Rows>,
    segment: AtomicI64,
}

#[derive(Default)]
struct Rows {
    events: Vec<EventRow>,
    sessions: BTreeMap<String, SessionRow>,
    sources: BTreeMap<String, SourceRow>,
    /// Decoder states and identities of records as they were before the present run.
    states: BTreeMap<String, String>,
    hashes: BTreeMap<String, Vec<u64>>,
    problems: Vec<Problem>,
}

impl Memory {
    /// Ingests what is below `path` and was not ingested yet.
    pub fn ingest(&self, path: &Path) -> IngestReport {
        self.ingest_all(&[path.to_owned()])
    }

    pub fn ingest_all(&self, paths: &[PathBuf]) -> IngestReport {
        self.ingest_with(paths, &())
    }

    /// Plans, and ends before the first log is read, as a run that is interrupted.
    pub fn ingest_nothing(&self, path: &Path) -> IngestReport {
        struct Cancelled;
        impl Progress for Cancelled {
            fn is_cancelled(&self) -> bool {
                true
            }
        }
        self.ingest_with(&[path.to_owned()], &Cancelled)
    }

    fn ingest_with(&self, paths: &[PathBuf], progress: &dyn Progress) -> IngestReport {
        self.segment.fetch_add(1, Ordering::Relaxed);
        let mut records: BTreeMap<String, Vec<(i64, [i64; 2])>> = BTreeMap::new();
        for event in self.events() {
            let record = (event.source_offset, [event.record_hash, event.copy_hash]);
            let records = records.entry(event.session_id).or_default();
            if records.last() != Some(&record) {
                records.push(record);
            }
        }
        let known = {
            let mut rows = self.rows.lock().expect("lock");
            let states = rows.sources.values();
            let states = states.filter_map(|row| Some((row.path.clone(), row.state.clone()?)));
            rows.states = states.collect();
            let hashes = records.into_iter().map(|(id, records)| {
                let hashes = records.into_iter().flat_map(|(_, hashes)| hashes);
                let known = hashes.filter(|hash| *hash != 0).map(i64::cast_unsigned);
                (id, known.collect::<Vec<_>>())
            });
            rows.hashes = hashes.collect();
            let sources = rows
                .sources
                .values()
                .map(|row| (row.path.clone(), SourceRow { state: None, ..row.clone() }));
            let sessions =
                rows.sessions.values().map(|row| (row.session_id.clone(), Arc::new(row.clone())));
            Known { sources: sources.collect(), sessions: sessions.collect(), ..Known::default() }
        };
        run(plan(discover(paths), &known, None), &self, None, progress).expect("infallible")
    }

    /// Live events by session and position, without what depends on when they were written.
    pub fn events(&self) -> Vec<EventRow> {
        let rows = self.rows.lock().expect("lock");
        let live = |event: &&EventRow| {
            rows.sessions.get(&event.session_id).is_some_and(|s| event.segment >= s.live_from)
        };
        let mut events: Vec<_> = rows
            .events
            .iter()
            .filter(live)
            .cloned()
            .map(|event| EventRow { segment: 0, ..event })
            .collect();
        events.sort_by(|a, b| (&a.session_id, a.event_index).cmp(&(&b.session_id, b.event_index)));
        events
    }

    pub fn sessions(&self) -> Vec<SessionRow> {
        let rows = self.rows.lock().expect("lock");
        let plain = |row: &SessionRow| SessionRow {
            segment: 0,
            live_from: 0,
            row_start: 0,
            row_count: 0,
            ..row.clone()
        };
        rows.sessions.values().map(plain).collect()
    }

    pub fn session(&self, id: &str) -> SessionRow {
        self.sessions().into_iter().find(|row| row.session_id == id).expect(id)
    }

    pub fn sources(&self) -> Vec<SourceRow> {
        self.rows.lock().expect("lock").sources.values().cloned().collect()
    }

    /// Makes all logs look as if another version of their decoder had read them.
    pub fn age_decoders(&self) {
        for source in self.rows.lock().expect("lock").sources.values_mut() {
            source.decoder_version = 0;
        }
    }

    pub fn problems(&self) -> Vec<Problem> {
        self.rows.lock().expect("lock").problems.clone()
    }
}

pub struct MemorySink<'m>(&'m Memory);

impl<'m> Target for &'m Memory {
    type Error = Infallible;
    type Sink = MemorySink<'m>;

    fn sink(&self) -> Result<MemorySink<'m>, Infallible> {
        Ok(MemorySink(self))
    }

    fn record_hashes(&self, session_id: &str) -> Result<Vec<u64>, Infallible> {
        Ok(self.rows.lock().expect("lock").hashes.get(session_id).cloned().unwrap_or_default())
    }

    fn state(&self, path: &str) -> Result<Option<String>, Infallible> {
        Ok(self.rows.lock().expect("lock").states.get(path).cloned())
    }

    fn events(&self, session_id: &str, of: &[Range<i32>]) -> Result<Vec<EventRow>, Infallible> {
        let is_asked = |row: &EventRow| of.iter().any(|of| of.contains(&row.event_index));
        let events = Memory::events(self).into_iter().filter(|row| row.session_id == session_id);
        Ok(events.filter(is_asked).collect())
    }
}

impl Sink for MemorySink<'_> {
    type Error = Infallible;

    fn segment(&mut self) -> Result<i64, Infallible> {
        Ok(self.0.segment.load(Ordering::Relaxed))
    }

    fn events(&mut self, batch: &RecordBatch) -> Result<(), Infallible> {
        let events: Vec<EventRow> = serde_arrow::from_record_batch(batch).expect("rows");
        self.0.rows.lock().expect("lock").events.extend(events);
        Ok(())
    }

    fn checkpoint(&mut self, logs: Vec<LogCheckpoint>) -> Result<(), Infallible> {
        let mut rows = self.0.rows.lock().expect("lock");
        for LogCheckpoint { session, source, problems } in logs {
            if !session.session_id.is_empty() {
                rows.sessions.insert(session.session_id.clone(), *session);
            }
            rows.sources.insert(source.path.clone(), *source);
            rows.problems.extend(problems);
        }
        Ok(())
    }

    fn finish(self) -> Result<(), Infallible> {
        Ok(())
    }
}

/// The sample sessions of the project.
pub(crate) fn samples() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../sample-sessions")
        .canonicalize()
        .expect("sample-sessions")
}

/// Copies a folder of samples.
pub(crate) fn copy_folder(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("creates");
    for entry in fs::read_dir(from).expect("lists") {
        let path = entry.expect("entry").path();
        let target = to.join(path.file_name().expect("name"));
        if path.is_dir() {
            copy_folder(&path, &target);
        } else {
            fs::copy(&path, &target).expect("copies");
        }
    }
}
