//! A log that grows, cut at any byte and ingested piece by piece, gives the same rows as in one go.

use std::path::Path;

use proptest::prelude::*;
use schemas::session::{EventRow, SessionRow};

use crate::memory::{Memory, samples};

/// Rows after ingesting the growing prefixes of `content` at `cuts`, and then all of it.
fn ingest_in_pieces(
    name: &str,
    content: &[u8],
    cuts: &[usize],
) -> (Vec<EventRow>, Vec<SessionRow>) {
    let dir = tempfile::tempdir().expect("tempdir");
    let path = dir.path().join(name);
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
    (memory.events(), sessions.collect())
}

fn check(sample: &str, cuts: &[usize]) {
    let path = samples().join(sample);
    let content = std::fs::read(&path).expect(sample);
    let name = Path::new(sample).file_name().expect("name").to_string_lossy().into_owned();
    let mut cuts: Vec<_> = cuts.iter().map(|cut| cut % (content.len() + 1)).collect();
    cuts.sort_unstable();
    let whole = ingest_in_pieces(&name, &content, &[]);
    let pieces = ingest_in_pieces(&name, &content, &cuts);
    assert_eq!(whole.0.len(), pieces.0.len(), "{sample} {cuts:?}");
    for (a, b) in whole.0.iter().zip(&pieces.0) {
        assert_eq!(a, b, "{sample} {cuts:?}");
    }
    assert_eq!(whole.1, pieces.1, "{sample} {cuts:?}");
}

const GROWING: &[&str] = &[
    "claude/projects/-home-mira-code-harbor/9ae82b3a-fd82-48da-afd8-479f58648cbe.jsonl",
    "codex/sessions/2026/10/14/rollout-2026-10-14T09-12-31-01a13941-6cb9-7f1e-a741-65890d73c8a5.jsonl",
    "codex/sessions/2025/08/30/rollout-2025-08-30T16-20-05-a9ba27f4-afb3-4e98-b67b-507357e1298c.jsonl",
    "gemini/tmp/harbor/chats/session-2026-10-17T18-05-d6eac969.jsonl",
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

#[test]
fn a_cut_behind_every_line_gives_the_same_rows() {
    for sample in GROWING {
        let content = std::fs::read(samples().join(sample)).expect(sample);
        let ends: Vec<_> = content
            .iter()
            .enumerate()
            .filter(|(_, b)| **b == b'\n')
            .map(|(at, _)| at + 1)
            .collect();
        check(sample, &ends);
    }
}
