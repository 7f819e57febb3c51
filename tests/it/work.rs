//! What searches and refreshes examine, counted; and that compaction changes nothing but that.

use std::collections::BTreeSet;
use std::fs::OpenOptions;
use std::io::Write;
use std::path::Path;

use schemas::Timestamp;
use schemas::tool::list::ListArgs;
use schemas::tool::search::SearchArgs;
use search::{COUNTED_ROWS, Query, SearchPage, SearchRequest, SearchWork, search};
use serde_json::{Value, json};
use store::{Snapshot, Store};
use tools::{Call, Tools};

use crate::checks::{Checks, JsonChecks};
use crate::crash::{compare, content};
use crate::env::TestEnv;

/// A line of a Claude log: prompt `number` of a session.
pub(crate) fn prompt(session: usize, number: usize, text: &str) -> String {
    let (hour, minute, second) = (number / 3600, number / 60 % 60, number % 60);
    format!(
        r#"{{"type":"user","uuid":"{session:08x}-0000-4000-8000-{number:012x}","sessionId":"{session:08x}-1111-4000-8000-000000000000","timestamp":"2026-05-01T{hour:02}:{minute:02}:{second:02}.000Z","cwd":"/home/dev/p{session}","version":"2.1.0","message":{{"role":"user","content":"{text}"}}}}"#
    ) + "\n"
}

/// Appends lines to the log of a session below `logs`.
pub(crate) fn append(logs: &Path, session: usize, lines: &str) {
    std::fs::create_dir_all(logs).expect("creates");
    let path = logs.join(format!("{session}.jsonl"));
    let mut file = OpenOptions::new().create(true).append(true).open(path).expect("opens");
    file.write_all(lines.as_bytes()).expect("writes");
}

fn snapshot(env: &TestEnv) -> std::sync::Arc<Snapshot> {
    Store::new(env.store()).take_snapshot().expect("snapshot")
}

/// Text of many different words; the same `seed` gives the same.
fn varied(seed: usize, words: usize) -> String {
    let word = |n: usize| format!("{:07x}", n.wrapping_mul(0x9e37_79b9) & 0xfff_ffff);
    (0..words).map(|n| word(seed * 100_000 + n) + " ").collect()
}

fn find(snapshot: &Snapshot, query: &str, limit: usize) -> SearchPage {
    find_and_count(snapshot, query, limit, COUNTED_ROWS)
}

/// Finds a page, and counts the matches of segments with at most `counted_rows` rows.
fn find_and_count(snapshot: &Snapshot, query: &str, limit: usize, counted_rows: u64) -> SearchPage {
    let query = Query::parse(query, Timestamp(0)).expect("parses");
    let request = SearchRequest {
        query: &query,
        sessions: None,
        event_types: Vec::new(),
        since: None,
        limit,
        one_per_session: false,
        after: None,
        counted_rows,
        deadline: None,
    };
    search(snapshot, &request, &|| false).expect("finds")
}

#[test]
fn many_small_ingests_become_few_segments_and_lose_nothing() {
    let (env, whole) = (TestEnv::new(), TestEnv::new());
    let logs = env.path("logs");
    for round in 0..40 {
        let line = prompt(round % 3, round, &format!("round{round}x {}", varied(round, 40)));
        append(&logs, round % 3, &line);
        env.ingest(&logs);
    }
    // The other store reads the same files at the same place, in one go.
    whole.ingest(&logs);
    compare(&content(&whole), &content(&env), 0);
    let grown = snapshot(&env);
    let fresh = snapshot(&whole);
    assert!(grown.segments().len() < 16, "{}", grown.segments().len());
    assert!(grown.incomplete_sessions().next().is_none());
    for round in 0..40 {
        let query = format!("round{round}x");
        assert_eq!(find(&grown, &query, 10).matched, 1, "{query}");
    }
    let (many, one) =
        (find(&grown, "zebra absent", 10).work, find(&fresh, "zebra absent", 10).work);
    assert!(many.pages <= one.pages + 1, "{many:?} {one:?}");
    // The newest rows are still where they can be appended to.
    append(&logs, 1, &prompt(1, 99, "after the merge"));
    env.ingest(&logs);
    let grown = snapshot(&env);
    assert_eq!(find(&grown, "\"after the merge\"", 10).hits[0].event_index, 13);
}

