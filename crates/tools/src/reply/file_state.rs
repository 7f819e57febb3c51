//! What is known of a file while the calls that read and changed it are followed in order.

use std::collections::BTreeMap;

/// What a call shows of a file, or does to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum FileAction {
    /// It writes the whole file.
    Write(String),
    /// It replaces parts of the file, one after the other.
    Replace(Vec<Replacement>),
    /// It shows the whole file.
    ReadWhole(String),
    /// It shows some lines, by number from 1.
    ReadLines(BTreeMap<usize, String>),
    Delete,
    /// It changes the file in a way that its arguments do not show.
    Unknown,
}

/// A text of a file that another one replaces.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Replacement {
    pub(crate) old: String,
    pub(crate) new: String,
    /// Whether all occurrences are replaced.
    pub(crate) is_everywhere: bool,
}

/// What is known of the text of a file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) enum KnownText {
    #[default]
    Nothing,
    Whole(String),
    /// Some lines, by number from 1.
    Lines(BTreeMap<usize, String>),
    Deleted,
}

/// What is known of a file after the calls so far.
#[derive(Debug, Default)]
pub(crate) struct FileState {
    pub(crate) text: KnownText,
    /// The number of edits since the file was read or written.
    pub(crate) edits: usize,
    /// Why the text may be another one, one sentence each.
    pub(crate) doubts: Vec<String>,
}

impl FileState {
    /// Applies a call, which `event` names. Returns whether the call shows the file itself, so that what
    /// was known before no longer matters.
    pub(crate) fn apply(&mut self, action: FileAction, event: &str) -> bool {
        match action {
            FileAction::Write(text) => self.begin(KnownText::Whole(text)),
            FileAction::Delete => self.begin(KnownText::Deleted),
            FileAction::ReadWhole(text) => match &self.text {
                // The text that was written tells whether its last line has an end.
                KnownText::Whole(known) if known.lines().eq(text.lines()) => {
                    self.doubts.clear();
                    false
                }
                KnownText::Whole(_)
                | KnownText::Nothing
                | KnownText::Lines(_)
                | KnownText::Deleted => self.begin(KnownText::Whole(text)),
            },
            FileAction::ReadLines(lines) => self.add_lines(lines, event),
            FileAction::Replace(replacements) => {
                self.edits += 1;
                for replacement in &replacements {
                    if let Err(reason) = self.replace(replacement) {
                        self.doubts
                            .push(format!("the edit {event} could not be applied: {reason}"));
                    }
                }
                false
            }
            FileAction::Unknown => {
                self.doubts.push(format!("how {event} changed the file is not in its arguments"));
                false
            }
        }
    }

    fn begin(&mut self, text: KnownText) -> bool {
        *self = Self { text, ..Self::default() };
        true
    }

    /// Adds lines that were read.
    fn add_lines(&mut self, lines: BTreeMap<usize, String>, event: &str) -> bool {
        match &mut self.text {
            KnownText::Whole(text) => {
                let known: Vec<&str> = text.lines().collect();
                let is_same = |(number, line): (&usize, &String)| {
                    known.get(number - 1).is_some_and(|known| known == line)
                };
                if lines.iter().all(is_same) {
                    return false;
                }
            }
            KnownText::Lines(known) => {
                let is_same = |(number, line): (&usize, &String)| {
                    known.get(number).is_none_or(|known| known == line)
                };
                if lines.iter().all(is_same) {
                    known.extend(lines);
                    return false;
                }
            }
            KnownText::Nothing | KnownText::Deleted => return self.begin(KnownText::Lines(lines)),
        }
        self.begin(KnownText::Lines(lines));
        self.doubts.push(format!(
            "{event} shows other lines than were known before, so something else changed the file; only lines read since count"
        ));
        true
    }

    /// Replaces a text. An error is the reason why it cannot be.
    fn replace(&mut self, replacement: &Replacement) -> Result<(), String> {
        let Replacement { old, new, is_everywhere } = replacement;
        match &mut self.text {
            KnownText::Whole(text) => match text.matches(old.as_str()).count() {
                _ if old.is_empty() && text.is_empty() => new.clone_into(text),
                _ if old.is_empty() => return Err("it names no old text".to_owned()),
                0 => return Err("its old text is not in the file".to_owned()),
                count if count > 1 && !is_everywhere => {
                    return Err(format!("its old text is in the file {count} times"));
                }
                _ => *text = text.replace(old.as_str(), new),
            },
            KnownText::Lines(lines) => replace_in_lines(lines, replacement)?,
            KnownText::Deleted | KnownText::Nothing if old.is_empty() => {
                self.text = KnownText::Whole(new.clone());
            }
            KnownText::Deleted => return Err("the file was deleted before".to_owned()),
            KnownText::Nothing => return Err("the file was not read or written before".to_owned()),
        }
        Ok(())
    }
}

