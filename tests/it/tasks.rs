//! Twenty-two tasks as an agent has them, solved with the tools alone, as `tools/list` and the
//! instructions describe them. Each takes at most three calls and 6,000 tokens;
//! `tests/golden/tasks.md` has what was called and what it took.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use schemas::limits::BYTES_PER_TOKEN;
use serde_json::{Value, json};

use crate::checks::JsonChecks;
use crate::contract::Rmcp;
use crate::env::{TestEnv, compare, samples};

const MAIN: &str = "9ae82b3a-fd82-48da-afd8-479f58648cbe";

/// What a task may take.
const CALLS: usize = 3;
const TOKENS: usize = 6_000;

/// An agent at work on one task.
pub(crate) struct Agent {
    client: Rmcp,
    /// What was called, and the bytes of each answer.
    asked: Vec<(String, usize)>,
}

impl Agent {
    /// An agent inside the Claude session that the sample logs begin with.
    pub(crate) fn start(env: &TestEnv, flags: &[&str]) -> Self {
        let mut command = env.command();
        command.arg("mcp").args(flags).env("CLAUDE_CODE_SESSION_ID", MAIN);
        Self { client: Rmcp::command(command), asked: Vec::new() }
    }

    pub(crate) fn ask(&mut self, tool: &str, arguments: Value) -> Value {
        let answer = self.client.ok(tool, arguments.clone());
        self.asked.push((format!("{tool} {arguments}"), bytes(&answer)));
        answer
    }
}

/// The size of an answer, the same in every run and place.
fn bytes(answer: &Value) -> usize {
    let mut answer = answer.clone();
    for number in ["tokens", "duration_ms"] {
        answer["metadata"][number] = json!(0);
    }
    let logs = samples().canonicalize().expect("there");
    answer.to_string().replace(&*logs.to_string_lossy(), "~/sample-sessions").len()
}

/// The text at this place of an answer.
pub(crate) fn text<'v>(answer: &'v Value, place: &str) -> &'v str {
    let text = answer.pointer(place).and_then(Value::as_str);
    text.unwrap_or_else(|| panic!("no text at {place}: {answer}"))
}

/// The items of a list in an answer's data.
pub(crate) fn items<'v>(answer: &'v Value, list: &str) -> &'v [Value] {
    answer["data"][list].as_array().unwrap_or_else(|| panic!("no {list}: {answer}"))
}

/// Checks that a text says all of these.
pub(crate) fn says(text: &str, words: &[&str]) {
    for word in words {
        assert!(text.contains(word), "'{word}' is not in: {text}");
    }
}

