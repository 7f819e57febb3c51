//! Limits the length of the names in logs.

/// Maximum number of bytes kept of a name: of a tool, a model, a branch, a folder, an id. Answers
/// repeat names, and a log may contain anything: with 1,024 bytes of quotes and backslashes in each
/// name, the steps of a session exceeded the size limit of an answer.
const MAX_NAME_BYTES: usize = 768;

/// Returns the part of a name that is kept: at most [`MAX_NAME_BYTES`].
pub(crate) fn truncate_name(name: &str) -> &str {
    &name[..name.floor_char_boundary(MAX_NAME_BYTES)]
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
