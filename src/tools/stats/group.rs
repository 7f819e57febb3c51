//! Adds rows to the sums of the groups that they belong to.

use std::collections::HashMap;

use arrow::array::{Array, AsArray, RecordBatch};
use schemas::price::Rate;
use schemas::tool::stats::GroupKey;
use schemas::{Timestamp, Usage, limits};

use super::fact::{CALL, Columns, Fact, RESULT, USAGE, flag, text};
use super::plan::StatsPlan;
use super::sums::{ABSENT, NEXT, Sums};

const HOUR: i64 = 3_600_000_000;
const DAY: i64 = 24 * HOUR;

/// The groups of some rows.
pub(super) struct Groups<'a> {
    plan: &'a StatsPlan<'a>,
    groups: HashMap<String, Sums>,
    /// A reused buffer for the key of a row.
    key: String,
    rates: HashMap<String, Option<&'a Rate>>,
    /// The names of days, weeks and months by day, one map for each key.
    periods: [HashMap<i64, String>; 2],
    /// The prompt length of each request of the session, if it decides the rate. A request may be
    /// counted in several rows, and only the first has the prompt.
    prompts: HashMap<String, i64>,
}

impl<'a> Groups<'a> {
    pub(super) fn new(plan: &'a StatsPlan<'a>) -> Self {
        Self {
            plan,
            groups: HashMap::new(),
            key: String::new(),
            rates: HashMap::new(),
            periods: [HashMap::new(), HashMap::new()],
            prompts: HashMap::new(),
        }
    }

    /// Starts a session: the rows that follow belong to another session.
    pub(super) fn begin(&mut self) {
        self.prompts.clear();
    }

    pub(super) fn finish(self) -> HashMap<String, Sums> {
        self.groups
    }

    /// Adds rows of one session.
    pub(super) fn add(&mut self, session: usize, batch: &RecordBatch) {
        let columns = Columns::of(batch);
        let by_file = self.plan.keys.contains(&GroupKey::File);
        for row in 0..batch.num_rows() {
            let time = columns.timestamp.filter(|c| c.is_valid(row)).map(|c| c.value(row));
            if !self.is_wanted(time) {
                continue;
            }
            let fact = self.fact(session, &columns, row, time);
            if by_file {
                let files = columns.files.filter(|files| files.is_valid(row));
                let files = files.map(|files| files.value(row));
                let files = files.as_ref().and_then(|files| files.as_string_opt::<i32>());
                for file in files.into_iter().flatten().flatten() {
                    self.count(&fact, file);
                }
            } else {
                self.count(&fact, "");
            }
        }
    }

    fn is_wanted(&self, time: Option<i64>) -> bool {
        self.plan.since.is_none_or(|since| time.is_some_and(|time| time >= since))
            && self.plan.until.is_none_or(|until| time.is_some_and(|time| time < until))
    }

