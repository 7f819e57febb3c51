//! Fetches many sessions with few requests: joined objects have the rows and events of most of them.
//!
//! A joined object is used if at least half of it is wanted. What it lacks, or what is not valid in it,
//! is read from the objects of the session, as if there were no joined ones.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::ops::Range;

use arrow::array::RecordBatch;
use schemas::ToolError;

use super::day_manifest::{DayManifest, JoinedKind, JoinedObject, list_days, read_days};
use super::fetch::{FetchedSession, KnownParts, check_row, fetch_session};
use super::listing::ListedSession;
use super::place::LakePlace;
use super::pull_report::PullContent;
use super::requests::{count_within, run_requests};
use store::{
    PublishedSession, batch_bytes, check_events, decode_joined, events_date, is_events_key,
    slice_joined,
};

/// Most sessions whose events are in memory at a time.
const SESSIONS_AT_A_TIME: usize = 8;

/// Bytes of the objects of these sessions, unless one has more. Decoded they have many times more.
const SESSION_BYTES_AT_A_TIME: u64 = 8 << 20;

/// Sessions of which only the rows are wanted that are fetched at a time.
const ROWS_AT_A_TIME: usize = 128;

/// Joined objects that are fetched at a time.
const OBJECTS_AT_A_TIME: usize = 8;

/// Bytes of joined objects that are fetched at a time, unless one has more.
const BYTES_AT_A_TIME: u64 = 32 << 20;

/// The manifest of a day is read if at least this many objects of the day are wanted: fewer are read
/// with as many requests as the manifest and the joined objects take.
const MIN_DAY_OBJECTS: usize = 4;

/// A joined object is read if at least one in this number of its rows is wanted.
const WANTED_SHARE: usize = 2;

/// Most bytes of events that wait for those of other days of their session. Those of more sessions are
/// read from the objects of the session.
const MAX_WAITING_BYTES: usize = 96 << 20;

/// A session to fetch.
pub(super) struct WantedParts<'w> {
    pub(super) lake_id: &'w str,
    pub(super) listed: &'w ListedSession,
}

impl WantedParts<'_> {
    /// Returns the kind of the object at a position of the listing; `None` for a skip index.
    fn kind_of(&self, position: usize) -> Option<JoinedKind> {
        let object = self.listed.objects.get(position)?;
        if position == 0 {
            return Some(JoinedKind::Rows);
        }
        let is_events = is_events_key(&object.key, self.listed.provider, self.lake_id);
        is_events.then_some(JoinedKind::Events)
    }

    /// Returns the day on which an object is joined.
    fn date_of(&self, position: usize) -> Option<&str> {
        if position == 0 {
            return self.listed.last_date();
        }
        events_date(&self.listed.objects.get(position)?.key)
    }
}

/// A part of a session that a joined object has.
struct JoinedPart {
    /// Position of the session among those that are wanted.
    session: usize,
    /// Position of the object in the listing of the session.
    position: usize,
    /// Its rows in the joined object.
    rows: Range<usize>,
}

/// A joined object that is read.
struct PlannedObject {
    kind: JoinedKind,
    object: JoinedObject,
    parts: Vec<JoinedPart>,
}

/// A session some of whose parts come from joined objects.
#[derive(Default)]
struct OpenSession {
    known: KnownParts,
    /// Joined parts that were not examined yet.
    expected: usize,
    /// Bytes of the known events.
    bytes: usize,
}

