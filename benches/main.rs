//! Runs named workloads on generated logs and asserts their answers: `cargo xtask bench [GB]...`;
//! `cargo xtask bench retrieval` and `bench coding` measure what is found instead, and `cargo xtask
//! bench hooks` what hooks say.
//!
//! Prints a table for `benches/records/`. Each search is listed next to its baselines from the same
//! run: `rg` over the same raw files, and plain `memmem` over all text in memory.

#![expect(clippy::print_stdout, reason = "a bench prints its figures")]

mod corpus;
mod hooks;
mod measure;
mod retrieval;
mod workloads;
mod worst;

use std::path::Path;

use schemas::Timestamp;
use schemas::table::EventColumn;
use search::{COUNTED_ROWS, Query, SearchRequest, search};
use store::{EventReader, RowSpan, Store};
use tools::Tools;

use crate::corpus::Corpus;
use crate::corpus::agents::AGENTS;
use crate::measure::{Server, Times, rg, seconds};
use crate::workloads::{Workload, workloads};

/// The seed of the generated logs, which are the same in every run.
const SEED: u64 = 42;

/// Gigabytes of logs if the command line gives no size.
const DEFAULT_GB: f64 = 0.1;

/// Number of cold processes for each search.
const COLD_RUNS: usize = 7;

/// Most bytes of logs of another agent: they are next to the others on the disk.
const MAX_AGENT_BYTES: u64 = 1_000_000_000;

/// What cargo adds to the arguments.
const CARGO_FLAG: &str = "--bench";

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|arg| arg != CARGO_FLAG).collect();
    match arguments.split_first() {
        Some((name, rest)) if name == "retrieval" => return retrieval::run(rest),
        Some((name, rest)) if name == "coding" => return retrieval::run_coding(rest),
        Some((name, rest)) if name == "ranking" => return retrieval::run_ranking(rest),
        Some((name, rest)) if name == "hooks" => return hooks::run(rest),
        Some(_) | None => {}
    }
    let sizes: Vec<f64> = arguments.iter().filter_map(|arg| arg.parse().ok()).collect();
    let sizes = if sizes.is_empty() { vec![DEFAULT_GB] } else { sizes };
    for size in sizes {
        run(size);
    }
    let dir = tempfile::tempdir().expect("tempdir");
    worst::run(dir.path());
}

/// Generates, ingests and measures. Removes everything at the end.
fn run(gigabytes: f64) {
    let dir = tempfile::tempdir().expect("tempdir");
    let (logs, store) = (dir.path().join("logs"), dir.path().join("store"));
    let corpus = Corpus::generate(&logs, SEED, (gigabytes * 1e9) as u64).expect("generates");
    println!("\n## {gigabytes} GB of logs: {} sessions\n", corpus.sessions);
    ingest(&corpus, &logs, &store);
    agents(dir.path(), ((gigabytes * 1e9) as u64).min(MAX_AGENT_BYTES));
    searches(&corpus, &logs, &store);
    others(&corpus, &store);
}

/// Measures a first ingest and a second one that finds nothing to do, each in a process of its own.
fn ingest(corpus: &Corpus, logs: &Path, store: &Path) {
    let logs = logs.to_string_lossy();
    let first = measure::command(&["--json", "ingest", &logs], store);
    assert_eq!(first.json["bytes_read"], corpus.bytes, "every byte is read once");
    assert_eq!(first.json["files"], corpus.sessions);
    let again: Vec<_> =
        (0..5).map(|_| measure::command(&["--json", "ingest", &logs], store)).collect();
    assert!(again.iter().all(|ran| ran.json["bytes_read"] == 0));
    let bytes = measure::bytes_below(store);
    let skip = measure::bytes_of(store, "skip.idx");
    let share = |part: u64| 100.0 * part as f64 / corpus.bytes as f64;
    println!("| ingest | |\n|---|---|");
    println!("| first | {:.0} MB/s |", corpus.bytes as f64 / 1e6 / first.seconds);
    println!("| peak memory | {} MB |", first.peak_mb);
    println!("| nothing changed | {:.0} ms |", Times::of(again.iter().map(|r| r.seconds)).p50);
    println!("| store, index included | {:.1} % of the logs |", share(bytes));
    println!("| skip index | {:.1} % |\n", share(skip));
}

/// Measures first ingests of logs as other agents write them, each into a store of its own.
fn agents(dir: &Path, bytes: u64) {
    println!("| agent | MB/s of a first ingest | MB | events | store |\n|---|---|---|---|---|");
    for agent in AGENTS {
        let (logs, store) = (dir.join(agent.name), dir.join(format!("{}-store", agent.name)));
        let written = agent.generate(&logs, SEED, bytes).expect("generates");
        let ran = measure::command(&["--json", "ingest", &logs.to_string_lossy()], &store);
        assert_eq!(ran.json["bytes_read"], written.bytes, "every byte is read once");
        assert_eq!(ran.json["by_provider"][agent.name]["files"], written.sessions);
        assert_eq!(ran.json["problems"], serde_json::json!({}), "{}", agent.name);
        let megabytes = written.bytes as f64 / 1e6;
        println!(
            "| {} | {:.0} | {megabytes:.0} | {} | {:.1} % of the logs |",
            agent.name,
            megabytes / ran.seconds,
            ran.json["events"],
            measure::bytes_below(&store) as f64 / 1e4 / megabytes,
        );
        std::fs::remove_dir_all(&logs).expect("removes");
        std::fs::remove_dir_all(&store).expect("removes");
    }
    println!();
}

