//! A log that grows, cut at any byte and ingested piece by piece, gives the same rows as in one go.

use std::fs::File;
use std::path::Path;
use std::time::{Duration, SystemTime};

use proptest::prelude::*;
use proptest::sample::select;
use proptest::test_runner::TestRunner;
use schemas::Provider;
use schemas::session::{EventRow, SessionRow, SourceStatus};
use serde_json::{Value as Json, json};

use crate::memory::{Memory, samples};

/// How far a log was read: bytes, lines, objects, and what is remembered there.
type Checkpoint = (i64, i64, i64, Option<String>);

/// The state in which the files next to a log are while only a part of the log exists.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Companions {
    /// They do not exist yet.
    Missing,
    /// Their counts are smaller, and their titles and models are others.
    Earlier,
    /// They are as they will be with the whole log.
    Ahead,
}

const COMPANIONS: [Companions; 3] = [Companions::Missing, Companions::Earlier, Companions::Ahead];

/// A log, with the files next to it that have more facts about its session.
struct Sample {
    path: String,
    content: Vec<u8>,
    companions: Vec<(String, Vec<u8>)>,
}

impl Sample {
    fn read(path: &str) -> Self {
        let read = |path: &str| std::fs::read(samples().join(path)).expect(path);
        let companions = companions_of(path).into_iter();
        let mut companions: Vec<_> = companions.map(|path| (path.clone(), read(&path))).collect();
        if let Some(folder) = path.strip_suffix("/chat_history.jsonl") {
            companions.push((format!("{folder}/updates.jsonl"), grok_updates()));
        }
        Self { path: path.to_owned(), content: read(path), companions }
    }

    /// The states of the files next to the log that can be told apart.
    fn states(&self) -> &'static [Companions] {
        if self.companions.is_empty() { &[Companions::Ahead] } else { &COMPANIONS }
    }

    /// Returns the files next to the log while `part` of the log, from 0 to 1, exists.
    fn companions_at(&self, part: f64, state: Companions) -> Vec<(&str, Vec<u8>)> {
        let mut companions = Vec::new();
        for (path, content) in &self.companions {
            let content = match state {
                Companions::Missing => continue,
                Companions::Ahead => content.clone(),
                Companions::Earlier => {
                    if let Ok(mut json) = serde_json::from_slice(content) {
                        set_back(&mut json, "", part);
                        json.to_string().into_bytes()
                    } else {
                        content[..(content.len() as f64 * part) as usize].to_vec()
                    }
                }
            };
            companions.push((path.as_str(), content));
        }
        companions
    }
}

/// Returns the files next to a sample that its decoder reads.
fn companions_of(log: &str) -> Vec<String> {
    let (folder, name) = log.rsplit_once('/').expect("a folder");
    let stem = name.strip_suffix(".jsonl").unwrap_or(name);
    let session = log.split_once("/agents/").map_or(folder, |(session, _)| session);
    let companions = [
        format!("{folder}/{stem}.settings.json"),
        format!("{folder}/{stem}.json"),
        format!("{folder}/{}", name.replace(".messages.json", ".json")),
        format!("{folder}/summary.json"),
        format!("{log}.meta"),
        format!("{folder}/meta.json"),
        format!("{folder}/run-state.json"),
        format!("{session}/state.json"),
        "kimi/kimi.json".to_owned(),
    ];
    let is_companion = |path: &String| {
        path != log
            && path.split('/').next() == log.split('/').next()
            && samples().join(path).is_file()
    };
    companions.into_iter().filter(is_companion).collect()
}

/// The token counts of Grok's turns, two of them by model.
fn grok_updates() -> Vec<u8> {
    let mut updates = String::new();
    for turn in 1..=3 {
        let mut usage = json!({ "inputTokens": 900 * turn, "outputTokens": 40 });
        if turn < 3 {
            usage =
                json!({ "modelUsage": { "grok-4.5": usage, "grok-mini": { "inputTokens": 7 } } });
        }
        let update = json!({ "sessionUpdate": "turn_completed", "usage": usage });
        let line = json!({ "timestamp": 1_792_686_000 + turn, "params": { "update": update } });
        updates.push_str(&format!("{line}\n"));
    }
    updates.into_bytes()
}

/// Makes the content of a file that of an earlier time: counts are smaller, names are others.
fn set_back(json: &mut Json, key: &str, part: f64) {
    match json {
        Json::Number(count) => {
            *json = Json::from((count.as_f64().unwrap_or_default() * part) as i64);
        }
        Json::String(text) if key.contains("itle") || key.contains("model") => {
            text.insert_str(0, "earlier ");
        }
        Json::Array(items) => items.iter_mut().for_each(|item| set_back(item, key, part)),
        Json::Object(fields) => {
            fields.iter_mut().for_each(|(key, value)| set_back(value, key, part));
        }
        Json::Null | Json::Bool(_) | Json::String(_) => {}
    }
}

