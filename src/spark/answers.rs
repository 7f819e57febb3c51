//! The lake as a history that tools ask.

use std::io;
use std::time::Instant;

use schemas::price::PriceTable;
use schemas::{ErrorCode, ToolError, limits};

use super::engine::{LakeCall, SparkEngine};
use super::query;
use sql::{SqlError, SqlQuery, SqlSummary, encode_rows};
use store::{Snapshot, Store};
use tools::error::{sql_error, store_error};
use tools::{
    CallView, ColumnScan, Examined, Freshness, History, NeededEvents, Stop, WantedColumns,
    WriteError,
};

impl History for SparkEngine {
    fn has_all_events(&self) -> bool {
        false
    }

    fn open_view(
        &self,
        store: &Store,
        needed: &NeededEvents<'_>,
        stop: Stop<'_>,
    ) -> Result<CallView, ToolError> {
        let examined = self.load_needed(store, needed, stop)?;
        let snapshot = store.take_snapshot().map_err(store_error)?;
        Ok(CallView { snapshot, freshness: Freshness::default(), examined })
    }

    fn plan_scan<'s>(&'s self, wanted: &'s WantedColumns<'s>) -> Result<ColumnScan<'s>, ToolError> {
        query::plan_scan(self, wanted)
    }

    fn run_query(
        &self,
        _: &Snapshot,
        _: &PriceTable,
        query: &SqlQuery<'_>,
        out: &mut dyn io::Write,
        stop: Stop<'_>,
    ) -> Result<(SqlSummary, Examined), WriteError> {
        if query.sql.len() > limits::SQL_BYTES {
            return Err(sql_error(SqlError::TooLong).into());
        }
        let until = Instant::now() + query.max_time;
        let is_over = || Instant::now() >= until;
        // One row more than requested shows that there are more.
        let max_rows = query.max_rows.saturating_add(1);
        let result = query::run_query(self, query.sql, max_rows, &|| stop() || is_over());
        let (batches, examined) = match result {
            Err(error) if error.code == ErrorCode::Cancelled && is_over() => {
                return Err(sql_error(SqlError::OutOfTime(query.max_time)).into());
            }
            result => result?,
        };
        let (rows, summary) = encode_rows(&batches, query)
            .map_err(|error| ToolError::new(ErrorCode::InternalError, error))?;
        out.write_all(&rows).map_err(WriteError::Output)?;
        Ok((summary, examined))
    }
}

impl SparkEngine {
    /// Brings the rows of the sessions in the store up to date with the lake, and loads what a call
    /// needs.
    fn load_needed(
        &self,
        store: &Store,
        needed: &NeededEvents<'_>,
        stop: Stop<'_>,
    ) -> Result<Option<Examined>, ToolError> {
        if matches!(needed, NeededEvents::None) {
            return Ok(None);
        }
        self.pull_rows(store)?;
        let snapshot = store.take_snapshot().map_err(store_error)?;
        let call = LakeCall { store, snapshot: &snapshot, stop };
        let examined = match needed {
            NeededEvents::None | NeededEvents::Rows => Examined::default(),
            NeededEvents::Sessions(find) => {
                let objects = self.load_events(&call, &find(&snapshot))?;
                let total = self.catalog()?.object_count();
                let description = format!("Spark read {objects} of {total} objects");
                Examined { description, ..Examined::default() }
            }
            NeededEvents::Matches(needed) => self.load_page(&call, needed)?,
        };
        Ok(Some(examined))
    }
}
