//! Logs that are cut or begun again: what they held stays, as an earlier version of their session, and
//! counts once.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::PathBuf;

use proptest::prelude::*;
use schemas::EventType;
use schemas::session::{SessionRow, SourceStatus};
use tempfile::TempDir;
use xxhash_rust::xxh3::xxh3_64;

use crate::arrival::{codex_of, ingest_twice, record, session};
use crate::memory::Memory;
use crate::traps::write;

/// A log of Claude Code with these prompts, whose records have ids.
fn claude_of(prompts: &[usize]) -> String {
    prompts.iter().map(|n| record(&session(1), *n, "")).collect()
}

/// A log of Codex, whose records have none.
fn codex(prompts: &[usize]) -> String {
    codex_of(prompts.iter().copied())
}

/// A log of Codex with few different prompts. Their order does not repeat itself: what has the size, the
/// first and the last bytes of what was read counts as the same. Multiples of one number would be in an
/// order that nearly repeats itself.
fn repeating(prompts: &[usize]) -> String {
    codex_of(prompts.iter().map(|n| (xxh3_64(&n.to_le_bytes()) % 5) as usize))
}

/// What the log of one session holds, and what was read of it.
struct Rewritten {
    dir: TempDir,
    of: fn(&[usize]) -> String,
    memory: Memory,
    tick: u64,
    /// How often each prompt was in one version of the log, at most.
    ever: BTreeMap<String, usize>,
}

impl Rewritten {
    fn new(of: fn(&[usize]) -> String) -> Self {
        let dir = tempfile::tempdir().expect("tempdir");
        Self { dir, of, memory: Memory::default(), tick: 0, ever: BTreeMap::new() }
    }

    fn path(&self) -> PathBuf {
        self.dir.path().join("log.jsonl")
    }

    fn write_text(&mut self, text: &str) {
        self.tick += 1;
        write(&self.path(), text, self.tick);
    }

    /// Writes the log with these prompts, and reads it.
    fn read(&mut self, prompts: &[usize]) {
        self.write_text(&(self.of)(prompts));
        self.memory.ingest(self.dir.path());
        let text = (self.of)(prompts);
        let mut now: BTreeMap<String, usize> = BTreeMap::new();
        for rest in text.split("prompt ").skip(1) {
            let number: String = rest.chars().take_while(char::is_ascii_digit).collect();
            *now.entry(format!("prompt {number}")).or_default() += 1;
        }
        for (prompt, count) in now {
            let most = self.ever.entry(prompt).or_default();
            *most = count.max(*most);
        }
    }

    /// Checks that every prompt that was read counts once, and that the rows of the sessions agree with
    /// those of the events.
    fn check(&self) {
        let events = self.memory.events();
        let mut counted: BTreeMap<String, usize> = BTreeMap::new();
        for event in events.iter().filter(|event| event.event_type == EventType::User) {
            *counted.entry(event.text.clone()).or_default() += usize::from(!event.is_replay);
        }
        assert_eq!(counted, self.ever);
        for row in self.memory.sessions() {
            let of_row = || events.iter().filter(|event| event.session_id == row.session_id);
            let copied = of_row().filter(|event| event.is_replay).count() as i64;
            let prompts = of_row().filter(|event| event.event_type == EventType::User);
            let own = prompts.filter(|event| !event.is_replay).count() as i64;
            assert_eq!((row.replay_events, row.turns, row.user_messages), (copied, own, own));
            assert!(of_row().map(|event| event.event_index).eq(0..row.events as i32));
        }
    }

    fn versions(&self) -> Vec<SessionRow> {
        let sessions = self.memory.sessions().into_iter();
        sessions.filter(SessionRow::is_earlier_version).collect()
    }

    /// The prompts that count in a session.
    fn own(&self, id: &str) -> Vec<String> {
        let events = self.memory.events().into_iter();
        let own = events.filter(|event| event.session_id == id && !event.is_replay);
        own.filter(|event| event.event_type == EventType::User).map(|event| event.text).collect()
    }
}

