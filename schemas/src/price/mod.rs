//! Computes the cost of tokens. The prices are in `prices.toml`, a dated table in the repository,
//! which a user's file of the same form can change.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};

use serde::Deserialize;

use crate::usage::Usage;

mod mode;
mod name;

pub use mode::{PriceMode, STANDARD_GEOS, STANDARD_SPEEDS, STANDARD_TIERS};
pub use name::without_date;

/// The price table of the repository, in TOML.
const BUILT_IN: &str = include_str!("../../prices.toml");

/// Prices of a model, in US dollars per million tokens. An unknown rate is absent.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rate {
    /// Input tokens that were neither read from nor written to a cache.
    pub input: f64,
    /// Output tokens, reasoning included.
    pub output: f64,
    /// Input tokens read from a cache.
    pub cache_read: Option<f64>,
    /// Input tokens written to a cache for five minutes, or for a time that the log does not give.
    /// Without this rate they cost as much as other input.
    pub cache_write_5m: Option<f64>,
    /// Input tokens written to a cache for an hour.
    pub cache_write_1h: Option<f64>,
    /// Prices of requests with a long prompt, if they are higher.
    pub long: Option<LongRate>,
    /// Factor by which all prices are multiplied at Bedrock's regional endpoints. `None` if they
    /// cost the same there.
    regional: Option<f64>,
    /// Price of a thousand web searches that the maker's server made for a request. `None` if it is
    /// not known.
    pub web_search_per_1000: Option<f64>,
    /// Factors by which all prices of tokens are multiplied in a mode of service, by its name. A
    /// mode that is not listed has no known price.
    #[serde(default)]
    modes: BTreeMap<String, f64>,
    /// Other names of the model.
    #[serde(default)]
    aliases: Vec<String>,
    /// The last day of these prices in UTC, as `2026-08-20`. `None` if they are valid still.
    until: Option<String>,
    /// The prices before these, the oldest first. Each has a last day.
    #[serde(default)]
    earlier: Vec<Self>,
}

/// Prices of requests whose whole prompt, cached parts included, has more than a number of tokens.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LongRate {
    /// Prompts of more tokens than this are long.
    pub above_tokens: i64,
    /// Input tokens that were neither read from nor written to a cache.
    pub input: f64,
    /// Output tokens, reasoning included.
    pub output: f64,
    /// Input tokens read from a cache. `None` if the rate is not known.
    pub cache_read: Option<f64>,
    /// Input tokens written to a cache for five minutes. `None` means that they cost as much as
    /// other input.
    pub cache_write_5m: Option<f64>,
    /// Input tokens written to a cache for an hour. `None` if the rate is not known.
    pub cache_write_1h: Option<f64>,
}

/// The rates of input, output, cache reads, and cache writes for five minutes and for an hour.
pub type Rates = [Option<f64>; 5];

/// The fields that hold the [`Rates`], in their order.
const RATE_FIELDS: [&str; 5] =
    ["input", "output", "cache_read", "cache_write_5m", "cache_write_1h"];

impl Rate {
    /// Returns whether a request costs the long rates. `prompt_tokens` counts the whole prompt,
    /// cached tokens included.
    pub fn is_long(&self, prompt_tokens: i64) -> bool {
        self.long.as_ref().is_some_and(|long| prompt_tokens > long.above_tokens)
    }

    /// Returns the cost of usage in US dollars. `is_long` is the result of [`Self::is_long`] for the
    /// prompt. Returns `None` if the log gives no counts, or if a kind of tokens that was used has
    /// no known rate.
    pub fn cost(&self, usage: &Usage, is_long: bool) -> Option<f64> {
        if usage.is_unknown() {
            return None;
        }

        let one_hour = usage.cache_write_1h.unwrap_or(0);
        let counts = [
            usage.input.unwrap_or(0),
            usage.output.unwrap_or(0),
            usage.cache_read.unwrap_or(0),
            usage.cache_write.map_or(0, |all| all.saturating_sub(one_hour)),
            one_hour,
        ];
        let mut cost = 0.0;
        for (count, rate) in counts.into_iter().zip(self.rates(is_long)) {
            if count != 0 {
                cost += count as f64 * rate? / 1e6;
            }
        }
        let searches = usage.web_search.unwrap_or(0);
        if searches != 0 {
            cost += searches as f64 * self.web_search_per_1000? / 1e3;
        }
        Some(cost)
    }

