//! Classifies tools by name and command.

use schemas::ToolKind;

/// First line of a patch of `apply_patch`.
pub(crate) const PATCH_BEGIN: &str = "*** Begin Patch";

/// Returns the kind of a tool by its name. A shell whose command is a patch counts as an edit.
pub(crate) fn tool_kind(name: &str, command: &str) -> ToolKind {
    let kind = ToolKind::from_name(name);
    let is_patch = command.contains("apply_patch") && command.contains(PATCH_BEGIN);
    if kind == ToolKind::Execute && is_patch { ToolKind::Edit } else { kind }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shell_that_is_given_a_patch_edits() {
        let patch = "apply_patch <<'EOF'\n*** Begin Patch\n*** Add File: a\n";
        assert_eq!(tool_kind("shell", patch), ToolKind::Edit);
        assert_eq!(tool_kind("shell", "man apply_patch"), ToolKind::Execute);
        assert_eq!(tool_kind("Read", patch), ToolKind::Read);
    }
}