/// Rows after ingesting the growing prefixes of a log at `cuts`, and then all of it. Until then the
/// files next to the log are in this `state`.
fn ingest_in_pieces(
    sample: &Sample,
    cuts: &[usize],
    state: Companions,
) -> (Vec<EventRow>, Vec<SessionRow>, Vec<Checkpoint>) {
    let dir = tempfile::tempdir().expect("tempdir");
    let memory = Memory::default();
    let length = sample.content.len();
    let pieces = cuts.iter().map(|cut| (*cut, state)).chain([(length, Companions::Ahead)]);
    for (at, (cut, state)) in pieces.enumerate() {
        // The time of a file may be coarse, and a file of the same size and time is unchanged. The
        // whole log always has the same time, which is that of a session without times.
        let age = Duration::from_secs((cuts.len() - at) as u64);
        let time = SystemTime::UNIX_EPOCH + Duration::from_secs(1_800_000_000) - age;
        let write = |path: &str, content: &[u8]| {
            let path = dir.path().join(path);
            std::fs::create_dir_all(path.parent().expect("folder")).expect("creates");
            std::fs::write(&path, content).expect("writes");
            let file = File::options().append(true).open(&path).expect("opens");
            file.set_modified(time).expect("sets the time");
        };
        // Some logs are named by their folders, or known by them.
        write(&sample.path, &sample.content[..cut]);
        for (path, content) in sample.companions_at(cut as f64 / length as f64, state) {
            write(path, &content);
        }
        memory.ingest(dir.path());
    }
    let place = dir.path().to_string_lossy().into_owned();
    let sessions = memory
        .sessions()
        .into_iter()
        .map(|row| SessionRow { source_path: row.source_path.replace(&place, ""), ..row });
    let sources = memory.sources().into_iter();
    let checkpoints = sources.map(|row| (row.consumed, row.lines, row.objects, row.state));
    (memory.events(), sessions.collect(), checkpoints.collect())
}

fn check(sample: &Sample, cuts: &[usize], state: Companions) {
    let mut cuts: Vec<_> = cuts.iter().map(|cut| cut % (sample.content.len() + 1)).collect();
    cuts.sort_unstable();
    let whole = ingest_in_pieces(sample, &[], state);
    let pieces = ingest_in_pieces(sample, &cuts, state);
    let name = &sample.path;
    for (a, b) in whole.0.iter().zip(&pieces.0) {
        assert_eq!(a, b, "{name} {cuts:?} {state:?}");
    }
    assert_eq!(whole.0.len(), pieces.0.len(), "{name} {cuts:?} {state:?}");
    assert_eq!(whole.1, pieces.1, "{name} {cuts:?} {state:?}");
    assert_eq!(whole.2, pieces.2, "{name} {cuts:?} {state:?}");
}

fn check_content(sample: &str, content: &[u8], cuts: &[usize]) {
    let content = content.to_vec();
    let sample = Sample { path: sample.to_owned(), content, companions: Vec::new() };
    check(&sample, cuts, Companions::Missing);
}

/// The sample logs that are files of their own.
fn logs() -> Vec<String> {
    let memory = Memory::default();
    memory.ingest(&samples());
    let mut logs = Vec::new();
    for source in memory.sources() {
        let path = Path::new(&source.path);
        // Not a part of a database, and not compressed.
        let is_file = path.is_file()
            && path.extension().is_none_or(|extension| extension != "db")
            && source.provider != Some(Provider::OpenCode);
        let path = path.strip_prefix(samples()).expect("a sample");
        if source.status == SourceStatus::Ok && source.session_id.is_some() && is_file {
            logs.push(path.to_string_lossy().into_owned());
        }
    }
    logs
}

#[test]
fn any_cut_gives_the_same_rows() {
    let samples: Vec<_> = logs().iter().map(|log| Sample::read(log)).collect();
    let cuts = proptest::collection::vec(any::<usize>(), 1..6);
    for sample in &samples {
        let states = sample.states();
        let cases = 5 * states.len() as u32;
        let mut runner = TestRunner::new(ProptestConfig::with_cases(cases));
        let checked = runner.run(&(&cuts, select(states)), |(cuts, state)| {
            check(sample, &cuts, state);
            Ok(())
        });
        checked.expect("the same rows");
    }
}

/// Where each line ends.
fn ends(content: &[u8]) -> Vec<usize> {
    memchr::memchr_iter(b'\n', content).map(|at| at + 1).collect()
}

#[test]
fn a_cut_behind_every_line_gives_the_same_rows() {
    for log in logs() {
        let sample = Sample::read(&log);
        for state in sample.states() {
            check(&sample, &ends(&sample.content), *state);
        }
    }
}

/// A record that stands there twice is a copy, also where nothing else was read before it.
#[test]
fn lines_that_stand_there_twice_give_the_same_rows() {
    for log in logs() {
        let mut sample = Sample::read(&log);
        let lines = sample.content.split_inclusive(|byte| *byte == b'\n');
        let twice = lines.flat_map(|line| [line, line]).collect::<Vec<_>>().concat();
        let cuts = ends(&twice);
        sample.content = twice;
        check(&sample, &cuts, Companions::Ahead);
    }
}

/// A record is read as soon as it is whole: what comes behind it on the last line, were it no JSON,
/// must not undo that.
#[test]
fn whatever_follows_a_whole_record_the_rows_are_the_same() {
    let sample =
        "claude/projects/-home-mira-code-harbor/9ae82b3a-fd82-48da-afd8-479f58648cbe.jsonl";
    let content = std::fs::read(samples().join(sample)).expect(sample);
    let record = content.split(|byte| *byte == b'\n').next().expect("a line");
    for (tail, records) in [
        (&b"\xa7\0\0{}"[..], 1),
        (b"\0\0\0\0\x1d", 1),
        (b" \t\r", 1),
        (b"{\"a\":1", 1),
        (b"-0", 1),
        (b"[1] {}-0", 2),
        (b"}\n{}", 2),
    ] {
        let content = [record, tail].concat();
        let whole =
            Sample { path: sample.to_owned(), content: content.clone(), companions: Vec::new() };
        let (.., checkpoints) = ingest_in_pieces(&whole, &[], Companions::Missing);
        assert_eq!(checkpoints.first().map(|row| row.2), Some(records), "{tail:?}");
        for cut in record.len()..content.len() {
            check_content(sample, &content, &[cut]);
            check_content(sample, &content, &[record.len(), cut]);
        }
    }
}
