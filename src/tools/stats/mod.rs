//! Runs `session_stats`, which reads the narrow columns of the live rows, never their text, and
//! sums them up by group.

mod fact;
mod group;
mod plan;
mod scan;
mod sums;

use std::cmp::{Ordering, Reverse};
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

use schemas::session::SessionRow;
use schemas::tool::stats::{Group, GroupKey, StatsArgs, StatsData, StatsSort};
use schemas::tool::{OneOrMany, checked_limit};
use schemas::{ErrorCode, Timestamp, ToolError, limits};

use self::plan::StatsPlan;
use self::scan::collect_groups;
use super::reply::answer::Reply;
use super::reply::budget::Budget;
use super::reply::call::Call;
use super::reply::session_filter::session_filter;
use super::reply::shared_state::SharedState;
use crate::store::Snapshot;

/// The number of groups requested.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Extent {
    /// The groups that fit into an answer.
    Answer,
    All,
}

pub(super) fn run(
    shared: &SharedState,
    snapshot: &Snapshot,
    args: &StatsArgs,
    extent: Extent,
    call: &Call<'_>,
) -> Result<Reply<StatsData>, ToolError> {
    let keys = keys(&args.group_by)?;
    let limit = match extent {
        Extent::Answer => {
            checked_limit("limit", args.limit, limits::STATS_LIMIT, limits::STATS_LIMIT_MAX)?
        }
        Extent::All => usize::MAX,
    };
    let time = |field: &str, text: &Option<String>| {
        let text = text.as_deref();
        text.map(|text| Timestamp::parse_since(field, text, call.now).map(|time| time.0))
            .transpose()
    };
    let (since, until) = (time("since", &args.since)?, time("until", &args.until)?);
    if since.zip(until).is_some_and(|(since, until)| since >= until) {
        let message = "since: it is not before until. Swap them, or leave one out";
        return Err(ToolError::new(ErrorCode::InvalidArgument, message).with("field", "since"));
    }
    let sessions = snapshot.sessions();
    let id = args.session_id.as_deref();
    let one = id.map(|id| shared.caller.find(snapshot, id)).transpose()?;
    let chosen = chosen(sessions, one, args);
    let range = if keys.iter().any(|key| key.is_time()) {
        None
    } else {
        range(sessions.iter().zip(&chosen), since, until)
    };
    let plan = StatsPlan {
        snapshot,
        keys: &keys,
        chosen: &chosen,
        since,
        until,
        range,
        prices: shared.prices(),
        made: AtomicUsize::new(0),
    };
    let mut groups = collect_groups(&plan, call.stop)?;
    let sort = args.sort.unwrap_or(default_sort(&keys));
    // Groups by time: the latest are kept and shown in chronological order.
    let latest = sort == StatsSort::Key && keys.first().is_some_and(|key| key.is_time());
    groups.sort_by(|a, b| compare(a, b, sort));
    if latest {
        groups.reverse();
        // Events without a time come last.
        groups.sort_by_key(|group| group.group.len() < keys.len());
    }
    let total = groups.len();
    let mut budget = Budget::new(limits::ANSWER_BYTES);
    let mut kept: Vec<Group> = Vec::new();
    for group in groups.into_iter().take(limit) {
        if extent == Extent::Answer && !budget.take(&group) {
            break;
        }
        kept.push(group);
    }
    if latest {
        kept.reverse();
    }
    let returned = kept.len();
    let mut reply = Reply::new(StatsData { group_by: keys, groups: kept }, returned);
    reply.total = Some((total, true));
    reply.truncated = returned < total;
    reply.warnings.extend(id.zip(one).and_then(|(id, at)| shared.caller.note(id, &sessions[at])));
    if reply.truncated {
        let most = limits::STATS_LIMIT_MAX;
        let raise = if returned == limit && limit < most as usize {
            format!("Raise limit (at most {most}), or narrow")
        } else {
            "The answer is full: narrow".to_owned()
        };
        reply.hint = Some(format!(
            "{} more groups. {raise} with provider, project, session_id, since or until.",
            total - returned
        ));
    } else if returned == 0 {
        reply.hint = Some(format!(
            "No event passes. Try without provider, project, session_id, since or until; there are {} sessions.",
            sessions.len()
        ));
    }
    Ok(reply)
}

