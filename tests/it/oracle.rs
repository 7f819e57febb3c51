//! Search finds exactly what a plain scan of every text finds.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt::Write as _;

use memchr::memmem::Finder;
use schemas::tool::search::SearchArgs;
use search::{COUNTED_ROWS, Query, SearchHit, SearchRequest, SearchWork, search};
use serde_json::Value;
use store::{Snapshot, Store};
use tools::{Call, Tools};

use crate::checks::JsonChecks;
use crate::env::{Random, TestEnv, real_logs};
use crate::rounds::rounds;

struct Row {
    /// Its place in the order of results: newest first, then by session, then latest first.
    order: (Reverse<Option<i64>>, String, Reverse<u32>),
    text: String,
}

/// Every event that is no copy, with its text as the store holds it.
fn rows(env: &TestEnv) -> Vec<Row> {
    let store = Store::new(env.store());
    let snapshot = store.take_snapshot().expect("snapshot");
    let mut rows = Vec::new();
    for segment in
        snapshot.segments().iter().filter(|segment| segment.entry.file_entry("events").is_some())
    {
        let spans: Vec<_> = segment
            .spans
            .iter()
            .map(|s| store::RowSpan { start: s.start, count: s.count })
            .collect();
        let reader = store::EventReader::open(segment, &spans, &[], 4096).expect("opens");
        for row in reader.read_rows().expect("reads").into_iter().filter(|row| !row.is_replay) {
            let order = (Reverse(row.timestamp), row.session_id, Reverse(row.event_index as u32));
            rows.push(Row { order, text: row.text });
        }
    }
    rows.sort_by(|a, b| a.order.cmp(&b.order));
    rows
}

/// The definition of case-insensitive, written down a second time.
fn fold(text: &str) -> String {
    let single = |chars: &mut dyn Iterator<Item = char>| {
        let chars: Vec<char> = chars.collect();
        if let [single] = chars[..] { Some(single) } else { None }
    };
    let lower = |c: char| single(&mut c.to_lowercase()).filter(|c| !c.is_ascii());
    let one = |c: char| match c {
        c if c.is_ascii() => c.to_ascii_lowercase(),
        c => single(&mut c.to_uppercase()).and_then(lower).or_else(|| lower(c)).unwrap_or(c),
    };
    text.chars().map(one).collect()
}

/// Ids of all events that a query finds, over all pages.
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
            tools.search_events(&args, &call).unwrap_or_else(|error| panic!("{query:?}: {error}"));
        for hit in &answer.data.matches {
            assert!(ids.insert(hit.event_id.clone()), "{query:?} gives {} twice", hit.event_id);
        }
        cursor = answer.pagination.and_then(|page| page.next_cursor);
        if cursor.is_none() {
            return ids;
        }
    }
}

/// Matches of which the order is compared; the others are counted.
const COMPARED: usize = 1000;

/// How many events a query finds and where the first `limit` of them stand; what it looked at.
fn found_at_once(
    snapshot: &Snapshot,
    query: &str,
    limit: usize,
) -> ((usize, Vec<(String, u32)>), SearchWork) {
    let parsed = Query::parse(query, schemas::Timestamp(0)).expect("parses");
    let request = SearchRequest {
        query: &parsed,
        sessions: None,
        event_types: Vec::new(),
        since: None,
        limit,
        one_per_session: false,
        after: None,
        counted_rows: COUNTED_ROWS,
        deadline: None,
    };
    let found = search(snapshot, &request, &|| false).expect("finds");
    assert!(found.is_complete, "{query:?}");
    let place =
        |hit: &SearchHit| (snapshot.sessions()[hit.session].session_id.clone(), hit.event_index);
    ((found.matched, found.hits.iter().map(place).collect()), found.work)
}

fn nfc(text: &str) -> String {
    unicode_normalization::UnicodeNormalization::nfc(text).collect()
}

