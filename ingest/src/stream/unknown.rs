//! Parts of a record that its decoder does not know.

/// A part of a record that its decoder does not know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum UnknownItem {
    /// A field of this name.
    Field(String),
    /// A record, or an item in it, of this type.
    Record(String),
}
