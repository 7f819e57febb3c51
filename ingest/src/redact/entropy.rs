//! Decides whether a value looks like a secret: random instead of made of words, and neither a
//! placeholder nor the name of something.
//!
//! The entropy of letters says little about values of twenty characters. Neighbouring characters
//! separate random values from names: words consist of a few pairs of letters, while random text
//! has all pairs and puts digits between them.

use super::words::Words;

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

/// All of [`MADE_UP`] in one pass. Few values contain one, and only then each word is searched.
static ANY_MADE_UP: Words = Words::new(MADE_UP);

/// Words, in lower case, that mark a short value as made up. In long values they occur by chance.
static FILLERS: Words = Words::new(&[
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
static HOLES: Words = Words::new(&[
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
const NAMING: &[&str] = &[
    "sha1-", "sha1:", "sha256-", "sha256:", "sha384-", "sha384:", "sha512-", "sha512:", "arn:",
    "data:", "urn:", "projects/", "op://", "vault:",
];

/// File extensions: a value that ends with one is the name of a file.
#[rustfmt::skip]
const FILES: &[&str] = &[
    ".pem", ".key", ".json", ".crt", ".txt", ".yaml", ".yml", ".toml", ".env", ".rs", ".py",
    ".ts", ".js", ".go",
];

/// From this length in bytes on, words occur in random values by chance.
const LONG: usize = 24;

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

/// Counts the neighbours that words do not have (a letter next to a digit, a rare pair of letters)
/// and the neighbours that words have.
fn neighbours(value: &str) -> (usize, usize) {
    let (mut odd, mut plain) = (0, 0);
    for pair in value.as_bytes().windows(2) {
        let [a, b] = *pair else { continue };
        if !a.is_ascii_alphanumeric() || !b.is_ascii_alphanumeric() {
            continue;
        }
        match (a.is_ascii_digit(), b.is_ascii_digit()) {
            (true, true) => {}
            (false, false) if is_frequent(a | 0x20, b | 0x20) => plain += 1,
            _ => odd += 1,
        }
    }
    (odd, plain)
}

fn is_frequent(a: u8, b: u8) -> bool {
    let row = PAIRS.get(usize::from(a.wrapping_sub(b'a')));
    row.is_some_and(|row| (row >> (b.wrapping_sub(b'a') & 31)) & 1 == 1)
}

/// Whether `value` looks as if it was drawn at random. Of random strings of twenty or more
/// characters, at worst one in thirty fails (hexadecimal ones). Of names, under two in a hundred
/// pass.
pub(super) fn is_random(value: &str) -> bool {
    let length = value.len();
    let digits = value.bytes().any(|byte| byte.is_ascii_digit());
    let letters = value.bytes().any(|byte| byte.is_ascii_alphabetic());
    if length < 12 || !letters || distinct(value) < 7 || (!digits && length < 20) {
        return false;
    }
    let (odd, plain) = neighbours(value);
    let percent = match (length, digits) {
        (..16, _) => 60,
        (_, true) => 45,
        (_, false) => 55,
    };
    odd >= 5 && odd * 100 >= percent * (odd + plain)
}

/// Whether a short value mixes its characters as a good password does. A quoted value needs fewer
/// kinds of characters, because it is not a name of a program.
pub(super) fn is_mixed(value: &str, quoted: bool) -> bool {
    let lower = value.bytes().any(|byte| byte.is_ascii_lowercase());
    let upper = value.bytes().any(|byte| byte.is_ascii_uppercase());
    let digits = value.bytes().any(|byte| byte.is_ascii_digit());
    let other = value.bytes().any(|byte| !byte.is_ascii_alphanumeric());
    if !digits || !(lower || upper) {
        return false;
    }
    let (odd, plain) = neighbours(value);
    let shares = |percent: usize| odd * 100 >= percent * (odd + plain);
    let classes = usize::from(lower) + usize::from(upper) + 1 + usize::from(other);
    classes >= 3 && (quoted || (odd >= 3 && shares(35))) || (odd >= 4 && shares(45))
}

/// Whether a value of eight or more characters is a word with a sign and digits, as people make
/// passwords: `Gravel@9981harbor`. Names in programs have none of these signs.
pub(super) fn is_signed(value: &str) -> bool {
    let has = |fits: fn(&u8) -> bool| value.bytes().any(|byte| fits(&byte));
    let is_sign = |byte: &u8| b"!@#%^&*+?~$".contains(byte);
    value.len() >= 8 && has(u8::is_ascii_alphabetic) && has(u8::is_ascii_digit) && has(is_sign)
}

/// Whether a value of eight or more characters is a word and a number: `tundra109`, `sunflower42`.
pub(super) fn is_numbered(value: &str) -> bool {
    let digits = value.bytes().filter(u8::is_ascii_digit).count();
    let letters = value.bytes().filter(u8::is_ascii_alphabetic).count();
    let at_end = value.len() - value.trim_end_matches(|c: char| c.is_ascii_digit()).len();
    value.len() >= 8
        && (digits >= 3 || at_end == 2)
        && letters >= 4
        && digits + letters == value.len()
}

/// Whether at least two neighbours are not those of words.
pub(super) fn is_odd(value: &str) -> bool {
    neighbours(value).0 >= 2
}

/// Whether a value in the shape of a token was made up: `xxxx`, `1234567890abcdef`.
pub(super) fn is_made_up(value: &str) -> bool {
    let by_chance = |word: &str| word.len() == 4 && is_random(&value.replace(word, ""));
    distinct(value) < value.len().min(6)
        || ANY_MADE_UP.any_in(value)
            && MADE_UP.iter().any(|word| value.contains(word) && !by_chance(word))
        || is_sequence(value.as_bytes())
}

/// Whether a value is only a placeholder: a variable, a gap in a template, `your-key`, `********`.
pub(super) fn is_placeholder(value: &str) -> bool {
    // `$NAME`, `%NAME%`, `@name`, `*anchor`
    let is_name = |rest: &str| {
        rest.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-.:/$%{}()[]".contains(&byte))
    };
    if value.starts_with(['{', '(', '[', '<'])
        || value.strip_prefix(['$', '%', '@', '*', '&']).is_some_and(is_name)
        || HOLES.any_in(value)
    {
        return true;
    }
    let lower = value.to_ascii_lowercase();
    let is_end = |c: char| c.is_ascii_digit() || c == '!';
    let word = lower.trim_matches(['_', '-']);
    let stem = word.trim_end_matches(is_end);
    if (COMMON.contains(&stem) && word.len() - stem.len() <= 5)
        || (value.len() < LONG && FILLERS.any_in(&lower))
    {
        return true;
    }
    if value.len() >= 8 { is_made_up(value) } else { distinct(value) < value.len().min(3) }
}

/// Whether a value names something: a file, an address, a digest or a date.
pub(super) fn is_name(value: &str) -> bool {
    is_path(value)
        || is_date(value)
        || is_address(value)
        || NAMING.iter().any(|start| value.starts_with(start))
}

/// Whether a value begins with a date: `2026-10-14T09:12:31Z`.
fn is_date(value: &str) -> bool {
    let fits = |(want, byte): (&u8, &u8)| match want {
        b'0' => byte.is_ascii_digit(),
        _ => byte == want,
    };
    value.len() >= 10 && b"0000-00-00".iter().zip(value.as_bytes()).all(fits)
}

/// Whether a value is an address: `0x7f3ac9e4d2b6` in memory, or one of a blockchain.
fn is_address(value: &str) -> bool {
    // Addresses of a blockchain have 40 digits, private keys have 64.
    let is_hex = |hex: &str| {
        (hex.len() <= 16 || hex.len() == 40) && hex.bytes().all(|byte| byte.is_ascii_hexdigit())
    };
    value.strip_prefix("0x").is_some_and(is_hex)
}

/// Whether a value is a path, the name of a file or a URL.
pub(super) fn is_path(value: &str) -> bool {
    // A secret key of AWS may begin with a slash.
    let is_base64 = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/');
    if value.len() == 40 && value.bytes().all(is_base64) {
        return false;
    }
    ["/", "./", "../", "~/"].iter().any(|start| value.starts_with(start))
        || value.contains("://")
        || value.get(1..3) == Some(":\\")
        || FILES.iter().any(|end| value.ends_with(end))
}

/// Whether a value is a field in a program: `settings.database.primary1`.
pub(super) fn is_field(value: &str) -> bool {
    let is_part = |part: &str| {
        let name = part.strip_suffix(|c: char| c.is_ascii_digit()).unwrap_or(part);
        !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphabetic() || byte == b'_')
    };
    value.contains('.') && value.split('.').all(is_part)
}

/// Whether a value is a UUID.
pub(super) fn is_uuid(value: &str) -> bool {
    value.len() == 36
        && value.bytes().enumerate().all(|(at, byte)| match at {
            8 | 13 | 18 | 23 => byte == b'-',
            _ => byte.is_ascii_hexdigit(),
        })
}

/// Whether a value is `user:password` in base64 and the password is not a placeholder.
pub(super) fn is_encoded_login(value: &str) -> bool {
    decode(value).is_some_and(|text| {
        text.split_once(':').is_some_and(|(user, password)| {
            password.len() >= 3 && password != user && !is_placeholder(password)
        })
    })
}

/// Returns the text in a base64 value, if it is printable ASCII.
fn decode(value: &str) -> Option<String> {
    let digits = value.trim_end_matches('=');
    if digits.len() < 4 || digits.len() % 4 == 1 {
        return None;
    }
    let mut text = String::with_capacity(digits.len());
    let (mut bits, mut held) = (0_u32, 0);
    for byte in digits.bytes() {
        let six = match byte {
            b'A'..=b'Z' => byte - b'A',
            b'a'..=b'z' => byte - b'a' + 26,
            b'0'..=b'9' => byte - b'0' + 52,
            b'+' | b'-' => 62,
            b'/' | b'_' => 63,
            _ => return None,
        };
        bits = ((bits << 6) | u32::from(six)) & 0xffff;
        held += 6;
        if held >= 8 {
            held -= 8;
            let [byte, ..] = (bits >> held).to_le_bytes();
            if !(0x20..0x7f).contains(&byte) {
                return None;
            }
            text.push(char::from(byte));
        }
    }
    Some(text)
}

/// Counts the different bytes.
fn distinct(value: &str) -> usize {
    let mut seen = [0_u64; 4];
    for byte in value.bytes() {
        seen[usize::from(byte >> 6)] |= 1 << (byte & 63);
    }
    seen.iter().map(|word| word.count_ones() as usize).sum()
}

/// Whether most bytes equal or follow the byte one or two places before: `abcd1234`, `1a2b3c4d`,
/// `aaaa`.
fn is_sequence(value: &[u8]) -> bool {
    if value.len() < 8 {
        return false;
    }
    let steps = |distance: usize| {
        let later = value.iter().skip(distance);
        value.iter().zip(later).filter(|(a, b)| b.wrapping_sub(**a) <= 1).count()
    };
    steps(1) * 2 >= value.len() - 1 || steps(2) * 5 >= (value.len() - 2) * 3
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

    #[test]
    fn logins_in_base64_are_read() {
        assert!(is_encoded_login("bWlyYTpmajByZC1uMHJ0aA=="));
        assert!(!is_encoded_login("dXNlcjpwYXNzd29yZA=="), "user:password");
        assert!(!is_encoded_login("authentication"));
    }
}
