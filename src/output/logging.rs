//! Logging of the program's own work, disabled by default.
//!
//! ```text
//! sessions -v ...                       to stderr: what is read, committed, answered
//! sessions -vv ...                      each call and each file as well
//! SESSIONS_LOG=debug sessions mcp       the same as -vv
//! SESSIONS_LOG=info:/tmp/sessions.log   appended to a file
//! ```
//!
//! Messages contain counts, times, tools and paths, and never arguments of calls or content of
//! logs. The messages of other crates are dropped, because they may contain either.

use std::path::Path;
use std::sync::Mutex;

use schemas::{ErrorCode, ToolError};
use tracing::level_filters::LevelFilter;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;

use crate::files::pipes::open_to_append;
use tools::error::unusable_path;

/// The environment variable that names a level and, optionally, a file.
pub const LOG_VARIABLE: &str = "SESSIONS_LOG";

/// The levels that can be requested.
const LEVELS: [(&str, LevelFilter); 4] = [
    ("error", LevelFilter::ERROR),
    ("warn", LevelFilter::WARN),
    ("info", LevelFilter::INFO),
    ("debug", LevelFilter::DEBUG),
];

/// Starts logging at the level given by the number of `-v` flags or by the value of [`LOG_VARIABLE`].
/// If both are given, the more verbose one applies.
///
/// # Errors
///
/// If the variable does not name a level, or if it names a file that cannot be written.
pub fn start(verbose: u8, variable: Option<&str>) -> Result<(), ToolError> {
    let flags = match verbose {
        0 => LevelFilter::OFF,
        1 => LevelFilter::INFO,
        2.. => LevelFilter::DEBUG,
    };
    let (named, path) = match variable {
        Some(value) => parse_level(value)?,
        None => (LevelFilter::OFF, None),
    };
    let level = flags.max(named);
    if level == LevelFilter::OFF {
        return Ok(());
    }

    match path {
        None => install_logger(level, std::io::stderr),
        Some(path) => {
            let file = open_to_append(path).map_err(|error| {
                let what = format!("{error}. {LOG_VARIABLE} names this file: name another one");
                unusable_path(path, what)
            })?;
            install_logger(level, Mutex::new(file));
        }
    }
    Ok(())
}

/// Parses `LEVEL` or `LEVEL:FILE`.
fn parse_level(value: &str) -> Result<(LevelFilter, Option<&Path>), ToolError> {
    let (name, file) = value.split_once(':').unwrap_or((value, ""));
    let level = LEVELS.iter().find(|(known, _)| *known == name);
    let Some((_, level)) = level else {
        let names = LEVELS.map(|(name, _)| name).join(", ");
        let message = format!(
            "{LOG_VARIABLE}: '{value}' is not valid. Give a level ({names}), or a level and a file: debug:/tmp/sessions.log"
        );
        return Err(
            ToolError::new(ErrorCode::InvalidArgument, message).with_detail("field", LOG_VARIABLE)
        );
    };
    Ok((*level, (!file.is_empty()).then(|| Path::new(file))))
}

/// Starts writing the program's own messages up to this level to `writer`.
fn install_logger<W>(level: LevelFilter, writer: W)
where
    W: for<'w> MakeWriter<'w> + Send + Sync + 'static,
{
    let own = ["sessions", "tools", "store", "ingest"].map(|name| (name, level));
    let own = Targets::new().with_targets(own);
    let lines = tracing_subscriber::fmt::layer().with_ansi(false).with_writer(writer);
    // A subscriber is already set only if this function was called twice.
    let _ = tracing_subscriber::registry().with(own).with(lines).try_init();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_level_may_name_a_file() {
        assert_eq!(parse_level("info").ok(), Some((LevelFilter::INFO, None)));
        let file = Path::new("/tmp/a:b.log");
        assert_eq!(parse_level("debug:/tmp/a:b.log").ok(), Some((LevelFilter::DEBUG, Some(file))));
        for wrong in ["", "loud", "trace", "/tmp/a.log"] {
            let error = parse_level(wrong).expect_err(wrong);
            assert!(error.message.contains("error, warn, info, debug"), "{error}");
        }
    }
}
