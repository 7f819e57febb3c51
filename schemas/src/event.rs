//! The event model: seven event types, one closed enum, and token counts.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Defines a closed enum whose wire form is snake_case, with parsing and the list of its values.
macro_rules! closed_enum {
    ($(#[$meta:meta])* $name:ident { $($(#[$vmeta:meta])* $variant:ident = $text:literal),+ $(,)? }) => {
        $(#[$meta])*
        #[derive(
            Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash,
            serde::Serialize, serde::Deserialize,
        )]
        pub enum $name { $($(#[$vmeta])* #[serde(rename = $text)] $variant),+ }

        impl $name {
            /// Every value, in the order of declaration.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];
            /// The wire form of every value, in the same order.
            pub const NAMES: &'static [&'static str] = &[$($text),+];

            /// The wire form.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $text),+ }
            }
        }

        /// Inline and without the documentation of each value: the tool list has a token budget.
        impl schemars::JsonSchema for $name {
            fn inline_schema() -> bool {
                true
            }

            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($name).into()
            }

            fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
                schemars::json_schema!({ "type": "string", "enum": Self::NAMES })
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.as_str())
            }
        }

        impl std::str::FromStr for $name {
            type Err = $crate::ToolError;

            /// Reads the wire form; the error names the value and the valid values.
            fn from_str(text: &str) -> Result<Self, Self::Err> {
                Self::ALL.iter().copied().find(|value| value.as_str() == text).ok_or_else(|| {
                    $crate::ToolError::invalid_value("", text, Self::NAMES)
                })
            }
        }
    };
}
pub(crate) use closed_enum;

closed_enum! {
    /// What an event is.
    EventType {
        /// What the person typed.
        User = "user",
        /// The assistant's text.
        Message = "message",
        /// The assistant's reasoning, as far as the log shows it.
        Reasoning = "reasoning",
        /// A call of a tool.
        ToolCall = "tool_call",
        /// What the tool answered.
        ToolResult = "tool_result",
        /// Token counts of one API request.
        TokenUsage = "token_usage",
        /// System records, hooks, compaction boundaries, summaries, mode changes, and every
        /// record of an unknown kind; `subtype` says which.
        Notification = "notification",
    }
}

closed_enum! {
    /// The agent that wrote a log.
    Provider {
        Claude = "claude",
        Codex = "codex",
        Gemini = "gemini",
        OpenCode = "opencode",
        Copilot = "copilot",
        Pi = "pi",
        OpenClaw = "openclaw",
        Qwen = "qwen",
        Kimi = "kimi",
        Cursor = "cursor",
        Droid = "droid",
        Amp = "amp",
        Cline = "cline",
        IFlow = "iflow",
        Grok = "grok",
        Hermes = "hermes",
        Antigravity = "antigravity",
        Kiro = "kiro",
        VsCopilot = "vscopilot",
        Generic = "generic",
    }
}

closed_enum! {
    /// How far the token counts of a session can be trusted.
    Confidence {
        /// The log gives the counts of every request.
        Measured = "measured",
        /// Counts of some requests are missing.
        Partial = "partial",
        /// Some counts are guessed.
        Estimated = "estimated",
        /// The log gives none.
        Unknown = "unknown",
    }
}

closed_enum! {
    /// How a session hangs on its parent session.
    Relation {
        SubagentOf = "subagent_of",
        ForkedFrom = "forked_from",
        ResumedFrom = "resumed_from",
        ContinuedFrom = "continued_from",
        /// A review that the parent asked for; its subagent.
        ReviewOf = "review_of",
    }
}

/// The type of an event whose column was not read.
impl Default for EventType {
    fn default() -> Self {
        Self::Notification
    }
}

/// The agent of a row of which nothing is known yet.
impl Default for Provider {
    fn default() -> Self {
        Self::Generic
    }
}

#[expect(clippy::derivable_impls, reason = "the macro derives for every enum alike")]
impl Default for Confidence {
    fn default() -> Self {
        Self::Unknown
    }
}

/// Token counts of one API request, or sums of such. `None` is "the log does not say", which is
/// not zero.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Usage {
    /// Input tokens that were neither read from nor written to a cache.
    #[serde(rename = "input_tokens", default, skip_serializing_if = "Option::is_none")]
    pub input: Option<i64>,
    /// Output tokens, reasoning included.
    #[serde(rename = "output_tokens", default, skip_serializing_if = "Option::is_none")]
    pub output: Option<i64>,
    /// Input tokens read from a cache.
    #[serde(rename = "cache_read_tokens", default, skip_serializing_if = "Option::is_none")]
    pub cache_read: Option<i64>,
    /// Input tokens written to a cache.
    #[serde(rename = "cache_write_tokens", default, skip_serializing_if = "Option::is_none")]
    pub cache_write: Option<i64>,
    /// The part of the cache writes that is kept for an hour; the rest is kept for five minutes.
    #[serde(rename = "cache_write_1h_tokens", default, skip_serializing_if = "Option::is_none")]
    pub cache_write_1h: Option<i64>,
    /// The part of the output that was reasoning.
    #[serde(rename = "reasoning_tokens", default, skip_serializing_if = "Option::is_none")]
    pub reasoning: Option<i64>,
}

impl Usage {
    /// Applies `f` field by field; a field unknown on both sides stays unknown.
    fn zip(self, other: Self, f: impl Fn(i64, i64) -> i64) -> Self {
        let field = |a: Option<i64>, b: Option<i64>| match (a, b) {
            (None, None) => None,
            (a, b) => Some(f(a.unwrap_or(0), b.unwrap_or(0))),
        };
        Self {
            input: field(self.input, other.input),
            output: field(self.output, other.output),
            cache_read: field(self.cache_read, other.cache_read),
            cache_write: field(self.cache_write, other.cache_write),
            cache_write_1h: field(self.cache_write_1h, other.cache_write_1h),
            reasoning: field(self.reasoning, other.reasoning),
        }
    }

    /// Field-wise sum.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        self.zip(other, i64::saturating_add)
    }

    /// Field-wise difference; fields may be negative.
    #[must_use]
    pub fn minus(self, other: Self) -> Self {
        self.zip(other, i64::saturating_sub)
    }

    /// Input, output and both cache counts; reasoning is part of the output already.
    pub fn total(self) -> i64 {
        [self.input, self.output, self.cache_read, self.cache_write]
            .into_iter()
            .flatten()
            .fold(0, i64::saturating_add)
    }

    /// True when no field is known.
    pub fn is_unknown(self) -> bool {
        self == Self::default()
    }

    /// True when no field is negative: this may be what a total grew by.
    pub fn is_growth(self) -> bool {
        let fields = [
            self.input,
            self.output,
            self.cache_read,
            self.cache_write,
            self.cache_write_1h,
            self.reasoning,
        ];
        fields.into_iter().flatten().all(|count| count >= 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_round_trip_and_unknown_names_list_the_valid_ones() {
        for kind in EventType::ALL {
            assert_eq!(kind.as_str().parse::<EventType>().ok(), Some(*kind));
        }
        let error = "tool".parse::<EventType>().expect_err("no such type");
        assert!(error.to_string().contains("tool_call"), "{error}");
    }

    #[test]
    fn unknown_counts_are_not_zero() {
        let known = Usage { output: Some(3), ..Usage::default() };
        assert_eq!(known.plus(Usage::default()), known);
        assert!(Usage::default().is_unknown() && !known.is_unknown());
        assert_eq!(known.minus(known), Usage { output: Some(0), ..Usage::default() });
    }
}
