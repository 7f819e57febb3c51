//! Counts the masked secrets of a session: a secret of an event once, however many columns show it.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashSet};
use std::ops::Range;

use xxhash_rust::xxh3::xxh3_64;

use super::redactor::{Redactor, SecretCounts};
use super::scan::{MASK, placeholders, replace_ranges};

/// The secrets masked in a text: the kind and the hash of each.
pub(crate) type MaskedSecrets = Vec<(String, u64)>;

/// Masks a text and returns it together with the secrets that were masked.
pub(crate) fn mask_text<'t>(
    redactor: Option<&Redactor>,
    text: &'t str,
) -> (Cow<'t, str>, MaskedSecrets) {
    mask_output(redactor, text, "")
}

/// Masks the output of a command and returns it together with the secrets that were masked.
fn mask_output<'t>(
    redactor: Option<&Redactor>,
    text: &'t str,
    printed_by: &str,
) -> (Cow<'t, str>, MaskedSecrets) {
    let Some(redactor) = redactor else { return (Cow::Borrowed(text), MaskedSecrets::new()) };
    let mut found = MaskedSecrets::new();
    let masked = redactor.mask_with(text, printed_by, &mut |kind, secret| {
        found.push((kind.to_owned(), xxh3_64(secret.as_bytes())));
    });
    (masked, found)
}

/// Masks a column. Also masks the secrets of the column in the event's text and adds them to
/// `found`.
fn mask_column_and_text<'c>(
    redactor: Option<&Redactor>,
    column: &'c str,
    text: &mut Cow<'_, str>,
    found: &mut MaskedSecrets,
) -> Cow<'c, str> {
    let Some(redactor) = redactor else { return Cow::Borrowed(column) };
    let mut secrets = Vec::new();
    let masked = redactor.mask_with(column, "", &mut |kind, secret| {
        secrets.push((kind.to_owned(), secret.to_owned()));
    });

    for (kind, secret) in secrets {
        let hash = xxh3_64(secret.as_bytes());
        let places = mask_word(text, &secret, &kind);
        if places > 0 {
            found.extend(std::iter::repeat_n((kind, hash), places));
        } else if found.iter().all(|(_, known)| *known != hash) {
            found.push((kind, hash));
        }
    }
    masked
}

/// Minimum length in bytes of a secret that is masked inside longer words too. A shorter one may be
/// a part of such a word.
pub(super) const MIN_EMBEDDED_BYTES: usize = 8;

/// Returns where a secret occurs in `text` as a word, or anywhere if it is long enough.
fn find_word<'t>(text: &'t str, secret: &'t str) -> impl Iterator<Item = Range<usize>> {
    text.match_indices(secret)
        .filter_map(move |(at, _)| is_secret_at(text, at, secret).then_some(at..at + secret.len()))
}

/// Returns whether the text of a secret, which is at `at`, is the secret there: a word of its own, or long
/// enough to be one anywhere, and not the kind of a placeholder.
pub(super) fn is_secret_at(text: &str, at: usize, secret: &str) -> bool {
    let (before, after) = (&text[..at], &text[at + secret.len()..]);
    let is_part = before.ends_with(is_word_char) || after.starts_with(is_word_char);
    let is_other = before.ends_with(MASK) || is_part && secret.len() < MIN_EMBEDDED_BYTES;
    !is_other
}

/// Masks a secret wherever it occurs in `text` and returns the number of places.
fn mask_word(text: &mut Cow<'_, str>, secret: &str, kind: &str) -> usize {
    let places: Vec<_> = find_word(text, secret).map(|place| (place, kind)).collect();
    let count = places.len();
    if count > 0 {
        *text = Cow::Owned(replace_ranges(text, places.into_iter()));
    }
    count
}

/// Returns the kind and the text of each secret in a text. `printed_by` is the command whose output
/// it is; empty if it is another text.
pub(crate) fn find_secrets(
    redactor: &Redactor,
    text: &str,
    printed_by: &str,
) -> Vec<(String, String)> {
    let mut secrets = Vec::new();
    redactor.mask_with(text, printed_by, &mut |kind, secret| {
        secrets.push((kind.to_owned(), secret.to_owned()));
    });
    secrets
}

