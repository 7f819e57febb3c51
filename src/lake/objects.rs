//! What a place for objects can do, whether it is a folder or a bucket.

/// An object as a listing of keys names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ObjectInfo {
    pub(super) key: String,
    /// Changes whenever the object does.
    pub(super) version: String,
}

/// The operations on objects. Keys are in the form of `store::lake::keys`.
pub(super) trait Objects: Send + Sync {
    /// Returns the objects whose keys begin with `prefix`, which ends with a slash.
    fn list(&self, prefix: &str) -> Result<Vec<ObjectInfo>, String>;

    /// Returns an object; `None` if there is none. An object of more than `max_bytes` is an error.
    fn get(&self, key: &str, max_bytes: u64) -> Result<Option<Vec<u8>>, String>;

    /// Writes an object, whole or not at all.
    fn put(&self, key: &str, bytes: Vec<u8>) -> Result<(), String>;

    /// Removes an object, if it is there.
    fn delete(&self, key: &str) -> Result<(), String>;
}