#[test]
fn a_reader_of_an_older_generation_goes_on_after_a_merge() {
    let env = TestEnv::new();
    let logs = env.path("logs");
    let store = Store::new(env.store());
    for round in 0..7 {
        append(&logs, 0, &prompt(0, round, &format!("round{round}x")));
        env.ingest(&logs);
    }
    let before = store.take_snapshot().expect("snapshot");
    append(&logs, 0, &prompt(0, 7, "round7x"));
    env.ingest(&logs);
    let after = store.take_snapshot().expect("snapshot");
    assert!(after.segments().len() < before.segments().len(), "nothing was merged");
    assert_eq!(find(&before, "round3x", 10).matched, 1);
    assert_eq!(find(&before, "round7x", 10).matched, 0);
    assert_eq!(find(&after, "round7x", 10).matched, 1);
    // What was merged stays for a while, and the writer keeps it in mind.
    assert_eq!(after.manifest().retired.len(), 8);
    append(&logs, 0, &prompt(0, 8, "round8x"));
    env.ingest(&logs);
    assert_eq!(find(&before, "round4x", 10).matched, 1);
}

#[test]
fn a_refresh_reads_what_was_added() {
    let env = TestEnv::new();
    let logs = env.path("logs");
    for session in 0..20 {
        append(&logs, session, &prompt(session, 0, &varied(session, 2000)));
    }
    env.ingest(&logs);
    let store = Store::new(env.store());
    let first = store.take_snapshot().expect("snapshot");
    assert_eq!(first.segments_read(), first.segments().len());
    append(&logs, 3, &prompt(3, 1, "one line more"));
    env.ingest(&logs);
    let second = store.take_snapshot().expect("snapshot");
    assert_eq!(second.segments_read(), 1);
    assert_eq!(second.segments().len(), first.segments().len() + 1);
    assert_eq!(find(&second, "\"one line more\"", 10).matched, 1);
}

fn parse<T: serde::de::DeserializeOwned>(arguments: Value) -> T {
    serde_json::from_value(arguments).expect("arguments")
}

