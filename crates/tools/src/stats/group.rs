//! Adds rows to the sums of the groups that they belong to.

use std::borrow::Cow;
use std::collections::HashMap;

use arrow::array::{Array, AsArray, RecordBatch};
use schemas::price::{PriceMode, Rate};
use schemas::session::is_sum_of_requests;
use schemas::tool::stats::GroupKey;
use schemas::{Timestamp, Usage, Zone, limits};

use super::fact::{CALL, RESULT, StatsColumns, StatsFact, USAGE};
use super::plan::StatsPlan;
use super::sums::{GroupSums, KEY_SEPARATOR, MISSING_VALUE};
use base::model_name::shown_model;
use base::paths::resolve_path;
use store::value_at;

/// A quarter of an hour in microseconds. The offsets of all zones, and the times at which they
/// change, have been multiples of it since 2011, so its times have one hour, day, week and month.
const QUARTER_HOUR_US: i64 = 15 * 60 * 1_000_000;

/// A day in microseconds.
const DAY_US: i64 = 24 * 60 * 60 * 1_000_000;

/// The rates of models; `None` for a model without a price.
type ModelRates<'a> = HashMap<String, Option<Cow<'a, Rate>>>;

/// The groups of some rows.
pub(super) struct StatsGroups<'a> {
    plan: &'a StatsPlan<'a>,
    groups: HashMap<String, GroupSums>,
    /// A reused buffer for the key of a row.
    key: String,
    /// The rates by mode of service and day in UTC, and by model.
    rates: HashMap<(PriceMode, Option<i64>), ModelRates<'a>>,
    /// The names of hours, days, weeks and months by quarter of an hour, one map for each key.
    periods: [HashMap<i64, String>; 2],
    /// The full path of each file that calls of the session name, by how the log writes it.
    paths: HashMap<String, String>,
    /// The names of tools in lower case and of models as readers see them, by how the logs write them.
    folded_names: HashMap<String, String>,
    /// The prompt length of each request of the session, if it decides the rate. A request may be
    /// counted in several rows, and only the first has the prompt.
    prompts: HashMap<String, i64>,
}

impl<'a> StatsGroups<'a> {
    pub(super) fn new(plan: &'a StatsPlan<'a>) -> Self {
        Self {
            plan,
            groups: HashMap::new(),
            key: String::new(),
            rates: HashMap::new(),
            periods: [HashMap::new(), HashMap::new()],
            paths: HashMap::new(),
            folded_names: HashMap::new(),
            prompts: HashMap::new(),
        }
    }

    /// Starts a session: the rows that follow belong to another session.
    pub(super) fn begin_session(&mut self) {
        self.prompts.clear();
        self.paths.clear();
    }

    pub(super) fn finish(self) -> HashMap<String, GroupSums> {
        self.groups
    }

    /// Adds rows of one session.
    pub(super) fn add_rows(&mut self, session: usize, batch: &RecordBatch) {
        let columns = StatsColumns::from_batch(batch);
        let by_file = self.plan.keys.contains(&GroupKey::File);
        for row in 0..batch.num_rows() {
            let time = value_at(columns.timestamp, row);
            if !self.is_wanted(time) {
                continue;
            }
            let fact = self.read_fact(session, &columns, row, time);
            if by_file {
                let column = columns.files.filter(|files| files.is_valid(row));
                let list = column.map(|files| files.value(row));
                let files = list.as_ref().and_then(|list| list.as_string_opt::<i32>());
                let mut counted: Vec<String> = Vec::new();
                for file in files.into_iter().flatten().flatten() {
                    let path = self.full_path(session, file);
                    if !counted.contains(&path) {
                        self.count_row(&fact, &path);
                        counted.push(path);
                    }
                }
            } else {
                self.count_row(&fact, "");
            }
        }
    }

    /// Returns the full path of a file that a call of the session names, perhaps relative to the
    /// session's folder.
    fn full_path(&mut self, session: usize, file: &str) -> String {
        if let Some(path) = self.paths.get(file) {
            return path.clone();
        }
        let row = self.plan.snapshot.sessions().get(session);
        let path = resolve_path(row.and_then(|row| row.origin.cwd.as_deref()), file);
        self.paths.insert(file.to_owned(), path.clone());
        path
    }

