//! How many threads to use, and sharing work out among them.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Threads that run side by side on this machine: asked of the system once, as the answer takes
/// several files to read.
pub(crate) fn cores() -> usize {
    static CORES: OnceLock<usize> = OnceLock::new();
    *CORES.get_or_init(|| std::thread::available_parallelism().map_or(1, usize::from))
}

/// Hands `share` of the `units` at a time to the cores, to each the next when it is done; the
/// results are in no order.
pub(crate) fn in_parallel<U: Sync, T: Send, E: Send>(
    units: &[U],
    share: usize,
    work: impl Fn(&[U]) -> Result<T, E> + Sync,
) -> Result<Vec<T>, E> {
    let next = AtomicUsize::new(0);
    let take = || {
        let mut results = Vec::new();
        loop {
            let from = next.fetch_add(share, Ordering::Relaxed);
            let Some(rest) = units.get(from..).filter(|rest| !rest.is_empty()) else {
                return results;
            };
            results.push(work(&rest[..rest.len().min(share)]));
        }
    };
    let others = cores().min(units.len().div_ceil(share)).saturating_sub(1);
    std::thread::scope(|scope| {
        let others: Vec<_> = (0..others).map(|_| scope.spawn(take)).collect();
        let mut results = take();
        for other in others {
            match other.join() {
                Ok(more) => results.extend(more),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        results.into_iter().collect()
    })
}