    fn fact<'b>(
        &mut self,
        session: usize,
        columns: &Columns<'b>,
        row: usize,
        time: Option<i64>,
    ) -> Fact<'b> {
        let mut fact = Fact {
            session,
            event_type: text(columns.event_type, row).unwrap_or(""),
            time,
            is_replay: flag(columns.is_replay, row).unwrap_or(false),
            is_error: flag(columns.is_error, row),
            duration_ms: columns.duration_ms.filter(|c| c.is_valid(row)).map(|c| c.value(row)),
            text_bytes: columns.text_bytes.map_or(0, |c| u64::try_from(c.value(row)).unwrap_or(0)),
            model: text(columns.model, row),
            tool_name: text(columns.tool_name, row),
            tool_kind: text(columns.tool_kind, row),
            git_branch: text(columns.git_branch, row),
            usage: Usage::default(),
            cost: None,
            span: self.plan.range.zip(time).and_then(|(range, time)| span(range, time)),
        };
        if fact.event_type == USAGE {
            fact.usage = columns.usage(row);
            if !fact.is_replay {
                let shutdown = text(columns.subtype, row) == Some("shutdown");
                fact.cost = self.cost(&fact, text(columns.request_id, row), shutdown);
            }
        }
        fact
    }

    /// Returns the cost of a row's tokens. A shutdown sums up many requests, and none of them is
    /// known to be long.
    fn cost(&mut self, fact: &Fact<'_>, request: Option<&str>, shutdown: bool) -> Option<f64> {
        let model = fact.model?;
        let rate = match self.rates.get(model) {
            Some(rate) => *rate,
            None => {
                let rate = self.plan.prices.rate(model);
                self.rates.insert(model.to_owned(), rate);
                rate
            }
        }?;
        let mut prompt = Usage { output: None, ..fact.usage }.total();
        if let Some(id) = request.filter(|_| rate.long.is_some()) {
            let longest = self.prompts.entry(id.to_owned()).or_default();
            prompt = prompt.max(*longest);
            *longest = prompt;
        }
        rate.cost(&fact.usage, !shutdown && rate.is_long(prompt))
    }

    /// Adds a row to its group, if it has one.
    fn count(&mut self, fact: &Fact<'_>, file: &str) {
        let mut key = std::mem::take(&mut self.key);
        key.clear();
        let plan = self.plan;
        let mut counts = true;
        for (at, kind) in plan.keys.iter().enumerate() {
            if at > 0 {
                key.push(NEXT);
            }
            counts &= has_key(*kind, fact);
            match self.value(at, *kind, fact, file).filter(|value| !value.is_empty()) {
                Some(value) => key.push_str(value),
                None => key.push(ABSENT),
            }
        }
        if counts {
            match self.groups.get_mut(key.as_str()) {
                Some(sums) => sums.add(fact),
                None if !plan.may_make() => {}
                None => self.groups.entry(key.clone()).or_default().add(fact),
            }
        }
        self.key = key;
    }

    /// Returns the value of a row for the key at index `at`.
    fn value<'v>(
        &'v mut self,
        at: usize,
        kind: GroupKey,
        fact: &Fact<'v>,
        file: &'v str,
    ) -> Option<&'v str> {
        let session = self.plan.snapshot.sessions().get(fact.session);
        match kind {
            GroupKey::Provider => session.map(|row| row.provider.as_str()),
            GroupKey::Project => session.and_then(|row| row.project.as_deref()),
            GroupKey::Session => session.map(|row| row.session_id.as_str()),
            GroupKey::Model => fact.model,
            GroupKey::Tool => fact.tool_name,
            GroupKey::ToolKind => fact.tool_kind,
            GroupKey::EventType => Some(fact.event_type),
            GroupKey::Error => fact.is_error.map(|failed| if failed { "failed" } else { "ok" }),
            GroupKey::Branch => fact.git_branch,
            GroupKey::File => Some(file),
            GroupKey::Day | GroupKey::Week | GroupKey::Month | GroupKey::Hour => {
                let time = fact.time?;
                let unit = if kind == GroupKey::Hour { HOUR } else { DAY };
                let names = self.periods.get_mut(at)?;
                let name = names.entry(time.div_euclid(unit)).or_insert_with(|| period(kind, time));
                Some(name)
            }
        }
    }
}

/// Returns true if a key counts rows like this one at all.
fn has_key(kind: GroupKey, fact: &Fact<'_>) -> bool {
    match kind {
        GroupKey::Error => fact.event_type == RESULT,
        GroupKey::Tool | GroupKey::ToolKind | GroupKey::File => {
            fact.event_type == CALL || fact.event_type == RESULT
        }
        GroupKey::Provider
        | GroupKey::Project
        | GroupKey::Model
        | GroupKey::EventType
        | GroupKey::Day
        | GroupKey::Week
        | GroupKey::Month
        | GroupKey::Hour
        | GroupKey::Session
        | GroupKey::Branch => true,
    }
}

/// Returns the name of the day, week, month or hour of the day.
#[expect(clippy::wildcard_enum_match_arm, reason = "the other keys have no periods")]
fn period(kind: GroupKey, time: i64) -> String {
    let name = match kind {
        GroupKey::Hour => Some(format!("{:02}", time.div_euclid(HOUR).rem_euclid(24))),
        GroupKey::Week => Timestamp(time).week(),
        GroupKey::Month => Timestamp(time).month(),
        _ => Timestamp(time).day(),
    };
    name.unwrap_or_default()
}

/// Returns the part of the trend that a time falls into.
fn span((first, last): (i64, i64), time: i64) -> Option<usize> {
    let whole = i128::from(last) - i128::from(first) + 1;
    let parts = i128::try_from(limits::TREND_SPANS).ok()?;
    let part = (i128::from(time) - i128::from(first)) * parts / whole;
    usize::try_from(part.clamp(0, parts - 1)).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trend_covers_first_and_last() {
        assert_eq!(span((0, 11), 0), Some(0));
        assert_eq!(span((0, 11), 11), Some(11));
        assert_eq!(span((5, 5), 5), Some(0));
        assert_eq!(span((i64::MIN, i64::MAX), i64::MAX), Some(11));
        assert_eq!(span((10, 20), 99), Some(11));
    }

    #[test]
    fn periods_are_named_alike_within() {
        let time = Timestamp::parse("2026-10-14T23:59:59.999Z").map_or(0, |time| time.0);
        assert_eq!(period(GroupKey::Day, time), "2026-10-14");
        assert_eq!(period(GroupKey::Week, time), "2026-10-12");
        assert_eq!(period(GroupKey::Month, time), "2026-10");
        assert_eq!(period(GroupKey::Hour, time), "23");
        assert_eq!(period(GroupKey::Hour, -1), "23");
    }
}
