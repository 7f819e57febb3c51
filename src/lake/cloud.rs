//! A lake in a bucket: S3 and what speaks its protocol, Google Cloud Storage, Azure.

use std::error::Error;

use object_store::path::Path;
use object_store::{ObjectStore, ObjectStoreExt as _, PutPayload, parse_url_opts};
use schemas::{ErrorCode, ToolError};
use tokio::runtime::{Builder, Runtime};
use url::Url;

use super::objects::{ObjectContent, ObjectInfo, Objects, too_long};
use crate::config::environment::cloud_variables;

/// The schemes of buckets.
const SCHEMES: [&str; 3] = ["s3", "gs", "az"];

/// The longest time that a request may take. A joined object has 32 MB and more; the 30 seconds of the
/// client would need a network that sends 10 Mbit a second. `AWS_TIMEOUT` and the like replace it.
const REQUEST_TIMEOUT: &str = "300 seconds";

/// A lake in a bucket. Requests that fail for a passing reason are sent again by the client.
pub(super) struct BucketPlace {
    bucket: Box<dyn ObjectStore>,
    /// The folder of the lake in the bucket.
    root: Path,
    runtime: Runtime,
}

impl BucketPlace {
    /// Opens a bucket with the credentials of the environment. Nothing is read yet.
    pub(super) fn open(address: &str) -> Result<Self, ToolError> {
        let url = Url::parse(address).map_err(|error| wrong_address(address, &error))?;
        if !SCHEMES.contains(&url.scheme()) {
            let message = format!(
                "'{address}' is not the address of a lake. Name a folder, s3://BUCKET/PATH, gs://BUCKET/PATH or az://CONTAINER/PATH"
            );
            return Err(ToolError::new(ErrorCode::InvalidArgument, message));
        }
        // An error means that a provider is installed already.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let mut options = vec![("timeout".to_owned(), REQUEST_TIMEOUT.to_owned())];
        options.extend(cloud_variables());
        let (bucket, root) =
            parse_url_opts(&url, options).map_err(|error| wrong_address(address, &error))?;
        let runtime = Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|error| wrong_address(address, &error))?;
        Ok(Self { bucket, root, runtime })
    }

    fn path(&self, key: &str) -> Result<Path, String> {
        let key = key.trim_end_matches('/');
        let whole = if self.root.as_ref().is_empty() {
            key.to_owned()
        } else {
            format!("{}/{key}", self.root)
        };
        Path::parse(whole).map_err(|error| describe(&error))
    }
}

impl Objects for BucketPlace {
    fn list(&self, prefix: &str) -> Result<Vec<ObjectInfo>, String> {
        let path = self.path(prefix)?;
        let listed = self.runtime.block_on(self.bucket.list_with_delimiter(Some(&path)));
        let listed = listed.map_err(|error| describe(&error))?;
        let mut found = Vec::new();
        for object in listed.objects {
            let Some(name) = object.location.filename() else { continue };
            let changed = object.last_modified.timestamp_micros();
            let version = object.e_tag.unwrap_or_else(|| format!("{}-{changed}", object.size));
            found.push(ObjectInfo { key: format!("{prefix}{name}"), version });
        }
        found.sort_by(|a, b| a.key.cmp(&b.key));
        Ok(found)
    }

    fn get(&self, key: &str, max_bytes: u64) -> Result<ObjectContent, String> {
        let path = self.path(key)?;
        self.runtime.block_on(async {
            let found = match self.bucket.get(&path).await {
                Ok(found) => found,
                Err(object_store::Error::NotFound { .. }) => return Ok(ObjectContent::Missing),
                Err(error) => return Err(describe(&error)),
            };
            if found.meta.size > max_bytes {
                return Ok(too_long(max_bytes));
            }
            let bytes = found.bytes().await.map_err(|error| describe(&error))?;
            Ok(ObjectContent::Whole(bytes.to_vec()))
        })
    }

    fn put(&self, key: &str, bytes: Vec<u8>) -> Result<(), String> {
        let path = self.path(key)?;
        let written = self.runtime.block_on(self.bucket.put(&path, PutPayload::from(bytes)));
        written.map(|_| ()).map_err(|error| describe(&error))
    }

    fn delete(&self, key: &str) -> Result<(), String> {
        let path = self.path(key)?;
        match self.runtime.block_on(self.bucket.delete(&path)) {
            Ok(()) | Err(object_store::Error::NotFound { .. }) => Ok(()),
            Err(error) => Err(describe(&error)),
        }
    }
}

/// Returns the innermost cause of an error with the error itself: the client wraps what matters.
fn describe(error: &dyn Error) -> String {
    let mut cause = error;
    while let Some(source) = cause.source() {
        cause = source;
    }
    let whole = error.to_string();
    let cause = cause.to_string();
    if whole.contains(&cause) { whole } else { format!("{whole}: {cause}") }
}

fn wrong_address(address: &str, error: &dyn Error) -> ToolError {
    let message = format!(
        "The lake '{address}' cannot be opened: {}. Check the address and the variables of the environment with the credentials, such as AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_REGION",
        describe(error)
    );
    ToolError::new(ErrorCode::InvalidArgument, message)
}
