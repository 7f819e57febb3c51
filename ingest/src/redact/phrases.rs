//! Decides whether a value is a word of a sentence or of code about secrets instead of a secret, and
//! whether it is a passphrase of several words.

use super::entropy::is_signed;
use super::names::Strength;
use super::pattern::WordList;

/// Words of methods and formats that sentences about secrets name instead of a secret.
static METHODS: WordList = WordList::new(&[
    "sha1",
    "sha2",
    "sha5",
    "md5",
    "pbkdf",
    "bcrypt",
    "scrypt",
    "argon",
    "aes1",
    "aes2",
    "hmac",
    "wpa",
    "bip39",
    "pkcs",
    "utf8",
    "base64",
    "varchar",
    "1password",
    "character",
    "x509",
    "rsa",
]);

/// Returns whether a word belongs to a sentence about secrets: a method, or the name of a thing in
/// a cluster.
pub(super) fn is_of_sentence(word: &str) -> bool {
    let is_slug = word.contains('-') && !word.bytes().any(|byte| byte.is_ascii_uppercase());
    is_slug || is_mail(word) || has_method_name(word)
}

/// Returns whether a word is a mail address: `mira2@harbor.example`.
fn is_mail(word: &str) -> bool {
    let Some((user, host)) = word.split_once('@') else { return false };
    host.contains('.') && user.bytes().chain(host.bytes()).all(is_mail_byte)
}

fn is_mail_byte(byte: u8) -> bool {
    byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'.' | b'-' | b'_')
}

/// Returns whether a value names a secret but is not one: `password: Argon2idHash`, `TOKEN=token`,
/// and in code `password: password_field_2`.
pub(super) fn is_name_of_secret(
    value: &str,
    name: &str,
    strength: Strength,
    in_code: bool,
) -> bool {
    if value.eq_ignore_ascii_case(name) {
        return true;
    }
    strength == Strength::Password
        && !is_signed(value)
        && (has_method_name(value) || in_code && has_password_name(value))
}

/// Returns whether a word contains the name of a method of making or storing secrets.
fn has_method_name(word: &str) -> bool {
    METHODS.any_in(&word.to_ascii_lowercase())
}

/// Returns whether a word contains a name for passwords.
fn has_password_name(word: &str) -> bool {
    let lower = word.to_ascii_lowercase();
    ["password", "passwd", "pwd_"].iter().any(|name| lower.contains(name))
}

/// Words of sentences that show a hint to users. Passphrases that people draw from a list have none.
#[rustfmt::skip]
const SENTENCE_WORDS: &[&str] = &[
    "the", "your", "you", "for", "and", "must", "from", "with", "this", "that", "enter", "not", "are",
    "least", "has", "have", "will", "when", "use", "used", "can", "key", "passphrase", "password",
    "file", "new", "confirm", "repeat", "type", "same", "which", "should", "please", "invalid", "wrong",
    "secret", "phrase", "words", "here", "some", "any", "all", "but", "set", "get",
];

/// Numbers of words in a passphrase.
const PHRASE_WORDS: std::ops::RangeInclusive<usize> = 4..=12;

/// Returns whether a value is a passphrase of several words as people draw them from a list:
/// `correct horse battery staple`.
pub(super) fn is_word_phrase(value: &str) -> bool {
    let words: Vec<&str> = value.split(' ').collect();
    let is_drawn = |word: &&str| {
        let is_number = word.bytes().all(|byte| byte.is_ascii_digit());
        let is_word = word.len() >= 3 && word.bytes().all(|byte| byte.is_ascii_lowercase());
        !word.is_empty() && (is_number || is_word) && !SENTENCE_WORDS.contains(word)
    };
    PHRASE_WORDS.contains(&words.len())
        && words.iter().all(is_drawn)
        && words.iter().filter(|word| word.len() >= 3).count() >= *PHRASE_WORDS.start()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passphrases_are_drawn_words() {
        assert!(is_word_phrase("copper otter lantern gravel 9"));
        assert!(!is_word_phrase("copper otter lantern"));
        assert!(!is_word_phrase("enter the passphrase here"));
        assert!(!is_word_phrase("Copper otter lantern gravel"));
    }
}
