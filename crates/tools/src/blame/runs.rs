//! Finds the lines of a file that edits inserted, by runs of equal lines.
//!
//! A line is evidence if it was inserted, is long enough and occurs once in the file. Only such lines
//! are attributed, and only in a run with several of them: a closing brace never is.

use std::collections::HashMap;

use super::inserted::InsertedPart;

/// Minimum number of letters and digits of a line that is evidence.
pub(super) const MIN_LINE_LETTERS: usize = 8;

/// Minimum number of lines of evidence in a run.
const MIN_RUN_LINES: usize = 2;

/// Minimum number of letters and digits in the lines of evidence of a run.
const MIN_RUN_LETTERS: usize = 40;

/// A file whose lines are attributed.
pub(super) struct FileLines {
    lines: Vec<String>,
    /// The positions of each line that is long enough.
    places: HashMap<String, Vec<usize>>,
}

/// A line of evidence: its position in the part and in the file.
#[derive(Debug, Clone, Copy)]
struct Evidence {
    part: usize,
    file: usize,
}

impl FileLines {
    pub(super) fn new(text: &str) -> Self {
        let lines: Vec<String> = text.lines().map(|line| line.trim_end().to_owned()).collect();
        let mut places: HashMap<String, Vec<usize>> = HashMap::new();
        for (at, line) in lines.iter().enumerate() {
            if count_letters(line) >= MIN_LINE_LETTERS {
                places.entry(line.clone()).or_default().push(at);
            }
        }
        Self { lines, places }
    }

    pub(super) fn len(&self) -> usize {
        self.lines.len()
    }

    /// Returns the positions of the lines that the edit with this part inserted.
    pub(super) fn inserted_lines(&self, part: &InsertedPart) -> Vec<usize> {
        let mut attributed = Vec::new();
        let mut run: Vec<Evidence> = Vec::new();
        for (at, line) in part.iter().enumerate().filter(|(_, line)| line.is_new) {
            // A line that occurs more than once does not show which one was inserted.
            let Some([place]) = self.places.get(&line.text).map(Vec::as_slice) else { continue };
            let next = Evidence { part: at, file: *place };
            if !run.last().is_some_and(|last| self.continues_run(part, *last, next)) {
                self.append_run(&run, &mut attributed);
                run.clear();
            }
            run.push(next);
        }
        self.append_run(&run, &mut attributed);
        attributed
    }

    /// Returns true if the lines between two lines of evidence are equal in the part and the file.
    fn continues_run(&self, part: &InsertedPart, last: Evidence, next: Evidence) -> bool {
        let distance = next.part - last.part;
        let is_equal = |offset: usize| {
            let line = part.get(last.part + offset).map(|line| line.text.as_str());
            line == self.lines.get(last.file + offset).map(String::as_str)
        };
        next.file == last.file + distance && (1..distance).all(is_equal)
    }

    /// Appends the lines of a run if they are enough.
    fn append_run(&self, run: &[Evidence], attributed: &mut Vec<usize>) {
        let lines = run.iter().filter_map(|evidence| self.lines.get(evidence.file));
        let letters: usize = lines.map(|line| count_letters(line)).sum();
        if run.len() >= MIN_RUN_LINES && letters >= MIN_RUN_LETTERS {
            attributed.extend(run.iter().map(|evidence| evidence.file));
        }
    }
}

/// Returns the number of letters and digits of a line.
pub(super) fn count_letters(line: &str) -> usize {
    line.chars().filter(|c| c.is_alphanumeric()).count()
}

#[cfg(test)]
mod tests {
    use super::super::inserted::InsertedLine;
    use super::*;

    /// Builds a part from lines; new ones begin with `+`.
    fn part(lines: &[&str]) -> InsertedPart {
        let line = |line: &&str| InsertedLine {
            text: line[1..].to_owned(),
            is_new: line.starts_with('+'),
        };
        lines.iter().map(line).collect()
    }

    const FILE: &str = "use std::fmt;\n\nfn first_thing() {\n    let answer = compute_answer(41);\n    println!(\"the answer is {answer}\");\n}\n\nfn other() {\n}\n";

    #[test]
    fn the_long_lines_of_an_inserted_run_are_attributed() {
        let file = FileLines::new(FILE);
        let function = part(&[
            "+fn first_thing() {",
            "+    let answer = compute_answer(41);",
            "+    println!(\"the answer is {answer}\");",
            "+}",
        ]);
        assert_eq!(file.inserted_lines(&function), [2, 3, 4]);
    }

    #[test]
    fn common_and_lone_lines_are_no_evidence() {
        let file = FileLines::new(FILE);
        for lines in [
            &["+}", "+", "+fn other() {", "+}"][..],
            &["+use std::fmt;"],
            &["+    let answer = compute_answer(41);"],
            &[" fn first_thing() {", "     let answer = compute_answer(41);"],
        ] {
            assert_eq!(file.inserted_lines(&part(lines)), Vec::<usize>::new(), "{lines:?}");
        }
        let in_context = part(&[
            " fn first_thing() {",
            "+    let answer = compute_answer(41);",
            "     println!(\"the answer is {answer}\");",
        ]);
        assert_eq!(file.inserted_lines(&in_context), Vec::<usize>::new());
    }

    #[test]
    fn a_part_that_occurs_twice_is_not_attributed() {
        let text =
            "    let answer = compute_answer(41);\n    println!(\"the answer is {answer}\");\n";
        let file = FileLines::new(&format!("{text}\nmiddle\n{text}"));
        let part = part(&[
            "+    let answer = compute_answer(41);",
            "+    println!(\"the answer is {answer}\");",
        ]);
        assert_eq!(file.inserted_lines(&part), Vec::<usize>::new());
    }
}
