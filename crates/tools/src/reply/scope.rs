//! Describes which sessions an answer covers, and why filters match none.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use schemas::{Provider, Timestamp};

use super::budget::echoed_name;
use super::session_census::sessions_at;
pub use super::session_census::{Coverage, SessionCensus, is_part_of_conversation};
use super::session_filter::{origin_filter, session_filter};
use super::time_range::TimeRange;
use base::numbers::{count_of, list_counts};
use base::sanitize::clean_text;
use search::{FilterField, UnmatchedFilter};
use store::{SessionSummary, Snapshot};

/// Minimum Jaro-Winkler similarity of a name that was probably meant.
const MIN_SIMILARITY: f64 = 0.8;

/// Maximum number of names that a message suggests.
const MAX_SUGGESTED_NAMES: usize = 3;

/// Characters of a name that are compared with others.
const MAX_COMPARED_CHARS: usize = 200;

/// The filters of a call that select sessions; `None` selects all.
#[derive(Debug, Clone, Copy, Default)]
pub struct SessionFilters<'a> {
    pub project: Option<&'a str>,
    pub provider: Option<Provider>,
    /// A part of the name of the machine that wrote the log.
    pub machine: Option<&'a str>,
    /// A part of the name of the user who ran the agent.
    pub user: Option<&'a str>,
    /// The time at or after which a session ended.
    pub since: Option<Timestamp>,
    /// Sessions must begin before this time.
    pub until: Option<Timestamp>,
    pub label: Option<&'a str>,
    /// The position of the only requested session.
    pub session: Option<usize>,
}

impl<'a> SessionFilters<'a> {
    /// Returns the filters of most tools.
    pub fn new(project: Option<&'a str>, provider: Option<Provider>, range: TimeRange) -> Self {
        let TimeRange { since, until } = range;
        Self { project, provider, since, until, ..Self::default() }
    }
}

impl SessionFilters<'_> {
    /// Returns the filter by the values of a session's row: all filters but those by label and id.
    pub fn row_filter(&self, snapshot: &Snapshot) -> impl Fn(&SessionSummary) -> bool {
        let since = self.since.map(|since| since.0);
        let by_place = session_filter(self.project, self.provider, since);
        let by_origin = origin_filter(snapshot, self.machine, self.user);
        let range = TimeRange { since: self.since, until: self.until };
        move |row| by_place(row) && by_origin(row) && range.begins_in_time(row)
    }

    /// Counts the sessions that pass, by class.
    pub fn count_sessions(&self, snapshot: &Snapshot) -> SessionCensus {
        SessionCensus::of(snapshot, self.find_matching(snapshot).as_deref())
    }

    /// Counts the sessions that pass.
    fn count_matching(&self, snapshot: &Snapshot) -> usize {
        self.find_matching(snapshot).map_or(snapshot.sessions().len(), |matching| matching.len())
    }

    /// True if every session passes.
    fn selects_all(&self) -> bool {
        let Self { project, provider, machine, user, since, until, label, session } = self;
        let has_name = [project, machine, user, label].into_iter().any(Option::is_some);
        let has_time = since.is_some() || until.is_some();
        !has_name && !has_time && provider.is_none() && session.is_none()
    }

    /// Returns the positions of the sessions that pass, ascending; `None` means all.
    pub fn find_matching(&self, snapshot: &Snapshot) -> Option<Vec<usize>> {
        if self.selects_all() {
            return None;
        }
        let passes = self.row_filter(snapshot);
        let matches = |at: &usize| {
            let session = &snapshot.sessions()[*at];
            passes(session)
                && self.label.is_none_or(|label| has_label(snapshot, session.id(), label))
        };
        let candidates = match self.session {
            Some(session) => session..session + 1,
            None => 0..snapshot.sessions().len(),
        };
        Some(candidates.filter(matches).collect())
    }

    /// Describes the sessions that an answer covers, and how many of those that pass the filters it
    /// leaves out.
    pub fn describe_scope(&self, snapshot: &Snapshot, coverage: Coverage) -> String {
        self.describe_matching(snapshot, self.find_matching(snapshot).as_deref(), coverage)
    }

    /// Describes the sessions like [`Self::describe_scope`], given those that
    /// [`Self::find_matching`] returned.
    pub fn describe_matching(
        &self,
        snapshot: &Snapshot,
        matching: Option<&[usize]>,
        coverage: Coverage,
    ) -> String {
        let of = self.describe_filters(snapshot, matching);
        if coverage == Coverage::All {
            let total = matching.map_or(snapshot.sessions().len(), <[usize]>::len);
            return format!("{}{of}", count_of(total, "session"));
        }
        SessionCensus::of(snapshot, matching).describe(&of, coverage)
    }

    /// Describes the filters: ` of project 'harbor' and provider codex`; empty without filters.
    fn describe_filters(&self, snapshot: &Snapshot, matching: Option<&[usize]>) -> String {
        if let Some(row) = self.session.and_then(|at| snapshot.sessions().get(at)) {
            return format!(" ({})", row.id());
        }
        let mut parts = Vec::new();
        if let Some(project) = self.project.filter(|project| !project.trim().is_empty()) {
            let matched = describe_projects(snapshot, matching);
            parts.push(format!("project '{}'{matched}", echoed_name(project)));
        }
        if let Some(provider) = self.provider {
            parts.push(format!("agent {provider}"));
        }
        if let Some(machine) = self.machine {
            parts.push(format!("machine '{}'", echoed_name(machine)));
        }
        if let Some(user) = self.user {
            parts.push(format!("user '{}'", echoed_name(user)));
        }
        if let Some(label) = self.label {
            parts.push(format!("label '{}'", echoed_name(label)));
        }
        let mut text =
            if parts.is_empty() { String::new() } else { format!(" of {}", parts.join(" and ")) };
        if let Some(since) = self.since {
            text.push_str(&format!(" active since {since}"));
        }
        if let Some(until) = self.until {
            text.push_str(&format!(" begun before {until}"));
        }
        text
    }

    /// Explains, in sentences, which filter no session passes, with the nearest names that exist.
    /// If each filter alone is passed by some session, it says how many pass each. Returns `None` if
    /// a session passes all filters.
    pub fn explain_none(&self, snapshot: &Snapshot) -> Option<String> {
        if self.count_matching(snapshot) > 0 {
            return None;
        }
        let mut sentences = Vec::new();
        let mut counts = Vec::new();
        let mut explain =
            |name: &str, alone: SessionFilters<'_>, unknown: &dyn Fn() -> String| match alone
                .count_matching(snapshot)
            {
                0 => sentences.push(unknown()),
                count => counts.push(format!("{name} matches {}", count_of(count, "session"))),
            };
        let none = SessionFilters::default;
        if let Some(project) = self.project {
            let alone = SessionFilters { project: Some(project), ..none() };
            explain("project", alone, &|| unknown_project(snapshot, project));
        }
        if let Some(provider) = self.provider {
            let alone = SessionFilters { provider: Some(provider), ..none() };
            explain("provider", alone, &|| unused_provider(snapshot, provider));
        }
        if let Some(machine) = self.machine {
            let alone = SessionFilters { machine: Some(machine), ..none() };
            explain("machine", alone, &|| unknown_machine(snapshot, machine));
        }
        if let Some(user) = self.user {
            let alone = SessionFilters { user: Some(user), ..none() };
            explain("user", alone, &|| unknown_user(snapshot, user));
        }
        if let Some(label) = self.label {
            let alone = SessionFilters { label: Some(label), ..none() };
            explain("label", alone, &|| unknown_label(snapshot, label));
        }
        if let Some(since) = self.since {
            let alone = SessionFilters { since: Some(since), ..none() };
            explain("since", alone, &|| format!("No session was active since {since}."));
        }
        if let Some(until) = self.until {
            let alone = SessionFilters { until: Some(until), ..none() };
            explain("until", alone, &|| format!("No session began before {until}."));
        }
        if sentences.is_empty() && counts.len() > 1 {
            sentences.push(format!("No session passes all filters: {}.", counts.join(", ")));
        }
        Some(sentences.join(" ")).filter(|text| !text.is_empty())
    }
}

