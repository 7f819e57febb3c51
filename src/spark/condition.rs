//! Translates the request of a search into a condition of Spark's SQL.

use schemas::tool::search::SearchSort;
use spark_connect_proto::expression::literal::LiteralType;

use super::relation::Parameters;
use search::{
    Clause, FieldFilter, FilterField, Query, QueryPattern, ResultPosition, SearchRequest,
};

/// Letters that a letter beyond ASCII becomes in lower case: the Kelvin sign, and I with a dot.
const FOLDED_LETTERS: [char; 2] = ['k', 'i'];

/// A condition on rows of events.
pub(super) struct EventCondition {
    pub(super) sql: String,
    pub(super) parameters: Parameters,
    /// True if exactly the matching rows pass. Otherwise some others pass as well.
    pub(super) is_exact: bool,
}

impl EventCondition {
    /// Translates the filters of events and the text of a request. The filters of sessions are those of
    /// the objects that are read.
    pub(super) fn new(request: &SearchRequest<'_>) -> Self {
        let mut writer = ConditionWriter {
            parts: Vec::new(),
            parameters: Parameters::default(),
            is_exact: true,
        };
        writer.add_facts(request);
        writer.add_position(request);
        for filter in &request.query.filters {
            writer.add_filter(filter);
        }
        for clause in &request.query.clauses {
            writer.add_clause(clause, request.query);
        }
        let ConditionWriter { parts, parameters, is_exact } = writer;
        let sql = if parts.is_empty() { "true".to_owned() } else { parts.join(" AND ") };
        Self { sql, parameters, is_exact }
    }
}

/// Collects the parts of a condition, all of which must hold.
struct ConditionWriter {
    parts: Vec<String>,
    parameters: Parameters,
    is_exact: bool,
}

impl ConditionWriter {
    /// Adds the conditions on times, types, errors and copies.
    fn add_facts(&mut self, request: &SearchRequest<'_>) {
        let query = request.query;
        if !query.includes_replay {
            self.parts.push("NOT coalesce(is_replay, false)".to_owned());
        }
        if let Some(since) = request.since {
            let since = self.bind_time(since);
            self.parts.push(format!("timestamp >= {since}"));
        }
        if let Some(until) = query.until {
            let until = self.bind_time(until);
            self.parts.push(format!("timestamp < {until}"));
        }
        if let Some(errors) = query.errors {
            let errors = self.parameters.bind(LiteralType::Boolean(errors));
            self.parts.push(format!("coalesce(is_error, false) = {errors}"));
        }
        if !request.event_types.is_empty() {
            let mut types = Vec::new();
            for event_type in &request.event_types {
                types.push(self.parameters.bind_text(event_type.as_str()));
            }
            self.parts.push(format!("event_type IN ({})", types.join(", ")));
        }
    }

    /// Adds that rows come after the page before.
    fn add_position(&mut self, request: &SearchRequest<'_>) {
        let Some(after) = &request.after else { return };
        let ResultPosition { time, session_id, event_index } = after;
        let sort = request.query.sort;
        let id = self.parameters.bind_text(session_id.as_str());
        // The indexes of a position are complements if the oldest come first.
        let index = if sort == SearchSort::Oldest { !*event_index } else { *event_index };
        let index = self.parameters.bind(LiteralType::Long(index.into()));
        let beyond = match sort {
            SearchSort::Oldest => ">",
            SearchSort::Newest | SearchSort::Relevance => "<",
        };
        let later_row =
            format!("(session_id > {id} OR session_id = {id} AND event_index {beyond} {index})");
        let condition = match time {
            None => format!("(timestamp IS NULL AND {later_row})"),
            Some(key) => {
                let time = if sort == SearchSort::Oldest { !*key } else { *key };
                let time = self.bind_time(time);
                format!(
                    "(timestamp IS NULL OR timestamp {beyond} {time} OR timestamp = {time} AND {later_row})"
                )
            }
        };
        self.parts.push(condition);
    }

    /// Adds a filter by a field of events.
    fn add_filter(&mut self, filter: &FieldFilter) {
        let value = match filter.field {
            FilterField::Tool => "tool_name",
            FilterField::Model => "replace(model, '.', '-')",
            FilterField::Branch => "git_branch",
            FilterField::File => "replace(nullif(array_join(files, '\\n'), ''), '\\\\', '/')",
            // The objects that are read are those of the selected sessions.
            FilterField::Agent
            | FilterField::Project
            | FilterField::Label
            | FilterField::Machine
            | FilterField::User => return,
        };
        let mut any = Vec::new();
        for wanted in &filter.any {
            let wanted = self.parameters.bind_text(filter.fold(wanted).as_ref());
            any.push(format!("contains(lower({value}), {wanted})"));
        }
        let any = any.join(" OR ");
        let not = if filter.is_excluded { "NOT " } else { "" };
        self.parts.push(format!("{not}coalesce({any}, false)"));
        // Other programs lower some letters beyond ASCII in another way.
        self.is_exact &= filter.any.iter().all(|wanted| wanted.is_ascii());
    }

    /// Adds a clause. One that SQL cannot decide like the search itself lets all rows pass.
    fn add_clause(&mut self, clause: &Clause, query: &Query) {
        let mut any = Vec::new();
        for pattern in &clause.any {
            match self.translate_pattern(pattern, query.is_case_sensitive) {
                Some(sql) => any.push(sql),
                None => {
                    self.is_exact = false;
                    return;
                }
            }
        }
        let not = if clause.is_excluded { "NOT " } else { "" };
        self.parts.push(format!("{not}({})", any.join(" OR ")));
    }

    /// Returns the condition that a text contains an ASCII needle; `None` for other patterns.
    fn translate_pattern(
        &mut self,
        pattern: &QueryPattern,
        is_case_sensitive: bool,
    ) -> Option<String> {
        let QueryPattern::Text(needle) = pattern else { return None };
        if !needle.is_ascii() {
            return None;
        }
        let text = "coalesce(text, '')";
        if is_case_sensitive {
            let needle = self.parameters.bind_text(needle.as_str());
            return Some(format!("contains({text}, {needle})"));
        }
        let lowered = needle.to_ascii_lowercase();
        let has_folded = lowered.contains(FOLDED_LETTERS);
        let place = self.parameters.bind_text(lowered.as_str());
        let contains = format!("contains(lower({text}), {place})");
        if !has_folded {
            return Some(contains);
        }
        // Java's regular expressions fold ASCII only, like the search.
        let regex = format!("(?i)\\Q{}\\E", lowered.replace("\\E", "\\E\\\\E\\Q"));
        let regex = self.parameters.bind_text(regex);
        Some(format!("({contains} AND rlike({text}, {regex}))"))
    }

    fn bind_time(&mut self, micros: i64) -> String {
        self.parameters.bind(LiteralType::Timestamp(micros))
    }
}
