//! Recognizes and decodes the logs of every provider.
//!
//! A provider has a folder with its decoder, and a row in the table [`FORMATS`], or its logs have the
//! format of another one: then it is a row in the table [`ALIASES`]. Code that several providers
//! share is in `shared/`.

mod aider;
pub mod alias;
mod amp;
mod antigravity;
mod atif;
pub mod call_arguments;
mod chatgpt;
mod claude;
mod claudeai;
mod cline;
mod codebuddy;
mod codebuff;
mod codewhale;
mod codex;
mod commandcode;
mod continuedev;
pub mod copied;
mod copilot;
mod cortex;
mod crush;
mod cursor;
mod cursoride;
mod devin;
#[cfg(test)]
mod dockhand;
mod droid;
mod dsh;
pub mod encrypted;
mod forge;
pub mod format;
mod gemini;
mod geminiapps;
mod generic;
mod goose;
mod gptme;
mod grok;
mod hermes;
mod iflow;
mod junie;
mod kimi;
mod kiro;
mod openclaw;
mod opencode;
mod openhands;
mod pi;
mod piebald;
mod poolside;
mod qwen;
mod qwenpaw;
mod reasonix;
pub mod retention;
pub mod session_list;
pub mod shared;
mod vibe;
mod vscode;
mod vscopilot;
mod warp;
mod zcode;
mod zed;

use std::path::{Path, PathBuf};

use schemas::Provider;

use self::alias::{ALIASES, AgentAlias};
use self::format::{AgentFolders, LogFormat, LogReader, ResponseKey, with_native_separators};
use self::shared::sidecar;
use crate::redact::has_placeholder;
use crate::source::assembly::Assembly;
use crate::source::container::has_log;

/// Every format, in the order in which a file is offered to them.
pub static FORMATS: [LogFormat; Provider::ALL.len() - ALIASES.len()] = [
    droid::FORMAT,
    qwen::FORMAT,
    iflow::FORMAT,
    codebuddy::FORMAT,
    claude::FORMAT,
    codex::FORMAT,
    gemini::FORMAT,
    copilot::FORMAT,
    commandcode::FORMAT,
    dsh::FORMAT,
    reasonix::FORMAT,
    pi::FORMAT,
    openclaw::FORMAT,
    vscopilot::FORMAT,
    vscode::FORMAT,
    goose::FORMAT,
    crush::FORMAT,
    cursoride::FORMAT,
    zed::FORMAT,
    continuedev::FORMAT,
    aider::FORMAT,
    warp::FORMAT,
    devin::FORMAT,
    codewhale::FORMAT,
    cortex::FORMAT,
    forge::FORMAT,
    poolside::FORMAT,
    claudeai::FORMAT,
    chatgpt::FORMAT,
    geminiapps::FORMAT,
    openhands::FORMAT,
    vibe::FORMAT,
    junie::FORMAT,
    gptme::FORMAT,
    zcode::FORMAT,
    qwenpaw::FORMAT,
    piebald::FORMAT,
    kimi::FORMAT,
    grok::FORMAT,
    hermes::FORMAT,
    antigravity::FORMAT,
    cursor::FORMAT,
    opencode::FORMAT,
    codebuff::FORMAT,
    cline::FORMAT,
    kiro::FORMAT,
    amp::FORMAT,
    atif::FORMAT,
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
/// independently of the log.
pub fn companion_paths(provider: Provider, log: &Path) -> Vec<PathBuf> {
    let Some(companions) = format_of(provider).quirks.companions else { return Vec::new() };
    companions(log).into_iter().filter(|path| path != log).collect()
}

/// Returns the files next to a log that exist and belong to its session: those of
/// [`companion_paths`], those that repeat or describe the log, and those with the output of tools. `names`
/// has the names of the files in the folder of the log.
pub fn files_next_to(provider: Provider, log: &Path, names: &[String]) -> Vec<PathBuf> {
    let mut files = companion_paths(provider, log);
    files.retain(|path| path.is_file());
    let log_name = log.file_name().map(|name| name.to_string_lossy()).unwrap_or_default();
    for is_sidecar in FORMATS.iter().filter_map(|format| format.quirks.is_sidecar) {
        // A file that needs no log next to it is shared by the logs of the folder.
        let is_own = |name: &&String| {
            is_sidecar(name, &|other| other == log_name) && !is_sidecar(name, &|_| false)
        };
        let own = names.iter().filter(is_own).map(|name| log.with_file_name(name));
        files.extend(own.filter(|path| path != log));
    }
    if let Some(output_folder) = format_of(provider).quirks.output_folder {
        let folder = output_folder(log);
        // A link leads to files of others.
        let names = if folder.is_symlink() { Vec::new() } else { list_names(&folder) };
        let outputs = names.into_iter().map(|name| folder.join(name));
        files.extend(outputs.filter(|path| is_tool_output(provider, path, log)));
    }
    files.sort();
    files.dedup();
    files
}

/// Returns whether the file at a path has text that a tool printed in the session of a log, whether it exists
/// or not. The folder may also have pictures and documents.
pub fn is_tool_output(provider: Provider, path: &Path, log: &Path) -> bool {
    let Some(output_folder) = format_of(provider).quirks.output_folder else { return false };
    let is_text = path.extension().is_some_and(|end| end == "txt" || end == "json");
    is_text && path.parent() == Some(&output_folder(log))
}

/// Returns the names of the files in a folder, in no order; without links and names that are not Unicode.
/// Empty if the folder cannot be read.
pub fn list_names(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let files = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_file()));
    files.filter_map(|entry| entry.file_name().into_string().ok()).collect()
}

