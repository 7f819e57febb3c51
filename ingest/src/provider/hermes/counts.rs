//! Reads the token counts of a session from the database of Hermes. They are sums: one for each
//! model and task of the session, or in older versions one for the session.
//!
//! The sum of a model is distributed over the responses that it wrote, by their lengths. Sums of
//! other tasks, such as titles and compressions, have no response in the log.

use rusqlite::{Connection, OptionalExtension, Result, Row};
use serde_json::{Map, Value as Json};

use crate::provider::shared::database::cells::{
    cell_integer, cell_json, cell_micros, cell_text, read_columns,
};

/// The columns with token counts. Input is without the cache, output with reasoning.
pub(super) const TOKEN_COLUMNS: &[&str] = &[
    "input_tokens",
    "output_tokens",
    "cache_read_tokens",
    "cache_write_tokens",
    "reasoning_tokens",
];

/// The table of counts by model and task.
pub(super) const MODEL_TABLE: &str = "session_model_usage";

/// Returns SQL that selects the [`TOKEN_COLUMNS`] of a table. Those that an older version lacks are
/// NULL.
fn token_cells(connection: &Connection, table: &str) -> Result<String> {
    let columns = read_columns(connection, table)?;
    let cell = |name: &&'static str| if columns.contains(*name) { *name } else { "NULL" };
    Ok(TOKEN_COLUMNS.iter().map(cell).collect::<Vec<_>>().join(", "))
}

/// Upper bound for the bytes of a row of counts in a document, without its names.
const COUNTS_BYTES: usize = 256;

/// Tasks whose counts are part of the totals of the session, like those of the conversation.
const TASKS_IN_TOTALS: &[&str] = &["", "voice_chat"];

/// Token counts in the order of [`TOKEN_COLUMNS`].
#[derive(Clone, Copy, Default, PartialEq)]
pub(super) struct TokenCounts([i64; 5]);

/// The sums of a model in one task of a session.
struct CountRow {
    model: String,
    /// The task; empty for the conversation.
    task: String,
    counts: TokenCounts,
    /// Times in microseconds of the first and the last request.
    first_seen: Option<i64>,
    last_seen: Option<i64>,
    /// The first time as the database has it.
    first_seconds: Option<Json>,
    /// Sum of the lengths of the responses that share these counts.
    weight: u64,
}

/// The token counts of a session.
#[derive(Default)]
pub(super) struct SessionCounts {
    rows: Vec<CountRow>,
}

impl TokenCounts {
    /// Reads the counts in the columns of a row from `first` on.
    fn read(row: &Row<'_>, first: usize) -> Result<Self> {
        let mut counts = [0; 5];
        for (at, count) in counts.iter_mut().enumerate() {
            *count = cell_integer(row.get_ref(first + at)?).max(0);
        }
        Ok(Self(counts))
    }

    /// Returns the sum of all counts; 0 if there are none.
    pub(super) fn total(self) -> i64 {
        self.0.into_iter().fold(0, i64::saturating_add)
    }

    fn plus(self, other: Self) -> Self {
        Self(std::array::from_fn(|at| self.0[at].saturating_add(other.0[at])))
    }

    /// Returns what is more in these counts than in `other`.
    fn excess_over(self, other: Self) -> Self {
        Self(std::array::from_fn(|at| (self.0[at] - other.0[at]).max(0)))
    }
}

impl SessionCounts {
    /// Reads the totals of a session.
    pub(super) fn read_totals(connection: &Connection, id: &str) -> Result<TokenCounts> {
        let cells = token_cells(connection, "sessions")?;
        let sql = format!("SELECT {cells} FROM sessions WHERE id = ?1");
        let totals = connection.query_row(&sql, [id], |row| TokenCounts::read(row, 0)).optional();
        Ok(totals?.unwrap_or_default())
    }

    /// Reads the counts of a session. `has_models` is true if the database has a table of counts by
    /// model.
    pub(super) fn read(connection: &Connection, id: &str, has_models: bool) -> Result<Self> {
        let mut counts = Self::default();
        if has_models {
            counts.read_models(connection, id)?;
        }

        // Totals that are set by a gateway have no counts by model.
        let in_totals = counts.rows.iter().filter(|row| row.is_in_totals());
        let by_model = in_totals.fold(TokenCounts::default(), |sum, row| sum.plus(row.counts));
        let rest = Self::read_totals(connection, id)?.excess_over(by_model);
        if rest.total() > 0 {
            let sql = "SELECT model FROM sessions WHERE id = ?1";
            let model = connection.query_row(sql, [id], |row| Ok(cell_text(row.get_ref(0)?)))?;
            counts.add_rest(model, rest);
        }
        Ok(counts)
    }

