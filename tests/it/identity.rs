//! The machine and the user of sessions: names from the settings, filters and groups.

use std::fs;

use serde_json::json;

use crate::env::TestEnv;

fn check_names(env: &TestEnv, machine: &str, user: &str) {
    let rows = env.rows("SELECT DISTINCT machine, user_name FROM sessions");
    assert_eq!(rows, [[json!(machine), json!(user)]]);
    let found = env.json(&["list", "--machine", &machine.to_uppercase(), "--user", user]);
    assert!(found["data"]["sessions"].as_array().is_some_and(|found| !found.is_empty()), "{found}");
    // What is true of every session is not repeated for each.
    assert_eq!(found["data"]["sessions"][0].get("machine"), None, "{found}");
    let stats = env.json(&["stats", "--by", "machine,user"]);
    let groups = stats["data"]["groups"].as_array().expect("groups");
    assert_eq!(groups.len(), 1, "{stats}");
    assert_eq!(groups[0]["group"], json!({ "machine": machine, "user": user }));
}

#[test]
fn sessions_have_the_names_of_the_settings() {
    let env = TestEnv::with_samples();
    check_names(&env, "pier", "mira");
    let settings = env.path(".config/sessions");
    fs::create_dir_all(&settings).expect("creates");
    let text = "[identity]\nmachine = \"quay\"\nuser = \"tom\"\n";
    fs::write(settings.join("settings.toml"), text).expect("writes");
    check_names(&env, "quay", "tom");

    let settings = env.json(&["config"]);
    let value = |name: &str| {
        let all = settings.as_array().expect("settings");
        let found = all.iter().find(|setting| setting["name"] == name).expect("the setting");
        (found["value"].clone(), found["source"].clone())
    };
    let (machine, source) = value("identity.machine");
    assert_eq!(machine, "quay");
    assert!(source.as_str().is_some_and(|source| source.ends_with("settings.toml")), "{source}");
    assert_eq!(value("identity.user").0, "tom");
}

#[test]
fn filters_by_machine_and_user_say_why_nothing_matches() {
    let env = TestEnv::with_samples();
    for query in ["the machine:pier user:mir", "the -machine:quay"] {
        let found = env.json(&["search", query]);
        assert!(found["metadata"]["results_returned"].as_u64() > Some(0), "{query}: {found}");
    }
    let found = env.json(&["search", "the machine:pierr"]);
    assert!(found["hint"].as_str().is_some_and(|hint| hint.contains("'pier'")), "{found}");
    let none = env.json(&["search", "the", "--user", "mirra"]);
    assert!(none["hint"].as_str().is_some_and(|hint| hint.contains("'mira'")), "{none}");
    let listed = env.json(&["list", "--machine", "quay"]);
    assert_eq!(listed["metadata"]["results_returned"], 0, "{listed}");
    assert!(listed["hint"].as_str().is_some_and(|hint| hint.contains("machine 'quay'")));
    let stats = env.json(&["stats", "--by", "provider", "--user", "tom"]);
    assert_eq!(stats["data"]["groups"], json!([]), "{stats}");
}
