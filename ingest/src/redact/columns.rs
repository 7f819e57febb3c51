//! Masks the columns of rows before they reach the store, as `schemas::table` says for each column.
//!
//! Text, command and files of an event are masked together when the event is read. All other
//! columns are masked here, at ingest and when rows are masked again.

use std::borrow::Cow;
use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, ListArray, RecordBatch, StringArray};
use arrow::datatypes::DataType;
use arrow::error::ArrowError;
use memchr::memchr3;
use schemas::table::{Column, EVENTS, Masking, Table};
use schemas::text_cells::TextCells;
use serde_json::Value;

use super::redactor::Redactor;
use super::scan::MASK;
use super::secrets::{MaskedSecrets, mask_text};
use crate::text::names::truncate_name;
use crate::text::sanitize::clean;

/// Columns of an event that are masked together when it is read.
const MASKED_TOGETHER: &[&str] = &["text", "command", "files"];

/// Maximum number of underscores at which a part may begin, and at which it may end, that is searched
/// for a secret: `mcp__<secret>__run`.
const MAX_PARTS: usize = 16;

/// Minimum length in bytes of such a part. Shorter parts contain no secret that is recognisable by
/// its shape.
const MIN_PART_BYTES: usize = 16;

/// Maximum number of names remembered with their masked form. The rows of a log repeat its names,
/// ids and paths.
const MAX_KNOWN_NAMES: usize = 1024;

/// Maximum length in bytes of a name that is remembered.
const MAX_NAME_BYTES: usize = 256;

/// Masks values of columns and remembers the values seen.
#[derive(Default)]
pub(crate) struct ColumnMasker {
    /// The masked form of each name, and its secrets; `None` if it equals the name.
    known: HashMap<String, Option<(String, MaskedSecrets)>>,
}

impl ColumnMasker {
    /// Returns the rows of `events` cleaned and masked. Secrets are added to `found`.
    pub(crate) fn mask_events(
        &mut self,
        redactor: Option<&Redactor>,
        batch: &RecordBatch,
        found: &mut MaskedSecrets,
    ) -> Result<RecordBatch, ArrowError> {
        let schema = batch.schema();
        let mut columns = Vec::with_capacity(batch.num_columns());
        for (field, values) in schema.fields().iter().zip(batch.columns()) {
            let name = field.name().as_str();
            let column = EVENTS.columns.iter().find(|column| column.name == name);
            columns.push(match column {
                Some(column) if !MASKED_TOGETHER.contains(&name) => {
                    self.mask_array(redactor, column, values, found)
                }
                Some(_) | None => Arc::clone(values),
            });
        }
        RecordBatch::try_new(Arc::clone(&schema), columns)
    }

    /// Returns the values of a column cleaned and masked.
    fn mask_array(
        &mut self,
        redactor: Option<&Redactor>,
        column: &Column,
        values: &ArrayRef,
        found: &mut MaskedSecrets,
    ) -> ArrayRef {
        match column.masking {
            Masking::NotText | Masking::Exempt(_) => return Arc::clone(values),
            Masking::Masked | Masking::MaskedJson => {}
        }
        let mut last: Option<&str> = None;
        let mut last_shown: Option<String> = None;
        map_texts(values, &mut |text| {
            if last != Some(text) {
                last_shown = self.mask_value(redactor, column.masking, text, found);
                last = Some(text);
            }
            last_shown.clone()
        })
    }

    /// Cleans and masks the texts of a row of a table. Secrets are added to `found`.
    pub(crate) fn mask_row<R: TextCells>(
        &mut self,
        redactor: Option<&Redactor>,
        table: &Table,
        row: &mut R,
        found: &mut MaskedSecrets,
    ) {
        // Both are in the order of the table, so each search begins where the one before ended.
        let mut columns = table.columns.iter();
        row.for_each_text(&mut |name, text| {
            let Some(column) = columns.find(|column| column.name == name) else { return };
            if let Some(shown) = self.mask_value(redactor, column.masking, text, found) {
                *text = shown;
            }
        });
    }

    /// Returns the cleaned and masked form of a value. `None` if it equals the value, if the column
    /// is not masked, or if a value of JSON cannot be parsed.
    fn mask_value(
        &mut self,
        redactor: Option<&Redactor>,
        masking: Masking,
        text: &str,
        found: &mut MaskedSecrets,
    ) -> Option<String> {
        match masking {
            Masking::NotText | Masking::Exempt(_) => None,
            Masking::Masked => self.mask_name(redactor, text, found),
            Masking::MaskedJson => {
                let value: Value = serde_json::from_str(text).ok()?;
                let shown = self.mask_json(redactor, &value, found);
                if shown == value { None } else { serde_json::to_string(&shown).ok() }
            }
        }
    }

