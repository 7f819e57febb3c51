//! Extracts the literals that every match of a regular expression contains, for the skip index.

use regex_syntax::hir::{Class, Hir, HirKind};

/// Maximum number of alternatives in a group; the index is queried for each.
const MAX_ALTERNATIVES: usize = 64;

/// Maximum number of bytes of a literal; further bytes are ignored.
const MAX_LITERAL_BYTES: usize = 64;

/// Minimum number of bytes that all alternatives must share for this shared part to replace
/// them.
const MIN_COMMON_BYTES: usize = 4;

/// Maximum number of copies of a repeated part whose literals are collected.
const MAX_COPIES: u32 = 8;

/// A run is kept as a group only if the filter of a block that contains none of its literals
/// reports at most this many of them on average.
const MAX_CHANCE: f64 = 0.5;

/// Returns the probability that a block's filter reports a literal of `length` bytes that the
/// block does not contain: a quarter for every run of three bytes, half of that for every run of
/// five.
fn false_report_chance(length: usize) -> f64 {
    0.25f64.powi(count_runs(length, 3)) * 0.5f64.powi(count_runs(length, 5))
}

/// Returns the number of runs of `run` bytes in a literal of `length` bytes, at most 64.
fn count_runs(length: usize, run: usize) -> i32 {
    (length + 1).saturating_sub(run).min(64) as i32
}

/// Returns groups of lower-case ASCII literals: every match contains one literal of each group.
pub(super) fn extract_literals(hir: &Hir) -> Vec<Vec<String>> {
    let mut walk = LiteralWalk::default();
    walk.visit_expression(hir);
    walk.end_run();
    walk.groups
}

/// Collects literals while walking along a match.
#[derive(Default)]
struct LiteralWalk {
    groups: Vec<Vec<String>>,
    /// The literals that may directly precede this place, all of one length; empty if nothing
    /// is known about the preceding text.
    run: Vec<String>,
}

impl LiteralWalk {
    fn visit_expression(&mut self, hir: &Hir) {
        match hir.kind() {
            // An assertion matches no characters.
            HirKind::Empty | HirKind::Look(_) => {}
            HirKind::Literal(literal) => {
                for letter in str::from_utf8(&literal.0).unwrap_or("\u{fffd}").chars() {
                    self.extend_run(lower_ascii(letter).map(|letter| vec![letter]));
                }
            }
            HirKind::Class(class) => self.extend_run(class_letters(class)),
            HirKind::Capture(capture) => self.visit_expression(&capture.sub),
            HirKind::Concat(parts) => {
                for part in parts {
                    self.visit_expression(part);
                }
            }
            HirKind::Repetition(repetition) => {
                let copies = repetition.min.min(MAX_COPIES);
                for _ in 0..copies {
                    // Further copies of a long enough literal add nothing, however deeply they
                    // are nested.
                    if self.is_run_full() {
                        break;
                    }
                    self.visit_expression(&repetition.sub);
                }
                if repetition.max != Some(copies) {
                    self.end_run();
                }
            }
            HirKind::Alternation(branches) => {
                self.end_run();
                // One group that joins a group of every branch.
                let any: Option<Vec<_>> = branches.iter().map(longest_group).collect();
                let Some(any) = any else { return };
                let any = any.concat();
                if any.len() <= MAX_ALTERNATIVES {
                    self.groups.push(any);
                }
            }
        }
    }

    /// Returns true if further bytes of the run are ignored.
    fn is_run_full(&self) -> bool {
        self.run.first().is_some_and(|run| run.len() >= MAX_LITERAL_BYTES)
    }

    /// Extends the run by one of these letters; `None` ends the run.
    fn extend_run(&mut self, letters: Option<Vec<char>>) {
        let Some(letters) = letters else { return self.end_run() };
        // The index uses no more bytes, and nested repetitions would make the run very long.
        if self.is_run_full() {
            return;
        }
        if self.run.len() * letters.len() > MAX_ALTERNATIVES {
            self.end_run();
        }
        if self.run.is_empty() {
            self.run.push(String::new());
        }

        let mut longer = Vec::new();
        for run in &self.run {
            for letter in &letters {
                longer.push(format!("{run}{letter}"));
            }
        }
        self.run = longer;
    }

