//! Masks secrets before any part of a log is stored: `[REDACTED:github_token]` replaces a secret.
//!
//! One pass finds the places where an anchor of a rule occurs (`anchors.rs`). Only these places are
//! examined further: the shape of a token (`rules.rs`, and `wrapped.rs` over line breaks), the
//! value under a name (`assign.rs`, `names.rs`, and `env.rs` for dotenv files), the text around a
//! value (`context.rs`, `commands.rs`, `dialogue.rs`), a private key (`pem.rs`, `web_key.rs`,
//! `bitcoin_key.rs`, `seed_phrase.rs`) or an encrypted file (`ansible_vault.rs`). Values without a
//! shape count as secrets if they look random and are not placeholders (`entropy.rs`). The masked
//! secrets of a session are counted (`secrets.rs`).

mod anchors;
mod ansible_vault;
mod assign;
mod bitcoin_key;
mod commands;
mod context;
mod dialogue;
mod entropy;
mod env;
mod names;
mod pattern;
mod pem;
mod rules;
mod scan;
mod secrets;
mod seed_phrase;
mod value;
mod web_key;
mod words;
mod wrapped;

use std::borrow::Cow;
use std::collections::BTreeMap;

use regex::Regex;
use serde::Deserialize;
use xxhash_rust::xxh3::Xxh3;

use anchors::Anchors;
use commands::COMMANDS;
use pattern::Pattern;
use rules::SHAPES;
use scan::{MASK, Rank, Scan, Span};
pub(crate) use secrets::{Found, Said, Secrets, look};

/// Revision of the built-in rules. It is raised when the code of this module masks other things
/// than before; stores are then re-read.
const REVISION: u8 = 10;

/// Highest number of rounds over one text. Masking in one round may expose a secret that was not
/// found before, such as the last of tokens that touch. Usually there are two rounds, and the
/// second one finds nothing. In one run of characters, at most half as many tokens are tried
/// (`MAX_TRIES` in `scan.rs`).
const ROUNDS: usize = 64;

/// Longest name of a user's rule, in bytes.
const MAX_NAME: usize = 40;

/// The rule that an anchor belongs to.
#[derive(Clone, Copy)]
enum Rule {
    /// `Shape` and `Command` hold the index of a rule in `SHAPES` and in `COMMANDS`.
    Shape(usize),
    Command(usize),
    Assignment,
    Address,
    Authorization,
    Bearer,
    Basic,
    Cookie,
    KeyBlock,
    KeyBody,
    KeyDer,
    KeyEnd,
    EncodedAddress,
    WebKey,
    Dialogue,
    AnsibleVault,
    SeedPhrase,
    BitcoinKey,
}

/// Anchors of the other rules. Most of them match in upper and lower case.
#[rustfmt::skip]
const CONTEXTS: &[(&[&str], Rule)] = &[
    (&["secret", "token", "pass", "?key", "cred", "pwd=", "pwd:", "pwd\"", "pwd'", "pwd\\",
        "_pw=", "salt=", "_auth", "api key", "\"auth", "'auth", "_pat=", "_pat:", "_pat\"", "_key=",
        "psk=", "kennwort", "senha", "contraseña", "пароль", "hasło", "密码", "密碼", "パスワード",
        "비밀번호"], Rule::Assignment),
    (&["?://"], Rule::Address),
    (&["authorization"], Rule::Authorization),
    (&["bearer "], Rule::Bearer),
    (&["basic "], Rule::Basic),
    (&["cookie"], Rule::Cookie),
    (&["BEGIN "], Rule::KeyBlock),
    (&["b3BlbnNzaC1r", "Private-Lines: "], Rule::KeyBody),
    (&["MII?", "MIG?", "MIH?", "MHcC", "MC4C", "MFEC"], Rule::KeyDer),
    (&["PRIVATE KEY"], Rule::KeyEnd),
    (&["%3A%2F%2F"], Rule::EncodedAddress),
    (&["\"kty", "'kty"], Rule::WebKey),
    (&["send \"", "send \\\"", "send -- \"", "send -- \\\"", "sendline("], Rule::Dialogue),
    (&["$ANSIBLE_VAULT;"], Rule::AnsibleVault),
    (&["mnemonic", "seed phrase", "seed_phrase", "seedphrase", "seed-phrase", "seed words",
        "seed=", "seed:", "seed\"", "recovery phrase", "recovery_phrase", "recoveryphrase",
        "recovery words", "backup phrase", "secret phrase", "wallet seed"], Rule::SeedPhrase),
    (&["wif=", "wif:", "wif\"", "wif'", "wif ", "privkey", "private key", "private_key",
        "privatekey", "bitcoin"], Rule::BitcoinKey),
    // `-----BEGIN PRIVATE KEY` in base64, also with RSA, EC, DSA, OpenSSH and encrypted keys.
    (
        &[
            "LS0tLS1CRUdJTiBQUklWQVRFIEtFWS",
            "LS0tLS1CRUdJTiBSU0EgUFJJVkFURSBLRVkt",
            "LS0tLS1CRUdJTiBFQyBQUklWQVRFIEtFWS",
            "LS0tLS1CRUdJTiBEU0EgUFJJVkFURSBLRVkt",
            "LS0tLS1CRUdJTiBPUEVOU1NIIFBSSVZBVEUgS0VZ",
            "LS0tLS1CRUdJTiBFTkNSWVBURUQgUFJJVkFURSBLRV",
        ],
        Rule::KeyBody,
    ),
];

