//! `mcp --tools` and `--profile memory`: what is served, that no text names a tool that is not, and the
//! tasks that the small tool solves alone.

use schemas::limits::BYTES_PER_TOKEN;
use schemas::tool::{ServedTools, TOOLS};
use serde_json::{Value, json};

use crate::env::{TestEnv, compare};
use crate::http::Server;
use crate::mcp::Client;
use crate::tasks::{Agent, Task, items, says, solve_task, text};

const MAIN: &str = "9ae82b3a-fd82-48da-afd8-479f58648cbe";

const MEMORY: &[&str] = &["--profile", "memory"];

/// Maximum number of tokens of the list of the small tool.
const MAX_LIST_TOKENS: usize = 700;

fn listed_names(listed: &Value) -> Vec<&str> {
    let tools = listed["result"]["tools"].as_array().expect("tools");
    tools.iter().map(|tool| tool["name"].as_str().expect("a name")).collect()
}

/// Checks that a text names no tool but those that are served.
fn names_only(served: ServedTools, place: &str, text: &str) {
    for tool in served.missing() {
        assert!(!text.contains(tool.name), "{place} names {}: {text}", tool.name);
    }
}

#[test]
fn the_small_tool_is_listed_alone_in_few_tokens() {
    let env = TestEnv::with_sample_copy();
    let mut client = Client::legacy_with(&env, MEMORY);
    let listed = client.request("tools/list", json!({}));
    assert_eq!(listed_names(&listed), ["sessions"]);
    let tokens = listed["result"].to_string().len().div_ceil(BYTES_PER_TOKEN);
    assert!(tokens <= MAX_LIST_TOKENS, "{tokens} tokens");

    let other = client.request("tools/call", json!({ "name": "list_sessions", "arguments": {} }));
    says(text(&other, "/error/message"), &["no tool 'list_sessions'. Tools: sessions"]);
    let mut all = Client::legacy(&env);
    let small = all.request("tools/call", json!({ "name": "sessions", "arguments": {} }));
    says(text(&small, "/error/message"), &["no tool 'sessions'"]);
}

#[test]
fn some_tools_are_served_by_name_over_both_transports() {
    let env = TestEnv::with_sample_copy();
    let flags = ["--tools", "session_stats,list_sessions,sessions"];
    let mut client = Client::legacy_with(&env, &flags);
    let names = ["list_sessions", "session_stats", "sessions"];
    assert_eq!(listed_names(&client.request("tools/list", json!({}))), names);
    client.call("list_sessions", json!({ "limit": 1 }));

    let server = Server::start(&env, &[&flags[..], &["--no-auth"]].concat(), &[]);
    let listed = server.post("tools/list", json!({}), &[]).json();
    assert_eq!(listed_names(&listed), names);
    let call = json!({ "name": "query_sql", "arguments": { "sql": "SELECT 1" } });
    let refused = server.post("tools/call", call, &[]).json();
    says(text(&refused, "/error/message"), &["no tool 'query_sql'"]);
}

#[test]
fn tools_that_cannot_be_served_are_refused() {
    let env = TestEnv::new();
    let unknown = env.run(["mcp", "--tools", "list_session"]).error(2);
    says(&unknown, &["list_session", "list_sessions", "search_events", "sessions"]);
    let writes = env.run(["mcp", "--tools", "update_session_labels"]).error(2);
    says(&writes, &["update_session_labels", "--allow-labels"]);
    says(&env.run(["mcp", "--profile", "small"]).error(2), &["memory"]);
    env.run(["mcp", "--profile", "memory", "--tools", "sessions"]).error(2);
}