    /// Returns a JSON value with its keys and strings cleaned and masked.
    fn mask_json(
        &mut self,
        redactor: Option<&Redactor>,
        value: &Value,
        found: &mut MaskedSecrets,
    ) -> Value {
        match value {
            Value::String(text) => {
                let shown = self.mask_name(redactor, text, found);
                Value::String(shown.unwrap_or_else(|| text.clone()))
            }
            Value::Array(values) => Value::Array(
                values.iter().map(|one| self.mask_json(redactor, one, found)).collect(),
            ),
            Value::Object(fields) => {
                let mut shown_fields = serde_json::Map::new();
                for (key, value) in fields {
                    let shown_key =
                        self.mask_name(redactor, key, found).unwrap_or_else(|| key.clone());
                    let shown_value = self.mask_json(redactor, value, found);
                    // Keys that differed only in their secrets are now equal, so their counts are
                    // added.
                    let before = shown_fields.get(&shown_key).and_then(Value::as_u64);
                    let sum = before.zip(shown_value.as_u64()).map(|(a, b)| Value::from(a + b));
                    shown_fields.insert(shown_key, sum.unwrap_or(shown_value));
                }
                Value::Object(shown_fields)
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
        }
    }

    /// Returns whether a string or key of a JSON value contains a secret.
    pub(crate) fn has_secret(&mut self, redactor: Option<&Redactor>, value: &Value) -> bool {
        match value {
            // A longer string is a text.
            Value::String(text) if text.len() > MAX_NAME_BYTES => {
                !mask_text(redactor, &clean(text)).1.is_empty()
            }
            Value::String(name) => self.is_secret_in_name(redactor, name),
            Value::Array(values) => values.iter().any(|one| self.has_secret(redactor, one)),
            Value::Object(fields) => fields.iter().any(|(key, value)| {
                self.is_secret_in_name(redactor, key) || self.has_secret(redactor, value)
            }),
            Value::Null | Value::Bool(_) | Value::Number(_) => false,
        }
    }

    /// Returns whether a name, an id or a path contains a secret.
    fn is_secret_in_name(&mut self, redactor: Option<&Redactor>, name: &str) -> bool {
        let mut found = MaskedSecrets::new();
        self.mask_name(redactor, name, &mut found);
        !found.is_empty()
    }

    /// Returns the cleaned and masked form of a name, an id or a path; `None` if it equals `text`.
    fn mask_name(
        &mut self,
        redactor: Option<&Redactor>,
        text: &str,
        found: &mut MaskedSecrets,
    ) -> Option<String> {
        if let Some(known) = self.known.get(text) {
            let (shown, secrets) = known.as_ref()?;
            found.extend(secrets.iter().cloned());
            return Some(shown.clone());
        }
        let shown = if is_plain_name(redactor, text) {
            None
        } else {
            let (shown, secrets) = mask_name_with_secrets(redactor, text);
            if shown == text { None } else { Some((shown, secrets)) }
        };
        if text.len() <= MAX_NAME_BYTES {
            if self.known.len() >= MAX_KNOWN_NAMES {
                self.known.clear();
            }
            self.known.insert(text.to_owned(), shown.clone());
        }
        let (shown, secrets) = shown?;
        found.extend(secrets);
        Some(shown)
    }
}

/// Returns a column of texts, or of lists of texts, in which each text is replaced by what `change`
/// returns for it. `None` keeps the text.
pub fn map_texts<'t>(
    column: &'t ArrayRef,
    change: &mut dyn FnMut(&'t str) -> Option<String>,
) -> ArrayRef {
    if let (Some(list), DataType::List(field)) = (column.as_list_opt::<i32>(), column.data_type()) {
        let values = map_texts(list.values(), change);
        let offsets = list.offsets().clone();
        return Arc::new(ListArray::new(Arc::clone(field), offsets, values, list.nulls().cloned()));
    }
    let Some(texts) = column.as_string_opt::<i32>() else { return Arc::clone(column) };
    let mut changed: HashMap<usize, String> = HashMap::new();
    for (row, text) in texts.iter().enumerate() {
        if let Some(text) = text.and_then(&mut *change) {
            changed.insert(row, text);
        }
    }
    if changed.is_empty() {
        return Arc::clone(column);
    }
    let shown = texts.iter().enumerate();
    let shown = shown.map(|(row, text)| changed.get(&row).map(String::as_str).or(text));
    Arc::new(shown.collect::<StringArray>())
}

/// Returns whether a name has no secret, nothing to be cleaned, and no underscore, at which a secret
/// may begin.
fn is_plain_name(redactor: Option<&Redactor>, name: &str) -> bool {
    if name.len() > MAX_NAME_BYTES || memchr3(b'\n', b'\t', b'_', name.as_bytes()).is_some() {
        return false;
    }
    matches!(clean(name), Cow::Borrowed(_)) && mask_text(redactor, name).1.is_empty()
}

/// Returns a name, an id or a path cleaned and without its secrets.
pub fn mask_name(redactor: Option<&Redactor>, name: &str) -> String {
    mask_name_with_secrets(redactor, name).0
}

/// Cleans and masks a name, and returns the secrets that were masked. Also finds secrets that
/// underscores join to the text before or after them.
fn mask_name_with_secrets(redactor: Option<&Redactor>, name: &str) -> (String, MaskedSecrets) {
    let name = clean(name);
    let (masked, mut found) = mask_text(redactor, &name);
    // A name is shown within a line, where a line break would fake a line of our own.
    let mut shown = masked.replace(['\n', '\t'], " ");
    // The whole name was examined above.
    let mut part_start = 0;
    let mut max_end = shown.rfind('_').unwrap_or(0);
    for _ in 0..MAX_PARTS {
        mask_longest_part(redactor, &mut shown, part_start..max_end, &mut found);
        let Some(at) = shown[part_start..].find('_') else { break };
        part_start += at + 1;
        max_end = shown.len();
    }
    (shown, found)
}

/// Masks the longest part of `shown` that begins where `within` begins, ends where it ends or at an
/// underscore in it, and holds a secret. Secrets may contain underscores, so shorter parts come
/// later.
fn mask_longest_part(
    redactor: Option<&Redactor>,
    shown: &mut String,
    within: Range<usize>,
    found: &mut MaskedSecrets,
) {
    let mut part = within;
    for _ in 0..MAX_PARTS {
        if part.len() < MIN_PART_BYTES {
            return;
        }
        let (masked, secrets) = mask_text(redactor, &shown[part.clone()]);
        if !secrets.is_empty() {
            let masked = masked.into_owned();
            shown.replace_range(part, &masked);
            found.extend(secrets);
            return;
        }
        let Some(at) = shown[part.clone()].rfind('_') else { return };
        part.end = part.start + at;
    }
}

/// Cleans, masks and truncates an id of a log, so that it is the same wherever it occurs.
pub(crate) fn mask_id(redactor: Option<&Redactor>, id: String) -> String {
    // Most ids stay as they are.
    if is_plain_name(redactor, &id) && truncate_name(&id).len() == id.len() {
        return id;
    }
    truncate_name(&mask_name(redactor, &id)).to_owned()
}

/// Returns whether `shown` is the shown form of `path`: equal to it, or cleaned and with
/// placeholders for its secrets. The store keeps the path of a log in `sources` only.
pub fn is_masked_path(shown: &str, path: &str) -> bool {
    if shown == path {
        return true;
    }
    let path = clean(path);
    let mut parts = shown.split(MASK);
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = path.strip_prefix(first) else { return false };
    let mut parts = parts.filter_map(|part| part.split_once(']')).map(|(_, after)| after);
    let Some(mut after) = parts.next() else { return rest.is_empty() };
    for next in parts {
        // A placeholder replaces at least one character.
        let Some((search_start, _)) = rest.char_indices().nth(1) else { return false };
        let Some(at) = rest[search_start..].find(after) else { return false };
        rest = &rest[search_start + at + after.len()..];
        after = next;
    }
    rest.len() > after.len() && rest.ends_with(after)
}

#[cfg(test)]
mod tests {
    use schemas::session::SessionRow;
    use schemas::table::SESSIONS;

