//! Finds the secrets in the files of sessions as they are now, also in values that no event shows, and
//! replaces those in files next to a log.

use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::path::Path;

use schemas::Provider;

use super::log::{ScrubRules, ScrubbedLog, find_places, for_each_text, rewind, write_replaced};
use super::record::RecordScrubber;
use crate::discover::raw_log::find_candidate;
use crate::provider::format::LogReader;
use crate::provider::shared::database::connection::query_database;
use crate::provider::{format_of, has_lines};
use crate::redact::{Redactor, SecretRange};
use crate::rows::{find_session, read_legible_rows};
use crate::source::container::{Content, MAX_DOCUMENT_BYTES, oversized_message};

/// A secret in a file of a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileSecret {
    /// The kind of the secret.
    pub kind: String,
    /// The position of its record in bytes, in the decompressed file. 0 in a document.
    pub offset: u64,
    /// The length of its record in bytes. 0 in a file next to a log.
    pub length: u64,
}

/// Finds the secrets that the strings of a log have, in order. The store knows the log as `key`. Of a session
/// in a database all rows are searched, if its tables are known.
///
/// # Errors
/// Returns [`io::ErrorKind::NotFound`] if the log does not exist, and the errors of reading it.
pub fn find_log_secrets(
    key: &str,
    provider: Provider,
    redactor: &Redactor,
) -> io::Result<Vec<FileSecret>> {
    let scrubber = RecordScrubber { redactor, kind: None, is_thorough: false };
    let mut secrets = Vec::new();
    let mut search = |offset: u64, text: &str| {
        let length = text.len() as u64;
        let places = scrubber.find_places(text, &[]).into_iter();
        secrets.extend(places.map(|place| FileSecret { kind: place.kind, offset, length }));
    };
    if let Some((tables, database, id)) = find_session(key) {
        let rows = query_database(&database, tables.agent, |connection| {
            Ok(read_legible_rows(connection, tables, &id))
        })?;
        let rows = rows.map_err(io::Error::other)?.ok_or(io::ErrorKind::NotFound)?;
        search(0, &serde_json::to_string(&rows)?);
        return Ok(secrets);
    }
    let mut content = Content::open(&find_candidate(key)?)?;
    let size = content.length()?;
    let is_document = matches!(format_of(provider).reader, LogReader::Document(_));
    if is_document && size > MAX_DOCUMENT_BYTES {
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, oversized_message(size)));
    }
    for_each_text(content, size, is_document, &mut search)?;
    Ok(secrets)
}

/// Finds the secrets of a file next to a log of `provider`, in order.
///
/// # Errors
/// Returns the errors of reading the file.
pub fn find_side_file_secrets(
    path: &Path,
    provider: Provider,
    redactor: &Redactor,
) -> io::Result<Vec<FileSecret>> {
    let scrubber = RecordScrubber { redactor, kind: None, is_thorough: false };
    let places = find_side_places(path, &File::open(path)?, provider, &scrubber)?;
    let secrets = places.into_iter();
    Ok(secrets.map(|(offset, place)| FileSecret { kind: place.kind, offset, length: 0 }).collect())
}

/// Writes a file next to a log of `provider`, which is open as `file`, to `out` without its secrets.
///
/// # Errors
/// Returns the errors of reading and writing.
pub fn scrub_side_file(
    path: &Path,
    file: &File,
    out: &mut File,
    provider: Provider,
    rules: &ScrubRules,
) -> io::Result<ScrubbedLog> {
    let kind = rules.kind.as_deref();
    let scrubber = RecordScrubber { redactor: &rules.redactor, kind, is_thorough: false };
    let places = find_side_places(path, file, provider, &scrubber)?;
    write_replaced(file, out, &places)?;
    out.flush()?;
    let mut scrubbed = ScrubbedLog::default();
    for (_, place) in places {
        *scrubbed.replaced.entry(place.kind).or_default() += 1;
    }
    for (_, place) in find_side_places(path, out, provider, &scrubber)? {
        *scrubbed.remaining.entry(place.kind).or_default() += 1;
    }
    Ok(scrubbed)
}

/// Returns the places of secrets in a file next to a log, each with the position of the text that its range
/// counts from.
fn find_side_places(
    path: &Path,
    file: &File,
    provider: Provider,
    scrubber: &RecordScrubber<'_>,
) -> io::Result<Vec<(u64, SecretRange)>> {
    if has_lines(provider, &path.to_string_lossy(), false) {
        return find_places(file, false, scrubber, &[]);
    }
    let size = file.metadata()?.len();
    if size > MAX_DOCUMENT_BYTES {
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, oversized_message(size)));
    }
    let mut bytes = Vec::new();
    rewind(file)?.read_to_end(&mut bytes)?;
    // The output of a tool may be text that only looks like JSON, or no text at all.
    let places = match str::from_utf8(&bytes) {
        Ok(text) => scrubber.find_places(text, &[]),
        Err(_) => scrubber.find_text_places(&bytes),
    };
    Ok(places.into_iter().map(|place| (0, place)).collect())
}
