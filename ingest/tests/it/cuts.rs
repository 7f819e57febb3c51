//! A log that grows, cut at any byte and ingested piece by piece, gives the same rows as in one go.

use proptest::prelude::*;
use schemas::session::{EventRow, SessionRow};

use crate::memory::{Memory, samples};

/// How far a log was read: bytes, lines, objects, and what is remembered there.
type Checkpoint = (i64, i64, i64, Option<String>);

/// Rows after ingesting the growing prefixes of `content` at `cuts`, and then all of it.
fn ingest_in_pieces(
    sample: &str,
    content: &[u8],
    cuts: &[usize],
) -> (Vec<EventRow>, Vec<SessionRow>, Vec<Checkpoint>) {
    let dir = tempfile::tempdir().expect("tempdir");
    // Some logs are named by their folders, or known by them.
    let path = dir.path().join(sample);
    std::fs::create_dir_all(path.with_file_name("")).expect("creates");
    let memory = Memory::default();
    for cut in cuts.iter().copied().chain([content.len()]) {
        std::fs::write(&path, &content[..cut]).expect("writes");
        // A step back in time would look like an unchanged file where the size is the same.
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

fn check(sample: &str, cuts: &[usize]) {
    let content = std::fs::read(samples().join(sample)).expect(sample);
    let mut cuts: Vec<_> = cuts.iter().map(|cut| cut % (content.len() + 1)).collect();
    cuts.sort_unstable();
    check_content(sample, &content, &cuts);
}

fn check_content(sample: &str, content: &[u8], cuts: &[usize]) {
    let whole = ingest_in_pieces(sample, content, &[]);
    let pieces = ingest_in_pieces(sample, content, cuts);
    assert_eq!(whole.0.len(), pieces.0.len(), "{sample} {cuts:?}");
    for (a, b) in whole.0.iter().zip(&pieces.0) {
        assert_eq!(a, b, "{sample} {cuts:?}");
    }
    assert_eq!(whole.1, pieces.1, "{sample} {cuts:?}");
    assert_eq!(whole.2, pieces.2, "{sample} {cuts:?}");
}

const GROWING: &[&str] = &[
    "claude/projects/-home-mira-code-harbor/9ae82b3a-fd82-48da-afd8-479f58648cbe.jsonl",
    "codex/sessions/2026/10/14/rollout-2026-10-14T09-12-31-01a13941-6cb9-7f1e-a741-65890d73c8a5.jsonl",
    "codex/sessions/2025/08/30/rollout-2025-08-30T16-20-05-a9ba27f4-afb3-4e98-b67b-507357e1298c.jsonl",
    "gemini/tmp/harbor/chats/session-2026-10-17T18-05-d6eac969.jsonl",
    "amp/threads/T-019a2b9c-0f52-7a61-8c4e-2d7b91e0a5f3.json",
    "antigravity/brain/40f598dc-b86b-4a1e-a141-0284d718fe70/.system_generated/logs/transcript_full.jsonl",
    "copilot/session-state/c94b27d0-51ea-4f3b-8d16-0a7e35f2b8c1.jsonl",
    "copilot/session-state/6f0e51c4-2b7d-4c0e-9a35-d1e84b7092fa/events.jsonl",
    "cursor/projects/home-mira-code-harbor/agent-transcripts/bd9a5fef-432c-429a-93ba-2f5d10a06795/bd9a5fef-432c-429a-93ba-2f5d10a06795.jsonl",
    "droid/exec/changelog-2026-10-22.jsonl",
    "generic/agent-sessions/chat-2026-10-29.jsonl",
    "generic/agent-sessions/dockhand-2026-10-29-0600.jsonl",
    "grok/sessions/%2Fhome%2Fmira%2Fcode%2Fharbor/01a16469-9b80-7e09-9210-af9b16703813/chat_history.jsonl",
    "hermes/sessions/20261024_090000_c5cc9051.jsonl",
    "iflow/projects/-home-mira-code-harbor/session-3d90c1f7-6a2b-4b58-8f13-0b7ad2f4e6c9.jsonl",
    "kimi/sessions/278a9d733829b651e35513e5e2a98521/351065ee-11d6-4be3-9e4c-607f0d0be5b7/context.jsonl",
    "kimi/sessions/278a9d733829b651e35513e5e2a98521/b92f5e7c-f6c8-493b-929e-d28196c194bf/wire.jsonl",
    "kimi/sessions/wd_harbor_cef702472212/session_5aaa847f-c7d7-4ff7-bdbb-0fd6d8632f93/agents/main/wire.jsonl",
    "kiro/sessions/cli/7c1f0c52-3a57-4f0b-9a51-1f2c9e6b40d3.jsonl",
    "openclaw/agents/main/sessions/3c23761a-0fed-40b8-a327-319dbef2f022.jsonl",
    "openclaw/agents/main/sessions/6bce6b0c-7c8a-40c3-95e9-925cac951126.jsonl.reset.2026-10-20T06-02-10.301Z",
    "pi/agent/sessions/--home-mira-code-harbor--/2025-12-09T17-20-31-044Z_25d4a5b8-fd89-4cbf-b1d3-ce3c146ccc47.jsonl",
    "pi/agent/sessions/--home-mira-code-harbor--/2026-10-19T08-12-44-120Z_01a15338-58d8-7a36-8980-b409e8a22c87.jsonl",
    "qwen/projects/-home-mira-code-harbor/chats/e40c9b55-8d21-4f7e-b3a9-6c0d5e2f7b18.jsonl",
    "vscopilot/VSGitHubCopilotLogs/traces/20261021T074512_5d0c9a3e_VSGitHubCopilot_traces.jsonl",
    "broken/two-on-one-line.jsonl",
    "broken/bad-middle.jsonl",
    "broken/crlf-bom.jsonl",
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    #[test]
    fn any_cut_gives_the_same_rows(which in 0..GROWING.len(), cuts in proptest::collection::vec(any::<usize>(), 1..6)) {
        check(GROWING[which], &cuts);
    }
}

/// Where each line ends.
fn ends(content: &[u8]) -> Vec<usize> {
    memchr::memchr_iter(b'\n', content).map(|at| at + 1).collect()
}

#[test]
fn a_cut_behind_every_line_gives_the_same_rows() {
    for sample in GROWING {
        let content = std::fs::read(samples().join(sample)).expect(sample);
        check(sample, &ends(&content));
    }
}

/// A record that stands there twice is a copy, also where nothing else was read before it.
#[test]
fn lines_that_stand_there_twice_give_the_same_rows() {
    for sample in GROWING {
        let content = std::fs::read(samples().join(sample)).expect(sample);
        let lines = content.split_inclusive(|byte| *byte == b'\n');
        let twice = lines.flat_map(|line| [line, line]).collect::<Vec<_>>().concat();
        check_content(sample, &twice, &ends(&twice));
    }
}

/// A record is read as soon as it is whole: what comes behind it on the last line, were it no JSON,
/// must not undo that.
#[test]
fn whatever_follows_a_whole_record_the_rows_are_the_same() {
    let sample = GROWING[0];
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
        let (.., checkpoints) = ingest_in_pieces(sample, &content, &[]);
        assert_eq!(checkpoints.first().map(|row| row.2), Some(records), "{tail:?}");
        for cut in record.len()..content.len() {
            check_content(sample, &content, &[cut]);
            check_content(sample, &content, &[record.len(), cut]);
        }
    }
}
