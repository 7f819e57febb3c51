//! Ingests logs behind a hook, in a process that the agent does not wait for.

use std::path::Path;
use std::process::{Command, Stdio};

/// Starts a process that ingests new log data into `store`. `program` is this program. The process
/// outlives the hook: it has its own process group, and no input or output.
///
/// # Errors
/// Returns an error if the process cannot be started.
pub fn start_ingest(program: &Path, store: &Path) -> std::io::Result<()> {
    let mut command = Command::new(program);
    command.arg("--store").arg(store).args(["--quiet", "hook", "ingest"]);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    #[cfg(unix)]
    std::os::unix::process::CommandExt::process_group(&mut command, 0);
    command.spawn().map(|_| ())
}
