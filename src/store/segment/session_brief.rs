//! What every reader of a store needs to know of every session.

use std::ops::Deref;
use std::sync::Arc;

use schemas::session::SessionRow;
use schemas::{Provider, SCHEMA_VERSION};
use serde::{Serialize, Serializer};
use xxhash_rust::xxh3::xxh3_64;

use super::row_decoder::{RowDecoder, parse_name};
use super::row_encoder::RowError;

/// The part of a session's row that says which of its events are live, in which order it comes, and
/// whether it passes the filters of a request. The values are those of the columns of these names.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SessionBrief {
    pub session_id: String,
    pub provider: Provider,
    pub parent_session_id: Option<String>,
    /// The result of [`SessionRow::is_subagent`].
    pub is_subagent: bool,
    /// The result of [`SessionRow::is_conversation`].
    pub is_conversation: bool,
    pub project: Option<SharedText>,
    pub cwd: Option<SharedText>,
    pub repository: Option<SharedText>,
    pub machine: Option<SharedText>,
    pub user_name: Option<SharedText>,
    pub started_at: Option<i64>,
    pub ended_at: Option<i64>,
    pub events: i64,
    pub replay_events: i64,
    pub row_start: i64,
    pub row_count: i64,
    pub segment: i64,
    pub live_from: i64,
}

/// A text that many sessions have, such as a folder. They share it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SharedText(Arc<str>);

/// The texts that were read last, so that equal ones are shared.
pub(super) struct RecentTexts([Option<SharedText>; RECENT_TEXTS]);

/// Number of texts that are remembered while briefs are read.
const RECENT_TEXTS: usize = 64;

/// The layout of the file of briefs, next to the version of the schema. It changes with the fields, and
/// when a value follows from a row by another rule.
const LAYOUT: &str = "18 fields";

impl SessionBrief {
    /// Returns the layout of a file of briefs.
    pub(super) fn layout() -> String {
        format!("{SCHEMA_VERSION} {LAYOUT}")
    }

    /// Decodes a brief from the file of briefs.
    pub(super) fn take(
        decoder: &mut RowDecoder<'_, '_>,
        recent: &mut RecentTexts,
    ) -> Result<Self, RowError> {
        // The values are in the order of the fields.
        Ok(Self {
            session_id: decoder.take_text()?.to_owned(),
            provider: parse_name(decoder.take_text()?)?,
            parent_session_id: decoder.take_option(RowDecoder::take_text)?.map(str::to_owned),
            is_subagent: decoder.take_flag()?,
            is_conversation: decoder.take_flag()?,
            project: recent.take(decoder)?,
            cwd: recent.take(decoder)?,
            repository: recent.take(decoder)?,
            machine: recent.take(decoder)?,
            user_name: recent.take(decoder)?,
            started_at: decoder.take_option(RowDecoder::take_integer)?,
            ended_at: decoder.take_option(RowDecoder::take_integer)?,
            events: decoder.take_integer()?,
            replay_events: decoder.take_integer()?,
            row_start: decoder.take_integer()?,
            row_count: decoder.take_integer()?,
            segment: decoder.take_integer()?,
            live_from: decoder.take_integer()?,
        })
    }

    /// Returns the brief of a session.
    pub(super) fn from_row(row: &SessionRow) -> Self {
        Self {
            session_id: row.session_id.clone(),
            provider: row.provider,
            parent_session_id: row.parent_session_id.clone(),
            is_subagent: row.is_subagent(),
            is_conversation: row.is_conversation(),
            project: SharedText::of(row.project.as_deref()),
            cwd: SharedText::of(row.cwd.as_deref()),
            repository: SharedText::of(row.repository.as_deref()),
            machine: SharedText::of(row.machine.as_deref()),
            user_name: SharedText::of(row.user_name.as_deref()),
            started_at: row.started_at,
            ended_at: row.ended_at,
            events: row.events,
            replay_events: row.replay_events,
            row_start: row.row_start,
            row_count: row.row_count,
            segment: row.segment,
            live_from: row.live_from,
        }
    }

    /// Returns a row that has the values of the brief and no others.
    pub(super) fn to_bare_row(&self) -> SessionRow {
        SessionRow {
            session_id: self.session_id.clone(),
            provider: self.provider,
            parent_session_id: self.parent_session_id.clone(),
            project: self.project.as_deref().map(str::to_owned),
            cwd: self.cwd.as_deref().map(str::to_owned),
            repository: self.repository.as_deref().map(str::to_owned),
            machine: self.machine.as_deref().map(str::to_owned),
            user_name: self.user_name.as_deref().map(str::to_owned),
            started_at: self.started_at,
            ended_at: self.ended_at,
            events: self.events,
            replay_events: self.replay_events,
            row_start: self.row_start,
            row_count: self.row_count,
            segment: self.segment,
            live_from: self.live_from,
            ..SessionRow::default()
        }
    }
}

impl SharedText {
    fn of(text: Option<&str>) -> Option<Self> {
        text.map(|text| Self(Arc::from(text)))
    }
}

impl Deref for SharedText {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl Serialize for SharedText {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self)
    }
}

impl RecentTexts {
    pub(super) fn new() -> Self {
        Self([const { None }; RECENT_TEXTS])
    }

    /// Decodes an optional text.
    fn take(&mut self, decoder: &mut RowDecoder<'_, '_>) -> Result<Option<SharedText>, RowError> {
        let Some(text) = decoder.take_option(RowDecoder::take_text)? else { return Ok(None) };
        let place = xxh3_64(text.as_bytes()) % RECENT_TEXTS as u64;
        let recent = &mut self.0[usize::try_from(place).unwrap_or(0)];
        if recent.as_deref() != Some(text) {
            *recent = SharedText::of(Some(text));
        }
        Ok(recent.clone())
    }
}
