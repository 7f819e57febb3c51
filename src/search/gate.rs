//! The filters, applied before any text is touched: to sessions, segments, blocks, pages and rows.

use std::collections::HashSet;

use fixedbitset::FixedBitSet;
use schemas::session::SessionRow;

use super::known::known;
use super::page::{Position, Request, Work};
use super::query::{Field, Filter, Query};
use crate::cores::in_parallel;
use crate::store::{
    Block, Grams, KnownRows, RowFacts, Segment, SkipIndex, Snapshot, StoreError, TextPage,
};

/// A page of text that may hold matches.
#[derive(Debug, Clone, Copy)]
pub(super) struct Unit {
    pub(super) segment: usize,
    pub(super) page: TextPage,
    /// Newest time of its blocks.
    pub(super) newest: Option<i64>,
    /// Where results are ranked: what its best row is expected to score.
    pub(super) estimate: f64,
}

/// A row that passes the filters.
#[derive(Debug, Clone, Copy)]
pub(super) struct Row {
    pub(super) segment: usize,
    /// Position in the segment.
    pub(super) row: usize,
    /// Position in `Snapshot::sessions`.
    pub(super) session: usize,
    pub(super) event_index: u32,
    pub(super) facts: RowFacts,
    /// It is known to match.
    pub(super) is_certain: bool,
}

/// The filters of a request over a snapshot.
pub(super) struct Gate<'a> {
    pub(super) snapshot: &'a Snapshot,
    pub(super) request: &'a Request<'a>,
    sessions: Option<HashSet<usize>>,
    segments: Vec<SegmentGate>,
    /// Blocks asked about.
    pub(super) work: Work,
}

/// Blocks that may hold a text, of which its words are asked for row by row: to look at the pages of
/// fewer takes less.
const WORTH_ITS_WORDS: usize = 32;

/// What the filters leave of a segment.
#[derive(Default)]
struct SegmentGate {
    /// Nothing of it.
    closed: bool,
    /// The labels and the files that pass; `None` is all.
    labels: Option<FixedBitSet>,
    files: Option<FixedBitSet>,
    /// The blocks that are left, by position.
    held: Vec<usize>,
    /// What is known of the rows; `None` is nothing.
    known: Option<KnownRows>,
}

impl<'a> Gate<'a> {
    /// Lets rows pass in which all clauses of `required` may hold.
    pub(super) fn new(
        snapshot: &'a Snapshot,
        request: &'a Request<'a>,
        required: &Query,
    ) -> Result<Self, StoreError> {
        let sessions = sessions(snapshot, request);
        let (segments, work) = (Vec::new(), Work::default());
        let mut gate = Self { snapshot, request, sessions, segments, work };
        let segments = snapshot.segments();
        let asked: Vec<bool> = segments.iter().map(|segment| gate.concerns(segment)).collect();
        let unread =
            segments.iter().zip(&asked).filter(|(segment, asked)| **asked && !segment.is_open());
        let unread: Vec<&Segment> = unread.map(|(segment, _)| segment).collect();
        // The first search opens all files, which takes longer than what it looks for.
        if !unread.is_empty() {
            in_parallel(&unread, 1, |segments| segments.iter().try_for_each(|s| s.open()))?;
        }
        let needs = required.needs();
        let numbered: Vec<_> = segments.iter().zip(asked).enumerate().collect();
        let parts = in_parallel(&numbered, 1, |segments| {
            let open = |(number, (segment, asked)): &(usize, (&Segment, bool))| {
                Ok((*number, gate.segment(segment, *asked, required, &needs)?))
            };
            segments.iter().map(open).collect::<Result<Vec<_>, StoreError>>()
        })?;
        let mut opened: Vec<_> = parts.into_iter().flatten().collect();
        opened.sort_unstable_by_key(|(number, _)| *number);
        gate.segments = opened.into_iter().map(|(_, segment)| segment).collect();
        for (segment, open) in segments.iter().zip(&gate.segments).filter(|(_, open)| !open.closed)
        {
            gate.work.blocks += segment.index()?.blocks().len();
            gate.work.blocks_held += open.held.len();
        }
        Ok(gate)
    }

    /// Whether a segment may have rows that are asked for, as far as its entry and sessions tell.
    fn concerns(&self, segment: &Segment) -> bool {
        self.in_time(segment.entry.times, segment.entry.untimed)
            && segment.spans.iter().any(|span| self.wants(span.session))
    }

