//! Redaction against lists of planted secrets and look-alikes (`tests/redact`), and on any text.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use ingest::redact::{Redactor, RuleError, SecretCounts, UserRule, parse_user_rules};
use proptest::prelude::*;

use crate::rounds::rounds;

const SECRETS: &str = include_str!("../redact/secrets.txt");
const LOOKALIKES: &str = include_str!("../redact/lookalikes.txt");

/// Kinds that are known by what stands around them, in some cases at least.
const BY_SURROUNDINGS: &[&str] = &[
    "api_key",
    "key",
    "oauth_code",
    "authorization",
    "aws_presigned_url",
    "aws_secret_key",
    "azure_access_key",
    "azure_sas",
    "azure_storage_key",
    "basic_auth",
    "bearer_token",
    "client_secret",
    "convex_key",
    "discord_token",
    "env_value",
    "cloudflare_token",
    "cookie",
    "datadog_key",
    "discord_token",
    "discord_webhook",
    "heroku_key",
    "jwk_secret",
    "kubernetes_secret",
    "gitlab_session",
    "braintree_token",
    "wandb_key",
    "sidekiq_secret",
    "salt",
    "ansible_vault",
    "seed_phrase",
    "bitcoin_private_key",
    "zapier_webhook",
    "tines_webhook",
    "salesforce_token",
    "password",
    "password_hash",
    "power_automate_url",
    "secret",
    "secret_key",
    "sentry_dsn",
    "slack_webhook",
    "teams_webhook",
    "token",
    "twilio_key",
    "url_password",
    "vercel_token",
];

static REDACTOR: LazyLock<Redactor> =
    LazyLock::new(|| Redactor::new(&[]).expect("the built-in rules"));

/// A part of a case: text to keep, or a secret of a kind.
enum Part {
    Text(String),
    Secret(String, String),
}

/// Titles and texts of a list. The marker that breaks up secrets is taken out.
fn cases(list: &str) -> Vec<(String, String)> {
    let list = list.replace("‹›", "");
    let mut cases: Vec<(String, String)> = Vec::new();
    for line in list.strip_suffix('\n').expect("a last line").split('\n') {
        if let Some(title) = line.strip_prefix("§ ") {
            cases.push((title.to_owned(), String::new()));
        } else if let Some((_, text)) = cases.last_mut() {
            text.push_str(line);
            text.push('\n');
        }
    }
    for (_, text) in &mut cases {
        text.pop();
    }
    cases
}

/// The parts of a text with `⟦kind:secret⟧` marks.
fn parts(text: &str) -> Vec<Part> {
    let mut parts = Vec::new();
    for piece in text.split('⟦') {
        let Some((secret, rest)) = piece.split_once('⟧') else {
            parts.push(Part::Text(piece.to_owned()));
            continue;
        };
        let (kind, secret) = secret.split_once(':').expect("a kind");
        parts.push(Part::Secret(kind.to_owned(), secret.to_owned()));
        parts.push(Part::Text(rest.to_owned()));
    }
    parts
}

fn secrets() -> Vec<(String, String)> {
    let cases = cases(SECRETS);
    let parts = cases.iter().flat_map(|(_, text)| parts(text));
    parts
        .filter_map(|part| match part {
            Part::Secret(kind, secret) => Some((kind, secret)),
            Part::Text(_) => None,
        })
        .collect()
}

fn mask(text: &str) -> String {
    REDACTOR.mask(text, &mut SecretCounts::default()).into_owned()
}

#[test]
fn planted_secrets_are_masked_and_the_text_around_them_is_kept() {
    let mut failures = Vec::new();
    for (title, text) in cases(SECRETS) {
        let (mut plain, mut wanted) = (String::new(), String::new());
        let mut kinds: BTreeMap<String, u64> = BTreeMap::new();
        for part in parts(&text) {
            match part {
                Part::Text(text) => {
                    plain.push_str(&text);
                    wanted.push_str(&text);
                }
                Part::Secret(kind, secret) => {
                    plain.push_str(&secret);
                    wanted.push_str(&format!("[REDACTED:{kind}]"));
                    *kinds.entry(kind).or_default() += 1;
                }
            }
        }
        let mut counts = SecretCounts::default();
        let masked = REDACTOR.mask(&plain, &mut counts);
        if masked != wanted {
            failures.push(format!("{title}\n  wanted {wanted}\n  got    {masked}"));
        } else if counts.0 != kinds {
            failures.push(format!("{title}\n  counted {counts:?}"));
        }
    }
    assert!(failures.is_empty(), "{} failures\n{}", failures.len(), failures.join("\n"));
}

