//! Orders logs that share history: the original first, then the logs forked from it.

use std::cmp::Reverse;
use std::collections::HashSet;
use std::io::{self, Read};

use memchr::memmem;
use schemas::Provider;
use xxhash_rust::xxh3::xxh3_64;

use super::in_order::in_order;
use crate::provider::format;
use crate::source::candidate::Candidate;
use crate::source::container::Content;
use crate::stream::micros;

/// Bytes that precede the id of a record; the id has 36 characters.
const KEY: &[u8] = b"\"uuid\":\"";
const ID: usize = 36;

/// Bytes that precede the time of a record.
const TIME: &[u8] = b"\"timestamp\":\"";
const LONGEST_TIME: usize = 32;

/// A file that changed more than this many microseconds after its last record was copied: its time
/// is that of the copy.
const COPIED_LATER: i64 = 3_600_000_000;

const CHUNK: usize = 1 << 20;

/// Number of logs up to which a group's files are compared. Larger groups are ordered by what their
/// logs say and by size.
const COMPARED: usize = 64;

/// A log that begins with the same record as others.
pub(crate) struct Member<'w> {
    pub(crate) session_id: &'w str,
    pub(crate) provider: Provider,
    pub(crate) native_id: &'w str,
    /// Native id of the parent log.
    pub(crate) parent: Option<&'w str>,
    /// The sessions that this log was found to repeat when it was read before.
    pub(crate) ancestors: Option<Vec<&'w str>>,
    /// The file, if it can be read again. If not, the log stays a copy of its ancestors.
    pub(crate) file: Option<&'w Candidate>,
}

/// Orders logs that share history, originals before their copies. The base order is that of the
/// store, then larger logs before smaller ones. A log comes before another one that names it as its
/// parent, or that contains it whole and changed later, as a fork at its end does. Logs of one id
/// stay together. The times of copied files are ignored: there the contained log is the original.
pub(crate) fn originals_first(mut members: Vec<Member<'_>>) -> Vec<&str> {
    members.sort_by_key(|member| {
        let rank = member.ancestors.as_ref().map_or(usize::MAX, Vec::len);
        let size = member.file.map_or(0, |file| file.size);
        let path = member.file.map(|file| &file.path);
        let ids_descend = format(member.provider).quirks.ids_descend;
        let age = ids_descend.then_some(Reverse(member.native_id));
        (rank, member.parent.is_some(), age, Reverse(size), path, member.session_id)
    });
    let mut logs: Vec<Vec<Member<'_>>> = Vec::new();
    for member in members {
        match logs.iter_mut().find(|log| log[0].native_id == member.native_id) {
            Some(log) => log.push(member),
            None => logs.push(vec![member]),
        }
    }
    let order = in_order(&before(&logs));
    order.into_iter().flat_map(|at| logs[at].iter().map(|member| member.session_id)).collect()
}

/// Returns, for every log, the positions of the logs that must come before it.
fn before(logs: &[Vec<Member<'_>>]) -> Vec<Vec<usize>> {
    let free = |log: &&Vec<Member<'_>>| log[0].parent.is_none() && log[0].file.is_some();
    let compared = logs.iter().filter(free).count() > 1 && logs.len() <= COMPARED;
    let records = |log: &Vec<Member<'_>>| {
        let file = log[0].file.filter(|_| compared)?;
        records(file).ok().filter(|records| !records.ids.is_empty())
    };
    let records: Vec<Option<Records>> = logs.iter().map(records).collect();
    let holds = |one: usize, other: usize| match (&records[one], &records[other]) {
        (Some(whole), Some(part)) => {
            part.ids.len() < whole.ids.len() && part.ids.is_subset(&whole.ids)
        }
        _ => false,
    };
    let is_copied = |at: usize| {
        let last = records[at].as_ref().and_then(|records| records.last);
        let file = logs[at][0].file;
        file.zip(last).is_some_and(|(file, last)| file.modified_us - last > COPIED_LATER)
    };
    let changed = |log: &Member<'_>| log.file.map(|file| file.modified_us);
    let of_one = |at: usize| -> Vec<usize> {
        let log = &logs[at][0];
        let is_before = |other: usize| match (log.file, &log.ancestors) {
            (None, Some(ancestors)) => {
                logs[other].iter().any(|member| ancestors.contains(&member.session_id))
            }
            // A fork without records of its own is not an original.
            _ => {
                let other_log = &logs[other][0];
                let is_older = changed(other_log) <= changed(log) || is_copied(at);
                log.parent == Some(other_log.native_id)
                    || other_log.parent.is_none() && is_older && holds(at, other)
            }
        };
        (0..logs.len()).filter(|other| *other != at && is_before(*other)).collect()
    };
    (0..logs.len()).map(of_one).collect()
}

/// The record ids and the latest time found in a log.
struct Records {
    /// Hashes of the record ids.
    ids: HashSet<u64>,
    /// The latest time, in microseconds.
    last: Option<i64>,
}

fn records(file: &Candidate) -> io::Result<Records> {
    let mut content = Content::stream(file)?;
    let (ids, times) = (memmem::Finder::new(KEY), memmem::Finder::new(TIME));
    let (mut records, mut buffer) = (Records { ids: HashSet::new(), last: None }, Vec::new());
    loop {
        let kept = buffer.len();
        content.by_ref().take(CHUNK as u64).read_to_end(&mut buffer)?;
        if buffer.len() == kept {
            return Ok(records);
        }
        let found = ids.find_iter(&buffer).map(|at| at + KEY.len());
        records.ids.extend(found.filter_map(|at| buffer.get(at..at + ID)).map(xxh3_64));
        let found = times.find_iter(&buffer).map(|at| at + TIME.len());
        let time = |at: usize| {
            let text = buffer.get(at..)?.split(|byte| *byte == b'"').next()?;
            let text = std::str::from_utf8(text.get(..LONGEST_TIME.min(text.len()))?).ok()?;
            micros(Some(text))
        };
        records.last = records.last.max(found.filter_map(time).max());
        // Keeps the end, as an id may continue in the next chunk. An id found twice is harmless in
        // a set.
        let rest = buffer.len().saturating_sub(KEY.len() + ID - 1);
        buffer.drain(..rest);
    }
}
