//! Masks the secrets of a text: runs each rule at the places where one of its anchors occurs.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::LazyLock;

use regex::Regex;
use xxhash_rust::xxh3::Xxh3;

use super::anchors::Anchors;
use super::command_rules::{ARGUMENT_RULES, COMMAND_RULES, PAIR_RULES, PRINTED_RULES};
use super::context_rules::{CONTEXT_RULES, TEXT_RULES};
use super::rule::{Recognizer, SecretRule};
use super::scan::{Rank, SecretScan, SecretSpan, replace_ranges};
use super::token_rules::TOKEN_RULES;
use super::user_rule::{RuleError, UserRule, compile_user_rules};
use super::{command, encoded, printed, token};

/// Revision of the built-in rules. It is raised when the code of `redact` masks other texts than
/// before. Stores are then re-read.
const REVISION: u8 = 15;

/// Maximum number of rounds over one text. Masking in one round may expose a secret that was not
/// found before, such as the last of tokens that touch. Usually there are two rounds, and the
/// second one finds nothing. In one run of characters, at most half as many tokens are tried
/// (`MAX_TRIES` in `scan.rs`).
pub(super) const MAX_ROUNDS: usize = 64;

/// Returns all built-in rules. Rules with the same anchor are tried in this order.
pub(super) fn all_rules() -> impl Iterator<Item = &'static SecretRule> {
    let tables: [&[SecretRule]; 7] = [
        &TOKEN_RULES,
        &COMMAND_RULES,
        &PAIR_RULES,
        &ARGUMENT_RULES,
        &PRINTED_RULES,
        &CONTEXT_RULES,
        &TEXT_RULES,
    ];
    tables.into_iter().flatten()
}

/// The anchors of all built-in rules.
static ANCHORS: LazyLock<Anchors<&'static SecretRule>> = LazyLock::new(|| {
    let anchors_of = |rule: &'static SecretRule| {
        rule.anchors.iter().map(move |anchor| (*anchor, rule.is_in_any_case, rule))
    };
    Anchors::new(all_rules().flat_map(anchors_of))
});

/// The number of masked secrets of each kind.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SecretCounts(pub BTreeMap<String, u64>);

/// Finds and masks secrets. One redactor serves all threads.
pub struct Redactor {
    /// Name and regex of each rule of the user.
    user_rules: Vec<(String, Regex)>,
    version: u64,
}

impl Redactor {
    /// Compiles the built-in rules and those of the user, which run over every text as a whole.
    ///
    /// # Errors
    ///
    /// Returns an error if the name of a user's rule is not allowed, or if its regex cannot be
    /// compiled or matches the empty text.
    pub fn new(user_rules: &[UserRule]) -> Result<Self, RuleError> {
        Ok(Self { user_rules: compile_user_rules(user_rules)?, version: hash_rules(user_rules) })
    }

    /// Returns a hash of the rules, which changes if the rules change.
    pub fn version(&self) -> u64 {
        self.version
    }

    /// Masks the secrets in `text` and adds them to `counts`. Masking a masked text changes
    /// nothing.
    pub fn mask<'t>(&self, text: &'t str, counts: &mut SecretCounts) -> Cow<'t, str> {
        self.mask_with(text, "", &mut |kind, _| {
            *counts.0.entry(kind.to_owned()).or_default() += 1;
        })
    }

    /// Masks the secrets in `text` and calls `on_secret` with the kind and the text of each secret.
    /// `printed_by` is the command whose output `text` is; empty if it is another text.
    pub(super) fn mask_with<'t>(
        &self,
        text: &'t str,
        printed_by: &str,
        on_secret: &mut dyn FnMut(&str, &str),
    ) -> Cow<'t, str> {
        let mut text = Cow::Borrowed(text);
        for _ in 0..MAX_ROUNDS {
            let spans = self.find_secrets(&text, printed_by);
            if spans.is_empty() {
                break;
            }
            let masked = replace_secrets(&text, &spans, on_secret);
            text = Cow::Owned(masked);
        }
        text
    }

    /// Returns the secrets of a text in their order.
    pub(super) fn find_secrets(&self, text: &str, printed_by: &str) -> Vec<SecretSpan<'_>> {
        let scan = run_built_in(text, printed_by);
        let mut user_spans = Vec::new();
        for (kind, regex) in &self.user_rules {
            for found in regex.captures_iter(text) {
                if let Some(secret) = found.get(1).or_else(|| found.get(0))
                    && scan.may_mask(secret.start(), secret.end())
                {
                    let (start, end) = (secret.start(), secret.end());
                    user_spans.push(SecretSpan { start, end, kind, rank: Rank::User, rule: None });
                }
            }
        }
        scan.finish(user_spans)
    }

    /// Returns whether a rule of the user has this name.
    pub fn has_user_rule(&self, kind: &str) -> bool {
        self.user_rules.iter().any(|(name, _)| name == kind)
    }
}