/// Replaces a text in known lines, if it is there exactly once. Lines after it move.
fn replace_in_lines(
    lines: &mut BTreeMap<usize, String>,
    replacement: &Replacement,
) -> Result<(), String> {
    let Replacement { old, new, .. } = replacement;
    let runs = contiguous_runs(lines);
    let texts: Vec<String> = runs
        .iter()
        .map(|[first, last]| {
            let run = lines.range(first..=last).map(|(_, line)| format!("{line}\n"));
            run.collect()
        })
        .collect();
    let found: usize = texts.iter().map(|text| text.matches(old.as_str()).count()).sum();
    if old.is_empty() || found != 1 {
        return Err(match found {
            0 => "its old text is not in the lines that are known".to_owned(),
            _ => format!("its old text is in the known lines {found} times"),
        });
    }
    let mut replaced = BTreeMap::new();
    let mut moved_by = 0;
    for ([first, last], text) in runs.into_iter().zip(texts) {
        let after = text.replace(old.as_str(), new);
        let start = first.saturating_add_signed(moved_by);
        for (number, line) in (start..).zip(after.lines()) {
            replaced.insert(number, line.to_owned());
        }
        let before = last + 1 - first;
        moved_by += after.lines().count().cast_signed() - before.cast_signed();
    }
    *lines = replaced;
    Ok(())
}

/// Returns the first and the last number of each run of lines without a gap.
pub(crate) fn contiguous_runs(lines: &BTreeMap<usize, String>) -> Vec<[usize; 2]> {
    let mut runs: Vec<[usize; 2]> = Vec::new();
    for number in lines.keys() {
        match runs.last_mut() {
            Some([_, last]) if *last + 1 == *number => *last = *number,
            _ => runs.push([*number, *number]),
        }
    }
    runs
}

#[cfg(test)]
mod tests {
    use super::*;

    fn edit(old: &str, new: &str) -> FileAction {
        let (old, new) = (old.to_owned(), new.to_owned());
        FileAction::Replace(vec![Replacement { old, new, is_everywhere: false }])
    }

    fn lines(first: usize, texts: &[&str]) -> BTreeMap<usize, String> {
        (first..).zip(texts.iter().map(|text| (*text).to_owned())).collect()
    }

    /// Applies calls and returns the text with the number of doubts.
    fn follow(actions: Vec<FileAction>) -> (KnownText, usize) {
        let mut state = FileState::default();
        for action in actions {
            state.apply(action, "s:1");
        }
        (state.text, state.doubts.len())
    }

    fn whole(text: &str) -> KnownText {
        KnownText::Whole(text.to_owned())
    }

    #[test]
    fn an_edit_is_certain_if_its_old_text_is_there_once() {
        let write = || FileAction::Write("a\nb\na\n".to_owned());
        assert_eq!(follow(vec![write(), edit("b", "c")]), (whole("a\nc\na\n"), 0));
        assert_eq!(follow(vec![write(), edit("a", "c")]), (whole("a\nb\na\n"), 1), "twice");
        assert_eq!(follow(vec![write(), edit("x", "c")]), (whole("a\nb\na\n"), 1), "not there");
        let read = || FileAction::ReadWhole("a\nx\na".to_owned());
        assert_eq!(follow(vec![write(), edit("x", "c"), read()]), (whole("a\nx\na"), 0));
        let same = FileAction::ReadWhole("a\nb\na".to_owned());
        assert_eq!(follow(vec![write(), same]), (whole("a\nb\na\n"), 0), "its end is known");
        assert_eq!(follow(vec![edit("", "new")]), (whole("new"), 0), "a new file");
        assert_eq!(follow(vec![edit("a", "b")]), (KnownText::Nothing, 1));
        assert_eq!(follow(vec![write(), FileAction::Delete]), (KnownText::Deleted, 0));
        assert_eq!(follow(vec![write(), FileAction::Unknown]), (whole("a\nb\na\n"), 1));
    }

    #[test]
    fn lines_that_were_read_are_known_by_their_numbers() {
        let first = || FileAction::ReadLines(lines(1, &["a", "b"]));
        let later = || FileAction::ReadLines(lines(7, &["x", "y"]));
        let both: BTreeMap<usize, String> =
            lines(1, &["a", "b"]).into_iter().chain(lines(7, &["x", "y"])).collect();
        assert_eq!(follow(vec![first(), later()]), (KnownText::Lines(both.clone()), 0));
        assert_eq!(contiguous_runs(&both), [[1, 2], [7, 8]]);
        let edited: BTreeMap<usize, String> =
            lines(1, &["a", "c", "d"]).into_iter().chain(lines(8, &["x", "y"])).collect();
        let edits = vec![first(), later(), edit("b\n", "c\nd\n")];
        assert_eq!(follow(edits), (KnownText::Lines(edited), 0));
        let other = FileAction::ReadLines(lines(2, &["c"]));
        assert_eq!(follow(vec![first(), other]), (KnownText::Lines(lines(2, &["c"])), 1));
        let write = FileAction::Write("a\nb\n".to_owned());
        assert_eq!(follow(vec![write, first()]), (whole("a\nb\n"), 0));
    }
}
