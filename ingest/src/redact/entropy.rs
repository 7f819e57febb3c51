//! Decides whether a value looks like a secret: random instead of made of words, and neither a
//! placeholder nor the name of something.
//!
//! The entropy of letters says little about values of twenty characters. Neighbouring characters
//! separate random values from names: words consist of a few pairs of letters, while random text
//! has all pairs and puts digits between them.

use super::pattern::{WordList, ends_with_any};

/// For each letter, the letters that often follow it. These 200 pairs make up nine tenths of words
/// and names, and three tenths of random letters.
const FOLLOWING: [&[u8]; 26] = [
    b"bcdgiklmnprstuvy",
    b"aeijlouy",
    b"aehiklortu",
    b"adeiou",
    b"acdefjlmnpqrstvx",
    b"aefioru",
    b"eis",
    b"aeiotu",
    b"abcdefglmnoprstvx",
    b"s",
    b"e",
    b"adefilostuy",
    b"aeimopy",
    b"acdefginostu",
    b"bcdflmnoprstuvw",
    b"aeiloprstu",
    b"u",
    b"acegilmnorstuy",
    b"acehiopstuy",
    b"aehioprstuy",
    b"beilmnprst",
    b"ae",
    b"ahi",
    b"t",
    b"p",
    b"",
];

/// Words that mark a token of any length as made up. Those of four characters count only if the
/// rest of the token is not random, because they occur in random tokens as well.
const MADE_UP: &[&str] = &[
    "xxxx",
    "XXXX",
    "....",
    "****",
    "____",
    "----",
    "your",
    "YOUR",
    "example",
    "EXAMPLE",
    "placeholder",
    "PLACEHOLDER",
    "redacted",
    "REDACTED",
    "dummy",
    "DUMMY",
    "sample",
    "SAMPLE",
];

/// Length in bytes of the words of [`MADE_UP`] that also occur in random tokens.
const CHANCE_WORD_BYTES: usize = 4;

/// All of [`MADE_UP`] in one pass. Few values contain one, and only then each word is searched.
static ANY_MADE_UP: WordList = WordList::new(MADE_UP);

/// Words, in lower case, that mark a short value as made up. In long values they occur by chance.
static FILLERS: WordList = WordList::new(&[
    "xxx",
    "your",
    "placeholder",
    "change",
    "insert",
    "replace",
    "todo",
    "fixme",
    "fake",
    "mock",
    "foobar",
    "goes",
    "here",
]);

/// Values that are not secrets, in lower case and without the digits at their end.
#[rustfmt::skip]
const COMMON: &[&str] = &[
    "password", "passwd", "pass", "pwd", "pw", "secret", "token", "key", "user", "username",
    "admin", "root", "guest", "test", "testing", "postgres", "mysql", "mongo", "redis",
    "rabbitmq", "none", "null", "nil", "undefined", "true", "false", "yes", "no", "string", "str",
    "value", "empty", "required", "optional", "x-oauth-basic", "mypassword", "mysecretpassword",
    "mysecret", "foo", "bar", "baz", "abc", "local", "development", "secretpassword", "testpass",
    "testpassword", "p4ssw0rd", "letmein", "devpass", "example", "p@ssw0rd",
];

/// Marks of a placeholder in a template, and of a shortened value.
static HOLES: WordList = WordList::new(&[
    "<",
    ">",
    "${",
    "$(",
    "{{",
    "}}",
    "#{",
    "%(",
    "%s",
    "[REDACTED",
    "...",
    "***",
    "…",
]);

/// Beginnings of values that name a thing or a place.
#[rustfmt::skip]
const NAMING_PREFIXES: &[&str] = &[
    "sha1-", "sha1:", "sha256-", "sha256:", "sha384-", "sha384:", "sha512-", "sha512:", "arn:",
    "data:", "urn:", "projects/", "op://", "vault:",
];

