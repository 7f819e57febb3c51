//! Reads the fields of a session's header.

use crate::stream::{Stream, TitleFrom, micros};
use crate::text::json::{Fields, Value, string};

/// Reads the session's own fields.
pub(super) fn header(object: Value<'_>, out: &mut Stream) {
    for key in ["startTime", "lastUpdated"] {
        out.widen(micros(object.text(key)));
    }
    out.title(TitleFrom::Agent, object.text("summary").unwrap_or(""));
    let directories = object.items("directories");
    out.set_cwd(directories.first().and_then(|first| string(*first)));
}
