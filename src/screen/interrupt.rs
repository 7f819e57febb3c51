//! Ctrl-C while the program works: it cancels the work, and the program continues.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Notices Ctrl-C. From its creation on, Ctrl-C does not end the program.
#[derive(Debug, Clone, Default)]
pub(crate) struct InterruptFlag(Arc<AtomicBool>);

impl InterruptFlag {
    /// Starts to notice Ctrl-C.
    ///
    /// # Errors
    /// Fails if the system refuses the handler of the signal.
    #[cfg(unix)]
    pub(crate) fn register() -> io::Result<Self> {
        let flag = Self::default();
        signal_hook::flag::register(signal_hook::consts::SIGINT, Arc::clone(&flag.0))?;
        Ok(flag)
    }

    /// Returns a flag that is never set: the system ends the program on Ctrl-C.
    ///
    /// # Errors
    /// Never fails.
    #[cfg(not(unix))]
    pub(crate) fn register() -> io::Result<Self> {
        Ok(Self::default())
    }

    /// Forgets a Ctrl-C that was noticed.
    pub(crate) fn clear(&self) {
        self.0.store(false, Ordering::SeqCst);
    }

    /// Returns true if Ctrl-C was pressed.
    pub(crate) fn is_set(&self) -> bool {
        self.0.load(Ordering::SeqCst)
    }
}
