//! `session_stats` and `sessions usage` on the sample sessions, against SQL over the same store:
//! the one adds up rows in this program, the other in DuckDB.

use std::collections::BTreeMap;

use regex::Regex;
use serde_json::{Value, json};

use crate::checks::{Checks, JsonChecks};
use crate::env::TestEnv;
use crate::mcp::Client;

const MAIN: &str = "9ae82b3a-fd82-48da-afd8-479f58648cbe";

/// The groups of an answer by the values of their keys.
fn groups(env: &TestEnv, args: &[&str]) -> BTreeMap<Vec<String>, Value> {
    let mut words = vec!["stats", "--limit", "500"];
    words.extend(args);
    let answer = env.json(&words);
    assert_eq!(answer["status"], "ok");
    let keys = answer["data"]["group_by"].list().to_vec();
    let value = |group: &Value, key: &Value| {
        group["group"][key.as_str().expect("key")].as_str().unwrap_or("").to_owned()
    };
    let groups = answer["data"]["groups"].list();
    groups
        .iter()
        .map(|group| (keys.iter().map(|key| value(group, key)).collect(), group.clone()))
        .collect()
}

/// The full paths of files that calls and results name, as `whole` next to the columns of events.
const FULL_PATHS: &str = "SELECT * EXCLUDE (path), CASE \
    WHEN cwd IS NULL OR regexp_matches(path, '^(/|~|[A-Za-z]:)') THEN path \
    ELSE concat(rtrim(cwd, '/'), '/', path) END AS whole \
    FROM (SELECT e.*, s.cwd, unnest(e.files) AS path FROM events e JOIN sessions s USING (session_id))";

/// Returns a model under the name that groups have: without its vendor and the date of its release.
fn shown_model(name: &str) -> String {
    let replace = |pattern: &str, text: &str, by: &str| {
        Regex::new(pattern).expect("a pattern").replace(text, by).into_owned()
    };
    let name = replace(r"^.*/", name, "");
    let name = replace(r"(.)(?:[-@]20\d{6}|-20\d\d-\d\d-\d\d)$", &name, "$1");
    if !Regex::new("^(claude|opus|sonnet|haiku)").expect("a pattern").is_match(&name) {
        return name;
    }
    replace("^(opus|sonnet|haiku)", &name.replace('.', "-"), "claude-$1")
}

/// Compares one number of every group with SQL that gives the keys and the number. Names of tools
/// are compared in lower case.
fn compare(env: &TestEnv, args: &[&str], number: impl Fn(&Value) -> Option<f64>, sql: &str) {
    let mut expected: BTreeMap<Vec<String>, f64> = BTreeMap::new();
    for mut row in env.rows(sql) {
        let Some(number) = row.pop().and_then(|number| number.as_f64()) else { continue };
        let has_models = args.iter().any(|arg| arg.contains("model"));
        let shown = |name: &str| if has_models { shown_model(name) } else { name.to_owned() };
        let key = row.iter().map(|value| shown(value.as_str().unwrap_or(""))).collect();
        *expected.entry(key).or_default() += number;
    }
    expected.retain(|_, number| *number != 0.0);
    let fold = |key: Vec<String>| -> Vec<String> {
        if args.contains(&"tool") {
            key.iter().map(|name| name.to_lowercase()).collect()
        } else {
            key
        }
    };
    let got: BTreeMap<_, _> = groups(env, args)
        .into_iter()
        .map(|(key, group)| (fold(key), group))
        .filter_map(|(key, group)| Some((key, number(&group)?)))
        .filter(|(_, number)| *number != 0.0)
        .collect();
    assert!(!expected.is_empty(), "{sql}");
    assert_eq!(got.keys().collect::<Vec<_>>(), expected.keys().collect::<Vec<_>>(), "{args:?}");
    for (key, number) in &got {
        assert!((number - expected[key]).abs() < 1e-5, "{key:?}: {number}, SQL {}", expected[key]);
    }
}

const LIVE: &str = "FROM events WHERE NOT is_replay";

