//! Finds the model of the first outputs of a log in which only later records name one: those of
//! versions up to 1.0.12 (docs/formats.md#github-copilot-cli).

use std::ops::ControlFlow;
use std::path::Path;

use super::notice::selected_model;
use crate::provider::shared::records::visit_records;
use crate::text::json::{JsonFields, Value};

/// What the records of a log say about the model of its first outputs.
#[derive(Debug, Default)]
struct FirstModel {
    /// True if an output came before any record that names a model.
    has_unnamed_output: bool,
    /// The model of the first tool after it.
    tool: Option<String>,
    /// The model that the sums of the run name.
    sums: Option<String>,
}

/// Returns the model of the outputs that precede the first record with a model: the only one in the
/// sums of the run, or otherwise the last one of the run, or that of the next tool. `None` if
/// the first output has a model, or if no record names one.
pub(super) fn find_first_model(log: &Path) -> Option<String> {
    let mut found = FirstModel::default();
    visit_records(log, &mut |record, _| found.add_record(record)).ok()?;
    found.sums.or(found.tool).filter(|_| found.has_unnamed_output)
}

impl FirstModel {
    /// Adds the next record. Breaks if no later record can change the model.
    fn add_record(&mut self, record: Value<'_>) -> ControlFlow<()> {
        let kind = record.text("type").unwrap_or("");
        let data = record.object("data").unwrap_or(record);
        if record.non_empty("agentId").is_some() || data.non_empty("parentToolCallId").is_some() {
            return ControlFlow::Continue(());
        }
        if kind == "session.shutdown" {
            self.sums = named_in_sums(data);
            return ControlFlow::Break(());
        }

        let is_message = kind == "assistant.message";
        let named = match kind {
            _ if is_message || kind.starts_with("tool.") => data.non_empty("model"),
            _ => selected_model(kind, data),
        };
        match named {
            // The session has a model from its first output on.
            Some(_) if !self.has_unnamed_output => return ControlFlow::Break(()),
            Some(model) if self.tool.is_none() => self.tool = Some(model.to_owned()),
            Some(_) => {}
            None => self.has_unnamed_output |= is_message && data.int("outputTokens").is_some(),
        }
        ControlFlow::Continue(())
    }
}

/// Returns the model of a run by the record of its end.
fn named_in_sums(shutdown: Value<'_>) -> Option<String> {
    let models = shutdown.object("modelMetrics").and_then(|models| models.as_object());
    let mut names = models.iter().flatten().map(|(name, _)| name);
    match (names.next(), names.next()) {
        (Some(only), None) => Some(only.to_owned()),
        _ => shutdown.non_empty("currentModel").map(str::to_owned),
    }
}
