//! Logs of one family that come one after the other, in any order and in pieces, and logs that move:
//! what they share counts once, and they stay what they are.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use proptest::prelude::*;

use crate::memory::{Memory, samples};
use crate::traps::{set_modified, write};

pub(crate) fn session(n: usize) -> String {
    format!("{n:08}-2b7d-4c0e-9a35-d1e84b7092fa")
}

fn uuid(n: usize) -> String {
    format!("00000000-0000-4000-8000-{n:012}")
}

/// A prompt; `n` tells it from all others, and copies keep it.
pub(crate) fn record(session: &str, n: usize, more: &str) -> String {
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

/// One thing that happens: a session says something, or is forked, of which a part may be written at
/// first, or its log is moved, or some logs are read.
#[derive(Debug, Clone)]
enum Step {
    Say(usize),
    Fork(usize, bool),
    Move(usize),
    Ingest(Vec<usize>),
    IngestAll,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (0usize..6).prop_map(Step::Say),
        2 => (0usize..6, any::<bool>()).prop_map(|(of, whole)| Step::Fork(of, whole)),
        1 => (0usize..6).prop_map(Step::Move),
        3 => proptest::collection::vec(0usize..6, 1..3).prop_map(Step::Ingest),
        1 => Just(Step::IngestAll),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn what_forks_share_counts_once_in_any_order(steps in proptest::collection::vec(step(), 1..30)) {
        let dir = tempfile::tempdir().expect("tempdir");
        let mut logs: Vec<Vec<usize>> = vec![vec![0]];
        let mut folders = vec![0];
        let path = |n: usize, folder: usize| {
            dir.path().join(format!("{folder}/{}.jsonl", session(n)))
        };
        fs::create_dir_all(dir.path().join("0")).expect("creates");
        fs::create_dir_all(dir.path().join("1")).expect("creates");
        let (mut said, mut tick) = (1, 0);
        let memory = Memory::default();
        let mut save = |n: usize, folder: usize, log: &[usize]| {
            let lines = log.iter().map(|record_n| record(&session(n), *record_n, ""));
            tick += 1;
            write(&path(n, folder), &lines.collect::<String>(), tick);
        };
        save(0, 0, &logs[0]);
        for step in steps {
            match step {
                Step::Say(of) => {
                    let of = of % logs.len();
                    logs[of].push(said);
                    said += 1;
                    save(of, folders[of], &logs[of]);
                }
                Step::Fork(of, whole) => {
                    let fork = logs[of % logs.len()].clone();
                    let length = if whole { fork.len() } else { fork.len().div_ceil(2) };
                    save(logs.len(), 0, &fork[..length]);
                    logs.push(fork);
                    folders.push(0);
                }
                Step::Move(of) => {
                    let of = of % logs.len();
                    let (from, to) = (folders[of], 1 - folders[of]);
                    fs::rename(path(of, from), path(of, to)).expect("moves");
                    folders[of] = to;
                }
                Step::Ingest(of) => {
                    let paths = of.iter().map(|n| n % logs.len());
                    memory.ingest_all(&paths.map(|n| path(n, folders[n])).collect::<Vec<_>>());
                }
                Step::IngestAll => {
                    memory.ingest(dir.path());
                }
            }
        }
        for (n, log) in logs.iter().enumerate() {
            save(n, folders[n], log);
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
        prop_assert_eq!(prompts.len(), logs.len(), "moved logs are no new sessions");
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
    write(&path(1), &log(1, &[0, 1]), 0);
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

/// Two forks of a session whose log nobody has: what they share counts in one of them, and the rest
/// in the one that has it.
#[test]
fn forks_of_a_session_that_is_gone_count_what_they_have() {
    let copy = |fork: usize, n: usize, of: usize| {
        let (id, original) = (session(of), uuid(n));
        let from = format!(r#","forkedFrom":{{"sessionId":"{id}","messageUuid":"{original}"}}"#);
        record(&session(fork), n, &from)
    };
    let of_gone = |fork: usize, records: usize| -> String {
        (0..records).map(|n| copy(fork, n, 1)).collect::<String>()
            + &record(&session(fork), 100 + fork, "")
    };
    let dir = tempfile::tempdir().expect("tempdir");
    let path = |n: usize| dir.path().join(format!("{}.jsonl", session(n)));
    write(&path(2), &of_gone(2, 4), 1);
    write(&path(3), &of_gone(3, 10), 2);
    let memory = Memory::default();
    memory.ingest(dir.path());
    let turns = || memory.sessions().iter().map(|row| row.turns).sum::<i64>();
    assert_eq!(turns(), 12);
    // A fork of a fork that is gone, with the first original there.
    let original: String = (0..3).map(|n| record(&session(4), 200 + n, "")).collect();
    let middle = (0..3).map(|n| copy(6, 200 + n, 5)).collect::<String>()
        + &(3..6).map(|n| copy(6, 200 + n, 5)).collect::<String>();
    write(&path(4), &original, 3);
    write(&path(6), &middle, 4);
    memory.ingest(dir.path());
    assert_eq!((memory.session(&session(4)).turns, memory.session(&session(6)).turns), (3, 3));
}

/// The store takes one of two equal logs for the copy, and that one is the first to grow.
#[test]
fn a_backup_that_is_brought_up_to_date_counts_nothing_again() {
    let dir = tempfile::tempdir().expect("tempdir");
    let [backup, live] = ["a.jsonl", "b.jsonl"].map(|name| dir.path().join(name));
    let log = |records: usize| (0..records).map(|n| record(&session(1), n, "")).collect::<String>();
    let memory = Memory::default();
    write(&backup, &log(40), 1);
    write(&live, &log(40), 1);
    memory.ingest(dir.path());
    for (tick, records) in [(2, 90), (3, 91), (4, 140)] {
        write(&live, &log(records), tick);
        memory.ingest(dir.path());
        if records != 91 {
            write(&backup, &log(records), tick);
            memory.ingest(dir.path());
        }
        let counted: i64 = memory.sessions().iter().map(|row| row.turns).sum();
        assert_eq!(counted, records as i64);
    }
    assert!(memory.events().iter().filter(|event| event.session_id == session(1)).count() == 140);
}

#[test]
fn a_fork_without_words_of_its_own_leaves_the_original_what_it_is() {
    let dir = tempfile::tempdir().expect("tempdir");
    let path = |n: usize| dir.path().join(format!("{}.jsonl", session(n)));
    let log = |n: usize, records: usize| {
        (0..records).map(|record_n| record(&session(n), record_n, "")).collect::<String>()
    };
    // The files change when their agents write.
    let now = 1_790_848_800;
    let memory = Memory::default();
    write(&path(1), &log(1, 9), 1);
    set_modified(&path(1), now);
    memory.ingest(dir.path());
    write(&path(2), &log(2, 4), 2);
    set_modified(&path(2), now + 60);
    assert_eq!(memory.ingest(dir.path()).files_rewritten, 0);
    assert_eq!(memory.session(&session(1)).relation, None);
    let fork = memory.session(&session(2));
    assert_eq!((fork.turns, fork.relation.as_deref()), (0, Some("forked_from")));
}

/// Files that were copied from elsewhere have times that say nothing.
#[test]
fn a_session_that_a_fork_holds_whole_is_the_original_whenever_its_file_changed() {
    let orders = [vec![1, 2], vec![2, 1], vec![0]];
    for (order, later) in orders.iter().flat_map(|order| [1, 2].map(|later| (order, later))) {
        let dir = tempfile::tempdir().expect("tempdir");
        let path = |n: usize| dir.path().join(format!("{}.jsonl", session(n)));
        let log = |n: usize, records: usize| {
            (0..records).map(|record_n| record(&session(n), record_n, "")).collect::<String>()
        };
        write(&path(1), &log(1, 4), u64::from(later == 1));
        write(&path(2), &log(2, 9), u64::from(later == 2));
        let memory = Memory::default();
        for n in order {
            memory.ingest(&if *n == 0 { dir.path().to_owned() } else { path(*n) });
        }
        let [original, fork] = [1, 2].map(|n| memory.session(&session(n)));
        assert_eq!((original.turns, original.relation.as_deref()), (4, None), "{order:?}");
        assert_eq!((fork.turns, fork.relation.as_deref()), (5, Some("forked_from")), "{order:?}");
    }
}

/// A log of Codex with this number of prompts.
pub(crate) fn codex(records: usize) -> String {
    codex_of(0..records)
}

/// A log of Codex with these prompts.
pub(crate) fn codex_of(prompts: impl IntoIterator<Item = usize>) -> String {
    let payload = format!(r#"{{"id":"{}","cwd":"/w","cli_version":"0.146.0"}}"#, session(1));
    let said = |n: usize| {
        format!(
            r#"{{"type":"message","role":"user","content":[{{"type":"input_text","text":"prompt {n}"}}]}}"#
        )
    };
    let line = |kind: &str, payload: String| {
        format!(r#"{{"timestamp":"2026-10-01T10:00:00.000Z","type":"{kind}","payload":{payload}}}"#)
            + "\n"
    };
    let prompts = prompts.into_iter().map(|n| line("response_item", said(n)));
    line("session_meta", payload) + &prompts.collect::<String>()
}

/// As above, for records without ids.
#[test]
fn a_backup_of_a_codex_log_counts_nothing_again() {
    let dir = tempfile::tempdir().expect("tempdir");
    let [backup, live] = ["a", "b"].map(|folder| {
        fs::create_dir_all(dir.path().join(folder)).expect("creates");
        dir.path().join(format!("{folder}/rollout-2026-10-01T10-00-00-{}.jsonl", session(1)))
    });
    let memory = Memory::default();
    write(&backup, &codex(40), 1);
    write(&live, &codex(40), 1);
    memory.ingest(dir.path());
    for (tick, records) in [(2, 90), (3, 140)] {
        for path in [&live, &backup] {
            write(path, &codex(records), tick);
            memory.ingest(dir.path());
            let counted: i64 = memory.sessions().iter().map(|row| row.turns).sum();
            assert_eq!(counted, records as i64);
        }
    }
}

/// Three captures of one session, of which the middle one comes last.
#[test]
fn captures_of_a_codex_log_count_once_in_any_order() {
    let dir = tempfile::tempdir().expect("tempdir");
    for order in [[20, 90, 50], [50, 90, 20], [90, 50, 20], [20, 50, 90]] {
        let memory = Memory::default();
        for records in order {
            let path = dir.path().join(format!("capture-{records}.jsonl"));
            write(&path, &codex(records), 1);
            memory.ingest(&path);
        }
        let counted: i64 = memory.sessions().iter().map(|row| row.turns).sum();
        assert_eq!(counted, 90, "{order:?}");
    }
}

/// Both captures of a session are gone; a new file is the one that held more, moved.
#[test]
fn the_longest_capture_goes_on_when_it_moves() {
    let dir = tempfile::tempdir().expect("tempdir");
    let [first, longer, moved] =
        ["1", "2", "3"].map(|name| dir.path().join(format!("capture-{name}.jsonl")));
    let memory = Memory::default();
    write(&first, &codex(20), 1);
    memory.ingest(dir.path());
    write(&longer, &codex(30), 1);
    memory.ingest(dir.path());
    fs::remove_file(&first).expect("removes");
    memory.ingest(dir.path());
    fs::rename(&longer, &moved).expect("moves");
    memory.ingest(dir.path());
    let counted: i64 = memory.sessions().iter().map(|row| row.turns).sum();
    assert_eq!((counted, memory.sessions().len()), (30, 2));
}

/// A script's runs have logs of one name that begin alike; only a copy has the same times as well.
#[test]
fn runs_of_a_script_are_no_copies_of_each_other() {
    let dir = tempfile::tempdir().expect("tempdir");
    let log = |day: usize| {
        let answer = format!(
            r#"{{"role":"assistant","content":"ok","timestamp":"2026-10-{day:02}T06:00:00Z"}}"#
        );
        let prompt = r#"{"role":"user","content":"Check the nightly build."}"#;
        format!("{prompt}\n{answer}\n{prompt}\n{answer}\n")
    };
    let memory = Memory::default();
    for (folder, day) in [("a", 10), ("b", 11), ("c", 10)] {
        fs::create_dir_all(dir.path().join(folder)).expect("creates");
        write(&dir.path().join(folder).join("run.jsonl"), &log(day), day as u64);
        memory.ingest(dir.path());
    }
    let counted: Vec<_> = memory.sessions().iter().map(|row| (row.turns, row.messages)).collect();
    assert_eq!(counted, [(2, 2), (2, 2), (1, 0)], "the third repeats the first");
}

/// Cursor's records say nothing of their session, and its logs are named by it.
#[test]
fn copies_of_a_log_of_cursor_under_other_names_are_copies() {
    let dir = tempfile::tempdir().expect("tempdir");
    let said = |role: &str, text: &str| {
        format!(
            r#"{{"role":"{role}","message":{{"content":[{{"type":"text","text":"{text}"}}]}}}}"#
        )
    };
    let log = format!("{}\n{}\n", said("user", "Why is it slow?"), said("assistant", "It sleeps."));
    let memory = Memory::default();
    for name in [".jsonl", " (1).jsonl", " copy.jsonl", ".jsonl.bak"] {
        write(&dir.path().join(format!("{}{name}", session(1))), &log, 1);
        memory.ingest(dir.path());
    }
    let sessions = memory.sessions();
    let counted: i64 = sessions.iter().map(|row| row.turns + row.messages).sum();
    assert_eq!((counted, sessions.len()), (2, 4));
}

/// Records of Codex are found in the order of the original, which was re-read in the same run.
#[test]
fn a_codex_fork_follows_an_original_that_was_written_anew() {
    let line = |n: usize, payload: String| {
        let kind = if n == 0 { "session_meta" } else { "response_item" };
        format!(r#"{{"timestamp":"2026-10-01T10:00:00.000Z","type":"{kind}","payload":{payload}}}"#)
            + "\n"
    };
    let meta = |n: usize, more: &str| {
        line(0, format!(r#"{{"id":"{}","cwd":"/w","cli_version":"0.146.0"{more}}}"#, session(n)))
    };
    let prompts = |range: std::ops::Range<usize>| -> String {
        let said = |n: usize| {
            line(
                1,
                format!(
                    r#"{{"type":"message","role":"user","content":[{{"type":"input_text","text":"prompt {n}"}}]}}"#
                ),
            )
        };
        range.map(said).collect()
    };
    let dir = tempfile::tempdir().expect("tempdir");
    let path =
        |n: usize| dir.path().join(format!("rollout-2026-10-01T10-00-00-{}.jsonl", session(n)));
    let memory = Memory::default();
    write(&path(1), &(meta(1, "") + &prompts(0..100)), 1);
    memory.ingest(dir.path());
    write(&path(1), &(meta(1, r#","originator":"other""#) + &prompts(0..200)), 2);
    let from = format!(r#","forked_from_id":"{}""#, session(1));
    write(&path(2), &(meta(2, &from) + &meta(1, "") + &prompts(0..200) + &prompts(300..301)), 2);
    memory.ingest(dir.path());
    assert_eq!((memory.session(&session(1)).turns, memory.session(&session(2)).turns), (200, 1));
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

pub(crate) fn ingest_twice(memory: &Memory, root: &Path) {
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
    // In a run that ends before it reads anything, twice; then named alone, and back again.
    let away = dir.path().join("away");
    fs::rename(&new, &away).expect("moves");
    memory.ingest_nothing(dir.path());
    memory.ingest_nothing(dir.path());
    memory.ingest(dir.path());
    let row = memory.session(&session(1));
    assert_eq!((row.turns, row.source_gone, memory.sessions().len()), (2, false, 1));
    ingest_twice(&memory, dir.path());
    fs::rename(&away, &new).expect("moves");
    memory.ingest(dir.path());
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
fn a_log_with_more_data_replaces_the_one_next_to_it() {
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

/// The fork that goes on is the larger log, but it began later.
#[test]
fn a_fork_of_pi_that_names_no_original_began_later() {
    let header = |hour: usize, id: &str| {
        format!(
            r#"{{"type":"session","version":3,"id":"{id}","timestamp":"2026-09-05T{hour:02}:00:00.000Z","cwd":"/w"}}"#
        ) + "\n"
    };
    let entry = |n: usize, parent: &str, hour: usize| {
        format!(
            r#"{{"type":"message","id":"aaaa000{n}","parentId":{parent},"timestamp":"2026-09-05T{hour:02}:00:1{n}.000Z","message":{{"role":"user","content":"prompt {n}"}}}}"#
        ) + "\n"
    };
    let name = |hour: usize, id: &str| format!("2026-09-05T{hour:02}-00-00-000Z_{id}.jsonl");
    let (original, fork) = (uuid(9), uuid(1));
    let copied = entry(1, "null", 8);
    let logs = [
        (name(8, &original), header(8, &original) + &copied),
        (name(9, &fork), header(9, &fork) + &copied + &entry(2, r#""aaaa0001""#, 9)),
    ];
    for order in [[0, 1], [1, 0]] {
        for is_at_once in [true, false] {
            let dir = tempfile::tempdir().expect("tempdir");
            let memory = Memory::default();
            for at in order {
                write(&dir.path().join(&logs[at].0), &logs[at].1, 1);
                if !is_at_once {
                    memory.ingest(dir.path());
                }
            }
            memory.ingest(dir.path());
            let row = memory.session(&fork);
            assert_eq!(row.parent_session_id.as_ref(), Some(&original), "{order:?} {is_at_once}");
            assert_eq!((row.events, row.replay_events), (3, 1), "{order:?} {is_at_once}");
            let row = memory.session(&original);
            assert_eq!((row.parent_session_id, row.relation), (None, None));
            assert_eq!(row.replay_events, 0, "{order:?} {is_at_once}");
        }
    }
}

/// Each of two logs names the other one as the one that it goes on with.
#[test]
fn logs_of_pi_that_continue_each_other_have_one_original_in_any_order() {
    let (first, second) = (uuid(1), uuid(2));
    let log = |id: &str, other: &str, own: usize| {
        let entry = |n: usize| {
            format!(
                r#"{{"type":"message","id":"aaaa000{n}","parentId":null,"timestamp":"2026-09-05T09:00:1{n}.000Z","message":{{"role":"user","content":"prompt {n}"}}}}"#
            ) + "\n"
        };
        format!(
            r#"{{"type":"session","version":3,"id":"{id}","timestamp":"2026-09-05T09:00:00.000Z","cwd":"/w","parentSession":"/w/{other}.jsonl"}}"#
        ) + "\n"
            + &entry(0)
            + &entry(own)
    };
    let logs = [(&first, log(&first, &second, 1)), (&second, log(&second, &first, 2))];
    for order in [[0, 1], [1, 0]] {
        for is_at_once in [true, false] {
            let dir = tempfile::tempdir().expect("tempdir");
            let memory = Memory::default();
            for at in order {
                write(&dir.path().join(format!("{}.jsonl", logs[at].0)), &logs[at].1, 1);
                if !is_at_once {
                    memory.ingest(dir.path());
                }
            }
            memory.ingest(dir.path());
            let copied = logs.each_ref().map(|(id, _)| memory.session(id).replay_events);
            assert_eq!(copied, [0, 1], "{order:?} {is_at_once}");
        }
    }
}