    use super::*;
    use crate::redact::UserRule;
    use crate::stream::batch::{EventBatch, EventCells, events_schema};

    fn birds() -> Redactor {
        let rule = UserRule { name: "bird".to_owned(), regex: "Kittiwake".to_owned() };
        Redactor::new(&[rule]).expect("a rule")
    }

    /// Fills every text column of a table with a secret; a new column is covered when it is added.
    #[test]
    fn secrets_between_underscores_are_masked() {
        let redactor = Redactor::new(&[]).expect("the built-in rules");
        let tokens = [
            format!("ghp_{}", "a1B2c3D4e5F6g7H8i9J0".repeat(2).get(..36).expect("long")),
            format!("AKIA{}", "Q3EGRVZ7XK2MWP5T"),
            format!("npm_{}", "z9Y8x7W6v5U4t3S2r1Q0".repeat(2).get(..36).expect("long")),
        ];
        for token in &tokens {
            for (before, after) in
                [("mcp__", "__run"), ("", "_tool"), ("", "__fn"), ("/p/", "_x/y"), ("toolu_", "")]
            {
                let name = format!("{before}{token}{after}");
                let shown = mask_name(Some(&redactor), &name);
                assert!(!shown.contains(token.as_str()), "{name}: {shown}");
                assert!(shown.starts_with(before) && shown.ends_with(after), "{name}: {shown}");
            }
        }
        for name in ["mcp__github__search_pull_requests_by_author", "a_b_c_d_e_f_g_h_i_j_k_l_m_n"] {
            assert_eq!(mask_name(Some(&redactor), name), name);
        }
    }

