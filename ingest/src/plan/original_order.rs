//! Orders logs that share history: the original first, then the logs forked from it.

use std::cmp::Reverse;
use std::collections::HashSet;
use std::io::{self, Read};
use std::path::Path;

use memchr::memmem;
use schemas::Provider;
use xxhash_rust::xxh3::xxh3_64;

use super::in_order::sort_by_ancestors;
use crate::provider::format_of;
use crate::source::candidate::LogCandidate;
use crate::source::container::Content;
use crate::source::line_source::LineSource as _;
use crate::stream::parse_micros;

/// Name of the field with the id of a record.
const ID_KEY: &[u8] = b"\"uuid\":";

/// Maximum number of bytes between the name of a field and its text: a space and a quote.
const MAX_GAP_BYTES: usize = 2;

/// Length in bytes of the id of a record.
const ID_BYTES: usize = 36;

/// Name of the field with the time of a record.
const TIME_KEY: &[u8] = b"\"timestamp\":";

/// Maximum length in bytes of the time of a record.
const MAX_TIME_BYTES: usize = 32;

/// A file that changed more than this many microseconds after its last record was copied: its time
/// is that of the copy.
const COPY_DELAY_US: i64 = 3_600_000_000;

/// Number of bytes read at once.
const CHUNK_BYTES: usize = 1 << 20;

/// Maximum number of logs in a group whose files are compared. Larger groups are ordered by what
/// their logs say and by size.
const MAX_COMPARED_LOGS: usize = 64;

/// A log that begins with the same record as others.
pub(crate) struct GroupedLog<'w> {
    pub(crate) session_id: &'w str,
    pub(crate) provider: Provider,
    pub(crate) native_id: &'w str,
    /// The path at which the log is known.
    pub(crate) path: &'w Path,
    /// Native id of the parent log.
    pub(crate) parent: Option<&'w str>,
    /// The sessions that this log was found to repeat when it was read before.
    pub(crate) ancestors: Option<Vec<&'w str>>,
    /// The file, if it can be read again. If not, the log stays a copy of its ancestors.
    pub(crate) file: Option<&'w LogCandidate>,
}

/// Orders logs that share history, originals before their copies. The base order is that of their
/// start if their names give it, else that of the store, then larger logs before smaller ones. A log comes before another one that names it as its
/// parent, or that contains it whole and changed later, as a fork at its end does. Logs of one id
/// stay together. The times of copied files are ignored: there the contained log is the original.
pub(crate) fn originals_first(mut members: Vec<GroupedLog<'_>>) -> Vec<&str> {
    members.sort_by_key(|member| {
        let rank = member.ancestors.as_ref().map_or(usize::MAX, Vec::len);
        let size = member.file.map_or(0, |file| file.size);
        let path = member.file.map(|file| &file.path);
        let ids_descend = format_of(member.provider).quirks.has_descending_ids;
        let age = ids_descend.then_some(Reverse(member.native_id));
        let start = start_in_name(member);
        (start, rank, member.parent.is_some(), age, Reverse(size), path, member.session_id)
    });

    let mut logs: Vec<Vec<GroupedLog<'_>>> = Vec::new();
    for member in members {
        match logs.iter_mut().find(|log| log[0].native_id == member.native_id) {
            Some(log) => log.push(member),
            None => logs.push(vec![member]),
        }
    }

    let order = sort_by_ancestors(&find_predecessors(&logs));
    order.into_iter().flat_map(|at| logs[at].iter().map(|member| member.session_id)).collect()
}

/// Returns the part of the name of a log that says when its session began. `None`, which is ordered
/// before any name, if names of the format do not.
fn start_in_name<'l>(log: &GroupedLog<'l>) -> Option<&'l str> {
    if !format_of(log.provider).quirks.is_named_by_start {
        return None;
    }
    let name = log.path.file_name()?.to_str()?;
    name.split_once('_').map(|(start, _)| start)
}

/// Returns what orders two logs by age, whichever of them was read first.
fn age_key<'l>(log: &GroupedLog<'l>) -> (Option<&'l str>, &'l str) {
    (start_in_name(log), log.native_id)
}

/// Returns, for every log, the positions of the logs that must come before it.
fn find_predecessors(logs: &[Vec<GroupedLog<'_>>]) -> Vec<Vec<usize>> {
    let free = logs.iter().filter(|log| log[0].parent.is_none() && log[0].file.is_some());
    let are_compared = logs.len() <= MAX_COMPARED_LOGS && free.count() > 1;
    let mut compared = Vec::with_capacity(logs.len());
    for members in logs {
        let records = if are_compared { comparable_records(&members[0]) } else { None };
        compared.push(ComparedLog { members, records });
    }

    let mut before = Vec::with_capacity(logs.len());
    for (at, log) in compared.iter().enumerate() {
        let others = compared.iter().enumerate();
        let originals =
            others.filter(|(other_at, other)| *other_at != at && log.must_follow(other));
        before.push(originals.map(|(other_at, _)| other_at).collect());
    }
    before
}

/// The logs of one id, with the records of the first one.
struct ComparedLog<'l> {
    members: &'l [GroupedLog<'l>],
    /// `None` if the logs of the group are not compared, or if the log cannot be read or has no
    /// record ids.
    records: Option<LogRecords>,
}

