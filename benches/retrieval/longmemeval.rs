//! Ranks the sessions of data in the shape of LongMemEval: `cargo xtask bench ranking DATA RANKING`.
//!
//! Each question brings its own sessions:
//!
//! ```text
//! [{"question_id": "a1", "question": "...", "answer_session_ids": ["s7"],
//!   "haystack_session_ids": ["s1", ...], "haystack_dates": ["2023/05/20 (Sat) 02:21", ...],
//!   "haystack_sessions": [[{"role": "user", "content": "..."}, ...], ...]}]
//! ```

use std::collections::{BTreeMap, HashMap};
use std::path::Path;

use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use serde::Deserialize;

use super::ranks::{self, Ranks};
use super::{ask, ingest, print_times, write_log};

#[derive(Deserialize)]
struct HaystackQuestion {
    question_id: String,
    #[serde(default)]
    question_type: String,
    question: String,
    #[serde(default)]
    answer_session_ids: Vec<String>,
    haystack_session_ids: Vec<String>,
    haystack_dates: Vec<String>,
    haystack_sessions: Vec<Vec<Turn>>,
}

#[derive(Deserialize)]
struct Turn {
    role: String,
    content: String,
}

/// Ranks the sessions of each question of the file `data`, and writes the ids to the file `written`, best
/// first: `{"question id": ["session id", ...]}`. Prints how often they answer it, if the data says so.
pub(super) fn run(data: &Path, written: &Path) {
    let json = std::fs::read(data).expect("the file of questions");
    let questions: Vec<HaystackQuestion> = serde_json::from_slice(&json).expect("questions");
    let mut ranking: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    let mut by_type: BTreeMap<&str, Vec<Ranks>> = BTreeMap::new();
    for question in &questions {
        let (found, seconds) = rank(question);
        let ranks = Ranks { seconds, ..Ranks::of(&question.answer_session_ids, &found) };
        // Questions without an answer say nothing about a ranking.
        if !question.answer_session_ids.is_empty() {
            by_type.entry(&question.question_type).or_default().push(ranks);
        }
        ranking.insert(&question.question_id, found);
    }
    let json = serde_json::to_vec_pretty(&ranking).expect("JSON");
    std::fs::write(written, json).expect("the file of the ranking");

    ranks::print_head();
    for (name, ranks) in &by_type {
        ranks::print_row(name, &ranks.iter().collect::<Vec<_>>());
    }
    let all: Vec<&Ranks> = by_type.values().flatten().collect();
    ranks::print_row("all", &all);
    if !all.is_empty() {
        print_times(all.iter().map(|ranks| ranks.seconds));
    }
}

/// Ranks two invented questions, and checks what is written.
pub(super) fn check() {
    let dir = tempfile::tempdir().expect("tempdir");
    let written = dir.path().join("ranking.json");
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/retrieval/longmemeval.json");
    run(&data, &written);
    let json = std::fs::read(&written).expect("the ranking");
    let ranking: BTreeMap<String, Vec<String>> = serde_json::from_slice(&json).expect("a ranking");
    assert_eq!(ranking["lamp"].first().map(String::as_str), Some("harbour/2"));
    assert!(ranking["never"].is_empty());
}

/// Returns the ids of the sessions of a question, best first, and the seconds that the search took.
fn rank(question: &HaystackQuestion) -> (Vec<String>, f64) {
    let dir = tempfile::tempdir().expect("tempdir");
    let logs = dir.path().join("logs");
    std::fs::create_dir_all(&logs).expect("a folder");
    // Some ids are no names of files.
    let mut id_of: HashMap<String, &str> = HashMap::new();
    let sessions = question.haystack_session_ids.iter().zip(&question.haystack_dates);
    for (number, ((id, date), turns)) in sessions.zip(&question.haystack_sessions).enumerate() {
        let name = format!("h{number:04}");
        let said = turns.iter().map(|turn| (turn.role == "user", turn.content.clone()));
        write_log(&logs, &name, "/haystack", &parse_date(date), said);
        id_of.insert(name, id);
    }
    let snapshot = ingest(&logs, &dir.path().join("store"));
    let (results, seconds) = ask(&snapshot, &question.question, None);
    let names = results.sessions.iter().map(|found| snapshot.sessions()[found.session].native_id());
    (names.map(|name| id_of[name].to_owned()).collect(), seconds)
}

/// Parses a date such as `2023/05/20 (Sat) 02:21`.
fn parse_date(written: &str) -> String {
    let parts: Vec<&str> = written.split(' ').collect();
    let [day, .., time] = parts[..] else { panic!("{written} is no date") };
    let time = DateTime::strptime("%Y/%m/%d %H:%M", format!("{day} {time}")).expect(written);
    time.to_zoned(TimeZone::UTC).expect(written).timestamp().to_string()
}
