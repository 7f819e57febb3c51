//! Whether one more call reads what a session says: turns that share a page, the best texts of a session
//! for a question, and ranges of events.

use serde_json::{Value, json};

use crate::checks::JsonChecks;
use crate::env::TestEnv;
use crate::mcp::Client;

/// A text of several sentences, with its beginning and its end.
fn long_text(name: &str, words: usize) -> String {
    let middle: Vec<String> = (0..words).map(|word| format!("word{word}")).collect();
    format!("Begin of {name}. {} End of {name}.", middle.join(" "))
}

/// Returns the turns of a session and the bytes of the answer.
fn turns(client: &mut Client, session: &str) -> (Vec<Value>, usize) {
    let level = json!({ "session_id": session, "detail_level": "turns" });
    let answer = client.call("get_session_details", level);
    (answer["data"]["turns"].list().to_vec(), answer.to_string().len())
}

#[test]
fn the_excerpts_of_few_turns_share_the_page() {
    let env = TestEnv::new();
    let fix = long_text("the fix", 400);
    let report = long_text("the report", 1_500);
    env.log("crane")
        .user("Why does the crane jam?")
        .message(&fix)
        .user("Report.")
        .message(&report)
        .write();
    let ferry = (0..40)
        .fold(env.log("ferry"), |log, _| log.user(&long_text("a prompt", 200)).message(&fix));
    ferry.write();
    env.ingest("logs");
    let mut client = Client::legacy(&env);

    let (shown, bytes) = turns(&mut client, "crane");
    assert_eq!(shown[0]["answer"]["text"], fix);
    assert!(shown[0]["answer"].get("omitted").is_none(), "{shown:#?}");
    let cut = shown[1]["answer"]["text"].text();
    assert!(
        cut.starts_with("Begin of the report.") && cut.ends_with("End of the report."),
        "{cut}"
    );
    let (head, tail) = cut.split_once(" […] ").expect("a mark");
    let omitted = shown[1]["answer"]["omitted"].as_u64().expect("a number");
    // The blanks at the cut are left out, too.
    let kept = head.chars().count() + tail.chars().count();
    assert_eq!(kept as u64 + omitted, report.chars().count() as u64);
    assert!(bytes > 11_000 && bytes < 13_000, "{bytes}");

    let (shown, bytes) = turns(&mut client, "ferry");
    assert!(shown.len() > 10 && bytes < 31_500, "{} turns, {bytes} bytes", shown.len());
    for turn in &shown {
        let bytes_of = |part: &str| turn[part]["text"].as_str().map_or(0, str::len);
        assert!(bytes_of("prompt") > 560 && bytes_of("answer") > 760, "{turn:#}");
    }
    client.end();
}

#[test]
fn a_text_that_would_lose_a_few_characters_is_whole() {
    let env = TestEnv::new();
    let nearly = "x".repeat(870);
    let over = "y".repeat(950);
    let crane = (0..20).fold(env.log("crane"), |log, _| {
        log.user("Go on.").message(&nearly).user("And now?").message(&over)
    });
    crane.ingest();
    let mut client = Client::legacy(&env);
    let (shown, _) = turns(&mut client, "crane");
    assert_eq!(shown[0]["answer"]["text"], nearly);
    assert!(shown[1]["answer"]["omitted"].as_u64() > Some(100), "{:#}", shown[1]);
    client.end();
}

/// A session in which a crane jams, with an answer in the middle and a long output.
fn write_crane_session(env: &TestEnv) -> String {
    let cause = long_text("the cause: the hinge of the crane was cast too thin, so it jams", 250);
    env.log("8f3e5a70-crane")
        .cwd("/home/mira/harbor")
        .user("The crane jams.")
        .message("I measure the hinge of the crane.")
        .command("measure hinge --crane", &format!("hinge crane {}", "00 ff ".repeat(4_000)), 0)
        .message(&cause)
        .user("Thanks.")
        .message("The berth is free.")
        .write();
    env.log("51c0ffee-ferry").user("The crane of the ferry.").message("No.").write();
    env.ingest("logs");
    cause
}