#[test]
fn counts_are_those_of_sql_by_every_key() {
    let env = TestEnv::with_samples();
    let events = |group: &Value| group["events"].as_f64();
    let of_tools = "event_type IN ('tool_call', 'tool_result')";
    for (by, key) in [
        ("provider", "provider"),
        ("model", "model"),
        ("event_type", "event_type"),
        ("session", "session_id"),
        ("branch", "git_branch"),
        ("day", "strftime(timestamp, '%Y-%m-%d')"),
        ("week", "strftime(date_trunc('week', timestamp), '%Y-%m-%d')"),
        ("month", "strftime(timestamp, '%Y-%m')"),
        ("hour", "strftime(timestamp, '%H')"),
    ] {
        compare(&env, &["--by", by], events, &format!("SELECT {key}, count(*) {LIVE} GROUP BY 1"));
    }
    let files = format!("FROM ({FULL_PATHS}) WHERE NOT is_replay");
    for (by, key, from) in [
        ("tool", "lower(tool_name)", LIVE),
        ("tool_kind", "tool_kind", LIVE),
        ("file", "whole", &files),
    ] {
        let keys = format!("SELECT {key} AS k {from} AND {of_tools}");
        let sql = format!("SELECT k, count(*) FROM ({keys}) GROUP BY 1");
        compare(&env, &["--by", by], events, &sql);
    }
    let sql = format!(
        "SELECT CASE WHEN is_error THEN 'failed' WHEN NOT is_error THEN 'ok' END AS k, count(*) {LIVE} \
         AND event_type = 'tool_result' GROUP BY 1"
    );
    compare(&env, &["--by", "error"], events, &sql);
    let sql = "SELECT project, count(*) FROM events JOIN sessions USING (session_id) WHERE NOT is_replay GROUP BY 1";
    compare(&env, &["--by", "project"], events, sql);
    let sql = format!("SELECT provider, event_type, count(*) {LIVE} GROUP BY ALL");
    compare(&env, &["--by", "provider,event_type"], events, &sql);
}

#[test]
fn the_other_numbers_are_those_of_sql() {
    let env = TestEnv::with_samples();
    let number = |name: &'static str| move |group: &Value| group[name].as_f64();
    let results = "FROM events WHERE NOT is_replay AND event_type = 'tool_result'";
    for (name, sum) in [
        ("sessions", "count(DISTINCT session_id)"),
        ("tool_calls", "count(*) FILTER (event_type = 'tool_call')"),
        ("tool_results", "count(*) FILTER (event_type = 'tool_result')"),
        ("tool_errors", "count(*) FILTER (event_type = 'tool_result' AND is_error)"),
        ("text_bytes", "sum(text_bytes)"),
    ] {
        let sql = format!("SELECT provider, {sum} {LIVE} GROUP BY 1");
        compare(&env, &["--by", "provider", "--sort", "size"], number(name), &sql);
    }
    let rate = "round(count(*) FILTER (is_error) / count(*), 6)";
    let sql = format!("SELECT lower(tool_name), {rate} {results} GROUP BY 1");
    compare(&env, &["--by", "tool"], number("error_rate"), &sql);
    for (name, part) in [("p50", 0.5), ("p95", 0.95)] {
        for (field, column) in [("duration_ms", "duration_ms"), ("output_bytes", "text_bytes")] {
            let ranked = format!("list_sort(list({column}) FILTER ({column} >= 0))");
            let sql = format!(
                "SELECT tool_name, s[greatest(ceil(len(s) * {part})::INTEGER, 1)] FROM \
                 (SELECT lower(tool_name) AS tool_name, {ranked} AS s {results} GROUP BY 1)"
            );
            let value = |group: &Value| group[field][name].as_f64();
            compare(&env, &["--by", "tool"], value, &sql);
        }
    }
    let sql = format!("SELECT lower(tool_name), sum(duration_ms) {results} GROUP BY 1");
    compare(&env, &["--by", "tool"], |group| group["duration_ms"]["total"].as_f64(), &sql);
}

