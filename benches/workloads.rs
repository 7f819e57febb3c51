//! The workloads that are measured, and the answers that they must give.

use schemas::EventType;
use schemas::Timestamp;
use schemas::tool::OneOrMany;
use schemas::tool::analyze::AnalyzeArgs;
use schemas::tool::details::{DetailArgs, DetailLevel};
use schemas::tool::event::EventArgs;
use schemas::tool::find::FindArgs;
use schemas::tool::list::ListArgs;
use schemas::tool::search::SearchArgs;
use tools::{Call, Tools};

use crate::corpus::{self, Corpus};

/// A search with its baselines and its expected answer.
pub(crate) struct Workload {
    pub name: &'static str,
    pub args: SearchArgs,
    /// The pattern that `rg` searches for comparison.
    pub rg: Option<String>,
    /// The text that a naive scan searches for comparison.
    pub needle: Option<&'static str>,
    expect: Expect,
}

/// The expected first page.
enum Expect {
    /// This many matches over all pages.
    Total(usize),
    /// A full page.
    Full,
    /// The planted answer among the first two.
    Answer,
}

impl Workload {
    /// Runs the search and asserts its answer.
    pub(crate) fn check(&self, tools: &Tools) {
        let answer =
            tools.search_events(&self.args, &Call::new(Timestamp(0), &|| false)).expect("answers");
        let limit = self.args.limit.unwrap_or(10) as usize;
        match self.expect {
            Expect::Total(total) => {
                assert_eq!(answer.data.matches.len(), total.min(limit), "{}", self.name);
                let counted = answer.metadata.results_total.unwrap_or(0);
                let exact = answer.metadata.results_total_is.is_none();
                assert!(counted == total || !exact && counted < total, "{}: {counted}", self.name);
            }
            Expect::Full => assert_eq!(answer.data.matches.len(), limit, "{}", self.name),
            Expect::Answer => {
                let found = answer.data.matches.iter().take(2);
                let snippets: Vec<_> = found.map(|found| found.snippet.as_str()).collect();
                assert!(snippets.iter().all(|text| text.contains("flumox")), "{snippets:?}");
            }
        }
    }
}

fn query(query: &str) -> SearchArgs {
    SearchArgs { query: query.to_owned(), limit: Some(10), ..SearchArgs::default() }
}

/// Returns the searches, each of another kind.
pub(crate) fn workloads(corpus: &Corpus, tools: &Tools) -> Vec<Workload> {
    let simple = |name, text: &'static str, expect| Workload {
        name,
        args: query(text),
        rg: Some(text.trim_matches('"').replace(" total:exact", "")),
        needle: Some(text).filter(|text| !text.contains([' ', '/', '"'])),
        expect,
    };
    let regex = |name, pattern: &str, expect| Workload {
        name,
        args: query(&format!("/{pattern}/")),
        rg: Some(pattern.to_owned()),
        needle: None,
        expect,
    };
    let phrase: &'static str = "\"lazy proxy quorum\"";
    assert!(phrase.contains(corpus::PHRASE));
    let first = Workload {
        args: SearchArgs { limit: Some(50), ..query("error") },
        ..simple("", "error", Expect::Full)
    };
    let page = tools.search_events(&query("error"), &Call::new(Timestamp(0), &|| false));
    let cursor = page.expect("answers").pagination.and_then(|page| page.next_cursor);
    let second = SearchArgs { cursor, ..query("error") };
    vec![
        simple("absent word", "zebraabsentzebra", Expect::Total(0)),
        simple("rare word", corpus::RARE_WORD, Expect::Total(corpus.rare_words)),
        simple("word beyond ASCII", corpus::FOREIGN_WORD, Expect::Total(corpus.foreign_words)),
        simple("common word, first page", "error", Expect::Full),
        Workload { name: "common word, page of 50", ..first },
        Workload { args: second, ..simple("common word, page 2", "error", Expect::Full) },
        simple("common word, exact total", "error total:exact", Expect::Full),
        Workload {
            rg: Some("error".to_owned()),
            needle: None,
            ..simple(
                "one common word without another, exact total",
                "error -file total:exact",
                Expect::Full,
            )
        },
        Workload {
            needle: Some("tion"),
            ..simple("part of common words, exact total", "tion total:exact", Expect::Full)
        },
        simple("phrase", phrase, Expect::Total(corpus.phrases)),
        Workload {
            rg: Some(corpus::TOGETHER.join("|")),
            needle: None,
            ..simple(
                "three words (`rg`: any of them)",
                "jitter quota frozen",
                Expect::Total(corpus.together),
            )
        },
        Workload {
            rg: Some(corpus::TOGETHER.join("|")),
            needle: None,
            ..simple("one of three words", "jitter OR quota OR frozen", Expect::Full)
        },
        regex("regex with literals", corpus::ERROR_ID, Expect::Total(corpus.error_ids)),
        regex("regex without three letters in a row", "@@[0-9]{3}[g-z]{2}", Expect::Total(0)),
        Workload {
            args: SearchArgs {
                event_type: Some(OneOrMany::Many(vec![EventType::User])),
                ..query("error")
            },
            ..simple("word in prompts only", "error", Expect::Full)
        },
        Workload {
            args: query("error is:error tool:Bash"),
            ..simple("word in failed commands", "error", Expect::Full)
        },
        simple("one byte", "q", Expect::Full),
        Workload {
            rg: Some("flumox|cache|poison|widget|ledger|restart".to_owned()),
            needle: None,
            args: query(&format!("{} sort:relevance", corpus::QUESTION)),
            ..simple("question, ranked (`rg`: any of its words)", "", Expect::Answer)
        },
    ]
}

