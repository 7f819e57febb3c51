//! Traps of the formats (docs/formats.md) and of changing files, on small logs made here.

use std::fs;
use std::path::Path;
use std::time::{Duration, SystemTime};

use schemas::session::{EventRow, SourceStatus};

use crate::memory::{Memory, samples};

pub(crate) fn user(session: &str, n: u32, text: &str) -> String {
    let uuid = format!("{session:0>8}-0000-4000-8000-{n:012}");
    format!(
        r#"{{"type":"user","uuid":"{uuid}","sessionId":"{session}","timestamp":"2026-10-01T10:00:{n:02}.000Z","message":{{"role":"user","content":"{text}"}}}}"#
    ) + "\n"
}

/// Writes with a modification time that differs from every one before.
pub(crate) fn write(path: &Path, content: &str, tick: u64) {
    fs::write(path, content).expect("writes");
    set_modified(path, 1_800_000_000 + tick);
}

/// Sets when a file changed, in seconds.
pub(crate) fn set_modified(path: &Path, seconds: u64) {
    let time = SystemTime::UNIX_EPOCH + Duration::from_secs(seconds);
    fs::File::options()
        .write(true)
        .open(path)
        .expect("opens")
        .set_modified(time)
        .expect("sets time");
}

pub(crate) fn texts(memory: &Memory) -> Vec<String> {
    memory.events().into_iter().map(|event| event.text).collect()
}

#[test]
fn unchanged_files_are_not_opened_and_grown_ones_only_at_their_end() {
    let dir = tempfile::tempdir().expect("tempdir");
    let path = dir.path().join("a.jsonl");
    let head: String = (0..50).map(|n| user("a", n, "one")).collect();
    write(&path, &head, 1);
    let memory = Memory::default();
    assert_eq!(memory.ingest(dir.path()).bytes_read, head.len() as u64);
    let again = memory.ingest(dir.path());
    assert_eq!((again.files_opened, again.bytes_read, again.files_unchanged), (0, 0, 1));
    let more = user("a", 51, "two");
    write(&path, &(head + &more), 2);
    let grown = memory.ingest(dir.path());
    assert_eq!(
        (grown.files_grown, grown.files_opened, grown.bytes_read),
        (1, 1, more.len() as u64)
    );
    assert_eq!(memory.session("a").turns, 51);
}

#[test]
fn rewritten_and_shrunk_files_are_read_anew_under_the_same_id() {
    let dir = tempfile::tempdir().expect("tempdir");
    let path = dir.path().join("a.jsonl");
    let memory = Memory::default();
    write(&path, &(user("a", 1, "first") + &user("a", 2, "second")), 1);
    memory.ingest(dir.path());
    write(&path, &(user("a", 3, "other") + &user("a", 4, "words!")), 2);
    assert_eq!(memory.ingest(dir.path()).files_rewritten, 1);
    let texts_of = |is_earlier: bool| {
        let of = |id: &str| memory.session(id).is_earlier_version() == is_earlier;
        let events = memory.events().into_iter().filter(|event| of(&event.session_id));
        let mut texts: Vec<_> = events.map(|event| event.text).collect();
        texts.sort();
        texts
    };
    assert_eq!(texts_of(false), ["other", "words!"]);
    write(&path, &user("a", 5, "short"), 3);
    assert_eq!(memory.ingest(dir.path()).files_rewritten, 1);
    assert_eq!(texts_of(false), ["short"]);
    assert_eq!(texts_of(true), ["first", "other", "second", "words!"]);
    assert_eq!(memory.sessions().len(), 3);
}

#[test]
fn a_vanished_log_stays_and_is_marked_until_it_comes_back() {
    let dir = tempfile::tempdir().expect("tempdir");
    let path = dir.path().join("a.jsonl");
    let memory = Memory::default();
    write(&path, &user("a", 1, "kept"), 1);
    memory.ingest(dir.path());
    fs::remove_file(&path).expect("removes");
    assert_eq!(memory.ingest(dir.path()).files_vanished, 1);
    assert!(memory.session("a").source_gone);
    assert_eq!(texts(&memory), ["kept"]);
    assert_eq!(memory.ingest(dir.path()).files_vanished, 0);
    write(&path, &user("a", 1, "kept"), 1);
    memory.ingest(dir.path());
    assert!(!memory.session("a").source_gone);
    assert_eq!(texts(&memory), ["kept"]);
    assert_eq!(memory.sources()[0].status, SourceStatus::Ok);
}

