//! The composition root: environment, default places, and ingest into a store.

use std::path::{Path, PathBuf};
use std::time::Instant;

use ingest::discover::{Discovery, default_roots, discover};
use ingest::plan::plan;
use ingest::provider::Places;
use ingest::report::Report;
use ingest::run::Progress;
use schemas::{ErrorCode, ToolError};

use crate::error::store_error;
use crate::store::{Store, Verify};

/// Reads an environment variable; the only place that does.
pub fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

/// The user's home directory.
pub fn home() -> PathBuf {
    etcetera::home_dir().unwrap_or_default()
}

/// Where the store is when nobody says: the XDG data home + `sessions`.
pub fn default_store() -> PathBuf {
    let xdg = variable("XDG_DATA_HOME").map(PathBuf::from).filter(|dir| dir.is_absolute());
    xdg.unwrap_or_else(|| home().join(".local/share")).join("sessions")
}

/// The logs of every known agent on this machine.
pub fn known_roots() -> Vec<PathBuf> {
    default_roots(&Places::new(&home(), &variable))
}

/// Ingests what is new below `paths`, or below the known roots when there are none.
pub fn ingest(
    store: &Store,
    paths: &[PathBuf],
    verify: Verify,
    progress: &dyn Progress,
) -> Result<Report, ToolError> {
    let start = Instant::now();
    let roots = if paths.is_empty() { known_roots() } else { paths.to_vec() };
    if roots.is_empty() {
        let message =
            "No logs were found in the usual places. Name a file or folder: `sessions ingest PATH`";
        return Err(ToolError::new(ErrorCode::InvalidArgument, message));
    }
    let found = discover(&roots).without(store.dir());
    missing_paths(paths, &found)?;
    let writer = store.writer(verify).map_err(store_error)?;
    let known = writer.known().map_err(store_error)?;
    let mut report =
        ingest::run::run(plan(found, &known), &&writer, progress).map_err(store_error)?;
    report.segments_set_aside = writer.set_aside();
    writer.compact().map_err(store_error)?;
    let elapsed = start.elapsed();
    report.elapsed_ms = u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX);
    #[expect(clippy::cast_precision_loss, reason = "a rate for people")]
    let rate = report.bytes_read as f64 / 1e6 / elapsed.as_secs_f64().max(1e-9);
    report.mb_per_second = (rate * 10.0).round() / 10.0;
    Ok(report)
}

/// A path that was named and cannot be read at all is a wrong argument.
fn missing_paths(paths: &[PathBuf], found: &Discovery) -> Result<(), ToolError> {
    let unreadable = |path: &&PathBuf| {
        found.problems.iter().any(|problem| Path::new(&problem.path) == path.as_path())
    };
    match paths.iter().find(unreadable) {
        None => Ok(()),
        Some(path) => {
            let reason = found
                .problems
                .iter()
                .find(|p| Path::new(&p.path) == path)
                .map_or("", |p| p.message.as_str());
            let message = format!(
                "{} cannot be read: {reason}. Check the path and its rights",
                path.display()
            );
            Err(ToolError::new(ErrorCode::InvalidArgument, message)
                .with("path", path.to_string_lossy().into_owned()))
        }
    }
}
