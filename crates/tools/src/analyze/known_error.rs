//! Finds how an error was fixed before, given its text as the terminal printed it.
//!
//! An error is the same if its signature is: the line that names it, without the parts that vary.
//! The search index yields the sessions with the words of the line, so that only these are read.
//! If no session has the same error, similar ones are looked for in the newest sessions, and if there
//! are none, prompts into which the error was pasted.

use std::cmp::Reverse;
use std::collections::HashSet;

use schemas::tool::analyze::{AnalyzeArgs, AnalyzeData, Check};
use schemas::{ErrorCode, ToolError};

use super::error_summary::named_errors;
use super::failed_rows::plan_reads;
use super::page::{FindingsPage, count_by_check};
use super::past_rows::{HistoryScope, find_past_rows, words_of};
use super::pasted_error::find_pasted_errors;
use super::recent_sessions::RecentSessions;
use super::recurring::{FailureFilter, RecurringFailure, group_failures};
use crate::error::store_error;
use crate::reply::answer::{Reply, RowTotal};
use crate::reply::budget::{Budget, echoed_name};
use crate::reply::call::Call;
use crate::reply::interface::Interface;
use crate::reply::time_range::TimeRange;
use store::{RowFacts, Snapshot};

/// Maximum number of errors of a text that are looked for.
const MAX_ERRORS: usize = 4;

/// Maximum number of failures with the words of an error whose sessions are read.
const MAX_HITS: usize = 200;

/// Number of findings, unless the call gives a limit.
const USUAL_FINDINGS: usize = 3;

/// Maximum size of the findings in bytes, so that an answer takes less than 2,000 tokens.
const MAX_FINDINGS_BYTES: usize = 6_000;

/// Minimum number of words of an error for which similar ones are looked for.
const MIN_SIMILAR_WORDS: usize = 3;

/// Minimum similarity of a similar error: the share of the words that both have.
const MIN_SIMILARITY: f64 = 0.8;

/// Minimum size in bytes of a word that is searched for.
const MIN_WORD_BYTES: usize = 3;

/// What to look for.
struct ErrorQuery {
    /// The signatures of the errors that the text names; empty if there is no text.
    signatures: Vec<String>,
    filter: FailureFilter,
}

impl ErrorQuery {
    fn parse(args: &AnalyzeArgs) -> Result<Self, ToolError> {
        let given = args.query.as_deref().unwrap_or_default().trim();
        let mut text = given;
        let mut file = None;
        while let Some(rest) = text.strip_prefix("file:") {
            let quoted = rest.strip_prefix('"').and_then(|rest| rest.split_once('"'));
            let (path, rest) = quoted
                .or_else(|| rest.split_once(char::is_whitespace))
                .unwrap_or((rest.trim_matches('"'), ""));
            file = Some(path.to_lowercase());
            text = rest.trim_start();
        }
        let signatures = named_errors(text, MAX_ERRORS);
        let tool = args.tool.as_deref().map(|tool| tool.trim().to_lowercase());
        let filter = FailureFilter {
            tool: tool.filter(|tool| !tool.is_empty()),
            file: file.filter(|path| !path.is_empty()),
        };
        if signatures.is_empty() && filter.tool.is_none() && filter.file.is_none() {
            let message = format!(
                "query: '{}' has no error to search for. Paste the error as the terminal shows it, \
                or name a tool",
                echoed_name(given)
            );
            return Err(ToolError::new(ErrorCode::InvalidQuery, message));
        }
        Ok(Self { signatures, filter })
    }

    /// Returns the position of a signature among the wanted ones, whatever its case, or `None` if it is not one of them.
    /// A signature of a line that says little begins with the program.
    fn rank(&self, signature: &str) -> Option<usize> {
        if self.signatures.is_empty() {
            return Some(0);
        }
        let signature = signature.to_lowercase();
        self.signatures.iter().position(|wanted| {
            let who = signature.strip_suffix(wanted.to_lowercase().as_str());
            who.is_some_and(|who| who.is_empty() || who.ends_with(": "))
        })
    }

    /// Returns the similarity of a signature to the most similar of the wanted ones, 0 to 1.
    fn similarity(&self, signature: &str) -> f64 {
        let words = significant_words(signature);
        let wanted = self.signatures.iter().map(|wanted| significant_words(wanted));
        let enough = wanted.filter(|wanted| wanted.len() >= MIN_SIMILAR_WORDS);
        enough.map(|wanted| shared_part(&wanted, &words)).fold(0.0, f64::max)
    }
}