    /// Returns true if a time is within the requested ones. A row without a time passes only if
    /// there is no limit.
    fn is_wanted(&self, time: Option<i64>) -> bool {
        self.plan.since.is_none_or(|since| time.is_some_and(|time| time >= since))
            && self.plan.until.is_none_or(|until| time.is_some_and(|time| time < until))
    }

    /// Reads the fields of a row. `time` is the row's time.
    fn read_fact<'b>(
        &mut self,
        session: usize,
        columns: &StatsColumns<'b>,
        row: usize,
        time: Option<i64>,
    ) -> StatsFact<'b> {
        let mut fact = StatsFact {
            session,
            event_type: value_at(columns.event_type, row).unwrap_or(""),
            time,
            is_replay: value_at(columns.is_replay, row).unwrap_or(false),
            is_error: value_at(columns.is_error, row),
            duration_ms: value_at(columns.duration_ms, row),
            text_bytes: columns.text_bytes.map_or(0, |c| u64::try_from(c.value(row)).unwrap_or(0)),
            model: value_at(columns.model, row),
            tool_name: value_at(columns.tool_name, row),
            tool_kind: value_at(columns.tool_kind, row),
            git_branch: value_at(columns.git_branch, row),
            usage: Usage::default(),
            cost: None,
            span: self.plan.range.zip(time).and_then(|(range, time)| trend_part(range, time)),
        };
        if fact.event_type == USAGE {
            fact.usage = columns.read_usage(row);
            if !fact.is_replay {
                let is_sum = is_sum_of_requests(value_at(columns.subtype, row));
                let mode = columns.read_mode(row);
                let request = value_at(columns.request_id, row);
                fact.cost = self.row_cost(&fact, mode, request, is_sum);
            }
        }
        fact
    }

    /// Returns the cost of a row's tokens. `is_sum` is true if the row sums up many requests; none of
    /// them is known to be long.
    fn row_cost(
        &mut self,
        fact: &StatsFact<'_>,
        mode: PriceMode,
        request: Option<&str>,
        is_sum: bool,
    ) -> Option<f64> {
        let model = fact.model?;
        let prices = self.plan.prices;
        let key = (mode, fact.time.map(|time| time.div_euclid(DAY_US)));
        if !self.rates.get(&key).is_some_and(|rates| rates.contains_key(model)) {
            let day = fact.time.map(|time| Timestamp(time).utc_day());
            let rate = prices.rate_in_mode(model, &key.0, day.as_deref());
            self.rates.entry(key.clone()).or_default().insert(model.to_owned(), rate);
        }
        let rates = self.rates.get(&key)?;
        let rate = rates.get(model)?.as_deref()?;
        let mut prompt = Usage { output: None, ..fact.usage }.total();
        if rate.long.is_some()
            && let Some(id) = request
        {
            let longest = self.prompts.entry(id.to_owned()).or_default();
            prompt = prompt.max(*longest);
            *longest = prompt;
        }
        rate.cost(&fact.usage, !is_sum && rate.is_long(prompt))
    }

    /// Adds a row to its group, if it has one.
    fn count_row(&mut self, fact: &StatsFact<'_>, file: &str) {
        let mut key = std::mem::take(&mut self.key);
        key.clear();
        let plan = self.plan;
        let mut is_counted = true;
        for (at, kind) in plan.keys.iter().enumerate() {
            if at > 0 {
                key.push(KEY_SEPARATOR);
            }
            is_counted &= has_key(*kind, fact);
            match self.key_value(at, *kind, fact, file).filter(|value| !value.is_empty()) {
                Some(value) => key.push_str(value),
                None => key.push(MISSING_VALUE),
            }
        }
        if is_counted {
            match self.groups.get_mut(key.as_str()) {
                Some(sums) => sums.add_row(fact),
                None if !plan.reserve_group() => {}
                None => self.groups.entry(key.clone()).or_default().add_row(fact),
            }
        }
        self.key = key;
    }

    /// Returns the value of a row for the key at index `at`.
    fn key_value<'v>(
        &'v mut self,
        at: usize,
        kind: GroupKey,
        fact: &StatsFact<'v>,
        file: &'v str,
    ) -> Option<&'v str> {
        let session = self.plan.snapshot.sessions().get(fact.session);
        match kind {
            GroupKey::Provider => session.map(|row| row.provider.as_str()),
            GroupKey::Project => session.and_then(|row| row.origin.project.as_deref()),
            GroupKey::Machine => session.map(|row| self.plan.snapshot.machine_of(row)),
            GroupKey::User => session.map(|row| self.plan.snapshot.user_of(row)),
            GroupKey::Session => session.map(|row| row.session_id.as_str()),
            GroupKey::Model | GroupKey::Tool => {
                let is_model = kind == GroupKey::Model;
                let name = if is_model { fact.model? } else { fact.tool_name? };
                if !self.folded_names.contains_key(name) {
                    let folded =
                        if is_model { shown_model(name).into_owned() } else { name.to_lowercase() };
                    self.folded_names.insert(name.to_owned(), folded);
                }
                self.folded_names.get(name).map(String::as_str)
            }
            GroupKey::ToolKind => fact.tool_kind,
            GroupKey::EventType => Some(fact.event_type),
            GroupKey::Error => fact.is_error.map(|failed| if failed { "failed" } else { "ok" }),
            GroupKey::Branch => fact.git_branch,
            GroupKey::File => Some(file),
            GroupKey::Day | GroupKey::Week | GroupKey::Month | GroupKey::Hour => {
                let time = fact.time?;
                let names = self.periods.get_mut(at)?;
                let name = names
                    .entry(time.div_euclid(QUARTER_HOUR_US))
                    .or_insert_with(|| period_name(kind, time, self.plan.zone));
                Some(name)
            }
        }
    }
}

