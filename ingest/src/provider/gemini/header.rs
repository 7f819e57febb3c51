//! Reads the fields of a session's header.

use crate::stream::{Stream, TitleFrom, parse_micros};
use crate::text::json::{JsonFields, Value, string_value};

/// Reads the session's own fields.
pub(super) fn read_header(object: Value<'_>, out: &mut Stream) {
    for key in ["startTime", "lastUpdated"] {
        out.extend_time_range(parse_micros(object.text(key)));
    }
    out.offer_title(TitleFrom::Agent, object.text("summary").unwrap_or(""));
    let directories = object.items("directories");
    out.set_cwd(directories.first().and_then(|first| string_value(*first)));
}
