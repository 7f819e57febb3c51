//! The definitions of the views over the live rows of a snapshot, and their documentation.
//!
//! Names that begin with an underscore are only for use by other views: the files as they are, with
//! the bookkeeping of the store, and the price table.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::ops::Range;
use std::sync::Arc;

use schemas::price::{PriceMode, PriceTable, Rate};
use schemas::session::{SessionRow, sum_costs};
use schemas::table::{Column, ColumnType, EVENTS, PROBLEMS, SESSIONS, Table};
use schemas::view::{EXAMPLES, SqlView, VIEWS, VIEWS_VERSION};
use serde::{Deserialize, Serialize};

use store::{Snapshot, StoreError};

/// The tables from which the views are built. The process of a query gets the rows of sessions from the
/// snapshot, and reads the others from files.
const STORED_TABLES: &[Table] = &[EVENTS, SESSIONS, PROBLEMS];

/// Name of the table of sessions in the process of a query.
pub(super) const SESSION_TABLE: &str = "_sessions";

/// Views that are computed from other views: name, SQL, and the views that the SQL names.
const COMPUTED_VIEWS: &[(&str, &str, &[&str])] = &[
    ("tool_calls", include_str!("views/tool_calls.sql"), &["events"]),
    ("turns", include_str!("views/turns.sql"), &["events"]),
    ("usage", include_str!("views/usage.sql"), &["events", "_prices"]),
    ("files", include_str!("views/files.sql"), &["tool_calls"]),
    ("lineage", include_str!("views/lineage.sql"), &["events", "sessions"]),
    ("problems", include_str!("views/problems.sql"), &["_problems", "_sessions"]),
];

/// The definition of a view.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct ViewDefinition {
    pub name: String,
    pub sql: String,
    /// Views that its SQL names.
    pub needs: Vec<String>,
}

impl ViewDefinition {
    fn new(name: &str, sql: String, needs: &[&str]) -> Self {
        let needs = needs.iter().map(|&name| name.to_owned()).collect();
        Self { name: name.to_owned(), sql, needs }
    }
}

/// Returns the definitions of all views over `snapshot`. `only` names the sessions whose rows the
/// views have.
pub(super) fn define_views(
    snapshot: &Snapshot,
    prices: &PriceTable,
    only: Option<&[String]>,
) -> Result<Vec<ViewDefinition>, StoreError> {
    let sessions = snapshot.read_rows()?;
    let mut all = Vec::new();
    for table in file_tables() {
        all.push(define_table_view(snapshot, table, only));
    }
    all.push(ViewDefinition::new("_prices", price_rows_sql(&sessions, prices), &[]));
    let costs = session_costs_sql(&sessions, prices);
    all.push(ViewDefinition::new("_session_costs", costs, &[]));
    for view in VIEWS {
        all.push(define_view(snapshot, view));
    }
    Ok(all)
}

/// Returns the tables whose rows are in files.
fn file_tables() -> impl Iterator<Item = &'static Table> {
    STORED_TABLES.iter().filter(|table| table.name != SESSIONS.name)
}

/// Defines a public view.
fn define_view(snapshot: &Snapshot, view: &SqlView) -> ViewDefinition {
    let computed = COMPUTED_VIEWS.iter().find(|(name, ..)| *name == view.name);
    if let Some((name, sql, needs)) = computed {
        return ViewDefinition::new(name, (*sql).to_owned(), needs);
    }
    match view.name {
        "events" => {
            ViewDefinition::new("events", public_columns_sql(view, "_events"), &["_events"])
        }
        "sessions" => {
            let local = snapshot.identity();
            let names = format!(
                "coalesce(machine, {}) AS machine, coalesce(user_name, {}) AS user_name",
                quote_text(&local.machine),
                quote_text(&local.user_name)
            );
            let tables = format!(
                "(SELECT * REPLACE ({names}) FROM _sessions) LEFT JOIN _session_costs USING (session_id)"
            );
            let sql = public_columns_sql(view, &tables);
            ViewDefinition::new("sessions", sql, &["_sessions", "_session_costs"])
        }
        name => ViewDefinition::new(name, label_rows_sql(snapshot, view), &[]),
    }
}

