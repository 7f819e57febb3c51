//! Decodes what the agent reports: texts, calls with their results, and the tokens of its responses.

use schemas::{EventType, Usage};

use super::blocks::Blocks;
use crate::provider::format::RecordOutcome;
use crate::provider::shared::arguments::Arguments;
use crate::provider::shared::document::RecordSpan;
use crate::provider::shared::drift;
use crate::stream::{DecodedEvent, Stream, TitleFrom};
use crate::text::json::{JsonFields, Parser, Value, string_value};
use crate::text::render;

/// What comes before the text of an answer.
const ANSWER_MARK: &str = "<!-- ANSWER -->";

/// The kinds of events that only report a state. Some have the environment of the user.
const STATES: &[&str] = &[
    "AgentCurrentStatusUpdatedEvent",
    "AgentPlanUpdatedEvent",
    "AgentStartedEvent",
    "AgentStateUpdatedEvent",
    "AuthorizationAvailabilityEvent",
    "AvailablePullRequestsEvent",
    "ContextWindowReportEvent",
    "EnvironmentVariablesUpdatedEvent",
    "NextPromptSuggestionEvent",
    "ShowPlanProgressEvent",
    "TipSuggestionCreatedEvent",
];

/// The kinds of events that become a notification with their fields.
const KNOWN_NOTICES: &[&str] = &[
    "AgentFailureEvent",
    "AgentPatchCreatedEvent",
    "AskAsyncRequestUpdatedEvent",
    "AskRequestUpdatedEvent",
    "ChoiceRequestUpdatedEvent",
    "SubagentSpawnedEvent",
    "SuggestPlanEvent",
];

/// States of a call that has no result yet.
const OPEN: &[&str] = &["IN_PROGRESS", "PENDING", "STARTED"];

/// A kind of block that is a call of a tool.
struct CallBlock {
    kind: &'static str,
    /// The name of the tool, if no field has it.
    tool: &'static str,
    /// The field with the name of the tool.
    name: Option<&'static str>,
    /// The fields that are arguments.
    arguments: &'static [&'static str],
    /// The field with the text of the result.
    result: Option<&'static str>,
}

const CALL_BLOCKS: &[CallBlock] = &[
    CallBlock {
        kind: "TerminalBlockUpdatedEvent",
        tool: "terminal",
        name: None,
        arguments: &["command"],
        result: Some("output"),
    },
    CallBlock {
        kind: "ToolBlockUpdatedEvent",
        tool: "tool",
        name: Some("toolType"),
        arguments: &["text", "toolCall"],
        result: Some("details"),
    },
    CallBlock {
        kind: "McpBlockUpdatedEvent",
        tool: "mcp",
        name: Some("toolName"),
        arguments: &["details"],
        result: None,
    },
    CallBlock {
        kind: "ViewFilesBlockUpdatedEvent",
        tool: "view_files",
        name: None,
        arguments: &["files"],
        result: None,
    },
    CallBlock {
        kind: "FileChangesBlockUpdatedEvent",
        tool: "edit_files",
        name: None,
        arguments: &["changes"],
        result: None,
    },
    CallBlock {
        kind: "TestRunBlockUpdatedEvent",
        tool: "run_tests",
        name: None,
        arguments: &["name"],
        result: None,
    },
    CallBlock {
        kind: "CustomAgentBlockUpdatedEvent",
        tool: "agent",
        name: None,
        arguments: &["name"],
        result: None,
    },
];

/// Decodes the agent's events of one session in order.
#[derive(Default)]
pub(super) struct AgentDecoder {
    /// True while a response of the model is under way. Its counts end it.
    in_response: bool,
    parser: Parser,
}

