//! Which sessions `search_sessions` finds, in which order, and what it says about them.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use proptest::prelude::*;
use search::{SessionQuestion, SessionRequest, search_sessions};
use serde_json::{Value, json};
use store::Store;

use crate::checks::{Checks, JsonChecks};
use crate::env::TestEnv;
use crate::log::claude_record;
use crate::mcp::Client;

fn ids(answer: &Value) -> Vec<&str> {
    answer["data"]["sessions"].each("session_id")
}

/// Writes three sessions of two projects.
fn with_three_sessions() -> TestEnv {
    let env = TestEnv::new();
    env.log("lighthouse")
        .cwd("/home/mira/harbor")
        .title("Lamp timing")
        .at("2026-05-07T08:00:00Z")
        .user("How long should the lamp wait between retries?")
        .message("We decided on a retry budget of 3 seconds.")
        .at("2026-05-07T08:01:00Z")
        .user("That is too short.")
        .message("Then the retry budget is 9 seconds from now on.")
        .write();
    let ferries = env.log("ferries").cwd("/home/mira/pier").at("2026-09-01T08:00:00Z");
    let ferries = ferries.user("Print the budget of the ferries.");
    ferries.message("The ferries cost 40 crowns.").write();
    let gulls = env.log("gulls").cwd("/home/mira/pier").title("Counting kittiwakes");
    let gulls = gulls.at("2026-10-01T08:00:00Z").user("Count the birds.");
    gulls.message("There are 12 on the roof.").write();
    env.ingest("logs");
    env
}

#[test]
fn a_half_remembered_question_finds_its_session_and_the_newest_decision() {
    let env = with_three_sessions();
    let answer = env.json(["find", "what", "budget did we decide for retrying the zeppelin?"]);
    assert_eq!(ids(&answer), ["lighthouse", "ferries"]);
    let best = &answer["data"]["sessions"][0];
    best.has(json!({
        "project": "harbor", "provider": "generic", "title": "Lamp timing", "ended": "2026-05-07",
        "events": 3, "why": "3 of 4 words; lacks zeppelin",
    }));
    assert_eq!(best["passages"].as_object().map(|passages| passages.len()), Some(2));
    best["passages"]["1"].shows("3 seconds");
    best["passages"]["3"].shows("9 seconds");
    answer.has(json!({
        "data": {
            "looked_for": ["budget", "decide", "retrying", "zeppelin"], "absent": ["zeppelin"],
        },
        "metadata": {"scope": "3 sessions"},
    }));
    answer["hint"].shows("get_session_details");
}

#[test]
fn titles_and_dates_find_sessions_that_have_none_of_the_words() {
    let env = with_three_sessions();
    let by_title = env.json(["find", "kittiwake"]);
    assert_eq!(ids(&by_title), ["gulls"]);
    assert_eq!(by_title["data"]["sessions"][0]["why"], "all words, title");
    let by_date = env.json(["find", "what did we do on 7 May 2026?"]);
    assert_eq!(ids(&by_date)[0], "lighthouse");
    assert_eq!(by_date["data"]["sessions"][0]["why"], "date");
}

#[test]
fn a_session_that_is_named_by_its_id_comes_first() {
    let env = TestEnv::new();
    let id = "2915986c-7c1d-4e2f-9a3b-5d6e7f809a1b";
    let other = "141e8ef3-7c1d-4e2f-9a3b-5d6e7f809a1b";
    env.log(id).user("Which gate was decided on?").write();
    let mention = format!("What was decided in session {id} (2915986c) about the gate?");
    env.log(other).user(&mention).write();
    env.ingest("logs");
    let event = format!("{id}:0");
    for question in [
        id,
        "2915986c",
        "what was decided in session 2915986c",
        "what was the gate of 2915986c?",
        &event,
    ] {
        let answer = env.json(["find", question]);
        assert_eq!(ids(&answer)[0], id, "{question}: {answer:#}");
        let why = answer["data"]["sessions"][0]["why"].text();
        assert!(why.starts_with("its id"), "{question}: {why}");
    }
    let log = format!("the log rollout-2026-01-10T10-00-00-{id}.jsonl");
    for question in [&log, &id.to_uppercase()] {
        assert_eq!(ids(&env.json(["find", question]))[0], id, "{question}");
    }
    let unrelated = env.json(["find", "2915986c zeppelin hindenburg"]);
    unrelated["hint"].lacks("Probably");
    let alone = env.json(["find", "2915986c"]);
    assert_eq!(alone["data"]["looked_for"], json!([]));
    assert_eq!(ids(&alone), [id], "a mention is no word of the question");
    // Neither filter nor page is ignored.
    env.run(["find", id, "--since", "2030-01-01"]).fails(1).says("2030");
    let one = env.json(["find", "2915986c gate", "-n", "1"]);
    let cursor = one["pagination"]["next_cursor"].text();
    let rest = env.json(["find", "2915986c gate", "-n", "1", "--cursor", cursor]);
    assert_eq!((ids(&one), ids(&rest)), (vec![id], vec![other]));
    // A number that is no id is a word.
    env.json(["find", "decided 99999999"]).has(json!({"data": {"absent": ["99999999"]}}));
}