/// Masks these secrets in a text, and those that the text shows by itself.
pub(crate) fn mask_found_secrets(
    redactor: &Redactor,
    text: &str,
    secrets: &[(String, String)],
) -> String {
    let mut masked = redactor.mask_with(text, "", &mut |_, _| {});
    for (kind, secret) in secrets {
        mask_word(&mut masked, secret, kind);
    }
    masked.into_owned()
}

fn is_word_char(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// Columns of an event, without secrets.
pub(crate) struct MaskedColumns<'t> {
    pub(crate) text: Cow<'t, str>,
    pub(crate) command: Cow<'t, str>,
    pub(crate) files: Vec<String>,
}

/// The secrets of one session.
#[derive(Default)]
pub(crate) struct SessionSecrets {
    counts: SecretCounts,
    /// Hashes of the secrets in events.
    in_events: HashSet<u64>,
    /// Hashes and kinds of the secrets in the session's own columns. Most of them occur in an event
    /// as well.
    in_columns: BTreeMap<u64, String>,
}

impl SessionSecrets {
    /// Masks and counts the secrets of an event. Every place in the text counts. Command and files
    /// come from a call's arguments, as the text does, and show more of the context of a secret:
    /// `--token` and its value are two lines of a text that lists words. A secret masked in them is
    /// masked in the text as well and counted there, or, if the text does not contain it, counted
    /// once. The text of a result is what the command `printed_by` printed.
    pub(crate) fn mask_event<'t>(
        &mut self,
        redactor: Option<&Redactor>,
        text: &'t str,
        command: &'t str,
        files: &[String],
        printed_by: &str,
    ) -> MaskedColumns<'t> {
        let (mut text, mut found) = mask_output(redactor, text, printed_by);
        let command = mask_column_and_text(redactor, command, &mut text, &mut found);
        let mut masked_files = Vec::with_capacity(files.len());
        for file in files {
            masked_files
                .push(mask_column_and_text(redactor, file, &mut text, &mut found).into_owned());
        }

        for (kind, secret) in found {
            *self.counts.0.entry(kind).or_default() += 1;
            self.in_events.insert(secret);
        }
        MaskedColumns { text, command, files: masked_files }
    }

    /// Counts the placeholders in a text that was masked before.
    pub(crate) fn count_placeholders(&mut self, text: &str) {
        for (_, kind) in placeholders(text) {
            *self.counts.0.entry(kind.to_owned()).or_default() += 1;
        }
    }

    /// Notes the secrets that were masked in a column of the session.
    pub(crate) fn note_column_secrets(&mut self, found: MaskedSecrets) {
        self.in_columns.extend(found.into_iter().map(|(kind, secret)| (secret, kind)));
    }

    /// Counts the secrets of events by kind, and once each secret that occurs in no event.
    pub(crate) fn counts(&self) -> SecretCounts {
        let mut counts = self.counts.clone();
        for (secret, kind) in &self.in_columns {
            if !self.in_events.contains(secret) {
                *counts.0.entry(kind.clone()).or_default() += 1;
            }
        }
        counts
    }
}

#[cfg(test)]
mod tests {
    use super::super::user_rule::UserRule;
    use super::*;

    /// Checks how many secrets of an event are counted, where the names of boats are secrets.
    fn check(text: &str, command: &str, files: &[&str], boats: u64) {
        let rule = UserRule { name: "boat".to_owned(), regex: "Kittiwake|Petrel".to_owned() };
        let redactor = Redactor::new(&[rule]).expect("a rule");
        let mut secrets = SessionSecrets::default();
        let files: Vec<_> = files.iter().map(|file| (*file).to_owned()).collect();
        let said = secrets.mask_event(Some(&redactor), text, command, &files, "");
        for column in [said.text, said.command, said.files.join(" ").into()] {
            assert!(!column.contains("Kittiwake") && !column.contains("Petrel"), "{column}");
        }
        let counted = secrets.counts().0.remove("boat").unwrap_or_default();
        assert_eq!(counted, boats, "{text:?} {command:?} {files:?}");
    }

