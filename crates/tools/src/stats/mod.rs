//! Runs `session_stats`, which reads the narrow columns of the live rows, never their text, and
//! sums them up by group.

mod fact;
mod group;
mod plan;
mod scan;
mod sums;

use std::cmp::Ordering;
use std::sync::atomic::AtomicUsize;

use schemas::tool::stats::{Group, GroupKey, StatsArgs, StatsData, StatsSort};
use schemas::tool::{OneOrMany, checked_limit};
use schemas::{ErrorCode, Timestamp, ToolError, Zone, limits};

use self::plan::StatsPlan;
use self::scan::collect_groups;
use super::reply::answer::{Reply, RowTotal};
use super::reply::budget::Budget;
use super::reply::call::Call;
use super::reply::history::Examined;
use super::reply::scope::{Coverage, SessionFilters};
use super::reply::time_range::TimeRange;
use super::reply::tools::Tools;
use super::reply::usage_warnings::usage_warnings;
use crate::error::store_error;
use store::{Snapshot, StoredSession};

/// The number of groups requested.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Extent {
    /// The groups that fit into an answer.
    Answer,
    /// As many groups as the call asks for, whatever their size, for output to a program.
    Lines,
    /// As many groups as the call asks for, with all numbers, for output to users.
    Table,
    /// All groups, for output to users.
    All,
    /// All groups, of any number of keys, only the first of which may be a time, for a report.
    Cells,
}

pub(super) fn run(
    tools: &Tools,
    snapshot: &Snapshot,
    args: &StatsArgs,
    extent: Extent,
    call: &Call<'_>,
) -> Result<Reply<StatsData>, ToolError> {
    let keys = match extent {
        Extent::Answer | Extent::Lines | Extent::Table | Extent::All => {
            checked_keys(&args.group_by)?
        }
        Extent::Cells => args.group_by.to_vec(),
    };
    let limit = match extent {
        Extent::Answer | Extent::Lines | Extent::Table => {
            checked_limit("limit", args.limit, limits::STATS_LIMIT, limits::STATS_LIMIT_MAX)?
        }
        Extent::All | Extent::Cells => usize::MAX,
    };
    let zone = match &args.timezone {
        Some(name) => Zone::find("timezone", name)?,
        None => call.zone.clone(),
    };
    let range = TimeRange::parse(args.since.as_deref(), args.until.as_deref(), &zone, call.now)?;
    let [since, until] = [range.since, range.until].map(|time| time.map(|time| time.0));

    let sessions = snapshot.sessions();
    let id = args.session_id.as_deref();
    let one = id.map(|id| tools.caller.find_session(snapshot, id)).transpose()?;
    let filters = SessionFilters {
        project: args.project.as_deref(),
        provider: args.provider,
        machine: args.machine.as_deref(),
        user: args.user.as_deref(),
        session: one,
        ..SessionFilters::default()
    };
    let is_selected = select_sessions(snapshot, &filters);
    let has_periods = keys.iter().any(|key| key.is_time());
    let range = if has_periods { None } else { trend_range(sessions, &is_selected, since, until) };
    let plan = StatsPlan {
        snapshot,
        keys: &keys,
        is_selected: &is_selected,
        zone: &zone,
        since,
        until,
        range,
        prices: tools.prices(),
        group_count: AtomicUsize::new(0),
    };
    let (groups, examined) = collect_groups(&plan, tools.history(), call.stop)?;
    let total = groups.len();
    let kept = sorted_page(groups, &keys, args.sort, limit, extent);

    let returned = kept.len();
    let timezone = has_periods.then(|| zone.name().to_owned());
    let data = StatsData { group_by: keys, timezone, groups: kept };
    let mut reply = Reply::new(data, returned);
    reply.total = Some(RowTotal::Exact(total));
    reply.is_truncated = returned < total;
    reply
        .warnings
        .extend(id.zip(one).and_then(|(id, at)| tools.caller.session_note(id, &sessions[at])));
    let covered = filters.describe_scope(snapshot, Coverage::OwnEvents);
    reply.scope = Some(describe_scope(covered, since, until, &examined));
    if one.is_none() {
        // Most calls count most sessions.
        snapshot.read_rows().map_err(store_error)?;
    }
    let counted = sessions.iter().zip(&is_selected).filter(|(_, is_selected)| **is_selected);
    let rows: Result<Vec<_>, _> = counted.map(|(session, _)| session.row()).collect();
    let rows = rows.map_err(store_error)?;
    reply.warnings.extend(usage_warnings(rows, tools.prices(), &days_between(since, until)));
    let interface = tools.caller.interface;
    let filter_names = interface.argument_names(&["provider", "project", "session_id", "since"]);
    let until = interface.argument_names(&["until"]);
    if reply.is_truncated {
        let max_limit = limits::STATS_LIMIT_MAX;
        let next_step = if returned == limit && limit < max_limit as usize {
            let limit = interface.argument_names(&["limit"]);
            format!("Raise {limit} (at most {max_limit}), or narrow")
        } else {
            "The answer is full: narrow".to_owned()
        };
        reply.hint = Some(format!(
            "{} more groups. {next_step} with {filter_names} or {until}.",
            total - returned
        ));
    } else if returned == 0 {
        reply.hint = filters.explain_none(snapshot);
    }
    if returned == 0 && reply.hint.is_none() {
        reply.hint = Some(format!(
            "No event matches. Try without {filter_names} or {until}; there are {} sessions.",
            sessions.len()
        ));
    }
    Ok(reply)
}