/// Asks for an answer. Returns whether there is one.
type Ask = fn(&Tools, &Call<'_>) -> bool;

/// Only the rows of the sessions that an answer shows are read, except where all sessions are summed.
#[test]
fn an_answer_reads_the_rows_of_the_sessions_that_it_shows() {
    let env = TestEnv::new();
    let logs = env.path("logs");
    for session in 0..4 {
        append(&logs, session, &prompt(session, session, "needle"));
        env.ingest(&logs);
    }
    let answers: [(&str, usize, Ask); 8] = [
        ("list", 2, |tools, call| tools.list_sessions(&parse(json!({"limit": 2})), call).is_ok()),
        ("list by cost", 4, |tools, call| {
            let args = json!({"limit": 2, "sort": "cost"});
            tools.list_sessions(&parse(args), call).is_ok()
        }),
        ("search", 1, |tools, call| {
            let args = json!({"query": "needle", "limit": 1});
            tools.search_events(&parse(args), call).is_ok()
        }),
        ("find", 0, |tools, call| {
            tools.search_sessions(&parse(json!({"query": "needle"})), call).is_ok()
        }),
        ("details", 1, |tools, call| {
            tools.get_session_details(&parse(json!({"session_id": "last"})), call).is_ok()
        }),
        ("stats of one", 1, |tools, call| {
            let args = json!({"group_by": "day", "session_id": "last"});
            tools.session_stats(&parse(args), call).is_ok()
        }),
        ("stats", 4, |tools, call| {
            tools.session_stats(&parse(json!({"group_by": "day"})), call).is_ok()
        }),
        ("analyze", 1, |tools, call| {
            tools.analyze_session(&parse(json!({"session_id": "last"})), call).is_ok()
        }),
    ];
    for (name, with_rows, answer) in answers {
        let tools = Tools::new(Store::new(env.store()));
        let call = Call::new(Timestamp::now(), &|| false);
        assert!(answer(&tools, &call), "{name}");
        let snapshot = call.taken_snapshot().expect("taken");
        assert_eq!(snapshot.segments().len(), 4);
        assert_eq!(snapshot.segments_with_rows(), with_rows, "{name}");
    }
}

/// Ingests, and returns whether the run found out that there was nothing to do.
fn finds_nothing_new(env: &TestEnv, flags: &[&str]) -> bool {
    let ingest = env.cli(["ingest", "--quiet", "logs"]).args(flags);
    let told = ingest.env("SESSIONS_LOG", "debug").run().exits(0).stderr;
    let is_unchanged = told.contains("no log changed");
    assert!(!is_unchanged || told.contains("segments_with_rows=0"), "rows were read: {told}");
    is_unchanged
}

#[test]
fn an_ingest_reads_no_rows_if_nothing_changed_and_notices_every_change() {
    let env = TestEnv::new();
    let logs = env.path("logs");
    for session in 0..3 {
        append(&logs, session, &prompt(session, 0, "first"));
    }
    std::fs::write(logs.join("settings.json"), "{}").expect("writes");
    assert!(!finds_nothing_new(&env, &[]));
    assert!(finds_nothing_new(&env, &[]));

    let log = logs.join("1.jsonl");
    let content = std::fs::read(&log).expect("reads");
    let touch = || {
        let file = OpenOptions::new().append(true).open(&log).expect("opens");
        file.set_modified(std::time::SystemTime::UNIX_EPOCH).expect("sets");
    };
    let changes: [(&str, &dyn Fn()); 6] = [
        ("a log grew", &|| append(&logs, 0, &prompt(0, 1, "second"))),
        ("a log is new", &|| append(&logs, 9, &prompt(9, 0, "first"))),
        ("a log has another time", &touch),
        ("a log vanished", &|| std::fs::remove_file(&log).expect("removes")),
        ("a log came back", &|| std::fs::write(&log, &content).expect("writes")),
        ("a file is new", &|| std::fs::write(logs.join("b.json"), "[]").expect("writes")),
    ];
    for (name, change) in changes {
        change();
        assert!(!finds_nothing_new(&env, &[]), "{name}");
        assert!(finds_nothing_new(&env, &[]), "after: {name}");
    }
    assert!(!finds_nothing_new(&env, &["--no-redact"]), "other rules");
    assert!(finds_nothing_new(&env, &["--no-redact"]), "the same rules");
}

/// Three stores of one shape, each four times the one before.
#[test]
fn work_grows_slower_than_the_store() {
    // A short word passes the filters of a few of 800 blocks by chance, a long one does not.
    let counts = [50, 200, 800].map(|sessions| {
        let env = TestEnv::new();
        let logs = env.path("logs");
        for session in 0..sessions {
            let needle = if session == sessions / 2 { "quokkaquetzal" } else { "wombat" };
            let lines: String = (0..12)
                .map(|n| {
                    prompt(
                        session,
                        session * 20 + n,
                        &format!("the {needle} {}", varied(session * 20 + n, 400)),
                    )
                })
                .collect();
            append(&logs, session, &lines);
        }
        env.ingest(&logs);
        let snapshot = snapshot(&env);
        let absent = find(&snapshot, "\"zebra absent zebra\"", 10);
        let rare = find(&snapshot, "quokkaquetzal", 10);
        let common = find(&snapshot, "the", 10);
        let since = find(&snapshot, "the until:2026-05-01T00:00:30Z total:exact", 10);
        let all = find(&snapshot, "the omba total:exact", 10);
        assert_eq!((all.matched, all.is_complete), ((sessions - 1) * 12, true));
        // What must occur is found without a word of the question, wherever it stands.
        env.json(["search", "/w.mb/ quokkaquetzal sort:relevance total:exact"]).has(json!({
            "metadata": {"results_total": all.matched},
        }));
        assert_eq!((absent.matched, rare.matched), (0, 10 + 2));
        assert_eq!((common.hits.len(), since.is_complete), (10, true));
        // What the index knows is counted, whether that was asked for or not.
        assert!(sessions < 800 || (common.matched, common.is_complete) == (sessions * 12, true));
        [absent.work, rare.work, common.work, since.work, all.work]
    });
    let [small, _, large] = &counts;
    let pages = |work: &[SearchWork; 5]| work.map(|work| work.pages);
    assert!(large[0].blocks > 10 * small[0].blocks);
    let [absent, rare, common, since, all] = pages(large);
    assert_eq!(absent, 0);
    assert!(rare <= pages(small)[1] + 4);
    assert!(common <= 8);
    assert!(since <= pages(small)[3] + 2);
    // The rows of every word are listed: those of parts of words are known without a text.
    assert_eq!(all, 0);
}

/// Two stores with the same newest matches, one of them with three times as many older segments: a
/// page costs the same.
#[test]
fn a_page_costs_the_same_whatever_is_older() {
    let queries = [
        "needle",
        "needle pin",
        "needle OR pin",
        "\"needle pin\"",
        "/n[e]{2}dle pin/",
        "needle sort:oldest",
        "zebra",
    ];
    let counts = [2, 6].map(|older| {
        let env = TestEnv::new();
        let logs = env.path("logs");
        for round in 0..=older {
            let lines: String = (0..12)
                .map(|n| {
                    let text = format!("needle pin {}", varied(round * 20 + n, 300));
                    prompt(round, round * 3600 + n, &text)
                })
                .collect();
            append(&logs, round, &lines);
            env.ingest(&logs);
        }
        let snapshot = Store::new(env.store()).take_lazy_snapshot().expect("snapshot");
        assert_eq!(snapshot.segments().len(), older + 1);
        let all = find(&snapshot, "needle", 10);
        assert_eq!((all.matched, all.is_complete), ((older + 1) * 12, true));
        let exact = find_and_count(&snapshot, "needle total:exact", 10, 0);
        assert_eq!((exact.matched, exact.is_complete), ((older + 1) * 12, true));
        queries.map(|query| {
            let page = find_and_count(&snapshot, query, 10, 0);
            let is_absent = query == "zebra";
            assert_eq!(page.hits.len(), if is_absent { 0 } else { 10 }, "{query}");
            assert_eq!(page.is_complete, is_absent, "{query}");
            assert_eq!(page.next.is_some(), !is_absent, "{query}");
            assert_eq!(snapshot.segments_with_rows(), 0, "no row of a session is needed");
            page.work
        })
    });
    let [small, large] = counts;
    for ((query, small), large) in queries.iter().zip(small).zip(large) {
        if *query == "zebra" {
            // Nothing but the filters of each segment is read.
            assert_eq!((large.segments, large.pages), (7, 0));
            continue;
        }
        assert_eq!(small, large, "{query}");
        assert!(large.segments <= 2 && large.pages <= 12, "{query}: {large:?}");
    }
}

/// The pages of a search that stops early are those of one that counts everything.
#[test]
fn pages_that_stop_early_have_the_same_results() {
    let env = TestEnv::new();
    let logs = env.path("logs");
    for round in 0..7 {
        // The times of the segments overlap, and some events of several segments have one time.
        let lines: String = (0..40)
            .map(|n| {
                let word = if (n * 7 + round) % 3 == 0 { "needle" } else { "other" };
                let number = n * 60 + round % 3;
                prompt(round, number, &format!("{word} {}", varied(round * 50 + n, 30)))
            })
            .collect();
        append(&logs, round, &lines);
        env.ingest(&logs);
    }
    let snapshot = snapshot(&env);
    for query in ["needle", "needle sort:oldest", "needle OR other", "-needle other", "/n..dle/"] {
        let all = find(&snapshot, query, 1000);
        assert!(all.is_complete && all.matched > 60, "{query}");
        let position = |hit: &search::SearchHit| (hit.session, hit.event_index);
        let expected: Vec<_> = all.hits.iter().map(position).collect();
        for limit in [1, 10, 33] {
            let page = find_and_count(&snapshot, query, limit, 0);
            let found: Vec<_> = page.hits.iter().map(position).collect();
            assert_eq!(found, expected[..limit], "{query}");
        }
    }
}

/// A commit in the middle of a call belongs to the next call: an answer is of one state, and kept
/// for the state that it is of.
#[test]
fn a_call_answers_from_the_state_that_it_found_first() {
    let env = TestEnv::new();
    let logs = env.path("logs");
    let tools = Tools::new(Store::new(env.store()));
    let sessions = |call: &Call<'_>| {
        let answer = tools.list_sessions(&ListArgs::default(), call).expect("lists");
        (answer.data.sessions.len(), answer.metadata.index_size)
    };
    append(&logs, 0, &prompt(0, 0, "first"));
    env.ingest(&logs);
    let call = Call::new(Timestamp(0), &|| false);
    let state = tools.answer_state(&call).expect("a state");
    append(&logs, 1, &prompt(1, 0, "second"));
    env.ingest(&logs);
    assert_eq!(sessions(&call), (1, 1));
    assert_eq!(tools.answer_state(&call), Some(state));
    let next = Call::new(Timestamp(0), &|| false);
    assert_eq!(sessions(&next), (2, 2));
    assert_ne!(tools.answer_state(&next), Some(state));
}