/// Describes the projects of sessions that were selected by a part of a name, if there are several:
/// ` (cli 29, kimi-cli 15 and 3 others)`.
fn describe_projects(snapshot: &Snapshot, matching: Option<&[usize]>) -> String {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for row in sessions_at(snapshot, matching) {
        *counts.entry(row.origin.project.as_deref().unwrap_or("without a project")).or_default() +=
            1;
    }
    if counts.len() < 2 {
        return String::new();
    }
    let mut largest_first: Vec<(&str, usize)> = counts.into_iter().collect();
    largest_first.sort_by_key(|(_, count)| Reverse(*count));
    let shown = largest_first.iter().take(MAX_SUGGESTED_NAMES);
    let shown: Vec<_> =
        shown.map(|(name, count)| format!("{} {count}", echoed_name(&clean_text(name)))).collect();
    let others = match largest_first.len() - shown.len() {
        0 => String::new(),
        others => format!(" and {others} others"),
    };
    format!(" ({}{others})", shown.join(", "))
}

/// Returns true if a session has a label.
pub fn has_label(snapshot: &Snapshot, session_id: &str, label: &str) -> bool {
    let labels = snapshot.labels().session_labels(session_id);
    labels.is_some_and(|labels| labels.has_label(label.trim()))
}

fn unknown_project(snapshot: &Snapshot, project: &str) -> String {
    let rows = snapshot.sessions().iter();
    let names: BTreeSet<&str> = rows.filter_map(|row| row.origin.project.as_deref()).collect();
    let near = suggest_names(project, names.into_iter());
    format!("No session has project '{}'{near}", echoed_name(project))
}

fn unused_provider(snapshot: &Snapshot, provider: Provider) -> String {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for row in snapshot.sessions() {
        *counts.entry(row.provider.as_str()).or_default() += 1;
    }
    format!("No session is of the agent '{provider}'; sessions by agent: {}.", list_counts(&counts))
}