pub(crate) type Task = (&'static str, fn(&mut Agent));

const TASKS: [Task; 22] = [
    ("How was `assertion failed: budget.remaining() == 3` fixed in the week of 12 October?", error),
    ("Which files did the Qwen session about the dead link touch, and how?", files),
    ("What was decided about the shared counter before this conversation was compacted?", decision),
    ("Where did the money go in October: which models, which sessions?", money),
    ("Which error keeps coming back since 12 October, and what fixed it?", recurring),
    ("Did we want criterion for the benchmark?", question),
    ("Who edited src/retry.rs, in which order?", editors),
    ("Label every session in which a run with budget_is_shared failed.", labels),
    ("What did the helper of the Claude session find about clones of RetryBudget?", helper),
    ("Resume where the last Copilot session ended: what is open?", resume),
    ("What is the function called now that was `try_spend`?", superseded),
    ("Did we ever talk about Kubernetes?", never),
    ("The load shedding continued in a second thread. How did it end?", continued),
    ("Compare Claude and Codex in harbor since 12 October: failures and cost.", compared),
    ("An update of bytes broke a test of the pool: which one, and why?", update),
    ("What did harbor cost in October?", cost),
    ("Why did the dashboard always show the same number of retries?", gauge),
    ("When was the retry budget first mentioned?", first),
    ("What was going on when the Copilot session got a 502?", around),
    ("Which reviewer's worry led to the test with threads, and was it real?", reviewer),
    (
        "Which session of harbor had the most failed calls in late October, and how did it end?",
        failing,
    ),
    ("What was said last about `try_spend`, by which agent?", last_word),
];

fn error(agent: &mut Agent) {
    let query = "\"budget.remaining() == 3\" is:error until:2026-10-14";
    let found = agent.ask("search_events", json!({ "query": query, "since": "2026-10-12" }));
    let session = &found["data"]["matches"][0]["event_id"];
    let story =
        agent.ask("analyze_session", json!({ "session_id": session, "checks": "failures" }));
    let fix = &story["data"]["findings"][0]["fix"];
    let ids = json!([fix["edits"][0]["event_id"], fix["result_event_id"]]);
    let whole = agent.ask("get_event_details", json!({ "event_ids": ids, "fields": ["text"] }));
    says(text(&whole, "/data/events/0/text"), &["src/retry.rs", "remaining: Arc<AtomicU32>"]);
    says(text(&whole, "/data/events/1/text"), &["budget_is_shared ... ok", "3 passed"]);
}

fn files(agent: &mut Agent) {
    let listed = agent.ask("list_sessions", json!({ "provider": "qwen", "format": "minimal" }));
    let about = |session: &&Value| text(session, "/title").starts_with("Dead link in the docs");
    let session = items(&listed, "sessions").iter().find(about).expect("the session");
    let by = json!({ "group_by": ["file", "tool_kind"], "session_id": session["session_id"] });
    let touched = agent.ask("session_stats", by);
    let groups = items(&touched, "groups").iter().map(|group| {
        let file = text(group, "/group/file").rsplit('/').next().unwrap_or_default();
        format!("{} {file} {}", text(group, "/group/tool_kind"), group["tool_errors"])
    });
    let wanted = ["edit README.md 1", "edit retry.rs 0", "search retry.rs 0", "write README.md 1"];
    assert_eq!(groups.collect::<BTreeSet<_>>(), BTreeSet::from(wanted.map(str::to_owned)));
}

fn decision(agent: &mut Agent) {
    let lost =
        agent.ask("analyze_session", json!({ "session_id": "current", "checks": "context" }));
    let compaction = &items(&lost, "findings")[0];
    let turns = format!("1-{}", compaction["turn_index"]);
    let level = json!({ "session_id": "current", "detail_level": "turns", "turns": turns });
    let before = agent.ask("get_session_details", level);
    let turns = items(&before, "turns");
    says(text(&turns[0], "/answer/text"), &["Two ways out", "share the counter"]);
    says(text(&turns[1], "/prompt/text"), &["Share the counter."]);
    let ids = &compaction["related_event_ids"];
    let kept = agent.ask("get_event_details", json!({ "event_ids": ids }));
    says(text(&kept, "/data/events/0/text"), &["Decision by Mira: share the counter"]);
}

fn money(agent: &mut Agent) {
    let (since, until) = ("2026-10-01", "2026-11-01");
    let by = |key: &str| json!({ "group_by": key, "sort": "cost", "since": since, "until": until, "limit": 3 });
    let models = agent.ask("session_stats", by("model"));
    let names: Vec<_> =
        items(&models, "groups").iter().map(|group| text(group, "/group/model")).collect();
    assert_eq!(names, ["claude-opus-4-6", "gpt-5.5", "claude-sonnet-4-6"]);
    let sessions = agent.ask("session_stats", by("session"));
    let groups = items(&sessions, "groups");
    groups[0].has(json!({
        "group": {"session": MAIN}, "title": "Make clones of RetryBudget share one counter",
    }));
    let costs: Vec<_> = groups.iter().filter_map(|group| group["cost_usd"].as_f64()).collect();
    assert!(costs.len() == 3 && costs.is_sorted_by(|a, b| a >= b), "{costs:?}");
}

fn recurring(agent: &mut Agent) {
    let since = json!({ "project": "harbor", "since": "2026-10-12", "limit": 1 });
    let found = agent.ask("analyze_session", since);
    let error = &items(&found, "findings")[0];
    error.has(json!({"signature": "assertion <name> failed", "sessions": 3, "fixed": 3}));
    let ids = json!([error["event_id"], error["fix"]["edits"][0]["event_id"]]);
    let whole = agent.ask("get_event_details", json!({ "event_ids": ids }));
    says(text(&whole, "/data/events/0/text"), &["left: 431ms", "right: 400ms"]);
    says(text(&whole, "/data/events/1/text"), &["(400..=600).contains(&pause(2).as_millis())"]);
}

fn question(agent: &mut Agent) {
    let query = "criterion benchmark new dependencies sort:relevance";
    let found = agent.ask("search_events", json!({ "query": query, "limit": 5 }));
    let best = &items(&found, "matches")[0];
    let last = best["turn_index"].as_u64().expect("a turn");
    let turns = format!("{}-{last}", last - 1);
    let level = json!({ "session_id": best["event_id"], "detail_level": "turns", "turns": turns });
    let talk = agent.ask("get_session_details", level);
    let turns = items(&talk, "turns");
    says(text(&turns[0], "/prompt/text"), &["Use criterion"]);
    says(text(&turns[1], "/prompt/text"), &["no new dependencies", "minimum and maximum"]);
}

fn editors(agent: &mut Agent) {
    let columns = agent.ask("query_sql", json!({ "sql": "DESCRIBE files" }));
    let columns: Vec<_> =
        items(&columns, "rows").iter().filter_map(|column| column[0].as_str()).collect();
    assert!(["path", "tool_kind", "is_error"].iter().all(|name| columns.contains(name)));
    let sql = "SELECT provider, count(*) AS edits FROM files WHERE path LIKE '%src/retry.rs' AND tool_kind = 'edit' AND NOT is_error GROUP BY provider, session_id ORDER BY min(timestamp)";
    let edits = agent.ask("query_sql", json!({ "sql": sql }));
    let wanted = json!([
        ["codex", 2],
        ["claude", 1],
        ["claude", 2],
        ["codex", 3],
        ["opencode", 2],
        ["opencode", 1],
        ["aider", 1],
        ["qwen", 1],
        ["codewhale", 1]
    ]);
    assert_eq!(edits["data"]["rows"], wanted);
}

fn labels(agent: &mut Agent) {
    let query = json!({ "query": "budget_is_shared is:error" });
    let found = agent.ask("search_events", query);
    assert_eq!(found["pagination"]["has_more"], false);
    let matches = items(&found, "matches").iter();
    let ids: BTreeSet<&str> =
        matches.map(|found| text(found, "/event_id").rsplit_once(':').expect("an id").0).collect();
    let update = |id: &&str| json!({ "session_id": id, "add": ["retry-budget"] });
    let updates: Vec<_> = ids.iter().map(update).collect();
    let done = agent.ask("update_session_labels", json!({ "updates": updates }));
    assert_eq!(items(&done, "succeeded").len(), ids.len());
    let labelled =
        agent.ask("list_sessions", json!({ "label": "retry-budget", "format": "minimal" }));
    let listed = items(&labelled, "sessions").iter().map(|session| text(session, "/session_id"));
    assert_eq!(listed.collect::<BTreeSet<_>>(), ids);
    assert_eq!(ids.len(), 4);
}

fn helper(agent: &mut Agent) {
    let all = json!({ "provider": "claude", "subagents": true, "since": "2026-10-12", "sort": "oldest", "limit": 5 });
    let listed = agent.ask("list_sessions", all);
    let started = |session: &&Value| session["relation"] == "subagent_of";
    let helper = items(&listed, "sessions").iter().find(started).expect("a helper");
    assert_eq!(helper["parent_session_id"], MAIN);
    let level = json!({ "session_id": helper["session_id"], "detail_level": "turns" });
    let told = agent.ask("get_session_details", level);
    let answer = text(&told, "/data/turns/0/answer/text");
    says(answer, &["src/pool.rs:77", "src/client.rs:52", "Nobody relies on clones being separate"]);
}

fn resume(agent: &mut Agent) {
    let latest = json!({ "provider": "copilot", "limit": 1 });
    let listed = agent.ask("list_sessions", latest);
    let session = &items(&listed, "sessions")[0];
    let id = &session["session_id"];
    let why = agent.ask("analyze_session", json!({ "session_id": id }));
    let found = items(&why, "findings");
    found[0].has(json!({
        "reason": "Failed. Nothing similar succeeded afterwards.", "call": "docs/metrics.md",
    }));
    let end = found.iter().find(|finding| finding["check"] == "ends").expect("an end");
    says(text(end, "/message"), &["502 Bad Gateway"]);
    let turns = format!("{}-", found[0]["turn_index"]);
    let level = json!({ "session_id": id, "detail_level": "steps", "turns": turns, "include_reasoning": true });
    let last = agent.ask("get_session_details", level);
    let said = last["data"]["steps"].to_string();
    says(&said, &["one row is missing", "The table has three columns", "The row would be"]);
}

/// The session that a question finds first.
fn best(found: &Value) -> &Value {
    &items(found, "sessions")[0]
}

fn superseded(agent: &mut Agent) {
    let query = json!({ "query": "rename the function try_spend", "limit": 3 });
    let found = agent.ask("search_sessions", query);
    let passages = best(&found)["passages"].as_object().expect("passages");
    let newest = passages.values().next_back().and_then(Value::as_str).expect("a passage");
    says(newest, &["`try_spend` is `spend_one` now"]);
}

fn never(agent: &mut Agent) {
    let found =
        agent.ask("search_sessions", json!({ "query": "Did we ever talk about Kubernetes?" }));
    assert!(items(&found, "sessions").is_empty());
    assert_eq!(found["data"]["absent"], json!(["Kubernetes"]));
}

fn continued(agent: &mut Agent) {
    let query = json!({ "query": "finish load shedding", "provider": "amp", "limit": 2 });
    let found = agent.ask("search_sessions", query);
    let id = &best(&found)["session_id"];
    let end = agent.ask("get_session_details", json!({ "session_id": id }));
    assert_eq!(end["data"]["session"]["relation"], "continued_from");
    says(text(&end, "/data/summary/last_message/text"), &["Green: 42 passed"]);
}

fn compared(agent: &mut Agent) {
    let by =
        json!({ "group_by": "provider", "project": "harbor", "since": "2026-10-12", "limit": 4 });
    let counted = agent.ask("session_stats", by);
    let of = |name: &str| {
        let mut groups = items(&counted, "groups").iter();
        groups.find(|group| group["group"]["provider"] == name).expect("a group")
    };
    let (claude, codex) = (of("claude"), of("codex"));
    assert_eq!((&claude["tool_errors"], &codex["tool_errors"]), (&json!(3), &json!(4)));
    assert!(claude["cost_usd"].as_f64() > codex["cost_usd"].as_f64());
}

fn update(agent: &mut Agent) {
    let query = "the update of bytes broke a test of the pool";
    let found = agent.ask("search_sessions", json!({ "query": query, "limit": 3 }));
    let session = best(&found);
    let last = session["passages"].as_object().and_then(|of| of.keys().next_back()).expect("one");
    let id = format!("{}:{last}", text(session, "/session_id"));
    let whole = agent.ask("get_event_details", json!({ "event_ids": [id], "fields": ["text"] }));
    says(text(&whole, "/data/events/0/text"), &["pool::tests::drains", "put_slice panics"]);
}

fn cost(agent: &mut Agent) {
    let by = json!({ "group_by": ["project", "month"], "project": "harbor", "since": "2026-10-01", "until": "2026-11-01", "sort": "cost", "limit": 1 });
    let counted = agent.ask("session_stats", by);
    let month = &items(&counted, "groups")[0];
    assert_eq!(month["group"], json!({ "project": "harbor", "month": "2026-10" }));
    assert!(month["cost_usd"].as_f64() > Some(2.0), "{month}");
}

fn gauge(agent: &mut Agent) {
    // Nothing has all of these words, so the best matches come in the same call.
    let query = "why does the dashboard always show 3 retries, the gauge never moves";
    let found = agent.ask("search_events", json!({ "query": query, "limit": 3 }));
    assert_eq!(found["warnings"][0]["code"], "RANKED_INSTEAD");
    let id = &items(&found, "matches")[0]["event_id"];
    let end =
        agent.ask("get_session_details", json!({ "session_id": id, "detail_level": "turns" }));
    says(&end["data"]["turns"].to_string(), &["The gauge is set to a constant"]);
}

fn first(agent: &mut Agent) {
    let query = json!({ "query": "\"retry budget\"", "sort": "oldest", "limit": 1 });
    let found = agent.ask("search_events", query);
    let time = text(&items(&found, "matches")[0], "/timestamp");
    let newest = agent.ask("search_events", json!({ "query": "\"retry budget\"", "limit": 1 }));
    assert!(time < text(&items(&newest, "matches")[0], "/timestamp"), "{time}");
}

fn around(agent: &mut Agent) {
    let query = json!({ "query": "502 Bad Gateway", "provider": "copilot", "context": 3 });
    let found = agent.ask("search_events", query);
    let context = items(&found, "matches")[0]["context"].as_object().expect("context");
    assert_eq!(context.len(), 3, "{context:?}");
    says(context["61"].text(), &["has completed successfully"]);
}

fn reviewer(agent: &mut Agent) {
    let query = "reviewer says try_spend hands out more than the limit when two threads meet";
    let found = agent.ask("search_sessions", json!({ "query": query, "limit": 2 }));
    let id = &best(&found)["session_id"];
    let whole =
        agent.ask("get_session_details", json!({ "session_id": id, "detail_level": "turns" }));
    let told = whole["data"]["turns"].to_string();
    says(&told, &["The reviewer says", "read the counter and stored it back in two steps"]);
}

fn failing(agent: &mut Agent) {
    let by = json!({ "group_by": "session", "project": "harbor", "since": "2026-10-12", "until": "2026-10-30",
        "sort": "errors", "limit": 1 });
    let counted = agent.ask("session_stats", by);
    let worst = &items(&counted, "groups")[0];
    assert_eq!(worst["tool_errors"], 3, "{worst}");
    let id = &worst["group"]["session"];
    let ended = agent.ask("get_session_details", json!({ "session_id": id }));
    says(text(&ended, "/data/session/title"), &["Dead link in the docs"]);
    says(text(&ended, "/data/summary/last_message/text"), &["Committed as 5c1f0e2."]);
}

fn last_word(agent: &mut Agent) {
    let query = json!({ "query": "try_spend", "project": "harbor", "event_type": ["user", "message"],
        "sort": "newest", "limit": 3 });
    let found = agent.ask("search_events", query);
    let newest = &items(&found, "matches")[0];
    assert_eq!(newest["provider"], "qwen", "{newest}");
    says(text(newest, "/snippet"), &["`take` is called `try_spend` now"]);
}

#[test]
fn twenty_two_tasks_take_few_calls_and_tokens() {
    let mut page = String::from(
        "# Twenty-two tasks over MCP\n\nMade by `UPDATE_GOLDEN=1 cargo test --test it tasks` on `sample-sessions`; \
        `tests/it/tasks.rs` has the answers. Tokens are bytes divided by four.\n",
    );
    for (question, solve) in TASKS {
        page.push_str(&solve_task(&["--allow-labels"], question, solve));
    }
    compare("UPDATE_GOLDEN", "tests/golden/tasks.md", &page);
}

/// Solves a task with a server that is started with these flags. Returns what was called, and what it
/// took.
pub(crate) fn solve_task(flags: &[&str], question: &str, solve: fn(&mut Agent)) -> String {
    let env = TestEnv::with_sample_copy();
    let mut agent = Agent::start(&env, flags);
    solve(&mut agent);
    let bytes: usize = agent.asked.iter().map(|(_, bytes)| bytes).sum();
    let (calls, tokens) = (agent.asked.len(), bytes.div_ceil(BYTES_PER_TOKEN));
    assert!(calls <= CALLS && tokens <= TOKENS, "{question} {calls} calls, {tokens} tokens");
    let mut page = format!("\n## {question}\n\n{calls} calls, {bytes} bytes, {tokens} tokens\n\n");
    for (call, bytes) in &agent.asked {
        let _ = writeln!(page, "- `{call}`: {bytes} bytes");
    }
    page
}
