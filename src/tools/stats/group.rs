//! Sums by group: which groups a row belongs to, and what it adds to them.

use std::collections::HashMap;

use arrow::array::{
    Array, AsArray, BooleanArray, Int32Array, Int64Array, ListArray, RecordBatch, StringArray,
    TimestampMicrosecondArray,
};
use arrow::datatypes::{Int32Type, Int64Type, TimestampMicrosecondType};
use schemas::price::Rate;
use schemas::table::EventColumn;
use schemas::tool::stats::GroupKey;
use schemas::{Timestamp, Usage, limits};

use super::scan::Scan;
use super::sums::{ABSENT, CALL, NEXT, RESULT, Sums, USAGE};
use crate::store::column_of;

const HOUR: i64 = 3_600_000_000;
const DAY: i64 = 24 * HOUR;

/// The groups of some rows.
pub(super) struct Groups<'a> {
    scan: &'a Scan<'a>,
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

/// The columns of a batch; columns that were not requested are absent.
struct Columns<'b> {
    event_type: Option<&'b StringArray>,
    subtype: Option<&'b StringArray>,
    timestamp: Option<&'b TimestampMicrosecondArray>,
    is_replay: Option<&'b BooleanArray>,
    is_error: Option<&'b BooleanArray>,
    duration_ms: Option<&'b Int64Array>,
    text_bytes: Option<&'b Int32Array>,
    model: Option<&'b StringArray>,
    request_id: Option<&'b StringArray>,
    tokens: [Option<&'b Int64Array>; 6],
    tool_name: Option<&'b StringArray>,
    tool_kind: Option<&'b StringArray>,
    git_branch: Option<&'b StringArray>,
    files: Option<&'b ListArray>,
}

/// The fields of a row that the sums use.
pub(super) struct Fact<'b> {
    pub session: usize,
    pub event_type: &'b str,
    pub time: Option<i64>,
    pub is_replay: bool,
    pub is_error: Option<bool>,
    pub duration_ms: Option<i64>,
    pub text_bytes: u64,
    pub model: Option<&'b str>,
    pub tool_name: Option<&'b str>,
    pub tool_kind: Option<&'b str>,
    pub git_branch: Option<&'b str>,
    pub usage: Usage,
    pub cost: Option<f64>,
    /// The part of the trend that the row falls into.
    pub span: Option<usize>,
}

impl<'b> Columns<'b> {
    fn of(batch: &'b RecordBatch) -> Self {
        let column = |name| column_of(batch, name);
        let text = |name| column(name).and_then(|c| c.as_string_opt::<i32>());
        let flag = |name| column(name).and_then(|c| c.as_boolean_opt());
        let number = |name| column(name).and_then(|c| c.as_primitive_opt::<Int64Type>());
        Self {
            event_type: text(EventColumn::EventType),
            subtype: text(EventColumn::Subtype),
            timestamp: column(EventColumn::Timestamp)
                .and_then(|c| c.as_primitive_opt::<TimestampMicrosecondType>()),
            is_replay: flag(EventColumn::IsReplay),
            is_error: flag(EventColumn::IsError),
            duration_ms: number(EventColumn::DurationMs),
            text_bytes: column(EventColumn::TextBytes)
                .and_then(|c| c.as_primitive_opt::<Int32Type>()),
            model: text(EventColumn::Model),
            request_id: text(EventColumn::RequestId),
            tokens: EventColumn::TOKENS.map(number),
            tool_name: text(EventColumn::ToolName),
            tool_kind: text(EventColumn::ToolKind),
            git_branch: text(EventColumn::GitBranch),
            files: column(EventColumn::Files).and_then(|c| c.as_list_opt::<i32>()),
        }
    }

    fn usage(&self, row: usize) -> Usage {
        let [input, output, cache_read, cache_write, cache_write_1h, reasoning] =
            self.tokens.map(|column| {
                column.filter(|column| column.is_valid(row)).map(|column| column.value(row))
            });
        Usage { input, output, cache_read, cache_write, cache_write_1h, reasoning }
    }
}

fn text(column: Option<&StringArray>, row: usize) -> Option<&str> {
    column.filter(|column| column.is_valid(row)).map(|column| column.value(row))
}

fn flag(column: Option<&BooleanArray>, row: usize) -> Option<bool> {
    column.filter(|column| column.is_valid(row)).map(|column| column.value(row))
}

impl<'a> Groups<'a> {
    pub(super) fn new(scan: &'a Scan<'a>) -> Self {
        Self {
            scan,
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
        let by_file = self.scan.keys.contains(&GroupKey::File);
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
        self.scan.since.is_none_or(|since| time.is_some_and(|time| time >= since))
            && self.scan.until.is_none_or(|until| time.is_some_and(|time| time < until))
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
            span: self.scan.range.zip(time).and_then(|(range, time)| span(range, time)),
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
                let rate = self.scan.prices.rate(model);
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
        let (scan, mut counts) = (self.scan, true);
        for (at, kind) in scan.keys.iter().enumerate() {
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
                None if !scan.may_make() => {}
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
        let session = self.scan.snapshot.sessions().get(fact.session);
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
