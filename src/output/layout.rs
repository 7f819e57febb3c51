//! What an answer is laid out for: a screen of some width, or a pipe or a file, which gets whole values.

use std::borrow::Cow;
use std::sync::Arc;

use anstyle::Style;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use schemas::{Timestamp, Zone};

use super::painted::Painted;
use base::image_notes::{shorten_image_notes, title_without_images};
use base::numbers::{format_bytes, format_count, format_duration, format_short_count};
use base::sanitize::clean_text;
use store::Snapshot;

/// What an answer is laid out for.
pub struct Layout {
    /// The cells of a line.
    pub width: usize,
    /// The zone of the user's clock.
    pub zone: Zone,
    pub now: Timestamp,
    /// The sessions of the store, whose ids are shortened and whose titles are known.
    pub snapshot: Option<Arc<Snapshot>>,
    /// True if the terminal opens links.
    pub has_links: bool,
    /// True for a pipe or a file: ids, times, numbers and texts are whole, and nothing is cut, wrapped
    /// or folded.
    pub is_plain: bool,
}

impl Layout {
    /// Returns the layout of a pipe or a file.
    pub fn plain(snapshot: Option<Arc<Snapshot>>) -> Self {
        Self {
            width: usize::MAX,
            zone: Zone::UTC,
            now: Timestamp::now(),
            snapshot,
            has_links: false,
            is_plain: true,
        }
    }

    /// Returns a limit of lines, cells or rows on a screen. A pipe has none.
    pub(crate) const fn limit(&self, on_screen: usize) -> usize {
        if self.is_plain { usize::MAX } else { on_screen }
    }

    /// Returns a sign on a screen, and a word in a pipe, where it is easy to find.
    pub(crate) const fn mark<'m>(&self, sign: &'m str, word: &'m str) -> &'m str {
        if self.is_plain { word } else { sign }
    }

