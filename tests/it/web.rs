//! The page of `sessions web`: who may use it, which headers it has, what its API answers, that
//! changes arrive, and that the built page is that of its sources.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::time::{Duration, Instant};

use regex::Regex;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::checks::{Checks, JsonChecks};
use crate::env::TestEnv;
use crate::local_server::{LocalServer, Response};

pub(crate) struct Page {
    server: LocalServer,
    /// The token of the link that was shown.
    token: String,
}

/// Returns the token of the link that the program shows in this line.
fn token_of(line: &str) -> String {
    let link = line.trim().strip_prefix("open http://127.0.0.1:");
    let parts = link.and_then(|link| link.split_once("/#token="));
    parts.unwrap_or_else(|| panic!("{line}")).1.to_owned()
}

impl Page {
    pub(crate) fn start(env: &TestEnv, flags: &[&str]) -> Self {
        let server =
            LocalServer::start(env.command().args(["web", "--http", "127.0.0.1:0"]).args(flags));
        let token = token_of(&server.said);
        Self { server, token }
    }

    fn login(&self, token: &str) -> Response {
        let headers = [("Content-Type", "application/json")];
        self.server.send("POST", "/api/login", &headers, &json!({ "token": token }).to_string())
    }

    /// Logs in, and returns the cookie as a browser sends it.
    pub(crate) fn cookie(&self) -> String {
        let answer = self.login(&self.token);
        assert_eq!(answer.status, 200, "{}", answer.body);
        answer.header("set-cookie").split(';').next().expect("a cookie").to_owned()
    }

    pub(crate) fn call(&self, cookie: &str, tool: &str, arguments: Value) -> Response {
        let headers = [("Content-Type", "application/json"), ("Cookie", cookie)];
        self.server.send("POST", &format!("/api/{tool}"), &headers, &arguments.to_string())
    }
}

#[test]
fn a_link_works_once_and_its_cookie_stays_strict() {
    let env = TestEnv::with_samples();
    let mut page = Page::start(&env, &[]);
    for wrong in ["", "nonsense", &page.token[1..]] {
        assert_eq!(page.login(wrong).status, 403);
    }
    let answer = page.login(&page.token);
    assert_eq!(answer.status, 200, "{}", answer.body);
    let cookie = answer.header("set-cookie");
    cookie.shows(["; HttpOnly", "; SameSite=Strict", "; Path=/"]);
    assert!(!cookie.contains(&page.token), "the token is not kept");
    let again = page.login(&page.token);
    assert_eq!(again.status, 403, "it worked once");
    assert!(again.json()["error"]["message"].text().contains("has expired"));
    let mut line = String::new();
    page.server.stderr.read_line(&mut line).expect("reads");
    let next = token_of(&line);
    assert_eq!(page.login(&next).status, 200, "the next link opens another browser");
    assert_eq!(page.server.send("GET", &format!("/api/login?token={next}"), &[], "").status, 400);
}

#[test]
fn without_the_cookie_there_is_no_data() {
    let env = TestEnv::with_samples();
    let page = Page::start(&env, &[]);
    let cookie = page.cookie();
    let json = ("Content-Type", "application/json");
    let wrong = format!("{}x", &cookie[..cookie.len() - 1]);
    for headers in [vec![json], vec![json, ("Cookie", wrong.as_str())]] {
        for (method, path) in [
            ("POST", "/api/list_sessions"),
            ("GET", "/api/live"),
            ("GET", "/api/image?event=9ae82b3a:1"),
            ("POST", "/api/update_session_labels"),
            ("GET", "/api/"),
        ] {
            let refused = page.server.send(method, path, &headers, "{}");
            assert_eq!(refused.status, 401, "{method} {path}: {}", refused.body);
            assert_eq!(refused.json()["status"], "error");
        }
    }
    for path in ["/", "/page.js", "/page.css", "/session/9ae82b3a", "/search?q=budget"] {
        let answer = page.server.send("GET", path, &[], "");
        assert_eq!(answer.status, 200, "{path}");
        assert!(!answer.body.contains("9ae82b3a"), "{path} is the same for everyone");
    }
    assert_eq!(page.server.send("GET", "/etc/passwd", &[], "").status, 404);
    assert_eq!(page.server.send("POST", "/", &[], "").status, 405);
}

