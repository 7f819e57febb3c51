//! Links that make a client add the server by one click.
//!
//! ```text
//! cursor://anysphere.cursor-deeplink/mcp/install?name=NAME&config=BASE64_OF_JSON
//! vscode:mcp/install?PERCENT_ENCODED_JSON
//! ```

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use schemas::client::Client;
use serde_json::{Map, Value};

use super::entry::{SERVER_NAME, ServerEntry};

/// Returns the link that adds the entry; `None` if the client has no such links.
pub(super) fn install_link(client: Client, entry: &ServerEntry) -> Option<String> {
    match client {
        Client::Cursor => {
            let config = STANDARD.encode(Value::Object(entry.fields.clone()).to_string());
            let config = percent_encode(&config);
            Some(format!(
                "cursor://anysphere.cursor-deeplink/mcp/install?name={SERVER_NAME}&config={config}"
            ))
        }
        Client::Vscode => {
            let mut config = Map::new();
            config.insert("name".to_owned(), SERVER_NAME.into());
            config.extend(entry.fields.clone());
            let config = percent_encode(&Value::Object(config).to_string());
            Some(format!("vscode:mcp/install?{config}"))
        }
        Client::Claude
        | Client::Codex
        | Client::Gemini
        | Client::Opencode
        | Client::Copilot
        | Client::ClaudeDesktop
        | Client::Windsurf
        | Client::Zed
        | Client::Jetbrains
        | Client::Cline
        | Client::Goose
        | Client::Kiro
        | Client::Antigravity => None,
    }
}

/// Encodes every byte that is not a letter, a digit or one of `-_.~`.
fn percent_encode(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte) {
            out.push(char::from(byte));
        } else {
            out.push_str(&format!("%{byte:02X}"));
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn link(client: Client) -> Option<String> {
        let fields = json!({ "command": "/opt/my sessions", "args": ["mcp"] });
        let fields = fields.as_object().cloned().expect("object");
        install_link(client, &ServerEntry { tables: &[], fields })
    }

    fn percent_decode(text: &str) -> String {
        let mut parts = text.split('%');
        let mut bytes = parts.next().unwrap_or_default().as_bytes().to_vec();
        for part in parts {
            bytes.push(u8::from_str_radix(&part[..2], 16).expect("two digits"));
            bytes.extend(part[2..].bytes());
        }
        String::from_utf8(bytes).expect("UTF-8")
    }

    #[test]
    fn links_hold_the_whole_entry() {
        let cursor = link(Client::Cursor).expect("has links");
        let (head, config) = cursor.split_once("&config=").expect("a config");
        assert_eq!(head, "cursor://anysphere.cursor-deeplink/mcp/install?name=sessions");
        let json = STANDARD.decode(percent_decode(config)).expect("base64");
        let value: Value = serde_json::from_slice(&json).expect("JSON");
        assert_eq!(value, json!({ "command": "/opt/my sessions", "args": ["mcp"] }));

        let vscode = link(Client::Vscode).expect("has links");
        assert!(vscode.bytes().all(|byte| byte.is_ascii_graphic()), "{vscode}");
        let config = vscode.strip_prefix("vscode:mcp/install?").expect("the scheme");
        let value: Value = serde_json::from_str(&percent_decode(config)).expect("JSON");
        assert_eq!(value["name"], "sessions");
        assert_eq!(value["command"], "/opt/my sessions");
        assert_eq!(link(Client::Zed), None);
    }
}