/// Asks for what the tools answer with hints, warnings and errors.
fn questions() -> Vec<(&'static str, Value)> {
    let mut calls = vec![
        ("analyze_session", json!({ "query": "error: no such thing ever happened" })),
        ("analyze_session", json!({ "project": "nowhere" })),
        ("get_event_details", json!({ "event_ids": ["9ae82b3a:9999"] })),
        ("get_session_details", json!({ "session_id": "ffffffff" })),
        ("get_session_details", json!({ "session_id": "9ae82b3a", "detail_level": "steps" })),
        ("list_sessions", json!({ "limit": 1 })),
        ("query_sql", json!({ "sql": "SELECT event_id FROM events LIMIT 1" })),
        ("search_events", json!({ "query": "is" })),
        ("search_events", json!({ "query": "" })),
        ("search_sessions", json!({ "query": "the" })),
        ("search_sessions", json!({ "query": "Kubernetes" })),
        ("search_sessions", json!({ "query": "budget", "branch": "main" })),
        ("session_stats", json!({ "group_by": "tool", "limit": 1 })),
        ("tool_metadata", json!({})),
        ("sessions", json!({})),
        ("sessions", json!({ "query": "retry budget" })),
        ("sessions", json!({ "query": "Kubernetes" })),
        ("sessions", json!({ "query": "the" })),
        ("sessions", json!({ "query": "error: no such thing ever happened" })),
        ("sessions", json!({ "query": "\"no such phrase\"", "project": "nowhere" })),
        ("sessions", json!({ "query": "budget", "session_id": "9ae82b3a" })),
        ("sessions", json!({ "query": "9ae82b3a:14" })),
        ("sessions", json!({ "session_id": "9ae82b3a:9999" })),
        ("sessions", json!({ "session_id": "9ae82b3a" })),
        ("sessions", json!({ "session_id": "9ae82b3a", "turns": "1-2" })),
        ("sessions", json!({ "session_id": "9ae82b3a", "explain": true })),
        ("sessions", json!({ "session_id": "ffffffff" })),
        ("sessions", json!({ "session_id": "last", "turns": "99" })),
        ("sessions", json!({ "explain": true })),
        ("sessions", json!({ "branch": "main" })),
    ];
    // The example of `tool_metadata` names another tool.
    let examples = TOOLS.iter().filter(|tool| tool.is_read_only() && tool.name != "tool_metadata");
    for tool in examples {
        for example in tool.examples {
            calls.push((tool.name, serde_json::from_str(example.arguments).expect("JSON")));
        }
    }
    calls
}

#[test]
fn no_text_names_a_tool_that_is_not_served() {
    let env = TestEnv::with_sample_copy();
    let names = ServedTools::servable_names().filter(|name| *name != "update_session_labels");
    for name in names {
        let served = ServedTools::from_names(&[name.to_owned()]);
        let mut client = Client::legacy_with(&env, &["--tools", name]);
        for method in ["tools/list", "prompts/list"] {
            names_only(served, method, &client.request(method, json!({}))["result"].to_string());
        }
        for prompt in ["resume", "weekly_summary", "why_did_it_fail"] {
            let answer = client.request("prompts/get", json!({ "name": prompt }));
            names_only(served, prompt, &answer["result"].to_string());
        }
        let help = client.request("ai_help", json!({ "section": "tools" }));
        names_only(served, "ai_help", &help["result"].to_string());
        says(&help.to_string(), &[name]);
        for (tool, arguments) in questions().into_iter().filter(|(tool, _)| *tool == name) {
            let call = json!({ "name": tool, "arguments": arguments });
            let answer = client.request("tools/call", call);
            let result = &answer["result"];
            let said: Value = serde_json::from_str(text(result, "/content/0/text")).expect("JSON");
            for part in ["hint", "warnings", "error"] {
                names_only(served, &format!("{tool} {arguments}"), &said[part].to_string());
            }
        }
    }
    let server = Client::modern_with(&env, MEMORY).request("server/discover", json!({}));
    names_only(ServedTools::MEMORY, "instructions", &server.to_string());
}

