//! Writes a folder of Claude-shaped logs: words by a skewed distribution, tool outputs that look
//! like listings and code, one planted word a session. The same seed gives the same bytes.

use std::fmt::Write as _;
use std::path::Path;

/// Stands in exactly one event of every session.
pub const PLANTED: &str = "quokka-742";

/// Bytes of one session, roughly.
const SESSION: usize = 512 << 10;

const WORDS: &[&str] = &[
    "the",
    "to",
    "a",
    "of",
    "error",
    "file",
    "module",
    "request",
    "test",
    "function",
    "returns",
    "value",
    "struct",
    "expected",
    "found",
    "budget",
    "retry",
    "index",
    "pool",
    "cargo",
    "build",
    "warning",
    "unused",
    "import",
    "line",
    "thread",
    "panicked",
    "assertion",
    "left",
    "right",
    "commit",
    "branch",
    "merge",
    "config",
    "server",
    "client",
];

pub struct Corpus {
    dir: tempfile::TempDir,
    pub bytes: usize,
    pub sessions: usize,
}

struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    /// Small numbers are likelier.
    fn skewed(&mut self, end: usize) -> usize {
        let (a, b) = (self.next() as usize % end, self.next() as usize % end);
        a.min(b)
    }
}

impl Corpus {
    pub fn generate(seed: u64, bytes: usize) -> Self {
        let dir = tempfile::tempdir().expect("tempdir");
        let mut random = Random(seed);
        let mut corpus = Self { dir, bytes: 0, sessions: bytes / SESSION };
        for number in 0..corpus.sessions {
            let log = session(number, &mut random);
            let path = corpus.dir.path().join(format!("{}.jsonl", Self::session_id(number)));
            std::fs::write(path, &log).expect("writes");
            corpus.bytes += log.len();
        }
        corpus
    }

    pub fn path(&self) -> &Path {
        self.dir.path()
    }

    pub fn session_id(number: usize) -> String {
        format!("{number:08x}-0000-4000-8000-000000000000")
    }
}

fn session(number: usize, random: &mut Random) -> String {
    let id = Corpus::session_id(number);
    let mut log = String::new();
    let mut record = 0;
    while log.len() < SESSION {
        let time = format!(
            "2026-{:02}-{:02}T{:02}:{:02}:00.000Z",
            1 + number % 12,
            1 + number / 12 % 28,
            record / 60 % 24,
            record % 60
        );
        let planted = if record == 7 { PLANTED } else { "" };
        let text = prose(random, 40);
        let output = listing(random, 60);
        let frame = |kind: &str, n: usize| {
            format!(
                r#""type":"{kind}","uuid":"{number:08x}-0000-4000-8000-{:012x}","sessionId":"{id}","timestamp":"{time}","cwd":"/home/dev/project{}","gitBranch":"main","version":"2.1.80""#,
                record * 4 + n,
                number % 5
            )
        };
        let usage = format!(
            r#""usage":{{"input_tokens":{},"output_tokens":{},"cache_read_input_tokens":{}}}"#,
            random.skewed(50),
            random.skewed(900),
            random.skewed(90_000)
        );
        if record % 9 == 0 {
            let _ = writeln!(
                log,
                r#"{{{},"message":{{"role":"user","content":"{text}"}}}}"#,
                frame("user", 0)
            );
        }
        let message =
            format!(r#""id":"msg_{number}_{record}","model":"model-1","role":"assistant""#);
        let _ = writeln!(
            log,
            r#"{{{},"requestId":"req_{record}","message":{{{message},"content":[{{"type":"text","text":"{text} {planted}"}}],{usage}}}}}"#,
            frame("assistant", 1)
        );
        let _ = writeln!(
            log,
            r#"{{{},"requestId":"req_{record}","message":{{{message},"content":[{{"type":"tool_use","id":"toolu_{number}_{record}","name":"Bash","input":{{"command":"cargo test {record}"}}}}],{usage}}}}}"#,
            frame("assistant", 2)
        );
        let _ = writeln!(
            log,
            r#"{{{},"message":{{"role":"user","content":[{{"type":"tool_result","tool_use_id":"toolu_{number}_{record}","content":"{output}"}}]}},"toolUseResult":{{"stdout":"{output}","stderr":""}}}}"#,
            frame("user", 3)
        );
        record += 1;
    }
    log
}

fn prose(random: &mut Random, words: usize) -> String {
    (0..words).map(|_| WORDS[random.skewed(WORDS.len())]).collect::<Vec<_>>().join(" ")
}

fn listing(random: &mut Random, lines: usize) -> String {
    let mut out = String::new();
    for line in 0..lines {
        let _ = write!(
            out,
            "{line:>5}  {:08x} {} {}\\n",
            random.next() as u32,
            WORDS[random.skewed(WORDS.len())],
            prose(random, 4)
        );
    }
    out
}
