//! Links that make a client add the server by one click.
//!
//! ```text
//! cursor://anysphere.cursor-deeplink/mcp/install?name=NAME&config=BASE64_OF_JSON
//! vscode:mcp/install?PERCENT_ENCODED_JSON
//! ```

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, PercentEncode, utf8_percent_encode};
use schemas::client::Client;
use serde_json::{Map, Value};

use super::entry::{SERVER_NAME, ServerEntry};

/// Returns the link that adds the entry; `None` if the client has no such links.
pub(super) fn install_link(client: Client, entry: &ServerEntry) -> Option<String> {
    if client == Client::Cursor {
        let config = STANDARD.encode(Value::Object(entry.fields.clone()).to_string());
        let config = percent_encode(&config);
        return Some(format!(
            "cursor://anysphere.cursor-deeplink/mcp/install?name={SERVER_NAME}&config={config}"
        ));
    }
    if client != Client::Vscode {
        return None;
    }
    let mut config = Map::new();
    config.insert("name".to_owned(), SERVER_NAME.into());
    config.extend(entry.fields.clone());
    let config = Value::Object(config).to_string();
    Some(format!("vscode:mcp/install?{}", percent_encode(&config)))
}

/// Encodes what is not plain in a part of a link.
fn percent_encode(text: &str) -> PercentEncode<'_> {
    const ESCAPES: &AsciiSet =
        &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~');
    utf8_percent_encode(text, ESCAPES)
}

#[cfg(test)]
mod tests {
    use percent_encoding::percent_decode_str;
    use serde_json::json;

    use super::*;

    fn link(client: Client) -> Option<String> {
        let fields = json!({ "command": "/opt/my sessions", "args": ["mcp"] });
        let fields = fields.as_object().cloned().expect("object");
        install_link(client, &ServerEntry { table: "", fields })
    }

    fn percent_decode(text: &str) -> String {
        percent_decode_str(text).decode_utf8().expect("UTF-8").into_owned()
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