/// File extensions: a value that ends with one is the name of a file.
#[rustfmt::skip]
const FILE_EXTENSIONS: &[&str] = &[
    ".pem", ".key", ".json", ".crt", ".txt", ".yaml", ".yml", ".toml", ".env", ".rs", ".py",
    ".ts", ".js", ".go",
];

/// Minimum length in bytes of a random value in which words may occur by chance.
const MIN_LONG_BYTES: usize = 24;

/// [`FOLLOWING`] with one bit for each pair.
const PAIRS: [u32; 26] = {
    let mut pairs = [0; 26];
    let mut first = 0;
    while first < pairs.len() {
        let mut at = 0;
        while at < FOLLOWING[first].len() {
            pairs[first] |= 1 << (FOLLOWING[first][at] - b'a');
            at += 1;
        }
        first += 1;
    }
    pairs
};

/// Numbers of the pairs of neighbouring letters and digits in a value.
struct Neighbours {
    /// Pairs that words do not have: a letter next to a digit, or a rare pair of letters.
    odd: usize,
    /// Pairs that words have.
    plain: usize,
}

impl Neighbours {
    /// Counts the pairs in a value. A pair of digits is neither odd nor plain.
    fn count(value: &str) -> Self {
        let mut neighbours = Self { odd: 0, plain: 0 };
        for pair in value.as_bytes().windows(2) {
            let [a, b] = *pair else { continue };
            if !a.is_ascii_alphanumeric() || !b.is_ascii_alphanumeric() {
                continue;
            }
            match usize::from(a.is_ascii_digit()) + usize::from(b.is_ascii_digit()) {
                2 => {}
                0 if is_frequent(a | 0x20, b | 0x20) => neighbours.plain += 1,
                _ => neighbours.odd += 1,
            }
        }
        neighbours
    }

    /// Returns whether at least this percentage of the pairs is odd.
    fn has_odd_share(&self, percent: usize) -> bool {
        self.odd * 100 >= percent * (self.odd + self.plain)
    }
}

/// Returns whether a pair of lower-case letters is frequent in words.
fn is_frequent(a: u8, b: u8) -> bool {
    let row = PAIRS.get(usize::from(a.wrapping_sub(b'a')));
    row.is_some_and(|row| (row >> (b.wrapping_sub(b'a') & 31)) & 1 == 1)
}

/// Returns whether `value` looks as if it was drawn at random. Of random strings of twenty or more
/// characters, at worst one in thirty fails (hexadecimal ones). Of names, under two in a hundred
/// pass.
pub(super) fn is_random(value: &str) -> bool {
    let length = value.len();
    let has_digit = value.bytes().any(|byte| byte.is_ascii_digit());
    let has_letter = value.bytes().any(|byte| byte.is_ascii_alphabetic());
    if length < 12 || !has_letter || count_distinct_bytes(value) < 7 || (!has_digit && length < 20)
    {
        return false;
    }
    let neighbours = Neighbours::count(value);
    let percent = if length < 16 {
        60
    } else if has_digit {
        45
    } else {
        55
    };
    neighbours.odd >= 5 && neighbours.has_odd_share(percent)
}

/// Returns whether a short value mixes its characters as a good password does. A quoted value needs
/// fewer kinds of characters, because it is not a name of a program.
pub(super) fn is_mixed(value: &str, is_quoted: bool) -> bool {
    let has_lower = value.bytes().any(|byte| byte.is_ascii_lowercase());
    let has_upper = value.bytes().any(|byte| byte.is_ascii_uppercase());
    let has_digit = value.bytes().any(|byte| byte.is_ascii_digit());
    let has_other = value.bytes().any(|byte| !byte.is_ascii_alphanumeric());
    if !has_digit || !(has_lower || has_upper) {
        return false;
    }
    let kinds = usize::from(has_lower) + usize::from(has_upper) + 1 + usize::from(has_other);
    let neighbours = Neighbours::count(value);
    if kinds >= 3 && (is_quoted || (neighbours.odd >= 3 && neighbours.has_odd_share(35))) {
        return true;
    }
    neighbours.odd >= 4 && neighbours.has_odd_share(45)
}