/// Returns the words of a signature that are not placeholders.
fn significant_words(signature: &str) -> HashSet<String> {
    let words = signature.split(|c: char| !c.is_alphanumeric() && !"<>_".contains(c));
    let telling = words.filter(|word| word.len() >= MIN_WORD_BYTES && !word.contains(['<', '>']));
    telling.map(str::to_lowercase).collect()
}

/// Returns the share of words that two sets have in common.
fn shared_part(a: &HashSet<String>, b: &HashSet<String>) -> f64 {
    let both = a.intersection(b).count() as f64;
    2.0 * both / (a.len() + b.len()).max(1) as f64
}

/// Finds the errors of the query in the sessions at these positions.
pub(super) fn run(
    snapshot: &Snapshot,
    wanted: &HashSet<usize>,
    range: TimeRange,
    page: &FindingsPage<'_>,
    call: &Call<'_>,
    interface: Interface,
) -> Result<Reply<AnalyzeData>, ToolError> {
    let query = ErrorQuery::parse(page.args)?;
    let recent = RecentSessions::select(snapshot, wanted, range.until, call.analyzed_events);
    let same = find_same_errors(snapshot, wanted, &recent, range, &query, call)?;
    let is_same = !same.failures.is_empty();
    let mut is_limited = same.is_limited;
    let mut found = same.failures;
    if !is_same && !query.signatures.is_empty() {
        found = find_similar_errors(snapshot, &recent, range, &query, call)?;
        is_limited = !recent.is_complete();
    }
    let pasted = if found.is_empty() {
        find_pasted_errors(snapshot, wanted, range, &query.signatures)?
    } else {
        Vec::new()
    };
    let severities = found.iter().map(|group| group.severity);
    let severities = severities.chain(pasted.iter().map(|finding| finding.severity));
    let counts = count_by_check(severities.map(|severity| (Check::Failures, severity)));
    let total = found.len() + pasted.len();
    let limit = page.args.limit.map_or(USUAL_FINDINGS, |_| page.limit);
    let mut data = AnalyzeData {
        session: None,
        sessions: if is_limited { recent.sessions.len() } else { wanted.len() },
        looked_for: query.signatures,
        counts,
        context: None,
        tools: Vec::new(),
        findings: Vec::new(),
    };
    let mut budget = Budget::new(MAX_FINDINGS_BYTES);
    data.findings.extend(pasted.into_iter().take(limit).take_while(|finding| budget.take(finding)));
    for group in found.iter().take(limit) {
        let mut finding = group.describe_group(snapshot)?;
        if !is_same {
            finding.reason = format!("A similar error. {}", finding.reason);
        }
        if !budget.take(&finding) {
            break;
        }
        data.findings.push(finding);
    }

    let returned = data.findings.len();
    let hint = describe_next_step(interface, &data, total);
    let mut reply = Reply::new(data, returned);
    reply.total = Some(RowTotal::Exact(total));
    if is_limited {
        recent.limit_reply(&mut reply, total, interface);
        reply.scope = Some(recent.describe());
    }
    reply.hint = Some(hint);
    Ok(reply)
}

/// Returns the next step.
fn describe_next_step(interface: Interface, data: &AnalyzeData, total: usize) -> String {
    if data.findings.is_empty() {
        return format!(
            "No failure in {} sessions has this error. {} finds its words anywhere, also in output that was not marked as failed.",
            data.sessions,
            interface.tool_name("search_events")
        );
    }
    let event = interface.format_call("get_event_details", &[("event_ids", "[...]")]);
    if data.findings.len() < total {
        return format!(
            "{event} gives the full text; limit {} shows more errors.",
            total.min(schemas::limits::FINDINGS_LIMIT_MAX as usize)
        );
    }
    format!("{event} gives the full text of the failure, its fix or an edit.")
}

/// Failures with an error of the query.
struct SameErrors {
    failures: Vec<RecurringFailure>,
    /// True if only the newest sessions were read, and there are older ones.
    is_limited: bool,
}

/// Finds the failures with a signature of the query: those that were fixed first, then in the
/// order of the query, then newest first. Without a word to search for, only the newest sessions are
/// read.
fn find_same_errors(
    snapshot: &Snapshot,
    wanted: &HashSet<usize>,
    recent: &RecentSessions,
    range: TimeRange,
    query: &ErrorQuery,
    call: &Call<'_>,
) -> Result<SameErrors, ToolError> {
    let mut narrowed = HashSet::new();
    let mut needs_recent = query.signatures.is_empty();
    for signature in &query.signatures {
        match sessions_with_words(snapshot, wanted, signature)? {
            Some(sessions) => narrowed.extend(sessions),
            None => needs_recent = true,
        }
    }
    if needs_recent {
        narrowed.extend(recent.sessions.iter().copied());
    }
    let rank = |signature: &str| query.rank(signature);
    let mut found = find_groups(snapshot, &narrowed, range, &query.filter, call, &rank)?;
    found
        .sort_by_key(|(rank, group)| (Reverse(group.has_fix()), *rank, Reverse(group.last_time())));
    Ok(SameErrors {
        failures: found.into_iter().map(|(_, group)| group).collect(),
        is_limited: needs_recent && !recent.is_complete(),
    })
}

