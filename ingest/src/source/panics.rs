//! Catches panics of code that reads foreign files, so that a defect costs one record or file.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Once;

thread_local! {
    /// True while this thread runs code whose panics are caught.
    static IS_CAUGHT: Cell<bool> = const { Cell::new(false) };
}

/// Runs code that reads a log. Returns `None` if it panicked. The panic is not printed, because it
/// is reported as a problem of the log. Events that the decoder pushed before the panic are complete
/// and stay.
pub fn catch_panic<R>(decode: impl FnOnce() -> R) -> Option<R> {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let print = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            if !IS_CAUGHT.get() {
                print(panic);
            }
        }));
    });
    let was_caught = IS_CAUGHT.replace(true);
    let result = catch_unwind(AssertUnwindSafe(decode)).ok();
    IS_CAUGHT.set(was_caught);
    result
}