/// A name and a call of another tool, which asserts its answer.
type Other = (&'static str, Box<dyn Fn(&Tools)>);

/// Returns calls of the tools that read one session or list many.
pub(crate) fn others(corpus: &Corpus) -> Vec<Other> {
    let session = Corpus::session_id(3);
    let event = EventArgs { event_ids: vec![format!("{session}:10")], ..EventArgs::default() };
    let list = ListArgs { limit: Some(100), ..ListArgs::default() };
    let sessions = corpus.sessions.min(100);
    let level = |level| DetailArgs {
        session_id: session.clone(),
        detail_level: Some(level),
        ..DetailArgs::default()
    };
    let (summary, turns) = (level(DetailLevel::Summary), level(DetailLevel::Turns));
    let whole = AnalyzeArgs { session_id: Some(session.clone()), ..AnalyzeArgs::default() };
    let question = FindArgs { query: corpus::QUESTION.to_owned(), ..FindArgs::default() };
    vec![
        (
            "sessions of a question",
            Box::new(move |tools: &Tools| {
                let answer = tools.search_sessions(&question, &Call::new(Timestamp(0), &|| false));
                assert!(!answer.expect("answers").data.sessions.is_empty());
            }),
        ),
        (
            "session analysis",
            Box::new(move |tools: &Tools| {
                assert!(tools.analyze_session(&whole, &Call::new(Timestamp(0), &|| false)).is_ok());
            }),
        ),
        (
            "recurring errors of all sessions",
            Box::new(|tools: &Tools| {
                let all = AnalyzeArgs::default();
                assert!(tools.analyze_session(&all, &Call::new(Timestamp(0), &|| false)).is_ok());
            }),
        ),
        (
            "one event",
            Box::new(move |tools: &Tools| {
                let answer = tools.get_event_details(&event, &Call::new(Timestamp(0), &|| false));
                assert_eq!(answer.expect("answers").data.events.len(), 1);
            }),
        ),
        (
            "list of 100",
            Box::new(move |tools: &Tools| {
                let answer = tools.list_sessions(&list, &Call::new(Timestamp(0), &|| false));
                assert_eq!(answer.expect("answers").data.sessions.len(), sessions);
            }),
        ),
        (
            "session summary",
            Box::new(move |tools: &Tools| {
                assert!(
                    tools
                        .get_session_details(&summary, &Call::new(Timestamp(0), &|| false))
                        .is_ok()
                );
            }),
        ),
        (
            "session turns",
            Box::new(move |tools: &Tools| {
                let answer = tools.get_session_details(&turns, &Call::new(Timestamp(0), &|| false));
                assert!(
                    answer
                        .expect("answers")
                        .data
                        .turns
                        .as_ref()
                        .is_some_and(|turns| !turns.is_empty())
                );
            }),
        ),
    ]
}
