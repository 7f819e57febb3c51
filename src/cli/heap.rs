//! Gives a server that is idle most of the time a heap that returns what it no longer needs.
//!
//! The allocator of glibc keeps freed memory for the thread that freed it, and each thread that
//! handles a call has its own. After an hour of use most of the memory of `sessions web` was free, and
//! still its own: 335 MB of a development program, where the budget of a server is 200. One heap for all
//! threads returns it to the system, and leaves 90. The allocator reads its settings only when a program starts, so the program
//! replaces itself.

/// The variable with settings of the allocator of glibc.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
const VARIABLE: &str = "GLIBC_TUNABLES";

/// One heap for all threads, whose end is returned above 128 KB. Larger allocations are not part of
/// it, and are returned at once.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
const SETTINGS: &str = "glibc.malloc.arena_max=1:glibc.malloc.trim_threshold=131072:\
                        glibc.malloc.mmap_threshold=131072";

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
