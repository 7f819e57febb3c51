//! `sample-sessions/MANIFEST.toml` says what lies there and what must come out of it.

use std::collections::BTreeSet;
use std::path::Path;

use serde::Deserialize;

use crate::env::{TestEnv, copy_folder, files_below, samples};

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
    counts: Option<Counts>,
    confidence: Option<String>,
    /// Of a database, which holds several.
    #[serde(default)]
    sessions: Vec<Inside>,
}

/// A session in a database.
#[derive(Deserialize)]
struct Inside {
    id: String,
    parent: Option<String>,
    tokens: Option<Tokens>,
}

/// Events of a log.
#[derive(Deserialize)]
struct Counts {
    messages: i64,
    reasoning: i64,
    tool_calls: i64,
    tool_results: i64,
    tool_errors: i64,
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
    let name =
        |path: &Path| path.strip_prefix(samples()).expect("below").to_string_lossy().into_owned();
    let mut there: BTreeSet<String> =
        files_below(&samples()).iter().map(|path| name(path)).collect();
    for own in ["MANIFEST.toml", "README.md", ".gitattributes"] {
        there.remove(own);
    }
    let listed: BTreeSet<String> = manifest().file.into_iter().map(|file| file.path).collect();
    assert_eq!(there, listed);
}

#[test]
fn sessions_are_those_of_the_manifest() {
    let env = TestEnv::with_samples();
    let sql = "SELECT s.source_path, s.native_id, s.parent_session_id, s.provider, s.input_tokens, s.output_tokens, \
        s.cache_read_tokens, s.cache_write_tokens, s.reasoning_tokens, s.usage_confidence, \
        count(*) FILTER (event_type = 'message'), count(*) FILTER (event_type = 'reasoning'), \
        count(*) FILTER (event_type = 'tool_call'), count(*) FILTER (event_type = 'tool_result'), \
        count(*) FILTER (is_error AND event_type = 'tool_result') \
        FROM sessions s LEFT JOIN events e ON e.session_id = s.session_id AND NOT e.is_replay GROUP BY ALL";
    let rows: Vec<_> = env.rows(sql).into_iter().map(serde_json::Value::Array).collect();
    let find = |path: &Path, inside: &str| {
        // The name of a log is the same if it is compressed.
        let path = path.to_string_lossy();
        let key = format!("{}{inside}", path.trim_end_matches(".zstd"));
        rows.iter().find(|row| row[0].as_str() == Some(&key)).map(Row)
    };
    let mut compared = 0;
    let mut wrong = Vec::new();
    for file in manifest().file {
        let path = samples().join(&file.path).canonicalize().expect("there");
        let row = find(&path, "");
        let no_log = file.session_id.as_deref().unwrap_or("").is_empty()
            || file.path.ends_with(".meta.json");
        if row.is_none() != no_log {
            wrong.push(format!("{}: a log: {}", file.path, row.is_some()));
        }
        for inside in &file.sessions {
            let row = find(&path, &format!("#{}", inside.id)).expect("a session of the database");
            let parent = inside.parent.as_deref().filter(|parent| !parent.is_empty());
            row.text(2, parent, &inside.id, &mut wrong);
            row.tokens(inside.tokens.as_ref(), false, &inside.id, &mut wrong);
        }
        let Some(row) = row else { continue };
        let agent = file
            .agent_id
            .as_ref()
            .filter(|_| matches!(file.provider.as_deref(), Some("claude" | "qwen")));
        let id = agent.map(|agent| format!("agent-{agent}")).or(file.session_id.clone());
        row.text(1, id.as_deref(), &file.path, &mut wrong);
        row.text(2, file.parent.as_deref(), &file.path, &mut wrong);
        row.text(3, file.provider.as_deref(), &file.path, &mut wrong);
        if file.confidence.is_some() {
            row.text(9, file.confidence.as_deref(), &file.path, &mut wrong);
        }
        let has_thoughts_apart = file.provider.as_deref() == Some("gemini");
        row.tokens(file.tokens.as_ref(), has_thoughts_apart, &file.path, &mut wrong);
        if let Some(counts) = &file.counts {
            let Counts { messages, reasoning, tool_calls, tool_results, tool_errors } = counts;
            let wanted = [messages, reasoning, tool_calls, tool_results, tool_errors];
            for (column, wanted) in (10..).zip(wanted) {
                row.number(column, Some(*wanted), &file.path, &mut wrong);
            }
        }
        compared += 1;
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert!(compared >= 40, "{compared}");
}

/// A row of the query, compared with what the manifest says.
struct Row<'r>(&'r serde_json::Value);

impl Row<'_> {
    fn text(&self, column: usize, wanted: Option<&str>, place: &str, wrong: &mut Vec<String>) {
        if self.0[column].as_str() != wanted {
            wrong.push(format!("{place}: column {column} is {}, not {wanted:?}", self.0[column]));
        }
    }

    fn number(&self, column: usize, wanted: Option<i64>, place: &str, wrong: &mut Vec<String>) {
        if self.0[column].as_i64() != wanted {
            wrong.push(format!("{place}: column {column} is {}, not {wanted:?}", self.0[column]));
        }
    }

    /// `has_thoughts_apart`: reasoning is apart from the output in the manifest.
    fn tokens(
        &self,
        tokens: Option<&Tokens>,
        has_thoughts_apart: bool,
        place: &str,
        wrong: &mut Vec<String>,
    ) {
        let Some(tokens) = tokens else { return };
        let cached = tokens.cached.unwrap_or(0);
        let reasoning = tokens.reasoning.filter(|_| has_thoughts_apart).unwrap_or(0);
        self.number(4, Some(tokens.input - cached), place, wrong);
        self.number(5, Some(tokens.output + reasoning), place, wrong);
        self.number(6, tokens.cache_read.or(tokens.cached), place, wrong);
        self.number(7, tokens.cache_write, place, wrong);
        self.number(8, tokens.reasoning, place, wrong);
    }
}

/// The user keeps a copy of an agent's folder: nothing in it counts again, whether it came at
/// once or later, and every log can be read in either place.
#[test]
fn copies_of_all_samples_count_once() {
    let folders = std::fs::read_dir(samples()).expect("samples").flatten().map(|dir| dir.path());
    for folder in folders.filter(|path| path.is_dir()) {
        let env = TestEnv::new();
        let logs = folder.to_string_lossy().into_owned();
        env.ingest(&logs);
        let sums = "SELECT sum(events - replay_events), sum(turns), sum(messages), sum(tool_calls), \
            sum(input_tokens), sum(output_tokens), count(*), sum(events) FROM sessions";
        let one = env.rows(sums).remove(0);
        let (counted, all) = one.split_at(6);
        let copy = env.path("copy").join(folder.file_name().expect("a name"));
        copy_folder(&folder, &copy);
        let copy = copy.to_string_lossy().into_owned();
        let together = TestEnv::new();
        for env in [&env, &together] {
            env.run(["ingest", &logs, &copy]).ok();
            let both = env.rows(sums).remove(0);
            assert_eq!(&both[..6], counted, "{logs}");
            for (both, one) in both[6..].iter().zip(all) {
                assert_eq!(both.as_i64(), one.as_i64().map(|one| 2 * one), "{logs}");
            }
        }
    }
}
