//! Resources: data that a client attaches to a conversation without a tool call.

use std::path::PathBuf;

use percent_encoding::percent_decode_str;
use rmcp::ErrorData;
use rmcp::model::{MetaObject, ReadResourceResult, Resource, ResourceContents, ResourceTemplate};
use schemas::Timestamp;
use schemas::tool::details::DetailArgs;
use schemas::tool::event::EventArgs;
use schemas::tool::namespace;
use schemas::{ToolError, limits};
use serde::Serialize;
use serde_json::{Value, json};

use super::schema::into_object;
use super::web::app;
use crate::help::{Help, dashdash};
use base::sanitize::{clean_text, truncate_for_json};
use tools::{Call, Tools};

/// One resource or resource template.
struct ResourceSpec {
    uri: &'static str,
    name: &'static str,
    title: &'static str,
    description: &'static str,
    mime_type: &'static str,
    /// For dashdash: the kind of resource, and whether it changes while a server runs.
    kind: &'static str,
    is_refreshable: bool,
    command: &'static str,
}

/// The URI of a session, where `{id}` is a session id or a prefix of one.
pub(super) const SESSION_TEMPLATE: &str = "sessions://session/{id}";

/// The URI of an event, where `{id}` is an event id.
pub(super) const EVENT_TEMPLATE: &str = "sessions://event/{id}";

const RESOURCES: &[ResourceSpec] = &[
    ResourceSpec {
        uri: "sessions://status",
        name: "status",
        title: "State of the store",
        description: "What the store holds, how fresh and how complete it is, and which files wait to be read.",
        mime_type: "application/json",
        kind: "status",
        is_refreshable: true,
        command: "status",
    },
    ResourceSpec {
        uri: "sessions://schema",
        name: "schema",
        title: "Views and columns",
        description: "The SQL views over the store with every column, its type and its meaning.",
        mime_type: "text/plain",
        kind: "schema",
        is_refreshable: false,
        command: "query --schema",
    },
    ResourceSpec {
        uri: "sessions://ai-help",
        name: "ai-help",
        title: "Manual for agents",
        description: "When to use these tools, every tool and command, inputs, outputs, errors, examples.",
        mime_type: "text/markdown",
        kind: "documentation",
        is_refreshable: false,
        command: "--ai-help",
    },
];

const TEMPLATES: &[ResourceSpec] = &[
    ResourceSpec {
        uri: SESSION_TEMPLATE,
        name: "session",
        title: "One session",
        description: "A session at a glance: first prompt, last answer, tools, failures. id: a session id or any unique prefix.",
        mime_type: "application/json",
        kind: "record",
        is_refreshable: true,
        command: "show ID",
    },
    ResourceSpec {
        uri: EVENT_TEMPLATE,
        name: "event",
        title: "One event",
        description: "An event in full. id: <session_id>:<event_index>.",
        mime_type: "application/json",
        kind: "record",
        is_refreshable: true,
        command: "event ID",
    },
];

/// Views of the page, for clients that show them in a frame.
const APPS: &[ResourceSpec] = &[
    ResourceSpec {
        uri: app::OVERVIEW_URI,
        name: "overview",
        title: "Overview",
        description: "Cost, tokens, models, projects, failures and open ends as charts: the view of session_stats.",
        mime_type: app::APP_MIME_TYPE,
        kind: "view",
        is_refreshable: false,
        command: "web",
    },
    ResourceSpec {
        uri: app::SESSION_URI,
        name: "session-view",
        title: "A session as a conversation",
        description: "Prompts, answers, calls and diffs of a session: the view of get_session_details.",
        mime_type: app::APP_MIME_TYPE,
        kind: "view",
        is_refreshable: false,
        command: "web",
    },
];

/// Returns every row of this module.
fn all_rows() -> impl Iterator<Item = &'static ResourceSpec> {
    RESOURCES.iter().chain(TEMPLATES).chain(APPS)
}

impl ResourceSpec {
    /// Returns the row in the form of the protocol, as a resource.
    fn to_resource(&self) -> Resource {
        Resource::new(self.uri, self.name)
            .with_title(self.title)
            .with_description(self.description)
            .with_mime_type(self.mime_type)
            .with_meta(self.dashdash_meta())
    }

    /// Returns the row in the form of the protocol, as a resource template.
    fn to_template(&self) -> ResourceTemplate {
        ResourceTemplate::new(self.uri, self.name)
            .with_title(self.title)
            .with_description(self.description)
            .with_mime_type(self.mime_type)
            .with_meta(self.dashdash_meta())
    }

    fn dashdash_meta(&self) -> MetaObject {
        MetaObject(into_object(
            json!({ (format!("{}/dashdash", namespace())): self.dashdash_block() }),
        ))
    }

    fn dashdash_block(&self) -> Value {
        dashdash::resource_block(self.kind, self.is_refreshable, self.command)
    }
}