impl ComparedLog<'_> {
    /// Returns whether this log must come after `other`.
    fn must_follow(&self, other: &Self) -> bool {
        let log = &self.members[0];
        let other_log = &other.members[0];
        if log.file.is_none()
            && let Some(ancestors) = &log.ancestors
        {
            return other.members.iter().any(|member| ancestors.contains(&member.session_id));
        }

        if log.parent == Some(other_log.native_id) {
            // Of two logs that name each other, the one that was read first must not win.
            let is_mutual = other_log.parent == Some(log.native_id);
            return !is_mutual || age_key(log) > age_key(other_log);
        }
        if self.repeats_with_new_ids(other) {
            return true;
        }

        // A fork without records of its own is not an original.
        let is_older = other.modified_us() <= self.modified_us() || self.was_copied();
        other_log.parent.is_none() && is_older && self.contains_all_of(other)
    }

    /// Returns whether this log began later than `other` and shares no record id with it. As both
    /// are in one group, this log repeats the other one with new ids.
    fn repeats_with_new_ids(&self, other: &Self) -> bool {
        let (Some(later), Some(earlier)) = (&self.records, &other.records) else { return false };
        later.times() > earlier.times() && later.ids.is_disjoint(&earlier.ids)
    }

    /// Returns whether this log has all records of `other`, and more.
    fn contains_all_of(&self, other: &Self) -> bool {
        let (Some(whole), Some(part)) = (&self.records, &other.records) else { return false };
        part.ids.len() < whole.ids.len() && part.ids.is_subset(&whole.ids)
    }

    /// Returns whether the file was copied, so that its time is not that of the log.
    fn was_copied(&self) -> bool {
        let last = self.records.as_ref().and_then(|records| records.last);
        let changed = self.modified_us();
        changed.zip(last).is_some_and(|(changed, last)| changed - last > COPY_DELAY_US)
    }

    /// Returns when the file last changed, in microseconds. `None` if it cannot be read again.
    fn modified_us(&self) -> Option<i64> {
        self.members[0].file.map(|file| file.modified_us)
    }
}

/// The record ids and the latest time found in a log.
struct LogRecords {
    /// Hashes of the record ids.
    ids: HashSet<u64>,
    /// The earliest time, in microseconds.
    first: Option<i64>,
    /// The latest time, in microseconds.
    last: Option<i64>,
}

impl LogRecords {
    /// Returns the earliest and the latest time.
    fn times(&self) -> (Option<i64>, Option<i64>) {
        (self.first, self.last)
    }
}

/// Reads the records of a log. `None` if it cannot be read or has no record ids.
fn comparable_records(log: &GroupedLog<'_>) -> Option<LogRecords> {
    let records = read_records(log.file?).ok()?;
    (!records.ids.is_empty()).then_some(records)
}

/// Reads the record ids and the latest time of a log.
fn read_records(file: &LogCandidate) -> io::Result<LogRecords> {
    let mut content = Content::open_stream(file)?;
    let ids = memmem::Finder::new(ID_KEY);
    let times = memmem::Finder::new(TIME_KEY);
    let mut records = LogRecords { ids: HashSet::new(), first: None, last: None };
    let mut buffer = Vec::new();
    loop {
        let kept = buffer.len();
        content.by_ref().take(CHUNK_BYTES as u64).read_to_end(&mut buffer)?;
        if buffer.len() == kept {
            return Ok(records);
        }

        for key_at in ids.find_iter(&buffer) {
            if let Some(id) = text_after(&buffer, key_at + ID_KEY.len())
                && let Some(id) = id.get(..ID_BYTES)
            {
                records.ids.insert(xxh3_64(id));
            }
        }
        for key_at in times.find_iter(&buffer) {
            let text = text_after(&buffer, key_at + TIME_KEY.len());
            let Some(time) = text.and_then(parse_time) else { continue };
            records.first = Some(records.first.map_or(time, |first| first.min(time)));
            records.last = records.last.max(Some(time));
        }

        // Keeps the end, as an id may continue in the next chunk. An id found twice is harmless in
        // a set.
        let rest = buffer.len().saturating_sub(ID_KEY.len() + ID_BYTES + MAX_GAP_BYTES);
        buffer.drain(..rest);
        if buffer.ends_with(&[0]) && content.skip_hole()? > 0 {
            buffer.clear();
        }
    }
}

/// Returns what follows the opening quote of a text that begins at `at`, possibly after a space.
fn text_after(buffer: &[u8], at: usize) -> Option<&[u8]> {
    let rest = buffer.get(at..)?;
    let rest = rest.strip_prefix(b" ").unwrap_or(rest);
    rest.strip_prefix(b"\"")
}

/// Parses a time that ends before the next quote, into microseconds.
fn parse_time(bytes: &[u8]) -> Option<i64> {
    let text = bytes.split(|byte| *byte == b'"').next()?;
    let text = std::str::from_utf8(&text[..MAX_TIME_BYTES.min(text.len())]).ok()?;
    parse_micros(Some(text))
}
