//! Gives a server that is idle most of the time a heap that returns what it no longer needs.
//!
//! The allocator of glibc keeps freed memory for the thread that freed it, and each thread that
//! handles a call has its own. One heap for all threads returns it to the system (docs/web.md#measured).
//! The allocator reads its settings only when a program starts, so the program replaces itself.

/// The variable with settings of the allocator of glibc.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
const VARIABLE: &str = "GLIBC_TUNABLES";

/// One heap for all threads. Fixed thresholds of 128 KB for what is returned save 4 MB more, for a tenth
/// of the processor time.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
const SETTINGS: &str = "glibc.malloc.arena_max=1";

/// Starts the program again with one heap, unless the user has settings of the allocator. Returns if
/// that is not possible: the program then runs with more memory.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
pub(super) fn restart_with_one_heap() {
    use std::os::unix::process::CommandExt as _;
    use std::process::Command;

    use crate::config::environment;

    if environment::read_variable(VARIABLE).is_some() {
        return;
    }
    let mut arguments = environment::arguments().into_iter();
    let mut command = Command::new(environment::program_path());
    if let Some(name) = arguments.next() {
        command.arg0(name);
    }
    let error = command.args(arguments).env(VARIABLE, SETTINGS).exec();
    tracing::debug!(%error, "the program keeps its heaps");
}

/// Other systems have other allocators.
#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
pub(super) fn restart_with_one_heap() {}
