//! Chooses the number of threads and distributes work among them.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Returns the number of threads that can run in parallel on this machine. The system is asked only
/// once, because an answer takes several file reads.
pub fn core_count() -> usize {
    static CORES: OnceLock<usize> = OnceLock::new();
    *CORES.get_or_init(|| std::thread::available_parallelism().map_or(1, usize::from))
}

/// Runs `work` on up to `at_a_time` units per call, in parallel on all cores. The order of the
/// results is unspecified.
pub fn in_parallel<U: Sync, T: Send, E: Send>(
    units: &[U],
    at_a_time: usize,
    work: impl Fn(&[U]) -> Result<T, E> + Sync,
) -> Result<Vec<T>, E> {
    on_threads(core_count(), units, at_a_time, work)
}

/// Runs `work` on up to `at_a_time` units per call, on up to `threads` threads. The order of the
/// results is unspecified. After an error no more calls begin.
pub fn on_threads<U: Sync, T: Send, E: Send>(
    threads: usize,
    units: &[U],
    at_a_time: usize,
    work: impl Fn(&[U]) -> Result<T, E> + Sync,
) -> Result<Vec<T>, E> {
    let next = AtomicUsize::new(0);
    let worker = || {
        let mut results = Vec::new();
        loop {
            let first_unit = next.fetch_add(at_a_time, Ordering::Relaxed);
            let Some(rest) = units.get(first_unit..).filter(|rest| !rest.is_empty()) else {
                return results;
            };
            let result = work(&rest[..rest.len().min(at_a_time)]);
            if result.is_err() {
                next.store(units.len(), Ordering::Relaxed);
            }
            results.push(result);
        }
    };

    let other_count = threads.min(units.len().div_ceil(at_a_time)).saturating_sub(1);
    std::thread::scope(|scope| {
        let others: Vec<_> = (0..other_count).map(|_| scope.spawn(worker)).collect();
        let mut results = worker();
        for other in others {
            match other.join() {
                Ok(more) => results.extend(more),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        results.into_iter().collect()
    })
}
