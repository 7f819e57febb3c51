//! Measures the retrieval of coding history on public logs: `cargo xtask bench coding`.
//!
//! `logs.tsv` lists the logs by repository, commit and path, `questions.jsonl` has the questions with their
//! answers. README.md says how they were made, and how another program is scored.

mod fetch;

use std::collections::{BTreeMap, HashSet};
use std::path::{Path, PathBuf};

use serde::Deserialize;
use store::Snapshot;

use self::fetch::PublicLog;
use super::ranks::{self, Ranks};
use super::{ask, ingest, print_times};

/// Where public repositories are fetched from, unless `--from` says otherwise.
const DEFAULT_SOURCE: &str = "https://github.com";

/// A question about the public logs.
#[derive(Deserialize)]
struct CodingQuestion {
    id: String,
    kind: Kind,
    #[serde(rename = "question")]
    text: String,
    /// The ids, as the agents write them, of the sessions that answer it; empty if none does.
    sessions: Vec<String>,
    /// Where the answer is.
    places: Vec<Place>,
}

/// A record of a log.
#[derive(Deserialize)]
struct Place {
    /// Path of the log below the folder of logs.
    log: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Kind {
    /// Paraphrased, as one remembers it weeks later.
    Remembered,
    /// Names an identifier of the log.
    Identifier,
    /// An error, and what got rid of it.
    Error,
    /// A decision that was changed later.
    Reversal,
    /// No session answers it.
    None,
}

/// For each question by its id, the ids of sessions, best first.
type Ranking = BTreeMap<String, Vec<String>>;

/// What the command line asks for.
#[derive(Default)]
struct Options {
    logs: Option<PathBuf>,
    source: Option<String>,
    scored: Option<PathBuf>,
    written: Option<PathBuf>,
}

impl Options {
    fn parse(arguments: &[String]) -> Self {
        let mut options = Self::default();
        for pair in arguments.chunks(2) {
            match pair {
                [flag, value] if flag == "--logs" => options.logs = Some(value.into()),
                [flag, value] if flag == "--from" => options.source = Some(value.clone()),
                [flag, value] if flag == "--score" => options.scored = Some(value.into()),
                [flag, value] if flag == "--write" => options.written = Some(value.into()),
                _ => panic!(
                    "usage: bench coding [--logs DIR] [--from URL] [--score RANKING] [--write RANKING]"
                ),
            }
        }
        options
    }
}

/// Scores the ranking of this program, or one that was written by another.
pub(crate) fn run(arguments: &[String], dir: &Path) {
    let options = Options::parse(arguments);
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/retrieval/coding");
    let mut questions = read_questions(&folder.join("questions.jsonl"));
    let listed = fetch::read_list(&folder.join("logs.tsv"));
    check_questions(&questions, &listed);

    let logs = options.logs.unwrap_or_else(|| {
        let source = options.source.as_deref().unwrap_or(DEFAULT_SOURCE);
        fetch::fetch_logs(&listed, source)
    });
    let missing = fetch::find_missing(&listed, &logs);
    print_missing(&listed, &missing);
    let asked = questions.len();
    questions.retain(|question| !question.places.iter().any(|place| missing.contains(&place.log)));
    println!("\n{} of {asked} questions are asked\n", questions.len());

    let ranking = match options.scored {
        Some(file) => read_ranking(&file),
        None => rank(&questions, &listed, &logs, dir),
    };
    if let Some(file) = options.written {
        let json = serde_json::to_vec_pretty(&ranking).expect("JSON");
        std::fs::write(&file, json).expect("the file of the ranking");
    }
    print_scores(&questions, &ranking);
}

fn read_questions(file: &Path) -> Vec<CodingQuestion> {
    let text = std::fs::read_to_string(file).expect("the questions");
    text.lines().map(|line| serde_json::from_str(line).expect(line)).collect()
}

/// Checks that the questions have ids of their own, and places in listed logs.
fn check_questions(questions: &[CodingQuestion], listed: &[PublicLog]) {
    let ids: HashSet<&str> = questions.iter().map(|question| question.id.as_str()).collect();
    assert_eq!(ids.len(), questions.len(), "the ids of questions are unique");
    let logs: HashSet<String> = listed.iter().map(PublicLog::place).collect();
    for question in questions {
        let has_answer = question.kind != Kind::None;
        assert_eq!(has_answer, !question.sessions.is_empty(), "the sessions of {}", question.id);
        assert_eq!(has_answer, !question.places.is_empty(), "the places of {}", question.id);
        assert!(question.places.iter().all(|place| logs.contains(&place.log)), "{}", question.id);
    }
}

fn read_ranking(file: &Path) -> Ranking {
    let json = std::fs::read(file).expect("the file of the ranking");
    serde_json::from_slice(&json).expect("a ranking: {\"question id\": [\"session id\", ...]}")
}

fn print_missing(listed: &[PublicLog], missing: &HashSet<String>) {
    println!("{} of {} logs are there", listed.len() - missing.len(), listed.len());
    let mut names: Vec<&String> = missing.iter().collect();
    names.sort();
    for name in names {
        println!("missing: {name}");
    }
}

/// Ranks the sessions of the listed logs for each question.
fn rank(questions: &[CodingQuestion], listed: &[PublicLog], logs: &Path, dir: &Path) -> Ranking {
    let only_listed = dir.join("logs");
    fetch::copy_logs(listed, logs, &only_listed);
    let snapshot = ingest(&only_listed, &dir.join("store"));
    println!("{} sessions\n", snapshot.sessions().len());
    let mut ranking = Ranking::new();
    let mut seconds = Vec::new();
    let (mut uncertain, mut uncertain_none) = (0, 0);
    for question in questions {
        let (results, taken) = ask(&snapshot, &question.text, None);
        seconds.push(taken);
        let found = results.sessions.iter().map(|found| native_id(&snapshot, found.session));
        ranking.insert(question.id.clone(), found.collect());
        if results.is_uncertain {
            uncertain += 1;
            uncertain_none += usize::from(question.kind == Kind::None);
        }
    }
    print_times(seconds.into_iter());
    println!(
        "{uncertain} answers say that they are uncertain, {uncertain_none} of them to questions"
    );
    println!("without an answer\n");
    ranking
}

fn native_id(snapshot: &Snapshot, session: usize) -> String {
    snapshot.sessions()[session].native_id().to_owned()
}

/// Prints how often the sessions of each kind of question are among the first ones, and how often nothing
/// is found.
fn print_scores(questions: &[CodingQuestion], ranking: &Ranking) {
    let found =
        |question: &CodingQuestion| ranking.get(&question.id).map_or(&[][..], Vec::as_slice);
    let ranks_of = |kind: Option<Kind>| -> Vec<Ranks> {
        let of_kind = questions.iter().filter(|question| {
            question.kind != Kind::None && kind.is_none_or(|kind| question.kind == kind)
        });
        of_kind.map(|question| Ranks::of(&question.sessions, found(question))).collect()
    };
    let print =
        |name: &str, found: Vec<Ranks>| ranks::print_row(name, &found.iter().collect::<Vec<_>>());
    ranks::print_head();
    for kind in [Kind::Remembered, Kind::Identifier, Kind::Error, Kind::Reversal] {
        print(&format!("{kind:?}").to_lowercase(), ranks_of(Some(kind)));
    }
    print("all with an answer", ranks_of(None));

    let (mut without_answer, mut said) = (0, 0);
    let (mut with_answer, mut denied) = (0, 0);
    for question in questions {
        let is_empty = usize::from(found(question).is_empty());
        if question.kind == Kind::None {
            without_answer += 1;
            said += is_empty;
        } else {
            with_answer += 1;
            denied += is_empty;
        }
    }
    println!("\nnothing was found for {said} of {without_answer} questions without an answer,");
    println!("and for {denied} of {with_answer} with one");
}