#[test]
fn what_a_log_lost_is_an_earlier_version_of_its_session() {
    for of in [claude_of, codex] {
        let mut log = Rewritten::new(of);
        log.read(&[0, 1, 2]);
        log.read(&[0]);
        log.check();
        let live = session(1);
        let versions = log.versions();
        let [version] = &versions[..] else { panic!("{versions:?}") };
        assert!(version.session_id.starts_with(&format!("{live}~")));
        assert_eq!(version.parent_session_id.as_deref(), Some(&*live));
        assert_eq!(version.native_id.as_deref(), Some(&*version.session_id));
        assert!(version.source_gone && !log.memory.session(&live).source_gone);
        assert_eq!(log.own(&version.session_id), ["prompt 1", "prompt 2"]);
        let sources = log.memory.sources();
        let source =
            sources.iter().find(|row| row.session_id.as_ref() == Some(&version.session_id));
        assert_eq!(source.map(|row| row.status), Some(SourceStatus::Gone));

        // It grows, and stays one session with one earlier version.
        log.read(&[0, 5]);
        log.check();
        assert_eq!(log.versions().len(), 1);
        // The content comes back: all of it counts in the log.
        log.read(&[0, 1, 2, 5]);
        log.check();
        let [version] = &log.versions()[..] else { panic!("another one") };
        assert_eq!((version.turns, version.replay_events), (0, version.events));
        // And goes again.
        log.read(&[7]);
        log.check();
        ingest_twice(&log.memory, log.dir.path());
    }
}