/// Pages of `query` from the first to the last, with `between` called after each.
fn walk(env: &TestEnv, query: &str, limit: u32, between: &mut dyn FnMut()) -> Vec<String> {
    let tools = Tools::new(Store::new(env.store()));
    let mut ids = Vec::new();
    let mut cursor = None;
    loop {
        let args = SearchArgs {
            query: query.to_owned(),
            limit: Some(limit),
            cursor,
            ..SearchArgs::default()
        };
        let call = Call::new(Timestamp(0), &|| false);
        let answer = tools.search_events(&args, &call).expect("answers");
        ids.extend(answer.data.matches.iter().map(|found| found.event_id.clone()));
        cursor = answer.pagination.and_then(|page| page.next_cursor);
        if cursor.is_none() {
            return ids;
        }
        between();
    }
}

/// With ingests and merges between the pages: no event twice, and none left out that was there.
#[test]
fn cursors_are_stable_while_the_store_changes() {
    for (seed, query) in [
        (1, "needle"),
        (2, "needle OR other"),
        (3, "which needle is it sort:relevance"),
        (4, "/need[a-z]+/"),
    ] {
        let env = TestEnv::new();
        let logs = env.path("logs");
        let mut next = [0; 4];
        let mut grow = |count: usize| {
            for n in 0..count {
                let session = (seed + n) % 4;
                // Several events share a time, and some come to the middle of the order.
                let number = next[session] / 2 + session * 3;
                let text =
                    format!("needle {} {}", "word ".repeat((n * 7 + seed) % 11), next[session]);
                let line = prompt(session, number, &text)
                    .replace("000000000000\",\"ti", "000000000000\",\"n\":0,\"ti");
                let line = line.replacen("-8000-", &format!("-8{:03x}-", next[session] % 4096), 1);
                append(&logs, session, &line);
                next[session] += 1;
            }
        };
        grow(60);
        env.ingest(&logs);
        let before: BTreeSet<String> = walk(&env, query, 50, &mut || {}).into_iter().collect();
        assert_eq!(before.len(), 60, "{query}");
        let mut rounds = 0;
        let seen = walk(&env, query, 7, &mut || {
            rounds += 1;
            if rounds < 12 {
                grow(3);
                env.ingest(&logs);
            }
        });
        let unique: BTreeSet<String> = seen.iter().cloned().collect();
        assert_eq!(unique.len(), seen.len(), "{query}: an event came twice");
        assert!(before.is_subset(&unique), "{query}: {:?}", before.difference(&unique));
    }
}