/// Measures the searches, warm in this process and cold in a process of their own: over the store as
/// it is, and after a check for logs that grew.
fn searches(corpus: &Corpus, logs: &Path, dir: &Path) {
    let store = Store::new(dir);
    let text = all_text(&store);
    let tools = Tools::new(Store::new(dir));
    let mut server = Server::start(dir);
    println!("Raw text: {:.0} MB.\n", text.len() as f64 / 1e6);
    println!(
        "| search | p50 ms | p99 ms | cold process ms | after a check for new log data | `rg` ms | times faster | `memmem` ms | segments | blocks | held | pages read | MB |"
    );
    println!("|---|---|---|---|---|---|---|---|---|---|---|---|---|");
    for workload in workloads(corpus, &tools) {
        let times = measure::repeat(|| workload.check(&tools));
        server.search(&workload.args);
        let cold = measure_cold(&["--no-refresh", &workload.args.query], dir);
        let cold_with_look = measure_cold(&[&workload.args.query], dir);
        let raw = workload.rg.as_ref().and_then(|pattern| rg(pattern, logs));
        let faster = raw.map(|raw| format!("{:.1}", raw / times.p50));
        let limit = workload.needle.map(|needle| {
            let finder = memchr::memmem::Finder::new(needle);
            Times::of((0..3).map(|_| seconds(|| finder.find_iter(&text).count()))).p50
        });
        let work = work(&store, &workload);
        println!(
            "| {} | {:.2} | {:.2} | {:.0} | {:.0} | {} | {} | {} | {} | {} | {} | {} | {:.1} |",
            workload.name,
            times.p50,
            times.p99,
            cold.p50,
            cold_with_look.p50,
            raw.map_or("-".to_owned(), |ms| format!("{ms:.0}")),
            faster.unwrap_or("-".to_owned()),
            limit.map_or("-".to_owned(), |ms| format!("{ms:.1}")),
            work.segments,
            work.blocks,
            work.candidate_blocks,
            work.pages,
            work.bytes as f64 / 1e6,
        );
    }
    println!("\nServer after all of them: {} MB at its peak.\n", server.peak_mb());
}

/// Measures a search in processes of their own.
fn measure_cold(arguments: &[&str], store: &Path) -> Times {
    let command = [&["--json", "search"], arguments].concat();
    Times::of((0..COLD_RUNS).map(|_| measure::command(&command, store).seconds))
}

/// Returns the work of a workload's scan. For a ranked search it counts only what the query
/// requires.
fn work(store: &Store, workload: &Workload) -> search::SearchWork {
    let query = Query::parse(&workload.args.query, Timestamp(0)).expect("parses");
    let request = SearchRequest {
        query: &query,
        sessions: None,
        event_types: workload.args.event_type.as_ref().map(|t| t.to_vec()).unwrap_or_default(),
        since: None,
        limit: 10,
        one_per_session: false,
        after: None,
        counted_rows: COUNTED_ROWS,
        deadline: None,
    };
    let snapshot = store.take_snapshot().expect("snapshot");
    if workload.args.query.contains("sort:relevance") {
        return search::search_ranked(&snapshot, &request, None, &|| false).expect("finds").work;
    }
    search(&snapshot, &request, &|| false).expect("finds").work
}

/// Returns all text of the store in one piece, as a naive search would hold it.
fn all_text(store: &Store) -> Vec<u8> {
    let snapshot = store.take_snapshot().expect("snapshot");
    let mut text = Vec::new();
    for segment in snapshot.segments().iter().filter(|segment| segment.entry.events > 0) {
        let all = [RowSpan { start: 0, count: segment.entry.events as usize }];
        let mut rows = EventReader::open(segment, &all, &[EventColumn::Text], 4096).expect("opens");
        while let Some(batch) = rows.next_batch().expect("reads") {
            let column = arrow::array::AsArray::as_string::<i32>(batch.column(0).as_ref());
            text.extend_from_slice(column.value_data());
        }
    }
    text
}

/// Measures the other tools.
fn others(corpus: &Corpus, dir: &Path) {
    let tools = Tools::new(Store::new(dir));
    println!("| tool | p50 ms | p99 ms |\n|---|---|---|");
    for (name, call) in workloads::others(corpus) {
        let times = measure::repeat(|| call(&tools));
        println!("| {name} | {:.2} | {:.2} |", times.p50, times.p99);
    }
}
