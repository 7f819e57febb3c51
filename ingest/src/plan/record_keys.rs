//! Groups logs by their first record and their first response. Logs that share either are in one
//! group.

use std::collections::HashMap;

use schemas::Provider;

use crate::provider::base_of;

/// The identity of a first record or a first response of one format.
pub(super) type RecordKey = (Provider, u64);

/// Sets of identities that occur together in a log.
#[derive(Default)]
pub(super) struct RecordKeys {
    /// Maps an identity to another one of its set that is nearer to the one that represents the set.
    nearer: HashMap<RecordKey, RecordKey>,
}

impl RecordKeys {
    /// Joins the first record and the first response of a log.
    pub(super) fn join(&mut self, provider: Provider, record: Option<u64>, response: Option<u64>) {
        let (Some(record), Some(response)) = (record, response) else { return };
        let record = self.group_of((base_of(provider), record));
        let response = self.group_of((base_of(provider), response));
        // The smaller one represents the set, so that the order of the logs does not matter.
        if record != response {
            self.nearer.insert(record.max(response), record.min(response));
        }
    }

    /// Returns the identity that represents the set of `key`.
    fn group_of(&self, key: RecordKey) -> RecordKey {
        let mut key = key;
        while let Some(nearer) = self.nearer.get(&key) {
            key = *nearer;
        }
        key
    }

    /// Returns the group of a log. `None` if neither its first record nor its first response has an
    /// identity.
    pub(super) fn group_of_log(
        &self,
        provider: Provider,
        record: Option<u64>,
        response: Option<u64>,
    ) -> Option<RecordKey> {
        record.or(response).map(|key| self.group_of((base_of(provider), key)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn logs_that_share_a_record_or_a_response_are_in_one_group() {
        let mut keys = RecordKeys::default();
        let logs = [(Some(1), Some(9)), (Some(2), Some(9)), (Some(2), None), (None, Some(9))];
        for (record, response) in logs {
            keys.join(Provider::Claude, record, response);
        }
        let group = |(record, response)| keys.group_of_log(Provider::Claude, record, response);
        assert!(logs.iter().all(|log| group(*log) == group(logs[0])));
        assert_ne!(group((Some(3), None)), group(logs[0]));
        assert_eq!(group((None, None)), None);
    }
}