/// Many events that score alike, the later ingested ones before the others by id.
#[test]
fn ranked_pages_lose_nothing_among_equals() {
    let env = TestEnv::new();
    let logs = env.path("logs");
    for session in [9, 2] {
        let lines: String = (0..60)
            .map(|n| {
                prompt(session, 0, "quokka marsupial")
                    .replace("000000000000\",\"se", &format!("{n:012}\",\"se"))
            })
            .collect();
        append(&logs, session, &lines);
        env.ingest(&logs);
    }
    for query in
        ["quokka marsupial sort:relevance", "\"quokka\" sort:relevance", "/quokka/ sort:relevance"]
    {
        let ids = walk(&env, query, 7, &mut || {});
        let unique: BTreeSet<&String> = ids.iter().collect();
        assert_eq!((ids.len(), unique.len()), (120, 120), "{query}");
    }
    let first = env.json(["search", "quokka marsupial sort:relevance total:exact", "--limit", "7"]);
    assert_eq!(first["metadata"]["results_total"], 120);
    let cursor = first["pagination"]["next_cursor"].text();
    let args = [
        "search",
        "quokka marsupial sort:relevance total:exact",
        "--limit",
        "7",
        "--cursor",
        cursor,
    ];
    assert_eq!(env.json(args)["metadata"]["results_total"], 120, "over all pages");
    let regex = env.json(["search", "/quokka/ sort:relevance", "--limit", "7"]);
    assert_eq!(regex["warnings"][0]["code"], "PARAMETER_IGNORED");
}