#[test]
fn the_list_is_long_and_varied() {
    let secrets = secrets();
    let kinds: BTreeSet<_> = secrets.iter().map(|(kind, _)| kind).collect();
    assert!(secrets.len() >= 200 && kinds.len() >= 40, "{} of {}", secrets.len(), kinds.len());
    assert!(cases(LOOKALIKES).len() >= 400);
}

#[test]
fn lookalikes_stay() {
    let masked: Vec<_> = cases(LOOKALIKES)
        .into_iter()
        .filter(|(_, text)| mask(text) != *text)
        .map(|(title, text)| format!("{title}: {}", mask(&text)))
        .collect();
    assert!(masked.is_empty(), "{} masked\n{}", masked.len(), masked.join("\n"));
}

#[test]
fn tokens_are_known_wherever_they_stand() {
    for (kind, secret) in secrets() {
        // What `grep` prints before the lines of a key is known by the first of them.
        let has_name = |line: &str| [".pem", "id_ed25519"].iter().any(|name| line.contains(name));
        let is_printed_by_grep = secret.lines().any(has_name);
        // So are the signs of a diff.
        let is_in_diff = kind == "github_token" && secret.contains("\n-");
        // The lead of the first line gives the lead of the next ones.
        let leads = ["\n# ", "\n    // ", "\na.txt:", "\nsrc/a.sh:", "\n2026-", "\nweb_1"];
        let has_lead = leads.iter().any(|lead| secret.contains(lead));
        // A number of a key is known by its name, and an old token of Vault by its command.
        let is_number = kind == "private_key"
            && !["-----", "LS0", "M"].iter().any(|start| secret.starts_with(start));
        let is_named = is_number || kind == "vault_token" && !secret.starts_with("hv");
        // What is encoded is known by what decodes it.
        let is_encoded = kind == "github_token" && !secret.starts_with("gh");
        let is_by_surroundings = BY_SURROUNDINGS.contains(&kind.as_str());
        if is_by_surroundings
            || is_printed_by_grep
            || is_in_diff
            || has_lead
            || is_named
            || is_encoded
        {
            continue;
        }
        // Nothing says where a key ends that is cut off.
        let cut = secret.contains("BEGIN") && !secret.contains("END");
        for (before, after) in [("", ""), ("", " x"), ("x ", ""), ("\n", "\n"), ("→", "。")] {
            if cut && !after.is_empty() {
                continue;
            }
            let wanted = format!("{before}[REDACTED:{kind}]{after}");
            assert_eq!(mask(&format!("{before}{secret}{after}")), wanted);
        }
    }
}

#[test]
fn a_token_is_masked_however_much_stands_behind_it() {
    let secrets = secrets();
    let (_, token) = secrets.iter().find(|(kind, _)| kind == "gitlab_token").expect("of GitLab");
    for filler in ["a", "Zk3", "abcdefgh"] {
        let masked = mask(&format!("{token}={}", filler.repeat(9000)));
        assert!(!masked.contains(token.as_str()), "{filler}");
    }
}

#[test]
fn masking_again_changes_nothing() {
    for (title, text) in cases(SECRETS).into_iter().chain(cases(LOOKALIKES)) {
        let once = mask(&text);
        assert_eq!(mask(&once), once, "{title}");
    }
}

/// A link of a chain that is masked must not be what makes the next one stand out: every round
/// would mask one more, and there is a last round.
#[test]
fn chains_are_masked_to_their_end() {
    const JOINTS: &[&str] = &[
        "",
        " = ",
        "=",
        ": ",
        ":",
        "-",
        "_",
        "/",
        ".",
        "@",
        "\\n",
        "%3D",
        "=>",
        "\"]=",
        "] = ",
        ",",
        "x",
        "token = ",
        "password=",
        "://",
        "\0",
        "�passwd0t = ",
    ];
    let mut failures = BTreeSet::new();
    let plain = |text: &str| {
        parts(text)
            .into_iter()
            .map(|part| match part {
                Part::Text(text) | Part::Secret(_, text) => text,
            })
            .collect::<String>()
    };
    let texts = cases(SECRETS).into_iter().map(|(_, text)| plain(&text));
    let links: Vec<_> = texts.chain(secrets().into_iter().map(|(_, secret)| secret)).collect();
    for link in links.iter().step_by(links.len() / rounds(links.len())) {
        for joint in JOINTS {
            let once = mask(&format!("{link}{joint}").repeat(28));
            if mask(&once) != once {
                failures.insert(format!("{link:?} joined by {joint:?}"));
            }
        }
    }
    let list = failures.iter().take(40).map(String::as_str).collect::<Vec<_>>().join("\n");
    assert!(failures.is_empty(), "{} chains\n{list}", failures.len());
}