#[test]
fn dates_agents_and_projects_of_a_question_are_no_words() {
    let env = with_three_sessions();
    let answer =
        env.json(["find", "what did we do on the afternoon of September 1st with generic?"]);
    assert_eq!(ids(&answer), ["ferries"]);
    assert_eq!(answer["data"]["looked_for"], json!([]));
    assert_eq!(answer["data"]["sessions"][0]["why"], "agent, date");

    let answer = env.json(["find", "budget in harbor"]);
    assert_eq!(ids(&answer)[0], "lighthouse");
    let answer = env.json(["find", "budget of pier"]);
    assert_eq!(ids(&answer)[0], "ferries");
    assert_eq!(answer["data"]["sessions"][0]["why"], "1 of 2 words, title, project");
}

#[test]
fn an_answer_without_most_of_the_words_says_that_it_is_uncertain() {
    let env = with_three_sessions();
    let hint = |question: &str| env.json(["find", question])["hint"].text().to_owned();
    let poor = hint("did we port the zeppelin budget to Zig on Hetzner");
    assert!(
        poor.starts_with("Uncertain: the best session lacks port, zeppelin, Zig, Hetzner."),
        "{poor}"
    );
    assert!(!hint("retry budget of the lamp").contains("Uncertain"));
    assert!(!hint("the ferries of pier").contains("Uncertain"), "pier is the project");
}

#[test]
fn sessions_with_words_come_before_those_that_are_only_from_the_month() {
    let env = with_three_sessions();
    let answer = env.json(["find", "did we print the budget of ferries and lamps in october"]);
    assert_eq!(ids(&answer), ["ferries", "lighthouse", "gulls"]);
    assert_eq!(answer["data"]["sessions"][2]["why"], "date");
}

#[test]
fn filters_narrow_the_search_and_an_empty_answer_says_why() {
    let env = with_three_sessions();
    let found = |name: &str, value: &str| env.json(["find", "budget", name, value]);
    assert_eq!(ids(&found("--project", "pier")), ["ferries"]);
    assert_eq!(ids(&found("--since", "2026-06-01")), ["ferries"]);
    let before = found("--until", "2026-06-01");
    assert_eq!(ids(&before), ["lighthouse"]);
    before["metadata"]["scope"].shows("begun before");

    let none = "No session matches. Try other words";
    env.run(["find", "zeppelin"]).fails(1).says(none);
    let unknown = env.run(["find", "budget", "--project", "harbour-x"]);
    unknown.fails(1).says("did you mean 'harbor'");
    env.run(["find", "what was that"]).fails(2).says("has no word to search for");
}

/// Writes 23 sessions about a gate, with titles and texts longer than an answer shows.
fn with_gate_sessions() -> TestEnv {
    let env = TestEnv::new();
    let padding = "and other words that make this answer as long as answers are ".repeat(6);
    for number in 0..23 {
        let id = format!("{number:08x}-7c1d-4e2f-9a3b-5d6e7f809a1b");
        let title = format!("Work on part {number} of the harbour gate and its rusty hinges");
        env.log(&id)
            .cwd("/home/mira/harbor")
            .title(&title)
            .user(&format!("Why does gate {number} jam? {padding}"))
            .message(&format!("{padding} The gate jams on its hinge. {padding}"))
            .user("Oil the hinge of the gate.")
            .message(&format!("The hinge is oiled and the gate moves. {padding}"))
            .write();
    }
    env.ingest("logs");
    env
}

