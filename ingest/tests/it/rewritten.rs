//! Documents that their agents rewrite, with messages taken out: what was read of them stays where
//! it stood, as an abandoned branch, and counts.

use std::fs;
use std::path::Path;

use proptest::prelude::*;

use crate::memory::Memory;
use crate::traps::write;

/// A document of Gemini CLI: message `n` is a prompt when it is even, else an answer of `n` tokens.
pub(crate) fn gemini(messages: &[usize]) -> String {
    let message = |n: &usize| {
        let (id, time) =
            (format!("m-{n}"), format!("2026-10-01T10:{:02}:{:02}.000Z", n / 60, n % 60));
        let said = match n % 2 {
            0 => r#""type":"user""#.to_owned(),
            _ => format!(r#""type":"gemini","model":"g","tokens":{{"input":0,"output":{n}}}"#),
        };
        format!(r#"{{"id":"{id}","timestamp":"{time}","content":"text {n}",{said}}}"#)
    };
    let messages: Vec<_> = messages.iter().map(message).collect();
    format!(
        r#"{{"sessionId":"s-1","projectHash":"p","startTime":"2026-10-01T10:00:00.000Z","messages":[{}]}}"#,
        messages.join(",")
    )
}

/// What the store holds: the number in every text, whether it is abandoned, and turn by turn.
pub(crate) fn held(memory: &Memory) -> Vec<(usize, bool, i32)> {
    let session = memory.session("s-1");
    let texts = memory.events().into_iter().filter(|event| event.session_id == "s-1");
    let texts = texts.filter(|event| !event.text.is_empty());
    let held = texts.map(|event| {
        let number = event.text.trim_start_matches("text ").parse().expect("a number");
        (number, session.is_abandoned(event.event_index), event.turn_index)
    });
    held.collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    /// A person writes, or goes back and writes on; sometimes the document is away for a while.
    #[test]
    fn what_is_taken_out_stays_where_it_stood(
        steps in proptest::collection::vec((0usize..4, 1usize..4, any::<bool>()), 1..12),
    ) {
        let dir = tempfile::tempdir().expect("tempdir");
        let path = dir.path().join("session-1.json");
        let memory = Memory::default();
        // All that was ever read, in order, and what of it the document still holds.
        let (mut ever, mut now): (Vec<usize>, Vec<usize>) = (Vec::new(), Vec::new());
        for (at, (back, on, away)) in steps.into_iter().enumerate() {
            now.truncate(now.len().saturating_sub(back));
            for _ in 0..on {
                now.push(ever.len());
                ever.push(ever.len());
            }
            write(&path, &gemini(&now), at as u64);
            memory.ingest(dir.path());
            if away {
                fs::remove_file(&path).expect("removes");
                memory.ingest(dir.path());
                prop_assert!(memory.session("s-1").source_gone);
                write(&path, &gemini(&now), at as u64);
                memory.ingest(dir.path());
                prop_assert!(!memory.session("s-1").source_gone);
            }
            let held = held(&memory);
            prop_assert_eq!(held.iter().map(|(n, ..)| *n).collect::<Vec<_>>(), ever.clone());
            let live = held.iter().filter(|(_, gone, _)| !gone).map(|(n, ..)| *n);
            prop_assert_eq!(live.collect::<Vec<_>>(), now.clone());
            // Every prompt begins a turn of its own.
            let prompts = held.iter().filter(|(n, ..)| n % 2 == 0);
            prop_assert!(prompts.clone().zip(1..).all(|((_, _, turn), n)| *turn == n), "{:?}", held);
            let session = memory.session("s-1");
            let tokens: usize = ever.iter().filter(|n| *n % 2 == 1).sum();
            prop_assert_eq!(session.usage().output.unwrap_or(0), tokens as i64);
            prop_assert_eq!(session.turns, prompts.count() as i64);
        }
    }
}

/// A message of OpenCode: `u…` is a prompt, else an answer of which every word is a step of 5 tokens
/// but one that is not finished (`word…`).
fn message(session: &str, at: usize, id: &str, text: &str) -> String {
    let created = 1_760_000_000_000 + at * 1000;
    let part = |text: &str| format!(r#"{{"id":"p","type":"text","text":"{text}"}}"#);
    let step = |word: &str| {
        let finish = r#",{"type":"step-finish","tokens":{"input":0,"output":5}}"#;
        let finish = if word.ends_with('…') { "" } else { finish };
        format!(r#"{{"type":"step-start"}},{}{finish}"#, part(word))
    };
    let (role, parts) = if id.starts_with('u') {
        (r#""user""#, part(text))
    } else {
        (
            r#""assistant","modelID":"m""#,
            text.split_whitespace().map(step).collect::<Vec<_>>().join(","),
        )
    };
    format!(
        r#"{{"info":{{"id":"{id}","sessionID":"{session}","role":{role},"time":{{"created":{created}}}}},"parts":[{parts}]}}"#
    )
}

/// Writes an export of OpenCode; messages of the same place in it are of the same time.
fn opencode(path: &Path, tick: u64, session: &str, messages: &[(&str, &str)]) {
    let messages = messages.iter().enumerate();
    let messages: Vec<_> =
        messages.map(|(at, (id, text))| message(session, at, id, text)).collect();
    let document = format!(
        r#"{{"info":{{"id":"{session}","projectID":"p","directory":"/w","time":{{"created":1760000000000}}}},"messages":[{}]}}"#,
        messages.join(",")
    );
    write(path, &document, tick);
}

/// A session's texts, those of abandoned branches in capitals, and copies in brackets.
fn shown(memory: &Memory, id: &str) -> String {
    let session = memory.session(id);
    let events = memory.events().into_iter();
    let texts = events.filter(|event| event.session_id == id && !event.text.is_empty());
    let texts = texts.map(|event| {
        let abandoned = session.is_abandoned(event.event_index);
        let text = if abandoned { event.text.to_uppercase() } else { event.text };
        if event.is_replay { format!("({text})") } else { text }
    });
    texts.collect::<Vec<_>>().join(" ")
}

#[test]
fn a_message_that_is_written_or_comes_back_is_not_taken_out() {
    let dir = tempfile::tempdir().expect("tempdir");
    let path = dir.path().join("ses_1.json");
    let memory = Memory::default();
    let said = |tick: u64, messages: &[(&str, &str)]| {
        opencode(&path, tick, "ses_1", messages);
        memory.ingest(dir.path());
        shown(&memory, "ses_1")
    };
    let all = [("u1", "go"), ("a1", "half done"), ("u2", "more")];
    assert_eq!(said(1, &[all[0], ("a1", "half…"), all[2]]), "go half… more");
    // The answer goes on, under the same id.
    assert_eq!(said(2, &all), "go half done more");
    // Back to the first prompt, and on.
    assert_eq!(said(3, &[all[0], ("a2", "other")]), "go HALF DONE MORE other");
    // What was taken back is redone.
    assert_eq!(said(4, &all), "go half done more OTHER");
    // A document that is cut has nothing taken out of it for good.
    assert_eq!(said(5, &all[..1]), "go HALF DONE MORE OTHER");
    assert_eq!(said(6, &all), "go half done more OTHER");
    // Ids that are masked are told apart by how many there are.
    let masked = [("uX", "one"), ("uX", "two"), ("uX", "three"), ("uY", "four")];
    assert_eq!(said(7, &masked), "GO HALF DONE MORE OTHER one two three four");
    assert_eq!(said(8, &masked[..2]), "GO HALF DONE MORE OTHER one two THREE FOUR");
}

#[test]
fn a_session_stays_when_another_one_is_written_over_its_file() {
    let dir = tempfile::tempdir().expect("tempdir");
    let path = dir.path().join("export.json");
    let memory = Memory::default();
    let export = |tick: u64, session: &str| {
        let (prompt, answer) = (format!("u-{session}"), format!("a-{session}"));
        opencode(&path, tick, session, &[(&prompt, session), (&answer, "done")]);
        memory.ingest(dir.path());
        let mut held: Vec<_> = memory.sessions().into_iter().collect();
        held.sort_by(|a, b| a.session_id.cmp(&b.session_id));
        let held = held.iter().map(|row| {
            assert_eq!(row.native_id.as_deref(), Some(&*row.session_id));
            assert_eq!(row.usage().output, Some(5));
            assert_eq!(shown(&memory, &row.session_id), format!("{} done", row.session_id));
            format!("{}{}", row.session_id, if row.source_gone { " gone" } else { "" })
        });
        held.collect::<Vec<_>>().join(", ")
    };
    assert_eq!(export(1, "ses_1"), "ses_1");
    assert_eq!(export(2, "ses_2"), "ses_1 gone, ses_2");
    assert_eq!(export(3, "ses_1"), "ses_1, ses_2 gone");
    assert_eq!(export(4, "ses_3"), "ses_1 gone, ses_2 gone, ses_3");
    fs::remove_file(&path).expect("removes");
    memory.ingest(dir.path());
    assert_eq!(export(5, "ses_2"), "ses_1 gone, ses_2, ses_3 gone");
}

#[test]
fn what_was_taken_out_of_a_fork_is_still_a_copy() {
    let dir = tempfile::tempdir().expect("tempdir");
    let memory = Memory::default();
    let fork = dir.path().join("ses_f.json");
    let copies = [("u1", "go"), ("a1", "one two"), ("u2", "more"), ("a2", "three")];
    opencode(&fork, 1, "ses_f", &copies);
    memory.ingest(dir.path());
    opencode(&fork, 2, "ses_f", &copies[..2]);
    memory.ingest(dir.path());
    let named = fs::read_to_string(&fork).expect("reads");
    let named = named.replace(r#""projectID""#, r#""forkSessionID":"ses_p","projectID""#);
    write(&fork, &named, 3);
    // The original comes last.
    opencode(&dir.path().join("ses_p.json"), 4, "ses_p", &copies);
    memory.ingest(dir.path());
    assert_eq!(shown(&memory, "ses_f"), "(go) (one) (two) (MORE) (THREE)");
    assert_eq!(shown(&memory, "ses_p"), "go one two more three");
    let output = |id: &str| memory.session(id).usage().output;
    assert_eq!((output("ses_f"), output("ses_p")), (None, Some(15)));
}

#[test]
fn steps_are_numbered_as_they_stand() {
    let dir = tempfile::tempdir().expect("tempdir");
    let path = dir.path().join("ses_1.json");
    let memory = Memory::default();
    let steps = |tick: u64, messages: &[(&str, &str)]| {
        opencode(&path, tick, "ses_1", messages);
        memory.ingest(dir.path());
        let texts = memory.events().into_iter().filter(|event| !event.text.is_empty());
        let steps = texts.filter(|event| event.step_index > 0);
        let steps: Vec<_> = steps.map(|event| (event.text, event.step_index)).collect();
        assert_eq!(memory.session("ses_1").steps, steps.len() as i64);
        steps.iter().map(|(text, step)| format!("{text}{step}")).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(steps(1, &[("u1", "go"), ("a1", ""), ("u2", "on"), ("a2", "b")]), "b1");
    // The answer was not there yet; what stood behind it is taken out.
    assert_eq!(steps(2, &[("u1", "go"), ("a1", "a c")]), "a1 c2 b3");
    assert_eq!(steps(3, &[("u1", "go"), ("a1", "a"), ("u3", "x"), ("a3", "d")]), "a1 b2 d3");
}

#[test]
fn a_session_still_knows_what_was_taken_out() {
    let dir = tempfile::tempdir().expect("tempdir");
    let path = dir.path().join("ses_1.json");
    let memory = Memory::default();
    opencode(&path, 1, "ses_1", &[("u1", "The title"), ("a1", "one two…")]);
    memory.ingest(dir.path());
    let before = memory.session("ses_1");
    assert_eq!(before.usage_confidence.as_deref(), Some("partial"));
    opencode(&path, 2, "ses_1", &[]);
    memory.ingest(dir.path());
    let after = memory.session("ses_1");
    let known = |row: &schemas::session::SessionRow| {
        let texts = [&row.title, &row.model, &row.usage_confidence].map(Clone::clone);
        (texts, row.turns, row.steps, row.usage(), row.started_at, row.ended_at)
    };
    assert_eq!(known(&after), known(&before));
    assert_eq!(shown(&memory, "ses_1"), "THE TITLE ONE TWO…");
}
