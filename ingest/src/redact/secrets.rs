//! Counts what is masked in a session: a secret of an event once, however many columns show it.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashSet};

use xxhash_rust::xxh3::xxh3_64;

use super::{Counts, Redactor};

/// What was masked in a text: kinds of secrets, and the secrets themselves by hash.
pub(crate) type Found = Vec<(String, u64)>;

/// Masks a text and says what was masked.
pub(crate) fn look<'t>(redactor: Option<&Redactor>, text: &'t str) -> (Cow<'t, str>, Found) {
    let mut found = Found::new();
    let masked = redactor.map_or(Cow::Borrowed(text), |redactor| {
        redactor.mask_telling(text, &mut |kind, secret| {
            found.push((kind.to_owned(), xxh3_64(secret.as_bytes())));
        })
    });
    (masked, found)
}

/// Columns of an event, without secrets.
pub(crate) struct Said<'t> {
    pub(crate) text: Cow<'t, str>,
    pub(crate) command: Cow<'t, str>,
    pub(crate) files: Cow<'t, str>,
}

/// The secrets of one session.
#[derive(Default)]
pub(crate) struct Secrets {
    counts: Counts,
    /// Those of events.
    in_events: HashSet<u64>,
    /// Those of the session's own columns, which mostly stand in an event as well.
    beside: BTreeMap<u64, String>,
}

impl Secrets {
    /// Masks and counts an event. Every place in the text counts. Command and files come out of a
    /// call's arguments as the text does: of theirs counts what was not masked in the text.
    pub(crate) fn event<'t>(
        &mut self,
        redactor: Option<&Redactor>,
        text: &'t str,
        command: &'t str,
        files: &'t str,
    ) -> Said<'t> {
        let (masked_command, in_command) = look(redactor, command);
        // A command tells more of what is a secret in it than the same behind its argument's name.
        let places = if in_command.is_empty() { 0 } else { text.matches(command).count() };
        let (masked_text, mut found) = if places == 0 {
            look(redactor, text)
        } else {
            let text = text.replace(command, &masked_command);
            let (masked, found) = look(redactor, &text);
            (Cow::Owned(masked.into_owned()), found)
        };
        (0..places).for_each(|_| found.extend_from_slice(&in_command));
        let (masked_files, in_files) = look(redactor, files);
        for more in [in_command, in_files].into_iter().filter(|more| !more.is_empty()) {
            let known: HashSet<u64> = found.iter().map(|(_, secret)| *secret).collect();
            found.extend(more.into_iter().filter(|(_, secret)| !known.contains(secret)));
        }
        for (kind, secret) in found {
            *self.counts.0.entry(kind).or_default() += 1;
            self.in_events.insert(secret);
        }
        Said { text: masked_text, command: masked_command, files: masked_files }
    }

    /// Notes what was masked in a column of the session.
    pub(crate) fn beside(&mut self, found: Found) {
        self.beside.extend(found.into_iter().map(|(kind, secret)| (secret, kind)));
    }

    /// The secrets of events by kind, and those that stand in none, each once.
    pub(crate) fn counts(&self) -> Counts {
        let mut counts = self.counts.clone();
        for (secret, kind) in &self.beside {
            if !self.in_events.contains(secret) {
                *counts.0.entry(kind.clone()).or_default() += 1;
            }
        }
        counts
    }
}

#[cfg(test)]
mod tests {
    use super::super::UserRule;
    use super::*;

    /// What is counted in an event, where boats are secrets.
    fn check(text: &str, command: &str, files: &str, boats: u64) {
        let rule = UserRule { name: "boat".to_owned(), regex: "Kittiwake|Petrel".to_owned() };
        let redactor = Redactor::new(&[rule]).expect("a rule");
        let mut secrets = Secrets::default();
        let said = secrets.event(Some(&redactor), text, command, files);
        for column in [said.text, said.command, said.files] {
            assert!(!column.contains("Kittiwake") && !column.contains("Petrel"), "{column}");
        }
        let counted = secrets.counts().0.remove("boat").unwrap_or_default();
        assert_eq!(counted, boats, "{text:?} {command:?} {files:?}");
    }

    #[test]
    fn a_secret_of_an_event_counts_once() {
        check("Kittiwake, Petrel and Kittiwake", "", "", 3);
        check("command: sail Kittiwake", "sail Kittiwake", "", 1);
        check("command: sail Kittiwake\n# Kittiwake", "sail Kittiwake", "", 2);
        check("sail Kittiwake; sail Kittiwake", "sail Kittiwake", "Kittiwake.md", 2);
        check("sail\nKittiwake", "sail Kittiwake", "Kittiwake.md", 1);
    }

    #[test]
    fn a_secret_that_stands_in_no_text_counts_too() {
        check("", "sail Kittiwake", "", 1);
        check("", "", "Petrel.md\nKittiwake.md", 2);
        check("Petrel", "sail Kittiwake", "Petrel.md\nKittiwake.md", 2);
    }

    #[test]
    fn what_a_command_alone_tells_is_counted() {
        let redactor = Redactor::new(&[]).expect("the built-in rules");
        let command = "sshpass -p fj0rdn0rth ssh mira@10.0.0.7";
        let (_, found) = look(Some(&redactor), command);
        let mut secrets = Secrets::default();
        let text = format!("command: {command}");
        let said = secrets.event(Some(&redactor), &text, command, "");
        assert!(!said.text.contains("fj0rd"), "{}", said.text);
        assert_eq!((found.len(), secrets.counts().0.values().sum::<u64>()), (1, 1));
    }
}