#[test]
fn a_moved_log_has_not_vanished() {
    let dir = tempfile::tempdir().expect("tempdir");
    let path = |name: &str| dir.path().join(name);
    for (name, session) in [("a.jsonl", "a"), ("b.jsonl", "b")] {
        write(&path(name), &user(session, 1, "said once"), 1);
    }
    let memory = Memory::default();
    memory.ingest(dir.path());
    fs::rename(path("a.jsonl"), path("c.jsonl")).expect("moves");
    fs::remove_file(path("b.jsonl")).expect("removes");
    assert_eq!(memory.ingest(dir.path()).files_vanished, 1);
    assert!(
        memory.session("a").source_path.ends_with("c.jsonl") && !memory.session("a").source_gone
    );
    assert!(memory.session("b").source_gone);
}

#[test]
fn another_root_says_nothing_about_this_one() {
    let (one, two) = (tempfile::tempdir().expect("tempdir"), tempfile::tempdir().expect("tempdir"));
    write(&one.path().join("a.jsonl"), &user("a", 1, "x"), 1);
    write(&two.path().join("b.jsonl"), &user("b", 1, "y"), 1);
    let memory = Memory::default();
    memory.ingest(one.path());
    assert_eq!(memory.ingest(two.path()).files_vanished, 0);
    fs::remove_dir_all(one.path()).expect("removes");
    memory.ingest(one.path());
    assert!(!memory.session("a").source_gone, "a root that cannot be read proves nothing");
}

#[test]
fn two_files_of_one_id_both_stay_reachable_and_count_once() {
    let dir = tempfile::tempdir().expect("tempdir");
    let log = user("5", 1, "one") + &user("5", 2, "two");
    write(&dir.path().join("x.jsonl"), &log, 1);
    write(&dir.path().join("y.jsonl"), &(log + &user("5", 3, "three")), 1);
    let memory = Memory::default();
    memory.ingest(dir.path());
    let (first, second) = (memory.session("5"), memory.session("5~2"));
    assert!(first.source_path.ends_with("y.jsonl"), "the larger one is the original");
    assert_eq!((first.turns, first.replay_events), (3, 0));
    assert_eq!((second.turns, second.events, second.replay_events), (0, 2, 2));
}

#[test]
fn a_forks_copied_history_is_marked_in_any_order_of_arrival() {
    let main = "claude/projects/-home-mira-code-harbor/9ae82b3a-fd82-48da-afd8-479f58648cbe.jsonl";
    let fork = "claude/projects/-home-mira-code-harbor/14612321-6aa3-490b-a101-f3612f0a75a9.jsonl";
    let together = Memory::default();
    together.ingest_all(&[samples().join(main), samples().join(fork)]);
    let apart = Memory::default();
    apart.ingest(&samples().join(main));
    apart.ingest(&samples().join(fork));
    assert_eq!(together.events(), apart.events());
    let row = together.session("14612321-6aa3-490b-a101-f3612f0a75a9");
    assert_eq!(row.relation.as_deref(), Some("forked_from"));
    assert_eq!(row.parent_session_id.as_deref(), Some("9ae82b3a-fd82-48da-afd8-479f58648cbe"));
    assert_eq!(row.output_tokens, Some(816));
    assert_eq!(together.session("9ae82b3a-fd82-48da-afd8-479f58648cbe").output_tokens, Some(1992));
}

/// The log that goes on holds the other one whole, which had to be the fork if size decided.
#[test]
fn a_fork_at_the_end_of_a_session_leaves_it_the_original() {
    let record = |session: &str, n: u32| {
        let uuid = |n: u32| format!("\"00000000-0000-4000-8000-{n:012}\"");
        let parent = n.checked_sub(1).map_or("null".to_owned(), uuid);
        let id = uuid(n);
        format!(
            r#"{{"type":"user","uuid":{id},"parentUuid":{parent},"sessionId":"{session}","timestamp":"2026-10-01T10:00:0{n}.000Z","message":{{"role":"user","content":"prompt {n}"}}}}"#
        ) + "\n"
    };
    let log =
        |session: &str, records: u32| (0..records).map(|n| record(session, n)).collect::<String>();
    let ids = ["c", "a", "b"].map(|first| format!("{first}1f0e51c-2b7d-4c0e-9a35-d1e84b7092fa"));
    let dir = tempfile::tempdir().expect("tempdir");
    for (id, records) in ids.iter().zip([2, 3, 4]) {
        write(&dir.path().join(format!("{id}.jsonl")), &log(id, records), 1);
    }
    let memory = Memory::default();
    memory.ingest(dir.path());
    let [original, fork, second] = ids.each_ref().map(|id| memory.session(id));
    assert_eq!((original.turns, original.parent_session_id, original.relation), (2, None, None));
    assert_eq!((fork.turns, fork.parent_session_id.as_deref()), (1, Some(ids[0].as_str())));
    assert_eq!((second.turns, second.relation.as_deref()), (1, Some("forked_from")));
}

