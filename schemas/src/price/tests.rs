//! Tests of the price table and its names.

use super::*;

fn usage(input: i64, output: i64, read: i64, write: i64, one_hour: i64) -> Usage {
    Usage {
        input: Some(input),
        output: Some(output),
        cache_read: Some(read),
        cache_write: Some(write),
        cache_write_1h: Some(one_hour),
        ..Usage::default()
    }
}

fn close(cost: Option<f64>, expected: f64) {
    assert!(cost.is_some_and(|cost| (cost - expected).abs() < 1e-9), "{cost:?}, not {expected}");
}

#[test]
fn the_table_of_the_repository_can_be_read() {
    let file = PriceFile::parse(BUILT_IN).expect("prices.toml");
    assert!(file.models.len() > 80);
    let table = PriceTable::built_in();
    assert_eq!(Some(table.as_of()), file.as_of.as_deref());
    for (model, rate) in &file.models {
        for name in rate.aliases.iter().chain([model]) {
            assert_eq!(table.rate(name, rate.until.as_deref()), Some(rate), "{name}");
        }
        if let Some(long) = &rate.long {
            assert!(long.input > rate.input && long.output > rate.output, "{model}");
            assert!(crate::session::LONG_PROMPTS.contains(&long.above_tokens), "{model}");
        }
        if model.starts_with("claude-") {
            assert_eq!(rate.cache_write_1h, Some(2.0 * rate.input), "{model}");
        }
    }
}

#[test]
fn each_kind_of_token_has_its_rate() {
    let table = PriceTable::built_in();
    let million = usage(1_000_000, 1_000_000, 1_000_000, 2_000_000, 1_000_000);
    close(table.cost("claude-opus-5", &million, false), 5.0 + 25.0 + 0.5 + 6.25 + 10.0);
    let plain = Usage { cache_write_1h: None, ..usage(100, 10, 0, 1_000, 0) };
    close(table.cost("claude-opus-5", &plain, false), (500.0 + 250.0 + 6_250.0) / 1e6);
    close(table.cost("claude-opus-5", &usage(0, 0, 0, 0, 0), false), 0.0);
    let only_output = Usage { output: Some(1_000), ..Usage::default() };
    close(table.cost("gpt-5.4", &only_output, false), 0.015);
}

#[test]
fn what_is_not_known_costs_nothing_known() {
    let table = PriceTable::built_in();
    let some = usage(1, 1, 0, 0, 0);
    for name in [
        "",
        "<synthetic>",
        "codex-auto-review",
        "deepseek-v4-flash-free",
        "gpt-5.4-turbo",
        "gpt-5.4-20269999",
        "moonshotai/kimi-k2-instruct",
        "opus",
        "mars.anthropic.claude-opus-5",
    ] {
        assert_eq!(table.cost(name, &some, false), None, "{name}");
    }
    assert_eq!(table.cost("claude-opus-5", &Usage::default(), false), None);
    // No price for cached input is published.
    assert!(table.cost("gpt-5-pro", &some, false).is_some());
    assert_eq!(table.cost("gpt-5-pro", &usage(1, 1, 1, 0, 0), false), None);
}

#[test]
fn long_prompts_cost_more_where_the_table_says_so() {
    let table = PriceTable::built_in();
    let rate = table.rate("gpt-5.4", None).expect("a price");
    assert!(!rate.is_long(272_000) && rate.is_long(272_001));
    close(rate.cost(&usage(1_000, 100, 1_000_000, 0, 0), true), 0.005 + 0.00225 + 0.5);
    let flat = table.rate("claude-opus-5", None).expect("a price");
    assert!(!flat.is_long(900_000));
    assert_eq!(flat.cost(&usage(9, 9, 9, 9, 9), true), flat.cost(&usage(9, 9, 9, 9, 9), false));
}

#[test]
fn names_are_found_without_their_decorations() {
    let table = PriceTable::built_in();
    for (name, model) in [
        ("claude-opus-4-5-20251101", "claude-opus-4-5"),
        ("claude-sonnet-4-5-20250929[1m]", "claude-sonnet-4-5"),
        ("claude-sonnet-4.6", "claude-sonnet-4-6"),
        ("anthropic/claude-opus-4.8", "claude-opus-4-8"),
        ("openrouter/anthropic/claude-haiku-4.5", "claude-haiku-4-5"),
        ("anthropic.claude-opus-4-1-20250805-v1:0", "claude-opus-4-1"),
        ("us.anthropic.claude-opus-4-1-20250805-v1:0", "claude-opus-4-1"),
        ("global.anthropic.claude-opus-4-6-v1", "claude-opus-4-6"),
        ("vertex_ai/claude-haiku-4-5@20251001", "claude-haiku-4-5"),
        ("claude-opus-5@default", "claude-opus-5"),
        ("gpt-5.4-2026-03-05", "gpt-5.4"),
        ("models/gemini-2.5-pro", "gemini-2.5-pro"),
        ("moonshot-ai/kimi-k2.7-code", "kimi-k2.7-code"),
    ] {
        assert!(table.rate(model, None).is_some(), "{model}");
        assert_eq!(table.rate(name, None), table.rate(model, None), "{name}");
    }
    // An older version with a price of its own.
    assert_ne!(table.rate("gpt-4o-2024-05-13", None), table.rate("gpt-4o-2024-08-06", None));
}