/// Returns true if a key counts rows like this one at all.
fn has_key(kind: GroupKey, fact: &StatsFact<'_>) -> bool {
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
        | GroupKey::Branch
        | GroupKey::Machine
        | GroupKey::User => true,
    }
}

/// Returns the name of the day, week, month or hour of the day in `zone`.
fn period_name(kind: GroupKey, time: i64, zone: &Zone) -> String {
    let time = Timestamp(time);
    let name = match kind {
        GroupKey::Hour => zone.hour(time),
        GroupKey::Week => zone.week(time),
        GroupKey::Month => zone.month(time),
        // The keys after the day have no periods.
        GroupKey::Day
        | GroupKey::Provider
        | GroupKey::Project
        | GroupKey::Model
        | GroupKey::Tool
        | GroupKey::ToolKind
        | GroupKey::EventType
        | GroupKey::Error
        | GroupKey::Session
        | GroupKey::Branch
        | GroupKey::File
        | GroupKey::Machine
        | GroupKey::User => zone.day(time),
    };
    name.unwrap_or_default()
}

/// Returns the number of the part of the trend that a time falls into; the trend covers the times
/// from `first` to `last`.
fn trend_part((first, last): (i64, i64), time: i64) -> Option<usize> {
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
        assert_eq!(trend_part((0, 11), 0), Some(0));
        assert_eq!(trend_part((0, 11), 11), Some(11));
        assert_eq!(trend_part((5, 5), 5), Some(0));
        assert_eq!(trend_part((i64::MIN, i64::MAX), i64::MAX), Some(11));
        assert_eq!(trend_part((10, 20), 99), Some(11));
    }

    #[test]
    fn times_of_one_period_have_one_name() {
        let time = Timestamp::parse("2026-10-14T23:59:59.999Z").map_or(0, |time| time.0);
        assert_eq!(period_name(GroupKey::Day, time, &Zone::UTC), "2026-10-14");
        assert_eq!(period_name(GroupKey::Week, time, &Zone::UTC), "2026-10-12");
        assert_eq!(period_name(GroupKey::Month, time, &Zone::UTC), "2026-10");
        assert_eq!(period_name(GroupKey::Hour, time, &Zone::UTC), "23");
        assert_eq!(period_name(GroupKey::Hour, -1, &Zone::UTC), "23");
    }
}