/// Records of Codex are known by their content; `yes` is one as much as a long prompt.
#[test]
fn short_prompts_of_a_fork_are_told_from_copied_ones() {
    let [origin, fork] =
        ["a", "b"].map(|first| format!("{first}1f0e51c-2b7d-4c0e-9a35-d1e84b7092fa"));
    let line = |second: u32, kind: &str, payload: String| {
        format!(
            r#"{{"timestamp":"2026-10-01T10:00:{second:02}.000Z","type":"{kind}","payload":{payload}}}"#
        ) + "\n"
    };
    let meta = |second, id: &str, from: &str| {
        line(
            second,
            "session_meta",
            format!(r#"{{"id":"{id}","cwd":"/w","cli_version":"0.146.0"{from}}}"#),
        )
    };
    let turn = |second, prompt: &str, answer: &str| {
        let said = |role: &str, kind: &str, text: &str| {
            format!(
                r#"{{"type":"message","role":"{role}","content":[{{"type":"{kind}","text":"{text}"}}]}}"#
            )
        };
        line(
            second,
            "turn_context",
            format!(r#"{{"cwd":"/w","model":"m","n":"{}"}}"#, "x".repeat(200)),
        ) + &line(second, "response_item", said("user", "input_text", prompt))
            + &line(second + 1, "response_item", said("assistant", "output_text", answer))
    };
    let shared = |at| turn(at, "p zero", "ok") + &turn(at + 2, "p one", "fine");
    let dir = tempfile::tempdir().expect("tempdir");
    let log = |id: &str, text: String| {
        write(&dir.path().join(format!("rollout-2026-10-01T10-00-00-{id}.jsonl")), &text, 1);
    };
    log(&origin, meta(0, &origin, "") + &shared(1));
    let from = format!(r#","forked_from_id":"{origin}""#);
    let copied = meta(30, &origin, "") + &shared(30);
    log(&fork, meta(30, &fork, &from) + &copied + &turn(50, "yes", "done"));
    let memory = Memory::default();
    memory.ingest(dir.path());
    let of_fork = memory
        .events()
        .into_iter()
        .filter(|event| event.session_id == fork && event.turn_index > 0);
    let said: Vec<_> = of_fork.map(|event| (event.text, event.is_replay)).collect();
    let wanted = [
        ("p zero", true),
        ("ok", true),
        ("p one", true),
        ("fine", true),
        ("yes", false),
        ("done", false),
    ];
    assert_eq!(said, wanted.map(|(text, copied)| (text.to_owned(), copied)));
    assert_eq!((memory.session(&origin).turns, memory.session(&fork).turns), (2, 1));
}

/// What is said in a log, in capitals where it is an abandoned branch.
fn said(name: &str, log: &str) -> String {
    let dir = tempfile::tempdir().expect("tempdir");
    write(&dir.path().join(name), log, 1);
    let memory = Memory::default();
    memory.ingest(dir.path());
    let session = memory.sessions().remove(0);
    let text = |event: EventRow| {
        let left = session.is_abandoned(event.event_index);
        if left { event.text.to_uppercase() } else { event.text }
    };
    memory.events().into_iter().map(text).collect()
}

#[test]
fn messages_that_a_gemini_log_takes_out_stay_as_an_abandoned_branch() {
    let message = |id: &str| {
        format!(
            r#"{{"id":"{id}","timestamp":"2026-10-01T10:00:01.000Z","type":"user","content":"{id}"}}"#
        )
    };
    let [a, b, c, d] = ["a", "b", "c", "d"].map(message);
    let rewind = |id: &str| format!(r#"{{"$rewindTo":"{id}"}}"#);
    let set = |messages: &[&String]| {
        let list: Vec<&str> = messages.iter().map(|message| message.as_str()).collect();
        format!(r#"{{"$set":{{"messages":[{}]}}}}"#, list.join(","))
    };
    let header = r#"{"sessionId":"g","projectHash":"h","startTime":"2026-10-01T10:00:00.000Z","kind":"main"}"#;
    let said =
        |lines: &[&str]| said("session-g.jsonl", &format!("{header}\n{}\n", lines.join("\n")));
    // The one that is named goes as well.
    assert_eq!(said(&[&a, &b, &c, &rewind("b"), &d]), "aBCd");
    // Every one, when none is called so.
    assert_eq!(said(&[&a, &b, &rewind("x"), &c]), "ABc");
    // A second time, and the same words again.
    assert_eq!(said(&[&a, &b, &rewind("b"), &c, &rewind("a"), &d]), "ABCd");
    // A new list, as after a compression.
    assert_eq!(said(&[&a, &b, &c, &set(&[&a, &d])]), "aBCd");
    assert_eq!(said(&[&set(&[&a]), &set(&[&a, &b]), &c, &set(&[&c])]), "ABc");
    assert_eq!(said(&[&a, &b, &set(&[&b, &a])]), "ba");
    assert_eq!(said(&[&a, &b, &set(&[])]), "AB");
    // A list in a damaged line, and a line without a list.
    let damaged = message("x\0");
    assert_eq!(said(&[&a, &b, &set(&[&b, &damaged])]), "Abx");
    assert_eq!(said(&[&a, &b, r#"{"$set":{"messages":7}}"#]), "ab");
}

#[test]
fn what_a_person_took_back_in_opencode_is_an_abandoned_branch() {
    let message = |id: &str, at: u32| {
        format!(
            r#"{{"info":{{"id":"msg_{id}","sessionID":"ses_1","role":"user","time":{{"created":176000000000{at}}}}},"parts":[{{"type":"text","text":"{id}"}}]}}"#
        )
    };
    let said = |revert: &str| {
        let messages = [message("a", 1), message("b", 2), message("c", 3)].join(",");
        let info = format!(
            r#"{{"id":"ses_1","projectID":"p","directory":"/w","time":{{"created":1760000000000}}{revert}}}"#
        );
        said("ses_1.json", &format!(r#"{{"info":{info},"messages":[{messages}]}}"#))
    };
    assert_eq!(said(""), "abc");
    assert_eq!(said(r#","revert":{"messageID":"msg_b"}"#), "aBC");
    assert_eq!(said(r#","revert":{"messageID":"msg_b","partID":"prt_1"}"#), "abC");
    assert_eq!(said(r#","revert":{"messageID":"msg_x"}"#), "abc");
}

/// The events, problems and sessions of a log that is read in pieces of the given number of bytes.
fn read_in_pieces(log: &str, piece: usize) -> Memory {
    let dir = tempfile::tempdir().expect("tempdir");
    let memory = Memory::default();
    for (tick, end) in (1..).zip((piece..log.len()).step_by(piece).chain([log.len()])) {
        write(&dir.path().join("a.jsonl"), &log[..end], tick);
        memory.ingest(dir.path());
    }
    memory
}

#[test]
fn records_that_say_nothing_new_are_counted_and_reported_once() {
    let lines = |record: fn(usize) -> String| (0..12_000).map(record).collect::<String>();
    for (records, limit, reason) in [
        (lines(|_| "{\"a\":1}\n".to_owned()), 1000, "equal_record"),
        (lines(|n| format!("{{\"a\":{n}}}\n")), 10_000, "unknown_record"),
        (lines(|n| format!("{{\"type\":\"new\",\"n\":{n}}}\n")), 10_000, "unknown_record"),
    ] {
        let log = user("a", 1, "one") + &records + &user("a", 2, "two");
        let dir = tempfile::tempdir().expect("tempdir");
        write(&dir.path().join("a.jsonl"), &log, 1);
        let whole = Memory::default();
        let report = whole.ingest(dir.path());
        assert_eq!(report.events, limit + 2);
        assert_eq!(report.objects_merged.get(reason), Some(&(12_000 - limit)));
        assert_eq!(report.problems.get("records_left_out"), Some(&1), "{:?}", report.problems);
        assert_eq!(texts(&whole).last().map(String::as_str), Some("two"));

        let pieces = read_in_pieces(&log, log.len() / 9);
        assert_eq!(pieces.events(), whole.events());
        let drift = |memory: &Memory| memory.session("a").drift;
        // What is equal is not looked at, so it is not known to be unknown.
        assert_eq!(drift(&pieces), drift(&whole));
        assert_eq!(pieces.problems().len(), 1);
    }
}

#[test]
fn giant_lines_cost_themselves_only() {
    let dir = tempfile::tempdir().expect("tempdir");
    let giant = user("a", 2, &"x".repeat(ingest::source::lines::MAX_LINE_BYTES + (8 << 20)));
    let log = user("a", 1, "before") + &giant + &user("a", 3, "after");
    write(&dir.path().join("a.jsonl"), &log, 1);
    // A log may begin with such a line.
    write(&dir.path().join("b.jsonl"), &(giant.clone() + &user("b", 3, "only")), 1);
    let memory = Memory::default();
    let report = memory.ingest(dir.path());
    assert_eq!(report.problems.get("oversized_record"), Some(&2));
    assert_eq!(memory.session("b").turns, 1);
    let events = memory.events();
    assert_eq!((events[0].text.as_str(), events[2].text.as_str()), ("before", "after"));
    assert_eq!(events[1].subtype.as_deref(), Some("oversized_record"));
    assert_eq!(events[1].source_length, giant.len() as i64 - 1);
}

#[test]
fn long_lines_within_the_bound_are_whole() {
    let dir = tempfile::tempdir().expect("tempdir");
    let text = "y".repeat(10 << 20);
    write(&dir.path().join("a.jsonl"), &(user("a", 1, &text) + &user("a", 2, "after")), 1);
    let memory = Memory::default();
    memory.ingest(dir.path());
    assert_eq!(memory.events()[0].text.len(), text.len());
}

#[cfg(unix)]
#[test]
fn an_unreadable_file_is_reported_and_the_rest_is_read() {
    use std::os::unix::fs::PermissionsExt as _;
    let dir = tempfile::tempdir().expect("tempdir");
    write(&dir.path().join("a.jsonl"), &user("a", 1, "x"), 1);
    let locked = dir.path().join("b.jsonl");
    write(&locked, &user("b", 1, "y"), 1);
    fs::set_permissions(&locked, fs::Permissions::from_mode(0o000)).expect("sets");
    let memory = Memory::default();
    let report = memory.ingest(dir.path());
    assert_eq!(memory.session("a").turns, 1);
    // Root reads everything: there is nothing to report then.
    if fs::File::open(&locked).is_err() {
        assert_eq!((report.files_failed, report.problems.get("unreadable")), (1, Some(&1)));
        fs::set_permissions(&locked, fs::Permissions::from_mode(0o600)).expect("sets");
        memory.ingest(dir.path());
    }
    assert_eq!(memory.session("b").turns, 1);
}

#[test]
fn a_line_taken_without_its_newline_is_counted_once() {
    let dir = tempfile::tempdir().expect("tempdir");
    let path = dir.path().join("a.jsonl");
    let (first, second) = (user("a", 1, "one"), user("a", 2, "two"));
    let memory = Memory::default();
    write(&path, first.trim_end(), 1);
    memory.ingest(dir.path());
    write(&path, &format!("{first}broken\n{second}"), 2);
    memory.ingest(dir.path());
    assert_eq!(texts(&memory), ["one", "two"]);
    assert_eq!(memory.problems()[0].line, 2);
    assert_eq!(memory.sources()[0].lines, 3);
}

#[test]
fn a_long_request_stays_one_when_the_log_grows_within_it() {
    let answer = |n: u32, output: u32| {
        format!(
            r#"{{"type":"assistant","uuid":"0000000a-0000-4000-8000-{n:012}","sessionId":"a","requestId":"r","timestamp":"2026-10-01T10:00:{n:02}.000Z","message":{{"id":"m","role":"assistant","model":"claude-opus-4-6","content":[{{"type":"text","text":"{n}"}}],"usage":{{"input_tokens":300000,"output_tokens":{output}}}}}}}"#
        ) + "\n"
    };
    let (head, more) = (user("a", 1, "one") + &answer(2, 1), answer(3, 9));
    let by_model = |contents: &[&str]| {
        let dir = tempfile::tempdir().expect("tempdir");
        let memory = Memory::default();
        for (tick, content) in (1..).zip(contents) {
            write(&dir.path().join("a.jsonl"), content, tick);
            memory.ingest(dir.path());
        }
        memory.session("a").usage_by_model.expect("tokens")
    };
    let whole = format!("{head}{more}");
    assert_eq!(by_model(&[&head, &whole]), by_model(&[&whole]));
}

#[test]
fn a_log_of_garbage_is_counted_and_lists_its_first_problems() {
    let dir = tempfile::tempdir().expect("tempdir");
    let log = user("a", 1, "before") + &"garbage\n".repeat(2500) + &user("a", 2, "after");
    write(&dir.path().join("a.jsonl"), &log, 1);
    let memory = Memory::default();
    let report = memory.ingest(dir.path());
    assert_eq!(report.problems.get("bad_json"), Some(&2500));
    assert_eq!(texts(&memory), ["before", "after"]);
    let problems = memory.problems();
    assert_eq!(problems.len(), 1000);
    assert!(problems[999].message.ends_with("counted but not listed"), "{:?}", problems[999]);
    assert!(!problems[998].message.ends_with("listed"), "{:?}", problems[998]);
}

#[test]
fn a_document_that_became_too_large_keeps_what_was_read_of_it() {
    let dir = tempfile::tempdir().expect("tempdir");
    let path = dir.path().join("a.json");
    let document = r#"{"sessionId":"g","projectHash":"h","startTime":"2026-10-01T10:00:00.000Z","messages":[{"id":"1","timestamp":"2026-10-01T10:00:00.000Z","type":"user","content":"kept"}]}"#;
    write(&path, document, 1);
    let memory = Memory::default();
    memory.ingest(dir.path());
    let before = memory.events();
    assert!(before.iter().any(|event| event.text == "kept"), "{before:?}");
    // Nothing stands there: a file of this size costs no room.
    let file = fs::File::options().write(true).open(&path).expect("opens");
    file.set_len((64 << 20) + 1).expect("grows");
    let report = memory.ingest(dir.path());
    assert_eq!(report.problems.get("oversized_document"), Some(&1));
    assert_eq!(memory.events(), before);
    assert_eq!(memory.session("g").turns, 1);
    assert_eq!(memory.ingest(dir.path()).files_unchanged, 1);
    // It is read again when it is smaller.
    write(&path, &document.replace("kept", "again"), 2);
    memory.ingest(dir.path());
    assert!(texts(&memory).contains(&"again".to_owned()), "{:?}", texts(&memory));
}

#[test]
fn a_session_with_too_many_bytes_loses_only_its_largest_files() {
    let dir = tempfile::tempdir().expect("tempdir");
    let storage = dir.path().join("storage");
    for folder in ["session/p", "message/ses_1", "part/msg_1"] {
        fs::create_dir_all(storage.join(folder)).expect("creates");
    }
    let session =
        r#"{"id":"ses_1","projectID":"p","directory":"/w","time":{"created":1760000000000}}"#;
    write(&storage.join("session/p/ses_1.json"), session, 1);
    let message =
        r#"{"id":"msg_1","sessionID":"ses_1","role":"user","time":{"created":1760000000000}}"#;
    write(&storage.join("message/ses_1/msg_1.json"), message, 1);
    write(&storage.join("part/msg_1/prt_1.json"), r#"{"type":"text","text":"kept"}"#, 1);
    let memory = Memory::default();
    memory.ingest(dir.path());
    assert_eq!(texts(&memory), ["kept"]);
    // Nothing stands there: a file of this size costs no room.
    let giant = fs::File::create(storage.join("part/msg_1/prt_2.json")).expect("creates");
    giant.set_len(1 << 40).expect("grows");
    let left_out = "a part of a message of 1099511627776 bytes was not read";
    for memory in [&memory, &Memory::default()] {
        let report = memory.ingest(dir.path());
        assert_eq!(report.problems.get("oversized_record"), Some(&1), "{:?}", report.problems);
        assert_eq!(texts(memory), ["kept", left_out]);
        assert_eq!(memory.events()[1].subtype.as_deref(), Some("oversized_record"));
        assert_eq!(memory.ingest(dir.path()).files_unchanged, 1);
    }

    // The message's own file is that large, too: whose words these are shows by the other parts.
    let giant = fs::File::create(storage.join("message/ses_1/msg_1.json")).expect("creates");
    giant.set_len(1 << 40).expect("grows");
    let memory = Memory::default();
    let report = memory.ingest(dir.path());
    assert_eq!(report.problems.get("oversized_record"), Some(&2), "{:?}", report.problems);
    let message = "a message of 1099511627776 bytes was not read";
    assert_eq!(texts(&memory), [message, "kept", left_out]);
    assert_eq!(memory.session("ses_1").user_messages, 1);
}