#[test]
fn the_next_step_of_a_search_shows_what_the_best_session_says_in_full() {
    let env = TestEnv::new();
    let cause = write_crane_session(&env);
    let mut client = Client::legacy(&env);
    let question = "why did the crane jam on its hinge";
    let found = client.call("search_sessions", json!({ "query": question }));
    let hint = found["hint"].text();
    let call = "search_events(query=<the question>, session_id=8f3e5a70, sort=relevance)";
    assert!(hint.contains(call), "{hint}");

    let mut arguments =
        json!({ "query": question, "session_id": "8f3e5a70", "sort": "relevance", "context": 1 });
    let answer = client.call("search_events", arguments.clone());
    let matches = answer["data"]["matches"].list();
    let of_type = |name: &str| {
        let found = matches.iter().find(|found| found["event_type"] == name);
        found.unwrap_or_else(|| panic!("no {name}: {answer:#}"))
    };
    assert!(matches.iter().any(|found| found["snippet"] == json!(cause)));
    let result = of_type("tool_result")["snippet"].text();
    assert!(result.len() > 160 && result.len() <= 410 && result.ends_with('…'), "{result}");
    // An event is either a match or next to one.
    let mut ids: Vec<String> = Vec::new();
    for found in matches {
        let (session, index) =
            found["event_id"].as_str().and_then(|id| id.split_once(':')).expect("id");
        assert_eq!(session, "8f3e5a70-crane");
        ids.push(index.to_owned());
        let context = found["context"].as_object();
        ids.extend(context.into_iter().flatten().map(|(index, _)| index.clone()));
    }
    ids.sort();
    let all = ids.len();
    ids.dedup();
    assert_eq!(ids.len(), all);

    // Over all sessions, and in the order of time, matches are previews.
    for (name, value) in [("session_id", Value::Null), ("sort", json!("newest"))] {
        arguments["query"] = json!("crane hinge");
        let mut other = arguments.clone();
        other[name] = value;
        let previews = client.call("search_events", other);
        for found in previews["data"]["matches"].list() {
            let chars = found["snippet"].as_str().map_or(0, |text| text.chars().count());
            assert!(chars <= 162, "{previews:#}");
        }
    }
    client.end();
}

#[test]
fn a_range_shows_prompts_and_answers_whole_and_results_short() {
    let env = TestEnv::new();
    let cause = write_crane_session(&env);
    let mut client = Client::legacy(&env);
    let range = |range: &str| json!({ "event_ids": [format!("8f3e5a70:{range}")] });
    let answer = client.call("get_event_details", range("2-99"));
    let events = answer["data"]["events"].list();
    let places: Vec<_> = events.iter().map(|event| event["event_index"].as_u64()).collect();
    assert_eq!(places, (2..7).map(Some).collect::<Vec<_>>());
    assert_eq!(answer["metadata"]["results_total"], 5);
    assert_eq!(events[0]["tool_name"], "shell");
    let result = &events[1];
    let text = result["text"].text();
    assert!(text.len() <= 310 && text.contains(" […] "), "{text}");
    assert_eq!(result["text_chars"], "hinge crane ".len() + 6 * 4_000);
    assert_eq!(events[2]["text"], cause);
    assert!(events.iter().all(|event| event.get("source").is_none()));

    // The event itself has its whole text.
    let whole = client
        .call("get_event_details", json!({ "event_ids": ["8f3e5a70:3"], "max_chars": 80_000 }));
    assert!(whole["data"]["events"][0]["text"].as_str().is_some_and(|text| text.len() > 20_000));

    // Pages repeat none and leave none out.
    let mut arguments = range("0-6");
    arguments["max_chars"] = json!(1_000);
    let pages = client.pages("get_event_details", arguments);
    let events: Vec<&Value> = pages.iter().flat_map(|page| page["data"]["events"].list()).collect();
    let parts = events.iter().filter(|event| event["event_index"] == 4);
    assert_eq!(parts.map(|event| event["text"].text()).collect::<String>(), cause);
    let mut seen: Vec<_> =
        events.iter().filter_map(|event| event["event_index"].as_u64()).collect();
    seen.dedup();
    assert_eq!(seen, (0..7).collect::<Vec<u64>>());
    client.end();

    env.run(["event", "8f3e5a70:70-80"])
        .fails(1)
        .says("The events of session 8f3e5a70-crane are 0 to 6");
}