    fn segment(
        &self,
        segment: &Segment,
        asked: bool,
        required: &Query,
        needs: &[Vec<Grams>],
    ) -> Result<SegmentGate, StoreError> {
        let mut gate = SegmentGate { closed: !asked, ..SegmentGate::default() };
        let filters = &self.request.query.filters;
        let (files, labels): (Vec<&Filter>, Vec<&Filter>) = filters
            .iter()
            .filter(|filter| !filter.field.is_of_session())
            .partition(|filter| filter.field == Field::File);
        if !gate.closed && !labels.is_empty() {
            let all = segment.index()?.labels()?.iter();
            let passes = all.map(|label| {
                labels.iter().all(|filter| {
                    filter.passes(match filter.field {
                        Field::Tool => label.tool.as_deref(),
                        Field::Model => label.model.as_deref(),
                        _ => label.branch.as_deref(),
                    })
                })
            });
            gate.labels = Some(bits(passes));
        }
        if !gate.closed && !files.is_empty() {
            let all = segment.index()?.files()?.iter();
            let passes = all.map(|paths| {
                let paths = Some(paths.as_str()).filter(|paths| !paths.is_empty());
                files.iter().all(|filter| filter.passes(paths))
            });
            gate.files = Some(bits(passes));
        }
        let empty = |set: &Option<FixedBitSet>| set.as_ref().is_some_and(FixedBitSet::is_clear);
        gate.closed |= empty(&gate.labels) || empty(&gate.files);
        if !gate.closed {
            let index = segment.index()?;
            gate.held = self.held(index, needs)?;
            if gate.held.len() > WORTH_ITS_WORDS {
                gate.known = known(index, required)?;
            }
        }
        Ok(gate)
    }

    fn wants(&self, session: usize) -> bool {
        self.sessions.as_ref().is_none_or(|wanted| wanted.contains(&session))
    }

    /// Whether rows of these times may be in time, and behind the cursor.
    fn in_time(&self, times: Option<(i64, i64)>, untimed: bool) -> bool {
        let (since, until) = (self.request.since, self.request.query.until);
        let Some((oldest, newest)) = times else {
            return untimed && since.is_none() && until.is_none();
        };
        let shown = self.request.after.as_ref().and_then(|after| after.time);
        let bounds = since.is_none_or(|since| newest >= since)
            && until.is_none_or(|until| oldest < until)
            && shown.is_none_or(|shown| oldest <= shown);
        bounds || untimed && since.is_none() && until.is_none()
    }

    /// Segments of which something is left, by position.
    pub(super) fn open_segments(&self) -> impl Iterator<Item = (usize, &'a Segment)> {
        let segments = self.snapshot.segments().iter().enumerate();
        segments.filter(|(number, _)| !self.segments[*number].closed)
    }

    /// The pages that the filters and the skip index leave.
    pub(super) fn units(&self) -> Result<Vec<Unit>, StoreError> {
        let mut units = Vec::new();
        for (number, segment) in self.open_segments() {
            let blocks = segment.index()?.blocks();
            let held: Vec<_> = self.segments[number].held.iter().map(|at| &blocks[*at]).collect();
            self.pages(number, segment, &held, &mut units)?;
        }
        Ok(units)
    }

    /// The blocks of a segment that are left, by position, for a text that must hold one alternative of
    /// every group of `needs`.
    fn held(&self, index: &SkipIndex, needs: &[Vec<Grams>]) -> Result<Vec<usize>, StoreError> {
        let mut held = FixedBitSet::with_capacity(index.blocks().len());
        held.insert_range(..);
        for group in needs {
            let mut any = FixedBitSet::with_capacity(held.len());
            for grams in group {
                any.union_with(&index.holding(grams)?);
            }
            held.intersect_with(&any);
        }
        let in_time = |block: &Block| self.in_time(block.times, block.untimed);
        Ok(held.ones().filter(|at| in_time(&index.blocks()[*at])).collect())
    }

    /// The pages of `blocks` (ascending) on which a wanted session has rows.
    pub(super) fn pages(
        &self,
        number: usize,
        segment: &Segment,
        blocks: &[&Block],
        units: &mut Vec<Unit>,
    ) -> Result<(), StoreError> {
        if blocks.is_empty() {
            return Ok(());
        }
        let known = self.segments[number].known.as_ref();
        for page in segment.text_pages()? {
            let end = page.start + page.count;
            let may = |known: &KnownRows| (page.start..end).any(|row| known.may.contains(row));
            if known.is_some_and(|known| !may(known)) {
                continue;
            }
            let from = blocks.partition_point(|block| block.start + block.count <= page.start);
            let of_page = blocks[from..].iter().take_while(|block| block.start < end);
            let newest = of_page.map(|block| block.times.map(|(_, newest)| newest)).max();
            let unit =
                newest.map(|newest| Unit { segment: number, page: *page, newest, estimate: 0.0 });
            let Some(unit) = unit else { continue };
            let from = segment.spans.partition_point(|span| span.start + span.count <= page.start);
            let mut spans = segment.spans[from..].iter().take_while(|span| span.start < end);
            if spans.any(|span| self.wants(span.session)) {
                units.push(unit);
            }
        }
        Ok(())
    }

    /// Whether filters, or what is known of rows, may leave few rows of a page.
    pub(super) fn looks_at_rows(&self, unit: &Unit) -> bool {
        let (request, query, segment) =
            (self.request, self.request.query, &self.segments[unit.segment]);
        let any = request.since.is_some() || query.until.is_some() || query.errors.is_some();
        any || !request.event_types.is_empty()
            || self.sessions.is_some()
            || segment.labels.is_some()
            || segment.files.is_some()
            || segment.known.is_some()
    }