/// A rule of the user. It masks the first group of its regex, or the whole match if it has no
/// group.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UserRule {
    /// The kind that the placeholder shows.
    pub name: String,
    pub regex: String,
}

/// The reason why the user's rules cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum RuleError {
    #[error("the rules cannot be read: {0}")]
    File(String),
    #[error(
        "the name {0:?} of a rule must have 1 to 40 characters, which may be lower-case letters, \
         digits and `_`"
    )]
    Name(String),
    #[error("the regex of rule {name} is none: {error}")]
    Regex { name: String, error: regex::Error },
    #[error("the regex of rule {0} matches the empty text, which is everywhere")]
    Empty(String),
}

/// The number of masked secrets of each kind.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Counts(pub BTreeMap<String, u64>);

/// Parses the user's rules from a file such as
///
/// ```toml
/// [[rule]]
/// name = "badge_number"
/// regex = "HB-[0-9]{8}"
/// ```
pub fn user_rules(text: &str) -> Result<Vec<UserRule>, RuleError> {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct File {
        #[serde(default)]
        rule: Vec<UserRule>,
    }
    let file: File = toml::from_str(text).map_err(|error| RuleError::File(error.to_string()))?;
    Ok(file.rule)
}

/// Finds and masks secrets. One redactor serves all threads.
pub struct Redactor {
    anchors: Anchors<Rule>,
    /// One pattern for each of `SHAPES`, in their order.
    shapes: Vec<Pattern>,
    user: Vec<(String, Regex)>,
    version: u64,
}

impl Redactor {
    /// Compiles the built-in rules and those of the user, which run over every text as a whole.
    pub fn new(user_rules: &[UserRule]) -> Result<Self, RuleError> {
        let mut user = Vec::with_capacity(user_rules.len());
        for UserRule { name, regex } in user_rules {
            let fits =
                |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
            if name.is_empty() || name.len() > MAX_NAME || !name.bytes().all(fits) {
                return Err(RuleError::Name(name.clone()));
            }
            let compiled = Regex::new(regex)
                .map_err(|error| RuleError::Regex { name: name.clone(), error })?;
            if compiled.is_match("") {
                return Err(RuleError::Empty(name.clone()));
            }
            user.push((name.clone(), compiled));
        }
        let shapes = SHAPES.iter().enumerate().flat_map(|(n, shape)| {
            shape.anchors.iter().map(move |anchor| (*anchor, false, Rule::Shape(n)))
        });
        let commands = COMMANDS
            .iter()
            .enumerate()
            .map(|(n, command)| (command.anchor, false, Rule::Command(n)));
        let contexts = CONTEXTS.iter().flat_map(|(anchors, rule)| {
            let any_case = !matches!(
                rule,
                Rule::KeyBlock
                    | Rule::KeyBody
                    | Rule::KeyDer
                    | Rule::KeyEnd
                    | Rule::WebKey
                    | Rule::Dialogue
                    | Rule::AnsibleVault
            );
            anchors.iter().map(move |anchor| (*anchor, any_case, *rule))
        });
        Ok(Self {
            anchors: Anchors::new(shapes.chain(commands).chain(contexts)),
            shapes: SHAPES.iter().map(|shape| Pattern::new(shape.regex)).collect(),
            user,
            version: version(user_rules),
        })
    }

