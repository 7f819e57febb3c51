//! Removes the decorations of model names, so that a model is found in the price table.
//!
//! A name is looked up as it is. If it is not found, one decoration after another is removed, and
//! the name is looked up again each time:
//!
//! | decoration | example |
//! |---|---|
//! | the mark of a long context window | `claude-sonnet-4-5[1m]` |
//! | a provider's or gateway's prefix | `anthropic/claude-opus-5`, `openrouter/openai/gpt-5.4` |
//! | Bedrock's region, maker and version | `us.anthropic.claude-opus-4-6-v1:0` |
//! | Vertex's version | `claude-haiku-4-5@20251001` |
//! | a date | `claude-opus-4-5-20251101`, `gpt-5.4-2026-03-05` |
//!
//! Nothing else is removed, and similar names do not match. The prefixes of those who serve open
//! weights at prices of their own (`moonshotai/`, `z-ai/`, `qwen/`, a host's name) are kept.

/// Prefixes of the providers and gateways through which the maker's own offer is used.
const PREFIXES: &[&str] = &[
    "anthropic/",
    "azure/",
    "bedrock/",
    "gemini/",
    "google/",
    "kimi/",
    "models/",
    "moonshot-ai/",
    "moonshot/",
    "openai/",
    "openrouter/",
    "vertex/",
    "vertex_ai/",
    "x-ai/",
    "xai/",
    "zai/",
];

/// Bedrock's regional endpoints. The endpoint `global` has the normal prices of the model.
const REGIONS: &[&str] = &["apac", "au", "eu", "jp", "us", "us-gov"];

/// Returns the name with one decoration fewer, and whether that was one of Bedrock's regions.
/// `None` if the name has no decoration.
pub(super) fn without_decoration(name: &str) -> Option<(&str, bool)> {
    if let Some(bare) = name.strip_suffix("[1m]") {
        return Some((bare, false));
    }
    for prefix in PREFIXES {
        if let Some(bare) = name.strip_prefix(*prefix) {
            return Some((bare, false));
        }
    }
    if name.starts_with("arn:aws:bedrock:") {
        return name.rsplit_once('/').map(|(_, bare)| (bare, false));
    }
    if let Some((region, bare)) = name.split_once(".anthropic.") {
        let is_region = REGIONS.contains(&region);
        return (is_region || region == "global").then_some((bare, is_region));
    }
    if let Some(bare) = name.strip_prefix("anthropic.") {
        return Some((bare, false));
    }
    let bare = name
        .strip_suffix("@default")
        .or_else(|| without_bedrock_version(name))
        .or_else(|| without_date(name))?;
    Some((bare, false))
}

/// Removes the version of `claude-...-v1:0` and `claude-...-v1`.
fn without_bedrock_version(name: &str) -> Option<&str> {
    if !name.starts_with("claude-") {
        return None;
    }
    let (bare, version) = name.rsplit_once("-v")?;
    let mut numbers = version.splitn(2, ':');
    numbers.all(|number| !number.is_empty() && is_digits(number)).then_some(bare)
}

/// Returns the name of a model without the date at its end: `model-20250929`, `model@20250929` or
/// `model-2026-03-05`. `None` if it has none.
pub fn without_date(name: &str) -> Option<&str> {
    let (bare, last) = name.rsplit_once(['-', '@'])?;
    if is_date(last) {
        return (!bare.is_empty()).then_some(bare);
    }
    let (bare, month) = bare.rsplit_once('-')?;
    let (bare, year) = bare.rsplit_once('-')?;
    (!bare.is_empty() && is_date(&format!("{year}{month}{last}"))).then_some(bare)
}

/// Returns whether a text has eight digits that are a day of this century.
fn is_date(digits: &str) -> bool {
    if digits.len() != 8 || !is_digits(digits) {
        return false;
    }
    let century = &digits[..2];
    let month = &digits[4..6];
    let day = &digits[6..];
    century == "20" && ("01"..="12").contains(&month) && ("01"..="31").contains(&day)
}

/// Returns whether a text has no other characters than digits.
fn is_digits(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_digit())
}
