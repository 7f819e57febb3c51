//! Tells which rules mask what, from the tables of rules, and which rule masked a secret, from the
//! masked text alone: a rule that masks a secret of its sample at the place of the placeholder.

use std::collections::BTreeSet;

use super::redactor::{all_rules, find_built_in};
use super::rule::SecretRule;
use super::scan::{MASK, placeholders};

/// Number of bytes of a text that are examined before a placeholder, and after it.
const BEFORE_BYTES: usize = 4 << 10;
const AFTER_BYTES: usize = 1 << 10;

/// Maximum number of placeholders of a text that are explained; the others are counted. It bounds the
/// time for a text that consists of placeholders, which a hostile log may contain.
const MAX_EXPLAINED: usize = 100;

/// A built-in rule, for readers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RuleInfo {
    /// The kinds of secrets that the rule masks.
    pub kinds: Vec<&'static str>,
    /// What the rule recognizes.
    pub what: String,
    /// A text that the rule masked.
    pub sample: String,
    /// A text that looks alike in which nothing is masked.
    pub lookalike: String,
}

impl From<&SecretRule> for RuleInfo {
    fn from(rule: &SecretRule) -> Self {
        let sample = rule.sample();
        let kinds = std::iter::once(rule.kind.name).chain(rule.kind.others.iter().copied());
        Self {
            kinds: kinds.collect(),
            what: rule.describe(),
            sample: format!("{}{MASK}{}]{}", sample.before, sample.kind, sample.after),
            lookalike: rule.lookalike.replace(SecretRule::CUT, ""),
        }
    }
}

/// Returns all built-in rules.
pub fn built_in_rules() -> impl Iterator<Item = RuleInfo> {
    all_rules().map(RuleInfo::from)
}

/// The placeholders of one kind in a text that the same rules may have left.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExplainedMask {
    /// The kind that the placeholders show.
    pub kind: String,
    /// The number of placeholders.
    pub count: u64,
    /// The built-in rules that mask a secret at the place. None does if what announced the secret is
    /// not in the text, if a rule of the user masked it, or if too many placeholders precede it.
    pub rules: Vec<RuleInfo>,
}

/// Returns which rules may have masked the secrets of `text`. `printed_by` is the command whose output
/// `text` is; empty if it is another text.
pub fn explain_masks(text: &str, printed_by: &str) -> Vec<ExplainedMask> {
    let mut explained: Vec<ExplainedMask> = Vec::new();
    for (at, (place, kind)) in placeholders(text).enumerate() {
        let start = text.ceil_char_boundary(place.start.saturating_sub(BEFORE_BYTES));
        let end = text.floor_char_boundary(place.end.saturating_add(AFTER_BYTES));
        let before = text.get(start..place.start).unwrap_or_default();
        let after = text.get(place.end..end).unwrap_or_default();
        let rules =
            if at < MAX_EXPLAINED { rules_at(before, kind, after, printed_by) } else { Vec::new() };
        match explained.iter_mut().find(|mask| mask.kind == kind && mask.rules == rules) {
            Some(mask) => mask.count += 1,
            None => explained.push(ExplainedMask { kind: kind.to_owned(), count: 1, rules }),
        }
    }
    explained
}

/// Returns the rules that may have masked a secret of a kind between two texts.
fn rules_at(before: &str, kind: &str, after: &str, printed_by: &str) -> Vec<RuleInfo> {
    let of_kind = all_rules().filter(|rule| rule.masks_as(kind));
    let stand_ins: BTreeSet<String> = of_kind.map(|rule| rule.sample().secret).collect();
    let mut found = BTreeSet::new();
    for stand_in in &stand_ins {
        let end = before.len() + stand_in.len();
        for span in find_built_in(&[before, stand_in, after].concat(), printed_by) {
            if span.kind == kind && span.start < end && span.end > before.len() {
                found.extend(span.rule.map(std::ptr::from_ref));
            }
        }
    }
    let is_found = |rule: &&SecretRule| found.contains(&std::ptr::from_ref(&rule.kind));
    all_rules().filter(is_found).map(RuleInfo::from).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns what the rules recognize that may have masked the secret of a text.
    fn explain(text: &str) -> Vec<String> {
        let masks = explain_masks(text, "").into_iter();
        masks.flat_map(|mask| mask.rules).map(|rule| rule.what).collect()
    }

    #[test]
    fn the_text_around_a_placeholder_names_the_rule() {
        assert_eq!(explain("token [REDACTED:github_token]"), ["a token with `ghp_?`"]);
        assert_eq!(
            explain("curl -u mira:[REDACTED:basic_auth] https://h.example"),
            ["a command or call with `curl`"]
        );
        assert_eq!(
            explain("DB_PASSWORD=[REDACTED:password]\nsshpass -p [REDACTED:password] ssh h"),
            [
                "the value of a name that announces it, or the column below",
                "a command or call with `sshpass`"
            ]
        );
        assert!(explain("[REDACTED:password]").is_empty(), "nothing announces it");
        assert!(explain("[REDACTED:badge] [REDACTED] text").is_empty());
        let many = explain_masks(&"token [REDACTED:github_token] ".repeat(MAX_EXPLAINED + 7), "");
        let counts: Vec<u64> = many.iter().map(|mask| mask.count).collect();
        assert_eq!(counts, [MAX_EXPLAINED as u64, 7], "all are counted");
    }

    #[test]
    fn every_sample_that_is_masked_is_explained_by_its_rule() {
        for rule in built_in_rules() {
            let masks = explain_masks(&rule.sample, "");
            let is_named = masks.iter().any(|mask| mask.rules.contains(&rule));
            assert!(is_named || rule.kinds == ["any"], "{rule:?}: {masks:?}");
        }
    }
}
