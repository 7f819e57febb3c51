//! What a place for objects can do, whether it is a folder or a bucket.

/// Returns what an object is that has more bytes than allowed.
pub(super) fn too_long(max_bytes: u64) -> ObjectContent {
    ObjectContent::Unreadable(format!("it has more than {max_bytes} bytes"))
}

/// An object as a listing of keys names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ObjectInfo {
    pub(super) key: String,
    /// Changes whenever the object does.
    pub(super) version: String,
}

/// The readable content of an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ObjectContent {
    Whole(Vec<u8>),
    /// There is no object of this key.
    Missing,
    /// Something is wrong with this object alone; the text says what.
    Unreadable(String),
}

/// The operations on objects. An error means that the place itself cannot be used now. Keys are in the form of `store::lake::keys`.
pub(super) trait Objects: Send + Sync {
    /// Returns the objects whose keys begin with `prefix`, which ends with a slash.
    fn list(&self, prefix: &str) -> Result<Vec<ObjectInfo>, String>;

    /// Returns an object. One of more than `max_bytes` cannot be read.
    fn get(&self, key: &str, max_bytes: u64) -> Result<ObjectContent, String>;

    /// Writes an object, whole or not at all.
    fn put(&self, key: &str, bytes: Vec<u8>) -> Result<(), String>;

    /// Removes an object, if it is there.
    fn delete(&self, key: &str) -> Result<(), String>;
}
