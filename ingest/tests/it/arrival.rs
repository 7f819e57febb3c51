//! Logs of one family that come one after the other, in any order and in pieces, and logs that move:
//! what they share counts once, and they stay what they are.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use proptest::prelude::*;

use crate::memory::{Memory, samples};
use crate::traps::write;

fn session(n: usize) -> String {
    format!("{n:08}-2b7d-4c0e-9a35-d1e84b7092fa")
}

fn uuid(n: usize) -> String {
    format!("00000000-0000-4000-8000-{n:012}")
}

/// A prompt; `n` tells it from all others, and copies keep it.
fn record(session: &str, n: usize, more: &str) -> String {
    let id = uuid(n);
    format!(
        r#"{{"type":"user","uuid":"{id}","sessionId":"{session}","timestamp":"2026-10-01T10:00:00.000Z","message":{{"role":"user","content":"prompt {n}"}}{more}}}"#
    ) + "\n"
}

/// Prompts by session: what they say, and whether they count elsewhere.
fn prompts(memory: &Memory) -> BTreeMap<String, Vec<(String, bool)>> {
    let mut prompts: BTreeMap<_, Vec<_>> = BTreeMap::new();
    for event in memory.events() {
        prompts.entry(event.session_id).or_default().push((event.text, event.is_replay));
    }
    prompts
}

/// One thing that happens: a session says something, or is forked, or some logs are read.
#[derive(Debug, Clone)]
enum Step {
    Say(usize),
    Fork(usize),
    Ingest(Vec<usize>),
    IngestAll,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (0usize..6).prop_map(Step::Say),
        2 => (0usize..6).prop_map(Step::Fork),
        3 => proptest::collection::vec(0usize..6, 1..3).prop_map(Step::Ingest),
        1 => Just(Step::IngestAll),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn what_forks_share_counts_once_in_any_order(steps in proptest::collection::vec(step(), 1..30)) {
        let dir = tempfile::tempdir().expect("tempdir");
        let path = |n: usize| dir.path().join(format!("{}.jsonl", session(n)));
        let mut logs: Vec<Vec<usize>> = vec![vec![0]];
        let (mut said, mut tick) = (1, 0);
        let memory = Memory::default();
        let mut save = |n: usize, log: &[usize]| {
            let lines = log.iter().map(|record_n| record(&session(n), *record_n, ""));
            tick += 1;
            write(&path(n), &lines.collect::<String>(), tick);
        };
        save(0, &logs[0]);
        for step in steps {
            match step {
                Step::Say(of) => {
                    let of = of % logs.len();
                    logs[of].push(said);
                    said += 1;
                    save(of, &logs[of]);
                }
                Step::Fork(of) => {
                    let fork = logs[of % logs.len()].clone();
                    save(logs.len(), &fork);
                    logs.push(fork);
                }
                Step::Ingest(of) => {
                    let paths: Vec<PathBuf> = of.iter().map(|n| path(n % logs.len())).collect();
                    memory.ingest_all(&paths);
                }
                Step::IngestAll => {
                    memory.ingest(dir.path());
                }
            }
        }
        memory.ingest(dir.path());
        let prompts = prompts(&memory);
        let mut counted = BTreeSet::new();
        for (n, log) in logs.iter().enumerate() {
            let of_log = &prompts[&session(n)];
            let texts: Vec<String> = log.iter().map(|n| format!("prompt {n}")).collect();
            prop_assert_eq!(of_log.iter().map(|(text, _)| text).collect::<Vec<_>>(), texts.iter().collect::<Vec<_>>());
            for (text, _) in of_log.iter().filter(|(_, copied)| !copied) {
                prop_assert!(counted.insert(text.clone()), "{} counts twice: {:?}", text, prompts);
            }
        }
        prop_assert_eq!(counted.len(), said, "{:?}", prompts);
        // Nothing is left to do.
        let again = memory.ingest(dir.path());
        prop_assert_eq!((again.files_opened, again.files_rewritten), (0, 0));
    }
}

#[test]
fn a_fork_that_comes_before_its_original_gives_it_back_what_it_copied() {
    let dir = tempfile::tempdir().expect("tempdir");
    let path = |n: usize| dir.path().join(format!("{}.jsonl", session(n)));
    let log = |n: usize, records: &[usize]| {
        records.iter().map(|record_n| record(&session(n), *record_n, "")).collect::<String>()
    };
    write(&path(2), &log(2, &[0, 1, 2]), 1);
    let memory = Memory::default();
    memory.ingest(dir.path());
    assert_eq!(memory.session(&session(2)).turns, 3);
    write(&path(1), &log(1, &[0, 1]), 2);
    assert_eq!(memory.ingest(&path(1)).files_rewritten, 1);
    let (original, fork) = (memory.session(&session(1)), memory.session(&session(2)));
    assert_eq!((original.turns, original.relation), (2, None));
    assert_eq!(
        (fork.turns, fork.replay_events, fork.relation.as_deref()),
        (1, 2, Some("forked_from"))
    );
    assert_eq!(fork.parent_session_id, Some(session(1)));
}

