//! Small logs that are read in one run are handed over together. They have the rows that each has
//! alone, whatever happens to a log between them.

use std::fmt::Write as _;
use std::path::PathBuf;

use crate::memory::Memory;
use crate::rewritten::gemini;
use crate::traps::write;

/// A log of one prompt.
fn prompt(id: &str) -> String {
    format!(
        r#"{{"type":"user","uuid":"u-{id}","sessionId":"{id}","cwd":"/p","timestamp":"2026-10-01T10:00:00.000Z","message":{{"role":"user","content":"hello {id}"}}}}"#
    ) + "\n"
}

/// The first lines of a log in which a result comes before its call.
fn early_result(lines: usize) -> String {
    let record = |n: usize, kind: &str, content: &str| {
        format!(
            r#"{{"type":"{kind}","uuid":"e-{n}","sessionId":"early","timestamp":"2026-10-01T10:00:0{n}.000Z","message":{{"id":"m-{n}","role":"{kind}","model":"m","content":[{content}]}}}}"#
        )
    };
    let all = [
        record(0, "user", r#"{"type":"tool_result","tool_use_id":"t1","content":"done"}"#),
        record(
            1,
            "assistant",
            r#"{"type":"tool_use","id":"t1","name":"Bash","input":{"command":"ls"}}"#,
        ),
        record(2, "assistant", r#"{"type":"text","text":"and on"}"#),
    ];
    let mut log = String::new();
    for line in &all[..lines] {
        writeln!(log, "{line}").expect("writes");
    }
    log
}

#[test]
fn logs_read_together_have_the_rows_of_logs_read_alone() {
    let dir = tempfile::tempdir().expect("tempdir");
    let (together, alone) = (Memory::default(), Memory::default());
    let mut files: Vec<PathBuf> = Vec::new();
    for round in 0..3 {
        for n in 0..9 {
            let id = format!("s{round}{n}");
            let path = dir.path().join(format!("{id}.jsonl"));
            write(&path, &prompt(&id), round * 100 + n * 10);
            files.push(path);
        }

        // By its time of change it is read between the small logs. It loses messages, with which it
        // is then decoded again.
        let document = dir.path().join("session-1.json");
        let messages: &[usize] = [&[0, 1, 2, 3, 4][..], &[0, 1, 2], &[0, 1, 2, 5]][round as usize];
        write(&document, &gemini(messages), round * 100 + 35);
        // It is read again from its start once the call of its first result has come.
        let early = dir.path().join("early.jsonl");
        write(&early, &early_result(round as usize + 1), round * 100 + 55);
        files.extend([document, early]);

        together.ingest(dir.path());
        for file in &files {
            alone.ingest(file);
        }
    }

    assert_eq!(together.events(), alone.events());
    assert_eq!(together.sessions(), alone.sessions());
    assert_eq!(together.sessions().len(), 29);
    let events = together.events();
    let result = events.iter().find(|event| event.text == "done").expect("the result");
    assert_eq!(result.tool_name.as_deref(), Some("Bash"));
}
