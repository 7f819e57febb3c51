//! The screens of the main commands at four widths, as text and with their colours, and what a
//! terminal changes.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use ingest::provider::encrypted::EncryptedLogs;
use ingest::provider::format::AgentFolders;
use schemas::tool::OneOrMany;
use schemas::tool::analyze::AnalyzeArgs;
use schemas::tool::details::{DetailArgs, DetailLevel};
use schemas::tool::event::EventArgs;
use schemas::tool::find::FindArgs;
use schemas::tool::list::ListArgs;
use schemas::tool::search::SearchArgs;
use schemas::tool::stats::{GroupKey, StatsArgs};
use schemas::{Provider, Timestamp, Zone};
use sessions::output::{ConversationView, Layout, Show, UsageTable};
use store::{KeepLogs, Store};
use tools::{Call, Extent, Tools};

use crate::checks::{Checks, JsonChecks};
use crate::env::{TestEnv, compare, samples};

const WIDTHS: [usize; 4] = [60, 80, 120, 200];

/// The session with the edit and its failure.
const MAIN: &str = "9ae82b3a-fd82-48da-afd8-479f58648cbe";

/// The command that shows its conversation.
const SHOW: &str = "sessions show 9ae82b3a";

/// What the main commands print on a screen of one width, or into a pipe without a width, under their
/// command lines.
fn screens(tools: &Tools, width: Option<usize>) -> String {
    let now = Timestamp::parse("2026-11-26T12:00:00Z").expect("valid");
    let zone = Zone::find("timezone", "America/Los_Angeles").expect("a zone");
    let call = Call::new(now, &|| false).with_zone(zone.clone());
    let list = ListArgs { provider: Some(Provider::Claude), ..ListArgs::default() };
    let listed = tools.list_sessions(&list, &call).expect("sessions").data;
    let search = SearchArgs {
        query: "budget remaining".to_owned(),
        provider: Some(Provider::Claude),
        limit: Some(6),
        ..SearchArgs::default()
    };
    let found = tools.search_events(&search, &call).expect("events").data;
    let by = |key| StatsArgs {
        group_by: OneOrMany::One(key),
        provider: Some(Provider::Claude),
        limit: Some(8),
        ..StatsArgs::default()
    };
    let by_tool = tools.session_stats(&by(GroupKey::Tool), &call).expect("groups").data;
    let by_day = tools.count_sessions(&by(GroupKey::Day), Extent::All, &call).expect("groups").data;
    let transcript = tools.read_transcript(MAIN, &call).expect("a session");
    let resume = Some(format!("claude --resume {MAIN}"));
    let conversation = ConversationView::new(transcript, resume, false);
    let question = FindArgs {
        query: "where did the retry budget fail".to_owned(),
        provider: Some(Provider::Claude),
        limit: Some(3),
        ..FindArgs::default()
    };
    let matching = tools.search_sessions(&question, &call).expect("sessions").data;
    let analyze = AnalyzeArgs { session_id: Some(MAIN.to_owned()), ..AnalyzeArgs::default() };
    let analyzed = tools.analyze_session(&analyze, &call).expect("findings").data;
    let recurring = AnalyzeArgs { limit: Some(2), ..AnalyzeArgs::default() };
    let recurring = tools.analyze_session(&recurring, &call).expect("findings").data;
    let event_ids = [0, 4, 5].map(|index| format!("{MAIN}:{index}")).to_vec();
    let events = EventArgs { event_ids, ..EventArgs::default() };
    let mut events = (*tools.get_event_details(&events, &call).expect("events").data).clone();
    // The golden files are the same in every folder.
    let folder = samples().to_string_lossy().into_owned();
    for source in events.events.iter_mut().filter_map(|event| event.source.as_mut()) {
        source.path = source.path.replace(&folder, "/srv/logs");
    }
    let mut levels = Vec::new();
    for (level, turns) in [
        (DetailLevel::Summary, None),
        (DetailLevel::Turns, None),
        (DetailLevel::Steps, Some("2")),
        (DetailLevel::Full, Some("2")),
    ] {
        let details = DetailArgs {
            session_id: MAIN.to_owned(),
            detail_level: Some(level),
            turns: turns.map(str::to_owned),
            ..DetailArgs::default()
        };
        let details = tools.get_session_details(&details, &call).expect("a session").data;
        let turns = turns.map(|turns| format!(" --turns {turns}")).unwrap_or_default();
        levels.push((format!("sessions show 9ae82b3a --detail-level {level}{turns}"), details));
    }
    let mut status = tools.collect_status(&[]).expect("a store");
    // These depend on the folder and the time of the test, and on what the store makes of its files.
    status.store = "/home/mira/.local/share/sessions".to_owned();
    status.last_updated = Some("2026-11-26T11:48:00.000Z".to_owned());
    status.store_bytes = 400_000;
    status.store_ratio = 0.4;
    let checked = tools
        .run_doctor(&AgentFolders::new(&PathBuf::from("/home/mira"), &|_| None), KeepLogs::Masked);
    let mut doctor = checked.expect("a store");
    for place in doctor.providers.iter_mut().flat_map(|health| &mut health.places) {
        if place.path == Path::new("/home/mira/.claude/projects") {
            (place.exists, place.files, place.bytes) = (true, 12, 3_400_000);
        }
    }
    doctor.encrypted.push(EncryptedLogs {
        agent: "Windsurf (Cascade)",
        folder: PathBuf::from("/home/mira/.codeium/windsurf/cascade"),
        files: 3,
        instead: "nothing of it is read",
    });
    let layout = layout(width, zone, &call);

    let mut out = String::new();
    for (line, screen) in [
        ("sessions list --provider claude", listed.paint(&layout)),
        ("sessions search 'budget remaining' --provider claude", found.paint(&layout)),
        (SHOW, conversation.paint(&layout)),
        ("sessions usage --provider claude --all", UsageTable(&by_day).paint(&layout)),
        ("sessions stats --by tool --provider claude", by_tool.paint(&layout)),
        ("sessions find where did the retry budget fail -n 3", matching.paint(&layout)),
        ("sessions analyze 9ae82b3a", analyzed.paint(&layout)),
        ("sessions analyze -n 2", recurring.paint(&layout)),
        ("sessions event 9ae82b3a:0 9ae82b3a:4 9ae82b3a:5", events.paint(&layout)),
        ("sessions status", status.paint(&layout)),
        ("sessions doctor", doctor.paint(&layout)),
    ] {
        // A pipe gets the summary of a session instead of its conversation.
        if width.is_some() || line != SHOW {
            out.push_str(&format!("$ {line}\n{}\n", screen.as_str()));
        }
    }
    for (line, details) in levels {
        out.push_str(&format!("$ {line}\n{}\n", details.paint(&layout).as_str()));
    }
    out
}