#[test]
fn tokens_and_cost_are_those_of_the_usage_view() {
    let env = TestEnv::with_samples();
    let once =
        |name: &'static str| move |group: &Value| group["tokens"]["counted_once"][name].as_f64();
    for name in [
        "input_tokens",
        "output_tokens",
        "cache_read_tokens",
        "cache_write_tokens",
        "cache_write_1h_tokens",
        "reasoning_tokens",
    ] {
        let sql = format!("SELECT model, sum({name}) FROM usage GROUP BY 1");
        compare(&env, &["--by", "model"], once(name), &sql);
    }
    let cost = |group: &Value| group["cost_usd"].as_f64();
    compare(&env, &["--by", "model"], cost, "SELECT model, sum(cost_usd) FROM usage GROUP BY 1");
    let sql = "SELECT strftime(day, '%Y-%m-%d'), sum(cost_usd) FROM usage GROUP BY 1";
    compare(&env, &["--by", "day"], cost, sql);
    let sql = "SELECT session_id, sum(cost_usd) FROM usage GROUP BY 1";
    compare(&env, &["--by", "session"], cost, sql);
    let recorded = |group: &Value| {
        let tokens = &group["tokens"];
        let usage = tokens.get("as_recorded").unwrap_or(&tokens["counted_once"]);
        usage["output_tokens"].as_f64()
    };
    let sql = "SELECT session_id, recorded_output_tokens FROM sessions";
    compare(&env, &["--by", "session"], recorded, sql);
    let unpriced = |group: &Value| group["unpriced_tokens"].as_f64();
    let sql = "SELECT model, sum(coalesce(input_tokens, 0) + coalesce(output_tokens, 0) + coalesce(cache_read_tokens, 0) \
        + coalesce(cache_write_tokens, 0)) FROM usage WHERE cost_usd IS NULL GROUP BY 1";
    compare(&env, &["--by", "model"], unpriced, sql);
}