/// The answers of the small tool are those of the command that does the same.
#[test]
fn the_small_tool_answers_as_the_commands_do() {
    let env = TestEnv::with_sample_copy();
    let mut client = Client::legacy_with(&env, MEMORY);
    let words = |text: &str| text.split('|').map(str::to_owned).collect::<Vec<_>>();
    for (arguments, command) in [
        (json!({}), "list|--format|minimal|--limit|5"),
        (
            json!({ "provider": "claude", "project": "harbor", "limit": 1, "query": " " }),
            "list|--format|minimal|--limit|1|--provider|claude|--project|harbor",
        ),
        (json!({ "query": "9ae82b3a" }), "show|9ae82b3a"),
        (json!({ "session_id": "last" }), "show|last"),
        (
            json!({ "session_id": "9ae82b3a:14", "turns": "2-3" }),
            "show|9ae82b3a:14|--detail-level|turns|--turns|2-3",
        ),
        (json!({ "query": "9ae82b3a:14" }), "event|9ae82b3a:14|--fields|text|--fields|tool"),
        (
            json!({ "query": "9ae82b3a:14, 9ae82b3a:31" }),
            "event|9ae82b3a:14|9ae82b3a:31|--fields|text|--fields|tool",
        ),
        (json!({ "session_id": "9ae82b3a:3-9" }), "event|9ae82b3a:3-9"),
        (
            json!({ "query": "assertion failed: budget.remaining() == 3" }),
            "analyze|--query|assertion failed: budget.remaining() == 3|--limit|5",
        ),
        (
            json!({ "query": "assertion failed: budget.remaining() == 3\nrun with \"RUST_BACKTRACE=1\"" }),
            "analyze|--query|assertion failed: budget.remaining() == 3\nrun with \"RUST_BACKTRACE=1\"|--limit|5",
        ),
        (
            json!({ "query": "9ae82b3a:14", "session_id": "9ae82b3a" }),
            "event|9ae82b3a:14|--fields|text|--fields|tool",
        ),
        (
            json!({ "query": "9ae82b3a:14 9ae82b3a:31", "explain": true }),
            "analyze|9ae82b3a:14|--limit|5",
        ),
        (json!({ "session_id": "9ae82b3a", "explain": true }), "analyze|9ae82b3a|--limit|5"),
        (json!({ "explain": "true", "project": "harbor" }), "analyze|--project|harbor|--limit|5"),
        (
            json!({ "query": "\"retry budget\" sort:oldest", "limit": 1 }),
            "search|\"retry budget\" sort:oldest|--limit|1",
        ),
        (
            json!({ "query": "share the counter", "session_id": MAIN }),
            "search|share the counter|--session-id|9ae82b3a-fd82-48da-afd8-479f58648cbe|--sort|relevance|--limit|5",
        ),
    ] {
        let answer = client.call("sessions", arguments.clone());
        let command = words(command);
        let command: Vec<&str> = command.iter().map(String::as_str).collect();
        let printed = env.json(&command);
        assert_eq!(answer["data"], printed["data"], "{arguments}");
        assert_eq!(answer["warnings"], printed["warnings"], "{arguments}");
    }
}

#[test]
fn a_question_gets_the_sessions_and_what_the_best_one_says() {
    let env = TestEnv::with_sample_copy();
    let mut client = Client::legacy_with(&env, MEMORY);
    let question = "where did a clone not share the retry budget";
    let first = client.call("sessions", json!({ "query": question, "limit": 2 }));
    let found = env.json(["find", question, "--limit", "2"]);
    let ids = |answer: &Value| -> Vec<Value> {
        items(answer, "sessions").iter().map(|session| session["session_id"].clone()).collect()
    };
    assert_eq!(ids(&first), ids(&found));
    let best = first["data"]["sessions"][0]["session_id"].as_str().expect("an id");
    for found in items(&first, "best") {
        assert!(text(found, "/event_id").starts_with(best), "{found}");
    }
    assert!(first["data"]["sessions"][0].get("passages").is_none(), "they are in the matches");

    // Further pages have only sessions, and the cursor is that of the same question.
    let cursor = first["pagination"]["next_cursor"].as_str().expect("more");
    let next = client.call("sessions", json!({ "query": question, "limit": 2, "cursor": cursor }));
    assert!(next["data"].get("best").is_none() && !ids(&next).is_empty(), "{next}");
    assert!(ids(&next).iter().all(|id| !ids(&first).contains(id)), "{next}");
}

#[test]
fn odd_queries_are_questions_and_arguments_without_effect_are_named() {
    let env = TestEnv::with_sample_copy();
    let mut client = Client::legacy_with(&env, MEMORY);
    for query in [
        "src/retry.rs:12",
        "what about \"an open quote in the budget",
        "retry-budget-2026",
        "budget ',;()[]{}\u{202e}\u{1b}[31m",
        "cargo test --lib retry budget",
    ] {
        let answer = client.call("sessions", json!({ "query": query }));
        assert!(answer["data"]["sessions"].is_array(), "{query}: {answer}");
    }
    let unknown = client.fails("sessions", json!({ "session_id": "ffffffff:3" }));
    assert_eq!(unknown["code"], "event_not_found", "{unknown}");
    let ignored = json!({ "query": "9ae82b3a:14", "limit": 3, "project": "harbor" });
    let answer = client.call("sessions", ignored);
    let warning = text(&answer, "/warnings/0/message");
    assert_eq!(warning, "No effect on this call: limit, project");
    let answer = client.call("sessions", json!({ "query": "the retry budget", "turns": "1" }));
    assert_eq!(text(&answer, "/warnings/0/message"), "No effect on this call: turns");
    for (query, says_what) in
        [("is:broken retry", "is:broken"), ("/re[try/ is:error", "regular expression")]
    {
        let wrong = client.fails("sessions", json!({ "query": query }));
        assert_eq!(wrong["code"], "invalid_query", "{wrong}");
        says(text(&wrong, "/message"), &[says_what]);
    }
    for limit in [0, 51] {
        let wrong = client.fails("sessions", json!({ "limit": limit }));
        says(text(&wrong, "/message"), &["limit", "1-50"]);
    }
    let wrong = client.fails("sessions", json!({ "colour": "red" }));
    says(text(&wrong, "/message"), &["colour", "query, session_id, turns, explain"]);
    let qualifier = client.fails("sessions", json!({ "branch": "main" }));
    says(text(&qualifier, "/message"), &["It is a qualifier inside query: branch:value"]);
}

