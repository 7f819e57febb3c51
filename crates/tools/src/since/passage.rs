//! Reads what the skip index knows of an event that is quoted, and which files it names.

use std::collections::BTreeSet;

use schemas::EventType;

use super::edited::EditedFile;
use super::project::LaterSessions;
use base::paths::{last_part, resolve_path};
use store::{RowFacts, Snapshot, StoreError};

/// Maximum number of files that a passage names and that are looked for.
const MAX_FILES: usize = 4;

/// Rows after a call among which its result is looked for.
const RESULT_REACH: usize = 20;

/// A part of paths in which a secret was masked, here or on the machine that published the log.
const MASKED: &str = "REDACTED";

/// Maximum number of characters of the ending of a file's name.
const MAX_ENDING_CHARS: usize = 5;

/// An event that is quoted.
pub(super) struct PassageFacts<'a> {
    /// The position of its session among those that are recalled.
    pub(super) owner: usize,
    /// The position of its session in `Snapshot::sessions`.
    pub(super) session: usize,
    pub(super) event_index: u32,
    /// The part of its text that is shown.
    pub(super) text: &'a str,
    pub(super) time: i64,
    pub(super) turn: u32,
    pub(super) event_type: EventType,
    is_error: Option<bool>,
    /// Position of its segment, and its row there.
    pub(super) place: (usize, usize),
    /// Number of its list of files in the segment.
    file_list: u32,
}

/// True if a name has marks that separate the facts of a line, with which it could state one.
fn has_marks(name: &str) -> bool {
    // `C:\harbor` is a full path on Windows.
    let has_drive = matches!(name.as_bytes(), [_, b':', b'/' | b'\\', ..]);
    let rest = if has_drive { &name[2..] } else { name };
    rest.contains([';', ':'])
}

/// Reads the facts of an event; `None` if its log gives no time, or if it is not there.
pub(super) fn read_facts<'a>(
    snapshot: &Snapshot,
    owner: usize,
    (session, event_index): (usize, u32),
    text: &'a str,
) -> Result<Option<PassageFacts<'a>>, StoreError> {
    let range = event_index..event_index.saturating_add(1);
    let Some((number, rows)) = snapshot.rows_of(session, range).next() else { return Ok(None) };
    let row = rows.start;
    let facts = snapshot.segments()[number].skip_index()?.read_facts(row..row + 1)?;
    let Some(fact) = facts.iter().next() else { return Ok(None) };
    let RowFacts { time, turn_index, event_type, is_error, file_list, .. } = fact;
    Ok(time.map(|time| PassageFacts {
        owner,
        session,
        event_index,
        text,
        time,
        turn: turn_index,
        event_type,
        is_error,
        place: (number, row),
        file_list,
    }))
}

impl<'a> PassageFacts<'a> {
    /// True if it is a result that failed, or a call that such a result follows.
    pub(super) fn may_have_failed(&self, snapshot: &Snapshot) -> Result<bool, StoreError> {
        if self.event_type != EventType::ToolCall {
            return Ok(self.event_type == EventType::ToolResult && self.is_error == Some(true));
        }
        let (number, row) = self.place;
        let facts =
            snapshot.segments()[number].skip_index()?.read_facts(row..row + RESULT_REACH)?;
        let mut of_step = facts.iter().filter(|fact| fact.turn_index == self.turn);
        Ok(of_step
            .any(|fact| fact.event_type == EventType::ToolResult && fact.is_error == Some(true)))
    }

