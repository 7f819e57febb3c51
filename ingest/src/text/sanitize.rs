//! Removes invisible parts from the text of logs: terminal escapes, control characters and
//! characters that Unicode draws as nothing.
//!
//! Such characters may split a secret, so cleaning comes before masking. All printed or answered
//! text passes through the same function.

use std::borrow::Cow;

/// Maximum length in characters of the string in a terminal escape, such as a title or a link.
const MAX_ESCAPE_CHARS: usize = 4096;

/// Returns `text` without terminal escapes, control characters and invisible characters. Tabs and
/// line breaks stay. U+2028, U+2029 and a carriage return inside a line become line breaks. Joiners
/// stay inside emoji, and between or after letters of scripts that need them. Cleaning a cleaned text
/// changes nothing.
pub fn clean(text: &str) -> Cow<'_, str> {
    let Some(mut plain) = find_suspect(text) else { return Cow::Borrowed(text) };
    let mut cleaned = String::with_capacity(text.len());
    let mut rest = text;
    loop {
        cleaned.push_str(&rest[..plain]);
        rest = &rest[plain..];
        let Some(c) = rest.chars().next() else { break };
        if let Some(length) = escape_length(rest) {
            rest = &rest[length..];
        } else {
            rest = &rest[c.len_utf8()..];
            cleaned.extend(replacement_of(c, cleaned.chars().next_back(), rest));
        }
        plain = find_suspect(rest).unwrap_or(rest.len());
    }
    if cleaned == text { Cow::Borrowed(text) } else { Cow::Owned(cleaned) }
}

/// Number of bytes examined at once.
const CHUNK_BYTES: usize = 64;

/// Returns the position of the first character that may have to be removed or replaced.
fn find_suspect(text: &str) -> Option<usize> {
    let mut at = 0;
    while let Some(rest) = text.get(at..).filter(|rest| !rest.is_empty()) {
        let chunk = &rest.as_bytes()[..rest.len().min(CHUNK_BYTES)];
        let is_plain = match chunk.as_array() {
            Some(whole) => is_plain_ascii(whole),
            None => {
                let mut padded = [b' '; CHUNK_BYTES];
                padded[..chunk.len()].copy_from_slice(chunk);
                is_plain_ascii(&padded)
            }
        };
        if is_plain {
            at += chunk.len();
            continue;
        }
        for (start, byte) in chunk.iter().enumerate() {
            if !FIRST_BYTES[usize::from(*byte)] {
                continue;
            }
            let next = rest.as_bytes().get(start + 1).copied().unwrap_or(0);
            if begins_suspect(*byte, next) && rest[start..].starts_with(is_suspect) {
                return Some(at + start);
            }
        }
        // The last character may continue after the chunk; its remaining bytes begin no character.
        at += rest.ceil_char_boundary(chunk.len());
    }
    None
}

/// For each byte, whether a [suspect](is_suspect) may begin with it.
const FIRST_BYTES: [bool; 256] = {
    let mut firsts = [false; 256];
    let mut pair = 0;
    while pair < 1 << 16 {
        let first = pair >> 8;
        let second = pair & 0xff;
        firsts[first] |= begins_suspect(first as u8, second as u8);
        pair += 1;
    }
    firsts
};

/// Returns whether a character with these first two UTF-8 bytes may be [suspect](is_suspect). The
/// two bytes separate most visible from invisible characters without decoding.
const fn begins_suspect(first: u8, second: u8) -> bool {
    match first {
        0x20..=0x7e | b'\n' | b'\t' => false,
        0x00..=0x1f | 0x7f => true,
        // U+0080 to U+00BF.
        0xc2 => second < 0xa0 || second == 0xad,
        0xcd => second == 0x8f,
        0xd8..=0xdc => true,
        // U+08xx, U+11xx, U+17xx and U+18xx.
        0xe0 => second >= 0xa2,
        0xe1 => matches!(second, 0x85 | 0x9e | 0xa0),
        // U+20xx and U+28xx.
        0xe2 => matches!(second, 0x80 | 0x81 | 0xa0),
        0xe3 => second == 0x85,
        // U+FExx and U+FFxx.
        0xef => second >= 0xb8,
        0xf0 => matches!(second, 0x91 | 0x93 | 0x9b | 0x9d),
        0xf3 => second == 0xa0,
        0x80..=0xc1 | 0xc3..=0xcc | 0xce..=0xd7 | 0xdd..=0xdf => false,
        0xe4..=0xee | 0xf1..=0xf2 | 0xf4..=0xff => false,
    }
}