/// Returns the dashdash block of the resource or the resource template with this URI.
pub(super) fn dashdash_block(uri: &str) -> Option<Value> {
    all_rows().find(|row| row.uri == uri).map(ResourceSpec::dashdash_block)
}

/// Returns every resource, in the order of the table: apps only for a client that shows them.
pub(super) fn list_resources(shows_apps: bool) -> Vec<Resource> {
    let apps = APPS.iter().filter(|_| shows_apps);
    RESOURCES.iter().chain(apps).map(ResourceSpec::to_resource).collect()
}

/// Returns every resource template, in the order of the table.
pub(super) fn list_templates() -> Vec<ResourceTemplate> {
    TEMPLATES.iter().map(ResourceSpec::to_template).collect()
}

/// Reads the resource of this URI; `roots` are the folders that are searched for logs.
pub(super) fn read_resource(
    uri: &str,
    tools: &Tools,
    help: &Help,
    roots: &[PathBuf],
) -> Result<ReadResourceResult, ErrorData> {
    if let Some(html) = app::app_html(uri) {
        let contents = ResourceContents::text(html, uri)
            .with_mime_type(app::APP_MIME_TYPE)
            .with_meta(MetaObject(into_object(app::app_meta())));
        return Ok(ReadResourceResult::new(vec![contents]));
    }
    let text = match uri {
        "sessions://status" => answer_as_json(&shown_uri(uri), tools.collect_status(roots)),
        "sessions://schema" => Ok(sql::schema_text()),
        "sessions://ai-help" => Ok(help.manual()),
        _ => read_record(uri, tools),
    }?;

    let row = all_rows().find(|row| row.uri == uri || parse_id(uri, row.uri).is_some());
    let mime_type = row.map_or("text/plain", |row| row.mime_type);
    let contents = ResourceContents::text(text, uri).with_mime_type(mime_type);
    Ok(ReadResourceResult::new(vec![contents]))
}

/// Reads the session or the event that a URI names.
fn read_record(uri: &str, tools: &Tools) -> Result<String, ErrorData> {
    let call = Call::new(Timestamp::now(), &|| false);
    let shown = shown_uri(uri);
    if let Some(session_id) = parse_id(uri, SESSION_TEMPLATE) {
        let args = DetailArgs { session_id, ..DetailArgs::default() };
        return answer_as_json(&shown, tools.get_session_details(&args, &call));
    }
    if let Some(event_id) = parse_id(uri, EVENT_TEMPLATE) {
        let args = EventArgs { event_ids: vec![event_id], ..EventArgs::default() };
        return answer_as_json(&shown, tools.get_event_details(&args, &call));
    }
    let known: Vec<_> = RESOURCES.iter().chain(TEMPLATES).map(|row| row.uri).collect();
    let message = format!("no resource {shown}. Resources: {}", known.join(", "));
    Err(ErrorData::resource_not_found(message, Some(json!({ "uri": shown }))))
}

/// Returns a URI in the form in which errors repeat it: cleaned and cut to a limit.
fn shown_uri(uri: &str) -> String {
    truncate_for_json(&clean_text(uri), limits::PROTOCOL_ERROR_BYTES).0.to_owned()
}

/// Returns the id that a URI has where `template` has `{id}`.
fn parse_id(uri: &str, template: &str) -> Option<String> {
    let encoded = uri.strip_prefix(template.strip_suffix("{id}")?)?;
    // Clients encode the colon of an event id.
    let id = percent_decode_str(encoded).decode_utf8().ok()?;
    (!id.is_empty()).then(|| id.into_owned())
}

/// Returns an answer as JSON; `uri` is the resource that errors name.
fn answer_as_json(
    uri: &str,
    answer: Result<impl Serialize, ToolError>,
) -> Result<String, ErrorData> {
    let answer = answer.map_err(|error| protocol_error(uri, error))?;
    serde_json::to_string(&answer)
        .map_err(|error| ErrorData::internal_error(error.to_string(), None))
}

/// Converts an error to the protocol, which distinguishes a missing resource from a failure.
fn protocol_error(uri: &str, error: ToolError) -> ErrorData {
    let data = Some(json!({ "uri": uri, "code": error.code, "details": error.details }));
    // The program exits with this code if the data or the store is the problem.
    if error.code.exit_code() == 3 {
        ErrorData::internal_error(error.message, data)
    } else {
        ErrorData::resource_not_found(error.message, data)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_taken_from_uris_with_and_without_encoding() {
        assert_eq!(
            parse_id("sessions://event/9ae8%3A31", EVENT_TEMPLATE).as_deref(),
            Some("9ae8:31")
        );
        assert_eq!(
            parse_id("sessions://event/9ae8:31", EVENT_TEMPLATE).as_deref(),
            Some("9ae8:31")
        );
        for uri in ["sessions://event/", "sessions://event/%ff", "x://event/a"] {
            assert_eq!(parse_id(uri, EVENT_TEMPLATE), None, "{uri}");
        }
    }
}
