//! Comments and documents cite only what is in the repository, and headings that are there.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use regex::Regex;

use crate::env::files_below;

/// Folders with text that people wrote.
const FOLDERS: [&str; 14] = [
    "src",
    "crates",
    "ingest",
    "schemas",
    "tests",
    "benches",
    "docs",
    "xtask",
    "sample-sessions",
    "skills",
    ".ci",
    ".cargo",
    ".config",
    ".github",
];

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Files of code and documentation, by their path from the root.
fn texts() -> Vec<(PathBuf, String)> {
    let top = fs::read_dir(root()).expect("lists").map(|entry| entry.expect("entry").path());
    let mut files: Vec<PathBuf> = top.filter(|path| path.is_file()).collect();
    files.extend(FOLDERS.iter().flat_map(|folder| files_below(&root().join(folder))));
    let is_text = |path: &PathBuf| {
        let end = path.extension().and_then(|end| end.to_str()).unwrap_or_default();
        ["rs", "md", "ts", "sql", "py", "sh", "toml", "yml"].contains(&end)
    };
    let read = |path: PathBuf| {
        let text = fs::read_to_string(&path).expect("reads");
        (path.strip_prefix(root()).expect("below").to_owned(), text)
    };
    files.into_iter().filter(is_text).map(read).collect()
}

/// The anchors that GitHub makes of the headings of a document.
fn anchors(document: &str) -> BTreeSet<String> {
    let headings = document.lines().filter(|line| line.starts_with('#'));
    let is_kept = |c: &char| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_');
    let anchor = |heading: &str| {
        let words = heading.trim_start_matches('#').trim().to_lowercase();
        words.chars().filter(is_kept).collect::<String>().replace(' ', "-")
    };
    headings.map(anchor).collect()
}

/// The lines of a file that people wrote for people: comments of code, and all of a document.
fn prose<'t>(file: &Path, text: &'t str) -> impl Iterator<Item = &'t str> {
    let is_document = file.extension().is_some_and(|end| end == "md");
    let is_sample = file.starts_with("sample-sessions");
    let is_comment = |line: &str| ["//", "--", "# "].iter().any(|mark| line.starts_with(mark));
    text.lines().filter(move |line| is_comment(line.trim_start()) || is_document && !is_sample)
}

/// True if a path is one of this repository: it begins with a folder of it, or is code. Other names are
/// those of files that agents and stores have.
fn is_ours(path: &str) -> bool {
    let is_code = [".rs", ".py", ".ts", ".sql", ".sh"].iter().any(|end| path.ends_with(end));
    is_code || path.split_once('/').is_some_and(|(folder, _)| FOLDERS.contains(&folder))
}

/// A path may be shortened at its front, such as `claude/queue.rs`. That of a folder ends in a slash.
#[test]
fn every_cited_path_is_there() {
    let cited =
        Regex::new(r"`((?:[\w.-]+/)+|(?:[\w.-]+/)*[\w.-]+\.\w+)(?:::\w+)?`").expect("a pattern");
    let files = FOLDERS.iter().flat_map(|folder| files_below(&root().join(folder)));
    let mut places: Vec<String> = files
        .map(|path| format!("/{}", path.strip_prefix(root()).expect("below").display()))
        .collect();
    places.push("/build.rs".to_owned());

    let mut found = 0;
    for (file, text) in texts() {
        // The example of a new provider is not in the repository, earlier files are history, and the
        // rules for secrets know other people's programs.
        let is_history = file.ends_with("CHANGELOG.md") || file.starts_with("benches/records");
        let is_cited = |line: &&str| {
            !is_history && !["dockhand", "[REDACTED:"].iter().any(|part| line.contains(part))
        };
        for line in prose(&file, &text).filter(is_cited) {
            let paths = cited.captures_iter(line).map(|one| one[1].to_owned());
            for path in paths.filter(|path| is_ours(path)) {
                let part = format!("/{path}");
                let is_there = places.iter().any(|place| {
                    if path.ends_with('/') { place.contains(&part) } else { place.ends_with(&part) }
                });
                assert!(is_there, "{}: {path} is not there", file.display());
                found += 1;
            }
        }
    }
    assert!(found > 400, "{found}");
}