#[test]
fn regional_endpoints_of_bedrock_cost_more() {
    let table = PriceTable::built_in();
    let million = usage(1_000_000, 0, 0, 0, 0);
    close(table.cost("global.anthropic.claude-sonnet-4-5-20250929-v1:0", &million, false), 3.0);
    close(table.cost("us.anthropic.claude-sonnet-4-5-20250929-v1:0", &million, false), 3.3);
    close(table.cost("eu.anthropic.claude-sonnet-4-5-20250929-v1:0", &million, true), 6.6);
    let arn = "arn:aws:bedrock:eu-west-1:1:inference-profile/eu.anthropic.claude-opus-4-6-v1:0";
    close(table.cost(arn, &million, false), 5.5);
}

#[test]
fn a_file_of_the_user_replaces_and_adds_models() {
    let text = r#"
        [models."claude-opus-4-6"]
        input = 1.0
        output = 2.0
        [models."glm-5.2"]
        input = 0.5
        output = 1.0
        [models.local]
        input = 0
        output = 0
        aliases = ["my-local-model"]
    "#;
    let table = PriceTable::with_overrides(text).expect("a good file");
    let million = usage(1_000_000, 0, 0, 0, 0);
    for name in ["claude-opus-4-6", "claude-opus-4.6", "anthropic/claude-opus-4-6-20260205"] {
        close(table.cost(name, &million, false), 1.0);
    }
    // Once an alias, now a model; the others keep their price.
    close(table.cost("glm-5.2", &million, false), 0.5);
    close(table.cost("glm-5.3", &million, false), 1.4);
    close(table.cost("my-local-model", &usage(5, 5, 0, 0, 0), false), 0.0);
    assert_eq!(table.as_of(), PriceTable::built_in().as_of());
}

#[test]
fn the_day_decides_which_prices_are_valid() {
    let table = PriceTable::with_overrides(
        "[models.m]
        input = 4.0
        output = 20.0
        regional = 1.1
        modes = { fast = 2.0 }
        earlier = [
            { until = '2026-07-31', input = 6.0, output = 30.0 },
            { until = '2026-08-20', input = 5.0, output = 30.0, modes = { fast = 3.0 } },
        ]
        [models.gone]
        until = '2026-08-16'
        input = 1.0
        output = 2.0",
    )
    .expect("a good file");
    let input = |model: &str, day: Option<&str>| table.rate(model, day).map(|rate| rate.input);
    assert_eq!(input("m", Some("2025-01-01")), Some(6.0));
    assert_eq!(input("m", Some("2026-07-31")), Some(6.0));
    assert_eq!(input("m", Some("2026-08-01")), Some(5.0));
    assert_eq!(input("m", Some("2026-08-20")), Some(5.0));
    assert_eq!(input("m", Some("2026-08-21")), Some(4.0));
    assert_eq!(input("m", None), Some(4.0), "no day");
    assert_eq!(input("gone", Some("2026-08-16")), Some(1.0));
    assert_eq!(input("gone", Some("2026-08-17")), None);
    assert_eq!(input("gone", None), None);
    let fast = PriceMode::from_log(None, Some("fast"), None);
    let in_mode = |day| table.rate_in_mode("m", &fast, Some(day)).map(|rate| rate.input);
    assert_eq!(in_mode("2026-07-01"), None);
    assert_eq!(in_mode("2026-08-01"), Some(15.0));
    assert_eq!(in_mode("2026-09-01"), Some(8.0));
}

#[test]
fn errors_say_what_is_wrong() {
    let error = |text: &str| PriceTable::with_overrides(text).expect_err("a bad file");
    let model = |fields: &str| format!("[models.m]\ninput = 1.0\noutput = 2.0\n{fields}");
    assert!(error("[models.m]\ninput = 1.0").to_string().contains("output"));
    let unknown = error(&model("cache_reed = 1.0")).to_string();
    assert!(unknown.contains("cache_reed") && unknown.contains("line 4"), "{unknown}");
    let expected = PriceError::Rate { model: "m".to_owned(), field: "cache_read", value: -0.5 };
    assert_eq!(error(&model("cache_read = -0.5")), expected);
    let long = model("[models.m.long]\nabove_tokens = 0\ninput = 1.0\noutput = 2.0");
    assert_eq!(error(&long), PriceError::Threshold { model: "m".to_owned(), value: 0 });
    assert_eq!(error("as_of = \"soon\""), PriceError::Date("soon".to_owned()));
    for (rows, value) in [
        ("until = \"soon\"", "soon"),
        ("earlier = [{ input = 1.0, output = 2.0 }]", ""),
        (
            "until = \"2026-08-01\"\nearlier = [{ until = \"2026-08-01\", input = 1.0, output = 2.0 }]",
            "2026-08-01",
        ),
    ] {
        let expected = PriceError::Until { model: "m".to_owned(), value: value.to_owned() };
        assert_eq!(error(&model(rows)), expected);
    }
    let twice = model("aliases = [\"n\"]\n[models.n]\ninput = 1.0\noutput = 2.0");
    let names = ["n", "m", "n"].map(str::to_owned);
    let [name, first, second] = names;
    assert_eq!(error(&twice), PriceError::Name { name, first, second });
}
