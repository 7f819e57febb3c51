//! Limits the length of the names in logs, and recognizes ids, paths and bytes in them.

/// Maximum number of bytes kept of a name: of a tool, a model, a branch, a folder, an id. Answers
/// repeat names, and a log may contain anything: with 1,024 bytes of quotes and backslashes in each
/// name, the steps of a session exceeded the size limit of an answer.
const MAX_NAME_BYTES: usize = 768;

/// Returns the part of a name that is kept: at most [`MAX_NAME_BYTES`].
pub(crate) fn truncate_name(name: &str) -> &str {
    &name[..name.floor_char_boundary(MAX_NAME_BYTES)]
}

/// Returns whether `text` has the form of a uuid.
pub(crate) fn is_uuid(text: &str) -> bool {
    let Ok(bytes) = <&[u8; 36]>::try_from(text.as_bytes()) else { return false };
    // Checks every byte without a branch: records have two or three ids each.
    bytes.iter().enumerate().fold(true, |fits, (at, byte)| {
        let is_dash = matches!(at, 8 | 13 | 18 | 23);
        fits & if is_dash { *byte == b'-' } else { byte.is_ascii_hexdigit() }
    })
}

/// Returns whether a path begins as only those of Windows do: with a drive (`C:\` or `C:/`), or with the
/// name of a server (`\\`).
pub fn is_windows_path(path: &str) -> bool {
    has_drive(path) || path.starts_with(r"\\")
}

/// Returns whether a path begins with a drive (`C:\` or `C:/`).
pub fn has_drive(path: &str) -> bool {
    matches!(path.as_bytes(), [drive, b':', b'/' | b'\\', ..] if drive.is_ascii_alphabetic())
}

/// Returns bytes as hexadecimal digits.
pub fn encode_hex(bytes: impl AsRef<[u8]>) -> String {
    bytes.as_ref().iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Returns the bytes that hexadecimal digits show.
pub(crate) fn decode_hex(text: &str) -> Option<Vec<u8>> {
    let digits: Option<Vec<u8>> =
        text.chars().map(|c| c.to_digit(16).and_then(|digit| u8::try_from(digit).ok())).collect();
    let digits = digits.filter(|digits| digits.len().is_multiple_of(2))?;
    Some(digits.chunks_exact(2).map(|pair| pair[0] << 4 | pair[1]).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_have_an_end() {
        assert_eq!(truncate_name("main"), "main");
        assert_eq!(truncate_name(&"é".repeat(600)), "é".repeat(MAX_NAME_BYTES / 2));
    }
}