#[test]
fn a_log_that_still_holds_everything_has_no_earlier_version() {
    let mut log = Rewritten::new(claude_of);
    log.read(&[0, 1, 2]);
    // A line comes first, and every record has a field more.
    let more = format!(
        "{{\"type\":\"summary\",\"summary\":\"Three\",\"leafUuid\":\"x\"}}\n{}",
        claude_of(&[0, 1, 2]).replace(r#","message""#, r#","version":"9","message""#)
    );
    log.write_text(&more);
    log.memory.ingest(log.dir.path());
    log.check();
    assert!(log.versions().is_empty());
    // Another decoder reads it again, or one record of it is not there yet.
    log.memory.age_decoders();
    log.memory.ingest(log.dir.path());
    log.check();
    assert!(log.versions().is_empty());

    // The identity of records without ids changes with their bytes.
    let mut log = Rewritten::new(codex);
    log.read(&[0, 1, 2]);
    let again = codex(&[0, 1, 2]).replace(r#""role":"user""#, r#""role":"user","x":1"#);
    log.write_text(&again);
    log.memory.ingest(log.dir.path());
    log.check();
    assert!(log.versions().is_empty());
}

#[test]
fn several_versions_are_told_apart_and_found_again() {
    for of in [claude_of, codex] {
        let mut log = Rewritten::new(of);
        for prompts in [&[0, 1][..], &[2, 3], &[4], &[0, 1], &[5]] {
            log.read(prompts);
            log.check();
        }
        let ids: BTreeSet<String> =
            log.versions().into_iter().map(|version| version.session_id).collect();
        assert_eq!(ids.len(), 3);
        // Other stores give them the same ids.
        let mut other = Rewritten::new(of);
        for prompts in [&[0, 1][..], &[2, 3], &[4], &[5]] {
            other.read(prompts);
        }
        assert_eq!(
            other.versions().iter().map(|row| row.session_id.clone()).collect::<BTreeSet<_>>(),
            ids
        );
    }
}

#[test]
fn a_fork_of_a_log_that_was_cut_still_repeats_it() {
    let dir = tempfile::tempdir().expect("tempdir");
    let memory = Memory::default();
    let (log, fork) = (dir.path().join("a.jsonl"), dir.path().join("b.jsonl"));
    let all: Vec<usize> = (0..6).collect();
    let forked: String = all.iter().chain([&9]).map(|n| record(&session(2), *n, "")).collect();
    write(&log, &claude_of(&all), 1);
    memory.ingest(dir.path());
    write(&fork, &forked, 2);
    memory.ingest(dir.path());
    let counted = || {
        let sessions = memory.sessions();
        sessions.iter().map(|row| row.turns).collect::<Vec<_>>()
    };
    assert_eq!(counted(), [6, 1]);
    write(&log, &claude_of(&[0, 1]), 3);
    memory.ingest(dir.path());
    assert_eq!(counted(), [2, 4, 1]);
    // The fork grows, and is read again from its start.
    write(&fork, &(forked.clone() + &record(&session(2), 10, "")), 4);
    memory.ingest(dir.path());
    memory.age_decoders();
    memory.ingest(dir.path());
    assert_eq!(counted(), [2, 4, 2]);
    fs::remove_file(&fork).expect("removes");
    write(&log, &claude_of(&[0, 1, 2, 3, 4, 5]), 5);
    memory.ingest(dir.path());
    assert_eq!(counted(), [6, 0, 2]);
    ingest_twice(&memory, dir.path());
}

#[test]
fn long_logs_that_begin_again_lose_and_repeat_nothing() {
    for of in [claude_of, codex] {
        let mut log = Rewritten::new(of);
        let all: Vec<usize> = (0..9_000).collect();
        log.read(&all);
        // The end of it stays, behind another beginning.
        let tail: Vec<usize> = (30_000..30_100).chain(4_000..9_000).collect();
        log.read(&tail);
        log.check();
        log.read(&all);
        log.check();
    }
}

#[test]
fn a_log_that_calls_itself_an_earlier_version_is_read_like_any_other() {
    let dir = tempfile::tempdir().expect("tempdir");
    let memory = Memory::default();
    let path = dir.path().join("odd.jsonl");
    let head = r#"{"format":"sessions","version":1,"session_id":"odd","parent_session_id":"p","relation":"earlier_version_of"}"#;
    let said = |n: usize| format!("{{\"type\":\"user\",\"text\":\"prompt {n}\"}}\n");
    write(&path, &format!("{head}\n{}", said(1)), 1);
    memory.ingest(dir.path());
    write(&path, &format!("{head}\n{}{}", said(1), said(2)), 2);
    memory.ingest(dir.path());
    let row = memory.session("odd");
    assert_eq!((row.turns, row.is_earlier_version()), (2, false));
}

/// What happens to the log.
#[derive(Debug, Clone)]
enum Step {
    Say(usize),
    Cut(usize),
    BeginAgain(usize),
    /// Prompts come first that were not there.
    Prepend(usize),
    /// The first prompts are taken out.
    Behead(usize),
    Restore(usize),
    Empty,
    Overwrite,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        3 => (1usize..40).prop_map(Step::Say),
        2 => (0usize..40).prop_map(Step::Cut),
        1 => (1usize..40).prop_map(Step::BeginAgain),
        1 => (1usize..40).prop_map(Step::Prepend),
        2 => (1usize..40).prop_map(Step::Behead),
        2 => (0usize..9).prop_map(Step::Restore),
        1 => Just(Step::Empty),
        1 => Just(Step::Overwrite),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn every_prompt_that_was_read_counts_once_whatever_becomes_of_its_log(
        format in 0usize..3,
        steps in proptest::collection::vec((step(), any::<bool>()), 1..16),
    ) {
        let mut log = Rewritten::new([claude_of, codex, repeating][format]);
        let (mut now, mut said) = (vec![0], 1);
        let mut before: Vec<Vec<usize>> = Vec::new();
        let more = |count: usize, said: &mut usize| {
            let new: Vec<usize> = (*said..*said + count).collect();
            *said += count;
            new
        };
        log.read(&now);
        for (step, is_read) in steps {
            before.push(now.clone());
            match step {
                Step::Say(count) => now.extend(more(count, &mut said)),
                Step::Cut(count) => now.truncate(now.len().saturating_sub(count).max(1)),
                Step::BeginAgain(count) => now = more(count, &mut said),
                Step::Prepend(count) => now.splice(0..0, more(count, &mut said)).for_each(drop),
                Step::Behead(count) => drop(now.drain(..count.min(now.len() - 1))),
                Step::Restore(back) => now = before[before.len().saturating_sub(back + 1)].clone(),
                Step::Empty | Step::Overwrite => {
                    let is_empty = matches!(step, Step::Empty);
                    log.write_text(if is_empty { "" } else { "{\"hello\":1}\n" });
                    log.memory.ingest(log.dir.path());
                    log.check();
                }
            }
            if is_read {
                log.read(&now);
                log.check();
            }
        }
        log.read(&now);
        log.check();
        ingest_twice(&log.memory, log.dir.path());
        log.check();
    }
}