/// Finds the failures in the newest sessions whose signature is similar to one of the query, the most
/// similar first.
fn find_similar_errors(
    snapshot: &Snapshot,
    recent: &RecentSessions,
    range: TimeRange,
    query: &ErrorQuery,
    call: &Call<'_>,
) -> Result<Vec<RecurringFailure>, ToolError> {
    let similarity = |signature: &str| {
        Some(query.similarity(signature)).filter(|similarity| *similarity >= MIN_SIMILARITY)
    };
    let sessions = &recent.sessions;
    let mut similar = find_groups(snapshot, sessions, range, &query.filter, call, &similarity)?;
    similar.sort_by(|(a, x), (b, y)| {
        let fixed = y.has_fix().cmp(&x.has_fix());
        fixed.then(b.total_cmp(a)).then(y.last_time().cmp(&x.last_time()))
    });
    Ok(similar.into_iter().map(|(_, group)| group).collect())
}

/// Finds the failures in these sessions by signature, those for which `rate` returns a value, with it.
fn find_groups<K>(
    snapshot: &Snapshot,
    sessions: &HashSet<usize>,
    range: TimeRange,
    filter: &FailureFilter,
    call: &Call<'_>,
    rate: &dyn Fn(&str) -> Option<K>,
) -> Result<Vec<(K, RecurringFailure)>, ToolError> {
    let plan = plan_reads(snapshot, sessions, range).map_err(store_error)?;
    let groups = group_failures(snapshot, &plan.tasks, range, filter, call)?.into_iter();
    let rated = groups.filter_map(|(signature, seen)| Some((rate(&signature)?, seen)));
    Ok(rated.map(|(rate, seen)| (rate, RecurringFailure::from_failures(seen))).collect())
}

/// Returns the sessions with a failure whose text may have the words of a signature; `None` if it has
/// no word to search for.
fn sessions_with_words(
    snapshot: &Snapshot,
    wanted: &HashSet<usize>,
    signature: &str,
) -> Result<Option<HashSet<usize>>, ToolError> {
    let words = words_of(signature);
    if words.is_empty() {
        return Ok(None);
    }
    let scope = HistoryScope { sessions: wanted.clone(), until: i64::MAX };
    let is_failure = |fact: &RowFacts| fact.is_error == Some(true);
    let rows =
        find_past_rows(snapshot, &scope, &words, &is_failure, MAX_HITS).map_err(store_error)?;
    Ok(Some(rows.iter().map(|row| row.session).collect()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(query: &str) -> ErrorQuery {
        let args = AnalyzeArgs { query: Some(query.to_owned()), ..AnalyzeArgs::default() };
        ErrorQuery::parse(&args).expect("has an error")
    }

    #[test]
    fn the_errors_of_a_terminal_are_found_and_a_file_is_split_off() {
        let pasted = "$ cargo test\n   Compiling harbor v0.9.2\n\u{1b}[31merror[E0502]\u{1b}[0m: cannot borrow `x` as mutable\n --> src/a.rs:3:5\n\nerror: could not compile `harbor` (lib) due to 1 previous error";
        let query = parse(pasted);
        assert_eq!(query.signatures, ["error[E0502]: cannot borrow <name> as mutable"]);
        assert_eq!(query.rank("error[E0502]: cannot borrow <name> as mutable"), Some(0));
        assert_eq!(query.rank("error[E0502]: cannot move <name>"), None);

        let of_file = parse("file:src/a.rs boom happened");
        assert_eq!(of_file.filter.file.as_deref(), Some("src/a.rs"));
        assert_eq!(of_file.signatures, ["boom happened"]);
        assert_eq!(of_file.rank("make: boom happened"), Some(0));
        let quoted = parse("file:\"src/my file.rs\" boom happened");
        assert_eq!(quoted.filter.file.as_deref(), Some("src/my file.rs"));
        assert_eq!(quoted.signatures, ["boom happened"]);
        assert!(ErrorQuery::parse(&AnalyzeArgs::default()).is_err());
    }

    #[test]
    fn similar_errors_share_most_of_their_words() {
        let query = parse("error: linker command failed with exit status 1");
        assert!(
            query.similarity("error: linker command failed with exit code <n>") > MIN_SIMILARITY
        );
        assert!(query.similarity("error: test failed") < MIN_SIMILARITY);
    }
}