    /// Returns the files that the passage names: those of its call, or those whose paths are in its text
    /// and that calls of its session name. A path that fits several of these files names none. `known` is
    /// set to the files of the session when they are first needed.
    pub(super) fn name_files<'l>(
        &self,
        snapshot: &Snapshot,
        later: &'l LaterSessions<'l>,
        known: &mut Option<BTreeSet<String>>,
    ) -> Result<Vec<EditedFile<'l>>, StoreError> {
        let folder = later.session.origin.cwd.as_deref();
        let full = |path: &str| resolve_path(folder, path).replace('\\', "/");
        let mut files = Vec::new();
        let mut add = |shown: &str, path: String| {
            // Several files may have the same name once it is masked.
            if files.len() < MAX_FILES && !path.contains(MASKED) && !has_marks(shown) {
                files.push(EditedFile::new(self.owner, self.time, later, shown, path));
            }
        };
        if !self.event_type.is_talk() {
            let index = snapshot.segments()[self.place.0].skip_index()?;
            let own = index.file_lists()?.get(self.file_list as usize);
            for path in own.into_iter().flat_map(|paths| paths.lines()) {
                add(last_part(path), full(path));
            }
            return Ok(files);
        }

        let named: BTreeSet<&str> = find_paths(self.text).collect();
        if named.is_empty() {
            return Ok(files);
        }
        let known = match known {
            Some(known) => known,
            None => known.insert(files_of_session(snapshot, self.session)?),
        };
        for name in named {
            let plain = name.replace('\\', "/");
            let plain = plain.trim_start_matches("./");
            let last = last_part(plain);
            let of_name =
                known.iter().filter(|path| last_part(path) == last).map(|path| full(path));
            let fitting: BTreeSet<String> =
                of_name.filter(|path| ends_with_path(path, plain)).collect();
            if let (1, Some(path)) = (fitting.len(), fitting.into_iter().next()) {
                add(name, path);
            }
        }
        Ok(files)
    }
}

/// Returns the different paths of files that the rows of a session name.
fn files_of_session(snapshot: &Snapshot, session: usize) -> Result<BTreeSet<String>, StoreError> {
    let mut files = BTreeSet::new();
    for (number, rows) in snapshot.rows_of(session, 0..u32::MAX) {
        let index = snapshot.segments()[number].skip_index()?;
        let facts = index.read_facts(rows.start..rows.start + rows.count)?;
        let lists: BTreeSet<u32> = facts.iter().map(|fact| fact.file_list).collect();
        let known = index.file_lists()?;
        let paths = lists.iter().filter_map(|list| known.get(*list as usize));
        files.extend(paths.flat_map(|paths| paths.lines()).map(str::to_owned));
    }
    Ok(files)
}

/// Returns true if the last parts of a path are those of another one.
fn ends_with_path(path: &str, end: &str) -> bool {
    let before = path.strip_suffix(end);
    before.is_some_and(|before| before.is_empty() || before.ends_with('/') || end.starts_with('/'))
}

/// Returns what looks like a path of a file in a text: words whose last part has an ending.
fn find_paths(text: &str) -> impl Iterator<Item = &str> {
    let words = text.split(|c: char| c.is_whitespace() || "\"'`()[]{}<>,;|*…".contains(c));
    words.filter_map(|word| {
        let mut path = word.split('#').next()?.trim_end_matches(['.', ':', '?', '!']);
        // A place in a file: `a.rs:12:3`.
        while let Some((before, number)) = path.rsplit_once(':')
            && number.chars().all(|c| c.is_ascii_digit())
        {
            path = before;
        }
        let (name, ending) = last_part(path).rsplit_once('.')?;
        let is_ending = (1..=MAX_ENDING_CHARS).contains(&ending.len())
            && ending.chars().all(|c| c.is_ascii_alphanumeric())
            && ending.starts_with(|c: char| c.is_ascii_alphabetic());
        (is_ending && !name.is_empty()).then_some(path)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_could_state_a_fact_has_marks() {
        assert!(has_marks("a.rs; revisited: b:1") && has_marks("a:b") && has_marks(":"));
        assert!(
            !has_marks("C:\\harbor\\a.rs") && !has_marks("app/(group)/[id].tsx") && !has_marks("a")
        );
    }

    #[test]
    fn paths_are_words_with_the_ending_of_a_file() {
        let text = "See `src/a.rs:12:3`, (docs/b.md#L4). Not 1.5 or a/b: C:\\x\\y.ts!";
        let found: Vec<&str> = find_paths(text).collect();
        assert_eq!(found, ["src/a.rs", "docs/b.md", "C:\\x\\y.ts"]);
    }

    #[test]
    fn a_path_fits_if_its_last_parts_are_the_same() {
        assert!(ends_with_path("/h/src/a.rs", "src/a.rs"));
        assert!(ends_with_path("/h/src/a.rs", "/h/src/a.rs"));
        assert!(!ends_with_path("/h/src/ba.rs", "a.rs"));
        assert!(!ends_with_path("/h/src/a.rs", "b/src/a.rs"));
    }
}
