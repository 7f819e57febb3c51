//! What a decoder does not know is counted, so that `doctor` names it: every sample with one type of
//! its records, or of the parts in them, replaced by one that no agent writes.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use rusqlite::Connection;
use serde_json::Value as Json;

use crate::memory::{Memory, samples};

/// The type that no decoder knows.
const UNKNOWN: &str = "hologram_of_a_test";

/// Fields that say what an object is.
const TYPE_FIELDS: &[&str] = &["kind", "part_type", "role", "sender", "type"];

/// Parts of paths below which are the data of tools, or of the client, in any form.
const DATA: &[&str] = &["action", "arguments", "input", "output", "result", "source", "tool_calls"];

/// Why a type need not be counted.
const COPY: &str = "another record or file says the same, and is read";
const DETAIL: &str = "it is a fact about a known record, which keeps its events";
const HEADER: &str = "it is configuration of the agent or of its client";
const WRAPPED: &str = "the type of the record around it decides";

/// The types that need not be counted, by the sample and the place in it, with the reason.
const NOT_COUNTED: &[(&str, &str)] = &[
    ("amp .env.initial.trees[].repository.type", HEADER),
    ("amp .messages[].content[].summary.type", DETAIL),
    ("amp .messages[].state.error.type", DETAIL),
    ("amp .messages[].state.type", DETAIL),
    ("amp .relationships[].role", DETAIL),
    ("amp .relationships[].type", DETAIL),
    ("antigravity .type", "a type of the model is the name of a tool"),
    ("claude .data.message.message.content[].caller.type", DETAIL),
    ("claude .data.message.message.content[].type", COPY),
    ("claude .data.message.message.role", COPY),
    ("claude .data.message.message.type", COPY),
    ("claude .data.message.type", COPY),
    ("claude .message.content[].caller.type", DETAIL),
    ("claude .message.role", WRAPPED),
    ("claude .message.type", WRAPPED),
    ("claude .toolUseResult.content[].type", COPY),
    ("claude .toolUseResult.file.type", COPY),
    ("claude .toolUseResult.gitOperation.type", DETAIL),
    ("claude .toolUseResult.type", COPY),
    ("cline [].type", "the field of this name tells"),
    ("codebuddy .providerData.toolResult.renderer.type", DETAIL),
    ("codebuff [].blocks[].outputRaw[].type", DETAIL),
    ("codewhale .messages[].content[].caller.type", DETAIL),
    ("codex .payload.changes./home/mira/code/harbor/src/retry.rs.type", DETAIL),
    ("codex .payload.item.changes./home/mira/code/harbor/src/metrics.rs.type", DETAIL),
    ("codex .payload.item.kind", DETAIL),
    ("codex .payload.item.parsed_cmd[].type", DETAIL),
    ("codex .payload.item.results[].type", DETAIL),
    ("codex .payload.replacement_history[].content[].type", COPY),
    ("codex .payload.replacement_history[].role", COPY),
    ("codex .payload.replacement_history[].type", COPY),
    ("codex .payload.sandbox_policy.type", HEADER),
    ("codex .type", "flat logs are of versions that no longer change"),
    ("continue .history[].editorState.type", COPY),
    ("continue .history[].message.toolCalls[].type", DETAIL),
    ("continue .history[].toolCallStates[].toolCall.type", DETAIL),
    ("copilot .data.attachments[].type", DETAIL),
    ("copilot .data.kind.type", DETAIL),
    ("copilot .data.permissionRequest.kind", DETAIL),
    ("copilot .data.role", WRAPPED),
    ("copilot .data.toolRequests[].type", DETAIL),
    ("crush messages.parts [].data.type", DETAIL),
    ("cursoride composerHeaders.value .type", COPY),
    ("devin message_nodes.chat_message .metadata.extensions.chisel/tool_result_meta.kind", DETAIL),
    ("devin message_nodes.chat_message .role", COPY),
    ("dsh .data.message.role", WRAPPED),
    ("dsh .data.reason.kind", DETAIL),
    ("dsh .data.role", WRAPPED),
    ("gemini .kind", HEADER),
    ("hermes .tools[].type", HEADER),
    ("iflow .message.role", WRAPPED),
    ("iflow .message.type", WRAPPED),
    ("kimi .agents.agent-0.type", HEADER),
    ("kimi .agents.main.type", HEADER),
    ("kimi .content[].type", COPY),
    ("kimi .kind", DETAIL),
    ("kimi .message.origin.kind", COPY),
    ("kimi .message.payload.event.payload.type", DETAIL),
    ("kimi .message.payload.sender", DETAIL),
    ("kimi .message.payload.type", DETAIL),
    ("kimi .role", COPY),
    ("kimi .tools[].parameters.type", HEADER),
    ("kiro .data.content[].data.content[].kind", "the field of this name tells"),
    ("opencode .messages[].parts[].metadata.kind", DETAIL),
    ("opencode session_message.data .content[].state.error.type", DETAIL),
    ("openhands .agent.kind", HEADER),
    ("openhands .confirmation_policy.kind", HEADER),
    ("openhands .dynamic_context.type", WRAPPED),
    ("openhands .llm_message.role", WRAPPED),
    ("openhands .observation.kind", DETAIL),
    ("openhands .system_prompt.type", WRAPPED),
    ("openhands .thinking_blocks[].type", "the field of this name tells"),
    ("openhands .tools[].kind", HEADER),
    ("openhands .workspace.kind", HEADER),
    ("piebald message_parts.part_type", "the table that has the part tells"),
    ("piebald messages.role", COPY),
    ("qwen .message.role", WRAPPED),
    ("qwen .systemPayload.compressedHistory[].role", COPY),
    ("qwen .systemPayload.outputHistoryItems[].type", DETAIL),
    ("qwen .systemPayload.snapshot.type", DETAIL),
    ("qwen .toolCallResult.resultDisplay.type", COPY),
    ("reasonix .type", COPY),
    ("vscode .requests[].message.parts[].kind", COPY),
    ("vscode .requests[].response[].toolSpecificData.kind", DETAIL),
    ("vscode .v.inputState.mode.kind", HEADER),
    ("vscode .v[].message.parts[].kind", COPY),
    ("vscode .v[].response[].toolSpecificData.kind", DETAIL),
    ("vscode .v[].toolSpecificData.kind", DETAIL),
    ("vscode .v[].variableData.variables[].kind", DETAIL),
    ("zcode message.data .semantics.kind", DETAIL),
    ("zcode session.revert .kind", DETAIL),
];

