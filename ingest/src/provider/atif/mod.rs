//! Reads trajectories in the Agent Trajectory Interchange Format, as Harbor and `sessions export atif`
//! write them (docs/formats.md#atif). Each is one document:
//!
//! ```text
//! {"schema_version":"ATIF-v1.8","session_id":"...","trajectory_id":"...",
//!  "agent":{"name":"codex","version":"0.44.0","model_name":"..."},
//!  "steps":[{"step_id":1,"source":"user","message":"..."},
//!           {"step_id":2,"source":"agent","message":"...","tool_calls":[...],"observation":{...}}],
//!  "subagent_trajectories":[...],"final_metrics":{...}}
//! ```
//!
//! A step becomes parts (`step.rs`), one for each event. Parts of a document that `sessions` wrote
//! carry the order and the facts of the events that they were exported from.

mod known;
mod metrics;
mod part;
mod step;

use std::path::Path;
use std::rc::Rc;

use schemas::problem::ProblemKind;
use schemas::{Confidence, Provider, Usage};
use serde_json::Value as Json;

use self::part::{EmbeddedTrajectory, Part, PartWriter};
use self::step::{StepReader, TrajectoryFacts};
use crate::provider::devin;
use crate::provider::format::{
    LogFormat, LogHead, LogReader, Quirks, RecordOutcome, RecordTally, SessionClaim,
};
use crate::provider::shared::document::{Document, DocumentLayout, RecordSpan};
use crate::stream::{Stream, TitleFrom, parse_micros};
use crate::text::json::legible_json;

pub(super) const FORMAT: LogFormat = LogFormat {
    provider: Provider::Atif,
    has_unique_ids: false,
    decoder_version: 2,
    // Trajectories are where a run of Harbor or an export put them.
    roots: |_| Vec::new(),
    sniff: claim_log,
    quirks: Quirks { copies_other_agents: true, ..Quirks::NONE },
    reader: LogReader::Document(decode_log),
};

/// The parts of a trajectory that are read.
const LAYOUT: DocumentLayout =
    DocumentLayout { list: Some("steps"), header: &[AGENT, "extra", METRICS, SUBAGENTS] };

/// Fields of a trajectory that only its claim needs, or that say nothing about its events.
const UNREAD_FIELDS: &[&str] =
    &["continued_trajectory_ref", "notes", "schema_version", "session_id", "trajectory_id"];

const AGENT: &str = "agent";
const METRICS: &str = "final_metrics";
const SUBAGENTS: &str = "subagent_trajectories";

/// The version of an agent that a producer does not know; the format requires one.
const UNKNOWN_VERSION: &str = "unknown";

/// Values of `session_id` that Harbor's converters write for every session.
const PLACEHOLDER_IDS: &[&str] = &["copilot-cli", "unknown"];

/// Maximum depth of embedded trajectories.
const MAX_DEPTH: u8 = 16;

/// Claims a document with a version 1 of the format. Some producers write the version without its
/// prefix; then the other required fields must be there.
fn claim_log(head: &LogHead<'_>) -> Option<SessionClaim> {
    let document = head.document()?;
    let version = document.get("schema_version")?.as_str()?;
    let agent = document.get(AGENT);
    let is_trajectory = match version.strip_prefix("ATIF-v") {
        Some(version) => version.starts_with("1."),
        None => {
            version.trim_start_matches('v').starts_with("1.")
                && agent.is_some_and(|agent| agent["name"].is_string())
                && document.contains_key("steps")
        }
    };
    if !is_trajectory || devin::is_in_database(head.path) {
        return None;
    }

    let text = |key: &str| {
        let id = document.get(key).and_then(Json::as_str)?;
        (!id.is_empty() && !PLACEHOLDER_IDS.contains(&id)).then_some(id)
    };
    // A document without ids before its steps has none; one that is still written may get some.
    let name = document.contains_key("steps").then(|| name_of_file(head.path));
    let trajectory_id = text("trajectory_id");
    let session_id = text("session_id");
    // An export numbers the sessions that share the id of their agent.
    let numbered = session_id.filter(|id| {
        let rest = trajectory_id.and_then(|trajectory_id| trajectory_id.strip_prefix(*id));
        rest.is_some_and(|rest| rest.starts_with('~'))
    });
    let native_id = numbered.or(trajectory_id).or(session_id).or(name)?;
    let extra = document.get("extra").unwrap_or(&Json::Null);
    let parent = extra["parent_session_id"].as_str().map(str::to_owned);
    let relation = extra["relation"].as_str().and_then(|name| name.parse().ok());
    Some(SessionClaim {
        agent_id: extra["agent_id"].as_str().map(str::to_owned),
        parent,
        relation,
        ..SessionClaim::new(Provider::Atif, native_id)
    })
}

