//! Defines the requested page of findings, and counts findings by check.

use std::collections::BTreeMap;

use schemas::envelope::Severity;
use schemas::limits;
use schemas::tool::analyze::{AnalyzeArgs, AnalyzeData, Check, CheckCount};

use crate::reply::budget::Budget;
use base::json_length::json_length;

/// The requested page of findings.
pub(super) struct FindingsPage<'a> {
    /// The arguments without the cursor.
    pub(super) args: &'a AnalyzeArgs,
    pub(super) cursor: Option<&'a str>,
    pub(super) limit: usize,
}

impl FindingsPage<'_> {
    pub(super) fn requested_checks(&self) -> Vec<Check> {
        self.args.checks.as_ref().map_or_else(|| Check::ALL.to_vec(), |checks| checks.to_vec())
    }

    /// Returns the space that remains for findings after the rest of the data.
    pub(super) fn remaining_budget(&self, data: &AnalyzeData) -> Budget {
        let frame = json_length(data);
        Budget::new(limits::ANSWER_BYTES.saturating_sub(frame))
    }
}

/// Counts the findings of each check.
pub(super) fn count_by_check(findings: impl Iterator<Item = (Check, Severity)>) -> Vec<CheckCount> {
    let mut counts: BTreeMap<Check, CheckCount> = BTreeMap::new();
    for (check, severity) in findings {
        let none = CheckCount { check, findings: 0, errors: 0, warnings: 0 };
        let count = counts.entry(check).or_insert(none);
        count.findings += 1;
        count.errors += usize::from(severity == Severity::Error);
        count.warnings += usize::from(severity == Severity::Warning);
    }
    counts.into_values().collect()
}