#[test]
fn ten_sessions_take_900_tokens_and_pages_repeat_none() {
    let env = with_gate_sessions();
    let mut client = Client::legacy(&env);
    let question = json!({ "query": "why did the gate jam on the hinge" });
    let pages = client.pages("search_sessions", question);
    for page in &pages {
        let bytes = page.to_string().len();
        assert!(bytes <= 3_600, "{bytes} bytes: {page:#}");
        assert_eq!(page["metadata"]["results_total"], 23);
    }
    let seen: Vec<&str> = pages.iter().flat_map(ids).collect();
    assert_eq!(seen.len(), 23);
    assert_eq!(BTreeSet::from_iter(seen).len(), 23);
    client.end();
}

/// Long ids, projects, titles and questions, and letters of three bytes.
#[test]
fn ten_sessions_take_900_tokens_whatever_their_texts_are() {
    let env = TestEnv::new();
    let wide = "悬空指针与缓存的重试预算".repeat(12);
    let quoted = "gate \"hinge\"\tjam\\ ".repeat(20);
    for number in 0..12 {
        let id = format!("rollout-2026-10-{number:02}-7c1d4e2f-9a3b-5d6e-8f70-9a1b2c3d4e5f");
        let text = if number % 2 == 0 { &wide } else { &quoted };
        env.log(&id)
            .cwd(format!("/home/mira/harbor-of-the-northern-islands-{number}"))
            .title(text)
            .user(&format!("gate hinge {text}"))
            .message(&format!("hinge jam {text}"))
            .user(&format!("gate jam hinge {text}"))
            .write();
    }
    env.ingest("logs");
    let mut client = Client::legacy(&env);
    for query in ["gate hinge jam 指针", "why did the gate jam on its hinge when zeppelins landed"]
    {
        let answer = client.call("search_sessions", json!({ "query": query }));
        assert_eq!(ids(&answer).len(), 10);
        let tokens = answer["metadata"]["tokens"].as_u64().expect("tokens");
        assert!(tokens <= 900, "{tokens} tokens: {answer:#}");
        assert_passages_are_readable(&answer, 10);
    }
    client.end();
}

/// Checks that the passages of the best session have at least `best` bytes, and that others are not cut
/// to a few letters.
fn assert_passages_are_readable(answer: &Value, best: usize) {
    let sessions = answer["data"]["sessions"].list();
    for (place, session) in sessions.iter().enumerate() {
        let texts: Vec<&str> = match session["passages"].as_object() {
            Some(passages) => passages.values().filter_map(Value::as_str).collect(),
            None => Vec::new(),
        };
        let (count, bytes) = if place == 0 { (1, best) } else { (0, best.min(20)) };
        let is_readable = |text: &&str| text.len() >= bytes || !text.ends_with('…');
        assert!(texts.len() >= count && texts.iter().all(is_readable), "{answer:#}");
    }
}

/// Asks a question that no session answers, and returns the last of the words that it looked for.
fn last_looked_for(client: &mut Client, question: &str) -> String {
    let answer = client.call("search_sessions", json!({ "query": question }));
    assert!(ids(&answer).is_empty());
    let words = answer["data"]["looked_for"].list();
    words.last().and_then(Value::as_str).expect("a word").to_owned()
}

/// A pasted error has hundreds of words, and most of them are in no session.
#[test]
fn a_question_of_many_words_leaves_room_for_ten_sessions() {
    let env = with_gate_sessions();
    let error: String = (0..600).map(|line| format!("gate hinge at frame{line}: ")).collect();
    let error = &error[..4_000];
    let letters = ('a'..='z').zip(('a'..='z').rev());
    let words: Vec<String> = letters.map(|(first, last)| format!("{first}{last}eppelin")).collect();
    let mut client = Client::legacy(&env);
    for question in [error, &format!("why did the gate jam {}", words.join(" "))] {
        let answer = client.call("search_sessions", json!({ "query": question }));
        assert_eq!(ids(&answer).len(), 10);
        let bytes = answer.to_string().len();
        assert!(bytes <= 3_600, "{bytes} bytes: {answer:#}");
        assert_passages_are_readable(&answer, 50);
        for list in ["looked_for", "absent"] {
            let words = answer["data"][list].list();
            let last = words.last().and_then(Value::as_str).expect("a word");
            let is_cut = last.starts_with("… ") && last.ends_with(" more");
            assert!(is_cut || answer["data"][list].to_string().len() < 240, "{words:?}");
        }
    }
    let last = last_looked_for(&mut client, &words.join(" "));
    assert!(last.ends_with(" more"), "{last}");
    client.end();

    // A user pays for no tokens: every session has a passage.
    let answer = env.run(["find", error]).ok();
    let passages = answer.lines().filter(|line| line.trim_start().starts_with(':'));
    assert!(passages.count() >= 10 && answer.contains("frame, "));
}

