//! Decides which names announce a secret value: `DB_PASSWORD`, `apiKey`, `x-auth-token`.

use super::pattern::ends_with_any;

/// How strongly a name announces a secret. The stronger it does, the less its value has to look
/// like one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Strength {
    /// A password: short values count when they are mixed.
    Password,
    /// A secret or a key: long random values count.
    Secret,
    /// A weak hint: only values that look random count, and only those of settings and variables.
    Weak,
}

/// Last words of a name that distinguish several values of one kind.
#[rustfmt::skip]
const DISTINCTIONS: &[&str] = &[
    "live", "test", "prod", "production", "dev", "staging", "stage", "local", "value", "string",
    "str", "plain", "raw", "text", "base64", "b64", "default", "new", "old", "current", "v1", "v2",
    "admin", "root", "prd", "stg", "eu", "us", "bedrock",
];

/// Names of passwords that are not written in ASCII.
pub(super) const FOREIGN: &[&str] =
    &["contraseña", "пароль", "hasło", "密码", "密碼", "パスワード", "비밀번호"];

/// Ends of the names of passwords.
#[rustfmt::skip]
const PASSWORDS: &[&str] = &[
    "password", "passwd", "passphrase", "passcode", "pwd", "passwort", "kennwort", "senha", "passe",
    "dbpass", "pgpass", "sshpass", "userpass", "psk",
];

/// Names of secret keys without the separators of their words, and the kind of each. The first one
/// that fits is used.
#[rustfmt::skip]
const KEYS: &[(&str, &str)] = &[
    ("secretaccesskey", "aws_secret_key"), ("apikey", "api_key"), ("accesskey", "api_key"),
    ("appkey", "api_key"), ("applicationkey", "api_key"), ("privatekey", "private_key"),
    ("privkey", "private_key"), ("secretkey", "secret_key"), ("authkey", "secret_key"),
    ("signingkey", "secret_key"), ("signkey", "secret_key"), ("encryptionkey", "secret_key"),
    ("encryptkey", "secret_key"), ("masterkey", "secret_key"), ("rolekey", "secret_key"),
    ("servicekey", "secret_key"), ("accountkey", "secret_key"), ("storagekey", "secret_key"),
    ("sharedkey", "secret_key"), ("licensekey", "secret_key"), ("adminkey", "secret_key"),
    ("hmackey", "secret_key"), ("aeskey", "secret_key"), ("cryptokey", "secret_key"),
    ("subscriptionkey", "secret_key"), ("functionskey", "secret_key"), ("jwtkey", "secret_key"),
    ("webhookkey", "secret_key"), ("sessionkey", "secret_key"), ("deploykey", "secret_key"),
    ("ingestionkey", "secret_key"), ("secretkeybase", "secret_key"),
];

/// Words before `key` that make it something else.
#[rustfmt::skip]
const OTHER_KEYS: &[&str] = &[
    "primary", "foreign", "sort", "partition", "cache", "hash", "range", "index", "row", "unique",
    "composite", "group", "i18n", "query", "storage", "lookup", "object", "map", "dict", "json",
    "config", "session", "arrow", "enter", "hot", "short", "locale", "message", "translation",
    "idempotency", "registry", "lock", "event", "project", "issue", "dedupe", "routing", "gpg",
    "build", "host", "known",
];

/// Words before `token` that make it something else.
#[rustfmt::skip]
const OTHER_TOKENS: &[&str] = &[
    "max", "min", "num", "total", "page", "next", "continuation", "cursor", "sync", "cancel",
    "cancellation", "stop", "eos", "bos", "pad", "unk", "mask", "special", "input", "output",
    "color", "design", "start", "end", "resume", "request", "idempotency", "pagination", "starting",
    "scroll", "watch", "lock", "opaquelock", "lease",
];

/// Services whose secrets have no shape of their own and are recognized by the name of the value.
#[rustfmt::skip]
const SERVICES: &[(&str, &str)] = &[
    ("aws", "aws_secret_key"), ("heroku", "heroku_key"), ("datadog", "datadog_key"),
    ("cloudflare", "cloudflare_token"), ("vercel", "vercel_token"), ("netlify", "netlify_token"),
    ("twilio", "twilio_key"), ("airtable", "airtable_token"), ("mailgun", "mailgun_key"),
    ("algolia", "algolia_key"), ("discord", "discord_token"), ("azure", "azure_secret"),
    ("okta", "okta_token"), ("pagerduty", "pagerduty_key"), ("deepgram", "deepgram_key"),
    ("mistral", "mistral_key"), ("cohere", "cohere_key"), ("wandb", "wandb_key"),
    ("vault", "vault_token"), ("newrelic", "newrelic_key"), ("circle", "circleci_token"),
    ("fastly", "fastly_key"),
];

/// The kinds of secrets that names announce.
#[rustfmt::skip]
pub(super) const SECRET_KINDS: &[&str] = &[
    "password", "secret", "token", "key", "credential", "salt", "basic_auth", "client_secret", "api_key",
    "secret_key", "private_key", "aws_secret_key", "heroku_key", "datadog_key", "cloudflare_token",
    "vercel_token", "netlify_token", "twilio_key", "airtable_token", "mailgun_key", "algolia_key",
    "discord_token", "azure_secret", "okta_token", "pagerduty_key", "deepgram_key", "mistral_key",
    "cohere_key", "wandb_key", "vault_token", "newrelic_key", "circleci_token", "fastly_key",
];

