//! The machine and the user of sessions: names from the settings, filters and groups.

use serde_json::json;

use crate::checks::{Checks, JsonChecks};
use crate::env::TestEnv;

fn check_names(env: &TestEnv, machine: &str, user: &str) {
    let rows = env.rows("SELECT DISTINCT machine, user_name FROM sessions");
    assert_eq!(rows, [[json!(machine), json!(user)]]);
    let found = env.json(["list", "--machine", &machine.to_uppercase(), "--user", user]);
    assert!(found["data"]["sessions"].as_array().is_some_and(|found| !found.is_empty()));
    // What is true of every session is not repeated for each.
    assert_eq!(found["data"]["sessions"][0].get("machine"), None);
    let stats = env.json(["stats", "--by", "machine,user"]);
    let groups = stats["data"]["groups"].list();
    assert_eq!(groups.len(), 1);
    assert_eq!(groups[0]["group"], json!({ "machine": machine, "user": user }));
}

#[test]
fn sessions_have_the_names_of_the_settings() {
    let env = TestEnv::with_samples();
    check_names(&env, "pier", "mira");
    let text = "[identity]\nmachine = \"quay\"\nuser = \"tom\"\n";
    env.write_settings(text);
    check_names(&env, "quay", "tom");

    let settings = env.json(["config"]);
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
        let found = env.json(["search", query]);
        assert!(found["metadata"]["results_returned"].as_u64() > Some(0), "{query}: {found}");
    }
    let found = env.json(["search", "the machine:pierr"]);
    found["hint"].shows("'pier'");
    let none = env.json(["search", "the", "--user", "mirra"]);
    none["hint"].shows("'mira'");
    let listed = env.json(["list", "--machine", "quay"]);
    assert_eq!(listed["metadata"]["results_returned"], 0);
    listed["hint"].shows("machine 'quay'");
    env.json(["stats", "--by", "provider", "--user", "tom"]).has(json!({"data": {"groups": []}}));
}