    /// The live rows of a page that pass every filter, ascending; of those at the positions `only`,
    /// which ascend, if there are such.
    pub(super) fn rows(&self, unit: &Unit, only: Option<&[usize]>) -> Result<Vec<Row>, StoreError> {
        let segment = &self.snapshot.segments()[unit.segment];
        let page = &unit.page;
        let facts = segment.index()?.facts(page.start..page.start + page.count)?;
        let from = segment.spans.partition_point(|span| span.start + span.count <= page.start);
        let known = self.segments[unit.segment].known.as_ref();
        let mut rows = Vec::new();
        for span in
            segment.spans[from..].iter().take_while(|span| span.start < page.start + page.count)
        {
            if !self.wants(span.session) {
                continue;
            }
            let first = span.start.max(page.start);
            let end = (span.start + span.count).min(page.start + page.count);
            let mut add = |row: usize| {
                let Some(facts) = facts.get(row - page.start) else { return };
                if known.is_some_and(|known| !known.may.contains(row)) {
                    return;
                }
                let offset = u32::try_from(row - span.start).unwrap_or(u32::MAX);
                let found = Row {
                    segment: unit.segment,
                    row,
                    session: span.session,
                    event_index: span.first_index.saturating_add(offset),
                    facts,
                    is_certain: known.is_some_and(|known| known.certain.contains(row)),
                };
                if self.passes(&found) {
                    rows.push(found);
                }
            };
            match only {
                Some(only) => {
                    let from = only.partition_point(|row| *row < first);
                    only[from..].iter().take_while(|row| **row < end).for_each(|row| add(*row));
                }
                None => (first..end).for_each(add),
            }
        }
        Ok(rows)
    }

    fn passes(&self, row: &Row) -> bool {
        let (request, query, facts) = (self.request, self.request.query, &row.facts);
        let in_time = request.since.is_none_or(|since| facts.time.is_some_and(|t| t >= since))
            && query.until.is_none_or(|until| facts.time.is_some_and(|time| time < until));
        let segment = &self.segments[row.segment];
        let among = |set: &Option<FixedBitSet>, at: u32| {
            set.as_ref().is_none_or(|set| set.contains(at as usize))
        };
        in_time
            && (query.with_replay || !facts.is_replay)
            && query.errors.is_none_or(|wanted| wanted == (facts.is_error == Some(true)))
            && (request.event_types.is_empty() || request.event_types.contains(&facts.event_type))
            && among(&segment.labels, facts.labels)
            && among(&segment.files, facts.files)
            && request.after.as_ref().is_none_or(|after| self.order(row, after).is_gt())
    }

    /// How the place of a row compares with `other`, without making it.
    fn order(&self, row: &Row, other: &Position) -> std::cmp::Ordering {
        let id = &self.snapshot.sessions()[row.session].session_id;
        other
            .time
            .cmp(&row.facts.time)
            .then_with(|| id.cmp(&other.session_id))
            .then_with(|| other.event_index.cmp(&row.event_index))
    }

    /// The place of a row in the order of results.
    pub(super) fn position(&self, row: &Row) -> Position {
        Position {
            time: row.facts.time,
            session_id: self.snapshot.sessions()[row.session].session_id.clone(),
            event_index: row.event_index,
        }
    }
}

fn bits(flags: impl Iterator<Item = bool>) -> FixedBitSet {
    let mut set = FixedBitSet::new();
    for (at, flag) in flags.enumerate() {
        set.grow(at + 1);
        set.set(at, flag);
    }
    set
}

/// The sessions that are asked for and pass `agent:` and `label:`; `None` is all.
fn sessions(snapshot: &Snapshot, request: &Request<'_>) -> Option<HashSet<usize>> {
    let filters = request.query.filters.iter().filter(|filter| filter.field.is_of_session());
    let filters: Vec<_> = filters.collect();
    if filters.is_empty() {
        return request.sessions.clone();
    }
    let passes = |at: &usize| {
        filters.iter().all(|filter| session_passes(filter, snapshot, &snapshot.sessions()[*at]))
    };
    let asked = |at: &usize| request.sessions.as_ref().is_none_or(|asked| asked.contains(at));
    Some((0..snapshot.sessions().len()).filter(asked).filter(passes).collect())
}

/// Whether a session passes a filter of sessions.
fn session_passes(filter: &Filter, snapshot: &Snapshot, session: &SessionRow) -> bool {
    if filter.field == Field::Label {
        // Labels are whole words that somebody chose: no part of one is meant.
        let given = snapshot.labels().of(&session.session_id);
        let holds = given.is_some_and(|given| filter.any.iter().any(|label| given.has(label)));
        return holds != filter.excluded;
    }
    let names = [Some(session.provider.as_str()), session.agent_id.as_deref()];
    let passed = |name: &Option<&str>| filter.passes(*name);
    if filter.excluded { names.iter().all(passed) } else { names.iter().any(passed) }
}
