//! The trait of values that are shown to users.

use super::layout::Layout;
use super::painted::Painted;

/// A value that is shown to users. Text from logs is already cleaned.
pub trait Show {
    /// Formats the value for a screen, or for a pipe or a file, as the layout says.
    fn paint(&self, layout: &Layout) -> Painted;
}
