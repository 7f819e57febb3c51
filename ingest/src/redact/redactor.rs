//! Masks the secrets of a text: runs each rule at the places where one of its anchors occurs.

use std::borrow::Cow;
use std::collections::BTreeMap;

use regex::Regex;
use xxhash_rust::xxh3::Xxh3;

use super::anchors::Anchors;
use super::commands::{self, COMMANDS};
use super::pattern::Pattern;
use super::placeholder::MASK;
use super::rules::{self, SHAPES};
use super::scan::{Rank, Scan, Span};
use super::user_rule::{RuleError, UserRule, compile_user_rules};
use super::{
    ansible_vault, assign, bitcoin_key, context, dialogue, env, pem, seed_phrase, web_key,
};

/// Revision of the built-in rules. It is raised when the code of `redact` masks other things than
/// before; stores are then re-read.
const REVISION: u8 = 10;

/// Highest number of rounds over one text. Masking in one round may expose a secret that was not
/// found before, such as the last of tokens that touch. Usually there are two rounds, and the
/// second one finds nothing. In one run of characters, at most half as many tokens are tried
/// (`MAX_TRIES` in `scan.rs`).
const ROUNDS: usize = 64;

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

/// The number of masked secrets of each kind.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Counts(pub BTreeMap<String, u64>);

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
        let user = compile_user_rules(user_rules)?;
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
    pub(super) fn mask_telling<'t>(
        &self,
        text: &'t str,
        tell: &mut dyn FnMut(&str, &str),
    ) -> Cow<'t, str> {
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
