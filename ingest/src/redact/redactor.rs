//! Masks the secrets of a text: runs each rule at the places where one of its anchors occurs.

use std::borrow::Cow;
use std::collections::BTreeMap;

use regex::Regex;
use xxhash_rust::xxh3::Xxh3;

use super::anchors::Anchors;
use super::command_pairs::PAIR_COMMANDS;
use super::commands::{self, COMMANDS};
use super::encoded::{DECODING_COMMANDS, DecodedText, DecodingCommand, EncodedArgument};
use super::pattern::PrefixPattern;
use super::placeholder::MASK;
use super::printed::{FILTER_ANCHOR, PRINTING_COMMANDS};
use super::rules;
use super::scan::{Rank, SecretScan, SecretSpan};
use super::shapes::SHAPES;
use super::user_rule::{RuleError, UserRule, compile_user_rules};
use super::{
    ansible_vault, assign, bare_secrets, bitcoin_key, command_pairs, context, dialogue, encoded,
    env, kube_secret, nostr_key, pem, printed, seed_phrase, table_columns, web_key, written_key,
};

/// Revision of the built-in rules. It is raised when the code of `redact` masks other texts than
/// before. Stores are then re-read.
const REVISION: u8 = 14;

/// Maximum number of rounds over one text. Masking in one round may expose a secret that was not
/// found before, such as the last of tokens that touch. Usually there are two rounds, and the
/// second one finds nothing. In one run of characters, at most half as many tokens are tried
/// (`MAX_TRIES` in `scan.rs`).
const MAX_ROUNDS: usize = 64;

/// The rule that an anchor belongs to.
#[derive(Clone, Copy)]
enum Rule {
    /// The rule with this index in `SHAPES`.
    Shape(usize),
    /// The rule with this index in `COMMANDS`.
    Command(usize),
    /// The rule with this index in `PAIR_COMMANDS`.
    CommandPairs(usize),
    /// The rule with this index in `DECODING_COMMANDS`.
    EncodedArgument(usize),
    /// A command that prints nothing but a secret.
    PrintingCommand,
    /// A character that is written as a code.
    Encoded,
    Hexdump,
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
    CurlCookies,
    KubeSecret,
    TwiceEncodedAddress,
    EscapedAddress,
    TwiceEscapedAddress,
    CookieJar,
    EncodedKey,
    HexNumber,
    XmlKey,
    NostrKey,
}

/// Anchors of the other rules. Most of them match in upper and lower case.
#[rustfmt::skip]
const CONTEXTS: &[(&[&str], Rule)] = &[
    (&["secret", "token", "pass", "?key", "cred", "pwd=", "pwd:", "pwd\"", "pwd'", "pwd\\",
        "_pw=", "salt=", "_auth", "api key", "\"auth", "'auth", "_pat=", "_pat:", "_pat\"", "_key=",
        "psk=", "kennwort", "senha", "contraseña", "пароль", "hasło", "密码", "密碼", "パスワード",
        "비밀번호"], Rule::Assignment),
    (&["\\u00##", "\\x##", "%20?", "%22?", "%26?", "%3D?", "%3d?", "%3A?", "%3a?", "%4#%", "%5#%", "%6#%", "%7#%",
        "%253", "%252", "&quo", "&apo", "&amp", "&lt;", "&equ", "&col", "&*^^", "&*x#", "\" + \"", "' + '", "\"+\"?",
        "'+'?", "\" +\n", "' +\n", "\\\" + \\"], Rule::Encoded),
    (&["00000000: ##", "00000000  ##", "0000000 ##", "0000000  ##", "00000000   ##"], Rule::Hexdump),
    (&["?://"], Rule::Address),
    (&["authorization"], Rule::Authorization),
    (&["bearer "], Rule::Bearer),
    (&["basic "], Rule::Basic),
    (&["cookie"], Rule::Cookie),
    (&["BEGIN "], Rule::KeyBlock),
    (&["b3BlbnNzaC1r", "Private-Lines: "], Rule::KeyBody),
    (&["MII?", "MIG?", "MIH?", "MHcC", "MC4C", "MFEC"], Rule::KeyDer),
    (&["PRIVATE KEY"], Rule::KeyEnd),
    (&["BEGIN+", "BEGIN%20"], Rule::EncodedKey),
    (&["privateExponent:", "prime1:", "prime2:", "exponent1:", "exponent2:", "coefficient:", "priv:"],
        Rule::HexNumber),
    (&["<RSAKeyValue>"], Rule::XmlKey),
    (&["nsec1"], Rule::NostrKey),
    (&[":\\/\\/"], Rule::EscapedAddress),
    (&[":\\\\/\\\\/"], Rule::TwiceEscapedAddress),
    (&["\tTRUE\t/", "\tFALSE\t/"], Rule::CookieJar),
    (&["%3A%2F%2F"], Rule::EncodedAddress),
    (&["%253A%252F%252F"], Rule::TwiceEncodedAddress),
    (&["curl "], Rule::CurlCookies),
    (&["kind: Secret", "kind: \"Secret", "kind: 'Secret", "kind\": \"Secret", "kind\":\"Secret", "kind\\\": \\\"Secret",
        "kind\\\":\\\"Secret"], Rule::KubeSecret),
    (&["\"kty", "'kty"], Rule::WebKey),
    (&["send \"", "send \\\"", "send -- \"", "send -- \\\"", "sendline("], Rule::Dialogue),
    (&["$ANSIBLE_VAULT;"], Rule::AnsibleVault),
    (&["mnemonic", "seed phrase", "seed_phrase", "seedphrase", "seed-phrase", "seed words",
        "seed=", "seed:", "seed\"", "recovery phrase", "recovery_phrase", "recoveryphrase",
        "recovery words", "backup phrase", "secret phrase", "wallet seed"], Rule::SeedPhrase),
    (&["wif=", "wif:", "wif\"", "wif'", "wif ", "privkey", "private key", "private_key",
        "privatekey", "bitcoin"], Rule::BitcoinKey),
    // `-----BEGIN PRIVATE KEY` in base64, also with RSA, EC, DSA, OpenSSH and encrypted keys,
    // and `-----BEGIN EC PARAMETERS`.
    (
        &[
            "LS0tLS1CRUdJTiBQUklWQVRFIEtFWS",
            "LS0tLS1CRUdJTiBSU0EgUFJJVkFURSBLRVkt",
            "LS0tLS1CRUdJTiBFQyBQUklWQVRFIEtFWS",
            "LS0tLS1CRUdJTiBFQyBQQVJBTUVURVJT",
            "LS0tLS1CRUdJTiBEU0EgUFJJVkFURSBLRVkt",
            "LS0tLS1CRUdJTiBPUEVOU1NIIFBSSVZBVEUgS0VZ",
            "LS0tLS1CRUdJTiBFTkNSWVBURUQgUFJJVkFURSBLRV",
        ],
        Rule::KeyBody,
    ),
];