    #[test]
    fn a_secret_of_an_event_counts_once() {
        check("Kittiwake, Petrel and Kittiwake", "", &[], 3);
        check("command: sail Kittiwake", "sail Kittiwake", &[], 1);
        check("command: sail Kittiwake\n# Kittiwake", "sail Kittiwake", &[], 2);
        check("sail Kittiwake; sail Kittiwake", "sail Kittiwake", &["Kittiwake.md"], 2);
        check("sail\nKittiwake", "sail Kittiwake", &["Kittiwake.md"], 1);
    }

    #[test]
    fn a_secret_that_stands_in_no_text_counts_too() {
        check("", "sail Kittiwake", &[], 1);
        check("", "", &["Petrel.md", "Kittiwake.md"], 2);
        check("Petrel", "sail Kittiwake", &["Petrel.md", "Kittiwake.md"], 2);
    }

    #[test]
    fn what_a_command_tells_is_masked_in_a_list_of_its_words() {
        let redactor = Redactor::new(&[]).expect("the built-in rules");
        let check = |words: &[&str], note: &str, shown: &str, places: u64| {
            let text = format!("command:\n  - {}\n{note}", words.join("\n  - "));
            let (mut secrets, command) = (SessionSecrets::default(), words.join(" "));
            let said = secrets.mask_event(Some(&redactor), &text, &command, &[], "");
            assert_eq!(said.text.lines().skip(1).collect::<Vec<_>>().join(" "), shown);
            assert_eq!(secrets.counts().0.values().sum::<u64>(), places, "{shown}");
        };
        let secret = "kJ8dPq2mXv7Lr4TzWb9";
        check(
            &["curl", "--token", secret, "https://x.example"],
            &format!("{secret}, {secret}s"),
            "  - curl   - --token   - [REDACTED:token]   - https://x.example \
             [REDACTED:token], [REDACTED:token]s",
            3,
        );
        check(
            &["curl", "-u", "mira:fj0rd7", "https://x.example"],
            "fj0rd7s",
            "  - curl   - -u   - mira:[REDACTED:basic_auth]   - https://x.example fj0rd7s",
            1,
        );
    }

    #[test]
    fn what_a_command_prints_is_masked_if_it_prints_only_a_secret() {
        let redactor = Redactor::new(&[]).expect("the built-in rules");
        let check = |command: &str, text: &str, shown: &str| {
            let mut secrets = SessionSecrets::default();
            let said = secrets.mask_event(Some(&redactor), text, "", &[], command);
            assert_eq!(said.text, shown, "{command}");
            let count = u64::from(shown.contains(MASK));
            assert_eq!(secrets.counts().0.values().sum::<u64>(), count, "{command}");
        };
        let vault = "vault kv get -field=password secret/db";
        check(vault, "barnacle\n", "[REDACTED:password]\n");
        check(&format!("cd infra && {vault}"), "/infra\nbarnacle", "/infra\n[REDACTED:password]");
        let codex = "Exit code: 0\nOutput:\n";
        check(vault, &format!("{codex}barnacle\n"), &format!("{codex}[REDACTED:password]\n"));
        check(vault, "No value found at secret/db", "No value found at secret/db");
        check(&format!("X=$({vault}); make"), "barnacle", "barnacle");
        check(&format!("{vault} | wc -c"), "barnacle", "barnacle");
        check("jq -r .name package.json", "barnacle", "barnacle");
        check("env | grep -i secret", "A_SECRET=barnacle\n", "A_SECRET=[REDACTED:secret]\n");
        check("ls", "barnacle", "barnacle");
    }

    #[test]
    fn what_a_command_alone_tells_is_counted() {
        let redactor = Redactor::new(&[]).expect("the built-in rules");
        let command = "sshpass -p fj0rdn0rth ssh mira@10.0.0.7";
        let (_, found) = mask_text(Some(&redactor), command);
        let mut secrets = SessionSecrets::default();
        let text = format!("command: {command}");
        let said = secrets.mask_event(Some(&redactor), &text, command, &[], "");
        assert!(!said.text.contains("fj0rd"), "{}", said.text);
        assert_eq!((found.len(), secrets.counts().0.values().sum::<u64>()), (1, 1));
    }
}