/// Returns the name of a trajectory that has no id: that of its file, or of its trial in a run of
/// Harbor, `<trial>/agent/trajectory.json`.
fn name_of_file(path: &Path) -> &str {
    let names = path.iter().rev().filter_map(|name| name.to_str());
    let mut names = names.map(|name| name.strip_suffix(".json").unwrap_or(name));
    names.find(|name| !matches!(*name, "trajectory" | "agent")).unwrap_or("trajectory")
}

fn decode_log(bytes: &[u8], out: &mut Stream, tally: &mut RecordTally) {
    let document = Document::read(bytes, &LAYOUT, out, tally);
    document.count_unknown_fields(UNREAD_FIELDS, out);
    let header = document.fields();
    let agent = header.get(AGENT).unwrap_or(&Json::Null);
    let extra = header.get("extra").unwrap_or(&Json::Null);
    known::count_unknown_agent(agent, header.get(METRICS), out);
    let is_exported = decode_header(agent, extra, out);

    let facts = TrajectoryFacts::of_agent(agent, None);
    let mut reader = StepReader::default();
    let mut parts = Vec::new();
    for span in &document.records {
        let raw = span.record_bytes(bytes);
        let step = match serde_json::from_str::<Json>(&legible_json(raw)) {
            Ok(step) => step,
            Err(error) => {
                let message = format!("the step cannot be read: {error}");
                out.push_problem(span.position(), ProblemKind::BadJson, message);
                continue;
            }
        };
        let before = parts.len();
        reader.read_step(&step, *span, &facts, &mut parts, out);
        let is_empty = parts.len() == before;
        let outcome = RecordOutcome::Merged("empty_step");
        tally.count_object(if is_empty { outcome } else { RecordOutcome::Events });
    }
    let whole = RecordSpan { offset: 0, length: bytes.len(), line: 1 };
    reader.read_outside_events(extra, whole, &facts, &mut parts);
    let embedded = header.get(SUBAGENTS).and_then(Json::as_array);
    let mut separate = Vec::new();
    for trajectory in embedded.into_iter().flatten() {
        read_embedded(trajectory, whole, &mut reader, &mut parts, &mut separate, out, 0);
    }

    // The sums of a document in which all steps are copied are those of the session that was copied.
    let is_copied = !parts.is_empty() && parts.iter().all(|part| part.is_copied);
    if !is_exported && !is_copied && !parts.iter().any(Part::has_usage) {
        let counted = separate.iter().flat_map(|own| &own.parts).map(|part| part.usage);
        let counted = counted.fold(Usage::default(), Usage::plus);
        let total = header.get(METRICS).unwrap_or(&Json::Null);
        if let Some(total) = metrics::read_total(total, whole, counted) {
            parts.push(total);
            out.set_confidence(Confidence::Estimated);
        }
    }
    part::sort_parts(&mut parts);
    part::insert_subagents(&mut parts, separate);

    let abandoned = extra["abandoned"].as_str().unwrap_or("");
    PartWriter::new(bytes, abandoned).push_all(&parts, out);
    if is_exported {
        // Before the first record, the times may count as those of copied history.
        extend_time_range(extra, out);
        // The last ones may be in no event, and the confidence says what is missing.
        out.set_branch(agent["extra"]["git_branch"].as_str());
        out.set_model(extra["model"].as_str());
        out.count_earlier_steps();
    }
}

