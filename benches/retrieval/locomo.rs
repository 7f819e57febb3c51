//! Converts LoCoMo, a collection of long conversations with questions, to logs in our line format.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use regex::Regex;
use serde_json::Value;

use super::{Question, write_log};

/// The conversations on which the constants of the ranking were tuned.
pub(super) const TUNED: &[&str] = &["26", "30"];

/// Results of others on the same questions, with the metric that they report.
pub(super) const PUBLISHED: &str = "\
| published and earlier results, any gold hit@1/@5/@10 | one conversation | all in one |
|---|---|---|
| best published lexical engine | 69.6/85.7/- | |
| BM25 over sessions, all text | 69.5/91.7/96.3 | 66.8/89.3/93.8 |
| best window of three talk events | 72.0/92.2/96.2 | 68.9/89.8/94.0 |
| reference of this ranking, in Python | 77.5/94.2/97.4 | 74.1/91.6/95.9 |
| the reference with MiniLM (what a model could add) | 78.4/95.0/97.8 | 75.8/93.5/97.1 |";

/// The place of a turn that answers a question: `D1:3` is the third turn of the first session.
static EVIDENCE: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"D(\d+):(\d+)?").expect("a pattern"));

/// Writes a log for every session of `source`, which is a file or a folder of files, below `logs`.
/// Returns the questions that name the sessions of their answer.
pub(super) fn convert(source: &Path, logs: &Path) -> Vec<Question> {
    let mut files: Vec<PathBuf> = vec![source.to_path_buf()];
    if source.is_dir() {
        let entries = std::fs::read_dir(source).expect("the folder");
        files = entries.map(|entry| entry.expect("an entry").path()).collect();
        files.retain(|file| file.extension().is_some_and(|ending| ending == "json"));
        files.sort();
    }

    let mut questions = Vec::new();
    for file in files {
        let json = std::fs::read(&file).expect("the file");
        let content: Value = serde_json::from_slice(&json).expect("JSON");
        let stem = file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let Value::Array(samples) = &content else {
            convert_conversation(&content, &stem, logs, &mut questions);
            continue;
        };
        for (number, sample) in samples.iter().enumerate() {
            let id = sample["sample_id"].as_str().map(|id| id.replace("conv-", ""));
            let name = id.unwrap_or_else(|| number.to_string());
            convert_conversation(sample, &name, logs, &mut questions);
        }
    }
    questions
}

/// Writes the logs of a conversation and appends its questions.
fn convert_conversation(sample: &Value, name: &str, logs: &Path, questions: &mut Vec<Question>) {
    let conversation = sample.get("conversation").unwrap_or(sample);
    let first_speaker = conversation["speaker_a"].as_str().unwrap_or_default();
    std::fs::create_dir_all(logs).expect("a folder");
    for number in 1.. {
        let key = format!("session_{number}");
        let Some(written) = conversation[format!("{key}_date_time")].as_str() else { break };
        let Some(turns) = conversation[&key].as_array() else { continue };
        let time = parse_time(written);
        let id = session_id(name, number);
        let said = turns.iter().map(|turn| {
            let speaker = turn["speaker"].as_str().unwrap_or_default();
            let said = turn["clean_text"].as_str().or_else(|| turn["text"].as_str());
            let mut text = format!("{speaker}: {}", said.unwrap_or_default());
            if let Some(caption) = turn["blip_caption"].as_str() {
                write!(text, " [image: {caption}]").expect("a string");
            }
            (speaker == first_speaker, text)
        });
        write_log(logs, &id, &format!("/locomo/{name}"), &time, said);
    }

    for asked in sample["qa"].as_array().into_iter().flatten() {
        let mut gold = BTreeSet::new();
        let mut events = BTreeSet::new();
        for place in asked["evidence"].as_array().into_iter().flatten() {
            for found in EVIDENCE.captures_iter(place.as_str().unwrap_or_default()) {
                let number: usize = found[1].parse().expect("a number");
                let id = session_id(name, number);
                let turn = found.get(2).and_then(|turn| turn.as_str().parse::<u32>().ok());
                if let Some(turn) = turn.filter(|turn| *turn > 0) {
                    events.insert(format!("{id}:{}", turn - 1));
                }
                gold.insert(id);
            }
        }
        if gold.is_empty() {
            continue;
        }
        questions.push(Question {
            text: asked["question"].as_str().unwrap_or_default().to_owned(),
            gold: gold.into_iter().collect(),
            events: events.into_iter().collect(),
            conversation: name.to_owned(),
        });
    }
}

fn session_id(conversation: &str, number: usize) -> String {
    format!("c{conversation}-s{number:03}")
}

/// Parses a time such as `1:56 pm on 8 May, 2023`.
fn parse_time(written: &str) -> String {
    let time = DateTime::strptime("%I:%M %p on %d %B, %Y", written).expect(written);
    time.to_zoned(TimeZone::UTC).expect(written).timestamp().to_string()
}
