//! Words the failures that a Spark Connect server reports.

use schemas::{ErrorCode, ToolError};
use spark_connect_core::error::SparkError;

/// The status code of gRPC for a server that cannot be reached.
const UNAVAILABLE: i32 = 14;

/// The conditions under which a session of the server no longer exists.
const LOST_SESSIONS: [&str; 2] = ["INVALID_HANDLE.SESSION", "SESSION_NOT_SAME"];

/// Most bytes of the first line of a failure.
const MAX_LINE_BYTES: usize = 600;

/// Returns true if the server cannot be reached.
pub(super) fn is_unavailable(error: &SparkError) -> bool {
    error.grpc_code == Some(UNAVAILABLE)
}

/// Returns true if the session was closed, for example because the server was started again.
pub(super) fn is_session_lost(error: &SparkError) -> bool {
    let message = error.get_message();
    LOST_SESSIONS.iter().any(|condition| message.contains(condition))
}

/// Returns the tool error for a failure that is not a mistake of the caller.
pub(super) fn describe_failure(address: &str, error: &SparkError) -> ToolError {
    let reason = first_line(&error.get_message());
    if is_unavailable(error) || is_session_lost(error) {
        let message = format!(
            "The Spark Connect server {address} cannot be reached: {reason}. Start it as docs/team.md describes, then try again: the next call connects again. Without --engine, sessions pull imports the same lake"
        );
        return ToolError::new(ErrorCode::StoreUnavailable, message);
    }
    let message = format!(
        "Spark at {address} could not read the lake: {reason}. Its workers must see the folder of the lake under the same path"
    );
    ToolError::new(ErrorCode::StoreUnavailable, message)
}

/// Returns the first line of a message that says something. The lines after it are a plan or a trace.
pub(super) fn first_line(message: &str) -> String {
    let mut lines = message.lines().map(str::trim).filter(|line| !line.is_empty());
    let mut line = lines.next().unwrap_or("it gave no reason").to_owned();
    if line.starts_with('[')
        && line.ends_with(']')
        && let Some(next) = lines.next()
    {
        line = format!("{line} {next}");
    }
    let end = line.floor_char_boundary(MAX_LINE_BYTES.min(line.len()));
    line.truncate(end);
    line.trim_end_matches('.').to_owned()
}