/// Returns the layout of a screen of a width, or of a pipe without one.
fn layout(width: Option<usize>, zone: Zone, call: &Call<'_>) -> Layout {
    let snapshot = call.taken_snapshot();
    let Some(width) = width else { return Layout::plain(snapshot) };
    Layout { width, zone, now: call.now(), snapshot, has_links: false, is_plain: false }
}

#[test]
fn screens_fit_four_widths() {
    let env = TestEnv::with_samples();
    let tools = Tools::new(Arc::new(Store::new(env.store())));
    for width in WIDTHS {
        let screens = screens(&tools, Some(width));
        let text = without_escapes(&screens);
        for line in text.lines().filter(|line| !line.starts_with('$')) {
            let cells = unicode_width::UnicodeWidthStr::width(line);
            assert!(cells <= width, "{cells} cells: {line}");
        }
        compare("UPDATE_GOLDEN", &format!("tests/golden/screens/{width}.txt"), &text);
        // Escape sequences as text, so that a diff shows them.
        let colored = screens.replace('\u{1b}', "ESC");
        compare("UPDATE_GOLDEN", &format!("tests/golden/screens/{width}.ansi"), &colored);
    }
}

#[test]
fn a_pipe_gets_whole_values() {
    let env = TestEnv::with_samples();
    let tools = Tools::new(Arc::new(Store::new(env.store())));
    let text = without_escapes(&screens(&tools, None));
    compare("UPDATE_GOLDEN", "tests/golden/screens/pipe.txt", &text);
}