#[test]
fn other_hosts_pages_and_types_are_refused() {
    let env = TestEnv::with_samples();
    let page = Page::start(&env, &[]);
    let cookie = page.cookie();
    let status = |more: &[(&str, &str)]| {
        let mut headers = vec![("Content-Type", "application/json"), ("Cookie", cookie.as_str())];
        headers.extend(more);
        page.server.send("POST", "/api/list_sessions", &headers, "{}").status
    };
    let own = format!("http://127.0.0.1:{}", page.server.port);
    assert_eq!(status(&[]), 200);
    assert_eq!(status(&[("Origin", &own), ("Sec-Fetch-Site", "same-origin")]), 200);
    assert_eq!(status(&[("Host", "evil.example")]), 403);
    for origin in ["http://evil.example", "null", "http://127.0.0.1:1", "http://localhost:5173"] {
        assert_eq!(status(&[("Origin", origin)]), 403, "{origin}");
    }
    for site in ["cross-site", "same-site"] {
        assert_eq!(status(&[("Sec-Fetch-Site", site)]), 403, "{site}");
    }
    // A form of another page cannot send JSON.
    for kind in ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data"] {
        let headers = [("Content-Type", kind), ("Cookie", cookie.as_str())];
        assert_eq!(
            page.server.send("POST", "/api/list_sessions", &headers, "{}").status,
            415,
            "{kind}"
        );
    }
    let answer = page.server.send("OPTIONS", "/api/list_sessions", &[("Origin", &own)], "");
    assert_eq!(answer.header("access-control-allow-origin"), "");
    for address in ["0.0.0.0:0", "192.0.2.1:0"] {
        env.run(["web", "--http", address]).fails(2).says("loopback");
    }
}

#[test]
fn every_answer_has_the_policy() {
    let env = TestEnv::with_samples();
    let page = Page::start(&env, &[]);
    let cookie = page.cookie();
    let answers = [
        page.server.send("GET", "/", &[], ""),
        page.server.send("GET", "/page.js", &[], ""),
        page.server.send("GET", "/nothing", &[], ""),
        page.server.send("GET", "/", &[("Host", "evil.example")], ""),
        page.call(&cookie, "list_sessions", json!({})),
        page.call("", "list_sessions", json!({})),
    ];
    for answer in answers {
        let policy = answer.header("content-security-policy");
        policy.shows([
            "default-src 'none'",
            "script-src 'self'",
            "style-src 'self'",
            "connect-src 'self'",
            "frame-ancestors 'none'",
            "base-uri 'none'",
            "form-action 'none'",
            "require-trusted-types-for 'script'",
        ]);
        policy.lacks(["unsafe", "http"]);
        assert_eq!(answer.header("x-content-type-options"), "nosniff");
        assert_eq!(answer.header("cross-origin-resource-policy"), "same-origin");
        assert_eq!(answer.header("cache-control"), "no-store");
        assert_eq!(answer.header("referrer-policy"), "no-referrer");
    }
    let html = page.server.send("GET", "/", &[], "").body;
    html.lacks(["http://", "https://", "<style", "onload", "javascript:"]);
}

#[test]
fn the_api_answers_what_the_tools_answer() {
    let env = TestEnv::with_samples();
    let page = Page::start(&env, &[]);
    let cookie = page.cookie();
    let answer = page.call(&cookie, "list_sessions", json!({ "limit": 3 })).json();
    assert_eq!(answer["data"], env.json(["list", "--limit", "3"])["data"]);
    let wrong = page.call(&cookie, "search_events", json!({ "query": "\"open" }));
    assert_eq!((wrong.status, &wrong.json()["error"]["code"]), (400, &json!("invalid_query")));
    assert_eq!(page.call(&cookie, "no_tool", json!({})).status, 404);
    assert_eq!(page.call(&cookie, "list_sessions", json!([])).status, 400);
    let unknown = page.call(&cookie, "get_session_details", json!({ "session_id": "ffffffff" }));
    assert_eq!(unknown.status, 404);
    let write = page.call(&cookie, "query_sql", json!({ "sql": "DROP TABLE events" }));
    assert_eq!(write.json()["error"]["code"], "sql_not_allowed");
    let label = json!({ "updates": [{ "session_id": "9ae82b3a", "add": ["seen"] }] });
    assert_eq!(page.call(&cookie, "update_session_labels", label).status, 200);
    assert_eq!(env.json(["list", "--label", "seen"])["data"]["sessions"][0]["labels"][0], "seen");
}

#[test]
fn the_rate_limit_holds_for_the_page_too() {
    let env = TestEnv::with_samples();
    let page = Page::start(&env, &["--rate-limit", "2"]);
    let cookie = page.cookie();
    let statuses: Vec<u16> = (0..4)
        .map(|at| page.call(&cookie, "list_sessions", json!({ "limit": at + 1 })).status)
        .collect();
    assert_eq!(statuses, [200, 200, 429, 429]);
    let refused = page.call(&cookie, "list_sessions", json!({})).json();
    assert!(refused["error"]["details"]["retry_after_ms"].as_u64() > Some(0));
}

/// Text of a log reaches the page as JSON only, and without characters that change how text looks.
#[test]
fn hostile_text_is_data() {
    let env = TestEnv::with_samples();
    let page = Page::start(&env, &[]);
    let cookie = page.cookie();
    let found = page.call(&cookie, "search_events", json!({ "query": "<script>" }));
    found.body.shows("<script>");
    assert_eq!(found.header("content-type"), "application/json");
    assert!(!crate::surface::has_hostile_text(&found.json()), "{}", found.body);
    let hostile = "evil\u{1b}[31m\u{202e}\u{7}";
    for body in [json!({ "query": hostile, "provider": hostile }), json!({ hostile: 1 })] {
        let refused = page.call(&cookie, "search_events", body).json();
        assert!(!crate::surface::has_hostile_text(&refused));
    }
}

