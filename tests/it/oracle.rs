//! Search finds exactly what a plain look at every text finds.

use std::collections::BTreeSet;

use schemas::tool::search::SearchArgs;
use serde_json::Value;
use sessions::store::Store;
use sessions::tools::{Call, Tools};

use crate::env::{Random, TestEnv, real_logs};

struct Row {
    id: String,
    text: String,
}

/// Every event that is no copy, with its text as the store holds it.
fn rows(env: &TestEnv) -> Vec<Row> {
    let store = Store::new(env.store());
    let snapshot = store.snapshot().expect("snapshot");
    let mut rows = Vec::new();
    for segment in
        snapshot.segments().iter().filter(|segment| segment.entry.file("events").is_some())
    {
        let spans: Vec<_> = segment
            .spans
            .iter()
            .map(|s| sessions::store::RowSpan { start: s.start, count: s.count })
            .collect();
        let reader = sessions::store::EventReader::open(segment, &spans, &[], 4096).expect("opens");
        for row in reader.rows().expect("reads").into_iter().filter(|row| !row.is_replay) {
            rows.push(Row {
                id: schemas::EventId::format(&row.session_id, row.event_index as u32),
                text: row.text,
            });
        }
    }
    rows
}

/// The definition of case-insensitive, written down once more.
fn fold(text: &str) -> String {
    text.chars()
        .map(|c| {
            let lower: Vec<char> = c.to_lowercase().collect();
            match lower.as_slice() {
                _ if c.is_ascii() => c.to_ascii_lowercase(),
                [single] if !single.is_ascii() => *single,
                _ => c,
            }
        })
        .collect()
}

fn found(tools: &Tools, query: &str) -> BTreeSet<String> {
    let call = Call::new(schemas::Timestamp(0), &|| false);
    let mut ids = BTreeSet::new();
    let mut cursor = None;
    loop {
        let args = SearchArgs {
            query: query.to_owned(),
            limit: Some(50),
            cursor,
            ..SearchArgs::default()
        };
        let answer =
            tools.search(&args, &call).unwrap_or_else(|error| panic!("{query:?}: {error}"));
        for hit in &answer.data.matches {
            assert!(ids.insert(hit.event_id.clone()), "{query:?} gives {} twice", hit.event_id);
        }
        cursor = answer.pagination.and_then(|page| page.next_cursor);
        if cursor.is_none() {
            return ids;
        }
    }
}

fn check(env: &TestEnv, needles: usize, seed: u64, most: usize) {
    let rows = rows(env);
    let folded: Vec<String> = rows.iter().map(|row| fold(&row.text)).collect();
    let tools = Tools::new(Store::new(env.store()));
    let mut random = Random(seed);
    let mut compared = 0;
    while compared < needles {
        let text = &rows[random.below(rows.len())].text;
        let chars: Vec<char> = text.chars().collect();
        let from = random.below(chars.len());
        let length = 1 + random.below(40);
        let mut needle: String = chars.iter().skip(from).take(length).collect();
        if random.below(3) == 0 {
            needle = needle.to_uppercase();
        }
        if random.below(6) == 0 {
            needle.push_str("\u{1f9ff}zq");
        }
        // A quote ends a phrase: the query language has no way to write one inside.
        needle.retain(|c| c != '"');
        if needle.trim().is_empty() {
            continue;
        }
        let want: BTreeSet<String> = {
            let needle = fold(&needle);
            rows.iter()
                .zip(&folded)
                .filter(|(_, text)| text.contains(&needle))
                .map(|(row, _)| row.id.clone())
                .collect()
        };
        // Common needles would page through thousands of answers.
        if want.len() > most {
            continue;
        }
        assert_eq!(found(&tools, &format!("\"{needle}\"")), want, "{needle:?}");
        compared += 1;
    }
}

#[test]
fn samples_equal_the_naive_scan() {
    check(&TestEnv::with_samples(), 300, 11, 500);
}

#[test]
fn real_logs_equal_the_naive_scan() {
    let Some(logs) = real_logs() else { return };
    check(&TestEnv::with_real_logs(&logs), 60, 12, 100);
}

#[test]
fn order_is_newest_first_and_totals_are_never_wrong() {
    let env = TestEnv::with_samples();
    for query in ["budget", "a", "the retry", "\"budget is\"", "retry -budget", "tool:Bash cargo"] {
        let page = env.json(&["search", query, "--limit", "50"]);
        let matches = page["data"]["matches"].as_array().expect("matches");
        let times: Vec<_> = matches.iter().map(|m| m["timestamp"].as_str().unwrap_or("")).collect();
        assert!(times.is_sorted_by(|a, b| a >= b), "{query}: {times:?}");
        let total = page["metadata"]["results_total"].as_u64().expect("total");
        let all = total_by_pages(&env, query);
        match page["metadata"].get("results_total_is") {
            None => assert_eq!(total, all, "{query}"),
            Some(Value::String(bound)) => assert!(bound == "at_least" && total <= all, "{query}"),
            other => panic!("{other:?}"),
        }
    }
}

fn total_by_pages(env: &TestEnv, query: &str) -> u64 {
    found(&Tools::new(Store::new(env.store())), query).len() as u64
}