    /// Ends the run and keeps it as a group if it is selective. The text before the next part
    /// is unknown.
    fn end_run(&mut self) {
        let run = std::mem::take(&mut self.run);
        let common = longest_common_part(&run);
        if common.len() >= MIN_COMMON_BYTES {
            self.groups.push(vec![common.to_owned()]);
            return;
        }
        let Some(first) = run.first() else { return };
        if false_report_chance(first.len()) * run.len() as f64 <= MAX_CHANCE {
            self.groups.push(run);
        }
    }
}

/// Returns the group of literals of `hir` with the longest first literal; `None` if there is no
/// group.
fn longest_group(hir: &Hir) -> Option<Vec<String>> {
    extract_literals(hir).into_iter().max_by_key(|group| group.first().map(String::len))
}

/// Returns the longest part that all literals share at the same place; they have equal lengths.
fn longest_common_part(run: &[String]) -> &str {
    let Some((first, others)) = run.split_first() else { return "" };
    let mut best = 0..0;
    let mut part_start = 0;
    for (at, byte) in first.bytes().enumerate() {
        if others.iter().any(|other| other.as_bytes()[at] != byte) {
            part_start = at + 1;
        } else if at + 1 - part_start > best.len() {
            best = part_start..at + 1;
        }
    }
    &first[best]
}

/// Returns the lower-case letters of a class. Returns `None` if it is a class of bytes, has more
/// than [`MAX_ALTERNATIVES`] characters, or has one without an ASCII form.
fn class_letters(class: &Class) -> Option<Vec<char>> {
    let Class::Unicode(class) = class else { return None };
    let count: usize = class.ranges().iter().map(|range| range.len()).sum();
    if count > MAX_ALTERNATIVES {
        return None;
    }
    let all = class.ranges().iter().flat_map(|range| range.start()..=range.end());
    let mut letters = all.map(lower_ascii).collect::<Option<Vec<_>>>()?;
    letters.sort_unstable();
    letters.dedup();
    Some(letters)
}

/// Returns the lower-case form of an ASCII letter, also for the two other letters (ſ and the
/// Kelvin sign) that match one if case does not matter. Other letters give `None`: the index folds
/// them by narrower rules than a regular expression.
fn lower_ascii(letter: char) -> Option<char> {
    match letter {
        '\u{17f}' => Some('s'),
        '\u{212a}' => Some('k'),
        _ if letter.is_ascii() => Some(letter.to_ascii_lowercase()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn check(source: &str, want: &[&[&str]]) {
        let got = extract_literals(&regex_syntax::parse(source).expect(source));
        assert_eq!(got, want, "{source}");
    }

    #[test]
    fn every_match_contains_the_literals() {
        check("err_[0-9]{5}_quokka", &[&["err_"], &["_quokka"]]);
        check(r"\bfoo\b.*(bar|bazz)x", &[&["foo"], &["bar", "bazz"]]);
        check("(abc)(def)", &[&["abcdef"]]);
        check("(?:abc)?def+", &[&["def"]]);
        check("a|bcd", &[]);
        check("(abc){2}naïve", &[&["abcabcna"]]);
        check("[Ff]unction", &[&["function"]]);
    }

    #[test]
    fn small_classes_are_spelled_out() {
        check("E[04]{2}x", &[&["e00x", "e04x", "e40x", "e44x"]]);
        check("(?i)Disk", &[&["disk"]]);
        check("[a-z]{3}", &[]);
        check("ab[é]cde", &[&["cde"]]);
        // Each of a hundred seems to be in a sixth of the blocks.
        check("@@[0-9]{3}[g-z]{2}", &[]);
    }

    proptest! {
        #[test]
        fn every_match_has_one_of_each_group(
            source in "(\\(a\\|?b[bc]\\))?[a-c]{1,3}(\\[[a-c]{1,3}\\])?([a-c][*+?]|[a-c]\\{2\\}|[a-c]\\{1,2\\})?[a-cA-C]{1,3}",
            text in "[a-cA-C]{0,24}",
        ) {
            let regex = regex::RegexBuilder::new(&source).case_insensitive(true).build().expect(&source);
            for found in regex.find_iter(&text) {
                let found = found.as_str().to_ascii_lowercase();
                for group in extract_literals(&regex_syntax::parse(&source).expect("parses")) {
                    prop_assert!(group.iter().any(|literal| found.contains(literal)), "{source} {found} {group:?}");
                }
            }
        }
    }
}
