//! Logs that go away, with copies of them about: what they held counts once and is kept.

use schemas::EventType;
use std::fs;
use std::path::PathBuf;

use proptest::prelude::*;
use tempfile::TempDir;

use crate::arrival::{codex, ingest_twice, record, session};
use crate::memory::Memory;
use crate::rewritten::{gemini, held};
use crate::traps::write;

/// Copies of one session's log, of as many prompts as they are told to have.
struct Copies {
    dir: TempDir,
    log: fn(usize) -> String,
    memory: Memory,
    tick: u64,
}

/// What is in no log.
const OTHER: &str = "{\"hello\":1}\n";

/// A log of Claude Code, whose records have ids.
fn claude(records: usize) -> String {
    (0..records).map(|n| record(&session(1), n, "")).collect()
}

/// A log of Codex that says the same again and again.
fn repeating(records: usize) -> String {
    let said = |n: usize| format!("prompt {n}\"");
    (7..records).fold(codex(records), |log, n| log.replace(&said(n), &said(n % 7)))
}

impl Copies {
    fn of(log: fn(usize) -> String) -> Self {
        let dir = tempfile::tempdir().expect("tempdir");
        Self { dir, log, memory: Memory::default(), tick: 0 }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(format!("{name}.jsonl"))
    }

    fn write(&mut self, name: &str, records: usize) {
        self.tick += 1;
        write(&self.path(name), &(self.log)(records), self.tick);
    }

    /// Ingests some of them alone, or all.
    fn ingest(&self, names: &[&str]) {
        let paths = names.iter().map(|name| self.path(name)).collect::<Vec<_>>();
        match names {
            [] => drop(self.memory.ingest(self.dir.path())),
            _ => drop(self.memory.ingest_all(&paths)),
        }
    }

    fn remove(&self, name: &str) {
        fs::remove_file(self.path(name)).expect("removes");
    }

    fn is_log(&self, name: &str) -> bool {
        fs::read_to_string(self.path(name)).is_ok_and(|text| text != OTHER)
    }

    /// The prompts that count, by the sessions' rows; those by the events must be as many, and in
    /// every session the rows must agree with the events.
    fn counted(&self) -> i64 {
        let events = self.memory.events();
        for row in self.memory.sessions() {
            let of_row = || events.iter().filter(|event| event.session_id == row.session_id);
            let copied = of_row().filter(|event| event.is_replay).count() as i64;
            let prompts = of_row().filter(|event| event.event_type == EventType::User);
            let own = prompts.filter(|event| !event.is_replay).count() as i64;
            assert_eq!((row.replay_events, row.turns, row.user_messages), (copied, own, own));
            assert!(of_row().map(|event| event.event_index).eq(0..row.events as i32));
        }
        self.memory.sessions().iter().map(|row| row.turns).sum()
    }
}

#[test]
fn a_copy_that_was_ahead_and_is_gone_counts_nothing_that_its_original_got() {
    for log in [claude, codex] {
        let mut copies = Copies::of(log);
        copies.write("log", 50);
        copies.ingest(&["log"]);
        copies.write("backup", 60);
        copies.ingest(&["backup"]);
        copies.remove("backup");
        copies.write("log", 55);
        copies.ingest(&["log"]);
        assert_eq!(copies.counted(), 60);
        copies.write("log", 900);
        copies.ingest(&[]);
        assert_eq!(copies.counted(), 900);
        ingest_twice(&copies.memory, copies.dir.path());
    }
}

#[test]
fn a_copy_that_was_ahead_counts_nothing_when_its_original_grew_far_beyond_it() {
    for log in [claude, codex] {
        let mut copies = Copies::of(log);
        copies.write("log", 50);
        copies.ingest(&[]);
        copies.write("backup", 60);
        copies.ingest(&[]);
        copies.write("log", 900);
        copies.ingest(&[]);
        assert_eq!(copies.counted(), 900);
    }
}