#[test]
fn filters_choose_sessions_and_times() {
    let env = TestEnv::with_samples();
    let events = |group: &Value| group["events"].as_f64();
    let by = |args: &[&'static str]| [&["--by", "provider"][..], args].concat();
    let from = "SELECT provider, count(*) FROM events WHERE NOT is_replay";
    let sql =
        format!("{from} AND timestamp >= '2026-10-15' AND timestamp < '2026-10-17' GROUP BY 1");
    compare(&env, &by(&["--since", "2026-10-15", "--until", "2026-10-17"]), events, &sql);
    let sql = format!("{from} AND provider = 'codex' GROUP BY 1");
    compare(&env, &by(&["--provider", "codex"]), events, &sql);
    let sql = format!("{from} AND session_id = '{MAIN}' GROUP BY 1");
    compare(&env, &by(&["--session-id", "9ae82b3a"]), events, &sql);
    let sql = "SELECT e.provider, count(*) FROM events e JOIN sessions s USING (session_id) \
        WHERE NOT is_replay AND contains(lower(concat(s.cwd, ' ', s.project, ' ', s.repository)), 'harbor') GROUP BY 1";
    compare(&env, &by(&["--project", "HARBOR"]), events, sql);
    env.run(["stats", "--by", "day", "--since", "2031-01-01"]).fails(1).says("No event matches");
    let mut by_session = vec!["--by", "session", "--session-id", "9ae82b3a"];
    let id = vec![MAIN.to_owned()];
    let small = &groups(&env, &by_session)[&id];
    assert!(["trend", "text_bytes", "output_bytes"].iter().all(|name| small.get(*name).is_none()));
    by_session.extend(["--sort", "size"]);
    let trend = &groups(&env, &by_session)[&id];
    let parts = trend["trend"].list();
    let sum: u64 = parts.iter().filter_map(Value::as_u64).sum();
    assert_eq!((parts.len(), Some(sum)), (12, trend["events"].as_u64()));
    assert_eq!(trend["title"], "Make clones of RetryBudget share one counter");
}

#[test]
fn groups_come_in_order_and_what_is_left_out_is_counted() {
    let env = TestEnv::with_samples();
    let order = |args: &[&str], field: &str| -> Vec<Value> {
        let answer = env.json(args);
        let groups = answer["data"]["groups"].list().to_vec();
        groups.into_iter().map(|group| group.pointer(field).cloned().unwrap_or_default()).collect()
    };
    let days = order(&["stats", "--by", "day"], "/group/day");
    let texts: Vec<_> = days.iter().filter_map(Value::as_str).collect();
    assert!(texts.is_sorted() && texts.len() > 3, "{texts:?}");
    let latest = order(&["stats", "--by", "day", "--limit", "2"], "/group/day");
    let dated: Vec<_> = days.iter().filter(|day| day.is_string()).cloned().collect();
    assert!(dated.ends_with(&latest) && latest.len() == 2, "{latest:?}");
    for (sort, field) in [
        ("events", "/events"),
        ("errors", "/tool_errors"),
        ("error_rate", "/error_rate"),
        ("duration", "/duration_ms/p95"),
        ("size", "/text_bytes"),
    ] {
        let values = order(&["stats", "--by", "tool", "--sort", sort], field);
        let numbers: Vec<_> = values.iter().map(|value| value.as_f64().unwrap_or(-1.0)).collect();
        assert!(numbers.windows(2).all(|pair| pair[0] >= pair[1]), "{sort}: {numbers:?}");
    }
    let costs = order(&["stats", "--by", "model", "--sort", "cost"], "/cost_usd");
    let costs: Vec<_> = costs.iter().map(|value| value.as_f64().unwrap_or(-1.0)).collect();
    assert!(costs.windows(2).all(|pair| pair[0] >= pair[1]), "{costs:?}");
    let cut = env.json(["stats", "--by", "file", "--limit", "3"]);
    assert_eq!(cut["data"]["groups"].list().len(), 3);
    assert_eq!(cut["metadata"]["results_truncated"], true);
    let total =
        env.rows(&format!("SELECT count(DISTINCT whole) FROM ({FULL_PATHS}) WHERE NOT is_replay"));
    assert_eq!(cut["metadata"]["results_total"], total[0][0]);
    cut["hint"].shows("limit");
}

#[test]
fn wrong_keys_are_answered_with_the_valid_ones() {
    let env = TestEnv::with_samples();
    let mut client = Client::legacy(&env);
    for (arguments, says) in [
        (json!({ "group_by": "colour" }), "tool_kind"),
        (json!({ "group_by": [] }), "tool_kind"),
        (json!({ "group_by": ["tool", "tool"] }), "two different"),
        (json!({ "group_by": ["tool", "day", "model"] }), "two different"),
        (json!({ "group_by": "tool", "limit": 501 }), "1-500"),
        (json!({ "group_by": "tool", "since": "someday" }), "7d"),
        (json!({ "group_by": "tool", "until": "someday" }), "7d"),
        (json!({}), "group_by"),
    ] {
        let error = client.fails("session_stats", arguments.clone());
        assert_eq!(error["code"], "invalid_argument", "{arguments}: {error}");
        error["message"].shows(says);
    }
    client.fails("session_stats", json!({ "group_by": "tool", "session_id": "zzzz" })).has(json!({
        "code": "session_not_found",
    }));
    env.run(["stats", "--by", "colour"]).fails(2).says("tool_kind");
}

#[test]
fn people_get_tables() {
    let env = TestEnv::with_samples();
    let tools = env.run(["stats", "--by", "tool"]).ok();
    let mut lines = tools.lines();
    let head: Vec<_> = lines.next().expect("names").split_whitespace().collect();
    assert_eq!(&head[..5], ["tool", "sessions", "events", "calls", "errors"]);
    assert!(!tools.contains("cost"), "tools have no cost: {tools}");
    assert!(tools.contains('█') && tools.contains(" ms"));
    let days = env.run(["stats", "--by", "day"]).ok();
    assert!(days.contains("\ntokens  ") && days.contains('$'));
    for period in ["daily", "weekly", "monthly"] {
        let usage = env.run(["usage", period]).ok();
        let cost = env.rows("SELECT sum(cost_usd) FROM usage")[0][0].as_f64().expect("cost");
        usage.shows("total").shows(format!("${cost:.2}"));
        usage.shows("claude-");
    }
    env.json(["usage", "monthly"]).has(json!({"data": {"group_by": ["month"]}}));
    env.run(["usage", "--since", "2031-01-01"]).fails(1);
}
