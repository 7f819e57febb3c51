//! Decoders: whatever stands in a log, nothing panics, events lie within it, and the same events
//! come out when it is read in three pieces; a rewritten document loses none. `FUZZ_PROVIDER=claude` keeps to one decoder.
//!
//! Input: the provider (ignored when one is named), two cuts of two bytes each, the log.
#![no_main]

use std::path::PathBuf;
use std::sync::LazyLock;

use fuzz::{Memory, check_events, check_same, mutate_log};
use ingest::discover::sniff::{Sniffed, sniff};
use ingest::plan::{LogChange, PlannedLog, Plan};
use ingest::provider::FORMATS;
use ingest::provider::format::{LogFormat, LogReader, SessionClaim};
use ingest::source::candidate::LogCandidate;
use libfuzzer_sys::{fuzz_mutator, fuzz_target};

const HEAD: usize = 5;

static ONLY: LazyLock<Option<&LogFormat>> = LazyLock::new(|| {
    let name = std::env::var("FUZZ_PROVIDER").ok()?;
    let named = FORMATS.iter().find(|format| format.provider.as_str() == name);
    Some(named.unwrap_or_else(|| panic!("no provider {name}")))
});

/// The log under test, in a folder of its own.
static PATH: LazyLock<PathBuf> = LazyLock::new(|| {
    let path = tempfile::tempdir().expect("tempdir").keep().join("a-session/log.jsonl");
    std::fs::create_dir_all(path.with_file_name("")).expect("creates");
    path
});

fuzz_mutator!(|data: &mut [u8], size: usize, max_size: usize, seed: u32| {
    mutate_log(data, size, max_size, seed, HEAD)
});

fuzz_target!(|input: &[u8]| {
    let [which, a, b, c, d, log @ ..] = input else { return };
    let format = ONLY.unwrap_or(&FORMATS[usize::from(*which) % FORMATS.len()]);
    let claim = claim(format, log);
    let whole = ingest(format, &claim, log, &[log.len()]);
    let (session, events) = &whole.sessions()[0];
    check_events(session, events, log.len() as u64);
    let cut = |high: &u8, low: &u8| usize::from(u16::from_be_bytes([*high, *low]));
    let mut cuts = [cut(a, b), cut(c, d)].map(|cut| cut % (log.len() + 1)).to_vec();
    cuts.push(log.len());
    cuts.sort_unstable();
    cuts.dedup();
    let pieces = ingest(format, &claim, log, &cuts);
    let (in_pieces, other) = &pieces.sessions()[0];
    if matches!(format.reader, LogReader::Document(_)) {
        // A document that was cut is another one, of which messages may stay.
        check_events(in_pieces, other, log.len() as u64);
        assert!(other.num_rows() >= events.num_rows(), "cuts {cuts:?}");
        return;
    }
    check_same(events, other);
    assert_eq!(session, in_pieces, "cuts {cuts:?}");
    let source = |memory: &Memory| {
        let mut row = memory.source(&PATH).expect("a checkpoint");
        row.modified_us = 0;
        row
    };
    assert_eq!(source(&whole), source(&pieces), "cuts {cuts:?}");
});

/// What the log says of itself, if it is one of this format: else a claim without content.
fn claim(format: &LogFormat, log: &[u8]) -> SessionClaim {
    std::fs::write(&*PATH, log).expect("writes");
    match sniff(&LogCandidate::from_path(PATH.clone()).expect("there"), None).expect("reads") {
        Sniffed::Log(claim) if claim.provider == format.provider => claim,
        _ => SessionClaim {
            provider: format.provider,
            native_id: "log".to_owned(),
            agent_id: None,
            parent: None,
            relation: None,
            first_record: None,
            first_response: None,
        },
    }
}

/// Ingests the log as it grows to each of `lengths`.
fn ingest(format: &LogFormat, claim: &SessionClaim, log: &[u8], lengths: &[usize]) -> Memory {
    let memory = Memory::default();
    for length in lengths {
        std::fs::write(&*PATH, &log[..*length]).expect("writes");
        let source = memory.source(&PATH);
        if matches!(format.reader, LogReader::Document(_)) {
            memory.read_anew();
        }
        let work = PlannedLog {
            file: LogCandidate::from_path(PATH.clone()).expect("there"),
            change: if source.is_some() { LogChange::Grown } else { LogChange::New },
            claim: claim.clone(),
            session_id: "log".to_owned(),
            parent_session_id: None,
            relation: claim.relation,
            ancestors: Vec::new(),
            reason: None,
            source: source.map(Box::new),
            session: memory.sessions().pop().map(|(session, _)| session.into()),
            content: None,
            is_whole_copy: false,
        };
        memory.run(Plan { units: vec![vec![work]], ..Plan::default() });
    }
    memory
}