/// Where a type is: a path of fields, and the type.
type TypePlace = (String, String);

/// Collects the types in a value.
fn collect_types(value: &Json, path: &str, found: &mut BTreeSet<TypePlace>) {
    match value {
        Json::Object(fields) => {
            for (name, inner) in fields {
                let below = format!("{path}.{name}");
                if let Some(text) = inner.as_str().filter(|_| TYPE_FIELDS.contains(&name.as_str()))
                {
                    found.insert((below.clone(), text.to_owned()));
                }
                collect_types(inner, &below, found);
            }
        }
        Json::Array(items) => {
            for item in items {
                collect_types(item, &format!("{path}[]"), found);
            }
        }
        Json::Null | Json::Bool(_) | Json::Number(_) | Json::String(_) => {}
    }
}

/// Replaces the first type at a place. Returns whether there is one.
fn replace_type(value: &mut Json, path: &str, place: &TypePlace) -> bool {
    match value {
        Json::Object(fields) => fields.iter_mut().any(|(name, inner)| {
            let below = format!("{path}.{name}");
            if below == place.0 && inner.as_str() == Some(&place.1) {
                *inner = UNKNOWN.into();
                return true;
            }
            replace_type(inner, &below, place)
        }),
        Json::Array(items) => {
            items.iter_mut().any(|item| replace_type(item, &format!("{path}[]"), place))
        }
        Json::Null | Json::Bool(_) | Json::Number(_) | Json::String(_) => false,
    }
}

fn list_files(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).expect("lists") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            files.extend(list_files(&path));
        } else {
            files.push(path);
        }
    }
    files
}

/// Returns whether something of a changed sample was counted or reported under its type.
fn is_counted(folder: &Path) -> bool {
    let memory = Memory::default();
    let report = memory.ingest(folder);
    let sessions = memory.sessions();
    let drift = sessions.iter().filter_map(|session| session.drift.as_ref());
    // A log that is not one any more is reported.
    let unknown = report
        .problem_list
        .iter()
        .chain(&memory.problems())
        .any(|problem| problem.kind == schemas::problem::ProblemKind::UnknownFormat);
    unknown || drift.into_iter().any(|drift| drift.contains(UNKNOWN))
}