impl Rule {
    /// Returns whether the anchors of the rule match in upper and lower case.
    fn is_case_insensitive(self) -> bool {
        match self {
            Self::Assignment
            | Self::Address
            | Self::Authorization
            | Self::Bearer
            | Self::Basic
            | Self::Cookie
            | Self::EncodedAddress
            | Self::TwiceEncodedAddress
            | Self::SeedPhrase
            | Self::BitcoinKey => true,
            Self::Shape(_)
            | Self::Command(_)
            | Self::CommandPairs(_)
            | Self::EncodedArgument(_)
            | Self::PrintingCommand
            | Self::Encoded
            | Self::Hexdump
            | Self::CurlCookies
            | Self::CookieJar
            | Self::EscapedAddress
            | Self::TwiceEscapedAddress
            | Self::EncodedKey
            | Self::HexNumber
            | Self::XmlKey
            | Self::NostrKey
            | Self::KubeSecret
            | Self::KeyBlock
            | Self::KeyBody
            | Self::KeyDer
            | Self::KeyEnd
            | Self::WebKey
            | Self::Dialogue
            | Self::AnsibleVault => false,
        }
    }
}

/// The number of masked secrets of each kind.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SecretCounts(pub BTreeMap<String, u64>);

/// Finds and masks secrets. One redactor serves all threads.
pub struct Redactor {
    anchors: Anchors<Rule>,
    /// One pattern for each of `SHAPES`, in their order.
    shapes: Vec<PrefixPattern>,
    /// Name and regex of each rule of the user.
    user_rules: Vec<(String, Regex)>,
    version: u64,
}

impl Redactor {
    /// Compiles the built-in rules and those of the user, which run over every text as a whole.
    ///
    /// # Errors
    ///
    /// Returns an error if the name of a user's rule is not allowed, or if its regex cannot be
    /// compiled or matches the empty text.
    pub fn new(user_rules: &[UserRule]) -> Result<Self, RuleError> {
        Ok(Self {
            anchors: Anchors::new(collect_anchors()),
            shapes: SHAPES.iter().map(|shape| PrefixPattern::new(shape.regex)).collect(),
            user_rules: compile_user_rules(user_rules)?,
            version: hash_rules(user_rules),
        })
    }

    /// Returns a hash of the rules, which changes if the rules change.
    pub fn version(&self) -> u64 {
        self.version
    }

