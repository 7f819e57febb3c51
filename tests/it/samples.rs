//! `sample-sessions/MANIFEST.toml` says what lies there and what must come out of it.

use std::collections::BTreeSet;
use std::path::Path;

use serde::Deserialize;

use crate::env::{TestEnv, samples};

#[derive(Deserialize)]
struct Manifest {
    file: Vec<File>,
}

#[derive(Deserialize)]
struct File {
    path: String,
    provider: Option<String>,
    session_id: Option<String>,
    agent_id: Option<String>,
    parent: Option<String>,
    tokens: Option<Tokens>,
}

/// Token counts in the provider's own terms, as the manifest explains them.
#[derive(Deserialize)]
struct Tokens {
    input: i64,
    output: i64,
    cache_read: Option<i64>,
    cache_write: Option<i64>,
    cached: Option<i64>,
    reasoning: Option<i64>,
}

fn manifest() -> Manifest {
    let text = std::fs::read_to_string(samples().join("MANIFEST.toml")).expect("manifest");
    toml::from_str(&text).expect("manifest")
}

#[test]
fn every_file_is_listed_and_every_listed_file_is_there() {
    let mut there = BTreeSet::new();
    let mut open = vec![samples()];
    while let Some(dir) = open.pop() {
        for entry in std::fs::read_dir(dir).expect("lists") {
            let path = entry.expect("entry").path();
            if path.is_dir() {
                open.push(path);
            } else {
                there.insert(
                    path.strip_prefix(samples()).expect("below").to_string_lossy().into_owned(),
                );
            }
        }
    }
    for own in ["MANIFEST.toml", "README.md", ".gitattributes"] {
        there.remove(own);
    }
    let listed: BTreeSet<String> = manifest().file.into_iter().map(|file| file.path).collect();
    assert_eq!(there, listed);
}

#[test]
fn ids_parents_and_tokens_are_those_of_the_manifest() {
    let env = TestEnv::with_samples();
    let sql = "SELECT source_path, native_id, agent_id, parent_session_id, provider, input_tokens, output_tokens, \
        cache_read_tokens, cache_write_tokens, reasoning_tokens FROM sessions";
    let rows = env.rows(sql);
    let mut compared = 0;
    for file in manifest().file {
        let path = samples().join(&file.path).canonicalize().expect("there");
        let row = rows.iter().find(|row| row[0].as_str().map(Path::new) == Some(path.as_path()));
        let no_log = file.session_id.as_deref().unwrap_or("").is_empty()
            || file.path.ends_with(".meta.json");
        assert_eq!(row.is_none(), no_log, "{}", file.path);
        let Some(row) = row else { continue };
        assert_eq!(row[4].as_str(), file.provider.as_deref(), "{}", file.path);
        let id = match &file.agent_id {
            Some(agent) => Some(format!("agent-{agent}")),
            None => file.session_id.clone(),
        };
        assert_eq!(row[1].as_str(), id.as_deref(), "{}", file.path);
        assert_eq!(row[3].as_str(), file.parent.as_deref(), "{}", file.path);
        let Some(tokens) = file.tokens else { continue };
        let cached = tokens.cached.unwrap_or(0);
        let beside = if file.provider.as_deref() == Some("gemini") {
            tokens.reasoning.unwrap_or(0)
        } else {
            0
        };
        assert_eq!(row[5].as_i64(), Some(tokens.input - cached), "{} input", file.path);
        assert_eq!(row[6].as_i64(), Some(tokens.output + beside), "{} output", file.path);
        assert_eq!(
            row[7].as_i64(),
            tokens.cache_read.or(tokens.cached),
            "{} cache read",
            file.path
        );
        assert_eq!(row[8].as_i64(), tokens.cache_write, "{} cache write", file.path);
        assert_eq!(row[9].as_i64(), tokens.reasoning, "{} reasoning", file.path);
        compared += 1;
    }
    assert!(compared >= 8, "{compared}");
}