/// Returns the secrets of a text as each built-in rule finds them. They may overlap.
pub(super) fn find_built_in(text: &str, printed_by: &str) -> Vec<SecretSpan<'static>> {
    run_built_in(text, printed_by).into_spans()
}

/// Runs the built-in rules over a text. `printed_by` is the command whose output `text` is.
fn run_built_in<'t>(text: &'t str, printed_by: &str) -> SecretScan<'t> {
    let mut scan = SecretScan::new(text, find_by_anchors);
    apply_anchored_rules(&mut scan);
    for rule in &TEXT_RULES {
        scan.rule = Some(&rule.kind);
        if let Recognizer::Text(_, mask) = &rule.recognizer {
            mask(&mut scan);
        }
    }
    if !printed_by.is_empty() {
        printed::mask_output(&mut scan, printed_by, 0..text.len());
    }
    scan
}

/// Returns the secrets that the rules with an anchor find in a decoded text.
fn find_by_anchors(text: &str) -> Vec<SecretSpan<'static>> {
    let mut scan = SecretScan::new(text, find_by_anchors);
    // What is decoded is not decoded again.
    scan.decoded_end = text.len();
    apply_anchored_rules(&mut scan);
    scan.finish(Vec::new())
}

/// Tries the rules at the places of their anchors.
fn apply_anchored_rules(scan: &mut SecretScan<'_>) {
    let text = scan.bytes();
    ANCHORS.for_each_match(text, |at, rule| apply_rule(scan, at, rule));
}

/// Masks the secret that a rule finds at the place of its anchor.
fn apply_rule(scan: &mut SecretScan<'_>, at: usize, rule: &'static SecretRule) {
    scan.rule = Some(&rule.kind);
    match &rule.recognizer {
        Recognizer::Token(shape) => token::mask_token(scan, at, rule, shape),
        Recognizer::Command(place) => command::mask_command_password(scan, at, place),
        Recognizer::Pairs(stored) => command::mask_pairs(scan, at, *stored),
        Recognizer::Argument(encoding, pattern) => {
            encoded::mask_argument(scan, at, *encoding, pattern);
        }
        Recognizer::Printed(_) | Recognizer::PrintedSettings(_) => {
            printed::mask_output_below(scan, at);
        }
        Recognizer::Check(_, mask) => mask(scan, at),
        // These have no anchor.
        Recognizer::Text(..) => {}
    }
}

