//! The form of a rule: the anchors at which it is tried, what recognizes its secret, a sample that it
//! masks and a look-alike that no rule masks.

use super::pattern::LazyRegex;
use super::scan::{ANY_KIND, Rank, RuleKind, SecretScan};

/// A rule for secrets of one kind, or of a few. The tables of rules are `token_rules.rs`,
/// `command_rules.rs` and `context_rules.rs`.
pub(super) struct SecretRule {
    pub(super) kind: RuleKind,
    /// At least four bytes each. `?` matches a letter, digit, `_` or `-`, `#` a hex digit, `^` a digit
    /// and `*` a `#`. Empty if the rule is tried once for each text.
    pub(super) anchors: &'static [&'static str],
    /// Whether the anchors match in upper and lower case.
    pub(super) is_in_any_case: bool,
    pub(super) recognizer: Recognizer,
    /// A text with a secret that the rule masks. `⟦` and `⟧` enclose the secret if it is not the whole
    /// text, and begin with its kind and a `:` if that is not the kind of the rule. `‹›` breaks up
    /// what scanners of secrets would report.
    pub(super) sample: &'static str,
    /// A text with one of the anchors in which no rule masks anything.
    pub(super) lookalike: &'static str,
}

/// What recognizes the secret of a rule.
pub(super) enum Recognizer {
    /// The shape of a token.
    Token(TokenShape),
    /// The place of a password in a command.
    Command(PasswordPlace),
    /// A command that stores pairs of names and values.
    Pairs(Stored),
    /// A command that prints nothing but a secret.
    Printed(PrintedValue),
    /// A command that prints settings whose names announce secrets.
    PrintedSettings(LazyRegex),
    /// A command or a call that decodes its argument, which is the group of the pattern.
    Argument(Encoding, LazyRegex),
    /// A check of the text around the anchor. The text says what it masks.
    Check(&'static str, fn(&mut SecretScan<'_>, usize)),
    /// A check of the whole text. The text says what it masks.
    Text(&'static str, fn(&mut SecretScan<'_>)),
}

/// The shape of a token. If its pattern has a group, the group is the secret.
pub(super) struct TokenShape {
    pub(super) pattern: LazyRegex,
    pub(super) lead: TokenLead,
}

/// Where a token may begin.
#[derive(Clone, Copy)]
pub(super) enum TokenLead {
    /// At the anchor, with no letter or digit before it.
    Word,
    /// At the anchor, with no letter or digit before it. Names and data begin like the token, too, so it
    /// is never joined to a word and has to look random.
    Alone,
    /// At the anchor, whatever is before it.
    Any,
    /// Where the run of bytes of the given class before the anchor begins, if the run has at most
    /// this many bytes.
    Back(usize, fn(&u8) -> bool),
}

/// The place of a password in a command, which is the group of the pattern.
pub(super) struct PasswordPlace {
    pub(super) pattern: LazyRegex,
    /// Whether the place of the password may also contain a word of a sentence, a setting or a
    /// placeholder. The value then has to look different from these.
    pub(super) is_strict: bool,
}

/// A command that prints nothing but a value, whose name is the group of the pattern.
pub(super) struct PrintedValue {
    pub(super) pattern: LazyRegex,
    /// Whether the command also prints other things, so that the name has to announce a secret.
    pub(super) needs_secret_name: bool,
}

/// The values that a command stores.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Stored {
    /// Nothing but secrets.
    Secrets,
    /// Settings, among which a secret has a name that announces it, or is random.
    Settings,
}

/// The encoding of an argument.
#[derive(Clone, Copy)]
pub(super) enum Encoding {
    Base64,
    Hex,
}

/// Creates a rule whose anchors match in their own case.
pub(super) const fn rule(
    rank: Rank,
    kind: &'static str,
    others: &'static [&'static str],
    anchors: &'static [&'static str],
    recognizer: Recognizer,
    sample: &'static str,
    lookalike: &'static str,
) -> SecretRule {
    let kind = RuleKind { name: kind, others, rank };
    SecretRule { kind, anchors, is_in_any_case: false, recognizer, sample, lookalike }
}

/// A sample of a rule, split at its secret.
pub(super) struct RuleSample {
    pub(super) before: String,
    pub(super) secret: String,
    pub(super) after: String,
    /// The kind of the secret.
    pub(super) kind: &'static str,
}

impl SecretRule {
    /// Breaks up what scanners of secrets would report.
    pub(super) const CUT: &'static str = "‹›";

    /// Lets the anchors match in upper and lower case.
    pub(super) const fn in_any_case(mut self) -> Self {
        self.is_in_any_case = true;
        self
    }

    /// Returns the sample of the rule.
    pub(super) fn sample(&self) -> RuleSample {
        let (before, rest) = self.sample.split_once('⟦').unwrap_or(("", self.sample));
        let (marked, after) = rest.split_once('⟧').unwrap_or((rest, ""));
        let (kind, secret) = match marked.split_once(':') {
            Some((kind, secret)) if self.masks_as(kind) || self.kind.name == ANY_KIND => {
                (kind, secret)
            }
            Some(_) | None => (self.kind.name, marked),
        };
        RuleSample {
            before: before.replace(Self::CUT, ""),
            secret: secret.replace(Self::CUT, ""),
            after: after.replace(Self::CUT, ""),
            kind,
        }
    }

    /// Returns whether the rule masks secrets of a kind.
    pub(super) fn masks_as(&self, kind: &str) -> bool {
        self.kind.name == kind || self.kind.others.contains(&kind)
    }

    /// Returns what the rule recognizes, for readers.
    pub(super) fn describe(&self) -> String {
        let anchors = self.anchors.join("`, `");
        match &self.recognizer {
            Recognizer::Token(_) => format!("a token with `{anchors}`"),
            Recognizer::Command(_) => format!("a command or call with `{anchors}`"),
            Recognizer::Pairs(_) => format!("a value that `{anchors}` stores"),
            Recognizer::Printed(_) | Recognizer::PrintedSettings(_) => {
                format!("the output of a command with `{anchors}`")
            }
            Recognizer::Argument(..) => format!("an argument that `{anchors}` decodes"),
            Recognizer::Check(what, _) | Recognizer::Text(what, _) => (*what).to_owned(),
        }
    }

    /// Returns the kind and the regex of a token or a command.
    pub(super) fn source(&self) -> Option<[&'static str; 2]> {
        match &self.recognizer {
            Recognizer::Token(TokenShape { pattern, .. })
            | Recognizer::Command(PasswordPlace { pattern, .. }) => {
                Some([self.kind.name, pattern.source])
            }
            Recognizer::Pairs(_)
            | Recognizer::Printed(_)
            | Recognizer::PrintedSettings(_)
            | Recognizer::Argument(..)
            | Recognizer::Check(..)
            | Recognizer::Text(..) => None,
        }
    }
}
