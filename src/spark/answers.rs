//! What the tools ask of the engine.

use arrow::array::RecordBatch;
use schemas::ToolError;

use super::engine::SparkEngine;
use super::query;
use search::SearchRequest;
use store::Store;
use tools::{LakeCall, LakeEngine, LakeScope, WantedColumns};

impl LakeEngine for SparkEngine {
    fn refresh(&self, store: &Store) -> Result<(), ToolError> {
        self.pull_rows(store)
    }

    fn load_sessions(
        &self,
        call: &LakeCall<'_>,
        sessions: &[usize],
    ) -> Result<LakeScope, ToolError> {
        let objects = self.load_events(call, sessions)?;
        let total = self.catalog()?.object_count();
        let description = format!("Spark read {objects} of {total} objects");
        Ok(LakeScope { description, ..LakeScope::default() })
    }

    fn load_matches(
        &self,
        call: &LakeCall<'_>,
        request: &SearchRequest<'_>,
    ) -> Result<LakeScope, ToolError> {
        self.find_matches(call, request)
    }

    fn load_for_comparison(
        &self,
        call: &LakeCall<'_>,
        request: &SearchRequest<'_>,
        is_ranked: bool,
    ) -> Result<LakeScope, ToolError> {
        self.load_compared(call, request, is_ranked)
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