/// Returns the agent's event in an event.
fn agent_event(event: Value<'_>) -> Option<Value<'_>> {
    event.object("event")?.object("agentEvent")
}

impl AgentDecoder {
    pub(super) fn end_response(&mut self) {
        self.in_response = false;
    }

    /// Decodes the agent's event `inner` in the event `outer` at `span`.
    pub(super) fn decode_event(
        &mut self,
        inner: Value<'_>,
        outer: Value<'_>,
        span: RecordSpan,
        blocks: &Blocks<'_>,
        out: &mut Stream,
    ) -> RecordOutcome {
        let kind = inner.text("kind").unwrap_or("untyped");
        if let Some(block) = CALL_BLOCKS.iter().find(|block| block.kind == kind) {
            blocks.with_text_block(outer, span, &mut |latest| {
                if let Some(latest) = agent_event(latest) {
                    self.push_call(block, latest, out);
                }
            });
            if blocks.is_last(outer, span) {
                push_result(block, inner, out);
            }
            return merged_update(out);
        }
        let text_block = match kind {
            "AgentThoughtBlockUpdatedEvent" => Some((EventType::Reasoning, "text")),
            "MarkdownBlockUpdatedEvent" => Some((EventType::Message, "text")),
            "ResultBlockUpdatedEvent" => Some((EventType::Message, "result")),
            _ => None,
        };
        if let Some((event, field)) = text_block {
            blocks.with_text_block(outer, span, &mut |latest| {
                let text = agent_event(latest).and_then(|latest| latest.text(field)).unwrap_or("");
                let text = text.strip_prefix(ANSWER_MARK).unwrap_or(text).trim();
                if !text.is_empty() {
                    out.begin_response(&mut self.in_response);
                    out.push_text(event, text);
                }
            });
            return merged_update(out);
        }
        match kind {
            "LlmResponseMetadataEvent" => self.push_tokens(inner, out),
            "CurrentDirectoryUpdatedEvent" => {
                let folder = inner.text("directory").or_else(|| inner.text("currentDirectory"));
                out.set_cwd(folder);
                return RecordOutcome::Merged("state");
            }
            "AgentTaskNameUpdatedEvent" => {
                out.offer_title(TitleFrom::Agent, inner.text("name").unwrap_or(""));
                return RecordOutcome::Merged("title");
            }
            _ if STATES.binary_search(&kind).is_ok() => return RecordOutcome::Merged("state"),
            _ => {
                drift::count_unknown_type(kind, KNOWN_NOTICES, out);
                let mut text = String::new();
                blocks.with_text_block(outer, span, &mut |latest| {
                    if let Some(latest) = agent_event(latest) {
                        render::append_notification(latest, &["kind", "stepId"], &mut text);
                        let is_error = (kind == "AgentFailureEvent").then_some(true);
                        out.push_notice(kind, &text, is_error);
                    }
                });
                return merged_update(out);
            }
        }
        RecordOutcome::Events.merged_if_empty(out)
    }

    fn push_call(&mut self, block: &CallBlock, event: Value<'_>, out: &mut Stream) {
        out.begin_response(&mut self.in_response);
        let name = block.name.and_then(|name| event.non_empty(name)).unwrap_or(block.tool);
        let mut arguments = Arguments::default();
        for field in block.arguments.iter().filter_map(|key| event.non_null(key)) {
            match (block.kind, string_value(field)) {
                ("TerminalBlockUpdatedEvent", Some(_)) => arguments.read_command_line(field),
                (_, Some(text)) => arguments.read_json_text(text, &mut self.parser),
                (_, None) => arguments.read_value(field),
            }
        }
        arguments.push_call(Some(name), event.non_empty("stepId"), out);
    }

    /// Pushes the tokens of a response, which ends with them.
    fn push_tokens(&mut self, event: Value<'_>, out: &mut Stream) {
        out.begin_response(&mut self.in_response);
        for response in event.items("modelUsage") {
            out.set_model(response.text("model"));
            let usage = Usage {
                input: response.int("inputTokens"),
                output: response.int("outputTokens"),
                cache_read: response.int("cacheInputTokens"),
                cache_write: response.int("cacheCreateTokens"),
                ..Usage::default()
            };
            out.push_usage(usage, response.cost("cost"), None);
        }
        self.in_response = false;
    }
}

/// Pushes the result of a call whose last event this is, unless it still runs.
fn push_result(block: &CallBlock, event: Value<'_>, out: &mut Stream) {
    let status = event.text("status").unwrap_or("");
    if OPEN.contains(&status) {
        return;
    }
    let is_cancelled = matches!(status, "CANCELED" | "CANCELLED");
    let decoded = DecodedEvent {
        subtype: is_cancelled.then_some("cancelled"),
        text: block.result.and_then(|result| event.text(result)).unwrap_or(""),
        tool_call_id: event.non_empty("stepId"),
        is_error: (!status.is_empty()).then(|| status != "COMPLETED"),
        ..DecodedEvent::default()
    };
    out.push(EventType::ToolResult, decoded);
}

/// Returns the outcome of an event of a block, most of which only repeat the block.
fn merged_update(out: &Stream) -> RecordOutcome {
    RecordOutcome::of_pushed(out, "repeated_blocks")
}