/// The tasks of `tasks.rs` that ask what past sessions say. The other eight count, label, or list files,
/// subagents or messages, which needs the ten tools.
const TASKS: &[Task] = &[
    ("How was `assertion failed: budget.remaining() == 3` fixed in the week of 12 October?", error),
    ("What was decided about the shared counter before this conversation was compacted?", decision),
    ("Which error keeps coming back since 12 October, and what fixed it?", recurring),
    ("Did we want criterion for the benchmark?", question),
    ("What is the function called now that was `try_spend`?", superseded),
    ("Did we ever talk about Kubernetes?", never),
    ("The load shedding continued in a second thread. How did it end?", continued),
    ("An update of bytes broke a test of the pool: which one, and why?", update),
    ("Why did the dashboard always show the same number of retries?", gauge),
    ("When was the retry budget first mentioned?", first),
    ("What was going on when the Copilot session got a 502?", around),
    ("Resume where the last Copilot session ended: what is open?", resume),
    ("Which reviewer's worry led to the test with threads, and was it real?", reviewer),
    ("What did the helper of the Claude session find about clones of RetryBudget?", helper),
];

/// All texts of the matches of the best session.
fn best_texts(answer: &Value) -> String {
    items(answer, "best").iter().map(Value::to_string).collect()
}

fn error(agent: &mut Agent) {
    let query = "assertion failed: budget.remaining() == 3";
    let found = agent.ask(
        "sessions",
        json!({ "query": query, "since": "2026-10-12", "until": "2026-10-14", "limit": 1 }),
    );
    let fix = &items(&found, "findings")[0]["fix"];
    let ids = format!("{} {}", text(fix, "/edits/0/event_id"), text(fix, "/result_event_id"));
    let whole = agent.ask("sessions", json!({ "query": ids }));
    says(&whole["data"].to_string(), &["src/retry.rs", "remaining: Arc<AtomicU32>", "3 passed"]);
}

fn decision(agent: &mut Agent) {
    let lost = agent.ask("sessions", json!({ "session_id": "current", "explain": true }));
    let is_compaction = |finding: &&Value| finding["related_event_ids"].is_array();
    let compaction = items(&lost, "findings").iter().find(is_compaction).expect("a compaction");
    let turns = format!("1-{}", compaction["turn_index"]);
    let before = agent.ask("sessions", json!({ "session_id": "current", "turns": turns }));
    let turns = items(&before, "turns");
    says(text(&turns[0], "/answer/text"), &["Two ways out", "share the counter"]);
    says(text(&turns[1], "/prompt/text"), &["Share the counter."]);
}

fn recurring(agent: &mut Agent) {
    let since = json!({ "explain": true, "project": "harbor", "since": "2026-10-12", "limit": 1 });
    let found = agent.ask("sessions", since);
    let error = &items(&found, "findings")[0];
    assert_eq!(error["signature"], "assertion <name> failed");
    let ids = format!("{} {}", text(error, "/event_id"), text(error, "/fix/edits/0/event_id"));
    let whole = agent.ask("sessions", json!({ "query": ids }));
    says(text(&whole, "/data/events/0/text"), &["left: 431ms", "right: 400ms"]);
    says(text(&whole, "/data/events/1/text"), &["(400..=600).contains(&pause(2).as_millis())"]);
}

fn question(agent: &mut Agent) {
    let query = "criterion benchmark new dependencies";
    let found = agent.ask("sessions", json!({ "query": query }));
    says(&best_texts(&found), &["Use criterion", "no new dependencies"]);
}

fn superseded(agent: &mut Agent) {
    let found =
        agent.ask("sessions", json!({ "query": "rename the function try_spend", "limit": 3 }));
    says(&best_texts(&found), &["`try_spend` is `spend_one` now"]);
}