/// Returns the SQL of the labels and notes, which are stored outside the segments.
fn label_rows_sql(snapshot: &Snapshot, view: &SqlView) -> String {
    let mut rows = Vec::new();
    for row in snapshot.labels().rows() {
        let id = quote_text(row.session_id);
        let label = quote_or_null(row.label);
        let note = quote_or_null(row.note);
        rows.push(format!("({id}, {label}, {note}, make_timestamp({}))", row.updated_at));
    }
    if rows.is_empty() {
        return empty_view_sql(view.columns());
    }
    let columns: Vec<_> = view.columns().map(|column| column.name).collect();
    format!("SELECT * FROM (VALUES {}) AS labels({})", rows.join(", "), columns.join(", "))
}

/// Separates the values of a list that is passed to DuckDB as one text. Ids never have control
/// characters.
const LIST_SEPARATOR: &str = "\u{1f}";

/// Returns the SQL of the costs of sessions. The columns are texts that DuckDB splits: to parse a
/// list of 10,000 rows takes it half a second.
fn session_costs_sql(sessions: &[&Arc<SessionRow>], prices: &PriceTable) -> String {
    let mut ids = Vec::new();
    let mut costs = Vec::new();
    let mut logged = Vec::new();
    for row in sessions {
        let usage = row.model_usage();
        let cost = sum_costs(usage.iter().map(|entry| entry.cost(prices)));
        let cost_as_logged = sum_costs(usage.iter().map(|entry| entry.cost_as_logged));
        if cost.or(cost_as_logged).is_some() {
            ids.push(row.session_id.as_str());
            costs.push(cost.map_or_else(String::new, |cost| cost.to_string()));
            logged.push(cost_as_logged.map_or_else(String::new, |cost| cost.to_string()));
        }
    }
    if ids.is_empty() {
        return "SELECT NULL::VARCHAR AS session_id, NULL::DOUBLE AS cost_usd, \
                NULL::DOUBLE AS cost_as_logged WHERE false"
            .to_owned();
    }
    let ids = quote_text(&ids.join(LIST_SEPARATOR));
    let costs = quote_text(&costs.join(LIST_SEPARATOR));
    let logged = quote_text(&logged.join(LIST_SEPARATOR));
    format!(
        "SELECT unnest(string_split({ids}, chr(31))) AS session_id, \
         nullif(unnest(string_split({costs}, chr(31))), '')::DOUBLE AS cost_usd, \
         nullif(unnest(string_split({logged}, chr(31))), '')::DOUBLE AS cost_as_logged"
    )
}

/// Returns the tables that a query may read: those below every view whose name occurs anywhere in
/// the query's text.
pub(super) fn find_named_tables(sql: &str, definitions: &[ViewDefinition]) -> Vec<&'static str> {
    let sql = sql.to_ascii_lowercase();
    let names = definitions.iter().map(|definition| definition.name.as_str());
    let mut open: Vec<&str> = names.filter(|name| sql.contains(name)).collect();
    let mut reached = BTreeSet::new();
    while let Some(name) = open.pop() {
        if reached.insert(name) {
            let needs = definitions.iter().filter(|definition| definition.name == name);
            open.extend(needs.flat_map(|definition| &definition.needs).map(String::as_str));
        }
    }

    let mut tables = Vec::new();
    for table in STORED_TABLES {
        if reached.contains(format!("_{}", table.name).as_str()) {
            tables.push(table.name);
        }
    }
    tables
}

/// Returns the paths of the files that the views read.
pub(super) fn readable_files(snapshot: &Snapshot) -> Vec<String> {
    file_tables().flat_map(|table| table_paths(snapshot, table)).collect()
}

