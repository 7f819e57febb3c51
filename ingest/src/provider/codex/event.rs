//! Decodes the messages from Codex to its interface (`event_msg`): twins of response items, token
//! counts, and notices (docs/formats.md#codex).

use schemas::EventType;

use super::{Decoder, Family, output, tokens};
use crate::provider::format::Outcome;
use crate::stream::{Draft, Stream, TitleFrom};
use crate::text::json::{Fields, Value};
use crate::text::render;

impl Decoder {
    /// Decodes an `event_msg`. If a response item says the same, the event is its twin.
    pub(super) fn event(&mut self, event: Value<'_>, out: &mut Stream) -> Outcome {
        let kind = event.text("type").unwrap_or("untyped");
        let message = event.text("message").unwrap_or("");
        match kind {
            "token_count" => self.token_count(event, out),
            "user_message" => match output::machine_text(message) {
                Some(_) => Outcome::Merged("twin_of_machine_text"),
                None => self.prompt(message, Family::Message, out),
            },
            "agent_message" => self.reply(message, Family::Message, out),
            "agent_reasoning" | "agent_reasoning_raw_content" => {
                let text = event.text("text").unwrap_or("");
                match self.is_twin("reasoning", text, Family::Message) {
                    true => Outcome::Merged("twin_of_reasoning"),
                    false => self.think(text, out),
                }
            }
            "agent_reasoning_section_break" => Outcome::Merged("twin_of_reasoning"),
            "item_completed" => self.completed(event, out),
            // Only this event names subagents of the second generation.
            "sub_agent_activity" if event.text("kind") == Some("started") => {
                let mut text = String::new();
                render::fields(event, &["type"], &mut text);
                let draft = Draft {
                    subtype: Some(kind),
                    text: &text,
                    tool_call_id: event.non_empty("event_id"),
                    spawned_agent_id: event.non_empty("agent_thread_id"),
                    ..Draft::default()
                };
                self.state.after_item = false;
                out.push(EventType::Notification, draft);
                Outcome::Events
            }
            "exec_command_end" | "mcp_tool_call_end" | "patch_apply_end" => {
                self.ran(kind, event, event.non_empty("call_id"), None, out)
            }
            // The text of these events is in the output item of the tool.
            "exec_command_begin"
            | "exec_command_output_delta"
            | "patch_apply_begin"
            | "mcp_tool_call_begin"
            | "web_search_begin"
            | "web_search_end"
            | "view_image_tool_call"
            | "image_generation_end" => Outcome::Merged("twin_of_tool_result"),
            _ => {
                if matches!(
                    kind,
                    "task_started" | "task_complete" | "turn_aborted" | "turn.completed"
                ) {
                    self.state.in_response = false;
                }
                if kind == "task_started" {
                    // Items that complete during a turn do not repeat texts from before the turn.
                    let families = self.state.recent.iter_mut().map(|(_, families)| families);
                    families.for_each(|families| *families |= Family::Completed as u8);
                }
                if kind == "thread_rolled_back" {
                    let prompts = event.int("num_turns").and_then(|n| usize::try_from(n).ok());
                    self.roll_back(prompts.unwrap_or(0), out);
                }
                if kind == "thread_name_updated" {
                    out.title(
                        TitleFrom::Agent,
                        event.text("thread_name").or_else(|| event.text("name")).unwrap_or(""),
                    );
                }
                self.unknown(kind, event, out)
            }
        }
    }

    /// Pushes one usage per request: the growth of the totals. It includes requests that were
    /// aborted before they were recorded. At the start, and after a total shrinks and so begins a
    /// new base, `last_token_usage` counts instead.
    fn token_count(&mut self, event: Value<'_>, out: &mut Stream) -> Outcome {
        match tokens::news(event, &mut self.state.totals) {
            Ok(usage) => {
                out.push(EventType::TokenUsage, Draft { usage, ..Draft::default() });
                Outcome::Events
            }
            Err(reason) => Outcome::Merged(reason),
        }
    }
}
