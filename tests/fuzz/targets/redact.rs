//! Redaction: any text stays text, to mask twice is to mask once, and a planted token is gone
//! wherever it stands.
//!
//! Input: the kind of the token, what stands around it, its place, the text.
#![no_main]

use fuzz::REDACTOR;
use ingest::redact::SecretCounts;
use libfuzzer_sys::fuzz_target;

/// How tokens begin, the characters that follow, and how many. Taken apart, so that nobody takes
/// this file for a leak.
const KINDS: &[([&str; 2], &str, usize)] = &[
    (["gh", "p_"], ALPHANUMERIC, 36),
    (["gith", "ub_pat_"], ALPHANUMERIC, 60),
    (["sk-a", "nt-api03-"], ALPHANUMERIC, 90),
    (["AK", "IA"], "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567", 16),
    (["gl", "pat-"], ALPHANUMERIC, 20),
    (["np", "m_"], ALPHANUMERIC, 36),
    (["AI", "za"], ALPHANUMERIC, 35),
    (["hf", "_"], ALPHANUMERIC, 34),
];

const ALPHANUMERIC: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";

/// What may stand on both sides of a token.
const AROUND: &[&str] =
    &[" ", "\n", "\"", "'", "`", "\t", ",", ";", "|", "(", "<", "→", "\\n", "="];

/// A token as random as the input.
fn token(input: &[u8]) -> String {
    let (parts, characters, length) = KINDS[usize::from(input[0]) % KINDS.len()];
    let characters = characters.as_bytes();
    let mut state = input.iter().fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
    });
    let random = (0..length).map(|_| {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let at = usize::try_from(state >> 33).expect("31 bits") % characters.len();
        char::from(characters[at])
    });
    parts.concat() + &random.collect::<String>()
}

/// Masks, and masks again; the counts are those of the first time.
fn masked(text: &str) -> String {
    let mut counts = SecretCounts::default();
    let once = REDACTOR.mask(text, &mut counts).into_owned();
    let mut none = SecretCounts::default();
    assert_eq!(REDACTOR.mask(&once, &mut none), once, "masked twice: {text:?}");
    assert_eq!(none, SecretCounts::default());
    let changed = once != text;
    assert_eq!(changed, counts.0.values().sum::<u64>() > 0, "{counts:?}");
    once
}

/// What stays is what was there, in its order.
fn check_kept(text: &str, masked: &str) {
    const MASK: &str = "[REDACTED:";
    if text.contains(MASK) {
        return;
    }
    let mut rest = text;
    for (number, piece) in masked.split(MASK).enumerate() {
        let kept =
            if number == 0 { Some(piece) } else { piece.split_once(']').map(|(_, kept)| kept) };
        let kept = kept.expect("a whole placeholder");
        let at = rest.find(kept).unwrap_or_else(|| panic!("{kept:?} is not of {text:?}"));
        rest = &rest[at + kept.len()..];
    }
}

fuzz_target!(|input: &[u8]| {
    let [_, around, high, low, text @ ..] = input else { return };
    let text = String::from_utf8_lossy(text);
    check_kept(&text, &masked(&text));
    let place = usize::from(u16::from_be_bytes([*high, *low])) % (text.len() + 1);
    let place = text.floor_char_boundary(place);
    let around = AROUND[usize::from(*around) % AROUND.len()];
    let token = token(input);
    let planted = format!("{}{around}{token}{around}{}", &text[..place], &text[place..]);
    let found = masked(&planted);
    assert!(!found.contains(&token), "{token} survives in {planted:?}: {found:?}");
    check_kept(&planted, &found);
});