/// Changes the types in a file of JSON one after the other, and passes each to `check`.
fn change_json(file: &Path, check: &mut dyn FnMut(&TypePlace)) {
    let Ok(content) = fs::read_to_string(file) else { return };
    let (values, end): (Vec<Json>, &str) = match serde_json::from_str(&content) {
        Ok(document) => (vec![document], ""),
        Err(_) => {
            let lines = content.lines().filter(|line| !line.trim().is_empty());
            let Ok(values) = lines.map(serde_json::from_str).collect() else { return };
            (values, "\n")
        }
    };
    let mut places = BTreeSet::new();
    for value in &values {
        collect_types(value, "", &mut places);
    }
    for place in &places {
        let mut changed = values.clone();
        // The last one, because the first records show which agent wrote the log.
        assert!(changed.iter_mut().rev().any(|value| replace_type(value, "", place)));
        let lines: Vec<String> = changed.iter().map(Json::to_string).collect();
        fs::write(file, lines.join("\n") + end).expect("writes");
        check(place);
    }
    fs::write(file, content).expect("writes");
}

/// Returns the changes of the types in a database.
fn list_changes(file: &Path) -> BTreeMap<TypePlace, String> {
    let connection = Connection::open(file).expect("opens");
    let columns = "SELECT m.name, c.name FROM sqlite_master m, pragma_table_info(m.name) c
        WHERE m.type = 'table'";
    let mut columns = connection.prepare(columns).expect("prepares");
    let columns = columns.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).expect("reads");
    let columns: Vec<(String, String)> = columns.collect::<Result<_, _>>().expect("reads");

    let mut changes: BTreeMap<TypePlace, String> = BTreeMap::new();
    for (table, column) in columns {
        let sql = format!("SELECT rowid, CAST({column} AS TEXT), typeof({column}) FROM {table}");
        // Tables without numbers of rows hold no messages.
        let Ok(mut cells) = connection.prepare(&sql) else { continue };
        let mut cells = cells.query([]).expect("reads");
        while let Ok(Some(cell)) = cells.next() {
            let Ok(text) = cell.get::<_, String>(1) else { continue };
            let row: i64 = cell.get(0).expect("a number");
            let is_blob = cell.get::<_, String>(2).expect("a type") == "blob";
            let mut add = |place: TypePlace, content: &str| {
                let content = content.replace('\'', "''");
                let content = if is_blob {
                    format!("CAST('{content}' AS BLOB)")
                } else {
                    format!("'{content}'")
                };
                let sql = format!("UPDATE {table} SET {column} = {content} WHERE rowid = {row}");
                changes.insert((format!("{table}.{column} {}", place.0), place.1), sql);
            };
            if TYPE_FIELDS.contains(&column.as_str()) {
                add((String::new(), text), UNKNOWN);
            } else if let Ok(json) = serde_json::from_str::<Json>(&text) {
                let mut places = BTreeSet::new();
                collect_types(&json, "", &mut places);
                for place in places {
                    let mut changed = json.clone();
                    replace_type(&mut changed, "", &place);
                    add(place, &changed.to_string());
                }
            }
        }
    }
    changes
}

/// Changes the types in a database one after the other, and passes each to `check`.
fn change_database(file: &Path, check: &mut dyn FnMut(&TypePlace)) {
    let original = fs::read(file).expect("reads");
    for (place, sql) in &list_changes(file) {
        fs::write(file, &original).expect("writes");
        Connection::open(file).expect("opens").execute_batch(sql).expect("changes");
        check(place);
    }
    fs::write(file, original).expect("writes");
}

#[test]
fn unknown_types_are_counted() {
    let mut silent = BTreeSet::new();
    for provider in fs::read_dir(samples()).expect("lists") {
        let provider = provider.expect("an entry").path();
        let name = provider.file_name().expect("a name").to_string_lossy().into_owned();
        if !provider.is_dir() || ["broken", "hostile"].contains(&name.as_str()) {
            continue;
        }
        let dir = tempfile::tempdir().expect("tempdir");
        let folder = dir.path().join(&name);
        for file in list_files(&provider) {
            let target = folder.join(file.strip_prefix(&provider).expect("below"));
            fs::create_dir_all(target.parent().expect("a folder")).expect("creates");
            fs::copy(&file, target).expect("copies");
        }
        for file in list_files(&folder) {
            let mut check = |place: &TypePlace| {
                let is_data = place.0.split(['.', '[', ' ']).any(|part| DATA.contains(&part));
                if !is_data && !is_counted(&folder) {
                    silent.insert(format!("{name} {}", place.0.trim()));
                }
            };
            let extension = file.extension().unwrap_or_default().to_string_lossy().into_owned();
            match extension.as_str() {
                "json" | "jsonl" => change_json(&file, &mut check),
                "db" | "sqlite" | "vscdb" => change_database(&file, &mut check),
                _ => {}
            }
        }
    }
    let excepted: BTreeSet<String> =
        NOT_COUNTED.iter().map(|(place, _)| (*place).to_owned()).collect();
    assert_eq!(silent, excepted);
}