/// Returns the kind of secret that `name` announces and how strongly, or `None` if it announces
/// none.
pub(super) fn announced_secret(name: &str) -> Option<(&'static str, Strength)> {
    if FOREIGN.contains(&name) {
        return Some(("password", Strength::Password));
    }
    let words = kind_words(name);
    if words.iter().any(|word| matches!(word.as_str(), "public" | "publishable" | "pub")) {
        return None;
    }
    let joined = words.concat();
    let joined = without_number(&joined);
    let last = without_number(words.last()?);
    let before = words.iter().rev().nth(1).map_or("", String::as_str);
    let first = words.first().map_or("", String::as_str);

    if ends_with_any(last, PASSWORDS) || (matches!(last, "pass" | "pw") && !before.is_empty()) {
        return Some(("password", Strength::Password));
    }
    if joined.ends_with("clientsecret") {
        return Some((service_kind(first, joined, "client_secret"), Strength::Secret));
    }
    if ends_with_any(last, &["secret", "secrets"]) {
        return Some((service_kind(first, joined, "secret"), Strength::Secret));
    }
    if let Some(&(_, kind)) = KEYS.iter().find(|(key, _)| joined.ends_with(key)) {
        return Some((service_kind(first, joined, kind), Strength::Secret));
    }
    if let Some(start) = last.strip_suffix("token") {
        if OTHER_TOKENS.contains(&start) || OTHER_TOKENS.contains(&before) {
            return None;
        }
        return Some((service_kind(first, joined, "token"), Strength::Secret));
    }
    match last {
        "credential" | "credentials" | "cred" | "creds" => Some(("credential", Strength::Secret)),
        "pat" if !before.is_empty() => {
            Some((service_kind(first, joined, "token"), Strength::Secret))
        }
        "auth" => Some(("basic_auth", Strength::Weak)),
        "salt" => Some(("salt", Strength::Weak)),
        "key" if !before.is_empty() && !OTHER_KEYS.contains(&before) => {
            Some((service_kind(first, joined, "key"), Strength::Weak))
        }
        _ => None,
    }
}

/// Returns the words of a name without the last ones that only distinguish several values of one
/// kind. At least one word stays.
fn kind_words(name: &str) -> Vec<String> {
    let mut words = split_words(name);
    while words.len() > 1 && words.last().is_some_and(|word| is_distinction(word)) {
        words.pop();
    }
    words
}

/// Returns whether a word distinguishes several values of one kind: `prod`, `2`.
fn is_distinction(word: &str) -> bool {
    DISTINCTIONS.contains(&word) || word.bytes().all(|byte| byte.is_ascii_digit())
}

/// Returns the kind of the service that a name mentions, or `otherwise` if it mentions none. `first`
/// is the first word of the name, and `joined` are all its words.
fn service_kind(first: &str, joined: &str, otherwise: &'static str) -> &'static str {
    match first {
        "dd" => return "datadog_key",
        "cf" => return "cloudflare_token",
        _ => {}
    }
    let service = SERVICES.iter().find(|(service, _)| joined.contains(service));
    service.map_or(otherwise, |(_, kind)| *kind)
}

/// Returns a word without the digits at its end.
fn without_number(word: &str) -> &str {
    word.trim_end_matches(|c: char| c.is_ascii_digit())
}

/// Splits a name into words in lower case: `AWSSecret_key2` is `aws`, `secret`, `key2`.
fn split_words(name: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word = String::new();
    let mut previous = '_';
    let mut rest = name.chars().peekable();
    while let Some(c) = rest.next() {
        let is_before_lower = rest.peek().is_some_and(char::is_ascii_lowercase);
        let is_word_start = c.is_ascii_uppercase()
            && (!previous.is_ascii_uppercase() || is_before_lower)
            && !matches!(previous, '_' | ' ');
        let is_separator = matches!(c, '_' | '-' | ' ');
        if (is_word_start || is_separator) && !word.is_empty() {
            words.push(std::mem::take(&mut word));
        }
        if !is_separator {
            word.push(c.to_ascii_lowercase());
        }
        previous = c;
    }
    if !word.is_empty() {
        words.push(word);
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_fall_into_words() {
        assert_eq!(split_words("AWSSecret_key2"), ["aws", "secret", "key2"]);
        assert_eq!(split_words("x-apiKey"), ["x", "api", "key"]);
        assert_eq!(split_words("_authToken"), ["auth", "token"]);
        assert_eq!(split_words("DB_PASSWORD"), ["db", "password"]);
    }

    #[test]
    fn secrets_are_known_by_their_names() {
        let kind = |name| announced_secret(name).map(|(kind, _)| kind);
        assert_eq!(kind("DB_PASSWORD_PROD"), Some("password"));
        assert_eq!(kind("smtpPass"), Some("password"));
        assert_eq!(kind("oauth2ClientSecret"), Some("client_secret"));
        assert_eq!(kind("OPENAI_APIKEY"), Some("api_key"));
        assert_eq!(kind("DD-API-KEY"), Some("datadog_key"));
        assert_eq!(kind("CLOUDFLARE_API_TOKEN"), Some("cloudflare_token"));
        assert_eq!(kind("access_token2"), Some("token"));
    }

    #[test]
    fn the_kinds_of_all_names_are_listed() {
        for (name, kind) in KEYS.iter().chain(SERVICES) {
            assert!(SECRET_KINDS.contains(kind), "{name}");
        }
    }

    #[test]
    fn other_names_are_none() {
        let names = [
            "max_tokens",
            "nextPageToken",
            "eos_token",
            "token_type",
            "primary_key",
            "cacheKey",
            "public_key",
            "STRIPE_PUBLISHABLE_KEY",
            "PASS",
            "secretName",
            "passwordField",
        ];
        for name in names {
            assert_eq!(announced_secret(name), None, "{name}");
        }
    }
}