/// The Agent SDK copies records under new uuids, and says what they were.
#[test]
fn copies_that_name_their_originals_are_copies_whatever_their_ids() {
    let copy = |n: usize| {
        let (id, of) = (session(1), uuid(n));
        record(
            &session(2),
            n + 100,
            &format!(r#","forkedFrom":{{"sessionId":"{id}","messageUuid":"{of}"}}"#),
        )
    };
    let original = record(&session(1), 0, "") + &record(&session(1), 1, "");
    let fork = copy(0) + &copy(1) + &record(&session(2), 7, "");
    for order in [[1, 2], [2, 1]] {
        let dir = tempfile::tempdir().expect("tempdir");
        let memory = Memory::default();
        for (tick, n) in (1..).zip(order) {
            let log = if n == 1 { &original } else { &fork };
            write(&dir.path().join(format!("{}.jsonl", session(n))), log, tick);
            memory.ingest(dir.path());
        }
        let (original, fork) = (memory.session(&session(1)), memory.session(&session(2)));
        assert_eq!((original.turns, original.relation), (2, None), "{order:?}");
        assert_eq!((fork.turns, fork.replay_events), (1, 2), "{order:?}");
        assert_eq!(fork.parent_session_id, Some(session(1)));
        assert_eq!(fork.relation.as_deref(), Some("forked_from"));
    }
    // With the original gone for ever, somebody has to count what was said.
    let dir = tempfile::tempdir().expect("tempdir");
    write(&dir.path().join(format!("{}.jsonl", session(2))), &fork, 1);
    let memory = Memory::default();
    memory.ingest(dir.path());
    assert_eq!(memory.session(&session(2)).turns, 3);
}

/// What the samples count, however they come. Which of two logs that share history without saying
/// from where is the original, the order decides.
#[test]
fn samples_that_come_one_by_one_count_as_those_that_come_together() {
    let together = Memory::default();
    together.ingest(&samples());
    let files = together.sources().into_iter().filter(|row| row.session_id.is_some());
    let mut paths: Vec<_> =
        files.map(|row| PathBuf::from(row.path)).filter(|path| path.is_file()).collect();
    let sums = |memory: &Memory| {
        let mut sums: BTreeMap<_, [i64; 3]> = BTreeMap::new();
        for row in memory.sessions() {
            let sum = sums.entry(row.provider).or_default();
            sum[0] += row.turns;
            sum[1] += row.events;
            sum[2] += row.output_tokens.unwrap_or(0);
        }
        sums
    };
    for backwards in [false, true] {
        let apart = Memory::default();
        for path in &paths {
            apart.ingest(path);
        }
        apart.ingest(&samples());
        assert_eq!(sums(&apart), sums(&together), "backwards: {backwards}");
        assert_eq!(apart.sessions().len(), together.sessions().len());
        paths.reverse();
    }
}

fn ingest_twice(memory: &Memory, root: &Path) {
    memory.ingest(root);
    let again = memory.ingest(root);
    assert_eq!((again.files_opened, again.files_vanished), (0, 0));
}

#[test]
fn a_log_that_moved_stays_one_session_and_is_gone_on_with() {
    let dir = tempfile::tempdir().expect("tempdir");
    let (old, new) = (dir.path().join("before"), dir.path().join("after"));
    fs::create_dir_all(&old).expect("creates");
    let name = format!("{}.jsonl", session(1));
    let head = record(&session(1), 1, "");
    write(&old.join(&name), &head, 1);
    let memory = Memory::default();
    memory.ingest(dir.path());
    fs::rename(&old, &new).expect("moves");
    write(&new.join(&name), &(head.clone() + &record(&session(1), 2, "")), 2);
    let report = memory.ingest(dir.path());
    assert_eq!((report.files_new, report.files_grown), (0, 1));
    assert_eq!(report.bytes_read, head.len() as u64, "only what came since");
    let row = memory.session(&session(1));
    assert_eq!((row.turns, row.source_gone, memory.sessions().len()), (2, false, 1));
    assert!(row.source_path.contains("after"), "{}", row.source_path);
    ingest_twice(&memory, dir.path());
    // Named alone, without its folder, and back again.
    fs::rename(&new, &old).expect("moves");
    memory.ingest(&old.join(&name));
    let row = memory.session(&session(1));
    assert_eq!((row.turns, row.source_gone, memory.sessions().len()), (2, false, 1));
    ingest_twice(&memory, dir.path());
}

#[test]
fn a_log_of_the_same_id_with_other_words_is_not_the_one_that_is_gone() {
    let dir = tempfile::tempdir().expect("tempdir");
    let (one, two) = (dir.path().join("one.jsonl"), dir.path().join("two.jsonl"));
    write(&one, &record(&session(1), 1, ""), 1);
    let memory = Memory::default();
    memory.ingest(dir.path());
    fs::remove_file(&one).expect("removes");
    write(&two, &record(&session(1), 2, ""), 2);
    memory.ingest(dir.path());
    assert!(memory.session(&session(1)).source_gone);
    assert_eq!(memory.session(&format!("{}~2", session(1))).turns, 1);
    assert_eq!(memory.events().len(), 2, "what is gone is kept");
}

/// Kimi writes two logs of a session, of which one tells more.
#[test]
fn a_log_that_tells_more_takes_the_place_of_the_one_beside_it() {
    let folder = samples().join(
        "kimi/sessions/278a9d733829b651e35513e5e2a98521/b92f5e7c-f6c8-493b-929e-d28196c194bf",
    );
    let dir = tempfile::tempdir().expect("tempdir");
    let place = dir.path().join("b92f5e7c-f6c8-493b-929e-d28196c194bf");
    fs::create_dir_all(&place).expect("creates");
    let copy = |name: &str| fs::copy(folder.join(name), place.join(name)).expect("copies");
    let wanted = Memory::default();
    wanted.ingest(&folder);
    let memory = Memory::default();
    copy("context.jsonl");
    memory.ingest(dir.path());
    assert_eq!(memory.sessions().len(), 1);
    copy("wire.jsonl");
    memory.ingest(dir.path());
    assert_eq!(memory.sessions().len(), 1);
    assert_eq!(memory.events().len(), wanted.events().len());
    ingest_twice(&memory, dir.path());
}
