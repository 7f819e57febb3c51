//! The page as an app of a client of MCP (extension MCP Apps, 2026-01-26): one HTML document without
//! a network, in which the client's frame shows the result of a tool.

use rmcp::model::ClientCapabilities;
use serde_json::{Value, json};

use crate::page::{SCRIPT, STYLE};

/// The name of the extension, in the capabilities of a client.
const EXTENSION: &str = "io.modelcontextprotocol/ui";

/// The media type of an app.
pub(in crate::server) const APP_MIME_TYPE: &str = "text/html;profile=mcp-app";

/// A view of the page that shows the result of a tool.
struct AppView {
    uri: &'static str,
    /// The name that the script has for it.
    name: &'static str,
    tool: &'static str,
}

/// The URI of the overview.
pub(in crate::server) const OVERVIEW_URI: &str = "ui://sessions/overview";

/// The URI of the conversation of a session.
pub(in crate::server) const SESSION_URI: &str = "ui://sessions/session";

const VIEWS: &[AppView] = &[
    AppView { uri: OVERVIEW_URI, name: "overview", tool: "session_stats" },
    AppView { uri: SESSION_URI, name: "session", tool: "get_session_details" },
];

/// Returns true if a client can show apps.
pub(in crate::server) fn shows_apps(capabilities: &ClientCapabilities) -> bool {
    let extension = capabilities.extensions.as_ref().and_then(|all| all.get(EXTENSION));
    let types = extension.and_then(|settings| settings.get("mimeTypes")).and_then(Value::as_array);
    types.is_some_and(|types| types.iter().any(|name| name == APP_MIME_TYPE))
}

/// Returns the URI of the app that shows the results of a tool.
pub(in crate::server) fn app_of_tool(tool: &str) -> Option<&'static str> {
    VIEWS.iter().find(|view| view.tool == tool).map(|view| view.uri)
}

/// Returns the document of an app: the script and the style are in it, as its frame may load nothing.
pub(in crate::server) fn app_html(uri: &str) -> Option<String> {
    let view = VIEWS.iter().find(|view| view.uri == uri)?;
    let (name, style, script) = (view.name, STYLE.text, SCRIPT.text);
    Some(format!(
        "<!doctype html>\n<html lang=\"en\" data-app=\"{name}\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <title>sessions</title>\n<style>{style}</style>\n</head>\n<body>\n<div id=\"app\"></div>\n\
         <script>{script}</script>\n</body>\n</html>\n"
    ))
}

/// Returns what a client has to know to show an app: it needs no network and no permission.
pub(in crate::server) fn app_meta() -> Value {
    json!({ "ui": { "csp": { "connectDomains": [], "resourceDomains": [] }, "prefersBorder": true } })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_document_ends_where_it_should() {
        for view in VIEWS {
            let html = app_html(view.uri).expect("an app");
            // A script that had the closing tag in a text would end there.
            assert_eq!(html.matches("</script>").count(), 1);
            assert_eq!(html.matches("</style>").count(), 1);
            assert!(
                !html.contains("src=\"http") && !html.contains("href=\"http"),
                "loads something"
            );
        }
        assert_eq!(app_html("ui://sessions/other"), None);
    }

    #[test]
    fn only_a_client_that_names_the_type_shows_apps() {
        let announce = |value: Value| serde_json::from_value(value).expect("capabilities");
        let apps = json!({ "extensions": { EXTENSION: { "mimeTypes": [APP_MIME_TYPE] } } });
        assert!(shows_apps(&announce(apps)));
        for other in [
            json!({}),
            json!({ "extensions": {} }),
            json!({ "extensions": { EXTENSION: {} } }),
            json!({ "extensions": { EXTENSION: { "mimeTypes": ["text/html"] } } }),
        ] {
            assert!(!shows_apps(&announce(other)));
        }
    }
}
