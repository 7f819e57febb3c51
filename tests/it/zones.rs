//! Days, weeks, hours and dates in the zone of the user.

use schemas::{Timestamp, Zone};
use serde_json::{Value, json};

use crate::checks::JsonChecks;
use crate::env::TestEnv;
use crate::mcp::Client;

/// An evening in Los Angeles, which is the morning of the next day in UTC.
const EVENING: &str = "2026-11-02T03:30:00Z";

/// A store with one session, at [`EVENING`].
fn evening_store() -> TestEnv {
    let env = TestEnv::new();
    let answer = json!({"type": "message", "timestamp": EVENING, "text": "Sorted",
        "model": "qwen3-coder-plus", "usage": {"input_tokens": 20, "output_tokens": 5}});
    let log = env.log("evening").cwd("/home/mira/code/harbor").at(EVENING);
    log.user("Sort the harbor lights").event(answer).ingest();
    env
}

/// The first value of a key of `stats`, with the arguments and with `TZ`.
fn first_group(env: &TestEnv, tz: &str, args: &[&str], key: &str) -> String {
    let printed = env.cli(["--json", "stats"]).args(args).env("TZ", tz).run().ok();
    let answer: Value = serde_json::from_str(&printed).expect("JSON");
    answer["data"]["groups"][0]["group"][key].as_str().unwrap_or("").to_owned()
}

#[test]
fn an_evening_in_los_angeles_is_on_its_own_day() {
    let env = evening_store();
    let los_angeles = "America/Los_Angeles";
    for (key, local, utc) in [
        ("day", "2026-11-01", "2026-11-02"),
        ("week", "2026-10-26", "2026-11-02"),
        ("month", "2026-11", "2026-11"),
        ("hour", "19", "03"),
    ] {
        let by = ["--by", key];
        assert_eq!(first_group(&env, los_angeles, &by, key), local, "{key}");
        assert_eq!(first_group(&env, "UTC", &by, key), utc, "{key}");
        let named = ["--by", key, "--timezone", los_angeles];
        assert_eq!(first_group(&env, "UTC", &named, key), local, "{key}");
        let utc_named = ["--by", key, "--timezone", "utc"];
        assert_eq!(first_group(&env, los_angeles, &utc_named, key), utc, "{key}");
    }
    env.run(["usage", "--timezone", los_angeles]).shows("2026-11-01").lacks("2026-11-02");
    let report = env.run(["report", "-o", "-", "--timezone", los_angeles]).ok();
    assert!(report.contains(r#""day":"2026-11-01""#), "the days of the report");
    assert!(!report.contains(r#""day":"2026-11-02""#), "the days of the report");
}

#[test]
fn the_settings_file_names_a_zone() {
    let env = evening_store();
    env.write_settings("[display]\ntimezone = \"America/Los_Angeles\"\n");
    assert_eq!(first_group(&env, "UTC", &["--by", "day"], "day"), "2026-11-01");
    let named = ["--by", "day", "--timezone", "Asia/Tokyo"];
    assert_eq!(first_group(&env, "UTC", &named, "day"), "2026-11-02");

    env.write_settings("[display]\nzone = \"utc\"\n");
    env.run(["stats", "--by", "day"]).fails(2).says(["settings.toml", "line 2"]);
    env.run(["status"]).ok();
}

#[test]
fn dates_are_midnight_in_the_zone() {
    let env = evening_store();
    for (zone, found) in [("America/Los_Angeles", 1), ("utc", 0)] {
        for command in [
            vec!["search", "harbor until:2026-11-02"],
            vec!["stats", "--by", "day", "--until", "2026-11-02"],
        ] {
            env.run([&["--timezone", zone], &command[..]].concat()).exits(1 - found);
        }
        env.run(["list", "--since", "2026-11-02", "--timezone", zone]).exits(found);
    }
}

#[test]
fn usage_of_today_is_that_of_the_day_of_the_zone() {
    for name in ["America/Los_Angeles", "Asia/Tokyo"] {
        let zone = Zone::find("timezone", name).expect("a zone");
        let now = Timestamp::now();
        let midnight = zone.parse_since("since", "today", now).expect("a day");
        let env = TestEnv::new();
        let message = |time: i64, tokens: u32| {
            json!({"type": "message", "timestamp": Timestamp(time).to_string(), "text": "Sorted",
                "model": "qwen3-coder-plus", "usage": {"input_tokens": tokens}})
        };
        let night = env.log("night").event(message(midnight.0 - 1_000_000, 700));
        night.event(message(midnight.0, 30)).ingest();

        let sums = |period: &str| {
            let answer = env.json(["usage", period, "--timezone", name]);
            let groups = answer["data"]["groups"].list().to_vec();
            let cells = groups.iter().map(|group| {
                let input = group["tokens"]["counted_once"]["input_tokens"].as_i64();
                (group["group"]["day"].text().to_owned(), input)
            });
            cells.collect::<Vec<_>>()
        };
        // At midnight the next day begins between the commands.
        let is_same_day = || zone.day(Timestamp::now()) == zone.day(now);
        let (today, yesterday) = (sums("today"), sums("yesterday"));
        if is_same_day() {
            assert_eq!(today, [(zone.day(now).expect("a day"), Some(30))], "{name}");
            let before = zone.day(Timestamp(midnight.0 - 1)).expect("a day");
            assert_eq!(yesterday, [(before, Some(700))], "{name}");
        }
    }
}

#[test]
fn an_unknown_zone_names_the_nearest() {
    let env = evening_store();
    env.run(["stats", "--by", "day", "--timezone", "America/Los_Angles"])
        .fails(2)
        .says("America/Los_Angeles");
}

#[test]
fn a_call_over_mcp_names_its_zone() {
    let env = evening_store();
    let mut client = Client::modern(&env);
    let mut call = |arguments: Value| client.call("session_stats", arguments)["data"].clone();
    let utc = call(json!({"group_by": "day"}));
    assert_eq!(utc["groups"][0]["group"]["day"], "2026-11-02");
    assert_eq!(utc["timezone"], "UTC");
    let local = call(json!({
        "group_by": "day", "timezone": "America/Los_Angeles", "until": "2026-11-02"
    }));
    assert_eq!(local["groups"][0]["group"]["day"], "2026-11-01");
    assert_eq!(local["timezone"], "America/Los_Angeles");
}

/// The example of docs/sql.md.
#[test]
fn a_query_converts_times_itself() {
    let env = evening_store();
    let sql = "SELECT (timestamp AT TIME ZONE 'UTC' AT TIME ZONE 'America/Los_Angeles')::DATE::VARCHAR \
               FROM events GROUP BY 1";
    assert_eq!(env.rows(sql), [[json!("2026-11-01")]]);
}