    /// Returns the rates of requests with a long prompt if `is_long` is true, and the normal rates
    /// otherwise.
    pub fn rates(&self, is_long: bool) -> Rates {
        if let Some(long) = &self.long
            && is_long
        {
            return long.rates();
        }
        [
            Some(self.input),
            Some(self.output),
            self.cache_read,
            self.cache_write_5m.or(Some(self.input)),
            self.cache_write_1h,
        ]
    }

    /// Returns the same rates, each multiplied by a factor.
    fn scaled_by(&self, factor: f64) -> Self {
        let long = self.long.as_ref().map(|long| LongRate {
            above_tokens: long.above_tokens,
            input: long.input * factor,
            output: long.output * factor,
            cache_read: long.cache_read.map(|rate| rate * factor),
            cache_write_5m: long.cache_write_5m.map(|rate| rate * factor),
            cache_write_1h: long.cache_write_1h.map(|rate| rate * factor),
        });
        Self {
            input: self.input * factor,
            output: self.output * factor,
            cache_read: self.cache_read.map(|rate| rate * factor),
            cache_write_5m: self.cache_write_5m.map(|rate| rate * factor),
            cache_write_1h: self.cache_write_1h.map(|rate| rate * factor),
            long,
            regional: None,
            web_search_per_1000: self.web_search_per_1000,
            modes: self.modes.clone(),
            until: self.until.clone(),
            ..Self::default()
        }
    }

    /// Returns whether these prices are valid on a day in UTC, given that they begin before it. `None`
    /// is a day that the log does not give.
    fn is_valid_on(&self, day: Option<&str>) -> bool {
        match (&self.until, day) {
            (None, _) => true,
            (Some(_), None) => false,
            (Some(until), Some(day)) => day <= until.as_str(),
        }
    }

    /// Checks the rates and the threshold of a model.
    fn check_rates(&self, model: &str) -> Result<(), PriceError> {
        let rates = [self.rates(false), self.rates(true)];
        let named_rates = rates.iter().flat_map(|rates| RATE_FIELDS.into_iter().zip(*rates));
        let factors = self.modes.values().map(|factor| ("modes", Some(*factor)));
        let others =
            [("regional", self.regional), ("web_search_per_1000", self.web_search_per_1000)];
        for (field, rate) in named_rates.chain(others).chain(factors) {
            if let Some(value) = rate
                && (!value.is_finite() || value < 0.0)
            {
                return Err(PriceError::Rate { model: model.to_owned(), field, value });
            }
        }

        if let Some(long) = &self.long
            && long.above_tokens <= 0
        {
            let value = long.above_tokens;
            return Err(PriceError::Threshold { model: model.to_owned(), value });
        }
        Ok(())
    }

    /// Checks that the prices of a model follow each other in time.
    fn check_days(&self, model: &str) -> Result<(), PriceError> {
        let mut last_day = "";
        for rate in &self.earlier {
            let day = rate.until.as_deref().unwrap_or("");
            if !is_date(day) || day <= last_day {
                return Err(PriceError::Until { model: model.to_owned(), value: day.to_owned() });
            }
            last_day = day;
        }
        match &self.until {
            Some(day) if !is_date(day) || day.as_str() <= last_day => {
                Err(PriceError::Until { model: model.to_owned(), value: day.clone() })
            }
            Some(_) | None => Ok(()),
        }
    }
}

impl LongRate {
    /// Returns the rates. Without a rate, cache writes for five minutes cost as much as other input.
    fn rates(&self) -> Rates {
        [
            Some(self.input),
            Some(self.output),
            self.cache_read,
            self.cache_write_5m.or(Some(self.input)),
            self.cache_write_1h,
        ]
    }
}

