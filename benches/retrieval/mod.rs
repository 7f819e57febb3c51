//! Measures how often a half-remembered question finds its session: `cargo xtask bench retrieval`.
//!
//! The first argument is the LoCoMo file, or a folder with one file per conversation. It can also be
//! a list of questions about logs of your own; then the second argument is the folder of the logs:
//!
//! ```text
//! [{"q": "which chat was it where we fixed the retry budget", "gold": ["3f9a..."]}]
//! ```

mod coding;
mod events;
mod locomo;
mod longmemeval;
mod ranks;

use std::collections::HashSet;
use std::fmt::Write;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use search::{SessionQuestion, SessionRequest, SessionResults, search_sessions};
use serde::Deserialize;
use serde_json::json;
use store::{Snapshot, Store};

use self::ranks::Ranks;
use crate::measure::{self, Times};

/// Sessions of an answer that are examined.
const RANKED: usize = 10;

/// A question and the sessions that answer it.
#[derive(Deserialize)]
struct Question {
    #[serde(rename = "q")]
    text: String,
    gold: Vec<String>,
    /// Ids of the events that answer it.
    #[serde(default)]
    events: Vec<String>,
    /// The conversation that has the answer; empty if there is one collection only.
    #[serde(default)]
    conversation: String,
}

/// Runs the benchmark of public coding logs.
pub(crate) fn run_coding(arguments: &[String]) {
    let dir = tempfile::tempdir().expect("tempdir");
    coding::run(arguments, dir.path());
}

/// Ranks sessions of data in the shape of LongMemEval.
pub(crate) fn run_ranking(arguments: &[String]) {
    match arguments {
        [data, written] => longmemeval::run(Path::new(data), Path::new(written)),
        [] => longmemeval::check(),
        _ => panic!(
            "usage: bench ranking DATA RANKING, or bench ranking for a check of invented data"
        ),
    }
}

/// Runs the benchmark that the arguments name.
pub(crate) fn run(arguments: &[String]) {
    let dir = tempfile::tempdir().expect("tempdir");
    match arguments {
        [file] => {
            let logs = dir.path().join("logs");
            let questions = locomo::convert(Path::new(file), &logs);
            measure_locomo(&questions, &logs, dir.path());
        }
        [file, logs] => {
            let json = std::fs::read(file).expect("the file of questions");
            let questions: Vec<Question> = serde_json::from_slice(&json).expect("questions");
            measure_questions(&questions, Path::new(logs), dir.path());
        }
        _ => {
            panic!("usage: bench retrieval LOCOMO_FILE_OR_FOLDER | bench retrieval QUESTIONS LOGS")
        }
    }
}

/// Prints the results on LoCoMo: each conversation alone, and all in one.
fn measure_locomo(questions: &[Question], logs: &Path, dir: &Path) {
    let snapshot = ingest(logs, &dir.join("store"));
    let alone: Vec<Ranks> = questions
        .iter()
        .map(|question| rank_gold(&snapshot, question, Some(&question.conversation)))
        .collect();
    let pooled: Vec<Ranks> =
        questions.iter().map(|question| rank_gold(&snapshot, question, None)).collect();
    let select = |is_tuned: bool| -> Vec<&Ranks> {
        let asked = alone.iter().zip(questions);
        let of_kind = asked.filter(|(_, question)| {
            locomo::TUNED.contains(&question.conversation.as_str()) == is_tuned
        });
        of_kind.map(|(ranks, _)| ranks).collect()
    };

    println!("\n{} sessions, {} questions\n", snapshot.sessions().len(), questions.len());
    ranks::print_head();
    ranks::print_row("LoCoMo 26 and 30 (constants tuned on these)", &select(true));
    ranks::print_row("LoCoMo, the other conversations", &select(false));
    ranks::print_row("LoCoMo, every conversation alone", &alone.iter().collect::<Vec<_>>());
    ranks::print_row("LoCoMo, all conversations in one store", &pooled.iter().collect::<Vec<_>>());
    print_control(questions, dir);
    println!("\n{}", locomo::PUBLISHED);
    print_times(pooled.iter().map(|ranks| ranks.seconds));
    events::print_recall(&snapshot, questions);
}