/// Removes the sequences that set styles, the only ones of the screens.
fn without_escapes(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, sequence)) = rest.split_once("\u{1b}[") {
        out.push_str(before);
        let end = sequence.find('m').expect("a style");
        rest = &sequence[end + 1..];
    }
    out + rest
}

#[test]
fn a_pipe_gets_whole_ids_and_no_escapes() {
    let env = TestEnv::with_samples();
    for args in [
        &["list", "--provider", "claude"][..],
        &["search", "budget", "--provider", "claude"],
        &["show", MAIN],
        &["usage"],
        &["stats", "--by", "tool"],
    ] {
        env.run(args).lacks("\u{1b}");
    }
    env.run(["list", "--provider", "claude"]).shows("T10:").shows(MAIN);
}

#[test]
fn colors_are_forced_by_the_flag_and_the_environment() {
    let env = TestEnv::with_samples();
    let listed = |variables: &[&str], flags: &[&str]| {
        let list = env.cli(["list", "--provider", "claude"]).args(flags);
        let list = variables.iter().fold(list, |list, name| list.env(name, "1"));
        list.run().ok()
    };
    for (variables, args, has_color) in [
        (&[][..], &["--color", "always"][..], true),
        (&["NO_COLOR"], &["--color", "always"], true),
        (&["CLICOLOR_FORCE"], &[], true),
        (&["CLICOLOR_FORCE", "NO_COLOR"], &[], false),
        (&["CLICOLOR_FORCE"], &["--color", "never"], false),
    ] {
        let out = listed(variables, args);
        assert_eq!(out.contains("\u{1b}["), has_color, "{variables:?} {args:?}");
    }
    let list = env.cli(["list", "--provider", "claude", "--color", "always"]).env("COLUMNS", "60");
    list.run().shows("9ae82b3a").lacks(MAIN);
}

#[test]
fn every_short_id_names_its_session() {
    let env = TestEnv::with_samples();
    let snapshot = Store::new(env.store()).take_snapshot().expect("a snapshot");
    for row in snapshot.sessions() {
        let short = snapshot.short_id(&row.session_id);
        let found = snapshot.find_session(&short).expect(&short);
        assert_eq!(snapshot.sessions()[found].session_id, row.session_id);
        assert!(short.len() >= 8 || short == row.session_id, "{short}");
    }
}

#[test]
fn pages_have_numbers_and_all_of_them_can_be_shown() {
    let env = TestEnv::with_samples();
    let ids = |args: &[&str]| {
        let answer = env.json([&["list", "-n", "5"], args].concat());
        let ids = answer["data"]["sessions"].each("session_id");
        ids.into_iter().map(str::to_owned).collect::<Vec<_>>()
    };
    let (first, second, all) = (ids(&[]), ids(&["--page", "2"]), ids(&["--all"]));
    assert_eq!(first.len(), 5);
    assert_eq!([first, second].concat(), all[..10]);
    let note = env.run(["list", "-n", "5", "--page", "2"]).stderr;
    note.shows("--page 3 shows more");
    let steps = |page: &str| {
        let args = ["show", MAIN, "--detail-level", "steps", "-n", "2", "--page", page];
        let steps = env.json(args)["data"]["steps"].clone();
        steps.as_array().expect("steps").iter().map(|step| step["step_index"].clone()).collect()
    };
    let (first, second): (Vec<_>, Vec<_>) = (steps("1"), steps("2"));
    assert!(first.len() == 2 && !second.is_empty() && first != second, "{first:?} {second:?}");
    let error = env.run(["event", &format!("{MAIN}:5"), "--page", "99"]).error(2);
    error.shows("page 99 not found: there is only 1 page");
    env.run(["list", "--page", "99"]).fails(2).says("page 99 not found");
}

#[test]
fn a_grown_log_is_read_before_the_answer() {
    let env = TestEnv::new();
    let log = env.log("grown").user("The first pier").ingest();
    env.append_prompt(log, "2026-11-02T03:30:00Z", "The second lighthouse");
    env.run(["search", "lighthouse", "--no-refresh"]).fails(1);
    // The reading may take longer than the command waits for it.
    let has_found = (0..50).any(|_| {
        std::thread::sleep(std::time::Duration::from_millis(100));
        env.run(["search", "lighthouse"]).code == 0
    });
    assert!(has_found, "the added line");
}

