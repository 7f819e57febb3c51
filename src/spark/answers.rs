//! What the tools ask of the engine.

use arrow::array::RecordBatch;
use schemas::ToolError;

use super::engine::SparkEngine;
use super::query;
use crate::search::SearchRequest;
use crate::store::{Snapshot, Store};
use crate::tools::{LakeEngine, LakeScope, WantedColumns};

impl LakeEngine for SparkEngine {
    fn refresh(&self, store: &Store) -> Result<(), ToolError> {
        self.pull_rows(store)
    }

    fn load_sessions(
        &self,
        store: &Store,
        snapshot: &Snapshot,
        sessions: &[usize],
        stop: &(dyn Fn() -> bool + Sync),
    ) -> Result<LakeScope, ToolError> {
        let objects = self.load_events(store, snapshot, sessions, stop)?;
        let total = self.catalog()?.object_count();
        let description = format!("Spark read {objects} of {total} objects");
        Ok(LakeScope { description, ..LakeScope::default() })
    }

    fn load_matches(
        &self,
        store: &Store,
        snapshot: &Snapshot,
        request: &SearchRequest<'_>,
        stop: &(dyn Fn() -> bool + Sync),
    ) -> Result<LakeScope, ToolError> {
        self.find_matches(store, snapshot, request, stop)
    }

    fn load_for_comparison(
        &self,
        store: &Store,
        snapshot: &Snapshot,
        request: &SearchRequest<'_>,
        is_ranked: bool,
        stop: &(dyn Fn() -> bool + Sync),
    ) -> Result<LakeScope, ToolError> {
        self.load_compared(store, snapshot, request, is_ranked, stop)
    }

    fn read_columns(
        &self,
        wanted: &WantedColumns<'_>,
        stop: &(dyn Fn() -> bool + Sync),
        take: &mut dyn FnMut(&str, &RecordBatch) -> Result<bool, ToolError>,
    ) -> Result<LakeScope, ToolError> {
        query::read_columns(self, wanted, stop, take)
    }

    fn query(
        &self,
        sql: &str,
        max_rows: usize,
        stop: &(dyn Fn() -> bool + Sync),
    ) -> Result<(Vec<RecordBatch>, LakeScope), ToolError> {
        query::run_query(self, sql, max_rows, stop)
    }
}