fn unknown_machine(snapshot: &Snapshot, machine: &str) -> String {
    let names: BTreeSet<&str> =
        snapshot.sessions().iter().map(|row| snapshot.machine_of(row)).collect();
    let near = suggest_names(machine, names.into_iter());
    format!("No session has machine '{}'{near}", echoed_name(machine))
}

fn unknown_user(snapshot: &Snapshot, user: &str) -> String {
    let names: BTreeSet<&str> =
        snapshot.sessions().iter().map(|row| snapshot.user_of(row)).collect();
    let near = suggest_names(user, names.into_iter());
    format!("No session has user '{}'{near}", echoed_name(user))
}

fn unknown_label(snapshot: &Snapshot, label: &str) -> String {
    let names: BTreeSet<&str> = snapshot.labels().rows().filter_map(|row| row.label).collect();
    let near = suggest_names(label, names.into_iter());
    format!("No session has label '{}'{near}", echoed_name(label))
}

/// Explains a qualifier that excludes every event, with the nearest values that exist.
pub fn explain_unmatched_filter(filter: &UnmatchedFilter) -> String {
    let holder = match filter.field {
        FilterField::Agent
        | FilterField::Project
        | FilterField::Label
        | FilterField::Machine
        | FilterField::User => "session",
        FilterField::Tool | FilterField::Model | FilterField::Branch | FilterField::File => "event",
    };
    let wanted: Vec<_> =
        filter.wanted.iter().map(|wanted| format!("'{}'", echoed_name(wanted))).collect();
    let first = filter.wanted.first().map_or("", String::as_str);
    let near = suggest_names(first, filter.known.iter().map(String::as_str));
    format!("No {holder} has {} {}{near}", filter.field.as_str(), wanted.join(" or "))
}

/// Returns the beginning of a name in lower case. Comparing two names takes the product of their lengths,
/// and each may be as long as a call or a log makes it.
fn compared_form(name: &str) -> String {
    let end = name.char_indices().nth(MAX_COMPARED_CHARS).map_or(name.len(), |(at, _)| at);
    name[..end].to_lowercase()
}

/// Returns the end of a sentence that suggests the names most similar to `wanted`.
fn suggest_names<'n>(wanted: &str, names: impl Iterator<Item = &'n str>) -> String {
    let wanted = wanted.trim();
    // Of a path, the last folder is compared as well.
    let last = wanted.trim_end_matches(['/', '\\']).rsplit(['/', '\\']).next().unwrap_or(wanted);
    let [wanted, last] = [wanted, last].map(compared_form);
    let mut rated: Vec<(f64, &str)> = names
        .map(|name| {
            let known = compared_form(name);
            let whole = strsim::jaro_winkler(&wanted, &known);
            (whole.max(strsim::jaro_winkler(&last, &known)), name)
        })
        .collect();
    rated.sort_by(|(a, x), (b, y)| b.total_cmp(a).then_with(|| x.cmp(y)));
    let Some((best, _)) = rated.first() else { return ", and none has any.".to_owned() };

    let is_meant = *best >= MIN_SIMILARITY;
    let shown = rated.iter().filter(|(similarity, _)| !is_meant || *similarity >= MIN_SIMILARITY);
    let shown: Vec<_> = shown
        .take(MAX_SUGGESTED_NAMES)
        .map(|(_, name)| format!("'{}'", echoed_name(&clean_text(name))))
        .collect();
    let shown = shown.join(", ");
    if is_meant {
        format!("; did you mean {shown}?")
    } else {
        format!("; the nearest are {shown}.")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn similar_names_are_meant_and_others_are_only_near() {
        let names = ["harbor", "harbor-ui", "pier"];
        assert_eq!(
            suggest_names("harbour", names.into_iter()),
            "; did you mean 'harbor', 'harbor-ui'?"
        );
        assert_eq!(suggest_names("/home/m/Pierr/", names.into_iter()), "; did you mean 'pier'?");
        let far = suggest_names("zzz", names.into_iter());
        assert!(far.starts_with("; the nearest are '"), "{far}");
        assert_eq!(suggest_names("x", std::iter::empty()), ", and none has any.");
    }

    #[test]
    fn the_classes_add_up() {
        let census =
            SessionCensus { total: 10, conversations: 5, subagents: 2, copies: 2, empty: 1 };
        assert_eq!(census.describe(" of project 'x'", Coverage::All), "10 sessions of project 'x'");
        assert_eq!(
            census.describe("", Coverage::OwnConversations),
            "5 of 10 sessions; left out: 2 of subagents, 2 copied from others, 1 without a conversation"
        );
        assert_eq!(
            census.describe("", Coverage::OwnEvents),
            "8 of 10 sessions; left out: 2 copied from others"
        );
        assert_eq!(
            census.describe_classes(),
            "5 conversations, 2 of subagents, 2 copied from others, 1 without a conversation"
        );
        let one = SessionCensus { total: 1, conversations: 1, ..SessionCensus::default() };
        assert_eq!(one.describe("", Coverage::OwnConversations), "1 session");
    }
}
