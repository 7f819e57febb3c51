//! Workloads by name, on a seeded corpus, each asserting its answer: `cargo xtask bench`.
//!
//! Recorded results lie in `benches/records/`; tests never measure time.

mod corpus;

use std::sync::LazyLock;

use divan::counter::BytesCount;
use schemas::Timestamp;
use schemas::tool::details::{DetailArgs, DetailLevel};
use schemas::tool::event::EventArgs;
use schemas::tool::list::ListArgs;
use schemas::tool::search::SearchArgs;
use sessions::store::Store;
use sessions::tools::{Call, Tools};

use crate::corpus::Corpus;

/// Large enough that a scan takes milliseconds, small enough to build in seconds.
const MEGABYTES: usize = 64;

static CORPUS: LazyLock<Corpus> = LazyLock::new(|| Corpus::generate(42, MEGABYTES << 20));

/// A store with the corpus in it, kept for the whole run.
static TOOLS: LazyLock<(tempfile::TempDir, Tools)> = LazyLock::new(|| {
    let dir = tempfile::tempdir().expect("tempdir");
    let store = Store::new(dir.path().join("store"));
    sessions::app::ingest(&store, &[CORPUS.path().to_owned()], &()).expect("ingests");
    (dir, Tools::new(store))
});

fn main() {
    divan::main();
}

fn call() -> Call<'static> {
    Call { now: Timestamp(0), stop: &|| false }
}

fn search(query: &str, limit: u32) -> usize {
    let args = SearchArgs { query: query.to_owned(), limit: Some(limit), ..SearchArgs::default() };
    TOOLS.1.search(&args, &call()).expect("answers").data.matches.len()
}

/// Reading everything once: decoding, columns, compression, disk.
#[divan::bench(sample_count = 5, sample_size = 1)]
fn first_ingest(bencher: divan::Bencher<'_, '_>) {
    LazyLock::force(&CORPUS);
    bencher
        .counter(BytesCount::new(CORPUS.bytes))
        .with_inputs(|| tempfile::tempdir().expect("tempdir"))
        .bench_values(|dir| {
            let store = Store::new(dir.path().join("store"));
            let report =
                sessions::app::ingest(&store, &[CORPUS.path().to_owned()], &()).expect("ingests");
            assert_eq!(report.bytes_read, CORPUS.bytes as u64);
            dir
        });
}

/// What every run after the first costs.
#[divan::bench(sample_count = 20, sample_size = 1)]
fn nothing_changed(bencher: divan::Bencher<'_, '_>) {
    LazyLock::force(&TOOLS);
    bencher.bench(|| {
        let report = sessions::app::ingest(TOOLS.1.store(), &[CORPUS.path().to_owned()], &())
            .expect("ingests");
        assert_eq!(report.bytes_read, 0);
    });
}

/// A word that is nowhere: every block has to be ruled out.
#[divan::bench]
fn absent_word(bencher: divan::Bencher<'_, '_>) {
    LazyLock::force(&TOOLS);
    bencher.bench(|| assert_eq!(search("zebra-absent-zebra", 10), 0));
}

/// A word planted once per session.
#[divan::bench]
fn rare_word(bencher: divan::Bencher<'_, '_>) {
    LazyLock::force(&TOOLS);
    bencher.bench(|| assert_eq!(search(corpus::PLANTED, 50), CORPUS.sessions.min(50)));
}

/// A word of every text: the first page should come from the newest events alone.
#[divan::bench]
fn common_word_first_page(bencher: divan::Bencher<'_, '_>) {
    LazyLock::force(&TOOLS);
    bencher.bench(|| assert_eq!(search("the", 10), 10));
}

/// Three words that must all occur.
#[divan::bench]
fn three_words(bencher: divan::Bencher<'_, '_>) {
    LazyLock::force(&TOOLS);
    bencher.bench(|| assert_eq!(search("error module request", 10), 10));
}

/// One event by its id.
#[divan::bench]
fn event_details(bencher: divan::Bencher<'_, '_>) {
    LazyLock::force(&TOOLS);
    let args = EventArgs {
        event_ids: vec![format!("{}:10", Corpus::session_id(3))],
        ..EventArgs::default()
    };
    bencher.bench(|| assert_eq!(TOOLS.1.event(&args).expect("answers").data.events.len(), 1));
}

/// A hundred sessions with their counts.
#[divan::bench]
fn list_hundred(bencher: divan::Bencher<'_, '_>) {
    LazyLock::force(&TOOLS);
    let args = ListArgs { limit: Some(100), ..ListArgs::default() };
    let want = CORPUS.sessions.min(100);
    bencher.bench(|| {
        assert_eq!(TOOLS.1.list(&args, &call()).expect("answers").data.sessions.len(), want)
    });
}

/// The turns of one session.
#[divan::bench]
fn session_turns(bencher: divan::Bencher<'_, '_>) {
    LazyLock::force(&TOOLS);
    let args = DetailArgs {
        session_id: Corpus::session_id(3),
        detail_level: Some(DetailLevel::Turns),
        ..DetailArgs::default()
    };
    bencher.bench(|| {
        assert!(
            TOOLS
                .1
                .details(&args)
                .expect("answers")
                .data
                .turns
                .is_some_and(|turns| !turns.is_empty())
        )
    });
}