#[test]
fn what_is_cited_is_there() {
    let document = Regex::new(r"(?:[\w.-]+/)*[\w-]+\.md(?:#[\w-]+)?").expect("a pattern");
    let mut cited = 0;
    for (file, text) in texts() {
        for found in prose(&file, &text).flat_map(|line| document.find_iter(line)) {
            let (name, anchor) = found.as_str().split_once('#').unwrap_or((found.as_str(), ""));
            let neighbour = root().join(&file).with_file_name(name);
            let place = [root().join(name), neighbour].into_iter().find(|path| path.is_file());
            let Some(place) = place else {
                // Names of files that agents write are no citations; ours have these.
                // So are those in the examples of the page about MCP, which links without `docs/`.
                let is_example = file.ends_with("docs/mcp.md");
                let is_ours = !is_example && name.starts_with("docs/") || !anchor.is_empty();
                assert!(!is_ours, "{}: {} is not there", file.display(), found.as_str());
                for elsewhere in ["DESIGN.md", "FORMATS.md", "ENGLISH.md", "STYLE.md"] {
                    assert!(!name.ends_with(elsewhere), "{}: {name}", file.display());
                }
                continue;
            };
            cited += 1;
            if !anchor.is_empty() {
                let headings = anchors(&fs::read_to_string(place).expect("reads"));
                assert!(headings.contains(anchor), "{}: {}", file.display(), found.as_str());
            }
        }
    }
    assert!(cited > 50, "{cited}");
}

#[test]
fn every_decoder_links_to_its_section() {
    let providers = root().join("ingest/src/provider");
    let mut linked = BTreeSet::new();
    for entry in fs::read_dir(providers).expect("lists") {
        let head = entry.expect("entry").path().join("mod.rs");
        let Ok(text) = fs::read_to_string(&head) else { continue };
        let head: String = text.lines().take_while(|line| line.starts_with("//!")).collect();
        if text.contains("FORMAT: LogFormat") {
            let (_, link) = head.split_once("docs/formats.md#").expect("a link to its section");
            let end = link.find(|c: char| !c.is_alphanumeric() && c != '-').unwrap_or(link.len());
            linked.insert(link[..end].to_owned());
        }
    }
    assert_eq!(linked.len(), ingest::provider::FORMATS.len(), "{linked:?}");
}

/// The features that can meet, in the order of the table in docs/security.md.
const FEATURES: [&str; 13] = [
    "masking",
    "forget",
    "exclude",
    "retention",
    "copies",
    "readers",
    "push",
    "pull",
    "Spark",
    "hooks",
    "hostile names",
    "kill and damage",
    "archive",
];

/// The table names every pair once, with tests that exist, or says that the two do not meet.
#[test]
fn every_two_features_that_meet_have_a_test() {
    let page = fs::read_to_string(root().join("docs/security.md")).expect("reads");
    let (_, table) = page.split_once("## Where features meet").expect("the table");
    let table = table.split("\n## ").next().unwrap_or_default();
    let cited = Regex::new(r"`(\w+)::(\w+)`").expect("a pattern");
    let tests: Vec<(PathBuf, String)> = texts();

    let mut pairs = BTreeSet::new();
    for line in table.lines().filter(|line| line.contains(" × ")) {
        let cells: Vec<&str> = line.trim_matches('|').split(" | ").map(str::trim).collect();
        let [pair, answer] = cells.as_slice() else { panic!("two cells: {line}") };
        let (first, second) = pair.split_once(" × ").expect("a pair");
        let [first, second] = [first, second].map(|name| {
            let place = FEATURES.iter().position(|feature| *feature == name.trim());
            place.unwrap_or_else(|| panic!("{name} is not a feature"))
        });
        assert!(first < second && pairs.insert((first, second)), "{pair}");

        let mut named = 0;
        for found in cited.captures_iter(answer) {
            let [file, function] = [1, 2].map(|at| found[at].to_owned());
            let declaration = format!("fn {function}(");
            let is_there = tests.iter().any(|(path, text)| {
                let is_file = path.file_stem().is_some_and(|stem| stem == file.as_str())
                    || path.parent().is_some_and(|parent| parent.ends_with(&file));
                is_file && text.contains(&declaration)
            });
            assert!(is_there, "{pair}: {file}::{function} is not there");
            named += 1;
        }
        assert!(named > 0 || answer.starts_with("no interaction: "), "{pair}: {answer}");
    }
    assert_eq!(pairs.len(), FEATURES.len() * (FEATURES.len() - 1) / 2);
}
