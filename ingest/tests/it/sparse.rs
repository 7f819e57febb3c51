//! Files with huge holes: a machine that crashed leaves them, and they take no room on the disk. To
//! read the holes of these tests would take an hour.

use std::fs::{self, File};
use std::io::{Seek as _, SeekFrom, Write as _};
use std::path::Path;

use schemas::problem::ProblemKind;

use crate::arrival::{record, session};
use crate::memory::{Memory, samples};
use crate::traps::texts;

const TERABYTE: u64 = 1 << 40;

/// Writes pieces of text, each at its position, and gives the file this length.
fn write_sparse(path: &Path, pieces: &[(u64, &str)], length: u64) {
    let mut file = File::create(path).expect("creates");
    for (position, text) in pieces {
        file.seek(SeekFrom::Start(*position)).expect("seeks");
        file.write_all(text.as_bytes()).expect("writes");
    }
    file.set_len(length).expect("grows");
}

fn prompts_of(memory: &Memory) -> Vec<String> {
    texts(memory).into_iter().filter(|text| text.starts_with("prompt")).collect()
}

#[test]
fn records_around_a_hole_are_read() {
    let dir = tempfile::tempdir().expect("tempdir");
    let (first, second) = (record(&session(1), 1, ""), format!("\n{}", record(&session(1), 2, "")));
    let at = TERABYTE - second.len() as u64;
    for (name, begin) in [("a.jsonl", first.as_str()), ("b.jsonl", "")] {
        let path = dir.path().join(name);
        write_sparse(&path, &[(0, begin), (at, &second)], TERABYTE);
        let memory = Memory::default();
        let report = memory.ingest(&path);
        let wanted: &[&str] =
            if begin.is_empty() { &["prompt 2"] } else { &["prompt 1", "prompt 2"] };
        assert_eq!(prompts_of(&memory), wanted, "{name}: {report:?}");
        let kinds: Vec<_> = memory.problems().iter().map(|problem| problem.kind).collect();
        assert_eq!(kinds, [ProblemKind::OversizedRecord], "{name}");
    }
}

#[test]
fn a_log_that_ends_with_a_hole_waits_for_its_rest() {
    let dir = tempfile::tempdir().expect("tempdir");
    let path = dir.path().join("a.jsonl");
    let (first, second) = (record(&session(1), 1, ""), format!("\n{}", record(&session(1), 2, "")));
    write_sparse(&path, &[(0, &first)], TERABYTE);
    let memory = Memory::default();
    let report = memory.ingest(&path);
    assert_eq!(report.problems.get("incomplete_line"), Some(&1), "{report:?}");
    assert_eq!(prompts_of(&memory), ["prompt 1"]);
    write_sparse(&path, &[(0, &first), (TERABYTE, &second)], TERABYTE + second.len() as u64);
    memory.ingest(&path);
    assert_eq!(prompts_of(&memory), ["prompt 1", "prompt 2"]);
}

#[test]
fn files_that_are_only_a_hole_are_no_logs() {
    let dir = tempfile::tempdir().expect("tempdir");
    for name in ["a.jsonl", "b.json", "rollout-c.jsonl"] {
        write_sparse(&dir.path().join(name), &[], TERABYTE);
    }
    let memory = Memory::default();
    let report = memory.ingest(dir.path());
    assert_eq!((report.files, report.files_unknown, report.bytes_read), (3, 3, 0), "{report:?}");
}

#[test]
fn logs_that_share_history_are_compared_without_their_holes() {
    let dir = tempfile::tempdir().expect("tempdir");
    let log = |records: usize| (0..records).map(|n| record(&session(1), n, "")).collect::<String>();
    write_sparse(&dir.path().join("a.jsonl"), &[(0, &log(3)), (TERABYTE, "\n")], TERABYTE + 1);
    fs::write(dir.path().join("b.jsonl"), log(5)).expect("writes");
    let memory = Memory::default();
    memory.ingest(dir.path());
    let counted: i64 = memory.sessions().iter().map(|row| row.turns).sum();
    assert_eq!(counted, 5);
}

/// The files next to logs, which the samples of these agents have, are as large as a hole can be.
#[test]
fn a_file_next_to_a_log_is_not_read_if_it_is_huge() {
    let dir = tempfile::tempdir().expect("tempdir");
    let mut pending = vec![samples()];
    let mut holes = 0;
    while let Some(folder) = pending.pop() {
        for entry in fs::read_dir(folder).expect("lists").flatten() {
            let path = entry.path();
            let copy = dir.path().join(path.strip_prefix(samples()).expect("below"));
            if path.is_dir() {
                fs::create_dir_all(&copy).expect("creates");
                pending.push(path);
                continue;
            }
            fs::copy(&path, &copy).expect("copies");
            let log = copy.with_extension("jsonl");
            let is_sidecar = copy.extension().is_some_and(|end| end == "json")
                && path.with_extension("jsonl").exists();
            if is_sidecar && log != copy {
                write_sparse(&copy, &[], TERABYTE);
                holes += 1;
            }
        }
    }
    assert!(holes > 0);
    let report = Memory::default().ingest(dir.path());
    assert!(report.sessions > 30, "{report:?}");
}
