//! Runs many requests at once.

use std::sync::atomic::{AtomicUsize, Ordering};

/// Requests at a time. Each mostly waits for the network.
const REQUESTS_AT_A_TIME: usize = 8;

/// Runs a request for each unit, several at a time. Returns their results in the order of the units.
/// After an error no more requests begin.
pub(super) fn run_requests<U: Sync, T: Send, E: Send>(
    units: &[U],
    request: impl Fn(&U) -> Result<T, E> + Sync,
) -> Result<Vec<T>, E> {
    let next = AtomicUsize::new(0);
    let worker = || {
        let mut results = Vec::new();
        loop {
            let at = next.fetch_add(1, Ordering::Relaxed);
            let Some(unit) = units.get(at) else { return Ok(results) };
            match request(unit) {
                Ok(result) => results.push((at, result)),
                Err(error) => {
                    next.store(units.len(), Ordering::Relaxed);
                    return Err(error);
                }
            }
        }
    };
    let count = REQUESTS_AT_A_TIME.min(units.len());
    let mut all = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..count).map(|_| scope.spawn(worker)).collect();
        let mut all = Vec::with_capacity(units.len());
        for worker in workers {
            match worker.join() {
                Ok(results) => all.extend(results?),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        Ok(all)
    })?;
    all.sort_by_key(|(at, _)| *at);
    Ok(all.into_iter().map(|(_, result)| result).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_keep_their_order_and_an_error_ends_the_run() {
        let units: Vec<usize> = (0..100).collect();
        let doubled = run_requests(&units, |unit| Ok::<_, ()>(unit * 2));
        assert_eq!(doubled, Ok((0..100).map(|unit| unit * 2).collect()));
        let failed = run_requests(&units, |unit| if *unit == 7 { Err(*unit) } else { Ok(()) });
        assert_eq!(failed, Err(7));
    }
}