    /// Returns a hash of the rules, which changes if the rules change.
    pub fn version(&self) -> u64 {
        self.version
    }

    /// Masks the secrets in `text` and adds them to `counts`. Masking a masked text changes
    /// nothing.
    pub fn mask<'t>(&self, text: &'t str, counts: &mut Counts) -> Cow<'t, str> {
        self.mask_telling(text, &mut |kind, _| {
            *counts.0.entry(kind.to_owned()).or_default() += 1;
        })
    }

    /// Masks the secrets in `text` and calls `tell` with the kind and the text of each secret.
    fn mask_telling<'t>(&self, text: &'t str, tell: &mut dyn FnMut(&str, &str)) -> Cow<'t, str> {
        let mut text = Cow::Borrowed(text);
        for _ in 0..ROUNDS {
            let masked = {
                let spans = self.find(&text);
                if spans.is_empty() {
                    break;
                }
                masked(&text, &spans, tell)
            };
            text = Cow::Owned(masked);
        }
        text
    }

    fn find<'a>(&'a self, text: &'a str) -> Vec<Span<'a>> {
        let mut scan = Scan::new(text);
        self.anchors.each(text.as_bytes(), |at, rule| self.look(&mut scan, at, rule));
        env::whole(&mut scan);
        for (name, regex) in &self.user {
            for found in regex.captures_iter(text) {
                if let Some(secret) = found.get(1).or_else(|| found.get(0)) {
                    scan.add(secret.start(), secret.end(), name, Rank::User);
                }
            }
        }
        scan.finish()
    }

    fn look(&self, scan: &mut Scan<'_>, at: usize, rule: Rule) {
        match rule {
            Rule::Shape(n) => {
                if let (Some(shape), Some(pattern)) = (SHAPES.get(n), self.shapes.get(n)) {
                    rules::find(scan, at, shape, pattern);
                }
            }
            Rule::Command(n) => {
                if let Some(command) = COMMANDS.get(n) {
                    commands::find(scan, at, command);
                }
            }
            Rule::Assignment => assign::find(scan, at),
            Rule::Address => context::address(scan, at + 1),
            Rule::Authorization => context::authorization(scan, at),
            Rule::Bearer => context::bearer(scan, at),
            Rule::Basic => context::basic(scan, at),
            Rule::Cookie => context::cookie(scan, at),
            Rule::KeyBlock => pem::block(scan, at),
            Rule::KeyBody => pem::body(scan, at),
            Rule::KeyDer => pem::der(scan, at),
            Rule::KeyEnd => pem::end(scan, at),
            Rule::EncodedAddress => context::encoded_address(scan, at),
            Rule::WebKey => web_key::find(scan, at),
            Rule::Dialogue => dialogue::find(scan, at),
            Rule::AnsibleVault => ansible_vault::find(scan, at),
            Rule::SeedPhrase => seed_phrase::find(scan, at),
            Rule::BitcoinKey => bitcoin_key::find(scan, at),
        }
    }
}

/// Returns the text with placeholders for its secrets, and calls `tell` with each of them.
fn masked(text: &str, spans: &[Span<'_>], tell: &mut dyn FnMut(&str, &str)) -> String {
    let mut masked = String::with_capacity(text.len());
    let mut from = 0;
    for span in spans {
        masked.push_str(text.get(from..span.start).unwrap_or_default());
        masked.push_str(MASK);
        masked.push_str(span.kind);
        masked.push(']');
        from = span.end;
        tell(span.kind, text.get(span.start..span.end).unwrap_or_default());
    }
    masked.push_str(text.get(from..).unwrap_or_default());
    masked
}

fn version(user_rules: &[UserRule]) -> u64 {
    let shapes = SHAPES.iter().flat_map(|shape| [shape.kind, shape.regex]);
    let commands = COMMANDS.iter().flat_map(|command| [command.kind, command.source]);
    let user = user_rules.iter().flat_map(|rule| [rule.name.as_str(), rule.regex.as_str()]);
    let mut hash = Xxh3::new();
    hash.update(&[REVISION]);
    for part in shapes.chain(commands).chain(user) {
        hash.update(part.as_bytes());
        hash.update(&[0]);
    }
    hash.digest()
}