/// A line that is appended to a log of a known agent is on the page within moments.
#[test]
fn a_log_that_grows_is_reported() {
    let env = TestEnv::new();
    let folder = env.path(".local/share/agent-sessions");
    std::fs::create_dir_all(&folder).expect("creates");
    let log = folder.join("live.jsonl");
    let head = r#"{"format":"sessions","version":1,"session_id":"live-1"}"#;
    let prompt = r#"{"type":"user","timestamp":"2026-10-29T06:00:00Z","text":"first"}"#;
    env.write(&log, format!("{head}\n{prompt}\n"));
    let page = Page::start(&env, &[]);
    let cookie = page.cookie();
    let stream = page.server.open("GET", "/api/live", &[("Cookie", &cookie)], "");
    stream.set_read_timeout(Some(Duration::from_secs(20))).expect("sets");
    let mut lines = BufReader::new(stream).lines().map_while(Result::ok);
    let mut next = || lines.find_map(|line| line.strip_prefix("data: ").map(str::to_owned));
    // The store may be empty at first.
    while !next().expect("an event").contains("\"generation\":1}") {}

    let mut file = std::fs::OpenOptions::new().append(true).open(&log).expect("opens");
    let answer = r#"{"type":"message","timestamp":"2026-10-29T06:00:04Z","text":"second"}"#;
    writeln!(file, "{answer}").expect("writes");
    let start = Instant::now();
    assert!(next().expect("an event").contains("generation"));
    assert!(start.elapsed() < Duration::from_secs(10), "{:?}", start.elapsed());
    let found = page.call(&cookie, "search_events", json!({ "query": "second" })).json();
    assert_eq!(found["data"]["matches"][0]["event_id"], "live-1:1");
}

#[cfg(unix)]
#[test]
fn asked_to_end_it_ends_even_while_a_page_listens() {
    let env = TestEnv::with_samples();
    let mut page = Page::start(&env, &[]);
    let cookie = page.cookie();
    let _listening = page.server.open("GET", "/api/live", &[("Cookie", &cookie)], "");
    let start = Instant::now();
    let pid = page.server.process.0.id().to_string();
    assert!(
        std::process::Command::new("kill").args(["-TERM", &pid]).status().expect("runs").success()
    );
    assert_eq!(page.server.process.0.wait().expect("ends").code(), Some(0));
    assert!(start.elapsed() < Duration::from_secs(4), "{:?}", start.elapsed());
}

/// The hash of the sources, as `cargo xtask web` computes it.
fn hash_sources(folder: &Path) -> String {
    let mut files: Vec<_> = std::fs::read_dir(folder)
        .expect("sources")
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.is_file())
        .collect();
    files.sort();
    let mut hash = Sha256::new();
    for path in files {
        hash.update(path.file_name().expect("a name").as_encoded_bytes());
        hash.update([0]);
        hash.update(std::fs::read(&path).expect("reads"));
        hash.update([0]);
    }
    hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}

#[test]
fn the_built_page_is_that_of_its_sources() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/page");
    let built = std::fs::read_to_string(root.join("bundle/SOURCES")).expect("the hash");
    assert_eq!(built.trim(), hash_sources(&root.join("source")), "run `cargo xtask web`");
    // The page has no way to turn text into markup or code.
    let script = std::fs::read_to_string(root.join("bundle/page.js")).expect("the script");
    script.lacks(["eval(", "new Function", "document.write", "insertAdjacentHTML", "outerHTML"]);
    for entry in std::fs::read_dir(root.join("source")).expect("sources") {
        let path = entry.expect("an entry").path();
        let text = std::fs::read_to_string(&path).expect("reads");
        let name = path.file_name().expect("a name").to_string_lossy().into_owned();
        text.lacks(["dangerouslySetInnerHTML", "innerHTML"]);
        let is_code = name.ends_with(".ts") || name.ends_with(".tsx");
        assert!(!is_code || (text.starts_with("//") && text.lines().count() <= 450), "{name}");
    }
}

#[test]
fn no_files_of_the_page_import_each_other_in_a_circle() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/page/source");
    let import = Regex::new(r#"from "\./(\w+)""#).expect("a pattern");
    let mut imports: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for entry in std::fs::read_dir(folder).expect("sources") {
        let path = entry.expect("an entry").path();
        if path.extension().is_some_and(|kind| kind == "ts" || kind == "tsx") {
            let text = std::fs::read_to_string(&path).expect("reads");
            let names = import.captures_iter(&text).map(|found| found[1].to_owned()).collect();
            let name = path.file_stem().expect("a name").to_string_lossy().into_owned();
            imports.insert(name, names);
        }
    }
    // What imports nothing that is left is a layer.
    loop {
        let left: Vec<String> = imports.keys().cloned().collect();
        imports.retain(|_, names| names.iter().any(|name| left.contains(name)));
        if imports.len() == left.len() {
            break;
        }
    }
    assert!(imports.is_empty(), "{imports:?}");
}
