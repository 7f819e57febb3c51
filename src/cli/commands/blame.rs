//! `sessions blame`: says which session wrote the lines of a file.

use std::fs::{self, File};
use std::io::Read as _;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};

use ingest::discover::real_path;
use schemas::tool::OneOrMany;
use schemas::tool::stats::{GroupKey, StatsArgs};
use schemas::{ErrorCode, ToolError, limits};

use crate::cli::context::CommandContext;
use crate::cli::exit::{CommandFailure, CommandOutcome, CommandResult};
use crate::config::environment;
use tools::BlamedFile;

/// Maximum size in bytes of a file whose lines are examined.
const MAX_FILE_BYTES: u64 = 16 << 20;

/// Maximum size in bytes of the configuration of a repository.
const MAX_CONFIG_BYTES: u64 = 1 << 20;

/// Maximum number of files that the user is asked about.
const MAX_OFFERED_FILES: usize = 9;

#[derive(Debug, clap::Args)]
pub(in crate::cli) struct BlameFlags {
    /// A file, optionally with a line or a range of lines: src/main.rs, src/main.rs:12,
    /// src/main.rs:12-20 [default: choose among files of this folder]
    #[arg(value_name = "PATH[:LINE]")]
    place: Option<String>,
    /// List the edits that changed the file, with the number of added and removed lines
    #[arg(long)]
    edits: bool,
}

pub(in crate::cli) fn run(flags: &BlameFlags, context: &CommandContext<'_>) -> CommandResult {
    let chosen = match &flags.place {
        Some(place) => Some(place.clone()),
        None => choose_file(context)?,
    };
    let Some(place) = chosen else { return Ok(CommandOutcome::NothingFound) };
    let mut file = read_file(&place)?;
    file.has_edits = flags.edits;
    let data = context.create_tools().blame_file(&file, &context.call)?;
    context.printer.print_value(&data, &context.layout())?;
    let has_edits = data.edits.as_ref().is_some_and(|edits| !edits.is_empty());
    Ok(CommandOutcome::from_found(data.known_lines > 0 || has_edits))
}

/// Asks for one of the files of this folder that calls of agents named most. Returns `None` if the user
/// chooses none.
///
/// # Errors
/// Fails if the user cannot be asked, or if agents named no file of this folder.
fn choose_file(context: &CommandContext<'_>) -> Result<Option<String>, CommandFailure> {
    let missing = |reason: &str| {
        let message = format!("'sessions blame' needs a file, such as src/main.rs:12{reason}");
        ToolError::new(ErrorCode::InvalidArgument, message).with_detail("field", "path")
    };
    if context.printer.is_json || !context.printer.is_interactive() {
        return Err(missing("").into());
    }
    let here = environment::current_dir().unwrap_or_default();
    let args = StatsArgs {
        group_by: OneOrMany::One(GroupKey::File),
        limit: Some(limits::STATS_LIMIT_MAX),
        ..StatsArgs::default()
    };
    let answer = context.create_query_tools()?.session_stats(&args, &context.call)?;
    let mut files = Vec::new();
    for group in &answer.data.groups {
        let path = group.group.get(GroupKey::File.as_str()).and_then(|path| path.as_str());
        let path = path.map(Path::new).filter(|path| path.is_file());
        files.extend(path.and_then(|path| path.strip_prefix(&here).ok()).map(Path::to_path_buf));
    }
    files.truncate(MAX_OFFERED_FILES);
    if files.is_empty() {
        return Err(missing(". No session names a file in this folder").into());
    }
    let options: Vec<String> = files.iter().map(|file| file.display().to_string()).collect();
    let chosen = context.printer.choose("Files in this folder that sessions touched:", &options)?;
    Ok(chosen.and_then(|at| options.get(at).cloned()))
}

/// Reads the file that the argument names, and what identifies it in other places.
fn read_file(place: &str) -> Result<BlamedFile, ToolError> {
    let (path, lines) = split_place(place);
    let unreadable = |error: &dyn std::fmt::Display| {
        let message = format!("{}: {error}. Name a text file that exists", path.display());
        ToolError::new(ErrorCode::InvalidArgument, message).with_path(&path)
    };
    let full = real_path(&path).map_err(|error| unreadable(&error))?;
    let text = read_text(&full, MAX_FILE_BYTES).map_err(|error| unreadable(&error))?;
    let count = text.lines().count();
    if let Some(lines) = lines.as_ref().filter(|lines| *lines.end() > count) {
        let message = format!("line {}: the file has {count} lines", lines.end());
        return Err(unreadable(&message));
    }

    Ok(BlamedFile { text, lines, ..identify_file(&full) })
}

/// Returns what identifies a file in the logs, without its text. The path is a full one.
pub(super) fn identify_file(full: &Path) -> BlamedFile {
    let root = full.ancestors().skip(1).find(|dir| dir.join(".git").exists());
    let relative = root.and_then(|root| full.strip_prefix(root).ok());
    let relative = relative.or_else(|| full.file_name().map(Path::new)).unwrap_or(full);
    BlamedFile {
        path: full.to_string_lossy().replace('\\', "/"),
        relative: relative.to_string_lossy().replace('\\', "/"),
        names: root.map(repository_names).unwrap_or_default(),
        text: String::new(),
        lines: None,
        has_edits: false,
    }
}

fn read_text(path: &Path, max_bytes: u64) -> std::io::Result<String> {
    if !fs::metadata(path)?.is_file() {
        return Err(std::io::Error::other("it is not a file"));
    }
    let mut bytes = Vec::new();
    File::open(path)?.take(max_bytes + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > max_bytes {
        return Err(std::io::Error::other(format!("it has more than {max_bytes} bytes")));
    }
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// Returns the path and the lines of an argument. A file whose whole name is the argument comes
/// first.
fn split_place(place: &str) -> (PathBuf, Option<RangeInclusive<usize>>) {
    let whole = PathBuf::from(place);
    if whole.exists() {
        return (whole, None);
    }
    let Some((path, lines)) = place.rsplit_once(':') else { return (whole, None) };
    let (first, last) = lines.split_once('-').unwrap_or((lines, lines));
    match (first.parse::<usize>(), last.parse::<usize>()) {
        (Ok(first), Ok(last)) if first >= 1 && first <= last => {
            (PathBuf::from(path), Some(first..=last))
        }
        _ => (whole, None),
    }
}

/// Returns the names of a repository: of its folder, and at the end of the addresses in its
/// configuration.
fn repository_names(root: &Path) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    names.extend(root.file_name().map(|name| name.to_string_lossy().into_owned()));
    let config = read_text(&root.join(".git/config"), MAX_CONFIG_BYTES).unwrap_or_default();
    for line in config.lines() {
        let Some((key, address)) = line.split_once('=') else { continue };
        if key.trim() != "url" {
            continue;
        }
        let address = address.trim().trim_end_matches('/');
        let name = address.rsplit(['/', ':']).next().unwrap_or(address);
        names.push(name.strip_suffix(".git").unwrap_or(name).to_owned());
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_split_from_the_path() {
        let lines = |place| split_place(place);
        assert_eq!(lines("no/a.rs:12"), (PathBuf::from("no/a.rs"), Some(12..=12)));
        assert_eq!(lines("no/a.rs:3-9"), (PathBuf::from("no/a.rs"), Some(3..=9)));
        for place in ["no/a.rs", "no/a.rs:x", "no/a.rs:0", "no/a.rs:9-3"] {
            assert_eq!(lines(place), (PathBuf::from(place), None));
        }
    }
}