/// A character of text that a log, a path or a question may have; more of those that JSON writes longer.
fn character() -> impl Strategy<Value = char> {
    prop_oneof![
        8 => proptest::char::range('a', 'z'),
        2 => Just(' '),
        1 => proptest::sample::select(vec!['"', '\\', '/', '\t', '\u{1}', '\u{202e}', '…', '[']),
        1 => proptest::char::range('一', '龥'),
        1 => proptest::char::range('😀', '😿'),
    ]
}

fn text(most: usize) -> impl Strategy<Value = String> {
    proptest::collection::vec(character(), 0..most).prop_map(String::from_iter)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, ..ProptestConfig::default() })]

    /// Ids, titles, projects, texts, filters and questions of any length and content.
    #[test]
    fn no_page_of_sessions_is_larger_than_its_budget(
        sessions in proptest::collection::vec((text(160), text(300), text(120), text(900)), 1..24),
        questions in proptest::collection::vec((text(4_000), 1..50u32, any::<bool>()), 4),
        secrets in 0..24usize,
    ) {
        let env = TestEnv::new();
        for (at, (id, title, project, body)) in sessions.iter().enumerate() {
            let secret = if at < secrets { format!("ghp_{}", "aB3dE5fG7h".repeat(4)) } else { String::new() };
            env.log(&format!("{id}{at}"))
                .title(title)
                .cwd(format!("/srv/pier {}", project.replace('/', "-")))
                .user(&format!("gate {secret} hinge {body}"))
                .message(&format!("{body} hinge gate {title} {secret}"))
                .user(&format!("gate {body} {secret} jam"))
                .write_to(&format!("logs/{at}.jsonl"));
        }
        env.ingest("logs");
        let mut client = Client::legacy(&env);
        for (question, limit, has_project) in &questions {
            let question: String = format!("gate hinge {question}").chars().take(1_000).collect();
            let mut arguments = json!({ "query": question, "limit": limit });
            if *has_project {
                arguments["project"] = json!("pier");
            }
            let most = 3_600 + 300 * limit.saturating_sub(10) as usize;
            let pages = client.pages("search_sessions", arguments);
            for page in &pages {
                let bytes = page.to_string().len();
                prop_assert!(bytes <= most, "{} bytes of {}: {:#}", bytes, most, page);
                prop_assert!(!ids(page).is_empty(), "{:#}", page);
            }
            let seen: Vec<&str> = pages.iter().flat_map(ids).collect();
            prop_assert_eq!(seen.len(), sessions.len());
            prop_assert_eq!(BTreeSet::from_iter(seen).len(), sessions.len());
        }
        client.end();
    }
}

#[test]
fn events_after_the_time_of_a_question_do_not_count() {
    let env = with_three_sessions();
    let snapshot = Store::new(env.store()).take_snapshot().expect("snapshot");
    let question = SessionQuestion::parse("retry budget, lamp timing");
    let find = |until: &str| {
        let request = SessionRequest {
            question: &question,
            sessions: None,
            limit: 3,
            after: None,
            until: Some(until.parse::<jiff::Timestamp>().expect("a time").as_microsecond()),
            continues_passages: false,
            deadline: Instant::now() + Duration::from_secs(20),
        };
        let found = search_sessions(&snapshot, &request, &|| false).expect("finds");
        let sessions = found.sessions.into_iter();
        sessions.map(|session| (session.has_title_word, session.passages.len())).collect::<Vec<_>>()
    };
    // The first prompt and the first decision, without the second and the later title.
    assert_eq!(find("2026-05-07T08:00:30Z"), [(false, 2)]);
    assert_eq!(find("2026-05-07T08:30:00Z"), [(true, 3)]);
    assert_eq!(find("2026-05-01T00:00:00Z"), []);
}

#[test]
fn a_copy_of_a_session_is_not_found_again() {
    let env = TestEnv::new();
    for session in ["1", "2"] {
        for (second, text) in [(1, "The quay needs bollards."), (2, "Cast the bollards in iron.")] {
            let record = claude_record(session, "/w", second, "user", text);
            env.append_event(format!("logs/{session}.jsonl"), &record);
        }
    }
    env.ingest("logs");
    let answer = env.json(["find", "iron bollards"]);
    assert_eq!(ids(&answer), ["1"]);
    assert_eq!(answer["metadata"]["scope"], "1 of 2 sessions; left out: 1 copied from others");
}
