//! The part of a source that every look at all logs needs.

use schemas::session::{SourceRow, SourceStatus};
use schemas::{Provider, SCHEMA_VERSION};
use serde::Serialize;

use super::row_decoder::{RowDecoder, parse_name};
use super::row_encoder::RowError;

/// The part of a source's row that says whether its file has to be read. The values are those of the
/// columns of these names.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct SourceValues<'t> {
    pub(super) path: &'t str,
    pub(super) status: SourceStatus,
    pub(super) session_id: Option<&'t str>,
    pub(super) provider: Option<Provider>,
    pub(super) size: i64,
    pub(super) modified_us: i64,
    pub(super) decoder_version: i64,
    pub(super) redaction_rules: i64,
    pub(super) segment: i64,
}

/// The layout of the file of briefs, next to the version of the schema. It changes with the fields.
const LAYOUT: &str = "source, 9 fields";

impl<'t> SourceValues<'t> {
    /// Returns the layout of a file of briefs.
    pub(super) fn layout() -> String {
        format!("{SCHEMA_VERSION} {LAYOUT}")
    }

    /// Decodes a brief from the file of briefs.
    pub(super) fn take(decoder: &mut RowDecoder<'_, 't>) -> Result<Self, RowError> {
        // The values are in the order of the fields.
        Ok(Self {
            path: decoder.take_text()?,
            status: parse_name(decoder.take_text()?)?,
            session_id: decoder.take_option(RowDecoder::take_text)?,
            provider: decoder.take_option(RowDecoder::take_text)?.map(parse_name).transpose()?,
            size: decoder.take_integer()?,
            modified_us: decoder.take_integer()?,
            decoder_version: decoder.take_integer()?,
            redaction_rules: decoder.take_integer()?,
            segment: decoder.take_integer()?,
        })
    }

    /// Returns the brief of a source.
    pub(super) fn of_row(row: &'t SourceRow) -> Self {
        Self {
            path: &row.path,
            status: row.status,
            session_id: row.session_id.as_deref(),
            provider: row.provider,
            size: row.size,
            modified_us: row.modified_us,
            decoder_version: row.decoder_version,
            redaction_rules: row.redaction_rules,
            segment: row.segment,
        }
    }
}