/// Fetches sessions, and calls `take` with the position of each, in any order. The error in the result
/// is the reason why a session is not valid.
///
/// # Errors
/// Fails if the lake cannot be reached, and with the error of `take`.
pub(super) fn fetch_sessions(
    place: &LakePlace,
    wanted: &[WantedParts<'_>],
    content: PullContent,
    take: &mut dyn FnMut(usize, Result<FetchedSession, String>) -> Result<(), ToolError>,
) -> Result<(), ToolError> {
    let planned = plan_objects(place, wanted, content)?;
    let mut open: HashMap<usize, OpenSession> = HashMap::new();
    for part in planned.iter().flat_map(|object| &object.parts) {
        open.entry(part.session).or_default().expected += 1;
    }
    let single: Vec<usize> = (0..wanted.len()).filter(|at| !open.contains_key(at)).collect();
    let mut fetch = JoinedFetch { place, wanted, content, take, open, waiting_bytes: 0 };
    let mut rest = planned.as_slice();
    while !rest.is_empty() {
        let (some, others) = rest.split_at(count_fetched(rest));
        let fetched = run_requests(some, |planned| {
            let content = planned.object.object.read(place)?;
            // Events are decoded one object after the other: they may be much larger than the object.
            Ok::<_, ToolError>(match (content, planned.kind) {
                (Ok(bytes), JoinedKind::Rows) => {
                    FetchedObject::Decoded(DecodedObject::new(planned, bytes))
                }
                (Ok(bytes), JoinedKind::Events) => FetchedObject::Encoded(bytes),
                (Err(reason), _) => FetchedObject::Decoded(Err(reason)),
            })
        })?;
        for (planned, fetched) in some.iter().zip(fetched) {
            let decoded = match fetched {
                FetchedObject::Encoded(bytes) => DecodedObject::new(planned, bytes),
                FetchedObject::Decoded(decoded) => decoded,
            };
            fetch.take_object(planned, decoded)?;
        }
        rest = others;
    }
    let mut rest = single.as_slice();
    while !rest.is_empty() {
        let (some, others) = rest.split_at(count_sessions(rest, wanted, content));
        fetch.complete(some)?;
        rest = others;
    }
    Ok(())
}

/// Returns how many of the first sessions are fetched at a time: at least one.
fn count_sessions(sessions: &[usize], wanted: &[WantedParts<'_>], content: PullContent) -> usize {
    let sizes = sessions.iter().take(sessions_at_a_time(content)).map(|at| match content {
        PullContent::Whole => {
            wanted[*at].listed.objects.iter().map(|object| object.bytes).sum::<u64>()
        }
        PullContent::Rows => 0,
    });
    count_within(sizes, SESSION_BYTES_AT_A_TIME)
}

/// Returns the number of sessions that are fetched at a time.
const fn sessions_at_a_time(content: PullContent) -> usize {
    match content {
        PullContent::Whole => SESSIONS_AT_A_TIME,
        PullContent::Rows => ROWS_AT_A_TIME,
    }
}

/// Returns how many of the first objects are fetched at a time.
fn count_fetched(planned: &[PlannedObject]) -> usize {
    let sizes = planned.iter().take(OBJECTS_AT_A_TIME).map(|planned| planned.object.object.bytes);
    count_within(sizes, BYTES_AT_A_TIME)
}

/// Decides which joined objects are read: day by day, so that few sessions wait for other days.
fn plan_objects(
    place: &LakePlace,
    wanted: &[WantedParts<'_>],
    content: PullContent,
) -> Result<Vec<PlannedObject>, ToolError> {
    let mut by_key: HashMap<&str, (usize, usize)> = HashMap::new();
    let mut dates: BTreeMap<String, usize> = BTreeMap::new();
    for (at, one) in wanted.iter().enumerate() {
        let positions = if content == PullContent::Rows { 1 } else { one.listed.objects.len() };
        for position in 0..positions {
            let (Some(_), Some(date)) = (one.kind_of(position), one.date_of(position)) else {
                continue;
            };
            by_key.insert(&one.listed.objects[position].key, (at, position));
            *dates.entry(date.to_owned()).or_default() += 1;
        }
    }
    dates.retain(|_, count| *count >= MIN_DAY_OBJECTS);
    if dates.is_empty() {
        return Ok(Vec::new());
    }
    let listed = list_days(place)?;
    let manifests = read_days(place, dates.keys().filter(|date| listed.contains_key(*date)))?;
    let mut planned = Vec::new();
    let mut seen = HashSet::new();
    for manifest in &manifests {
        for kind in JoinedKind::ALL {
            plan_day(manifest, kind, wanted, &by_key, &mut seen, &mut planned);
        }
    }
    Ok(planned)
}

/// Adds the joined objects of a day that are read. `seen` has the parts that come from one already.
fn plan_day<'w>(
    manifest: &DayManifest,
    kind: JoinedKind,
    wanted: &[WantedParts<'w>],
    by_key: &HashMap<&'w str, (usize, usize)>,
    seen: &mut HashSet<(usize, usize)>,
    planned: &mut Vec<PlannedObject>,
) {
    for object in manifest.of(kind) {
        let mut parts = Vec::new();
        let mut wanted_rows = 0;
        let mut start = 0;
        for source in &object.sources {
            let rows = start..start + source.rows;
            start = rows.end;
            let Some((session, position)) = by_key.get(source.key.as_str()).copied() else {
                continue;
            };
            let one = &wanted[session];
            let is_same = one.lake_id == source.session
                && one.kind_of(position) == Some(kind)
                && one.listed.objects[position].sha256 == source.sha256;
            if is_same && !seen.contains(&(session, position)) {
                wanted_rows += source.rows;
                parts.push(JoinedPart { session, position, rows });
            }
        }
        if parts.len() > 1 && wanted_rows * WANTED_SHARE >= object.row_count() {
            seen.extend(parts.iter().map(|part| (part.session, part.position)));
            planned.push(PlannedObject { kind, object: object.clone(), parts });
        }
    }
}

/// Fetches through joined objects.
struct JoinedFetch<'f, 'w> {
    place: &'f LakePlace,
    wanted: &'f [WantedParts<'w>],
    content: PullContent,
    take: &'f mut dyn FnMut(usize, Result<FetchedSession, String>) -> Result<(), ToolError>,
    /// The sessions with parts in joined objects.
    open: HashMap<usize, OpenSession>,
    /// Bytes of events of sessions whose other parts did not come yet.
    waiting_bytes: usize,
}

impl JoinedFetch<'_, '_> {
    /// Takes the parts of a joined object, and completes the sessions for which it was the last.
    fn take_object(
        &mut self,
        planned: &PlannedObject,
        decoded: Result<DecodedObject, String>,
    ) -> Result<(), ToolError> {
        if let Err(reason) = &decoded {
            tracing::debug!(key = planned.object.object.key, %reason, "a joined object is not used");
        }
        let decoded = decoded.ok();
        let mut complete = Vec::new();
        for part in &planned.parts {
            if let Some(decoded) = &decoded {
                self.add_part(part, decoded);
            }
            let Some(open) = self.open.get_mut(&part.session) else { continue };
            open.expected -= 1;
            if open.expected > 0 {
                continue;
            }
            self.waiting_bytes -= open.bytes;
            complete.push(part.session);
            if complete.len() == sessions_at_a_time(self.content) {
                self.complete(&complete)?;
                complete.clear();
            }
        }
        self.complete(&complete)
    }

    /// Keeps a part of a session, if it is valid.
    fn add_part(&mut self, part: &JoinedPart, decoded: &DecodedObject) {
        let one = &self.wanted[part.session];
        let Some(open) = self.open.get_mut(&part.session) else { return };
        match decoded {
            DecodedObject::Rows(rows) => {
                let row = rows.get(part.rows.start);
                let is_valid = |row: &&PublishedSession| {
                    check_row(&row.row, one.lake_id, one.listed.provider).is_ok()
                };
                open.known.row = row.filter(is_valid).cloned();
            }
            DecodedObject::Events(batches) => {
                let rows = slice_joined(batches, part.rows.clone());
                let rows =
                    rows.and_then(|rows| check_events(&rows, one.lake_id, one.listed.provider));
                let Ok(rows) = rows else { return };
                let bytes = batch_bytes(&rows);
                if open.expected > 1 && self.waiting_bytes + bytes > MAX_WAITING_BYTES {
                    return;
                }
                open.bytes += bytes;
                self.waiting_bytes += bytes;
                open.known.events.insert(part.position, rows);
            }
        }
    }

    /// Fetches what is not known of sessions, and gives them away.
    fn complete(&mut self, sessions: &[usize]) -> Result<(), ToolError> {
        let mut known = Vec::new();
        for at in sessions {
            let open = self.open.remove(at).unwrap_or_default();
            known.push((*at, open.known));
        }
        let fetched = run_requests(&known, |(at, known)| {
            let WantedParts { lake_id, listed } = &self.wanted[*at];
            let fetch = |known: &KnownParts| {
                fetch_session(self.place, lake_id, listed, self.content, known)
            };
            match fetch(known)? {
                // A joined object that says something else than its sources is as good as none.
                Err(_) if known.row.is_some() || !known.events.is_empty() => {
                    fetch(&KnownParts::default())
                }
                session => Ok(session),
            }
        })?;
        for ((at, _), session) in known.into_iter().zip(fetched) {
            (self.take)(at, session)?;
        }
        Ok(())
    }
}

/// A joined object as it was fetched.
enum FetchedObject {
    Encoded(Vec<u8>),
    Decoded(Result<DecodedObject, String>),
}

/// The content of a joined object.
enum DecodedObject {
    Rows(Vec<PublishedSession>),
    Events(Vec<RecordBatch>),
}

impl DecodedObject {
    fn new(planned: &PlannedObject, bytes: Vec<u8>) -> Result<Self, String> {
        let count = planned.object.row_count();
        match planned.kind {
            JoinedKind::Rows => PublishedSession::decode_all(bytes, count).map(Self::Rows),
            JoinedKind::Events => decode_joined(bytes, count).map(Self::Events),
        }
    }
}