/// Returns whether all bytes are printable ASCII, tabs or line feeds. Has no branches, so that the
/// compiler vectorizes it.
fn is_plain_ascii(bytes: &[u8; CHUNK_BYTES]) -> bool {
    let mut has_other = false;
    for byte in bytes {
        let is_control = (*byte < 0x20) & (*byte != b'\n') & (*byte != b'\t');
        has_other |= is_control | (*byte >= 0x7f);
    }
    !has_other
}

/// Returns whether a character may have to be removed or replaced.
fn is_suspect(c: char) -> bool {
    !matches!(c, '\n' | '\t') && (c.is_control() || is_invisible(c))
}

/// Returns the character that replaces `c`, given the last one kept and the text after it. `None`
/// removes it.
fn replacement_of(c: char, before: Option<char>, after: &str) -> Option<char> {
    match c {
        '\n' | '\t' => Some(c),
        // After a carriage return, terminals overwrite the line.
        '\r' => match after.chars().next() {
            Some('\n') => Some('\r'),
            Some('\r') | None => None,
            Some(_) => Some('\n'),
        },
        '\u{2028}' | '\u{2029}' => Some('\n'),
        '\u{200c}' | '\u{200d}' => is_joiner_needed(c, before?, after.chars().next()).then_some(c),
        '\u{fe0e}' | '\u{fe0f}' => {
            let before = before?;
            let is_keycap =
                matches!(before, '0'..='9' | '#' | '*') && after.starts_with('\u{20e3}');
            (is_keycap || is_emoji(before)).then_some(c)
        }
        c if is_suspect(c) => None,
        c => Some(c),
    }
}

/// Returns whether a joiner is inside an emoji, between letters of a script that needs it, or at the
/// end of a word that it shapes. `after` is `None` at the end of the text.
///
/// At the end of a word, a joiner after a virama decides between a conjoined form and a visible
/// virama: `\u{d28}\u{d4d}\u{200d}` is the Malayalam chillu N. A zero-width joiner after an Arabic letter
/// keeps the letter's joined form, as in the abbreviation of the Hijri year.
fn is_joiner_needed(joiner: char, before: char, after: Option<char>) -> bool {
    let Some(after) = after else { return is_shaping_end(joiner, before) };
    let is_in_emoji = joiner == '\u{200d}'
        && (is_emoji(before) || matches!(before, '\u{fe0f}' | '\u{1f3fb}'..='\u{1f3ff}'))
        && is_emoji(after);
    is_in_emoji
        || is_joining_script(before) && is_joining_script(after)
        || is_after_word(after) && is_shaping_end(joiner, before)
}

/// Returns whether a joiner shapes the end of a word, if the word's last character is `before`.
fn is_shaping_end(joiner: char, before: char) -> bool {
    is_virama(before) || joiner == '\u{200d}' && is_arabic_letter(before)
}

/// Returns whether a character after a joiner shows that the word has ended. It must not be removed
/// itself, because the character after it would decide then. A carriage return may be removed, but
/// only at the end of a line.
fn is_after_word(c: char) -> bool {
    c == '\r' || !c.is_alphanumeric() && !is_suspect(c)
}

