//! Replaces the secrets in the file of a log, and in any text whose log can be decoded.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read as _, Seek as _, Write as _};
use std::path::Path;
use std::sync::Arc;

use schemas::Provider;

use super::record::RecordScrubber;
use crate::discover::sniff::{Sniffed, sniff, sniff_open_file};
use crate::provider::format::{LogReader, SessionClaim};
use crate::provider::format_of;
use crate::redact::{Redactor, SecretRange};
use crate::run::{DecodedLog, LogSecrets};
use crate::source::candidate::{Container, LogCandidate};
use crate::source::container::{Content, MAX_DOCUMENT_BYTES};
use crate::source::lines::{LogLine, LogLines};
use crate::stream::{FoundSecret, RecordAliases};

/// Maximum number of times that the secrets of a log are searched and replaced. The second time finds
/// those that only the events of a record announce; a third one has found nothing so far.
const MAX_ROUNDS: usize = 3;

/// Why a log is left out that has other records without its secrets.
pub(super) const READ_OTHERWISE: &str = "without the secrets it would be read otherwise";

/// Why a log is left out whose session has a secret in its id.
pub(super) const ANOTHER_SESSION: &str = "without the secrets it would not be the same session";

/// The rules by which secrets are replaced.
pub struct ScrubRules {
    /// Finds the secrets.
    pub redactor: Arc<Redactor>,
    /// The kind of secrets that are replaced; `None` for all.
    pub kind: Option<String>,
    /// The identities of records that were replaced before.
    pub aliases: Arc<RecordAliases>,
}

/// What was replaced in a log.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ScrubbedLog {
    /// The number of places by kind. Places that no event shows count, too.
    pub replaced: BTreeMap<String, u64>,
    /// The secrets of these kinds that an ingest still finds in the log, by kind.
    pub remaining: BTreeMap<String, u64>,
    /// Pairs of the new and the former identity of records that are identified by their content.
    pub aliases: Vec<(u64, u64)>,
}

/// The outcome for a log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ScrubOutcome {
    /// The log without the secrets is written.
    Scrubbed(ScrubbedLog),
    /// The log cannot be rewritten, for this reason.
    LeftOut(&'static str),
}

/// Returns why the log that the store knows as `key` cannot be rewritten whatever its content; `None`
/// if it is a plain file.
pub fn find_obstacle_to_rewriting(key: &str) -> Option<&'static str> {
    let Some(file) = crate::discover::presence::find_candidate(key) else {
        return Some("the log is gone");
    };
    match file.container {
        Container::Plain => None,
        Container::Zstd | Container::Gzip => Some("it is compressed"),
        Container::Assembled(_) => {
            Some("it is in several files, or in a database whose tables are not known")
        }
    }
}

/// Writes the log at `path`, which is open as `log`, to `out` without its secrets. `provider` is the
/// agent whose log the store has it for. Files without a name are created in `scratch`.
///
/// # Errors
/// Returns the errors of reading and writing.
pub fn scrub_log(
    path: &Path,
    log: &File,
    (out, scratch): (&mut File, &Path),
    provider: Provider,
    rules: &ScrubRules,
) -> io::Result<ScrubOutcome> {
    let candidate = LogCandidate::from_path(path.to_owned())?;
    let Sniffed::Log(claim) = sniff(&candidate, Some(&rules.redactor))? else {
        return Ok(ScrubOutcome::LeftOut("it is no longer recognised as a log"));
    };
    if claim.provider != provider {
        return Ok(ScrubOutcome::LeftOut("another agent wrote it than the store knows"));
    }
    let is_document = matches!(format_of(provider).reader, LogReader::Document(_));
    if is_document && candidate.size > MAX_DOCUMENT_BYTES {
        return Ok(ScrubOutcome::LeftOut("the document is too large to be read"));
    }

    let key = candidate.key();
    let decoded = DecodedLog {
        claim: &claim,
        path: &key,
        redactor: &rules.redactor,
        aliases: &rules.aliases,
    };
    let before = read_secrets(&decoded, log)?;
    let replacer = Replacer { rules, is_document, scratch, before: &before };
    let replaced = replacer.replace(log.try_clone()?, &mut |next| read_secrets(&decoded, next))?;
    let Some(ReplacedText { text: new, log: mut result, .. }) = replaced else {
        return Ok(ScrubOutcome::LeftOut(READ_OTHERWISE));
    };
    let sniffed = sniff_open_file(&candidate, &new, Some(&rules.redactor))?;
    if !is_same_session(sniffed, &claim, &rules.aliases, &mut result) {
        return Ok(ScrubOutcome::LeftOut(ANOTHER_SESSION));
    }
    io::copy(&mut rewind(&new)?, out)?;
    out.flush()?;
    Ok(ScrubOutcome::Scrubbed(result))
}

