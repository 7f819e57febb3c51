//! Exports sessions as trajectories in the Agent Trajectory Interchange Format, version 1.8
//! (docs/formats.md#atif).
//!
//! A subagent that has a file of its own in the export is referenced by it; the others are embedded.

pub(super) mod model;
mod steps;

use std::collections::{BTreeMap, HashMap, HashSet};

use schemas::event::Relation;
use schemas::price::PriceTable;
use schemas::session::{EventRow, SessionRow};
use schemas::{ErrorCode, EventType, ExportFormat, Provider, ToolError, Usage};

use self::model::{
    Agent, AgentExtra, FinalMetrics, SCHEMA_VERSION, SubagentRef, Trajectory, TrajectoryExtra,
};
use self::steps::{SessionEvent, Steps, build_steps, format_time, prompt_tokens, usage_extra};
use super::raw_logs::RawLogs;
use store::{Snapshot, StoredSession, file_stem};
use tools::error::store_error;
use tools::{Call, MAX_SUBAGENT_DEPTH, encoding_error, event_costs, read_all_events};

/// Version of an agent whose log does not name it; ATIF requires one.
const UNKNOWN_VERSION: &str = "unknown";

/// Writes the trajectories of sessions.
pub(super) struct TrajectoryWriter<'s> {
    pub(super) snapshot: &'s Snapshot,
    pub(super) call: &'s Call<'s>,
    pub(super) prices: &'s PriceTable,
    pub(super) logs: &'s RawLogs,
    /// The positions of the sessions that have a file of their own in this export.
    pub(super) own_files: Option<&'s HashSet<usize>>,
}