/// Returns whether a character is a virama of India, Sri Lanka or Nepal: the sign that a consonant
/// has no vowel.
fn is_virama(c: char) -> bool {
    matches!(
        c,
        '\u{94d}'
            | '\u{9cd}'
            | '\u{a4d}'
            | '\u{acd}'
            | '\u{b4d}'
            | '\u{bcd}'
            | '\u{c4d}'
            | '\u{ccd}'
            | '\u{d3b}'
            | '\u{d3c}'
            | '\u{d4d}'
            | '\u{dca}'
            | '\u{a8c4}'
            | '\u{11046}'
            | '\u{110b9}'
            | '\u{111c0}'
            | '\u{11235}'
            | '\u{1134d}'
            | '\u{11442}'
            | '\u{114c2}'
            | '\u{115bf}'
            | '\u{1163f}'
            | '\u{116b6}'
            | '\u{11839}'
            | '\u{119e0}'
            | '\u{11c3f}'
    )
}

/// Returns whether a character is a letter of the Arabic script.
fn is_arabic_letter(c: char) -> bool {
    c.is_alphabetic()
        && matches!(c, '\u{620}'..='\u{6ff}' | '\u{750}'..='\u{77f}' | '\u{870}'..='\u{8c9}')
}

/// Returns whether a character is a pictograph, which a variation selector or a joiner may follow.
fn is_emoji(c: char) -> bool {
    matches!(c,
        '\u{a9}' | '\u{ae}' | '\u{203c}' | '\u{2049}' | '\u{2122}' | '\u{2139}'
        | '\u{2190}'..='\u{21ff}' | '\u{2300}'..='\u{23ff}' | '\u{24c2}' | '\u{25a0}'..='\u{27bf}'
        | '\u{2934}'..='\u{2935}' | '\u{2b00}'..='\u{2bff}' | '\u{3030}' | '\u{303d}' | '\u{3297}'
        | '\u{3299}' | '\u{1f000}'..='\u{1faff}')
}

/// Returns whether a character is visible and of a script in which joiners change words or shapes.
fn is_joining_script(c: char) -> bool {
    let is_of_script = matches!(c,
        // Arabic, Syriac, Thaana, N'Ko, Mandaic.
        '\u{600}'..='\u{8ff}' | '\u{fb50}'..='\u{fdff}' | '\u{fe70}'..='\u{fefc}'
        // The scripts of India and Sri Lanka.
        | '\u{900}'..='\u{dff}' | '\u{a8e0}'..='\u{a8ff}'
        // Myanmar, Khmer, Mongolian.
        | '\u{1000}'..='\u{109f}' | '\u{1780}'..='\u{18af}' | '\u{aa60}'..='\u{aa7f}'
        // Balinese, Sundanese, Javanese.
        | '\u{1b00}'..='\u{1bbf}' | '\u{a980}'..='\u{a9df}'
        // Brahmi and its descendants, Adlam.
        | '\u{11000}'..='\u{11fff}' | '\u{1e900}'..='\u{1e95f}');
    is_of_script && !is_invisible(c)
}

/// Returns whether a character is default-ignorable, of category Cf, Zl or Zp, or a letter drawn as
/// nothing.
fn is_invisible(c: char) -> bool {
    // Excludes most letters and box-drawing characters at once.
    if matches!(c, '\0'..='\u{ac}' | '\u{ae}'..='\u{34e}' | '\u{2070}'..='\u{27ff}' | '\u{3165}'..='\u{fdff}')
    {
        return false;
    }
    matches!(c,
        '\u{ad}' | '\u{34f}' | '\u{600}'..='\u{605}' | '\u{61c}' | '\u{6dd}' | '\u{70f}'
        | '\u{890}'..='\u{891}' | '\u{8e2}' | '\u{115f}'..='\u{1160}' | '\u{17b4}'..='\u{17b5}'
        | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}' | '\u{2800}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}'
        | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}' | '\u{110bd}' | '\u{110cd}'
        | '\u{13430}'..='\u{1343f}' | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}'
        | '\u{e0000}'..='\u{e0fff}')
}