#[test]
fn words_that_users_try_are_understood() {
    let env = TestEnv::with_samples();
    let markdown = env.run(["export", "md", MAIN]).ok();
    assert!(markdown.starts_with("# "));
    let summary = env.run(["stats"]).ok();
    for key in ["agent", "project", "model", "tool"] {
        assert!(summary.lines().any(|line| line.starts_with(key)), "{key}: {summary}");
    }
    env.write("one.sql", "SELECT 41 + 1 AS answer");
    env.run(["query", "-f", "one.sql"]).shows("42");
    let error = env.run(["search", "--lmit", "foo"]).error(2);
    error.shows("--lmit; did you mean --limit?");
    env.run(["search", "--frobnicate", "foo"]).fails(2).says("unknown flag --frobnicate");
    for query in [&["--lmit"][..], &["--", "--lmit", "foo"], &["--no-cache"], &["--limits are hit"]]
    {
        assert!(env.run([&["search"], query].concat()).code < 2, "{query:?}");
    }
    for sort in ["cost", "duration", "failures"] {
        env.run(["list", "--sort", sort, "-n", "1"]).ok();
    }
    env.run(["list", "--until", "2020-01-01"]).fails(1);
    env.run(["config"]).shows(["SESSIONS_STORE", "hooks.timeout_ms"]);
    let ids = env.run(["search", "budget", "-l", "--all"]).ok();
    assert!(ids.lines().any(|id| id == MAIN));
}

#[test]
fn the_words_of_a_query_need_no_quotes() {
    let env = TestEnv::with_samples();
    let quoted = env.json(["search", "retry budget", "--limit", "3"]);
    let words = env.json(["search", "retry", "budget", "--limit", "3"]);
    assert_eq!(words["data"], quoted["data"]);
    assert_eq!(words["data"]["matches"].list().len(), 3);
    assert_eq!(env.json(["search", "-n", "3", "retry", "budget"])["data"], quoted["data"]);
}

#[test]
fn qualifiers_of_sessions_and_times_work_in_both_directions() {
    let env = TestEnv::with_samples();
    let count = |query: &str| {
        let answer = env.json(["search", &format!("budget total:exact {query}")]);
        answer["metadata"]["results_total"].as_u64().unwrap_or_else(|| panic!("{query}: {answer}"))
    };
    let all = count("");
    for (with, without) in [
        ("project:harbor", "-project:harbor"),
        ("cwd:harbor", "-cwd:harbor"),
        ("provider:claude", "-provider:claude"),
        ("since:2026-10-14", "-since:2026-10-14"),
        ("-until:2026-10-14", "until:2026-10-14"),
    ] {
        assert!(count(with) > 0, "{with}");
        assert!(count(with) + count(without) <= all, "{with}");
    }
    assert_eq!(count("provider:claude") + count("-provider:claude"), all);
    assert_eq!(count("since:2026-10-14"), count("-until:2026-10-14"));
}

#[test]
fn a_screen_of_statistics_shows_the_last_thirty_days_and_says_so() {
    let env = TestEnv::new();
    let now = Timestamp::now().to_string();
    env.log("both").at("2020-01-01T10:00:00Z").user("old").at(&now).user("new").ingest();
    let at_terminal = |args: &[&str]| {
        let ran = env.run([&["stats", "--by", "day", "--color", "always"], args].concat());
        (ran.stdout.contains("2020-01-01"), ran.stderr.contains("the last 30 days; --all"))
    };
    assert_eq!(at_terminal(&[]), (false, true));
    assert_eq!(at_terminal(&["--all"]), (true, false));
    assert_eq!(at_terminal(&["--since", "2019-01-01"]), (true, false));
    env.run(["stats", "--by", "day"]).shows("2020-01-01").lacks("30 days");
    let json = env.json(["stats", "--by", "day", "--color", "always"]);
    assert_eq!(json["data"]["groups"].list().len(), 2);
}