/// The reason why a price table cannot be used.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum PriceError {
    /// The file is not TOML, or a field is unknown, missing or of another type. The text gives line
    /// and column.
    #[error("price table: {0}")]
    Form(String),
    /// The text of `as_of` is not a date.
    #[error("price table: as_of is {0:?}, which is not a date such as 2026-09-22")]
    Date(String),
    /// A rate is negative or not a finite number.
    #[error(
        "price table: {field} of {model:?} is {value}; give US dollars per million tokens, zero or more"
    )]
    Rate {
        /// The model that the rate belongs to.
        model: String,
        /// The field of the model.
        field: &'static str,
        /// The value of the field.
        value: f64,
    },
    /// The prompt length above which the long rates apply is not above zero.
    #[error("price table: long.above_tokens of {model:?} is {value}; give a number above zero")]
    Threshold {
        /// The model that the threshold belongs to.
        model: String,
        /// The threshold in tokens.
        value: i64,
    },
    /// The last day of a price is not a date, is missing, or is not after that of the price before.
    #[error(
        "price table: until of {model:?} is {value:?}; give a date such as 2026-08-20 in each row of \
         earlier, the oldest first"
    )]
    Until {
        /// The model that the price belongs to.
        model: String,
        /// The last day, as the file has it.
        value: String,
    },
    /// Two models of the file have the same name or alias.
    #[error("price table: the name {name:?} is used by both {first:?} and {second:?}")]
    Name {
        /// The name or alias.
        name: String,
        /// The model that has it first, in the order of the names of models.
        first: String,
        /// The other model that has it.
        second: String,
    },
}

/// The content of a price file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PriceFile {
    /// The day of the prices, as `2026-09-22`.
    as_of: Option<String>,
    #[serde(default)]
    models: BTreeMap<String, Rate>,
}

impl PriceFile {
    /// Parses and checks a price file.
    fn parse(text: &str) -> Result<Self, PriceError> {
        let file: Self =
            toml::from_str(text).map_err(|error| PriceError::Form(error.to_string()))?;
        if let Some(date) = &file.as_of
            && !is_date(date)
        {
            return Err(PriceError::Date(date.clone()));
        }

        let mut owners = HashMap::new();
        for (model, rate) in &file.models {
            for row in rate.earlier.iter().chain([rate]) {
                row.check_rates(model)?;
            }
            rate.check_days(model)?;
            for name in std::iter::once(model).chain(&rate.aliases) {
                if let Some(first) = owners.insert(name, model) {
                    return Err(PriceError::Name {
                        name: name.clone(),
                        first: first.clone(),
                        second: model.clone(),
                    });
                }
            }
        }
        Ok(file)
    }
}

/// Returns whether a text is a date as `2026-08-20`.
fn is_date(text: &str) -> bool {
    text.len() == 10 && text.parse::<jiff::civil::Date>().is_ok()
}

/// A model of the table with its prices.
#[derive(Debug, Clone)]
struct PricedModel {
    model: String,
    /// The prices in the order of time.
    rows: Vec<PriceRow>,
}

/// Prices of a model in a span of days.
#[derive(Debug, Clone)]
struct PriceRow {
    /// Prices at all other endpoints.
    rate: Rate,
    /// Prices at Bedrock's regional endpoints, if they differ.
    regional: Option<Rate>,
}

impl PricedModel {
    /// Returns the prices on a day.
    fn rate(&self, is_regional: bool, day: Option<&str>) -> Option<&Rate> {
        let row = self.rows.iter().find(|row| row.rate.is_valid_on(day))?;
        match &row.regional {
            Some(regional) if is_regional => Some(regional),
            Some(_) | None => Some(&row.rate),
        }
    }
}

impl PriceRow {
    fn new(rate: &Rate) -> Self {
        let regional = rate.regional.map(|factor| rate.scaled_by(factor));
        Self { rate: rate.clone(), regional }
    }
}

/// Prices of models, by name.
///
/// ```rust
/// use schemas::Usage;
/// use schemas::price::{PriceError, PriceTable};
///
/// let table = PriceTable::with_overrides(
///     "[models.local]
///     input = 1.5
///     output = 6.0",
/// )?;
/// let usage = Usage { input: Some(2_000), output: Some(1_000), ..Usage::default() };
/// let cost = table.cost("local", &usage, false).expect("a price");
/// assert!((cost - 0.009).abs() < 1e-9);
///
/// // A model without a price does not cost nothing: its cost is not known.
/// assert_eq!(table.cost("no-such-model", &usage, false), None);
/// # Ok::<(), PriceError>(())
/// ```
#[derive(Debug, Clone, Default)]
pub struct PriceTable {
    as_of: String,
    models: Vec<PricedModel>,
    /// The position in `models` of every name and alias.
    names: HashMap<String, usize>,
}

