//! By which names a model finds its price.
//!
//! A name is looked up as it stands; failing that, without one decoration after another, and looked
//! up again each time:
//!
//! | decoration | example |
//! |---|---|
//! | the mark of a long context window | `claude-sonnet-4-5[1m]` |
//! | a provider's or gateway's prefix | `anthropic/claude-opus-5`, `openrouter/openai/gpt-5.4` |
//! | Bedrock's region, maker and version | `us.anthropic.claude-opus-4-6-v1:0` |
//! | Vertex's version | `claude-haiku-4-5@20251001` |
//! | a date | `claude-opus-4-5-20251101`, `gpt-5.4-2026-03-05` |
//!
//! Nothing else is taken off, and no name is matched by likeness. The prefixes of those who serve
//! open weights at prices of their own (`moonshotai/`, `z-ai/`, `qwen/`, a host's name) stay on.

/// Prefixes that say through whom the maker's own offer was used.
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

/// Bedrock's regional endpoints; `global` costs what the model costs.
const REGIONS: &[&str] = &["apac", "au", "eu", "jp", "us", "us-gov"];

/// The name with one decoration fewer, and whether that was one of Bedrock's regions.
pub(super) fn without_decoration(name: &str) -> Option<(&str, bool)> {
    let prefix = |prefix: &&str| name.strip_prefix(*prefix);
    if let Some(bare) = name.strip_suffix("[1m]").or_else(|| PREFIXES.iter().find_map(prefix)) {
        return Some((bare, false));
    }
    if name.starts_with("arn:aws:bedrock:") {
        return name.rsplit_once('/').map(|(_, bare)| (bare, false));
    }
    if let Some((region, bare)) = name.split_once(".anthropic.") {
        let known = REGIONS.contains(&region);
        return (known || region == "global").then_some((bare, known));
    }
    if let Some(bare) = name.strip_prefix("anthropic.") {
        return Some((bare, false));
    }
    let bare = without_vertex_version(name)
        .or_else(|| without_bedrock_version(name))
        .or_else(|| without_date(name))?;
    Some((bare, false))
}

/// `model@20250929`, `model@default`.
fn without_vertex_version(name: &str) -> Option<&str> {
    let (bare, version) = name.split_once('@')?;
    (is_date(version) || version == "default").then_some(bare)
}

/// `claude-...-v1:0`, `claude-...-v1`.
fn without_bedrock_version(name: &str) -> Option<&str> {
    let (bare, version) = name.rsplit_once("-v").filter(|_| name.starts_with("claude-"))?;
    let mut numbers = version.splitn(2, ':');
    numbers.all(|number| !number.is_empty() && is_digits(number)).then_some(bare)
}

/// `model-20250929`, `model-2026-03-05`.
fn without_date(name: &str) -> Option<&str> {
    let (bare, last) = name.rsplit_once('-')?;
    if is_date(last) {
        return Some(bare);
    }
    let (bare, month) = bare.rsplit_once('-')?;
    let (bare, year) = bare.rsplit_once('-')?;
    is_date(&format!("{year}{month}{last}")).then_some(bare)
}

/// Eight digits that are a day of this century.
fn is_date(digits: &str) -> bool {
    let part = |range: std::ops::RangeInclusive<u8>, at: std::ops::Range<usize>| {
        digits.get(at).and_then(|text| text.parse::<u8>().ok()).is_some_and(|n| range.contains(&n))
    };
    digits.len() == 8
        && is_digits(digits)
        && part(20..=20, 0..2)
        && part(1..=12, 4..6)
        && part(1..=31, 6..8)
}

fn is_digits(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_digit())
}