#[test]
fn a_search_that_is_out_of_time_says_what_it_found_and_goes_on() {
    let env = TestEnv::new();
    let logs = env.path("logs");
    for session in 0..40 {
        append(
            &logs,
            session,
            &prompt(session, session, &format!("needle {}", varied(session, 3000))),
        );
    }
    env.ingest(&logs);
    let tools = Tools::new(Store::new(env.store()));
    let args = |cursor| SearchArgs {
        query: "needle".to_owned(),
        limit: Some(50),
        cursor,
        ..SearchArgs::default()
    };
    let hasty = Call::new(Timestamp(0), &|| false).with_search_time(std::time::Duration::ZERO);
    let partial = tools.search_events(&args(None), &hasty).expect("a part of an answer");
    assert!(partial.data.matches.is_empty());
    assert_eq!(partial.metadata.results_total_is, Some("at_least"));
    let warning = &partial.warnings[0];
    assert_eq!(warning.code, schemas::envelope::WarningCode::ResultsTruncated);
    assert!(warning.message.contains("next_cursor"), "{warning:?}");
    let hint = partial.hint.expect("a hint");
    hint.shows("There may be more").lacks("Nothing matches");
    let cursor = partial.pagination.and_then(|page| page.next_cursor);
    assert!(cursor.is_some());
    let answer =
        tools.search_events(&args(cursor), &Call::new(Timestamp(0), &|| false)).expect("answers");
    assert_eq!(answer.data.matches.len(), 40, "the rest is found from there on");
    let stopped = tools.search_events(&args(None), &Call::new(Timestamp(0), &|| true));
    assert_eq!(stopped.expect_err("stopped").code, schemas::ErrorCode::Cancelled);
}
