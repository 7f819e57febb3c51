//! What a command did last, for the message of a test that fails.

use std::cell::RefCell;
use std::sync::Once;

thread_local! {
    static LAST: RefCell<String> = const { RefCell::new(String::new()) };
}

/// Remembers what the last command of this thread was and what came of it.
pub(crate) fn remember(outcome: String) {
    LAST.set(outcome);
}

/// Has panics print the last command of their thread.
#[expect(clippy::print_stderr, reason = "the test that failed is explained")]
pub(crate) fn print_on_panic() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let print_panic = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            print_panic(info);
            let outcome = LAST.take();
            if !outcome.is_empty() {
                eprintln!("the last command: {outcome}");
            }
        }));
    });
}
