//! What every reader of a store needs to know of every session.

use std::sync::Arc;

use schemas::session::SessionRow;
use schemas::{Provider, SCHEMA_VERSION};
use serde::Serialize;
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
    /// The result of [`SessionRow::is_earlier_version`].
    pub is_earlier_version: bool,
    /// The result of [`SessionRow::is_conversation`].
    pub is_conversation: bool,
    pub origin: Arc<SessionOrigin>,
    pub started_at: Option<i64>,
    pub ended_at: Option<i64>,
    pub events: i64,
    pub replay_events: i64,
    pub row_start: i64,
    pub row_count: i64,
    pub segment: i64,
    pub live_from: i64,
}

/// Where a session took place. Sessions of a segment that have the same origin mostly share it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct SessionOrigin {
    pub project: Option<String>,
    pub cwd: Option<String>,
    pub repository: Option<String>,
    pub machine: Option<String>,
    pub user_name: Option<String>,
}

/// Number of values of an origin.
const ORIGIN_VALUES: usize = 5;

/// The origins that were read last, each with its bytes, so that equal ones are shared.
pub(super) struct RecentOrigins([Option<(Vec<u8>, Arc<SessionOrigin>)>; RECENT_ORIGINS]);

/// Number of origins that are remembered while briefs are read.
const RECENT_ORIGINS: usize = 64;

/// The layout of the file of briefs, next to the version of the schema. It counts the fields of the
/// origin, and changes with the fields and when a value follows from a row by another rule.
const LAYOUT: &str = "19 fields";

impl SessionBrief {
    /// Returns the layout of a file of briefs.
    pub(super) fn layout() -> String {
        format!("{SCHEMA_VERSION} {LAYOUT}")
    }

    /// Decodes a brief from the file of briefs.
    pub(super) fn take(
        decoder: &mut RowDecoder<'_, '_>,
        recent: &mut RecentOrigins,
    ) -> Result<Self, RowError> {
        // The values are in the order of the fields.
        Ok(Self {
            session_id: decoder.take_text()?.to_owned(),
            provider: parse_name(decoder.take_text()?)?,
            parent_session_id: decoder.take_option(RowDecoder::take_text)?.map(str::to_owned),
            is_subagent: decoder.take_flag()?,
            is_earlier_version: decoder.take_flag()?,
            is_conversation: decoder.take_flag()?,
            origin: recent.take(decoder)?,
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
            is_earlier_version: row.is_earlier_version(),
            is_conversation: row.is_conversation(),
            origin: Arc::new(SessionOrigin {
                project: row.project.clone(),
                cwd: row.cwd.clone(),
                repository: row.repository.clone(),
                machine: row.machine.clone(),
                user_name: row.user_name.clone(),
            }),
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
        let SessionOrigin { project, cwd, repository, machine, user_name } = (*self.origin).clone();
        SessionRow {
            session_id: self.session_id.clone(),
            provider: self.provider,
            parent_session_id: self.parent_session_id.clone(),
            project,
            cwd,
            repository,
            machine,
            user_name,
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

impl SessionOrigin {
    /// Decodes an origin.
    fn take(decoder: &mut RowDecoder<'_, '_>) -> Result<Self, RowError> {
        let mut take_text = || Ok(decoder.take_option(RowDecoder::take_text)?.map(str::to_owned));
        // The values are in the order of the fields.
        Ok(Self {
            project: take_text()?,
            cwd: take_text()?,
            repository: take_text()?,
            machine: take_text()?,
            user_name: take_text()?,
        })
    }
}

impl RecentOrigins {
    pub(super) fn new() -> Self {
        Self([const { None }; RECENT_ORIGINS])
    }

    /// Decodes an origin.
    fn take(&mut self, decoder: &mut RowDecoder<'_, '_>) -> Result<Arc<SessionOrigin>, RowError> {
        let mut bytes = decoder.take_bytes_of(|decoder| {
            (0..ORIGIN_VALUES)
                .try_for_each(|_| decoder.take_option(RowDecoder::skip_text).map(|_| ()))
        })?;
        let place = xxh3_64(bytes) % RECENT_ORIGINS as u64;
        let recent = &mut self.0[usize::try_from(place).unwrap_or(0)];
        if let Some((known, origin)) = recent
            && known == bytes
        {
            return Ok(Arc::clone(origin));
        }
        let key = bytes.to_vec();
        let origin = Arc::new(SessionOrigin::take(&mut RowDecoder::new(&mut bytes))?);
        *recent = Some((key, Arc::clone(&origin)));
        Ok(origin)
    }
}

#[cfg(test)]
mod tests {
    use super::super::row_encoder::append_row;
    use super::*;

    /// Stores keep these bytes until [`LAYOUT`] changes.
    #[test]
    fn a_brief_has_the_bytes_of_its_layout() {
        let origin = SessionOrigin {
            project: Some("harbor".to_owned()),
            cwd: Some("/work".to_owned()),
            repository: None,
            machine: Some("m".to_owned()),
            user_name: Some("u".to_owned()),
        };
        let brief = SessionBrief {
            session_id: "s1".to_owned(),
            provider: Provider::Codex,
            parent_session_id: Some("s0".to_owned()),
            is_subagent: true,
            is_earlier_version: false,
            is_conversation: true,
            origin: Arc::new(origin),
            started_at: None,
            ended_at: Some(-1),
            events: 1,
            replay_events: 2,
            row_start: 3,
            row_count: 4,
            segment: 5,
            live_from: 64,
        };
        let mut bytes = Vec::new();
        append_row(&brief, &mut bytes).expect("encodes");
        let texts = b"\x02s1\x05codex\x01\x02s0\x01\x00\x01";
        let origin = b"\x01\x06harbor\x01\x05/work\x00\x01\x01m\x01\x01u";
        let numbers = b"\x00\x01\x01\x02\x04\x06\x08\x0a\x80\x01";
        assert_eq!(bytes, [&texts[..], origin, numbers].concat());

        let mut recent = RecentOrigins::new();
        let mut take = || SessionBrief::take(&mut RowDecoder::new(&mut &bytes[..]), &mut recent);
        let [first, second] = [take(), take()].map(|brief| brief.expect("decodes"));
        assert_eq!((&first, &second), (&brief, &brief));
        assert!(Arc::ptr_eq(&first.origin, &second.origin), "they share it");
        for cut in 0..bytes.len() {
            let cut = SessionBrief::take(&mut RowDecoder::new(&mut &bytes[..cut]), &mut recent);
            assert!(cut.is_err());
        }
    }
}