#[test]
fn what_the_first_of_two_copies_lost_counts_in_the_other() {
    for gone in [false, true] {
        for log in [claude, codex, repeating] {
            let mut copies = Copies::of(log);
            copies.write("log", 60);
            copies.ingest(&[]);
            copies.write("other", 60);
            copies.ingest(&[]);
            if gone {
                copies.remove("other");
            }
            copies.write("log", 40);
            copies.ingest(&[]);
            assert_eq!(copies.counted(), 60, "gone: {gone}");
            copies.write("log", 70);
            copies.ingest(&[]);
            assert_eq!(copies.counted(), 70, "gone: {gone}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, ..ProptestConfig::default() })]

    /// Copies grow, go, come back, move, are overwritten and are read at random.
    #[test]
    fn copies_count_once_whatever_becomes_of_them(
        of_claude in any::<bool>(),
        steps in proptest::collection::vec((0usize..3, 0usize..7, 1usize..60), 1..25),
    ) {
        let names = ["a", "b", "c"];
        let mut copies = Copies::of(if of_claude { claude } else { codex });
        let (mut ever, mut sizes) = (0, [0; 3]);
        let most = |copies: &Copies, sizes: &[usize; 3]| {
            let there = names.iter().zip(sizes).filter(|(name, _)| copies.is_log(name));
            there.map(|(_, size)| *size).max().unwrap_or(0)
        };
        for (which, what, more) in steps {
            let name = names[which];
            let there = copies.path(name).exists();
            match what {
                0 | 1 => {
                    sizes[which] += more;
                    copies.write(name, sizes[which]);
                }
                2 if there => copies.remove(name),
                // A file that gets shorter where it is loses what was read of it.
                3 if there && sizes[(which + 1) % 3] <= sizes[which] => {
                    let to = (which + 1) % 3;
                    fs::rename(copies.path(name), copies.path(names[to])).expect("moves");
                    sizes[to] = sizes[which];
                }
                // What belongs to it is read as well, up to its end.
                4 if there => {
                    copies.ingest(&[name]);
                    let counted = copies.counted() as usize;
                    let least = if copies.is_log(name) { sizes[which] } else { 0 };
                    prop_assert!(ever.max(least) <= counted && counted <= ever.max(most(&copies, &sizes)));
                    ever = counted;
                }
                // Something else is written over it.
                5 if there => {
                    copies.tick += 1;
                    write(&copies.path(name), OTHER, copies.tick);
                }
                _ => {
                    copies.ingest(&[]);
                    ever = ever.max(most(&copies, &sizes));
                    prop_assert_eq!(copies.counted(), ever as i64);
                }
            }
        }
        copies.ingest(&[]);
        prop_assert_eq!(copies.counted(), ever.max(most(&copies, &sizes)) as i64);
        let again = copies.memory.ingest(copies.dir.path());
        prop_assert_eq!((again.files_opened, again.files_vanished, again.events), (0, 0, 0));
    }
}

#[test]
fn a_fork_that_is_gone_counts_nothing_that_its_original_brings() {
    let mut copies = Copies::of(claude);
    let fork = (0..3).map(|n| record(&session(2), n, "")).collect::<String>();
    write(&copies.path("fork"), &fork, 1);
    copies.ingest(&[]);
    copies.remove("fork");
    copies.write("log", 2);
    copies.ingest(&[]);
    assert_eq!(copies.counted(), 3);
    // Records of Codex have no ids: the fork is told by what it says of its original.
    let mut copies = Copies::of(codex);
    let named = format!(r#""id":"{}","forked_from_id":"{}""#, session(2), session(1));
    let fork = codex(12).replacen(&format!(r#""id":"{}""#, session(1)), &named, 1);
    write(&copies.path("fork"), &fork, 1);
    copies.ingest(&[]);
    assert_eq!(copies.counted(), 12);
    copies.remove("fork");
    copies.write("log", 10);
    copies.ingest(&[]);
    assert_eq!(copies.counted(), 12);
    let (original, fork) = (copies.memory.session(&session(1)), copies.memory.session(&session(2)));
    assert_eq!((original.turns, fork.turns, fork.source_gone), (10, 2, true));
}

#[test]
fn a_log_that_moved_while_another_took_its_place_goes_on() {
    for log in [claude, codex] {
        let mut copies = Copies::of(log);
        copies.write("a", 9);
        copies.ingest(&[]);
        fs::rename(copies.path("a"), copies.path("b")).expect("moves");
        write(&copies.path("a"), &record(&session(2), 100, ""), 7);
        copies.ingest(&[]);
        assert_eq!(copies.memory.sessions().len(), 2);
        let row = copies.memory.session(&session(1));
        assert_eq!((row.turns, row.source_gone), (9, false));
        assert!(row.source_path.ends_with("b.jsonl"));
        copies.write("b", 12);
        copies.ingest(&[]);
        assert_eq!(copies.counted(), 13);
        // And again, as a log that is rotated.
        fs::rename(copies.path("b"), copies.path("c")).expect("moves");
        write(&copies.path("b"), &record(&session(2), 100, ""), 8);
        copies.ingest(&[]);
        assert_eq!(copies.counted(), 13);
        ingest_twice(&copies.memory, copies.dir.path());
    }
}

#[test]
fn a_log_that_comes_back_together_with_a_copy_is_read_once() {
    for log in [claude, codex] {
        let mut copies = Copies::of(log);
        copies.write("log", 9);
        copies.ingest(&[]);
        copies.remove("log");
        copies.ingest(&[]);
        copies.write("log", 12);
        copies.write("copy", 20);
        copies.ingest(&[]);
        assert_eq!(copies.counted(), 20);
        assert_eq!(copies.memory.session(&session(1)).user_messages, 12);
    }
}

#[test]
fn a_log_that_is_emptied_or_overwritten_is_kept_and_goes_on_when_it_comes_back() {
    for rest in ["", OTHER] {
        for (log, lost) in [(claude as fn(usize) -> String, 0), (codex, 12)] {
            let mut copies = Copies::of(log);
            copies.write("log", 9);
            copies.ingest(&[]);
            write(&copies.path("log"), rest, 50);
            copies.ingest(&[]);
            // A file with other content is there, though nobody recognises it.
            let is_gone = copies.memory.session(&session(1)).source_gone;
            assert_eq!((copies.counted(), is_gone), (9, rest.is_empty()));
            ingest_twice(&copies.memory, copies.dir.path());
            copies.write("log", 12);
            copies.ingest(&[]);
            assert_eq!((copies.counted(), copies.memory.sessions().len()), (12, 1));
            // Rewritten with other words, it is the same log still. Without ids, it has lost all
            // that it said before.
            write(&copies.path("log"), rest, 60);
            copies.ingest(&[]);
            let other = (copies.log)(15).replace("prompt", "question");
            write(&copies.path("log"), &other, 61);
            copies.ingest(&[]);
            let versions = usize::from(lost > 0);
            let kept = |copies: &Copies| (copies.counted(), copies.memory.sessions().len());
            assert_eq!(kept(&copies), (15 + lost, 1 + versions));
            // So has an older state of it, and nothing is lost.
            write(&copies.path("log"), rest, 62);
            copies.ingest(&[]);
            write(&copies.path("log"), &(copies.log)(3).replace("prompt", "question"), 63);
            copies.ingest(&[]);
            assert_eq!(kept(&copies), (15 + lost, 2 + versions));
            assert_eq!(copies.memory.session(&session(1)).turns, 3);
        }
    }
}

#[test]
fn what_a_document_lost_is_kept_when_another_one_was_written_over_it_for_a_while() {
    let dir = tempfile::tempdir().expect("tempdir");
    let path = dir.path().join("session-1.json");
    let memory = Memory::default();
    let other = gemini(&[0, 1]).replace("s-1", "s-2").replace("m-", "n-");
    let documents = [gemini(&[0, 1, 2, 3]), gemini(&[0, 1]), other, gemini(&[0, 1, 4])];
    for (tick, document) in (1..).zip(&documents) {
        write(&path, document, tick);
        memory.ingest(dir.path());
    }
    let texts: Vec<_> = held(&memory).into_iter().map(|(n, gone, _)| (n, gone)).collect();
    assert_eq!(texts, [(0, false), (1, false), (2, true), (3, true), (4, false)]);
    assert_eq!(memory.sessions().len(), 2);
}

/// Records without ids, as snapshots of files, stand between others.
#[test]
fn what_stands_without_an_id_behind_the_copied_part_counts() {
    fn log(records: usize) -> String {
        let note = |n: usize| {
            let id = session(1);
            format!(
                r#"{{"type":"system","sessionId":"{id}","timestamp":"2026-10-01T10:00:00.000Z","content":"note {n}"}}"#
            ) + "\n"
        };
        (0..records).map(|n| record(&session(1), n, "") + &note(n)).collect()
    }
    let own = |copies: &Copies| {
        let events = copies.memory.events().into_iter();
        events.filter(|event| !event.is_replay).map(|event| event.text).collect::<Vec<_>>()
    };
    for ends_behind_note in [false, true] {
        let mut copies = Copies::of(log);
        copies.write("log", 40);
        if !ends_behind_note {
            let text = fs::read_to_string(copies.path("log")).expect("reads");
            let end = text.find(r#"{"type":"system","#).expect("a note");
            let last = text.rfind(&text[end..end + 20]).expect("the last note");
            write(&copies.path("log"), &text[..last], 1);
        }
        copies.ingest(&[]);
        copies.write("backup", 45);
        copies.ingest(&[]);
        assert_eq!(own(&copies).len(), 90, "every prompt and every note");
        copies.write("log", 60);
        copies.ingest(&[]);
        assert_eq!(own(&copies).len(), 120);
    }
}

#[test]
fn a_copy_has_the_times_of_what_it_copies_until_it_has_its_own() {
    let at = |minute: usize| format!("2026-10-01T10:{minute:02}:00.000Z");
    let said = |n: usize, minute: usize| {
        record(&session(1), n, "").replace("2026-10-01T10:00:00.000Z", &at(minute))
    };
    let dir = tempfile::tempdir().expect("tempdir");
    let [log, copy] = ["a", "b"].map(|name| dir.path().join(format!("{name}.jsonl")));
    let shared = said(0, 1) + &said(1, 5);
    write(&log, &(shared.clone() + &said(2, 9)), 1);
    let memory = Memory::default();
    memory.ingest(dir.path());
    let times = || {
        let row = memory.session(&format!("{}~2", session(1)));
        let minute = |time: Option<i64>| time.map(|time| time / 60_000_000 % 60);
        (minute(row.started_at), minute(row.ended_at))
    };
    write(&copy, &shared, 2);
    memory.ingest(dir.path());
    assert_eq!(times(), (Some(1), Some(5)));
    write(&copy, &(shared + &said(7, 20) + &said(8, 30)), 3);
    memory.ingest(dir.path());
    assert_eq!(times(), (Some(20), Some(30)));
}