#[test]
fn what_only_begins_like_a_placeholder_protects_nothing() {
    let secrets = secrets();
    let (kind, token) =
        secrets.iter().find(|(kind, _)| kind == "github_token").expect("a token of GitHub");
    for before in ["[REDACTED:", "[REDACTED: ", "[REDACTED:see the vault: ", "[REDACTED:Key]"] {
        let wanted = format!("{before}[REDACTED:{kind}]");
        assert_eq!(mask(&format!("{before}{token}")), wanted);
    }
}

#[test]
fn clean_text_is_borrowed() {
    let text = "An ordinary text about tokens, passwords and keys: `let token = next();`";
    let mut counts = SecretCounts::default();
    assert!(matches!(REDACTOR.mask(text, &mut counts), std::borrow::Cow::Borrowed(_)));
    assert_eq!(counts, SecretCounts::default());
}

#[test]
fn rules_of_the_user_are_added() {
    let rules =
        parse_user_rules("[[rule]]\nname = \"badge\"\nregex = \"HB-([0-9]{4})\"\n").expect("rules");
    let redactor = Redactor::new(&rules).expect("a redactor");
    let mut counts = SecretCounts::default();
    let once = redactor.mask("HB-1234 and HB-12345", &mut counts).into_owned();
    assert_eq!(once, "HB-[REDACTED:badge] and HB-[REDACTED:badge]5");
    assert_eq!(counts.0, BTreeMap::from([("badge".to_owned(), 2)]));
    assert_eq!(redactor.mask(&once, &mut counts), once);
    assert_ne!(redactor.version(), REDACTOR.version());
    assert_eq!(REDACTOR.version(), Redactor::new(&[]).expect("again").version());
    // A rule that matches placeholders does not change them.
    let all = [UserRule { name: "all".to_owned(), regex: r"\S+".to_owned() }];
    let redactor = Redactor::new(&all).expect("a redactor");
    assert_eq!(
        redactor.mask("a [REDACTED:badge] b", &mut counts),
        "[REDACTED:all] [REDACTED:badge] [REDACTED:all]"
    );
}

#[test]
fn wrong_rules_are_named() {
    let rule = |name: &str, regex: &str| {
        let rules = [UserRule { name: name.to_owned(), regex: regex.to_owned() }];
        Redactor::new(&rules).err().expect("an error")
    };
    assert!(matches!(rule("Badge No", "x"), RuleError::Name(name) if name == "Badge No"));
    assert!(matches!(rule("badge", "x*"), RuleError::Empty(name) if name == "badge"));
    let error = rule("badge", "HB-(");
    assert!(matches!(error, RuleError::Regex { .. }));
    assert!(error.to_string().contains("badge"), "{error}");
    assert!(matches!(parse_user_rules("[[rule]]\nname = 1"), Err(RuleError::File(_))));
    assert!(parse_user_rules("").expect("no rules").is_empty());
}

/// Pieces of secrets, of what stands around them, and of neither.
fn pieces() -> impl Strategy<Value = String> {
    let mut pieces: Vec<String> = secrets().into_iter().map(|(_, secret)| secret).collect();
    let text = cases(SECRETS).into_iter().chain(cases(LOOKALIKES)).map(|(_, text)| text);
    pieces.extend(text.flat_map(|text| {
        text.split_inclusive([' ', '"', '=', ':', '\n', '⟧']).map(str::to_owned).collect::<Vec<_>>()
    }));
    pieces.extend(["[REDACTED:x]", "[REDACTED:", "]", "\\n", "\\\"", "é", "-"].map(str::to_owned));
    proptest::sample::select(pieces)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn any_text_stays_text(text in any::<String>()) {
        let once = mask(&text);
        prop_assert_eq!(mask(&once), once);
    }

    #[test]
    fn any_mixture_is_masked_once_and_for_all(mixture in proptest::collection::vec(pieces(), 1..24)) {
        let once = mask(&mixture.concat());
        prop_assert_eq!(mask(&once), once);
    }
}

#[test]
fn tokens_glued_to_words_are_masked() {
    let redactor = Redactor::new(&[]).expect("the built-in rules");
    let tokens = [
        ["gh", "p_r9Xk2LmQ7vT4sWb8Yc3Nd6Pf1Hj5ZaGe0uKt"],
        ["AK", "IAQ7ZP4XW2MN5RTYBC"],
        ["glp", "at-r9Xk2LmQ7vT4sWb8Yc3N"],
    ];
    for token in tokens.map(|parts| parts.concat()) {
        for lead in ["", "backup-", "my_", "-home-", "rollout-2026-01-01-", "exec_command"] {
            for end in [".txt", "_tool"] {
                let text = format!("see {lead}{token}{end}");
                let masked = redactor.mask(&text, &mut SecretCounts::default());
                assert!(masked.contains("[REDACTED:") && !masked.contains(&token), "{masked}");
            }
        }
    }
}
