//! Sorts positions so that each comes after its ancestors.

use std::collections::BTreeSet;

/// Returns positions in an order in which each comes after its ancestors, the lowest ready position
/// first. In a cycle, the first position comes without its ancestors.
pub(crate) fn sort_by_ancestors(ancestors: &[Vec<usize>]) -> Vec<usize> {
    let mut children = vec![Vec::new(); ancestors.len()];
    for (at, ancestors) in ancestors.iter().enumerate() {
        for ancestor in ancestors {
            children[*ancestor].push(at);
        }
    }

    let mut missing: Vec<usize> = ancestors.iter().map(Vec::len).collect();
    let mut waiting: BTreeSet<usize> = (0..ancestors.len()).collect();
    let mut ready: BTreeSet<usize> =
        waiting.iter().copied().filter(|at| missing[*at] == 0).collect();

    let mut order = Vec::with_capacity(ancestors.len());
    while let Some(at) = ready.pop_first().or_else(|| waiting.first().copied()) {
        waiting.remove(&at);
        order.push(at);
        for child in &children[at] {
            missing[*child] -= 1;
            if missing[*child] == 0 && waiting.contains(child) {
                ready.insert(*child);
            }
        }
    }
    order
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The same, looking through all that is left for every next one.
    fn in_order_plainly(ancestors: &[Vec<usize>]) -> Vec<usize> {
        let mut rest: Vec<usize> = (0..ancestors.len()).collect();
        let mut ordered = Vec::new();
        while !rest.is_empty() {
            let free = |at: &usize| ancestors[*at].iter().all(|other| !rest.contains(other));
            let next = rest.iter().position(free).unwrap_or(0);
            ordered.push(rest.remove(next));
        }
        ordered
    }

    proptest! {
        #[test]
        fn the_order_is_that_of_the_plain_way(
            edges in proptest::collection::vec((0usize..12, 0usize..12), 0..30),
        ) {
            let mut ancestors = vec![Vec::new(); 12];
            for (child, ancestor) in edges {
                ancestors[child].push(ancestor);
            }
            prop_assert_eq!(sort_by_ancestors(&ancestors), in_order_plainly(&ancestors));
        }
    }

    #[test]
    fn ancestors_come_first_and_rings_do_not_stop_it() {
        assert_eq!(sort_by_ancestors(&[vec![2], vec![], vec![1]]), [1, 2, 0]);
        assert_eq!(sort_by_ancestors(&[vec![1], vec![0], vec![2]]), [0, 1, 2]);
    }
}