impl TrajectoryWriter<'_> {
    /// Returns the trajectory of a session, which has events, and the number of events in it.
    pub(super) fn build(&self, at: usize) -> Result<(Trajectory, u64), ToolError> {
        let (trajectory, _, events) = self.build_trajectory(at, &mut vec![at])?;
        Ok((trajectory, events))
    }

    /// Builds the trajectory of a session. `open` are the sessions that it is embedded in, and itself.
    /// Returns its sums, without what ATIF does not name, and the number of events.
    fn build_trajectory(
        &self,
        at: usize,
        open: &mut Vec<usize>,
    ) -> Result<(Trajectory, Sums, u64), ToolError> {
        let row = self.snapshot.sessions()[at].row().map_err(store_error)?;
        let rows = read_all_events(self.snapshot, at, self.call)?;
        let costs = event_costs(&rows, self.prices);
        let events = self.prepare_events(row, &rows, &costs)?;
        let mut event_count = rows.len() as u64;
        let mut sums = Sums::of_events(row.usage(), &events);

        let mut refs: HashMap<String, SubagentRef> = HashMap::new();
        let mut embedded = Vec::new();
        for child in self.find_subagents(&row.session_id) {
            let session = &self.snapshot.sessions()[child];
            let mut subagent = SubagentRef {
                trajectory_id: None,
                session_id: Some(session.native_id().to_owned()),
                trajectory_path: None,
            };
            if self.own_files.is_some_and(|own| own.contains(&child)) {
                subagent.trajectory_path =
                    Some(ExportFormat::Atif.file_name(&file_stem(session.id())));
            } else if open.len() < MAX_SUBAGENT_DEPTH && !open.contains(&child) {
                open.push(child);
                let (trajectory, of_child, count) = self.build_trajectory(child, open)?;
                open.pop();
                sums.add(&of_child);
                event_count += count;
                subagent.trajectory_id = Some(trajectory.trajectory_id.clone());
                embedded.push(trajectory);
            } else {
                continue;
            }
            for id in [session.agent_id.as_deref(), Some(session.native_id())].into_iter().flatten()
            {
                refs.insert(id.to_owned(), subagent.clone());
            }
        }

        let (main, sidechains) = split_sidechains(&events);
        for agent_id in sidechains.keys().filter(|agent_id| !agent_id.is_empty()) {
            let subagent = SubagentRef {
                trajectory_id: Some(sidechain_id(&row.session_id, agent_id)),
                session_id: None,
                trajectory_path: None,
            };
            refs.insert((*agent_id).to_owned(), subagent);
        }
        let agent = describe_agent(row, &rows);
        for (agent_id, events) in &sidechains {
            let trajectory_id = sidechain_id(&row.session_id, agent_id);
            embedded.push(sidechain_trajectory(trajectory_id, agent_id, &agent, events));
        }

        let Steps { steps, outside } = build_steps(&main, &|id| refs.get(id).cloned());
        let mut extra = self.describe_session(row);
        extra.events = outside;
        let trajectory = Trajectory {
            schema_version: SCHEMA_VERSION,
            session_id: row.native_id.clone(),
            trajectory_id: row.session_id.clone(),
            agent,
            continued_trajectory_ref: self.find_continuation(&row.session_id),
            final_metrics: sums.final_metrics(steps.len()),
            extra,
            steps,
            subagent_trajectories: embedded,
        };
        Ok((trajectory, sums, event_count))
    }

    /// Returns the positions of the subagents of a session that have events.
    fn find_subagents(&self, session_id: &str) -> Vec<usize> {
        let sessions = self.snapshot.sessions().iter().enumerate();
        let is_child = |session: &StoredSession| {
            session.parent_session_id.as_deref() == Some(session_id)
                && session.is_subagent
                && session.events > 0
        };
        sessions.filter(|(_, session)| is_child(session)).map(|(at, _)| at).collect()
    }

    /// Adds to events what their steps need to know.
    fn prepare_events<'r>(
        &self,
        session: &SessionRow,
        rows: &'r [EventRow],
        costs: &[Option<f64>],
    ) -> Result<Vec<SessionEvent<'r>>, ToolError> {
        let mut found = self.logs.find_arguments(&session.session_id, rows, self.call)?;
        let mut model = None;
        let mut branch = None;
        let mut events = Vec::with_capacity(rows.len());
        for (row, cost) in rows.iter().zip(costs) {
            let arguments = found.remove(&row.event_index);
            let has_new_model = row.model.is_some() && row.model != model;
            let has_new_branch = row.git_branch.is_some() && row.git_branch != branch;
            model.clone_from(&row.model);
            branch.clone_from(&row.git_branch);
            let cost = *cost;
            events.push(SessionEvent { row, cost, arguments, has_new_model, has_new_branch });
        }
        Ok(events)
    }

    fn describe_session(&self, row: &SessionRow) -> TrajectoryExtra {
        let labels = self.snapshot.labels().session_labels(&row.session_id);
        TrajectoryExtra {
            title: row.title.clone(),
            labels: labels.map(|own| own.labels.clone()).unwrap_or_default(),
            parent_session_id: row.parent_session_id.clone(),
            relation: row.relation.clone(),
            agent_id: row.agent_id.clone(),
            model: row.model.clone(),
            started_at: format_time(row.started_at),
            ended_at: format_time(row.ended_at),
            abandoned: row.abandoned.clone(),
            usage_confidence: row.usage_confidence.clone(),
            source_path: Some(row.source_path.clone()),
            is_sidechain: false,
            events: Vec::new(),
        }
    }

    /// Returns the file of the session that continues this one, if it is in this export. The first one
    /// counts, as ATIF has one.
    fn find_continuation(&self, session_id: &str) -> Option<String> {
        let sessions = self.snapshot.sessions();
        let mut next = None;
        for at in self.own_files.into_iter().flatten() {
            let session = &sessions[*at];
            if session.parent_session_id.as_deref() != Some(session_id) {
                continue;
            }
            let relation = session.row().ok().and_then(|row| row.relation.as_deref()?.parse().ok());
            let is_continuation =
                matches!(relation, Some(Relation::ResumedFrom | Relation::ContinuedFrom));
            let order = (session.started_at, session.id());
            if is_continuation && next.is_none_or(|known| order < known) {
                next = Some(order);
            }
        }
        next.map(|(_, id)| ExportFormat::Atif.file_name(&file_stem(id)))
    }
}

/// Returns the document of a trajectory.
pub(super) fn format_document(trajectory: &Trajectory) -> Result<String, ToolError> {
    let mut json = serde_json::to_string_pretty(trajectory).map_err(encoding_error)?;
    json.push('\n');
    Ok(json)
}

/// Returns the error for a session that has no events: a trajectory has at least one step.
pub(super) fn no_events_error(session_id: &str) -> ToolError {
    let message = format!(
        "Session {session_id} has no events, and a trajectory needs at least one. Name another \
         session; `sessions list` shows them"
    );
    ToolError::new(ErrorCode::InvalidArgument, message).with_detail("session_id", session_id)
}

/// Tokens counted once, and their cost.
#[derive(Default)]
struct Sums {
    usage: Usage,
    cost_usd: Option<f64>,
}