/// Describes the sessions and the times that an answer covers, and what was examined.
fn describe_scope(
    sessions: String,
    since: Option<i64>,
    until: Option<i64>,
    examined: &Examined,
) -> String {
    let mut scope = sessions;
    if let Some(since) = since {
        scope.push_str(&format!("; events since {}", Timestamp(since)));
    }
    if let Some(until) = until {
        scope.push_str(&format!("; events before {}", Timestamp(until)));
    }
    examined.append_to(&mut scope);
    scope
}

/// Sorts the groups, and returns those that the call asks for and that fit into an answer.
fn sorted_page(
    mut groups: Vec<Group>,
    keys: &[GroupKey],
    sort: Option<StatsSort>,
    limit: usize,
    extent: Extent,
) -> Vec<Group> {
    let sort = sort.unwrap_or(default_sort(keys));
    groups.sort_by(|a, b| compare_groups(a, b, sort));
    // Groups by time: the latest are kept and shown in chronological order.
    let keeps_latest = sort == StatsSort::Key && keys.first().is_some_and(|key| key.is_time());
    if keeps_latest {
        groups.reverse();
        // Events without a time come last.
        groups.sort_by_key(|group| group.group.len() < keys.len());
    }

    let mut budget = Budget::new(limits::ANSWER_BYTES);
    let mut kept: Vec<Group> = Vec::new();
    for mut group in groups.into_iter().take(limit) {
        if matches!(extent, Extent::Answer | Extent::Lines) && sort != StatsSort::Size {
            remove_sizes(&mut group, keys);
        }
        if extent == Extent::Answer && !budget.take(&group) {
            break;
        }
        kept.push(group);
    }
    if keeps_latest {
        kept.reverse();
    }
    kept
}

/// Removes the numbers that only an answer in the order of sizes, or about tools, is asked for.
fn remove_sizes(group: &mut Group, keys: &[GroupKey]) {
    group.trend.clear();
    group.text_bytes = 0;
    if !keys.iter().any(|key| key.is_of_tools()) {
        group.output_bytes = None;
    }
}