/// Returns one key, or two different ones.
fn keys(group_by: &OneOrMany<GroupKey>) -> Result<Vec<GroupKey>, ToolError> {
    let keys = group_by.to_vec();
    let fit = match keys.as_slice() {
        [_] => true,
        [first, second] => first != second,
        _ => false,
    };
    if fit {
        return Ok(keys);
    }
    let names = keys.iter().map(|key| key.as_str()).collect::<Vec<_>>().join(",");
    let message = format!(
        "group_by: '{names}' is not valid. Give one key or two different ones of {}",
        GroupKey::NAMES.join(", ")
    );
    Err(ToolError::new(ErrorCode::InvalidArgument, message)
        .with("field", "group_by")
        .with("value", names)
        .with("valid", GroupKey::NAMES))
}

/// Returns, for every session, whether it is selected.
fn chosen(sessions: &[Arc<SessionRow>], one: Option<usize>, args: &StatsArgs) -> Vec<bool> {
    let passes = session_filter(args.project.as_deref(), args.provider, None);
    let sessions = sessions.iter().enumerate();
    sessions.map(|(at, row)| one.is_none_or(|one| one == at) && passes(row)).collect()
}

/// Returns the first and the last time of the selected sessions.
fn range<'s>(
    sessions: impl Iterator<Item = (&'s Arc<SessionRow>, &'s bool)>,
    since: Option<i64>,
    until: Option<i64>,
) -> Option<(i64, i64)> {
    let (mut first, mut last) = (i64::MAX, i64::MIN);
    for (row, _) in sessions.filter(|(_, chosen)| **chosen) {
        first = first.min(row.started_at.unwrap_or(i64::MAX));
        last = last.max(row.ended_at.unwrap_or(i64::MIN));
    }
    first = first.max(since.unwrap_or(i64::MIN));
    last = last.min(until.map_or(i64::MAX, |until| until - 1));
    (first <= last).then_some((first, last))
}

fn default_sort(keys: &[GroupKey]) -> StatsSort {
    match keys {
        [first, ..] if first.is_time() => StatsSort::Key,
        _ => StatsSort::Events,
    }
}

/// Compares two groups: the largest comes first, equal ones are ordered by their keys.
fn compare(a: &Group, b: &Group, sort: StatsSort) -> Ordering {
    let number = |of: fn(&Group) -> u64| Reverse(of(a)).cmp(&Reverse(of(b)));
    let float =
        |of: fn(&Group) -> Option<f64>| of(b).unwrap_or(-1.0).total_cmp(&of(a).unwrap_or(-1.0));
    let by_sort = match sort {
        StatsSort::Key => Ordering::Equal,
        StatsSort::Events => number(|group| group.events),
        StatsSort::Errors => number(|group| group.tool_errors),
        StatsSort::ErrorRate => float(|group| group.error_rate),
        StatsSort::Tokens => number(|group| {
            let tokens = group.tokens.map(|tokens| tokens.counted_once.total());
            u64::try_from(tokens.unwrap_or(0)).unwrap_or(0)
        }),
        StatsSort::Cost => float(|group| group.cost_usd),
        StatsSort::Duration => {
            let p95 = |group: &Group| Reverse(group.duration_ms.map(|spread| spread.p95));
            p95(a).cmp(&p95(b))
        }
        StatsSort::Size => number(|group| group.text_bytes),
    };
    // Groups without a key come last.
    let texts = |group: &Group| -> Vec<(bool, String)> {
        let names = group.group.values().map(|value| value.as_str().unwrap_or("").to_owned());
        names.map(|name| (name.is_empty(), name)).collect()
    };
    by_sort.then_with(|| texts(a).cmp(&texts(b)))
}
