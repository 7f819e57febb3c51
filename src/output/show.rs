//! The trait of values that are shown to users.

use super::layout::Layout;
use super::painted::Painted;

/// A value that is shown to users. Text from logs is already cleaned.
pub trait Show {
    /// Formats the value for a screen, or for a pipe or a file, as the layout says.
    fn paint(&self, layout: &Layout) -> Painted;
}

/// Says how many of a list are left out after the first `max`.
pub(super) fn append_omitted(count: usize, max: usize, out: &mut String) {
    if let Some(omitted) = count.checked_sub(max).filter(|omitted| *omitted > 0) {
        out.push_str(&format!("  and {omitted} more; --json lists them all\n"));
    }
}
