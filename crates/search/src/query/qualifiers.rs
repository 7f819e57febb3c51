//! The names of the qualifiers.

/// All qualifiers, as listed in messages.
pub(super) const QUALIFIERS: &str = "tool: model: branch: file: agent: provider: project: cwd: label: machine: user: is:error is:replay since: until: case:yes sort:relevance total:exact";

/// Returns true if a qualifier has this name before its colon.
pub fn is_qualifier(name: &str) -> bool {
    QUALIFIERS.split(' ').any(|known| known.split(':').next() == Some(name))
}
