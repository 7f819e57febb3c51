//! The way in which a request was served, if it affects the price.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Service tiers that cost the normal price.
pub const STANDARD_TIERS: &[&str] = &["", "auto", "default", "standard"];

/// Speeds that cost the normal price.
pub const STANDARD_SPEEDS: &[&str] = &["", "standard"];

/// Places of inference that cost the normal price.
pub const STANDARD_GEOS: &[&str] = &["", "global", "not_available"];

/// What logs say about the way in which a request was served. Two modes are equal if they cost the
/// same: a value that costs the normal price is `None`, as is one that the log does not give.
#[derive(
    Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
pub struct PriceMode {
    /// The service tier, such as `priority`, `flex` or `batch`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service_tier: Option<String>,
    /// The speed, such as `fast`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub speed: Option<String>,
    /// The place of inference, such as `us`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inference_geo: Option<String>,
}

impl PriceMode {
    /// Creates a mode from the words of a log.
    pub fn from_log(
        service_tier: Option<&str>,
        speed: Option<&str>,
        inference_geo: Option<&str>,
    ) -> Self {
        Self {
            service_tier: unusual(service_tier, STANDARD_TIERS),
            speed: unusual(speed, STANDARD_SPEEDS),
            inference_geo: unusual(inference_geo, STANDARD_GEOS),
        }
    }

    /// Returns true if requests of this mode cost the normal price.
    pub fn is_standard(&self) -> bool {
        *self == Self::default()
    }

    /// Returns the names under which the price table has the factors of this mode.
    pub(super) fn factor_names(&self) -> impl Iterator<Item = &str> {
        // Codex calls the tier "fast" that the API calls "priority".
        let tier = self.service_tier.as_deref().map(|tier| match tier {
            "fast" => "priority",
            other => other,
        });
        tier.into_iter().chain(self.speed.as_deref()).chain(self.inference_geo.as_deref())
    }

    /// Describes the mode as `service_tier flex, speed fast`.
    pub fn describe(&self) -> String {
        let fields = [
            ("service_tier", &self.service_tier),
            ("speed", &self.speed),
            ("inference_geo", &self.inference_geo),
        ];
        let mut words = Vec::new();
        for (name, value) in fields {
            if let Some(value) = value {
                words.push(format!("{name} {value}"));
            }
        }
        words.join(", ")
    }
}

/// Returns the value unless it is among the standard ones.
fn unusual(value: Option<&str>, standard: &[&str]) -> Option<String> {
    value.filter(|value| !standard.contains(value)).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn standard_values_are_no_mode() {
        let mode = PriceMode::from_log(Some("default"), Some("standard"), Some("not_available"));
        assert!(mode.is_standard() && PriceMode::from_log(None, None, None).is_standard());
        let mode = PriceMode::from_log(Some("fast"), None, Some("us"));
        assert_eq!(mode.factor_names().collect::<Vec<_>>(), ["priority", "us"]);
        assert_eq!(mode.describe(), "service_tier fast, inference_geo us");
    }
}
