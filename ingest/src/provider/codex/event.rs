//! Decodes the messages from Codex to its interface (`event_msg`): twins of response items, token
//! counts, and notices (docs/formats.md#codex).

use schemas::{EventType, Usage};

use super::review::Review;
use super::user_text::UserInput;
use super::{CodexDecoder, RecordedForm, tokens};
use crate::provider::format::RecordOutcome;
use crate::stream::{DecodedEvent, ModeWords, Stream, TitleFrom};
use crate::text::json::{JsonFields, Value, string_value};
use crate::text::render;

impl CodexDecoder {
    /// Decodes an `event_msg`. If a response item says the same, the event is its twin.
    pub(super) fn decode_event(&mut self, event: Value<'_>, out: &mut Stream) -> RecordOutcome {
        let kind = event.text("type").unwrap_or("untyped");
        let message = event.text("message").unwrap_or("");
        match kind {
            "token_count" => self.push_token_count(event, out),
            "user_message" => {
                self.decode_typed(&UserInput::from_text(message), RecordedForm::Message, out)
            }
            "agent_message" => self.push_reply(message, RecordedForm::Message, out),
            "agent_reasoning" | "agent_reasoning_raw_content" => {
                let text = event.text("text").unwrap_or("");
                if self.is_twin("reasoning", text, RecordedForm::Message) {
                    return RecordOutcome::Merged("twin_of_reasoning");
                }
                self.push_reasoning(text, out)
            }
            "agent_reasoning_section_break" => RecordOutcome::Merged("twin_of_reasoning"),
            "item_completed" => self.decode_completed_item(event, out),
            "sub_agent_activity" if event.text("kind") == Some("started") => {
                self.push_started_agent(kind, event, out)
            }
            "exec_command_end"
            | "mcp_tool_call_end"
            | "patch_apply_end"
            | "dynamic_tool_call_response" => {
                self.decode_call_end(kind, event, event.non_empty("call_id"), None, out)
            }
            "dynamic_tool_call_request" => self.decode_dynamic_call(event, out),
            // The text of these events is in the output item of the tool.
            "exec_command_begin"
            | "exec_command_output_delta"
            | "patch_apply_begin"
            | "mcp_tool_call_begin"
            | "web_search_begin"
            | "web_search_end"
            | "view_image_tool_call"
            | "image_generation_end" => RecordOutcome::Merged("twin_of_tool_result"),
            _ => {
                self.apply_notice(kind, event, out);
                self.push_unknown_record(kind, event, out)
            }
        }
    }

    /// Pushes the start of a subagent. Only this event names subagents of the second generation.
    fn push_started_agent(
        &mut self,
        kind: &str,
        event: Value<'_>,
        out: &mut Stream,
    ) -> RecordOutcome {
        let mut text = String::new();
        render::append_notification(event, &["type"], &mut text);
        let decoded = DecodedEvent {
            subtype: Some(kind),
            text: &text,
            tool_call_id: event.non_empty("event_id"),
            spawned_agent_id: event.non_empty("agent_thread_id"),
            ..DecodedEvent::default()
        };
        self.state.after_item = false;
        out.push(EventType::Notification, decoded);
        RecordOutcome::Events
    }

    /// Applies what a notice reports to the state and to the session.
    fn apply_notice(&mut self, kind: &str, event: Value<'_>, out: &mut Stream) {
        if matches!(kind, "task_started" | "task_complete" | "turn_aborted" | "turn.completed") {
            self.state.in_response = false;
        }
        match kind {
            "thread_settings_applied" => {
                if let Some(settings) = event.object("thread_settings") {
                    out.set_model(settings.text("model"));
                    self.apply_service_tier(settings);
                }
            }
            "task_started" => {
                self.state.counts.end_turn();
                // Items that complete during a turn do not repeat texts from before the turn.
                for (_, forms) in &mut self.state.recent {
                    *forms |= RecordedForm::Completed as u8;
                }
            }
            "entered_review_mode" => self.state.review = Some(Review::from_event(event, out)),
            "exited_review_mode" => self.state.review = None,
            "thread_rolled_back" => {
                let prompts = event.int("num_turns").and_then(|n| usize::try_from(n).ok());
                self.roll_back(prompts.unwrap_or(0), out);
            }
            "thread_name_updated" => {
                let name = event.text("thread_name").or_else(|| event.text("name"));
                out.offer_title(TitleFrom::Agent, name.unwrap_or(""));
            }
            _ => {}
        }
    }

    /// Pushes the usage that a `token_count` event shows and no record of a response has.
    fn push_token_count(&mut self, event: Value<'_>, out: &mut Stream) -> RecordOutcome {
        let usage = self.state.counts.add_count(event);
        self.push_new_usage(usage, None, event, out)
    }

    /// Pushes the usage in the record of a response.
    pub(super) fn push_response_usage(
        &mut self,
        record: Value<'_>,
        out: &mut Stream,
    ) -> RecordOutcome {
        let Some(usage) = record.object("usage") else {
            return RecordOutcome::Merged("empty_token_usage_record");
        };
        let id = record.non_empty("response_id");
        let usage = self.state.counts.add_response(id, usage);
        self.push_new_usage(usage, id, record, out)
    }

    /// Pushes new usage of a response, or says why there is none. `record` may name the service
    /// tier.
    fn push_new_usage(
        &mut self,
        usage: Result<Usage, &'static str>,
        request_id: Option<&str>,
        record: Value<'_>,
        out: &mut Stream,
    ) -> RecordOutcome {
        let usage = match usage {
            Ok(usage) => usage,
            Err(reason) => {
                if reason == tokens::TWIN_OF_RECORD {
                    out.count_earlier_steps();
                }
                return RecordOutcome::Merged(reason);
            }
        };
        // Responses with several calls are several steps here, and counts are in the order of the log.
        out.count_earlier_steps();
        let own_tier = record.non_empty("service_tier");
        let service_tier = own_tier.or(self.state.service_tier.as_deref());
        let mode = ModeWords { service_tier, ..ModeWords::default() };
        let text = &tokens::describe_quota(record);
        out.push(
            EventType::TokenUsage,
            DecodedEvent { usage, request_id, mode, text, ..DecodedEvent::default() },
        );
        RecordOutcome::Events
    }

    /// Takes over the service tier that settings name. A tier of `null` is the normal one.
    pub(super) fn apply_service_tier(&mut self, settings: Value<'_>) {
        if let Some(tier) = settings.field("service_tier") {
            self.state.service_tier = string_value(tier).map(str::to_owned);
        }
    }
}
