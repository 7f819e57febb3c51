//! Documents that their agents write anew, with messages taken out: what was read of them stays where
//! it stood, as an abandoned branch, and counts.

use std::fs;
use std::path::Path;

use proptest::prelude::*;

use crate::memory::Memory;
use crate::traps::write;

/// A document of Gemini CLI: message `n` is a prompt when it is even, else an answer of `n` tokens.
fn gemini(messages: &[usize]) -> String {
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
fn held(memory: &Memory) -> Vec<(usize, bool, i32)> {
    let session = memory.session("s-1");
    let texts = memory.events().into_iter().filter(|event| !event.text.is_empty());
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

/// An export of OpenCode.
fn opencode(path: &Path, tick: u64, messages: &[(&str, &str)]) {
    let message = |(at, (id, text)): (usize, &(&str, &str))| {
        let role = if at % 2 == 0 { "user" } else { "assistant" };
        let created = 1_760_000_000_000 + at * 1000;
        format!(
            r#"{{"info":{{"id":"{id}","sessionID":"ses_1","role":"{role}","time":{{"created":{created}}}}},"parts":[{{"id":"prt_{id}","type":"text","text":"{text}"}}]}}"#
        )
    };
    let messages: Vec<_> = messages.iter().enumerate().map(message).collect();
    let document = format!(
        r#"{{"info":{{"id":"ses_1","projectID":"p","directory":"/w","time":{{"created":1760000000000}}}},"messages":[{}]}}"#,
        messages.join(",")
    );
    write(path, &document, tick);
}

#[test]
fn a_message_that_is_written_or_comes_back_is_not_taken_out() {
    let dir = tempfile::tempdir().expect("tempdir");
    let path = dir.path().join("ses_1.json");
    let memory = Memory::default();
    let said = |tick: u64, messages: &[(&str, &str)]| {
        opencode(&path, tick, messages);
        memory.ingest(dir.path());
        let session = memory.session("ses_1");
        let shown =
            |abandoned: bool, text: String| if abandoned { text.to_uppercase() } else { text };
        let texts =
            memory.events().into_iter().map(|e| shown(session.is_abandoned(e.event_index), e.text));
        texts.collect::<Vec<_>>().join(" ")
    };
    assert_eq!(said(1, &[("a", "go"), ("b", "half"), ("c", "more")]), "go half more");
    // The answer goes on, under the same id.
    assert_eq!(said(2, &[("a", "go"), ("b", "half done"), ("c", "more")]), "go half done more");
    // Back to the first prompt, and on.
    assert_eq!(said(3, &[("a", "go"), ("d", "other")]), "go HALF DONE MORE other");
    // What was taken back is redone.
    assert_eq!(
        said(4, &[("a", "go"), ("b", "half done"), ("c", "more")]),
        "go half done more OTHER"
    );
    // A document that is cut has nothing taken out of it for good.
    assert_eq!(said(5, &[("a", "go")]), "go HALF DONE MORE OTHER");
    assert_eq!(
        said(6, &[("a", "go"), ("b", "half done"), ("c", "more")]),
        "go half done more OTHER"
    );
}