/// Reads the facts about the session. Returns whether `sessions` wrote the document.
fn decode_header(agent: &Json, extra: &Json, out: &mut Stream) -> bool {
    // The name of the agent has no column of its own.
    let name = agent["name"].as_str().unwrap_or("");
    let version = agent["version"].as_str().filter(|version| *version != UNKNOWN_VERSION);
    out.set_version(Some(format!("{name} {}", version.unwrap_or("")).trim()));
    let of_agent = &agent["extra"];
    out.set_cwd(of_agent["cwd"].as_str());
    out.set_repository(of_agent["repository"].as_str());
    out.offer_title(TitleFrom::Agent, extra["title"].as_str().unwrap_or(""));
    extend_time_range(extra, out);
    if let Some(confidence) = extra["usage_confidence"].as_str().and_then(|name| name.parse().ok())
    {
        out.set_confidence(confidence);
    }
    let is_exported = extra["usage_confidence"].is_string();
    if !is_exported {
        out.set_branch(of_agent["git_branch"].as_str());
        out.set_model(agent["model_name"].as_str());
    }
    is_exported
}

/// Extends the time range of the session by that of the one that was exported.
fn extend_time_range(extra: &Json, out: &mut Stream) {
    for key in ["started_at", "ended_at"] {
        out.extend_time_range(parse_micros(extra[key].as_str()));
    }
}

/// Reads an embedded trajectory: into `parts` if it is a part of the session, as what a subagent did
/// in its log; into `separate` otherwise.
fn read_embedded(
    trajectory: &Json,
    whole: RecordSpan,
    reader: &mut StepReader,
    parts: &mut Vec<Part>,
    separate: &mut Vec<EmbeddedTrajectory>,
    out: &mut Stream,
    depth: u8,
) {
    let extra = &trajectory["extra"];
    let trajectory_id = trajectory["trajectory_id"].as_str();
    let id = trajectory_id.or_else(|| trajectory["session_id"].as_str()).unwrap_or("subagent");
    let is_own = extra["is_sidechain"].as_bool() == Some(true);
    let agent_id = match extra["agent_id"].as_str() {
        Some(agent_id) => Some(agent_id),
        None if is_own => None,
        None => Some(id),
    };
    known::count_unknown_trajectory(trajectory, out);
    let facts = TrajectoryFacts::of_agent(&trajectory[AGENT], Some(agent_id));
    let mut own = Vec::new();
    let target = if is_own { &mut *parts } else { &mut own };
    reader.begin_trajectory(is_own);
    for step in trajectory["steps"].as_array().into_iter().flatten() {
        let before = target.len();
        reader.read_step(step, whole, &facts, target, out);
        let content: Rc<str> = step.to_string().into();
        for part in target.iter_mut().skip(before) {
            part.content = Some(Rc::clone(&content));
        }
    }
    reader.read_outside_events(extra, whole, &facts, target);
    if !is_own {
        // The sums of one with subagents, or of an export, may be those of its subagents.
        let has_subagents = trajectory[SUBAGENTS].as_array().is_some_and(|inner| !inner.is_empty());
        if !has_subagents
            && !extra["usage_confidence"].is_string()
            && !own.iter().any(Part::has_usage)
            && let Some(total) = metrics::read_total(&trajectory[METRICS], whole, Usage::default())
        {
            own.push(Part { sidechain: facts.sidechain.clone(), ..total });
            out.set_confidence(Confidence::Estimated);
        }
        part::sort_parts(&mut own);
        separate.push(EmbeddedTrajectory { id: id.to_owned(), parts: own });
    }
    let inner = trajectory[SUBAGENTS].as_array();
    if depth == MAX_DEPTH && inner.is_some_and(|inner| !inner.is_empty()) {
        let message = format!("trajectories embedded deeper than {MAX_DEPTH} levels are not read");
        out.push_problem(whole.position(), ProblemKind::RecordsLeftOut, message);
    }
    if depth < MAX_DEPTH {
        for inner in trajectory[SUBAGENTS].as_array().into_iter().flatten() {
            let mut inside = Vec::new();
            read_embedded(inner, whole, reader, &mut inside, separate, out, depth + 1);
            if !inside.is_empty() {
                // A sidechain of a separate trajectory has the order of that one.
                let target = separate.iter_mut().rev().find(|own| own.id == id);
                let target = target.map_or(&mut *parts, |own| &mut own.parts);
                target.append(&mut inside);
                part::sort_parts(target);
            }
        }
    }
}
