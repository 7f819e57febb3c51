//! Defines the page of a session's details: where it begins, and where the next one continues.

/// A place in a session: an event, and a character of its text. A turn or step is represented by
/// its first event, so that a cursor stays valid when the session grows.
pub(super) type TextPlace = (u32, usize);

/// The bounds of a page.
pub(super) struct DetailPage {
    pub(super) limit: usize,
    pub(super) from: TextPlace,
    pub(super) next: Option<TextPlace>,
}