impl Sums {
    /// Returns the sums of events, of which `usage` are the tokens.
    fn of_events<'e, 'r: 'e>(
        usage: Usage,
        events: impl IntoIterator<Item = &'e SessionEvent<'r>>,
    ) -> Self {
        let mut sums = Self { usage, cost_usd: None };
        for event in events.into_iter().filter(|event| !event.row.is_replay) {
            sums.add_cost(event.cost);
        }
        sums
    }

    fn add(&mut self, other: &Self) {
        self.usage = self.usage.plus(other.usage);
        self.add_cost(other.cost_usd);
    }

    fn add_cost(&mut self, cost: Option<f64>) {
        if let Some(cost) = cost {
            *self.cost_usd.get_or_insert(0.0) += cost;
        }
    }

    fn final_metrics(&self, total_steps: usize) -> FinalMetrics {
        FinalMetrics {
            total_prompt_tokens: prompt_tokens(self.usage),
            total_completion_tokens: self.usage.output,
            total_cached_tokens: self.usage.cache_read,
            total_cost_usd: self.cost_usd,
            total_steps,
            extra: usage_extra(self.usage),
        }
    }
}

/// The events of a subagent inside a log, by its id; the id is empty if the log does not name it.
type Sidechains<'e, 'r> = BTreeMap<&'e str, Vec<&'e SessionEvent<'r>>>;

/// Splits events into those of the session's own agent and those of its subagents. A session in which
/// only subagents have steps is not split: its trajectory would have no steps.
fn split_sidechains<'e, 'r>(
    events: &'e [SessionEvent<'r>],
) -> (Vec<&'e SessionEvent<'r>>, Sidechains<'e, 'r>) {
    let has_step = |event: &&SessionEvent<'_>| event.row.event_type != EventType::TokenUsage;
    if !events.iter().filter(has_step).any(|event| !event.row.is_sidechain) {
        return (events.iter().collect(), Sidechains::new());
    }
    let mut main = Vec::new();
    let mut sidechains = Sidechains::new();
    for event in events {
        if event.row.is_sidechain {
            let agent_id = event.row.spawned_agent_id.as_deref().unwrap_or_default();
            sidechains.entry(agent_id).or_default().push(event);
        } else {
            main.push(event);
        }
    }
    // Counts alone are no step: they stay with the session.
    sidechains.retain(|_, events| {
        let has_steps = events.iter().any(&has_step);
        if !has_steps {
            main.append(events);
        }
        has_steps
    });
    main.sort_by_key(|event| event.row.event_index);
    (main, sidechains)
}

/// Returns the id of the trajectory of a subagent inside a log.
fn sidechain_id(session_id: &str, agent_id: &str) -> String {
    let agent_id = if agent_id.is_empty() { "sidechain" } else { agent_id };
    format!("{session_id}/{agent_id}")
}

/// Builds the trajectory of a subagent inside a log. Its tokens are in the sums of the session.
fn sidechain_trajectory(
    trajectory_id: String,
    agent_id: &str,
    agent: &Agent,
    events: &[&SessionEvent<'_>],
) -> Trajectory {
    let Steps { steps, outside } = build_steps(events, &|_| None);
    let mut usage = Usage::default();
    for event in events.iter().filter(|event| !event.row.is_replay) {
        usage = usage.plus(event.row.usage());
    }
    let sums = Sums::of_events(usage, events.iter().copied());
    Trajectory {
        schema_version: SCHEMA_VERSION,
        session_id: None,
        trajectory_id,
        agent: agent.clone(),
        continued_trajectory_ref: None,
        final_metrics: sums.final_metrics(steps.len()),
        extra: TrajectoryExtra {
            agent_id: Some(agent_id.to_owned()).filter(|id| !id.is_empty()),
            is_sidechain: true,
            events: outside,
            ..TrajectoryExtra::default()
        },
        steps,
        subagent_trajectories: Vec::new(),
    }
}

fn describe_agent(row: &SessionRow, rows: &[EventRow]) -> Agent {
    let is_response = |event: &&EventRow| event.step_index > 0 && event.model.is_some();
    let first = rows.iter().find(is_response).and_then(|event| event.model.clone());
    let version = row.agent_version.as_deref().unwrap_or_default();
    // A session that was read from a trajectory has the name of its agent before the version.
    let (name, version) = if row.provider == Provider::Atif {
        version.split_once(' ').unwrap_or((version, ""))
    } else {
        (row.provider.as_str(), version)
    };
    let version = if version.is_empty() { UNKNOWN_VERSION } else { version };
    Agent {
        name: name.to_owned(),
        version: version.to_owned(),
        model_name: first.or_else(|| row.model.clone()),
        extra: AgentExtra {
            cwd: row.cwd.clone(),
            git_branch: row.git_branch.clone(),
            repository: row.repository.clone(),
        },
    }
}