/// Returns the length in bytes of the terminal escape that `text` begins with; `None` if it does
/// not begin with one. An unfinished escape ends at the end of its line. If it is longer than any
/// escape, only its introducer counts.
pub(crate) fn escape_length(text: &str) -> Option<usize> {
    let mut chars = text.char_indices();
    let (_, first) = chars.next()?;
    let kind = match first {
        '\u{1b}' => chars.next().map(|(_, kind)| kind),
        '\u{9b}' => Some('['),
        '\u{90}' | '\u{98}' | '\u{9d}'..='\u{9f}' => Some(']'),
        _ => return None,
    };
    let start = text.len() - chars.as_str().len();
    let rest = chars.as_str();
    match kind {
        Some('[') => Some(start + sequence_length(rest, |c| matches!(c, '\u{20}'..='\u{3f}'))),
        Some(']' | 'P' | 'X' | '^' | '_') => Some(start + escape_string_length(rest)),
        Some('\u{20}'..='\u{2f}') => {
            Some(start + sequence_length(rest, |c| matches!(c, '\u{20}'..='\u{2f}')))
        }
        Some('\u{30}'..='\u{7e}') => Some(start),
        _ => Some(first.len_utf8()),
    }
}

/// Returns the length in bytes of the parameters and the final character after them.
fn sequence_length(text: &str, is_parameter: impl Fn(char) -> bool) -> usize {
    let end = text.find(|c| !is_parameter(c)).unwrap_or(text.len());
    let is_final = text[end..].starts_with(|c| matches!(c, '\u{30}'..='\u{7e}'));
    end + usize::from(is_final)
}