/// Prints the results of questions about a folder of logs.
fn measure_questions(questions: &[Question], logs: &Path, dir: &Path) {
    let snapshot = ingest(logs, &dir.join("store"));
    let found: Vec<Ranks> =
        questions.iter().map(|question| rank_gold(&snapshot, question, None)).collect();
    println!("\n{} sessions, {} questions\n", snapshot.sessions().len(), questions.len());
    ranks::print_head();
    ranks::print_row("questions about these logs", &found.iter().collect::<Vec<_>>());
    print_control(questions, dir);
    print_times(found.iter().map(|ranks| ranks.seconds));
}

/// Asks an empty store, in which nothing must be found.
fn print_control(questions: &[Question], dir: &Path) {
    let empty = Store::new(dir.join("empty")).take_snapshot().expect("snapshot");
    let found: Vec<Ranks> =
        questions.iter().map(|question| rank_gold(&empty, question, None)).collect();
    ranks::print_row("control: an empty store", &found.iter().collect::<Vec<_>>());
}

fn print_times(seconds: impl Iterator<Item = f64>) {
    let times = Times::of(seconds);
    println!("\none question: p50 {:.2} ms, p99 {:.2} ms", times.p50, times.p99);
}

/// Writes a session as a log in our line format. Each text of it is by the user if the flag is true, else
/// by the agent.
fn write_log(
    logs: &Path,
    id: &str,
    cwd: &str,
    time: &str,
    said: impl Iterator<Item = (bool, String)>,
) {
    let header = json!({
        "format": "sessions",
        "version": 1,
        "session_id": id,
        "cwd": cwd,
        "timestamp": time,
    });
    let mut lines = format!("{header}\n");
    for (is_user, text) in said {
        let event_type = if is_user { "user" } else { "message" };
        let event = json!({ "type": event_type, "timestamp": time, "text": text });
        writeln!(lines, "{event}").expect("a string");
    }
    std::fs::write(logs.join(format!("{id}.jsonl")), lines).expect("a log");
}

/// Ingests a folder of logs into a new store.
fn ingest(logs: &Path, dir: &Path) -> Arc<Snapshot> {
    measure::command(&["--json", "ingest", &logs.to_string_lossy()], dir);
    Store::new(dir).take_snapshot().expect("snapshot")
}

/// Returns the positions of the sessions of a conversation.
fn sessions_of(snapshot: &Snapshot, conversation: &str) -> HashSet<usize> {
    let rows = snapshot.sessions().iter().enumerate();
    let found = rows.filter(|(_, row)| row.origin.project.as_deref() == Some(conversation));
    found.map(|(position, _)| position).collect()
}

/// Asks a question, of one conversation or of all, and finds its sessions in the answer.
fn rank_gold(snapshot: &Snapshot, question: &Question, conversation: Option<&str>) -> Ranks {
    let (results, seconds) =
        ask(snapshot, &question.text, conversation.map(|name| sessions_of(snapshot, name)));
    let position_of = |gold: &String| {
        results.sessions.iter().position(|found| {
            let row = &snapshot.sessions()[found.session];
            let file = Path::new(&row.source_path).file_stem();
            row.session_id == *gold || file.is_some_and(|file| file == gold.as_str())
        })
    };
    Ranks { of_gold: question.gold.iter().map(position_of).collect(), seconds }
}

/// Asks a question of some sessions, given by position, or of all. Returns the seconds that it took, too.
fn ask(
    snapshot: &Snapshot,
    question: &str,
    sessions: Option<HashSet<usize>>,
) -> (SessionResults, f64) {
    let start = Instant::now();
    let parsed = SessionQuestion::parse_naming(snapshot, question);
    let request = SessionRequest {
        question: &parsed,
        sessions,
        limit: RANKED,
        after: None,
        until: None,
        continues_passages: false,
        deadline: start + Duration::from_secs(60),
    };
    let results = search_sessions(snapshot, &request, &|| false).expect("finds");
    (results, start.elapsed().as_secs_f64())
}
