//! Recognises a user name and a password in base64: `bWlyYTpmajByZC1uMHJ0aA==`.

use super::entropy::is_placeholder;

/// Returns whether a value is `user:password` in base64 and the password is not a placeholder.
pub(super) fn is_encoded_login(value: &str) -> bool {
    let Some(text) = decode_base64(value) else { return false };
    let Some((user, password)) = text.split_once(':') else { return false };
    password.len() >= 3 && password != user && !is_placeholder(password)
}

/// Returns the text in a base64 value. `None` if the value is too short or not base64, or if the
/// text is not printable ASCII.
pub(super) fn decode_base64(value: &str) -> Option<String> {
    let bytes = decode_base64_bytes(value)?;
    let is_printable = bytes.iter().all(|byte| (0x20..0x7f).contains(byte));
    String::from_utf8(bytes).ok().filter(|_| is_printable)
}

/// Returns the bytes in a base64 value. `None` if the value is too short or not base64.
pub(super) fn decode_base64_bytes(value: &str) -> Option<Vec<u8>> {
    let digits = value.trim_end_matches('=');
    if digits.len() < 4 || digits.len() % 4 == 1 {
        return None;
    }
    let mut bytes = Vec::with_capacity(digits.len());
    let mut bits: u32 = 0;
    // Number of bits that no byte contains yet.
    let mut held = 0;
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
            bytes.push(byte);
        }
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn logins_in_base64_are_read() {
        assert!(is_encoded_login("bWlyYTpmajByZC1uMHJ0aA=="));
        assert!(!is_encoded_login("dXNlcjpwYXNzd29yZA=="), "user:password");
        assert!(!is_encoded_login("authentication"));
    }
}
