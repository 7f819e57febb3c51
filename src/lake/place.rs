//! Where a lake is: a folder, or a bucket of a cloud.

use std::collections::HashSet;
use std::fmt::Display;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use schemas::{ErrorCode, ToolError};

use super::folder::FolderPlace;
use super::objects::{ObjectContent, ObjectInfo, Objects};
use store::{TOMBSTONES, json_name};

/// A lake, which counts its requests.
pub struct LakePlace {
    /// The place as the user wrote it, in its absolute form.
    name: String,
    objects: Box<dyn Objects>,
    requests: AtomicU64,
}

impl LakePlace {
    /// Opens a lake: `s3://BUCKET/PATH`, `gs://`, `az://` or a folder.
    ///
    /// # Errors
    /// Fails if the place is not one of these, or if its settings are wrong. Nothing is read yet.
    pub fn open(place: &str) -> Result<Self, ToolError> {
        let is_url = place.split_once("://").is_some_and(|(scheme, _)| {
            !scheme.is_empty() && scheme.bytes().all(|byte| byte.is_ascii_alphanumeric())
        });
        if is_url {
            let objects = open_bucket(place)?;
            return Ok(Self::new(place.trim_end_matches('/').to_owned(), objects));
        }
        let folder = std::path::absolute(PathBuf::from(place)).map_err(|error| {
            let message = format!("The folder '{place}' cannot be used: {error}. Name another one");
            ToolError::new(ErrorCode::InvalidArgument, message)
        })?;
        let name = folder.to_string_lossy().into_owned();
        Ok(Self::new(name, Box::new(FolderPlace::new(folder))))
    }

    fn new(name: String, objects: Box<dyn Objects>) -> Self {
        Self { name, objects, requests: AtomicU64::new(0) }
    }

    /// Returns the name by which the store remembers the lake.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the folder of the lake; `None` for a bucket.
    pub fn folder(&self) -> Option<&Path> {
        if self.name.contains("://") { None } else { Some(Path::new(&self.name)) }
    }

    /// Returns the number of requests until now.
    pub fn requests(&self) -> u64 {
        self.requests.load(Ordering::Relaxed)
    }

    pub(super) fn list(&self, prefix: &str) -> Result<Vec<ObjectInfo>, ToolError> {
        self.count();
        self.objects.list(prefix).map_err(|error| self.error("list", prefix, error))
    }

    /// Returns the identities of the logs that have tombstones.
    pub(super) fn list_tombstones(&self) -> Result<HashSet<String>, ToolError> {
        let objects = self.list(TOMBSTONES)?;
        let stones = objects.iter().filter_map(|object| json_name(&object.key, TOMBSTONES));
        Ok(stones.map(str::to_owned).collect())
    }

    pub(super) fn get(&self, key: &str, max_bytes: u64) -> Result<ObjectContent, ToolError> {
        self.count();
        self.objects.get(key, max_bytes).map_err(|error| self.error("read", key, error))
    }

    pub(super) fn put(&self, key: &str, bytes: Vec<u8>) -> Result<(), ToolError> {
        self.count();
        self.objects.put(key, bytes).map_err(|error| self.error("write", key, error))
    }

    pub(super) fn delete(&self, key: &str) -> Result<(), ToolError> {
        self.count();
        self.objects.delete(key).map_err(|error| self.error("remove", key, error))
    }

    fn count(&self) {
        self.requests.fetch_add(1, Ordering::Relaxed);
    }

    fn error(&self, verb: &str, key: &str, error: impl Display) -> ToolError {
        let message = format!(
            "The lake {} could not {verb} {key}: {error}. Check the address, the credentials and the network, then run the command again: it continues where it stopped",
            self.name
        );
        ToolError::new(ErrorCode::StoreUnavailable, message)
    }
}

#[cfg(feature = "cloud")]
fn open_bucket(place: &str) -> Result<Box<dyn Objects>, ToolError> {
    super::cloud::BucketPlace::open(place).map(|bucket| Box::new(bucket) as Box<dyn Objects>)
}

#[cfg(not(feature = "cloud"))]
fn open_bucket(place: &str) -> Result<Box<dyn Objects>, ToolError> {
    let message = format!(
        "'{place}' is a bucket, and this build of sessions has no cloud backends. Use a released program, or build one with --features cloud"
    );
    Err(ToolError::new(ErrorCode::InvalidArgument, message))
}