/// Returns whether a value of eight or more characters is a word with a sign and digits, as people
/// make passwords: `Gravel@9981harbor`. Names in programs have none of these signs.
pub(super) fn is_signed(value: &str) -> bool {
    value.len() >= 8
        && value.bytes().any(|byte| byte.is_ascii_alphabetic())
        && value.bytes().any(|byte| byte.is_ascii_digit())
        && value.bytes().any(is_password_sign)
}

/// Returns whether a byte is a sign that people put into passwords and names do not have.
pub(super) fn is_password_sign(byte: u8) -> bool {
    b"!@#%^&*+?~$".contains(&byte)
}

/// Returns whether a value of eight or more characters is a word and a number: `tundra109`,
/// `sunflower42`.
pub(super) fn is_numbered(value: &str) -> bool {
    let digits = value.bytes().filter(u8::is_ascii_digit).count();
    let letters = value.bytes().filter(u8::is_ascii_alphabetic).count();
    let at_end = value.len() - value.trim_end_matches(|c: char| c.is_ascii_digit()).len();
    value.len() >= 8
        && (digits >= 3 || at_end == 2)
        && letters >= 4
        && digits + letters == value.len()
}

/// Returns whether at least two pairs of neighbours are not those of words.
pub(super) fn is_odd(value: &str) -> bool {
    Neighbours::count(value).odd >= 2
}

/// Returns whether a value in the shape of a token was made up: `xxxx`, `1234567890abcdef`.
pub(super) fn is_made_up(value: &str) -> bool {
    count_distinct_bytes(value) < value.len().min(6)
        || has_made_up_word(value)
        || is_sequence(value.as_bytes())
}

/// Returns whether a value contains one of [`MADE_UP`] that is not there by chance.
fn has_made_up_word(value: &str) -> bool {
    if !ANY_MADE_UP.any_in(value) {
        return false;
    }
    // See [`MADE_UP`]: four characters also occur by chance.
    MADE_UP.iter().any(|word| {
        let may_be_chance = word.len() == CHANCE_WORD_BYTES;
        value.contains(word) && !(may_be_chance && is_random(&value.replace(word, "")))
    })
}

/// Returns whether a value is only a placeholder: a variable, a gap in a template, `your-key`,
/// `********`.
pub(super) fn is_placeholder(value: &str) -> bool {
    if value.starts_with(['{', '(', '[', '<']) || is_reference(value) || HOLES.any_in(value) {
        return true;
    }
    let lower = value.to_ascii_lowercase();
    let word = lower.trim_matches(['_', '-']);
    let stem = word.trim_end_matches(|c: char| c.is_ascii_digit() || c == '!');
    if (COMMON.contains(&stem) && word.len() - stem.len() <= 5)
        || (value.len() < MIN_LONG_BYTES && FILLERS.any_in(&lower))
    {
        return true;
    }
    if value.len() >= 8 {
        is_made_up(value)
    } else {
        count_distinct_bytes(value) < value.len().min(3)
    }
}

/// Returns whether a value only refers to another one: `$NAME`, `%NAME%`, `@name`, `*anchor`.
fn is_reference(value: &str) -> bool {
    let Some(name) = value.strip_prefix(['$', '%', '@', '*', '&']) else { return false };
    name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-.:/$%{}()[]".contains(&byte))
}

/// Returns whether a value names something: a file, an address, a digest or a date.
pub(super) fn is_name(value: &str) -> bool {
    is_path(value)
        || is_date(value)
        || is_address(value)
        || NAMING_PREFIXES.iter().any(|start| value.starts_with(start))
}

/// Returns whether a value begins with a date: `2026-10-14T09:12:31Z`.
fn is_date(value: &str) -> bool {
    let Some(date) = value.as_bytes().first_chunk::<10>() else { return false };
    date.iter().zip(b"0000-00-00").all(|(byte, want)| match want {
        b'0' => byte.is_ascii_digit(),
        _ => byte == want,
    })
}