    /// Returns the id of a session as it is shown: the shortest unique prefix on a screen.
    pub(crate) fn session_id<'i>(&self, id: &'i str) -> Cow<'i, str> {
        match &self.snapshot {
            Some(snapshot) if !self.is_plain => snapshot.short_id(id),
            Some(_) | None => Cow::Borrowed(id),
        }
    }

    /// Returns the id of an event as it is shown.
    pub(crate) fn event_id(&self, id: &str) -> String {
        match id.rsplit_once(':') {
            Some((session, index)) => format!("{}:{index}", self.session_id(session)),
            None => id.to_owned(),
        }
    }

    /// Returns the place of an event below its session: `:12` on a screen, its id in a pipe.
    pub(crate) fn event_place(&self, id: &str) -> String {
        match id.rsplit_once(':') {
            Some((_, index)) if !self.is_plain => format!(":{index}"),
            Some(_) | None => id.to_owned(),
        }
    }

    /// Returns the title of a session, if it is known.
    pub(crate) fn session_title(&self, id: &str) -> Option<String> {
        let snapshot = self.snapshot.as_ref()?;
        let row = snapshot.sessions().get(snapshot.session_position(id)?)?;
        row.title.as_deref().map(|title| title_without_images(title).into_owned())
    }

    /// Formats the time of the last event of a session, if it is known.
    pub(crate) fn session_end(&self, id: &str) -> Option<String> {
        let snapshot = self.snapshot.as_ref()?;
        let row = snapshot.sessions().get(snapshot.session_position(id)?)?;
        Some(self.time(Some(&Timestamp(row.ended_at?).to_string())))
    }

    /// Formats a time of an answer, given as RFC 3339: in short and in the zone of the user on a screen.
    pub(crate) fn time(&self, time: Option<&str>) -> String {
        let Some(time) = time else { return "no time".to_owned() };
        match Timestamp::parse(time) {
            Some(time) if !self.is_plain => self.zone.short_time(time, self.now),
            Some(_) | None => time.to_owned(),
        }
    }

    /// Formats a number: with its digits in groups on a screen.
    pub(crate) fn count(&self, number: u64) -> String {
        if self.is_plain { number.to_string() } else { format_count(number) }
    }

    /// Formats a number: in at most six characters on a screen. A negative one is 0.
    pub(crate) fn short_count(&self, number: impl TryInto<u64>) -> String {
        let number = number.try_into().unwrap_or(0);
        if self.is_plain { number.to_string() } else { format_short_count(number) }
    }

    /// Formats a duration in milliseconds.
    pub(crate) fn duration(&self, milliseconds: u64) -> String {
        if self.is_plain { format!("{milliseconds} ms") } else { format_duration(milliseconds) }
    }

    /// Formats a size in bytes.
    pub(crate) fn bytes(&self, bytes: u64) -> String {
        if self.is_plain { format!("{bytes} B") } else { format_bytes(bytes) }
    }

    /// Returns a text of a log as it is shown: its tabs are spaces and its notes on images short on a
    /// screen.
    pub(crate) fn text(&self, text: &str) -> String {
        let text = clean_text(text.trim_end());
        if self.is_plain {
            return text;
        }
        shorten_image_notes(&text.replace('\t', "    ")).into_owned()
    }

    /// Replaces the times of a remark, given as RFC 3339 in UTC, with short times of the user's zone on a
    /// screen.
    pub(crate) fn localize_times(&self, text: &str) -> String {
        if self.is_plain {
            return text.to_owned();
        }
        let localize = |word: &str| {
            let time = word.trim_end_matches(['.', ';', ',', ')']);
            let is_time = time.contains('T') && time.ends_with('Z');
            match Timestamp::parse(time).filter(|_| is_time) {
                Some(at) => {
                    format!("{}{}", self.zone.short_time(at, self.now), &word[time.len()..])
                }
                None => word.to_owned(),
            }
        };
        let text = text.split(' ').map(localize).collect::<Vec<_>>().join(" ");
        // A time under a day is `1h ago` or `now`.
        let words: Vec<&str> = text.split(' ').collect();
        let is_spare = |at: usize| {
            let is_ago = words.get(at + 2).is_some_and(|word| word.starts_with("ago"));
            let is_now = words.get(at + 1).is_some_and(|word| word.starts_with("now"));
            words[at] == "at" && (is_ago || is_now)
        };
        let kept = (0..words.len()).filter(|at| !is_spare(*at)).map(|at| words[at]);
        kept.collect::<Vec<_>>().join(" ")
    }

    /// Appends a path as `shown`, as a link if the terminal opens links.
    pub(crate) fn push_path(&self, painted: &mut Painted, style: Style, path: &str, shown: &str) {
        if self.has_links && path.starts_with('/') {
            painted.push_link(
                style,
                shown,
                &format!("file://{}", utf8_percent_encode(path, PATH_ESCAPES)),
            );
        } else {
            painted.push_inline(style, shown);
        }
    }
}

/// The bytes of a path that an address cannot have.
const PATH_ESCAPES: &AsciiSet =
    &NON_ALPHANUMERIC.remove(b'/').remove(b'-').remove(b'_').remove(b'.').remove(b'~');

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn remarks_have_the_times_of_the_user() {
        let layout = Layout {
            width: 80,
            zone: Zone::find("timezone", "Asia/Tokyo").expect("a zone"),
            now: Timestamp::parse("2026-11-26T12:00:00Z").expect("a time"),
            snapshot: None,
            has_links: false,
            is_plain: false,
        };
        let text = "active since 2026-07-29T04:45:00.000Z; newest 2026-11-26T11:00:00Z.";
        let expected = "active since Jul 29 13:45; newest 1h ago.";
        assert_eq!(layout.localize_times(text), expected);
        assert_eq!(layout.localize_times("No T Z here"), "No T Z here");
        let text = "The index was updated at 2026-11-26T11:00:00Z; look at it.";
        assert_eq!(layout.localize_times(text), "The index was updated 1h ago; look at it.");
    }
}
