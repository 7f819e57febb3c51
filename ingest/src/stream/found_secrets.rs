//! Collects the secrets in the events of a log, with the records that they come from.

use super::decoded_event::RecordAt;
use crate::redact::{Redactor, find_secrets};

/// A secret in an event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FoundSecret {
    /// Where the record of the event begins in the log, in bytes.
    pub(crate) offset: u64,
    pub(crate) kind: String,
    pub(crate) text: String,
}

/// Adds the secrets in the columns of an event of the record `at`. `printed` is the text of the event
/// and the command that printed it.
pub(super) fn note_found_secrets(
    found: &mut Vec<FoundSecret>,
    redactor: &Redactor,
    at: RecordAt,
    (text, printed_by): (&str, &str),
    command: &str,
    files: &[String],
) {
    let mut secrets = find_secrets(redactor, text, printed_by);
    for column in std::iter::once(command).chain(files.iter().map(String::as_str)) {
        secrets.extend(find_secrets(redactor, column, ""));
    }
    let offset = at.offset;
    found.extend(secrets.into_iter().map(|(kind, text)| FoundSecret { offset, kind, text }));
}
