//! Measures logs that cost the most for their size: many files, many records, or few bytes that
//! unpack to many. Time and memory of each must stay in proportion.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::Path;

use flate2::Compression;
use flate2::write::GzEncoder;

use crate::measure::{Ran, command};

/// Highest peak memory of an ingest in MB, whatever it reads.
const MOST_MB: u64 = 400;

const FILES: u64 = 100_000;
const LINES: u64 = 3_000_000;
/// Lines of the compressed log, which takes 3.6 MB.
const COMPRESSED_LINES: u64 = 1_200_000;

/// A kind of log that costs much.
struct Shape {
    name: &'static str,
    /// Writes logs of this kind into a folder and returns their unpacked bytes.
    write: fn(&Path) -> io::Result<u64>,
    files: u64,
    /// Events that the logs contain.
    events: u64,
}

const SHAPES: &[Shape] = &[
    Shape { name: "100,000 logs of one prompt", write: tiny_logs, files: FILES, events: FILES },
    Shape { name: "3 million lines `{}`", write: empty_records, files: 1, events: 1 },
    Shape { name: "1 million lines `{\"a\":1}`", write: odd_records, files: 1, events: 1001 },
    Shape { name: "1 million unknown records", write: unknown_records, files: 1, events: 10_001 },
    Shape { name: "5 million lines `x`", write: garbage, files: 1, events: 1 },
    Shape {
        name: "1.2 million prompts, compressed",
        write: compressed,
        files: 1,
        events: COMPRESSED_LINES,
    },
];

/// Ingests each shape into a store of its own and prints what it took.
pub(crate) fn run(dir: &Path) {
    println!(
        "| worst shapes | seconds | MB | MB/s | events/s | peak MB |\n|---|---|---|---|---|---|"
    );
    for shape in SHAPES {
        let (logs, store) = (dir.join("worst"), dir.join("worst-store"));
        fs::create_dir(&logs).expect("creates");
        let bytes = (shape.write)(&logs).expect("writes");
        let Ran { seconds, peak_mb, json } =
            command(&["--json", "ingest", &logs.to_string_lossy()], &store);
        assert_eq!(json["files"], shape.files, "{}", shape.name);
        assert_eq!(json["events"], shape.events, "{}", shape.name);
        assert!(peak_mb < MOST_MB, "{}: {peak_mb} MB", shape.name);
        let megabytes = bytes as f64 / 1e6;
        println!(
            "| {} | {seconds:.1} | {megabytes:.1} | {:.1} | {:.0} | {peak_mb} |",
            shape.name,
            megabytes / seconds,
            shape.events as f64 / seconds,
        );
        fs::remove_dir_all(&logs).expect("removes");
        fs::remove_dir_all(&store).expect("removes");
    }
    println!();
}

fn prompt(session: u64, number: u64) -> String {
    format!(
        "{{\"type\":\"user\",\"uuid\":\"{number:08x}-1111-4000-8000-{session:012x}\",\"parentUuid\":null,\"sessionId\":\"{session:08x}-0000-4000-8000-000000000000\",\"cwd\":\"/p\",\"timestamp\":\"2026-01-01T00:00:00.000Z\",\"version\":\"2.1.42\",\"message\":{{\"role\":\"user\",\"content\":\"hello {number}\"}}}}\n"
    )
}

fn tiny_logs(dir: &Path) -> io::Result<u64> {
    let mut bytes = 0;
    for session in 0..FILES {
        let dir = dir.join(format!("{}", session % 100));
        if session < 100 {
            fs::create_dir(&dir)?;
        }
        let log = prompt(session, 0);
        fs::write(dir.join(format!("{session:08x}-0000-4000-8000-000000000000.jsonl")), &log)?;
        bytes += log.len() as u64;
    }
    Ok(bytes)
}

fn empty_records(dir: &Path) -> io::Result<u64> {
    lines(dir, "{}\n", LINES)
}

fn odd_records(dir: &Path) -> io::Result<u64> {
    lines(dir, "{\"a\":1}\n", 1_000_000)
}

fn unknown_records(dir: &Path) -> io::Result<u64> {
    let records = (0..1_000_000).map(|number| format!("{{\"a\":{number}}}\n"));
    write_log(dir, records)
}

fn garbage(dir: &Path) -> io::Result<u64> {
    lines(dir, "x\n", 5_000_000)
}

/// Writes a log of one prompt and then the same line `count` times.
fn lines(dir: &Path, line: &str, count: u64) -> io::Result<u64> {
    write_log(dir, (0..count).map(|_| line))
}

/// Writes a log of one prompt and these lines, and returns its bytes.
fn write_log<L: AsRef<str>>(dir: &Path, lines: impl Iterator<Item = L>) -> io::Result<u64> {
    let mut out = BufWriter::new(File::create(dir.join("log.jsonl"))?);
    let first = prompt(1, 0);
    out.write_all(first.as_bytes())?;
    let mut bytes = first.len() as u64;
    for line in lines {
        out.write_all(line.as_ref().as_bytes())?;
        bytes += line.as_ref().len() as u64;
    }
    out.flush()?;
    Ok(bytes)
}

fn compressed(dir: &Path) -> io::Result<u64> {
    let file = BufWriter::new(File::create(dir.join("log.jsonl.gz"))?);
    let mut out = GzEncoder::new(file, Compression::best());
    let mut bytes = 0;
    for number in 0..COMPRESSED_LINES {
        let line = prompt(1, number);
        out.write_all(line.as_bytes())?;
        bytes += line.len() as u64;
    }
    out.finish()?.flush()?;
    Ok(bytes)
}