/// The identifier is only in the output of a command. The other sessions talk of its parts.
#[test]
fn a_rare_identifier_wins_over_sessions_that_have_its_parts() {
    let env = TestEnv::new();
    let lines: String =
        (0..20).map(|line| format!("src/pier{line}.ts: a type is wrong\n")).collect();
    let output = format!("{lines}hint: skipLibCheck\n{lines}");
    env.log("types")
        .user("The types of the harbor are wrong.")
        .message("I look.")
        .command("tsc --build", &output, 2)
        .message("The error stays.")
        .write();
    for number in 0..2 {
        env.log(&format!("parts{number}"))
            .user("Can you check the lib, please?")
            .message("The lib is fine. I skip the rest of the check.")
            .write();
    }
    for number in 0..30 {
        env.log(&format!("berth{number}"))
            .user("Check which berth is free.")
            .message("I skip the lib; the northern one is.")
            .write();
    }
    env.ingest("logs");
    for question in ["skipLibCheck", "did skipLibCheck help?"] {
        let answer = env.json(["find", question]);
        assert_eq!(answer["data"]["sessions"][0]["session_id"], "types", "{question}: {answer:#}");
    }
    // Without the identifier the parts are all there is.
    let parts = env.json(["find", "skip lib check"]);
    assert_ne!(parts["data"]["sessions"][0]["session_id"], "types");
}

#[test]
fn a_question_that_fits_many_sessions_alike_says_so() {
    let env = TestEnv::new();
    for number in 0..12 {
        env.log(&format!("berth{number}"))
            .user(&format!("Paint the gate of berth {number}."))
            .message(if number == 5 {
                "The gate has rust and a broken winch."
            } else {
                "It is painted."
            })
            .write();
    }
    env.ingest("logs");
    let mut client = Client::legacy(&env);
    let mut hint = |question: &str| {
        let found = client.call("search_sessions", json!({ "query": question }));
        found["hint"].text().to_owned()
    };
    assert!(hint("paint the gate").contains("No session stands out: name a project"));
    assert!(!hint("paint the gate with the broken winch").contains("stands out"));
    // Of one session there is nothing to choose.
    assert!(!hint("winch").contains("stands out"));
    client.end();
}

#[test]
fn the_best_match_of_a_session_shows_what_was_said_later() {
    let env = TestEnv::new();
    let fix = "It works: oil from the other pier was the cure.";
    let report = long_text("the report", 900);
    let crane = env.log("8f3e5a70-crane").user("Why does the crane jam on its hinge?");
    let steps = (0..12).fold(crane.message("I look."), |log, number| {
        log.message(&format!("Step {number} is done."))
    });
    steps.message(fix).message(&report).user("And the other crane?").message("It sails.").ingest();
    let mut client = Client::legacy(&env);
    let mut arguments = json!({ "query": "crane jam hinge cause", "session_id": "8f3e5a70",
        "sort": "relevance", "limit": 1 });
    let answer = client.call("search_events", arguments.clone());
    let context = &answer["data"]["matches"][0]["context"];
    let later = context.as_object().expect("later messages");
    let indexes: Vec<&str> = later.keys().map(String::as_str).collect();
    // The last eight of the turn, and of the next one its prompt.
    assert_eq!(indexes, ["8", "9", "10", "11", "12", "13", "14", "15", "16"]);
    context.has(json!({"16": "user: And the other crane?", "14": format!("message: {fix}")}));
    let cut = later["15"].text();
    assert!(cut.starts_with("message: Begin of the report.") && cut.ends_with(" ..."), "{cut}");
    assert!(answer.to_string().len() < 6_500);

    // What was asked for is shown once, and what is there already stays.
    arguments["context"] = json!(2);
    let around = client.call("search_events", arguments.clone());
    let shown = around["data"]["matches"][0]["context"].as_object().expect("events");
    let mut expected = later.clone();
    expected.extend(
        [("1", "I look."), ("2", "Step 0 is done.")]
            .map(|(index, text)| (index.to_owned(), json!(format!("message: {text}")))),
    );
    assert_eq!(*shown, expected);

    // The next page shows none, and neither do previews in the order of time.
    arguments["context"] = json!(0);
    arguments["cursor"] =
        client.call("search_events", arguments.clone())["pagination"]["next_cursor"].clone();
    assert!(arguments["cursor"].is_string(), "{arguments}");
    for (name, value) in [("cursor", arguments["cursor"].clone()), ("sort", json!("newest"))] {
        let mut other = json!({ "query": "crane jam hinge cause", "session_id": "8f3e5a70",
            "sort": "relevance", "limit": 1, "context": 0 });
        other[name] = value;
        if name == "sort" {
            other["query"] = json!("crane");
        }
        let previews = client.call("search_events", other);
        assert!(previews["data"]["matches"][0].get("context").is_none());
    }
    client.end();
}