/// Returns whether a value is an address: `0x7f3ac9e4d2b6` in memory, or one of a blockchain.
fn is_address(value: &str) -> bool {
    let Some(hex) = value.strip_prefix("0x") else { return false };
    // Addresses of a blockchain have 40 digits, private keys have 64.
    (hex.len() <= 16 || hex.len() == 40) && hex.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// Returns whether a value is a path, the name of a file or a URL.
pub(super) fn is_path(value: &str) -> bool {
    // A secret key of AWS may begin with a slash.
    if value.len() == 40 && value.bytes().all(is_base64_digit) {
        return false;
    }
    ["/", "./", "../", "~/"].iter().any(|start| value.starts_with(start))
        || value.contains("://")
        || value.get(1..3) == Some(":\\")
        || ends_with_any(value, FILE_EXTENSIONS)
}

fn is_base64_digit(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/')
}

/// Returns whether a value is a field in a program: `settings.database.primary1`.
pub(super) fn is_field(value: &str) -> bool {
    value.contains('.') && value.split('.').all(is_field_part)
}

fn is_field_part(part: &str) -> bool {
    let name = part.strip_suffix(|c: char| c.is_ascii_digit()).unwrap_or(part);
    !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphabetic() || byte == b'_')
}

/// Counts the different bytes.
fn count_distinct_bytes(value: &str) -> usize {
    let mut seen = [0_u64; 4];
    for byte in value.bytes() {
        seen[usize::from(byte >> 6)] |= 1 << (byte & 63);
    }
    seen.iter().map(|word| word.count_ones() as usize).sum()
}

/// Returns whether most bytes equal or follow the byte one or two places before: `abcd1234`,
/// `1a2b3c4d`, `aaaa`.
fn is_sequence(value: &[u8]) -> bool {
    value.len() >= 8
        && (count_steps(value, 1) * 2 >= value.len() - 1
            || count_steps(value, 2) * 5 >= (value.len() - 2) * 3)
}

/// Counts the bytes that equal or follow the byte `distance` places before.
fn count_steps(value: &[u8], distance: usize) -> usize {
    let later = value.iter().skip(distance);
    value.iter().zip(later).filter(|(a, b)| b.wrapping_sub(**a) <= 1).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn random_values_are_told_from_names() {
        for random in ["c0ffee5eed0ddba11f00d1de", "zq7Xh4vR0bTrM1w4K3yG", "qzxvkjwqphgdfwbzmktx"] {
            assert!(is_random(random), "{random}");
        }
        for name in
            ["my-service-token-2024-prod", "getUserAccessTokenFromStore2", "1234567890123456"]
        {
            assert!(!is_random(name), "{name}");
        }
    }

    #[test]
    fn passwords_are_words_with_signs_and_numbers() {
        assert!(is_signed("Gravel@9981harbor") && is_signed("pickle%4598"));
        assert!(!is_signed("getPassword2_new") && !is_signed("a@1") && !is_signed("mira@harbor"));
        assert!(is_numbered("tundra109"));
        assert!(!is_numbered("argon2id") && !is_numbered("field_200") && !is_numbered("20261014"));
    }

    #[test]
    fn what_stands_for_a_value_is_none() {
        for value in
            ["$TOKEN", "<key>", "{{ x }}", "password1", "your-key-1", "********", "abcdefgh1234"]
        {
            assert!(is_placeholder(value), "{value}");
        }
        assert!(!is_placeholder("lantern-Q7"));
    }

    #[test]
    fn names_of_things_are_known() {
        for value in ["/etc/key", "sha256:00", "2026-10-14T00", "0x7f3a", "server.pem"] {
            assert!(is_name(value), "{value}");
        }
        assert!(!is_name("2026-10"));
        assert!(is_field("a.b2.c") && !is_field("a.b22") && !is_field("a"));
    }
}
