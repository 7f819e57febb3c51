//! Comments and documents cite only what is in the repository, and headings that are there.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use regex::Regex;

/// Folders with text that people wrote.
const FOLDERS: [&str; 9] =
    ["src", "ingest", "schemas", "tests", "benches", "docs", "xtask", "sample-sessions", ".ci"];

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Files of code and documentation, by their path from the root.
fn texts() -> Vec<(PathBuf, String)> {
    let top = fs::read_dir(root()).expect("lists").map(|entry| entry.expect("entry").path());
    let mut left: Vec<PathBuf> = FOLDERS.iter().map(|folder| root().join(folder)).collect();
    let mut files: Vec<PathBuf> = top.filter(|path| path.is_file()).collect();
    while let Some(dir) = left.pop() {
        for entry in fs::read_dir(&dir).expect("lists") {
            let path = entry.expect("entry").path();
            if path.is_dir() { left.push(path) } else { files.push(path) }
        }
    }
    let is_text = |path: &PathBuf| path.extension().is_some_and(|end| end == "rs" || end == "md");
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

#[test]
fn what_is_cited_is_there() {
    let document = Regex::new(r"(?:[\w.-]+/)*[\w-]+\.md(?:#[\w-]+)?").expect("a pattern");
    let mut cited = 0;
    for (file, text) in texts() {
        let is_sample = file.starts_with("sample-sessions");
        let comments = text.lines().filter(|line| {
            let line = line.trim_start();
            line.starts_with("//") || file.extension().is_some_and(|end| end == "md") && !is_sample
        });
        for found in comments.flat_map(|line| document.find_iter(line)) {
            let (name, anchor) = found.as_str().split_once('#').unwrap_or((found.as_str(), ""));
            let beside = root().join(&file).with_file_name(name);
            let place = [root().join(name), beside].into_iter().find(|path| path.is_file());
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
    assert_eq!(linked.len(), schemas::Provider::ALL.len(), "{linked:?}");
}