    /// Reads the counts by model and task, in the order of their first requests.
    fn read_models(&mut self, connection: &Connection, id: &str) -> Result<()> {
        let cells = token_cells(connection, MODEL_TABLE)?;
        let sql = format!(
            "SELECT model, task, first_seen, last_seen, {cells} FROM {MODEL_TABLE} \
             WHERE session_id = ?1 ORDER BY first_seen, model, task"
        );
        let mut statement = connection.prepare(&sql)?;
        let mut rows = statement.query([id])?;
        while let Some(row) = rows.next()? {
            let counts = TokenCounts::read(row, 4)?;
            if counts.total() == 0 {
                continue;
            }
            let model = cell_text(row.get_ref(0)?);
            let task = cell_text(row.get_ref(1)?);
            let first_seen = cell_micros(row.get_ref(2)?);
            let last_seen = cell_micros(row.get_ref(3)?);
            let first_seconds = cell_json(row.get_ref(2)?);
            // A model may be reached in several ways, which are rows of their own.
            let mut same = self.rows.iter_mut();
            match same.find(|known| known.model == model && known.task == task) {
                Some(known) => {
                    known.counts = known.counts.plus(counts);
                    known.last_seen = known.last_seen.max(last_seen);
                }
                None => {
                    self.rows.push(CountRow {
                        model,
                        task,
                        counts,
                        first_seen,
                        last_seen,
                        first_seconds,
                        weight: 0,
                    });
                }
            }
        }
        Ok(())
    }

    /// Adds counts of the conversation that no row has. `model` is that of the session.
    fn add_rest(&mut self, model: String, rest: TokenCounts) {
        let mut of_conversation = self.rows.iter_mut().filter(|row| row.task.is_empty());
        let Some(first) = of_conversation.next() else {
            self.rows.push(CountRow {
                model,
                task: String::new(),
                counts: rest,
                first_seen: None,
                last_seen: None,
                first_seconds: None,
                weight: 0,
            });
            return;
        };
        if first.model == model {
            first.counts = first.counts.plus(rest);
            return;
        }
        match of_conversation.find(|row| row.model == model) {
            Some(row) => row.counts = row.counts.plus(rest),
            None => first.counts = first.counts.plus(rest),
        }
    }

    /// Upper bound for the bytes that the counts take in a document.
    pub(super) fn header_bytes(&self) -> usize {
        self.rows.iter().map(|row| 2 * (row.model.len() + row.task.len() + COUNTS_BYTES)).sum()
    }

    /// Adds a response of `weight` that was written at `time` to the counts of its model. Returns
    /// the number of these counts, or `None` if there are none.
    pub(super) fn add_response(&mut self, time: Option<i64>, weight: u64) -> Option<usize> {
        let time = time.unwrap_or(0);
        let of_conversation = self.rows.iter().enumerate().filter(|(_, row)| row.task.is_empty());
        // Of several models in use at that time, the one that began last.
        let (at, _) = of_conversation
            .min_by_key(|(_, row)| (row.distance(time), -row.first_seen.unwrap_or(0)))?;
        let row = self.rows.get_mut(at)?;
        row.weight = row.weight.saturating_add(weight);
        Some(at)
    }

    /// Returns the records of counts that no response shares, each with the time of its first
    /// request, in the order of these times.
    pub(super) fn unshared_records(&self) -> Vec<(Option<i64>, Json)> {
        let unshared = self.rows.iter().filter(|row| row.weight == 0);
        unshared.map(|row| (row.first_seen, row.to_record())).collect()
    }

    /// Returns the counts that responses share, in the order of their numbers.
    pub(super) fn into_json(self) -> Json {
        self.rows.iter().map(CountRow::to_json).collect()
    }
}

impl CountRow {
    fn is_in_totals(&self) -> bool {
        TASKS_IN_TOTALS.contains(&self.task.as_str())
    }

    /// Returns how far a time is from the times at which the model was used; 0 between them.
    fn distance(&self, time: i64) -> i64 {
        match (self.first_seen, self.last_seen) {
            (Some(first), Some(last)) => (first - time).max(time - last).max(0),
            (None, _) | (_, None) => 0,
        }
    }

    /// Returns the names and counts as JSON fields.
    fn fields(&self) -> Map<String, Json> {
        let mut fields = Map::new();
        fields.insert("model".to_owned(), self.model.as_str().into());
        for (name, count) in TOKEN_COLUMNS.iter().zip(self.counts.0) {
            fields.insert((*name).to_owned(), count.into());
        }
        fields
    }

    /// Returns the counts with the sum of the weights of their responses.
    fn to_json(&self) -> Json {
        let mut fields = self.fields();
        fields.insert("weight".to_owned(), self.weight.into());
        fields.into()
    }

    /// Returns the counts as a record of the document.
    fn to_record(&self) -> Json {
        let key = format!("usage {} {}", self.task, self.model);
        let mut fields = self.fields();
        fields.insert("role".to_owned(), "usage".into());
        fields.insert("id".to_owned(), key.as_str().into());
        fields.insert("content_key".to_owned(), key.into());
        fields.insert("task".to_owned(), self.task.as_str().into());
        if let Some(seconds) = &self.first_seconds {
            fields.insert("timestamp".to_owned(), seconds.clone());
        }
        fields.into()
    }
}
