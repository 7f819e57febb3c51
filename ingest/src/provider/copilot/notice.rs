//! Decodes records of GitHub Copilot CLI that are not part of the conversation: the facts they
//! report about the session, and the notification that each becomes
//! (docs/formats.md#github-copilot-cli).

use schemas::EventType;

use crate::stream::{DecodedEvent, Stream, TitleFrom};
use crate::text::json::{JsonFields, Value};
use crate::text::render;

/// Types of records that become notifications without further rules.
const NOTICES: &[&str] = &[
    "abort",
    "assistant.intent",
    "model.call_failure",
    "permission.completed",
    "session.auto_mode_resolved",
    "session.autopilot_objective_changed",
    "session.compaction_start",
    "session.context_changed",
    "session.context_cleared",
    "session.error",
    "session.handoff",
    "session.info",
    "session.mode_changed",
    "session.model_change",
    "session.permissions_changed",
    "session.plan_changed",
    "session.remote_steerable_changed",
    "session.snapshot_rewind",
    "session.task_complete",
    "session.title_changed",
    "session.truncation",
    "session.usage_checkpoint",
    "session.warning",
    "session.workspace_file_changed",
    "skill.invoked",
    "subagent.completed",
    "subagent.failed",
    "subagent.selected",
    "subagent.started",
    "system.notification",
];

/// Fields of records that are left out of the text because a reader cannot use them.
const SKIPPED_FIELDS: &[&str] = &[
    "interactionId",
    "turnId",
    "hookInvocationId",
    "requestId",
    "serviceRequestId",
    "providerCallId",
    "compactionTokensUsed",
    "modelMetrics",
    "tokenDetails",
];

/// Returns whether a type is one of the known notices.
pub(super) fn is_known_notice(kind: &str) -> bool {
    NOTICES.contains(&kind)
}

/// Pushes a notification with the record's fields as its text.
pub(super) fn push_notice(kind: &str, data: Value<'_>, text: &mut String, out: &mut Stream) {
    set_session_facts(kind, data, out);
    text.clear();
    match data.text("content") {
        Some(content) if kind == "system.notification" => text.push_str(content),
        _ => render::append_notification(data, SKIPPED_FIELDS, text),
    }
    if text.is_empty() {
        text.push_str(kind);
    }

    let has_failed = ["error", "failed", "failure"].iter().any(|end| kind.ends_with(end))
        || data.flag("success") == Some(false)
        || data.text("shutdownType") == Some("error");
    let decoded = DecodedEvent {
        subtype: Some(kind),
        text,
        tool_call_id: data.non_empty("toolCallId"),
        is_error: has_failed.then_some(true),
        ..DecodedEvent::default()
    };
    out.push(EventType::Notification, decoded);
}

/// Returns the model that a record selects.
pub(super) fn selected_model<'a>(kind: &str, data: Value<'a>) -> Option<&'a str> {
    let model = match kind {
        "session.start" | "session.resume" => data.non_empty("selectedModel"),
        "session.model_change" => data.non_empty("newModel"),
        "session.auto_mode_resolved" => data.non_empty("chosenModel"),
        _ => None,
    };
    model.filter(|model| *model != "auto")
}

/// Sets the facts that a record reports about the session.
fn set_session_facts(kind: &str, data: Value<'_>, out: &mut Stream) {
    out.set_model(selected_model(kind, data));
    if kind == "session.title_changed" {
        out.offer_title(TitleFrom::Agent, data.text("title").unwrap_or(""));
    }
    out.set_version(data.text("copilotVersion"));

    let context = match kind {
        "session.start" | "session.resume" => data.object("context"),
        "session.context_changed" => Some(data),
        _ => None,
    };
    let Some(context) = context else { return };
    // The root of a worktree is its own; `owner/name` is the same for all worktrees.
    let name = context.non_empty("repository").filter(|name| name.split('/').count() == 2);
    let host = context.non_empty("repositoryHost").unwrap_or("github.com");
    out.set_repository(name.map(|name| format!("https://{host}/{name}")).as_deref());
    out.set_cwd(context.text("cwd"));
    out.set_branch(context.text("branch"));
    out.set_repository(context.non_empty("gitRoot").or_else(|| context.non_empty("repository")));
}
