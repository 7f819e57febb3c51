//! Recognizes and decodes the logs of every provider.
//!
//! A provider has a folder with its decoder, and a row in the table [`FORMATS`]. Code that several
//! providers share is in `shared/`.

mod amp;
mod antigravity;
mod claude;
mod cline;
mod codex;
mod copilot;
mod cursor;
mod droid;
pub mod format;
mod gemini;
mod generic;
mod grok;
mod hermes;
mod iflow;
mod kimi;
mod kiro;
mod openclaw;
mod opencode;
mod pi;
mod qwen;
pub mod shared;
mod vscopilot;

use std::path::{Path, PathBuf};

use schemas::Provider;

use self::format::{LogFormat, ResponseKey};
use self::shared::sidecar;
use crate::redact::has_placeholder;
use crate::source::assembly::Assembly;
use crate::source::container::has_log;

/// Every format, in the order in which a file is offered to them.
pub static FORMATS: [LogFormat; Provider::ALL.len()] = [
    droid::FORMAT,
    qwen::FORMAT,
    iflow::FORMAT,
    claude::FORMAT,
    codex::FORMAT,
    gemini::FORMAT,
    copilot::FORMAT,
    pi::FORMAT,
    openclaw::FORMAT,
    vscopilot::FORMAT,
    kimi::FORMAT,
    grok::FORMAT,
    hermes::FORMAT,
    antigravity::FORMAT,
    cursor::FORMAT,
    opencode::FORMAT,
    cline::FORMAT,
    kiro::FORMAT,
    amp::FORMAT,
    generic::FORMAT,
];

/// Returns whether a file only repeats or describes a log in another place. Such a file is known,
/// but not read.
pub(crate) fn is_sidecar(path: &Path) -> bool {
    let name = path.file_name().map(|name| name.to_string_lossy()).unwrap_or_default();
    let has = |log: &str| has_log(&path.with_file_name(log));
    sidecar::is_entire_metadata(&name, &has)
        || FORMATS
            .iter()
            .filter_map(|format| format.quirks.is_sidecar)
            .any(|is_sidecar| is_sidecar(&name, &has))
        || FORMATS
            .iter()
            .filter_map(|format| format.quirks.is_stored_elsewhere)
            .any(|is_stored| is_stored(path))
}

/// Returns the files next to a log that have more facts about its session and may change
/// independently of the log: the [companion](format::Quirks::companion) and the
/// [file with token counts](format::Quirks::usage_file).
pub fn companion_paths(provider: Provider, log: &Path) -> Vec<PathBuf> {
    let quirks = &format_of(provider).quirks;
    let companion = quirks.companion.and_then(|companion| companion(log));
    let usage = quirks.usage_file.map(|usage_file| usage_file(log));
    companion.into_iter().chain(usage).filter(|path| path != log).collect()
}

/// Returns whether logs of a provider may have files next to them with more facts about their sessions.
pub(crate) fn has_companions(provider: Provider) -> bool {
    let quirks = &format_of(provider).quirks;
    quirks.companion.is_some() || quirks.usage_file.is_some()
}

/// Returns the response that a request id of an event names. `None` if equal ids in two logs do not
/// mean one response, or if the id was masked.
pub fn response_key(provider: Provider, request_id: &str) -> Option<ResponseKey<'_>> {
    let find_response = format_of(provider).quirks.find_response?;
    (!has_placeholder(request_id)).then(|| find_response(request_id))
}

/// Returns all ways to assemble sessions that are not files of their own.
pub(crate) fn assemblies() -> impl Iterator<Item = &'static Assembly> {
    FORMATS.iter().flat_map(|format| format.quirks.assemblies)
}

/// Row of each provider in [`FORMATS`]. A provider without a row does not compile.
const ROWS: [usize; Provider::ALL.len()] = {
    let mut rows = [usize::MAX; Provider::ALL.len()];
    let mut at = 0;
    while at < FORMATS.len() {
        rows[FORMATS[at].provider as usize] = at;
        at += 1;
    }
    let mut provider = 0;
    while provider < rows.len() {
        assert!(rows[provider] != usize::MAX, "a provider has no row in FORMATS");
        provider += 1;
    }
    rows
};

/// Returns the format of a provider.
pub fn format_of(provider: Provider) -> &'static LogFormat {
    &FORMATS[ROWS[provider as usize]]
}