    /// Masks the secrets in `text` and adds them to `counts`. Masking a masked text changes
    /// nothing.
    pub fn mask<'t>(&self, text: &'t str, counts: &mut SecretCounts) -> Cow<'t, str> {
        self.mask_with(text, "", &mut |kind, _| {
            *counts.0.entry(kind.to_owned()).or_default() += 1;
        })
    }

    /// Masks the secrets in `text` and calls `on_secret` with the kind and the text of each secret.
    /// `printed_by` is the command whose output `text` is; empty if it is another text.
    pub(super) fn mask_with<'t>(
        &self,
        text: &'t str,
        printed_by: &str,
        on_secret: &mut dyn FnMut(&str, &str),
    ) -> Cow<'t, str> {
        let mut text = Cow::Borrowed(text);
        for _ in 0..MAX_ROUNDS {
            let spans = self.find_secrets(&text, printed_by);
            if spans.is_empty() {
                break;
            }
            let masked = replace_secrets(&text, &spans, on_secret);
            text = Cow::Owned(masked);
        }
        text
    }

    /// Returns the secrets of a text in their order.
    fn find_secrets(&self, text: &str, printed_by: &str) -> Vec<SecretSpan<'_>> {
        let mut scan = SecretScan::new(text);
        self.anchors
            .for_each_match(text.as_bytes(), |at, rule| self.apply_rule(&mut scan, at, rule));
        for at in encoded::wide_runs(text) {
            self.mask_decoded(&mut scan, encoded::decode_around, at);
        }
        env::mask_settings(&mut scan);
        bare_secrets::mask_bare_secrets(&mut scan);
        if !printed_by.is_empty() {
            printed::mask_output(&mut scan, printed_by, 0..text.len());
        }
        let mut user_spans = Vec::new();
        for (name, regex) in &self.user_rules {
            for found in regex.captures_iter(text) {
                if let Some(secret) = found.get(1).or_else(|| found.get(0))
                    && scan.may_mask(secret.start(), secret.end())
                {
                    let (start, end) = (secret.start(), secret.end());
                    user_spans.push(SecretSpan { start, end, kind: name, rank: Rank::User });
                }
            }
        }
        scan.finish(user_spans)
    }

    /// Masks the secrets of a text that `decode` decodes around `at`.
    fn mask_decoded(
        &self,
        scan: &mut SecretScan<'_>,
        decode: fn(&mut SecretScan<'_>, usize) -> Option<DecodedText>,
        at: usize,
    ) {
        let Some(decoded) = decode(scan, at) else { return };
        for span in self.find_by_anchors(&decoded.text) {
            if let Some((start, end)) = decoded.source_of(span.start, span.end) {
                scan.add_secret(start, end, span.kind, span.rank);
            }
        }
    }

    /// Masks the argument that the command at `at` decodes if it is or contains a secret.
    fn mask_encoded_argument(
        &self,
        scan: &mut SecretScan<'_>,
        at: usize,
        command: &DecodingCommand,
    ) {
        let Some(argument) = EncodedArgument::read(scan, at, command) else { return };
        let found = self.find_by_anchors(&argument.text);
        let kind = found.first().map(|span| span.kind);
        if let Some(kind) = kind.or_else(|| argument.is_secret().then_some("secret")) {
            scan.add_secret(argument.start, argument.end, kind, Rank::Around);
        }
    }

    /// Returns the secrets that the built-in rules with an anchor find in a decoded text.
    fn find_by_anchors(&self, text: &str) -> Vec<SecretSpan<'static>> {
        let mut scan = SecretScan::new(text);
        // What is decoded is not decoded again.
        scan.decoded_end = text.len();
        self.anchors
            .for_each_match(text.as_bytes(), |at, rule| self.apply_rule(&mut scan, at, rule));
        scan.finish(Vec::new())
    }

    /// Masks the secret that a rule finds at the place of its anchor.
    fn apply_rule(&self, scan: &mut SecretScan<'_>, at: usize, rule: Rule) {
        match rule {
            Rule::Shape(n) => {
                if let (Some(shape), Some(pattern)) = (SHAPES.get(n), self.shapes.get(n)) {
                    rules::mask_token(scan, at, shape, pattern);
                }
            }
            Rule::Command(n) => {
                if let Some(command) = COMMANDS.get(n) {
                    commands::mask_command_password(scan, at, command);
                }
            }
            Rule::CommandPairs(n) => {
                if let Some(command) = PAIR_COMMANDS.get(n) {
                    command_pairs::mask_pairs(scan, at, command);
                }
            }
            Rule::EncodedArgument(n) => {
                if let Some(command) = DECODING_COMMANDS.get(n) {
                    self.mask_encoded_argument(scan, at, command);
                }
            }
            Rule::PrintingCommand => printed::mask_output_below(scan, at),
            Rule::Encoded => self.mask_decoded(scan, encoded::decode_around, at),
            Rule::Hexdump => self.mask_decoded(scan, encoded::decode_dump, at),
            Rule::Assignment => {
                if let Some((start, end)) = assign::find_name(scan, at) {
                    table_columns::mask_columns(scan, start, end);
                    assign::mask_named_value(scan, start, end);
                }
            }
            Rule::Address => context::mask_address_password(scan, at + 1, "://"),
            Rule::EscapedAddress => context::mask_address_password(scan, at, r":\/\/"),
            Rule::TwiceEscapedAddress => context::mask_address_password(scan, at, r":\\/\\/"),
            Rule::CookieJar => context::mask_saved_cookie(scan, at),
            Rule::EncodedKey => pem::mask_encoded_key(scan, at),
            Rule::HexNumber => {
                let name_end = scan.skip_while(at, 20, |byte| byte != b':') + 1;
                written_key::mask_hex_number(scan, name_end);
            }
            Rule::XmlKey => written_key::mask_xml_key(scan, at),
            Rule::NostrKey => nostr_key::mask_nostr_key(scan, at),
            Rule::Authorization => context::mask_authorization(scan, at),
            Rule::Bearer => context::mask_bearer_token(scan, at),
            Rule::Basic => context::mask_basic_login(scan, at),
            Rule::Cookie => context::mask_cookies(scan, at),
            Rule::KeyBlock => pem::mask_key_block(scan, at),
            Rule::KeyBody => pem::mask_key_body(scan, at),
            Rule::KeyDer => pem::mask_der_key(scan, at),
            Rule::KeyEnd => pem::mask_key_above_end(scan, at),
            Rule::EncodedAddress => context::mask_encoded_password(scan, at, &context::ENCODED),
            Rule::TwiceEncodedAddress => {
                context::mask_encoded_password(scan, at, &context::TWICE_ENCODED);
            }
            Rule::CurlCookies => context::mask_curl_cookies(scan, at),
            Rule::KubeSecret => kube_secret::mask_manifest(scan, at),
            Rule::WebKey => web_key::mask_web_key(scan, at),
            Rule::Dialogue => dialogue::mask_typed_password(scan, at),
            Rule::AnsibleVault => ansible_vault::mask_vault_body(scan, at),
            Rule::SeedPhrase => seed_phrase::mask_seed_phrase(scan, at),
            Rule::BitcoinKey => bitcoin_key::mask_bitcoin_keys(scan, at),
        }
    }
}