/// Returns the paths of the files with rows of a table.
fn table_paths(snapshot: &Snapshot, table: &Table) -> Vec<String> {
    let mut paths = Vec::new();
    for segment in snapshot.segments() {
        if segment.entry.file_entry(table.name).is_some() {
            paths.push(segment.table_path(table.name).to_string_lossy().into_owned());
        }
    }
    paths
}

/// Defines the view over the live rows of a table, with the columns of its files.
fn define_table_view(
    snapshot: &Snapshot,
    table: &Table,
    only: Option<&[String]>,
) -> ViewDefinition {
    let name = format!("_{}", table.name);
    let files: Vec<_> = table_paths(snapshot, table).iter().map(|path| quote_text(path)).collect();
    if files.is_empty() {
        return ViewDefinition::new(&name, empty_view_sql(table.columns.iter()), &[]);
    }
    let mut conditions = Vec::new();
    if table.name == EVENTS.name {
        conditions.extend(live_events_condition(snapshot));
    }
    if snapshot.is_restricted() {
        conditions.push(allowed_rows_condition(snapshot, table));
    }
    if let Some(only) = only
        && table.name != PROBLEMS.name
    {
        let ids: Vec<_> = only.iter().map(|id| quote_text(id)).collect();
        conditions.push(format!("session_id IN ({})", ids.join(", ")));
    }
    let mut sql = format!("SELECT * FROM read_parquet([{}])", files.join(", "));
    if !conditions.is_empty() {
        sql.push_str(&format!(" WHERE {}", conditions.join(" AND ")));
    }
    ViewDefinition::new(&name, sql, &[])
}

/// Returns the condition that selects the rows of the sessions of a restricted snapshot.
fn allowed_rows_condition(snapshot: &Snapshot, table: &Table) -> String {
    let is_by_path = table.name == PROBLEMS.name;
    let mut values = Vec::new();
    for row in snapshot.sessions() {
        values.push(quote_text(if is_by_path { &row.source_path } else { &row.session_id }));
    }
    if values.is_empty() {
        return "false".to_owned();
    }
    let column = if is_by_path { "path" } else { "session_id" };
    format!("{column} IN ({})", values.join(", "))
}

/// Returns the condition that excludes superseded rows: older rows of sessions that were re-read.
/// `None` if there are no such rows.
fn live_events_condition(snapshot: &Snapshot) -> Option<String> {
    let mut dead = Vec::new();
    for row in snapshot.superseded_sessions() {
        let id = quote_text(&row.session_id);
        dead.push(format!("(session_id = {id} AND segment < {})", row.live_from));
    }
    if dead.is_empty() { None } else { Some(format!("NOT ({})", dead.join(" OR "))) }
}

/// Returns the SQL of a view without rows.
fn empty_view_sql(columns: impl Iterator<Item = &'static Column>) -> String {
    let nulls: Vec<_> = columns
        .map(|column| format!("NULL::{} AS {}", column.kind.sql_type(), column.name))
        .collect();
    format!("SELECT {} WHERE false", nulls.join(", "))
}

/// Returns the SQL that selects the public columns from a table and the columns computed from them.
fn public_columns_sql(view: &SqlView, table: &str) -> String {
    let columns: Vec<_> = view
        .columns()
        .map(|column| match (column.name, column.kind) {
            ("event_id", _) => "concat(session_id, ':', event_index) AS event_id".to_owned(),
            ("duration_ms", _) if view.name == "sessions" => {
                "(epoch_us(ended_at) - epoch_us(started_at)) // 1000 AS duration_ms".to_owned()
            }
            // Plain timestamps in UTC: displaying timestamps with a zone would need ICU.
            (name, ColumnType::Timestamp) => format!("make_timestamp(epoch_us({name})) AS {name}"),
            (name, _) => name.to_owned(),
        })
        .collect();
    format!("SELECT {} FROM {table}", columns.join(", "))
}

