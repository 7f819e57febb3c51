//! The history of the store, which has all events of its sessions.

use std::io;
use std::sync::Arc;

use arrow::array::RecordBatch;
use schemas::ToolError;
use schemas::price::PriceTable;
use schemas::table::EventColumn;

use super::freshness::Refresh;
use super::history::{
    CallView, ColumnPart, ColumnScan, Examined, History, NeededEvents, Stop, WantedColumns,
    WriteError,
};
use crate::error::{sql_error, store_error};
use sql::{Sandbox, SqlError, SqlQuery, SqlSummary};
use store::{EventReader, RowSpan, Segment, Snapshot, Store, StoreError};

/// Minimum number of rows that a core takes at a time; the rows of one span stay together.
const MIN_PART_ROWS: usize = 1 << 14;

/// Number of rows decoded at a time.
const BATCH_ROWS: usize = 1 << 13;

/// What keeps the store up to date, and what runs queries over it.
pub struct StoreHistory {
    pub refresh: Option<Arc<dyn Refresh>>,
    pub sandbox: Sandbox,
}

impl History for StoreHistory {
    fn has_all_events(&self) -> bool {
        true
    }

    fn open_view(
        &self,
        store: &Store,
        _: &NeededEvents<'_>,
        _: Stop<'_>,
    ) -> Result<CallView, ToolError> {
        let snapshot = store.take_lazy_snapshot().map_err(store_error)?;
        let freshness = self.refresh.as_ref().map(|refresh| refresh.current_freshness());
        Ok(CallView { snapshot, freshness: freshness.unwrap_or_default(), examined: None })
    }

    fn plan_scan<'s>(&'s self, wanted: &'s WantedColumns<'s>) -> Result<ColumnScan<'s>, ToolError> {
        let mut units: Vec<(&Segment, Vec<(usize, RowSpan)>)> = Vec::new();
        let segments = wanted.snapshot.segments().iter();
        for segment in segments.filter(|segment| may_have_events(segment, wanted)) {
            let mut rows = MIN_PART_ROWS;
            for span in segment.spans.iter().filter(|span| wanted.is_selected(span.session)) {
                if rows >= MIN_PART_ROWS {
                    units.push((segment, Vec::new()));
                    rows = 0;
                }
                rows += span.count;
                if let Some((_, spans)) = units.last_mut() {
                    spans.push((span.session, RowSpan { start: span.start, count: span.count }));
                }
            }
        }
        let parts = units.into_iter().map(|(segment, spans)| -> ColumnPart<'s> {
            Box::new(move |take| {
                read_spans(segment, &spans, &wanted.columns, take).map_err(store_error)
            })
        });
        Ok(ColumnScan { parts: parts.collect(), examined: Examined::default() })
    }

    fn run_query(
        &self,
        snapshot: &Snapshot,
        prices: &PriceTable,
        query: &SqlQuery<'_>,
        out: &mut dyn io::Write,
        stop: Stop<'_>,
    ) -> Result<(SqlSummary, Examined), WriteError> {
        match self.sandbox.run(snapshot, prices, query, out, stop) {
            Ok(summary) => Ok((summary, Examined::default())),
            Err(SqlError::Output(error)) => Err(WriteError::Output(error)),
            Err(error) => Err(sql_error(error).into()),
        }
    }
}

/// Returns true if a segment may contain events of the wanted times.
fn may_have_events(segment: &Segment, wanted: &WantedColumns<'_>) -> bool {
    let WantedColumns { since, until, .. } = wanted;
    if since.is_none() && until.is_none() {
        return true;
    }
    segment.entry.times.is_some_and(|(first, last)| {
        since.is_none_or(|since| last >= since) && until.is_none_or(|until| first < until)
    })
}

/// Reads spans of a segment, each with the position of its session.
fn read_spans(
    segment: &Segment,
    spans: &[(usize, RowSpan)],
    columns: &[EventColumn],
    take: &mut dyn FnMut(usize, &RecordBatch) -> bool,
) -> Result<(), StoreError> {
    let rows = merge_adjacent_spans(spans.iter().map(|(_, span)| *span));
    let mut reader = EventReader::open(segment, &rows, columns, BATCH_ROWS)?;
    let mut spans = spans.iter();
    // The session of the current span, and the number of its rows that were not passed on yet.
    let mut session = 0;
    let mut span_rows_left = 0;
    while let Some(batch) = reader.next_batch()? {
        let mut batch_rows_done = 0;
        while batch_rows_done < batch.num_rows() {
            if span_rows_left == 0 {
                let Some((next, span)) = spans.next() else { break };
                session = *next;
                span_rows_left = span.count;
            }
            let row_count = span_rows_left.min(batch.num_rows() - batch_rows_done);
            if !take(session, &batch.slice(batch_rows_done, row_count)) {
                return Ok(());
            }
            span_rows_left -= row_count;
            batch_rows_done += row_count;
        }
    }
    Ok(())
}

/// Merges adjacent spans.
fn merge_adjacent_spans(spans: impl Iterator<Item = RowSpan>) -> Vec<RowSpan> {
    let mut all: Vec<RowSpan> = Vec::new();
    for span in spans {
        match all.last_mut() {
            Some(last) if last.start + last.count == span.start => last.count += span.count,
            _ => all.push(span),
        }
    }
    all
}