/// Returns whether logs of a provider may have files next to them with more facts about their sessions.
pub(crate) fn has_companions(provider: Provider) -> bool {
    format_of(provider).quirks.companions.is_some()
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

/// Row of each provider's format in [`FORMATS`]. A provider that is in neither table does not
/// compile, and neither does one that is in both.
const ROWS: [usize; Provider::ALL.len()] = {
    let mut rows = [usize::MAX; Provider::ALL.len()];
    let mut at = 0;
    while at < FORMATS.len() {
        rows[FORMATS[at].provider as usize] = at;
        at += 1;
    }
    let mut at = 0;
    while at < ALIASES.len() {
        let AgentAlias { provider, base, .. } = &ALIASES[at];
        assert!(rows[*provider as usize] == usize::MAX, "a provider has two rows");
        assert!(rows[*base as usize] < FORMATS.len(), "an alias has no format");
        rows[*provider as usize] = rows[*base as usize];
        at += 1;
    }
    rows
};

/// Returns the format of a provider's logs.
pub fn format_of(provider: Provider) -> &'static LogFormat {
    &FORMATS[ROWS[provider as usize]]
}

/// Returns the provider whose format the logs of a provider have. Logs of one format may be copies
/// of each other, whichever agent keeps them: agents take over the sessions of those that they
/// derive from.
pub fn base_of(provider: Provider) -> Provider {
    format_of(provider).provider
}

/// Returns whether a log, or a file next to one, has a record in each line. Others are one document.
pub fn has_lines(provider: Provider, path: &str, is_log: bool) -> bool {
    path.ends_with(".jsonl") || is_log && matches!(format_of(provider).reader, LogReader::Lines(_))
}

/// Returns all providers: those with a decoder in the order in which a file is offered to them, then
/// the others.
pub fn all_providers() -> impl Iterator<Item = Provider> {
    let own = FORMATS.iter().map(|format| format.provider);
    own.chain(ALIASES.iter().map(|alias| alias.provider))
}

/// Returns the folders and databases where an agent keeps its logs, each once, with the separators
/// of this system. They need not exist.
pub fn log_folders(provider: Provider, places: &AgentFolders<'_>) -> Vec<PathBuf> {
    let roots = match alias::alias_of(provider) {
        Some(alias) => alias.roots(places),
        None => (format_of(provider).roots)(places),
    };
    let mut folders = Vec::new();
    for root in roots {
        let folder = with_native_separators(&root);
        if !folders.contains(&folder) {
            folders.push(folder);
        }
    }
    folders
}
