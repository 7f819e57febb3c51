//! Which of several logs that begin alike is the original, and which were forked from it.

use std::collections::{HashMap, HashSet};
use std::io::{self, Read};

use memchr::memmem;
use xxhash_rust::xxh3::xxh3_64;

use crate::container::Content;
use crate::discover::Candidate;
use crate::plan::Work;

/// Stands before the id of a record, 36 characters.
const KEY: &[u8] = b"\"uuid\":\"";
const ID: usize = 36;

const CHUNK: usize = 1 << 20;

/// Orders new logs that begin with the same record, which come in the order of their sizes: logs
/// that another one holds whole, as a fork at their end does, before it. Logs of one id stay
/// together, and those that name a parent behind the others.
pub(crate) fn originals_first<'w>(works: &[&'w Work]) -> Vec<&'w Work> {
    let mut of_id: Vec<Vec<&Work>> = Vec::new();
    for work in works {
        let same = |group: &&mut Vec<&Work>| group[0].claim.native_id == work.claim.native_id;
        match of_id.iter_mut().find(same) {
            Some(group) => group.push(work),
            None => of_id.push(vec![work]),
        }
    }
    let is_free = |group: &&Vec<&Work>| group[0].claim.parent.is_none();
    if of_id.iter().filter(is_free).count() > 1 {
        let records: Vec<_> =
            of_id.iter().map(|group| records(&group[0].file).unwrap_or_default()).collect();
        let mut held: HashMap<u64, usize> = HashMap::new();
        records.iter().flatten().for_each(|id| *held.entry(*id).or_default() += 1);
        let is_whole = |records: &HashSet<u64>| records.iter().all(|id| held[id] > 1);
        let mut order: Vec<usize> = (0..of_id.len()).collect();
        order.sort_by_key(|at| {
            let whole = !records[*at].is_empty() && is_whole(&records[*at]);
            let length = if whole { records[*at].len() } else { usize::MAX };
            (of_id[*at][0].claim.parent.is_some(), length)
        });
        return order.into_iter().flat_map(|at| std::mem::take(&mut of_id[at])).collect();
    }
    of_id.concat()
}

/// The ids of a log's records, by hash.
fn records(file: &Candidate) -> io::Result<HashSet<u64>> {
    let mut content = Content::stream(file)?;
    let (mut records, mut buffer, finder) = (HashSet::new(), Vec::new(), memmem::Finder::new(KEY));
    loop {
        let kept = buffer.len();
        content.by_ref().take(CHUNK as u64).read_to_end(&mut buffer)?;
        if buffer.len() == kept {
            return Ok(records);
        }
        let ids = finder.find_iter(&buffer).map(|at| at + KEY.len());
        let whole = ids.filter_map(|at| buffer.get(at..at + ID)).map(xxh3_64);
        records.extend(whole);
        // An id may go on in the next chunk; one that is found twice is the same.
        let rest = buffer.len().saturating_sub(KEY.len() + ID - 1);
        buffer.drain(..rest);
    }
}