impl PriceTable {
    /// Returns the table of the repository. A test shows that it can be read.
    pub fn built_in() -> Self {
        let mut table = Self::default();
        if let Ok(file) = PriceFile::parse(BUILT_IN) {
            table.as_of = file.as_of.clone().unwrap_or_default();
            table.add_models(file);
        }
        table
    }

    /// Returns the table of the repository together with the models of a user's file, which are
    /// added or replace those of the same name. The file may omit `as_of`, which has no effect
    /// there.
    ///
    /// # Errors
    /// Returns what is wrong with the file: its form, a rate, a threshold or a name.
    pub fn with_overrides(text: &str) -> Result<Self, PriceError> {
        let file = PriceFile::parse(text)?;
        let mut table = Self::built_in();
        table.add_models(file);
        Ok(table)
    }

    /// Returns the day of the repository's prices, as `2026-09-22`.
    pub fn as_of(&self) -> &str {
        &self.as_of
    }

    /// Returns the normal prices of a model on a day in UTC, as `2026-08-20`; without a day, the
    /// prices that are valid still. The model is found by the rules of the module `name`. `None` if
    /// it has no price on this day.
    pub fn rate(&self, model: &str, day: Option<&str>) -> Option<&Rate> {
        let (found, is_regional) = self.find_model(model)?;
        found.rate(is_regional, day)
    }

    /// Returns the last days of the prices of a model in the order of time. `None` is the end of
    /// prices that are valid still.
    pub fn last_days(&self, model: &str) -> Vec<Option<&str>> {
        let rows = self.find_model(model).map(|(found, _)| found.rows.as_slice());
        rows.unwrap_or_default().iter().map(|row| row.rate.until.as_deref()).collect()
    }

    /// Returns the prices of a model in a mode of service on a day, as in [`Self::rate`]. `None` if
    /// the model has no price on this day, or no known price in this mode.
    pub fn rate_in_mode(
        &self,
        model: &str,
        mode: &PriceMode,
        day: Option<&str>,
    ) -> Option<Cow<'_, Rate>> {
        let (found, is_regional) = self.find_model(model)?;
        let rate = found.rate(is_regional, day)?;
        if mode.is_standard() {
            return Some(Cow::Borrowed(rate));
        }

        // Fast models have prices of their own.
        let mut base = rate;
        let mut mode = mode.clone();
        if mode.speed.as_deref() == Some("fast")
            && let Some(fast) = self.rate(&format!("{}-fast", found.model), day)
        {
            base = fast;
            mode.speed = None;
        }
        let mut factor = 1.0;
        for name in mode.factor_names() {
            factor *= rate.modes.get(name)?;
        }
        Some(Cow::Owned(base.scaled_by(factor)))
    }

    /// Returns a model, and whether its name is that at a regional endpoint of Bedrock.
    fn find_model(&self, model: &str) -> Option<(&PricedModel, bool)> {
        let mut known_as = model;
        let mut is_regional = false;
        loop {
            if let Some(found) = self.names.get(known_as).and_then(|at| self.models.get(*at)) {
                return Some((found, is_regional));
            }
            let (shorter, is_region) = name::without_decoration(known_as)?;
            known_as = shorter;
            is_regional |= is_region;
        }
    }

    /// Returns the cost of usage of a model in US dollars, at its normal prices today. `is_long` is the
    /// result of [`Rate::is_long`] for the prompt. Returns `None` for a model without a price, which
    /// does not mean that it costs nothing, and in the cases of [`Rate::cost`].
    pub fn cost(&self, model: &str, usage: &Usage, is_long: bool) -> Option<f64> {
        self.rate(model, None)?.cost(usage, is_long)
    }

    /// Adds the models of a file, which replace those of the same name.
    fn add_models(&mut self, file: PriceFile) {
        for (model, rate) in file.models {
            let at = self.models.len();
            // The other names of a replaced model now refer to the new one.
            let replaced = self.models.iter().rposition(|known| known.model == model);
            for known_at in self.names.values_mut() {
                if Some(*known_at) == replaced {
                    *known_at = at;
                }
            }

            for name in rate.aliases.iter().chain([&model]) {
                self.names.insert(name.clone(), at);
            }
            let rows = rate.earlier.iter().chain([&rate]).map(PriceRow::new).collect();
            self.models.push(PricedModel { model, rows });
        }
    }
}

#[cfg(test)]
mod tests;