/// Draws `drawn` needles of 1 to 40 characters from the texts and makes `absent` that are hardly
/// anywhere, and compares the search for each with a plain scan of every text.
fn check(env: &TestEnv, drawn: usize, absent: usize, seed: u64) {
    let rows = rows(env);
    let folded: Vec<String> = rows.iter().map(|row| fold(&row.text)).collect();
    let composed: Vec<Option<String>> = rows
        .iter()
        .map(|row| Some(nfc(&row.text)).filter(|form| *form != row.text).map(|form| fold(&form)))
        .collect();
    let snapshot = Store::new(env.store()).take_snapshot().expect("snapshot");
    let mut random = Random(seed);
    let mut needles = Vec::new();
    while needles.len() < drawn + absent {
        let text = &rows[random.below(rows.len())].text;
        let from = text.floor_char_boundary(random.below(text.len()));
        let mut needle: String = text[from..].chars().take(1 + random.below(40)).collect();
        match random.below(6) {
            0 | 1 => needle = needle.to_uppercase(),
            2 => needle = needle.to_lowercase(),
            _ => {}
        }
        if needles.len() >= drawn {
            let at = needle.floor_char_boundary(random.below(needle.len()));
            needle.insert_str(at, ["zq\u{1f9ff}", "qzx", "0q9Z", "~^"][random.below(4)]);
        }
        // An empty phrase is no needle.
        if !needle.is_empty() {
            needles.push(needle);
        }
    }
    let compare = |needle: &String| {
        let written = fold(needle);
        let other = (!needle.is_ascii()).then(|| fold(&nfc(needle)));
        let (written, other) = (Finder::new(&written), other.as_ref().map(Finder::new));
        let holds = |at: &usize| {
            let form = composed[*at].as_ref().unwrap_or(&folded[*at]);
            written.find(folded[*at].as_bytes()).is_some()
                || other.as_ref().is_some_and(|other| other.find(form.as_bytes()).is_some())
        };
        let want: Vec<usize> = (0..rows.len()).filter(holds).collect();
        let place = |at: &usize| (rows[*at].order.1.clone(), rows[*at].order.2.0);
        let first: Vec<_> = want.iter().take(COMPARED).map(place).collect();
        let needle = needle.replace('\\', "\\\\").replace('"', "\\\"");
        let query = format!("\"{needle}\" total:exact");
        assert_eq!(found_at_once(&snapshot, &query, COMPARED).0, (want.len(), first), "{needle:?}");
    };
    let half = needles.len() / 2;
    std::thread::scope(|scope| {
        scope.spawn(|| needles[half..].iter().for_each(compare));
        needles[..half].iter().for_each(compare);
    });
}

#[test]
fn samples_equal_the_naive_scan() {
    check(&TestEnv::with_samples(), 1000, 200, 11);
}

/// `SESSIONS_TEST_ROUNDS=1000` looks for ten times as many, which takes minutes when built without
/// optimisation.
#[test]
fn real_logs_equal_the_naive_scan() {
    let Some(logs) = real_logs() else { return };
    let needles = rounds(250);
    check(&TestEnv::with_real_logs(&logs), needles - needles / 5, needles / 5, 12);
}