fn never(agent: &mut Agent) {
    let found = agent.ask("sessions", json!({ "query": "Did we ever talk about Kubernetes?" }));
    assert!(items(&found, "sessions").is_empty());
    assert_eq!(found["data"]["absent"], json!(["Kubernetes"]));
}

fn continued(agent: &mut Agent) {
    let query = json!({ "query": "finish load shedding", "provider": "amp", "limit": 2 });
    let found = agent.ask("sessions", query);
    says(&best_texts(&found), &["Green: 42 passed"]);
}

fn update(agent: &mut Agent) {
    let query = "the update of bytes broke a test of the pool";
    let found = agent.ask("sessions", json!({ "query": query, "limit": 3 }));
    says(&best_texts(&found), &["pool::tests::drains", "put_slice panics"]);
}

fn gauge(agent: &mut Agent) {
    let query = "why does the dashboard always show 3 retries, the gauge never moves";
    let found = agent.ask("sessions", json!({ "query": query, "limit": 3 }));
    says(&best_texts(&found), &["gauge"]);
}

fn first(agent: &mut Agent) {
    let oldest = json!({ "query": "\"retry budget\" sort:oldest", "limit": 1 });
    let found = agent.ask("sessions", oldest);
    assert!(items(&found, "matches")[0]["timestamp"].is_string(), "{found}");
    let newest = json!({ "query": "\"retry budget\" sort:newest", "limit": 1 });
    assert!(items(&agent.ask("sessions", newest), "matches")[0]["timestamp"].is_string());
}

fn around(agent: &mut Agent) {
    let query = json!({ "query": "502 Bad Gateway", "provider": "copilot", "limit": 1 });
    let found = agent.ask("sessions", query);
    let hit = &items(&found, "best")[0];
    says(text(hit, "/snippet"), &["502"]);
    let (session, index) = text(hit, "/event_id").rsplit_once(':').expect("an id");
    let index: u32 = index.parse().expect("a number");
    let range = format!("{session}:{}-{}", index.saturating_sub(3), index + 3);
    let events = agent.ask("sessions", json!({ "query": range }));
    says(&events["data"].to_string(), &["502 Bad Gateway"]);
}

fn resume(agent: &mut Agent) {
    let listed = agent.ask("sessions", json!({ "provider": "copilot", "limit": 1 }));
    let id = &items(&listed, "sessions")[0]["session_id"];
    let why = agent.ask("sessions", json!({ "session_id": id, "explain": true }));
    let found = items(&why, "findings");
    assert_eq!(found[0]["reason"], "Failed. Nothing similar succeeded afterwards.");
    let end = found.iter().find(|finding| finding["check"] == "ends").expect("an end");
    says(text(end, "/message"), &["502 Bad Gateway"]);
    let turns = format!("{}-", found[0]["turn_index"]);
    let last = agent.ask("sessions", json!({ "session_id": id, "turns": turns }));
    says(&last["data"].to_string(), &["The table has three columns", "The row would be"]);
}

fn reviewer(agent: &mut Agent) {
    let query = "reviewer says try_spend hands out more than the limit when two threads meet";
    let found = agent.ask("sessions", json!({ "query": query, "limit": 2 }));
    let turns = json!({ "session_id": items(&found, "sessions")[0]["session_id"], "turns": "1-" });
    let told = agent.ask("sessions", turns);
    says(&told["data"].to_string(), &["threads"]);
}

fn helper(agent: &mut Agent) {
    let query = "which places rely on clones of RetryBudget being separate";
    let found = agent.ask("sessions", json!({ "query": query, "provider": "claude" }));
    let words = ["src/pool.rs:77", "src/client.rs:52", "Nobody relies on clones being separate"];
    says(&best_texts(&found), &words);
}

#[test]
fn the_small_tool_solves_the_tasks_that_ask_what_sessions_say() {
    let mut page = String::from(
        "# Fourteen tasks with the small tool\n\nMade by `UPDATE_GOLDEN=1 cargo test --test it profile` on \
        `sample-sessions`; `tests/it/profile.rs` has the answers. `tasks.md` has the same tasks with ten tools. \
        Tokens are bytes divided by four.\n",
    );
    for (question, solve) in TASKS {
        page.push_str(&solve_task(MEMORY, question, *solve));
    }
    compare("UPDATE_GOLDEN", "tests/golden/tasks_memory.md", &page);
}
