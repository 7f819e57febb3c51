//! What the server tells clients of itself: the schemas of the tools, resources, prompts,
//! instructions. `tests/golden/` holds it as it was reviewed, so that a change shows there.

use serde_json::{Value, json};

use crate::env::{TestEnv, compare};
use crate::mcp::Client;

fn check(name: &str, served: &Value) {
    let text = serde_json::to_string_pretty(served).expect("JSON");
    compare("UPDATE_GOLDEN", &format!("tests/golden/{name}.json"), &format!("{text}\n"));
}

#[test]
fn what_is_served_is_what_was_reviewed() {
    let env = TestEnv::new();
    let mut eras = [Client::legacy(&env), Client::modern(&env)];
    for (method, list) in [
        ("tools/list", "tools"),
        ("resources/list", "resources"),
        ("resources/templates/list", "resourceTemplates"),
        ("prompts/list", "prompts"),
    ] {
        let [legacy, modern] =
            eras.each_mut().map(|client| client.request(method, json!({}))["result"][list].clone());
        assert_eq!(legacy, modern, "{method} is the same in both eras");
        assert!(legacy.as_array().is_some_and(|rows| !rows.is_empty()), "{method}: {legacy}");
        check(list, &legacy);
    }
    let [_, modern] = &mut eras;
    let server = modern.request("server/discover", json!({}))["result"].clone();
    let said = ["supportedVersions", "instructions", "capabilities"];
    check(
        "server",
        &said.map(|part| (part.to_owned(), server[part].clone())).into_iter().collect(),
    );
}
