//! Extracts the literals that every match of a regular expression contains, for the skip index.

use regex_syntax::hir::{Class, Hir, HirKind};

/// Maximum number of alternatives in a group; the index is queried for each.
const MOST: usize = 64;

/// Maximum number of bytes of a literal; further bytes are ignored.
const LONGEST: usize = 64;

/// Minimum number of bytes that all alternatives must share for this shared part to replace
/// them.
const ENOUGH: usize = 4;

/// Returns the probability that a block's filter reports a literal of `length` bytes that the
/// block does not contain: a quarter for every run of three bytes, half of that for every run of
/// five.
fn chance(length: usize) -> f64 {
    let runs = |of: usize| (length + 1).saturating_sub(of).min(64) as i32;
    0.25f64.powi(runs(3)) * 0.5f64.powi(runs(5))
}

/// Returns groups of lower-case ASCII literals: every match contains one literal of each group.
pub(super) fn literals(hir: &Hir) -> Vec<Vec<String>> {
    let mut walk = Walk::default();
    walk.along(hir);
    walk.end();
    walk.groups
}

/// Collects literals while walking along a match.
#[derive(Default)]
struct Walk {
    groups: Vec<Vec<String>>,
    /// The literals that may directly precede this place, all of one length; empty if nothing
    /// is known about the preceding text.
    run: Vec<String>,
}

impl Walk {
    fn along(&mut self, hir: &Hir) {
        match hir.kind() {
            // An assertion matches no characters.
            HirKind::Empty | HirKind::Look(_) => {}
            HirKind::Literal(literal) => {
                let letters = str::from_utf8(&literal.0).unwrap_or("\u{fffd}").chars();
                letters.for_each(|letter| self.one_of(small(letter).map(|c| vec![c])));
            }
            HirKind::Class(class) => self.one_of(letters(class)),
            HirKind::Capture(capture) => self.along(&capture.sub),
            HirKind::Concat(parts) => parts.iter().for_each(|part| self.along(part)),
            HirKind::Repetition(repetition) => {
                let copies = repetition.min.min(8);
                for _ in 0..copies {
                    // Further copies of a long enough literal add nothing, however deeply they
                    // are nested.
                    if self.run.first().is_some_and(|run| run.len() >= LONGEST) {
                        break;
                    }
                    self.along(&repetition.sub);
                }
                if repetition.max != Some(copies) {
                    self.end();
                }
            }
            HirKind::Alternation(branches) => {
                self.end();
                let telling = |branch: &Hir| {
                    let shortest = |group: &Vec<String>| group.first().map(String::len);
                    literals(branch).into_iter().max_by_key(shortest)
                };
                let any: Option<Vec<_>> = branches.iter().map(telling).collect();
                self.groups.extend(any.map(|any| any.concat()).filter(|any| any.len() <= MOST));
            }
        }
    }

    /// Extends the run by one of these letters; `None` ends the run.
    fn one_of(&mut self, letters: Option<Vec<char>>) {
        let Some(letters) = letters else { return self.end() };
        // The index uses no more bytes, and nested repetitions would make the run very long.
        if self.run.first().is_some_and(|run| run.len() >= LONGEST) {
            return;
        }
        if self.run.len() * letters.len() > MOST {
            self.end();
        }
        if self.run.is_empty() {
            self.run.push(String::new());
        }
        let longer = self.run.iter().flat_map(|run| {
            letters.iter().map(move |letter| {
                let mut run = run.clone();
                run.push(*letter);
                run
            })
        });
        self.run = longer.collect();
    }

    /// Ends the run and keeps it as a group if it is selective. The text before the next part
    /// is unknown.
    fn end(&mut self) {
        let run = std::mem::take(&mut self.run);
        let common = common(&run);
        if common.len() >= ENOUGH {
            self.groups.push(vec![common.to_owned()]);
        } else if run.first().is_some_and(|first| chance(first.len()) * run.len() as f64 <= 0.5) {
            self.groups.push(run);
        }
    }
}

/// Returns the longest part that all literals share at the same place; they have equal lengths.
fn common(run: &[String]) -> &str {
    let Some((first, others)) = run.split_first() else { return "" };
    let same = |at: usize| others.iter().all(|other| other.as_bytes()[at] == first.as_bytes()[at]);
    let (mut best, mut from) = (0..0, 0);
    for at in 0..first.len() {
        if !same(at) {
            from = at + 1;
        } else if at + 1 - from > best.len() {
            best = from..at + 1;
        }
    }
    &first[best]
}

/// Returns the lower-case letters of a class; `None` if it has more than [`MOST`] characters or one
/// without an ASCII form.
fn letters(class: &Class) -> Option<Vec<char>> {
    let Class::Unicode(class) = class else { return None };
    let count = |range: &regex_syntax::hir::ClassUnicodeRange| range.len();
    if class.ranges().iter().map(count).sum::<usize>() > MOST {
        return None;
    }
    let all = class.ranges().iter().flat_map(|range| range.start()..=range.end());
    let mut letters = all.map(small).collect::<Option<Vec<_>>>()?;
    letters.sort_unstable();
    letters.dedup();
    Some(letters)
}

/// Returns the lower-case form of an ASCII letter, also for the two other letters (ſ and the
/// Kelvin sign) that match one if case does not matter. Other letters give `None`: the index folds
/// them by narrower rules than a regular expression.
fn small(letter: char) -> Option<char> {
    match letter {
        '\u{17f}' => Some('s'),
        '\u{212a}' => Some('k'),
        _ => letter.is_ascii().then(|| letter.to_ascii_lowercase()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn check(source: &str, want: &[&[&str]]) {
        let got = literals(&regex_syntax::parse(source).expect(source));
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
                for group in literals(&regex_syntax::parse(&source).expect("parses")) {
                    prop_assert!(group.iter().any(|literal| found.contains(literal)), "{source} {found} {group:?}");
                }
            }
        }
    }
}
