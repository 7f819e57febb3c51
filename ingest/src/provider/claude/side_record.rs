//! Decodes records of Claude Code that are not part of the conversation: context that the client
//! attached, titles, and facts about the session (docs/formats.md#claude-code).

use schemas::EventType;

use super::{ClaudeDecoder, known, user};
use crate::provider::shared::drift;
use crate::provider::shared::identity::uuid_identity;
use crate::stream::{DecodedEvent, Stream, TitleFrom};
use crate::text::json::{JsonFields, Value};
use crate::text::render;

/// Fields of a notice about a refused answer that are appended to its text. They name the reason
/// and the model that took over.
const REFUSAL_FIELDS: [&str; 4] =
    ["apiRefusalCategory", "apiRefusalExplanation", "originalModel", "fallbackModel"];

/// Envelope fields of a record, which are left out of the text of notifications.
const ENVELOPE_FIELDS: &[&str] = &[
    "type",
    "subtype",
    "uuid",
    "parentUuid",
    "sessionId",
    "session_id",
    "timestamp",
    "cwd",
    "version",
    "isSidechain",
    "userType",
    "gitBranch",
    "slug",
    "entrypoint",
    "promptId",
    "agentId",
    "isMeta",
    "logicalParentUuid",
    "leafUuid",
    "messageId",
    "toolUseID",
    "parentToolUseID",
    "level",
    "sourceToolAssistantUUID",
    "requestId",
];

/// Fields of a subagent's or command's progress that are left out. Partial output and a subagent's
/// messages are complete in records of their own.
const PROGRESS_SKIPPED_FIELDS: [&str; 6] =
    ["type", "message", "prompt", "normalizedMessages", "output", "fullOutput"];

impl ClaudeDecoder {
    /// Decodes context that the client attached. A prompt typed while the agent worked arrives here
    /// too.
    pub(super) fn decode_attachment(&mut self, object: Value<'_>, out: &mut Stream) {
        let Some(attachment) = object.object("attachment") else {
            return self.decode_side_record("attachment", object, out);
        };
        self.text.clear();
        let kind = attachment.text("type").unwrap_or("attachment");
        drift::count_unknown_inner("attachment", kind, known::ATTACHMENTS, out);
        if kind == "queued_command" && attachment.text("commandMode") == Some("prompt") {
            render::append_field(attachment, "prompt", &mut self.text);
            if !self.state.queue.match_attachment(&self.text, out) {
                let meta = user::read_machine_subtype(attachment);
                return user::push_user_text(&self.text, meta, true, out);
            }
        }

        render::append_notification(attachment, &["type", "toolUseID"], &mut self.text);
        let is_error = kind.ends_with("_error").then_some(true);
        out.push_notice(kind, &self.text, is_error);
    }

    /// Decodes a record that is not part of the conversation, of a known or unknown type.
    pub(super) fn decode_side_record(&mut self, kind: &str, object: Value<'_>, out: &mut Stream) {
        self.text.clear();
        let text = &mut self.text;
        let mut subtype = kind;
        let mut is_error = None;
        let mut tool_call_id = None;
        let mut spawned_agent_id = None;
        match kind {
            "system" => {
                subtype = object.text("subtype").unwrap_or("system");
                drift::count_unknown_inner(kind, subtype, known::SYSTEM, out);
                is_error = subtype.ends_with("_error").then_some(true);
                append_system_text(object, text);
            }
            "progress" => {
                if let Some(data) = object.object("data") {
                    subtype = data.text("type").unwrap_or("progress");
                    drift::count_unknown_inner(kind, subtype, known::PROGRESS, out);
                    // The result of an interrupted agent does not name the agent.
                    spawned_agent_id = data.non_empty("agentId");
                    if spawned_agent_id.is_some() {
                        tool_call_id = object.non_empty("parentToolUseID");
                    }
                    render::append_notification(data, &PROGRESS_SKIPPED_FIELDS, text);
                }
            }
            "summary" => {
                let summary = object.text("summary").unwrap_or("");
                text.push_str(summary);
                // The title belongs to the session whose log has this message, which is often
                // another session.
                let leaf = uuid_identity(object.text("leafUuid"));
                if leaf.is_some_and(|leaf| out.has_read(leaf)) {
                    out.offer_title(TitleFrom::Summary, summary);
                }
            }
            "ai-title" | "custom-title" => {
                let title = object.text("customTitle").or_else(|| object.text("aiTitle"));
                let title = title.unwrap_or("");
                text.push_str(title);
                let is_custom = kind == "custom-title";
                let title_source = if is_custom { TitleFrom::User } else { TitleFrom::Agent };
                out.offer_title(title_source, title);
            }
            "file-history-snapshot" => append_tracked_files(object, text),
            // The prompt itself is in a record of its own.
            "last-prompt" => {}
            _ => render::append_notification(object, ENVELOPE_FIELDS, text),
        }

        render::truncate_notification(text);
        let subtype = Some(subtype);
        let decoded = DecodedEvent {
            subtype,
            text,
            is_error,
            tool_call_id,
            spawned_agent_id,
            ..DecodedEvent::default()
        };
        out.push(EventType::Notification, decoded);
    }
}

/// Appends the text of a `system` record. It includes why an answer was refused, how large the
/// context was, and why it was compacted.
fn append_system_text(object: Value<'_>, text: &mut String) {
    if let Some(content) = object.non_empty("content") {
        text.push_str(content);
        for key in REFUSAL_FIELDS {
            if let Some(fact) = object.non_empty(key) {
                text.push_str(&format!("\n{key}: {fact}"));
            }
        }
    } else {
        render::append_notification(object, ENVELOPE_FIELDS, text);
    }

    for key in ["compactMetadata", "microcompactMetadata"] {
        if let Some(facts) = object.object(key) {
            render::append_notification(
                facts,
                &["compactedToolIds", "clearedAttachmentUUIDs"],
                text,
            );
        }
    }
}

/// Appends the paths of the files in a `file-history-snapshot` record, one a line.
fn append_tracked_files(object: Value<'_>, text: &mut String) {
    let snapshot = object.object("snapshot");
    let files = snapshot.and_then(|snapshot| snapshot.object("trackedFileBackups"));
    let Some(files) = files.and_then(|files| files.as_object()) else { return };
    for (path, _) in &files {
        text.push_str(path);
        text.push('\n');
    }
}
