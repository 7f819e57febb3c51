//! How many threads to use: asked of the system once, as the answer takes several files to read.

use std::sync::OnceLock;

/// Threads that run side by side on this machine.
pub(crate) fn cores() -> usize {
    static CORES: OnceLock<usize> = OnceLock::new();
    *CORES.get_or_init(|| std::thread::available_parallelism().map_or(1, usize::from))
}
