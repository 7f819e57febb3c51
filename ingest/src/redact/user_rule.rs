//! Parses and compiles the rules that users add for secrets of their own.

use regex::Regex;
use serde::Deserialize;

use super::scan::{MAX_KIND_BYTES, is_kind_byte};

/// A rule of the user. It masks the first group of its regex, or the whole match if it has no
/// group.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UserRule {
    /// The kind that the placeholder shows.
    pub name: String,
    /// The regex, in the syntax of the crate `regex`.
    pub regex: String,
}

/// The reason why the user's rules cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum RuleError {
    /// The file is not TOML, or a field is unknown, missing or of another type.
    #[error("the rules cannot be read: {0}")]
    File(String),
    /// The name of a rule is empty, too long or has other characters.
    #[error("the rule name {0:?} is invalid: use 1 to 40 lower-case letters, digits or `_`")]
    Name(String),
    /// The regex of a rule cannot be compiled.
    #[error("the regex of rule {name} cannot be compiled: {error}")]
    Regex {
        /// The name of the rule.
        name: String,
        /// The error from compiling the regex.
        error: regex::Error,
    },
    /// The regex of a rule matches the empty text.
    #[error("the regex of rule {0} matches the empty text, so it would match everywhere")]
    Empty(String),
}

/// Parses the user's rules from a file such as
///
/// ```toml
/// [[rule]]
/// name = "badge_number"
/// regex = "HB-[0-9]{8}"
/// ```
///
/// # Errors
///
/// Returns [`RuleError::File`] if the text is not TOML of this form. Names and regexes are checked
/// by [`Redactor::new`](super::Redactor::new).
pub fn parse_user_rules(text: &str) -> Result<Vec<UserRule>, RuleError> {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct File {
        #[serde(default)]
        rule: Vec<UserRule>,
    }
    let file: File = toml::from_str(text).map_err(|error| RuleError::File(error.to_string()))?;
    Ok(file.rule)
}

/// Compiles the regexes of the rules, each under the name of its rule, in the order of the rules.
pub(super) fn compile_user_rules(
    user_rules: &[UserRule],
) -> Result<Vec<(String, Regex)>, RuleError> {
    let mut compiled_rules = Vec::with_capacity(user_rules.len());
    for UserRule { name, regex } in user_rules {
        let is_valid_name =
            (1..=MAX_KIND_BYTES).contains(&name.len()) && name.bytes().all(is_kind_byte);
        if !is_valid_name {
            return Err(RuleError::Name(name.clone()));
        }
        let compiled =
            Regex::new(regex).map_err(|error| RuleError::Regex { name: name.clone(), error })?;
        if compiled.is_match("") {
            return Err(RuleError::Empty(name.clone()));
        }
        compiled_rules.push((name.clone(), compiled));
    }
    Ok(compiled_rules)
}
