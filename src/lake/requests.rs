//! Runs many requests at once.

use base::parallel::on_threads;

/// Requests at a time. Each mostly waits for the network.
const REQUESTS_AT_A_TIME: usize = 8;

/// Runs a request for each unit, several at a time. Returns their results in the order of the units.
/// After an error no more requests begin.
pub(super) fn run_requests<U: Sync, T: Send, E: Send>(
    units: &[U],
    request: impl Fn(&U) -> Result<T, E> + Sync,
) -> Result<Vec<T>, E> {
    let positions: Vec<usize> = (0..units.len()).collect();
    let mut results = on_threads(REQUESTS_AT_A_TIME, &positions, 1, |one| {
        one.iter().map(|at| Ok((*at, request(&units[*at])?))).collect::<Result<Vec<_>, E>>()
    })?;
    results.sort_by_key(|one| one.first().map(|(at, _)| *at));
    Ok(results.into_iter().flatten().map(|(_, result)| result).collect())
}

/// Returns how many of the first objects are fetched at a time: those that have at most `max_bytes`
/// together, and at least one.
pub(super) fn count_within(sizes: impl Iterator<Item = u64>, max_bytes: u64) -> usize {
    let mut bytes = 0;
    let fitting = sizes.take_while(|size| {
        bytes += size;
        bytes <= max_bytes
    });
    fitting.count().max(1)
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