/// Makes queries of words that are frequent or not and of parts of them, with `OR`, exclusions and
/// phrases, and compares what they find with a scan of every text.
fn check_combined(env: &TestEnv, queries: usize, seed: u64) {
    let rows = rows(env);
    let folded: Vec<String> = rows.iter().map(|row| fold(&row.text)).collect();
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for text in &folded {
        let words: BTreeSet<&str> = text
            .split(|c: char| !c.is_ascii_alphanumeric())
            .filter(|word| word.len() > 2)
            .collect();
        for word in words {
            *counts.entry(word).or_default() += 1;
        }
    }
    let mut words: Vec<_> = counts.into_iter().collect();
    words.sort_by_key(|(_, count)| Reverse(*count));
    let snapshot = Store::new(env.store()).take_snapshot().expect("snapshot");
    let mut random = Random(seed);
    let mut without_text = 0;
    // Queries share most of their terms.
    let mut rows_with: HashMap<String, Vec<bool>> = HashMap::new();
    for _ in 0..queries {
        let mut query = String::new();
        let mut clauses: Vec<(bool, Vec<String>)> = Vec::new();
        for at in 0..1 + random.below(4) {
            // Mostly of the hundred most frequent.
            let among = [100, 100, 2000, usize::MAX][random.below(4)].min(words.len());
            let mut word = || {
                let word = words[random.below(among)].0;
                let (from, end) = match random.below(3) {
                    0 => (random.below(word.len() - 2), word.len() - random.below(2)),
                    _ => (0, word.len()),
                };
                word[from..end.max(from + 2)].to_owned()
            };
            let (one, other) = (word(), word());
            let (excluded, any) = match random.below(5) {
                0 if at > 0 => (true, vec![one]),
                1 => (false, vec![one, other]),
                2 => (false, vec![format!("{one} {other}")]),
                _ => (false, vec![one]),
            };
            let quoted: Vec<_> = any.iter().map(|term| format!("\"{term}\"")).collect();
            let sign = if excluded { "-" } else { "" };
            write!(query, "{sign}{} ", quoted.join(" OR ")).expect("a string");
            clauses.push((excluded, any));
        }
        query.push_str("total:exact");
        for term in clauses.iter().flat_map(|(_, any)| any) {
            if !rows_with.contains_key(term) {
                let finder = Finder::new(term);
                let has_term = |text: &String| finder.find(text.as_bytes()).is_some();
                rows_with.insert(term.clone(), folded.iter().map(has_term).collect());
            }
        }
        let holds = |row: &usize| {
            let clause = |(excluded, any): &(bool, Vec<String>)| {
                any.iter().any(|term| rows_with[term][*row]) != *excluded
            };
            clauses.iter().all(clause)
        };
        let want: Vec<usize> = (0..rows.len()).filter(holds).collect();
        let mut places: Vec<_> = want
            .iter()
            .take(COMPARED)
            .map(|row| (rows[*row].order.1.clone(), rows[*row].order.2.0))
            .collect();
        let (found, work) = found_at_once(&snapshot, &query, COMPARED);
        assert_eq!(found, (want.len(), places.clone()), "{query}");
        // What is not shown is counted by the index alone, where it can be.
        places.truncate(3);
        assert_eq!(found_at_once(&snapshot, &query, 3).0, (want.len(), places), "{query}");
        without_text += usize::from(!want.is_empty() && work.pages * 2 < work.candidate_blocks);
    }
    // Phrases, digits and runs of two letters need a scan.
    assert!(without_text * 6 > queries, "{without_text} of {queries} needed little text");
}

#[test]
fn frequent_words_combined_equal_the_naive_scan() {
    let env = TestEnv::new();
    let logs = env.path("logs");
    let mut random = Random(5);
    for session in 0..200 {
        let line = |number: usize| {
            let words = (0..150).map(|_| match random.below(3) {
                0 => format!("{:07x}", random.below(usize::MAX) & 0xfff_ffff),
                _ => {
                    let number = random.below(20) * random.below(20);
                    let letter = |n: usize| char::from(b'a' + (n % 26) as u8);
                    [letter(number), letter(number / 7 + 3), letter(number / 26 + 9), 's']
                        .iter()
                        .collect()
                }
            });
            crate::work::prompt(session, number, &words.collect::<Vec<_>>().join(" "))
        };
        crate::work::append(&logs, session, &(0..12).map(line).collect::<String>());
    }
    env.ingest(&logs);
    check_combined(&env, 300, 7);
}

#[test]
fn real_words_combined_equal_the_naive_scan() {
    let Some(logs) = real_logs() else { return };
    check_combined(&TestEnv::with_real_logs(&logs), rounds(150), 8);
}

#[test]
fn order_is_newest_first_and_totals_are_never_wrong() {
    let env = TestEnv::with_samples();
    for query in ["budget", "a", "the retry", "\"budget is\"", "retry -budget", "tool:Bash cargo"] {
        let page = env.json(["search", query, "--limit", "50"]);
        let matches = page["data"]["matches"].list();
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
