//! In which order `search_events` answers, what it does if nothing matches exactly, and the events
//! around a match.

use serde_json::{Value, json};

use crate::checks::{Checks, JsonChecks};
use crate::env::TestEnv;
use crate::mcp::Client;

/// Writes a log of one prompt and its answers, and another log that shares words with it.
fn with_two_logs() -> TestEnv {
    let env = TestEnv::new();
    env.log("lighthouse")
        .cwd("/home/mira/harbor")
        .at("2026-05-07T08:00:00Z")
        .user("How does the lamp turn?")
        .at("2026-05-07T08:00:05Z")
        .message("The lamp turns by clockwork.")
        .message("A weight drives the lamp.")
        .message("Nothing else is known.")
        .write();
    let log = env.log("ferries").cwd("/home/mira/pier").at("2026-06-01T08:00:00Z");
    log.user("Which lamp does the ferry carry?").message("A green one.").write();
    env.ingest("logs");
    env
}

fn ids(answer: &Value) -> Vec<&str> {
    answer["data"]["matches"].each("event_id")
}

fn codes(answer: &Value) -> Vec<&str> {
    if answer["warnings"].is_null() { Vec::new() } else { answer["warnings"].each("code") }
}

const OLDEST_FIRST: [&str; 4] = ["lighthouse:0", "lighthouse:1", "lighthouse:2", "ferries:0"];

#[test]
fn the_oldest_come_first_on_every_page() {
    let env = with_two_logs();
    let mut client = Client::legacy(&env);
    for limit in 1..=4 {
        let arguments = json!({ "query": "lamp", "sort": "oldest", "limit": limit });
        let pages = client.pages("search_events", arguments);
        let seen: Vec<&str> = pages.iter().flat_map(ids).collect();
        assert_eq!(seen, OLDEST_FIRST, "{limit}");
    }
    let written = env.json(["search", "lamp sort:oldest"]);
    assert_eq!(ids(&written), OLDEST_FIRST);
    let newest = env.json(["search", "lamp", "--sort", "newest"]);
    assert!(ids(&newest).into_iter().eq(OLDEST_FIRST.into_iter().rev()));
}

#[test]
fn until_is_an_argument_and_a_qualifier() {
    let env = with_two_logs();
    let before = env.json(["search", "lamp", "--until", "2026-05-07T08:00:06Z"]);
    assert_eq!(ids(&before), ["lighthouse:1", "lighthouse:0"]);
    let both = env.json(["search", "lamp until:2026-05-07T08:00:03Z", "--until", "2026-05-08"]);
    assert_eq!(ids(&both), ["lighthouse:0"]);
    env.json(["search", "lamp", "--since", "2026-06-01", "--until", "2026-05-01"]).has(json!({
        "error": {"code": "invalid_argument"},
    }));
}

#[test]
fn a_question_that_nothing_matches_exactly_is_ranked() {
    let env = with_two_logs();
    let question = "which weight or clockwork turns the lamp of the zeppelin";
    let mut client = Client::legacy(&env);
    let mut arguments = json!({ "query": question, "limit": 1 });
    let first = client.call("search_events", arguments.clone());
    assert_eq!(ids(&first), ["lighthouse:1"]);
    assert_eq!(codes(&first), ["RANKED_INSTEAD"]);
    first["hint"].shows("\"zeppelin\" occurs in no event");
    assert!(first["data"]["query"]["any_of"].is_array());

    arguments["cursor"] = first["pagination"]["next_cursor"].clone();
    // It has two of the words; "which" does not count.
    let second = client.call("search_events", arguments);
    assert_eq!(ids(&second), ["lighthouse:2"]);
    assert_eq!(codes(&second), ["RANKED_INSTEAD"]);

    // One word, an order that is asked for, and an exact total are searched for as they are.
    for exact in ["zeppelin", "lamp zeppelin sort:newest", "lamp zeppelin total:exact"] {
        let found = env.json(["search", exact]);
        assert!(ids(&found).is_empty() && codes(&found).is_empty(), "{exact}: {found:#}");
    }
    let found = env.json(["search", "lamp zeppelin", "--sort", "newest"]);
    assert!(ids(&found).is_empty());
}

#[test]
fn nothing_is_forgotten_because_it_resembles_the_query() {
    let env = with_two_logs();
    let dry = env.json(["forget", "--query", "lamp zeppelin"]);
    dry.to_string().lacks("lighthouse");
}

#[test]
fn events_around_a_match_are_shown_on_request() {
    let env = with_two_logs();
    let found = env.json(["search", "weight", "--context", "1"]);
    assert_eq!(
        found["data"]["matches"][0]["context"],
        json!({ "1": "message: The lamp turns by clockwork.", "3": "message: Nothing else is known." })
    );
    let plain = env.json(["search", "weight"]);
    assert!(plain["data"]["matches"][0].get("context").is_none());
    let text = env.run(["search", "weight", "--context", "1"]).stdout;
    text.shows(":1 message: The lamp turns");
    env.json(["search", "weight", "--context", "6"]).has(json!({
        "error": {"code": "invalid_argument"},
    }));
}

#[test]
fn events_come_in_the_order_of_the_ids_however_they_are_read() {
    let env = TestEnv::new();
    (0..40).fold(env.log("long"), |log, at| log.message(&format!("text {at}"))).write();
    env.log("short").message("text 0").write();
    env.ingest("logs");
    let mut client = Client::legacy(&env);
    // Longer than what is read together, then back, twice the same, and events that are not there.
    let indexes: Vec<u32> = (5..30).chain([2, 2, 3, 38, 39, 40, 41, 0]).collect();
    let mut wanted: Vec<String> = indexes.iter().map(|at| format!("long:{at}")).collect();
    wanted.insert(7, "short:0".to_owned());
    let answer = client.call("get_event_details", json!({ "event_ids": wanted }));
    assert_eq!(answer["data"]["not_found"], json!(["long:40", "long:41"]));
    wanted.retain(|id| id != "long:40" && id != "long:41");
    let events = answer["data"]["events"].list();
    assert_eq!(answer["data"]["events"].each("event_id"), wanted);
    for event in events {
        assert_eq!(event["text"], format!("text {}", event["event_index"]));
    }
}