/// Returns the text with placeholders for its secrets, and calls `on_secret` with the kind and the
/// text of each of them.
fn replace_secrets(
    text: &str,
    spans: &[SecretSpan<'_>],
    on_secret: &mut dyn FnMut(&str, &str),
) -> String {
    for span in spans {
        on_secret(span.kind, text.get(span.start..span.end).unwrap_or_default());
    }
    replace_ranges(text, spans.iter().map(|span| (span.start..span.end, span.kind)))
}

/// Returns a hash of the built-in rules and those of the user.
pub(crate) fn hash_rules(user_rules: &[UserRule]) -> u64 {
    let mut hash = Xxh3::new();
    hash.update(&[REVISION]);
    for source in all_rules().filter_map(SecretRule::source) {
        hash_texts(&mut hash, source);
    }
    for rule in user_rules {
        hash_texts(&mut hash, [&rule.name, &rule.regex]);
    }
    hash.digest()
}

fn hash_texts(hash: &mut Xxh3, texts: [&str; 2]) {
    for text in texts {
        hash.update(text.as_bytes());
        hash.update(&[0]);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::super::pattern::LazyRegex;
    use super::*;

    fn patterns(recognizer: &Recognizer) -> Option<&LazyRegex> {
        match recognizer {
            Recognizer::Token(shape) => Some(&shape.pattern),
            Recognizer::Command(place) => Some(&place.pattern),
            Recognizer::Printed(value) => Some(&value.pattern),
            Recognizer::PrintedSettings(pattern) | Recognizer::Argument(_, pattern) => {
                Some(pattern)
            }
            Recognizer::Pairs(_) | Recognizer::Check(..) | Recognizer::Text(..) => None,
        }
    }

    /// Returns the anchors with which the sample of a rule is tried: all commands of a rule for
    /// commands, and else the first one.
    fn sample_anchors(rule: &SecretRule) -> &'static [&'static str] {
        match rule.recognizer {
            Recognizer::Command(_) | Recognizer::Pairs(_) | Recognizer::Argument(..) => {
                rule.anchors
            }
            Recognizer::Token(_)
            | Recognizer::Printed(_)
            | Recognizer::PrintedSettings(_)
            | Recognizer::Check(..)
            | Recognizer::Text(..) => rule.anchors.get(..1).unwrap_or(&[""]),
        }
    }

    fn has_anchor(rule: &SecretRule, text: &str) -> bool {
        let anchors = rule.anchors.iter().map(|anchor| (*anchor, rule.is_in_any_case, ()));
        let mut is_found = rule.anchors.is_empty();
        Anchors::new(anchors).for_each_match(text.as_bytes(), |_, ()| is_found = true);
        is_found
    }

    #[test]
    fn every_rule_masks_its_sample_and_no_rule_its_lookalike() {
        let redactor = Redactor::new(&[]).expect("the built-in rules");
        let mut failures = Vec::new();
        for rule in all_rules() {
            let sample = rule.sample();
            for anchor in sample_anchors(rule) {
                // Another command of the rule takes the place of the first one.
                let before = match rule.anchors.first() {
                    Some(first) => sample.before.replacen(first, anchor, 1),
                    None => sample.before.clone(),
                };
                let text = [&*before, &sample.secret, &sample.after].concat();
                let (start, end) = (before.len(), before.len() + sample.secret.len());
                let found = find_built_in(&text, "");
                let is_masked = found.iter().any(|span| {
                    span.rule.is_some_and(|by| std::ptr::eq(by, &rule.kind))
                        && (span.start, span.end, span.kind) == (start, end, sample.kind)
                });
                if !is_masked || !has_anchor(rule, &text) {
                    let spans: Vec<_> =
                        found.iter().map(|span| (span.kind, span.start..span.end)).collect();
                    failures.push(format!("{text}: not masked: {spans:?}, wanted {start}..{end}"));
                }
            }
            let lookalike = rule.lookalike.replace(SecretRule::CUT, "");
            let masked = redactor.mask(&lookalike, &mut SecretCounts::default());
            if masked != lookalike || !has_anchor(rule, &lookalike) {
                failures.push(format!("{:?}: look-alike {lookalike}: {masked}", rule.anchors));
            }
        }
        assert!(failures.is_empty(), "{} failures\n{}", failures.len(), failures.join("\n"));
    }

    #[test]
    fn words_and_settings_of_commands_are_not_masked() {
        let redactor = Redactor::new(&[]).expect("the built-in rules");
        for text in [
            "mongosh -u admin -p --authenticationDatabase admin",
            "keytool -list -keypass keystorePassword",
            "7z a docs.7z -parameters",
            "7z x backup-2026.7z -p\"$PASSPHRASE\" -y",
            "find-generic-password -s harbor",
            "# requirepass foobared",
            "curl --oauth2-bearer \"$TOKEN\" https://a.example",
            "kubectl create secret generic db --from-literal=user=mira",
            "vault kv put secret/db password=@pw.txt",
            "vault kv patch secret/db ttl=30m",
            "supabase secrets:set DATABASE_URL=$DATABASE_URL",
            "doctl secret create HOST=h.example",
            "heroku config:set NODE_ENV=production PORT=3000",
            "op item create --category login title=Harbor",
            "printf %s \"aGFyYm9y\" | base64 -d",
        ] {
            assert_eq!(redactor.mask(text, &mut SecretCounts::default()), text);
        }
    }

    #[test]
    fn every_rule_has_a_regex_and_anchors_that_select() {
        let mut kinds = BTreeSet::new();
        for rule in all_rules() {
            kinds.insert(rule.kind.name);
            assert!(rule.anchors.iter().all(|anchor| anchor.len() >= 4), "{:?}", rule.anchors);
            if let Some(pattern) = patterns(&rule.recognizer) {
                let regex = pattern.regex().expect(pattern.source);
                let groups = regex.captures_len() - 1;
                let is_command = matches!(rule.recognizer, Recognizer::Command(_));
                assert!(if is_command { groups == 1 } else { groups <= 1 }, "{}", pattern.source);
            }
        }
        assert!(kinds.len() >= 80, "{}", kinds.len());
    }
}