/// Returns the length in bytes of the string in an escape, including its terminator. A line break
/// also ends it, and is not included. Returns 0 if the string is longer than [`MAX_ESCAPE_CHARS`].
fn escape_string_length(text: &str) -> usize {
    for (at, c) in text.char_indices().take(MAX_ESCAPE_CHARS) {
        match c {
            '\u{7}' | '\u{9c}' => return at + c.len_utf8(),
            '\u{1b}' if text[at..].starts_with("\u{1b}\\") => return at + 2,
            '\u{1b}' | '\n' | '\r' => return at,
            _ => {}
        }
    }
    if text.chars().nth(MAX_ESCAPE_CHARS).is_none() { text.len() } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_go_and_text_stays() {
        for (text, cleaned) in [
            ("a\u{1b}[31;1mred\u{1b}[0m\r\nb\tc", "ared\r\nb\tc"),
            ("x\u{1b}]52;c;ZXZpbA==\u{7}y", "xy"),
            ("x\u{1b}]8;;https://h.example\u{1b}\\link\u{1b}]8;;\u{1b}\\", "xlink"),
            ("a\u{9b}2Jb\u{9d}0;title\u{9c}c", "abc"),
            ("a\u{1b}(Bb\u{1b}=c\u{1b}", "abc"),
            ("a\u{1b}]0;no end\nb", "a\nb"),
            ("a\u{1b}P1$r0m\u{1b}\\b", "ab"),
            ("17982\r100 1306k\r\r\nb\r", "17982\n100 1306k\r\nb"),
            ("a\u{2028}b\u{2029}c", "a\nb\nc"),
        ] {
            assert_eq!(clean(text), cleaned, "{text:?}");
            assert_eq!(clean(cleaned), cleaned);
        }
    }

    #[test]
    fn joiners_stay_where_they_mean_something() {
        for kept in [
            "日本 👩\u{200d}💻 é",
            "👨🏽\u{200d}👩🏻\u{200d}👧\u{200d}👦 ❤\u{fe0f}\u{200d}🔥 1\u{fe0f}\u{20e3} ✔\u{fe0e}",
            "می\u{200c}خواهم نمی\u{200c}دانم",
            "क्\u{200d}ष र\u{200c}क",
        ] {
            assert!(matches!(clean(kept), Cow::Borrowed(_)), "{kept}");
        }
        for split in ["gh\u{200d}p", "a\u{200c}b", "👩\u{200d}a", "\u{200d}", "क\u{200d}\u{200d}a"]
        {
            assert!(!clean(split).contains(['\u{200c}', '\u{200d}']), "{split:?}");
        }
    }

    #[test]
    fn joiners_stay_at_the_end_of_a_word_that_they_shape() {
        for (word, name) in [
            ("അവന\u{d4d}\u{200d}", "Malayalam chillu N"),
            ("അത\u{d4d}\u{200c}", "Malayalam, visible virama"),
            ("ക\u{d4d}\u{200d}", "Malayalam chillu K"),
            ("क्\u{200d}", "Devanagari half form"),
            ("क्\u{200c}", "Devanagari, visible virama"),
            ("ত\u{9cd}\u{200d}", "Bengali khanda ta"),
            ("ක්\u{200d}", "Sinhala"),
            ("ಕ್\u{200c}", "Kannada, visible virama"),
            ("۱۳۴۲ ه\u{200d}", "abbreviation of the Hijri year"),
        ] {
            for after in ["", " b", ".", ")\n", "\nb", "\r\nb", "\r\r\nb", "、", "\tb"] {
                let text = format!("{word}{after}");
                let cleaned = clean(&text);
                assert!(cleaned.starts_with(word), "{name}: {text:?}");
                assert_eq!(clean(&cleaned), cleaned, "{name}: {text:?}");
            }
        }
    }

    #[test]
    fn joiners_that_shape_nothing_are_removed_and_split_no_secret() {
        let is_joiner = ['\u{200c}', '\u{200d}'];
        for text in [
            "क्\u{200d}ghp",
            "क्\u{200d}1",
            "क\u{200c} ",
            "می\u{200c} ",
            "ه\u{200d}a",
            "۱\u{200d} ",
            "ghp\u{200d} ",
            "ghp\u{200c}",
            "👩\u{200d} ",
            " \u{200d}क",
            "क्\u{200d}\u{202e}a",
            "क्\u{200d}\u{1b}[0ma",
        ] {
            let cleaned = clean(text);
            assert!(!cleaned.contains(is_joiner), "{text:?}");
            assert_eq!(clean(&cleaned), cleaned, "{text:?}");
        }
        // One of several joiners is enough.
        let cleaned = clean("ന\u{d4d}\u{200d}\u{200d} b");
        assert!(cleaned.matches(is_joiner).count() <= 1, "{cleaned:?}");
        assert_eq!(clean(&cleaned), cleaned);
    }

    #[test]
    fn two_bytes_tell_every_suspect() {
        let mut told = 0;
        for c in '\0'..=char::MAX {
            let mut bytes = [0; 4];
            c.encode_utf8(&mut bytes);
            told += u32::from(begins_suspect(bytes[0], bytes[1]));
            assert!(!is_suspect(c) || begins_suspect(bytes[0], bytes[1]), "{c:?}");
        }
        assert!(told < 40_000, "{told}");
    }

    #[test]
    fn suspects_are_found_wherever_chunks_end() {
        for before in 0..CHUNK_BYTES * 2 + 4 {
            for text in ["a", "é", "日", "👩"] {
                let text = text.repeat(before);
                assert_eq!(clean(&text), text);
                assert_eq!(clean(&format!("{text}\u{200b}{text}\u{e0041}")), text.repeat(2));
            }
        }
    }

    /// Compares every character with the categories of Unicode as `regex` knows them.
    #[test]
    fn no_control_or_format_character_passes() {
        let category = regex::Regex::new(r"^[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]$").expect("a pattern");
        let mut removed = 0;
        for c in '\0'..=char::MAX {
            let text = format!("a{c}b");
            let cleaned = clean(&text);
            if category.is_match(&c.to_string()) && !matches!(c, '\n' | '\t') {
                assert!(!cleaned.contains(c), "{c:?}");
                removed += 1;
            }
            assert_eq!(clean(&cleaned), cleaned, "{c:?}");
        }
        assert!(removed > 200, "{removed}");
        let blank = "\u{ad}\u{34f}\u{115f}\u{17b4}\u{180e}\u{2800}\u{3164}\u{fe00}\u{fe0f}\u{ffa0}\u{fff9}\u{e0041}\u{e0100}\u{e01ef}";
        for c in blank.chars() {
            assert_eq!(clean(&format!("a{c}b")), "ab", "{c:?}");
        }
    }
}