    #[test]
    fn every_masked_column_of_an_event_is_masked() {
        let secret = Some("Kitti\u{200b}wake");
        let mut rows = EventBatch::default();
        let event = EventCells {
            session_id: "Kittiwake",
            subtype: secret,
            tool_name: secret,
            tool_kind: Some("other"),
            tool_call_id: secret,
            spawned_agent_id: secret,
            model: secret,
            git_branch: secret,
            request_id: secret,
            service_tier: secret,
            speed: secret,
            inference_geo: secret,
            ..EventCells::default()
        };
        rows.push(&event);
        let batch = rows.finish(&events_schema(), 1);
        let (redactor, mut found) = (birds(), MaskedSecrets::new());
        let masked = ColumnMasker::default()
            .mask_events(Some(&redactor), &batch, &mut found)
            .expect("columns of the table");
        assert!(!found.is_empty());
        for column in EVENTS.columns.iter().filter(|column| column.masking == Masking::Masked) {
            let values = masked.column_by_name(column.name).expect(column.name);
            let Some(texts) = values.as_string_opt::<i32>() else { continue };
            if !MASKED_TOGETHER.contains(&column.name) {
                assert_eq!(texts.value(0), "[REDACTED:bird]", "{}", column.name);
            }
        }
        let plain = ColumnMasker::default().mask_events(None, &batch, &mut MaskedSecrets::new());
        let plain = plain.expect("columns of the table");
        let names = plain.column_by_name("tool_name").expect("a column").as_string::<i32>();
        assert_eq!(names.value(0), "Kittiwake");
    }

    #[test]
    fn json_of_a_session_is_masked_in_keys_and_strings() {
        let row = SessionRow {
            source_path: "/logs/Kittiwake/a.jsonl".to_owned(),
            drift: Some(r#"{"field:Kittiwake":1,"field:nest":2}"#.to_owned()),
            redactions: Some(r#"{"bird":2}"#.to_owned()),
            started_at: Some(1_700_000_000_000_000),
            ..SessionRow::default()
        };
        let (redactor, mut found) = (birds(), MaskedSecrets::new());
        let mut masked = row.clone();
        ColumnMasker::default().mask_row(Some(&redactor), &SESSIONS, &mut masked, &mut found);
        assert_eq!(masked.source_path, "/logs/[REDACTED:bird]/a.jsonl");
        assert_eq!(masked.drift.as_deref(), Some(r#"{"field:[REDACTED:bird]":1,"field:nest":2}"#));
        assert_eq!((masked.redactions, masked.started_at), (row.redactions, row.started_at));
    }

    #[test]
    fn a_secret_glued_to_an_id_is_masked_and_ids_stay() {
        let redactor = Redactor::new(&[]).expect("the built-in rules");
        let token = format!("gh{}_{}", "p", "r9Xk2LmQ7vT4sWb8Yc3Nd6Pf1Hj5ZaGe0uKt");
        let shown = mask_name(Some(&redactor), &format!("toolu_{token}"));
        assert_eq!(shown, "toolu_[REDACTED:github_token]");
        for id in [
            "toolu_01A09q90qw90lq917835lq9",
            "call_8JdPq2mXv7Lr4TzWb9KcN3Hs",
            "req_011CTm4pQ2vXk7LrNd9WbYcZ",
            "mcp__github__create_pull_request",
        ] {
            assert_eq!(mask_name(Some(&redactor), id), id);
        }
    }

    #[test]
    fn a_masked_path_is_known_by_its_file() {
        let masked = "/logs/[REDACTED:bird]/b_[REDACTED:bird].jsonl";
        for (shown, path, is_shown) in [
            ("/logs/a.jsonl", "/logs/a.jsonl", true),
            ("/logs/a.jsonl", "/logs/\u{202e}a.jsonl", true),
            (masked, "/logs/Kittiwake/b_Kittiwake.jsonl", true),
            (masked, "/logs//b_Kittiwake.jsonl", false),
            (masked, "/logs/Kittiwake/c_Kittiwake.jsonl", false),
            (masked, "/logs/Kittiwake/b_.jsonl", false),
            ("/logs/a.jsonl", "/logs/b.jsonl", false),
        ] {
            assert_eq!(is_masked_path(shown, path), is_shown, "{shown} {path}");
        }
    }
}