/// Returns one key, or two different ones.
fn checked_keys(group_by: &OneOrMany<GroupKey>) -> Result<Vec<GroupKey>, ToolError> {
    let keys = group_by.to_vec();
    let is_valid = match keys.as_slice() {
        [_] => true,
        [first, second] => first != second,
        _ => false,
    };
    if is_valid {
        return Ok(keys);
    }
    let names = keys.iter().map(|key| key.as_str()).collect::<Vec<_>>().join(",");
    let message = format!(
        "group_by: '{names}' is not valid. Give one key or two different ones of {}",
        GroupKey::NAMES.join(", ")
    );
    Err(ToolError::new(ErrorCode::InvalidArgument, message)
        .with_detail("field", "group_by")
        .with_detail("value", names)
        .with_detail("valid", GroupKey::NAMES))
}

/// Returns whether a day, in UTC, has a time of this span.
fn days_between(since: Option<i64>, until: Option<i64>) -> impl Fn(&str) -> bool {
    let utc_day = |time: i64| Zone::UTC.day(Timestamp(time));
    let first_day = since.and_then(utc_day);
    let last_day = until.and_then(utc_day);
    move |day| {
        first_day.as_deref().is_none_or(|first| first <= day)
            && last_day.as_deref().is_none_or(|last| day <= last)
    }
}

/// Returns, for every session, whether it is selected.
fn select_sessions(snapshot: &Snapshot, filters: &SessionFilters<'_>) -> Vec<bool> {
    let passes = filters.row_filter(snapshot);
    let sessions = snapshot.sessions().iter().enumerate();
    sessions.map(|(at, row)| filters.session.is_none_or(|one| one == at) && passes(row)).collect()
}

/// Returns the first and the last time of the selected sessions.
fn trend_range(
    sessions: &[StoredSession],
    is_selected: &[bool],
    since: Option<i64>,
    until: Option<i64>,
) -> Option<(i64, i64)> {
    let mut first = i64::MAX;
    let mut last = i64::MIN;
    for (row, is_selected) in sessions.iter().zip(is_selected) {
        if *is_selected {
            first = first.min(row.started_at.unwrap_or(i64::MAX));
            last = last.max(row.ended_at.unwrap_or(i64::MIN));
        }
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
fn compare_groups(a: &Group, b: &Group, sort: StatsSort) -> Ordering {
    let by_sort = match sort {
        StatsSort::Key => Ordering::Equal,
        StatsSort::Events => b.events.cmp(&a.events),
        StatsSort::Errors => b.tool_errors.cmp(&a.tool_errors),
        StatsSort::ErrorRate => compare_numbers(b.error_rate, a.error_rate),
        StatsSort::Tokens => tokens_counted_once(b).cmp(&tokens_counted_once(a)),
        StatsSort::Cost => compare_numbers(b.cost_usd, a.cost_usd),
        StatsSort::Duration => {
            let p95_of_a = a.duration_ms.map(|spread| spread.p95);
            b.duration_ms.map(|spread| spread.p95).cmp(&p95_of_a)
        }
        StatsSort::Size => b.text_bytes.cmp(&a.text_bytes),
    };
    by_sort.then_with(|| key_texts(a).cmp(&key_texts(b)))
}

/// Compares two numbers that are not negative; an unknown one is less than every other.
fn compare_numbers(a: Option<f64>, b: Option<f64>) -> Ordering {
    a.unwrap_or(-1.0).total_cmp(&b.unwrap_or(-1.0))
}

fn tokens_counted_once(group: &Group) -> u64 {
    let tokens = group.tokens.map(|tokens| tokens.counted_once.total());
    u64::try_from(tokens.unwrap_or(0)).unwrap_or(0)
}

/// Returns the values of the keys for sorting. Groups without a value come last.
fn key_texts(group: &Group) -> Vec<(bool, String)> {
    let values = group.group.values();
    let texts = values.map(|value| value.as_str().unwrap_or("").to_owned());
    texts.map(|text| (text.is_empty(), text)).collect()
}