/// Replaces the secrets of a text.
pub(super) struct Replacer<'a> {
    pub(super) rules: &'a ScrubRules,
    /// True if the text is one value, and not one on each line.
    pub(super) is_document: bool,
    /// The folder for files without a name.
    pub(super) scratch: &'a Path,
    /// The secrets of the log.
    pub(super) before: &'a LogSecrets,
}

impl Replacer<'_> {
    /// Returns the text without its secrets, and what was replaced. `read` decodes the log that has this text
    /// instead. `None` if the log would be read otherwise.
    pub(super) fn replace(
        &self,
        mut current: File,
        read: &mut dyn FnMut(&File) -> io::Result<LogSecrets>,
    ) -> io::Result<Option<ReplacedText>> {
        let Self { rules, is_document, scratch, before } = *self;
        let mut result = ScrubbedLog::default();
        let mut values = BTreeSet::new();
        let mut now: Option<LogSecrets> = None;
        for round in 0..MAX_ROUNDS {
            let scrubber = RecordScrubber {
                redactor: &rules.redactor,
                kind: rules.kind.as_deref(),
                is_thorough: round > 0,
            };
            let secrets = &now.as_ref().unwrap_or(before).secrets;
            let places = find_places(&current, is_document, &scrubber, secrets)?;
            if places.is_empty() {
                break;
            }
            let mut next = tempfile::tempfile_in(scratch)?;
            write_replaced(&current, &mut next, &places)?;
            let after = read(&next)?;
            let is_read_alike =
                after.events == before.events && after.identities.len() == before.identities.len();
            if !is_read_alike && now.is_none() {
                return Ok(None);
            }
            if !is_read_alike {
                // These secrets are also words without which a record is not what it is. They remain.
                break;
            }
            collect_values(&current, &places, &mut values)?;
            for (_, place) in &places {
                *result.replaced.entry(place.kind.clone()).or_default() += 1;
            }
            now = Some(after);
            current = next;
        }

        let after = now.as_ref().unwrap_or(before);
        let pairs = after.identities.iter().zip(&before.identities);
        result.aliases =
            pairs.filter(|(new, old)| new != old).map(|(new, old)| (*new, *old)).collect();
        result.remaining = after.counts.clone();
        result.remaining.retain(|kind, _| rules.kind.as_ref().is_none_or(|wanted| wanted == kind));
        rewind(&current)?;
        Ok(Some(ReplacedText { text: current, log: result, values }))
    }
}

/// A text without its secrets.
pub(super) struct ReplacedText {
    /// The text, at its beginning.
    pub(super) text: File,
    pub(super) log: ScrubbedLog,
    /// Kind and text of the secrets, as they were written in the text.
    pub(super) values: BTreeSet<(String, String)>,
}

/// Returns whether a log without its secrets is that of the same session. Notes new identities of its first
/// records.
pub(super) fn is_same_session(
    sniffed: Sniffed,
    before: &SessionClaim,
    aliases: &RecordAliases,
    result: &mut ScrubbedLog,
) -> bool {
    let Sniffed::Log(mut claim) = sniffed else { return false };
    for (new, old) in [
        (&mut claim.first_record, before.first_record),
        (&mut claim.first_response, before.first_response),
    ] {
        if let (Some(identity), Some(old)) = (&mut *new, old)
            && *identity != old
        {
            result.aliases.push((*identity, aliases.resolve(old)));
            *identity = old;
        }
    }
    claim == *before
}

