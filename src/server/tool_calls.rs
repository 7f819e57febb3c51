//! A call of a tool, and the table of the functions that answer the calls of each tool.

use schemas::ToolError;
use schemas::envelope::JsonAnswer;
use schemas::tool::{
    ServedTools, TOOLS, ToolSpec, analyze, details, event, find, label, list, memory, metadata,
    query, search, stats,
};
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::arguments::parse_arguments;
use tools::{AnswerResult, Call, Tools};

/// A function that answers the calls of one tool.
type AnswerFunction = fn(&ToolCall, &Tools, &Call<'_>) -> Result<JsonAnswer, ToolError>;

/// All tools, in the order of [`TOOLS`], and the small one, with their functions.
static FUNCTIONS: [(ToolSpec, AnswerFunction); TOOLS.len() + 1] = [
    (analyze::SPEC, |asked, tools, call| asked.run(Tools::analyze_session, tools, call)),
    (event::SPEC, |asked, tools, call| asked.run(Tools::get_event_details, tools, call)),
    (details::SPEC, |asked, tools, call| asked.run(Tools::get_session_details, tools, call)),
    (list::SPEC, |asked, tools, call| asked.run(Tools::list_sessions, tools, call)),
    (query::SPEC, |asked, tools, call| asked.run(Tools::query_sql, tools, call)),
    (search::SPEC, |asked, tools, call| asked.run(Tools::search_events, tools, call)),
    (find::SPEC, |asked, tools, call| asked.run(Tools::search_sessions, tools, call)),
    (stats::SPEC, |asked, tools, call| asked.run(Tools::session_stats, tools, call)),
    (metadata::SPEC, |asked, tools, call| asked.run(Tools::tool_metadata, tools, call)),
    (label::SPEC, |asked, tools, call| asked.run(Tools::update_session_labels, tools, call)),
    (memory::SPEC, |asked, tools, call| tools.recall(&asked.parse_arguments(tools)?, call)),
];

/// A call of a tool.
pub(super) struct ToolCall {
    pub(super) id: String,
    pub(super) spec: &'static ToolSpec,
    function: AnswerFunction,
    pub(super) arguments: Value,
}

impl ToolCall {
    /// Creates a call of the served tool with this name; `None` if there is none.
    pub(super) fn new(
        id: String,
        served: ServedTools,
        name: &str,
        arguments: Value,
    ) -> Option<Self> {
        let found = served.find(name)?;
        let (spec, function) = FUNCTIONS.iter().find(|(spec, _)| spec.name == found.name)?;
        Some(Self { id, spec, function: *function, arguments })
    }

    /// Runs the tool.
    pub(super) fn answer(&self, tools: &Tools, call: &Call<'_>) -> Result<JsonAnswer, ToolError> {
        (self.function)(self, tools, call)
    }

    /// Parses the arguments and runs `tool` with them.
    fn run<A: DeserializeOwned, T>(
        &self,
        tool: impl Fn(&Tools, &A, &Call<'_>) -> AnswerResult<T>,
        tools: &Tools,
        call: &Call<'_>,
    ) -> Result<JsonAnswer, ToolError> {
        Ok(tool(tools, &self.parse_arguments(tools)?, call)?.into_json())
    }

    fn parse_arguments<A: DeserializeOwned>(&self, tools: &Tools) -> Result<A, ToolError> {
        parse_arguments(self.spec.name, self.arguments.clone(), tools.interface())
    }

    /// Returns a key that identifies the call: the same for the same arguments in any order.
    pub(super) fn cache_key(&self) -> String {
        let mut key = format!("{} ", self.spec.name);
        write_sorted(&self.arguments, &mut key);
        key
    }
}

/// Writes JSON with the keys of objects sorted.
#[expect(clippy::wildcard_enum_match_arm, reason = "other values of JSON are alike here")]
fn write_sorted(value: &Value, out: &mut String) {
    match value {
        Value::Object(fields) => {
            let mut fields: Vec<_> = fields.iter().collect();
            fields.sort_by_key(|(name, _)| *name);
            out.push('{');
            for (name, value) in fields {
                out.push_str(&format!("{name:?}:"));
                write_sorted(value, out);
                out.push(',');
            }
            out.push('}');
        }
        Value::Array(values) => {
            out.push('[');
            for value in values {
                write_sorted(value, out);
                out.push(',');
            }
            out.push(']');
        }
        value => out.push_str(&value.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use schemas::{ErrorCode, Timestamp};
    use serde_json::json;

    use super::*;

    fn key(arguments: Value) -> String {
        let id = "1".to_owned();
        let call = ToolCall::new(id, ServedTools::ALL, "list_sessions", arguments);
        call.expect("a tool").cache_key()
    }

    #[test]
    fn every_row_is_served_and_refuses_what_it_does_not_know() {
        let folder = tempfile::tempdir().expect("tempdir");
        let tools = Tools::new(store::Store::new(folder.path()));
        let call = Call::new(Timestamp(0), &|| false);
        let small = ServedTools::MEMORY;
        let served = TOOLS.iter().map(|spec| (spec, ServedTools::ALL));
        for (spec, served) in served.chain(small.specs().map(|spec| (spec, small))) {
            let arguments = json!({ "no_such_argument": 1 });
            let asked =
                ToolCall::new(String::new(), served, spec.name, arguments).expect(spec.name);
            let error = asked.answer(&tools, &call).expect_err(spec.name);
            assert_eq!(error.code, ErrorCode::InvalidArgument, "{}: {error}", spec.name);
            assert!(error.message.contains(spec.name), "{}: {error}", spec.name);
        }
    }

    #[test]
    fn the_order_of_arguments_makes_no_other_call() {
        let call =
            key(json!({ "limit": 1, "session_ids": ["a", "b"], "x": { "c": null, "d": 2 } }));
        assert_eq!(
            call,
            key(json!({ "x": { "d": 2, "c": null }, "session_ids": ["a", "b"], "limit": 1 }))
        );
        for other in [
            json!({ "limit": 1, "session_ids": ["b", "a"], "x": { "c": null, "d": 2 } }),
            json!({ "limit": "1", "session_ids": ["a", "b"], "x": { "c": null, "d": 2 } }),
            json!({ "limit": 1, "session_ids": ["a,b"], "x": { "c": null, "d": 2 } }),
            json!({ "limit": 1, "session_ids": ["a", "b"], "x": { "c": null }, "d": 2 }),
        ] {
            assert_ne!(call, key(other));
        }
    }
}