/// Returns the SQL of the rates of all models that the sessions name, in the modes of service in
/// which they were used. Each row applies to prompts of more than `above` and at most `up_to` tokens.
fn price_rows_sql(sessions: &[&Arc<SessionRow>], prices: &PriceTable) -> String {
    let mut priced = BTreeSet::new();
    for row in sessions {
        priced.extend(row.model.clone().map(|model| (model, PriceMode::default())));
        let entries = row.model_usage().into_iter();
        priced.extend(entries.filter_map(|entry| Some((entry.model?, entry.mode))));
    }
    let mut rows = Vec::new();
    for (model, mode) in &priced {
        let mut after = FIRST_DAY;
        for until in prices.last_days(model) {
            let days = (after, until.unwrap_or(LAST_DAY));
            after = days.1;
            let Some(rate) = prices.rate_in_mode(model, mode, until) else { continue };
            let border = rate.long.as_ref().map_or(i64::MAX, |long| long.above_tokens);
            rows.push(price_row_sql(model, mode, days, -1..border, &rate, false));
            if rate.long.is_some() {
                rows.push(price_row_sql(model, mode, days, border..i64::MAX, &rate, true));
            }
        }
    }
    // A VALUES list cannot be empty.
    if rows.is_empty() {
        let days = (LAST_DAY, LAST_DAY);
        rows.push(price_row_sql("", &PriceMode::default(), days, 0..0, &Rate::default(), false));
    }
    let columns = "model, service_tier, speed, inference_geo, after, until, above, up_to, input, \
                   output, cache_read, cache_write_5m, cache_write_1h, web_search_per_1000";
    format!("SELECT * FROM (VALUES {}) prices({columns})", rows.join(", "))
}

/// Days before and after all prices.
const FIRST_DAY: &str = "0001-01-01";
const LAST_DAY: &str = "9999-12-31";

/// Returns the SQL of the rates after one day and until another, for prompts of more tokens than
/// `prompt.start`, and at most `prompt.end`.
fn price_row_sql(
    model: &str,
    mode: &PriceMode,
    (after, until): (&str, &str),
    prompt: Range<i64>,
    rate: &Rate,
    is_long: bool,
) -> String {
    let mut cells = vec![quote_text(model)];
    for word in [&mode.service_tier, &mode.speed, &mode.inference_geo] {
        cells.push(quote_text(word.as_deref().unwrap_or("")));
    }
    for day in [after, until] {
        cells.push(format!("DATE '{day}'"));
    }
    for border in [prompt.start, prompt.end] {
        cells.push(format!("{border}::BIGINT"));
    }
    for rate in rate.rates(is_long).into_iter().chain([rate.web_search_per_1000]) {
        cells.push(rate.map_or("NULL::DOUBLE".to_owned(), |rate| format!("'{rate}'::DOUBLE")));
    }
    format!("({})", cells.join(", "))
}

/// Quotes a text as an SQL string.
pub(super) fn quote_text(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

/// Quotes a text as an SQL string; `None` is NULL.
fn quote_or_null(text: Option<&str>) -> String {
    text.map_or_else(|| "NULL".to_owned(), quote_text)
}

/// Returns the views, their columns and the examples as text.
pub fn schema_text() -> String {
    let mut out = format!("Views, version {VIEWS_VERSION}. Times are UTC.\n\n");
    for view in VIEWS {
        let _ = writeln!(out, "{}: {}", view.name, view.doc);
        for column in view.columns() {
            let _ = writeln!(
                out,
                "    {:<22} {:<10} {}",
                column.name,
                column.kind.sql_type(),
                column.doc
            );
        }
        out.push('\n');
    }
    out.push_str("Examples\n\n");
    for example in EXAMPLES {
        let _ = writeln!(out, "-- {}\n{}\n", example.question, example.sql);
    }
    out
}
