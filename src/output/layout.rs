//! What the screens of answers are laid out for: a width, a zone, and the current time.

use std::borrow::Cow;
use std::sync::Arc;

use anstyle::Style;
use schemas::{Timestamp, Zone};

use super::painted::Painted;
use store::Snapshot;

/// What a screen is laid out for.
pub struct Layout {
    /// The cells of a line.
    pub width: usize,
    /// The zone of the user's clock.
    pub zone: Zone,
    pub now: Timestamp,
    /// The sessions whose ids are shortened; without it ids are whole.
    pub snapshot: Option<Arc<Snapshot>>,
    /// True if the terminal opens links.
    pub has_links: bool,
}

impl Layout {
    /// Shortens the id of a session to the shortest unique prefix.
    pub(crate) fn short_id<'i>(&self, id: &'i str) -> Cow<'i, str> {
        self.snapshot.as_ref().map_or(Cow::Borrowed(id), |snapshot| snapshot.short_id(id))
    }

    /// Shortens the session in the id of an event.
    pub(crate) fn short_event_id(&self, id: &str) -> String {
        match id.rsplit_once(':') {
            Some((session, index)) => format!("{}:{index}", self.short_id(session)),
            None => id.to_owned(),
        }
    }

    /// Returns the title of a session, if it is known.
    pub(crate) fn session_title(&self, id: &str) -> Option<String> {
        let snapshot = self.snapshot.as_ref()?;
        let row = snapshot.sessions().get(snapshot.session_position(id)?)?;
        row.title.clone()
    }

    /// Formats the time of the last event of a session, if it is known.
    pub(crate) fn session_end(&self, id: &str) -> Option<String> {
        let snapshot = self.snapshot.as_ref()?;
        let row = snapshot.sessions().get(snapshot.session_position(id)?)?;
        let ended = row.ended_at?;
        Some(self.zone.short_time(Timestamp(ended), self.now))
    }

    /// Formats a time of an answer, given as RFC 3339, in the zone of the user.
    pub(crate) fn time(&self, time: Option<&str>) -> String {
        let Some(time) = time else { return "no time".to_owned() };
        match Timestamp::parse(time) {
            Some(time) => self.zone.short_time(time, self.now),
            None => time.to_owned(),
        }
    }

    /// Replaces the times of a remark, given as RFC 3339 in UTC, with short times of the user's zone.
    pub(crate) fn localize_times(&self, text: &str) -> String {
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
        // A time under a day is `1h ago`.
        let words: Vec<&str> = text.split(' ').collect();
        let is_spare = |at: usize| {
            let is_ago = words.get(at + 2).is_some_and(|word| word.starts_with("ago"));
            words[at] == "at" && is_ago
        };
        let kept = (0..words.len()).filter(|at| !is_spare(*at)).map(|at| words[at]);
        kept.collect::<Vec<_>>().join(" ")
    }

    /// Appends a path as `shown`, as a link if the terminal opens links.
    pub(crate) fn push_path(&self, painted: &mut Painted, style: Style, path: &str, shown: &str) {
        if self.has_links && path.starts_with('/') {
            painted.push_link(style, shown, &format!("file://{}", encode_path(path)));
        } else {
            painted.push_inline(style, shown);
        }
    }
}

/// Encodes a path for an address.
fn encode_path(path: &str) -> String {
    let mut encoded = String::new();
    for byte in path.bytes() {
        if byte.is_ascii_alphanumeric() || b"/-_.~".contains(&byte) {
            encoded.push(char::from(byte));
        } else {
            encoded.push_str(&format!("%{byte:02X}"));
        }
    }
    encoded
}

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
        };
        let text = "active since 2026-07-29T04:45:00.000Z; newest 2026-11-26T11:00:00Z.";
        let expected = "active since Jul 29 13:45; newest 1h ago.";
        assert_eq!(layout.localize_times(text), expected);
        assert_eq!(layout.localize_times("No T Z here"), "No T Z here");
        let text = "The index was updated at 2026-11-26T11:00:00Z; look at it.";
        assert_eq!(layout.localize_times(text), "The index was updated 1h ago; look at it.");
    }
}