/// Returns the anchors of all built-in rules, whether each matches in any case, and its rule.
fn collect_anchors() -> Vec<(&'static str, bool, Rule)> {
    let mut all = Vec::new();
    for (number, shape) in SHAPES.iter().enumerate() {
        for anchor in shape.anchors {
            all.push((*anchor, false, Rule::Shape(number)));
        }
    }
    for (number, command) in COMMANDS.iter().enumerate() {
        all.push((command.anchor, false, Rule::Command(number)));
    }
    for (number, command) in PAIR_COMMANDS.iter().enumerate() {
        all.push((command.anchor, false, Rule::CommandPairs(number)));
    }
    for (number, command) in DECODING_COMMANDS.iter().enumerate() {
        all.push((command.anchor, false, Rule::EncodedArgument(number)));
    }
    for command in &PRINTING_COMMANDS {
        all.push((command.anchor, false, Rule::PrintingCommand));
    }
    all.push((FILTER_ANCHOR, false, Rule::PrintingCommand));
    for (anchors, rule) in CONTEXTS {
        for anchor in *anchors {
            all.push((*anchor, rule.is_case_insensitive(), *rule));
        }
    }
    all
}

/// Returns the text with placeholders for its secrets, and calls `on_secret` with the kind and the
/// text of each of them.
fn replace_secrets(
    text: &str,
    spans: &[SecretSpan<'_>],
    on_secret: &mut dyn FnMut(&str, &str),
) -> String {
    let mut masked = String::with_capacity(text.len());
    let mut copied_end = 0;
    for span in spans {
        masked.push_str(text.get(copied_end..span.start).unwrap_or_default());
        masked.push_str(MASK);
        masked.push_str(span.kind);
        masked.push(']');
        copied_end = span.end;
        on_secret(span.kind, text.get(span.start..span.end).unwrap_or_default());
    }
    masked.push_str(text.get(copied_end..).unwrap_or_default());
    masked
}

/// Returns a hash of the built-in rules and those of the user.
pub(crate) fn hash_rules(user_rules: &[UserRule]) -> u64 {
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
