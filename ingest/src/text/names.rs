//! Limits the length of names that logs give.

/// Bytes kept of a name: of a tool, a model, a branch, a folder, an id. Answers repeat names, and a
/// log may hold anything: with 1,024 bytes of quotes and backslashes in each name, the steps of a
/// session exceeded the size limit of an answer.
const NAME_BYTES: usize = 768;

/// Returns the part of a name that is kept: at most [`NAME_BYTES`] bytes.
pub(crate) fn short(name: &str) -> &str {
    &name[..name.floor_char_boundary(NAME_BYTES)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_have_an_end() {
        assert_eq!(short("main"), "main");
        assert_eq!(short(&"é".repeat(600)), "é".repeat(NAME_BYTES / 2));
    }
}