/// Decodes a log and returns its secrets.
fn read_secrets(decoded: &DecodedLog<'_>, log: &File) -> io::Result<LogSecrets> {
    decoded.read_secrets(Content::File(rewind(log)?), log.metadata()?.len())
}

/// Returns a handle of a file at its beginning.
pub(super) fn rewind(file: &File) -> io::Result<File> {
    let mut handle = file.try_clone()?;
    handle.rewind()?;
    Ok(handle)
}

/// Returns the places of secrets in a log, in order, each with the position of the text that its range
/// counts from. `secrets` are those of the events.
pub(super) fn find_places(
    log: &File,
    is_document: bool,
    scrubber: &RecordScrubber<'_>,
    secrets: &[FoundSecret],
) -> io::Result<Vec<(u64, SecretRange)>> {
    let mut known: BTreeMap<u64, Vec<(String, String)>> = BTreeMap::new();
    let mut seen = HashSet::new();
    for secret in secrets {
        let offset = if is_document { 0 } else { secret.offset };
        if seen.insert((offset, &secret.kind, &secret.text)) {
            let of_record = known.entry(offset).or_default();
            of_record.push((secret.kind.clone(), secret.text.clone()));
        }
    }
    let mut places = Vec::new();
    let content = rewind(log)?;
    let size = content.metadata()?.len();
    for_each_text(Content::File(content), size, is_document, &mut |offset, text| {
        let end = offset + text.len() as u64;
        let of_text: Vec<(String, String)> =
            known.range(offset..end).flat_map(|(_, secrets)| secrets.iter().cloned()).collect();
        places
            .extend(scrubber.find_places(text, &of_text).into_iter().map(|place| (offset, place)));
    })?;
    Ok(places)
}

/// Calls `visit` with the position and the text of each line of a log of `size` bytes, or of the whole
/// document. What is not UTF-8 is damaged, and left out.
pub(super) fn for_each_text(
    mut content: Content,
    size: u64,
    is_document: bool,
    visit: &mut dyn FnMut(u64, &str),
) -> io::Result<()> {
    if is_document {
        let mut text = String::new();
        match content.read_to_string(&mut text) {
            Ok(_) => visit(0, &text),
            Err(error) if error.kind() == io::ErrorKind::InvalidData => {}
            Err(error) => return Err(error),
        }
        return Ok(());
    }
    let mut lines = LogLines::of_size(content, 0, size);
    while let Some(line) = lines.next_line()? {
        let (LogLine::Whole { offset, bytes } | LogLine::Tail { offset, bytes }) = line else {
            continue;
        };
        if let Ok(text) = str::from_utf8(bytes) {
            visit(offset, text);
        }
    }
    Ok(())
}

/// Adds kind and text of the secrets at these places, which are in order, as the log has them.
fn collect_values(
    log: &File,
    places: &[(u64, SecretRange)],
    values: &mut BTreeSet<(String, String)>,
) -> io::Result<()> {
    let mut from = BufReader::new(rewind(log)?);
    let mut at = 0;
    for (offset, place) in places {
        let (start, end) = (offset + place.range.start as u64, offset + place.range.end as u64);
        from.seek_relative((start - at).cast_signed())?;
        let mut value = Vec::new();
        (&mut from).take(end - start).read_to_end(&mut value)?;
        if let Ok(value) = String::from_utf8(value) {
            values.insert((place.kind.clone(), value));
        }
        at = end;
    }
    Ok(())
}

/// Writes a log with placeholders at these places, which are in order.
pub(super) fn write_replaced(
    log: &File,
    out: &mut File,
    places: &[(u64, SecretRange)],
) -> io::Result<()> {
    let mut from = BufReader::new(rewind(log)?);
    let mut to = BufWriter::new(out);
    let mut at = 0;
    for (offset, place) in places {
        let (start, end) = (offset + place.range.start as u64, offset + place.range.end as u64);
        io::copy(&mut (&mut from).take(start - at), &mut to)?;
        to.write_all(place.mask().as_bytes())?;
        from.seek_relative((end - start).cast_signed())?;
        at = end;
    }
    io::copy(&mut from, &mut to)?;
    to.flush()
}
