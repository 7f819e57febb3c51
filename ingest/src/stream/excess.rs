//! Leaves out records of which a log has too many to show each: equal ones in a row, and ones that
//! the decoder does not know. They are counted and reported, but give no event. A row costs far
//! more than such a record, so a log of them would take long for its size.

use schemas::problem::ProblemKind;
use xxhash_rust::xxh3::xxh3_64;

use super::decoded_event::RecordAt;
use super::events::Stream;
use super::state::EqualRun;

/// Maximum number of records with the same bytes in a row that give events.
const MAX_EQUAL_RECORDS: u32 = 1000;

/// Maximum size in bytes of a record that is compared with the one before it. The row of a longer
/// one is cheap for its size.
const MAX_COMPARED_BYTES: usize = 512;

/// Maximum number of unknown records of a session that give events.
const MAX_UNKNOWN_RECORDS: u64 = 10_000;

impl Stream {
    /// Returns whether a record is left out because more than [`MAX_EQUAL_RECORDS`] records with
    /// its bytes precede it without another one in between.
    pub(crate) fn is_excess_copy(&mut self, raw: &[u8], at: RecordAt) -> bool {
        let hash = if raw.len() > MAX_COMPARED_BYTES { 0 } else { xxh3_64(raw) | 1 };
        let run = &mut self.state.equal_run;
        if hash == 0 || run.hash != hash {
            *run = EqualRun { hash, records: 1 };
            return false;
        }

        run.records = run.records.saturating_add(1);
        let records = run.records;
        if records == MAX_EQUAL_RECORDS + 1 {
            let message = format_args!(
                "the same record occurs more than {MAX_EQUAL_RECORDS} times in a row; the others \
                 are counted, but are not events"
            );
            self.push_problem(at, ProblemKind::RecordsLeftOut, message);
        }
        records > MAX_EQUAL_RECORDS
    }

    /// Leaves the present record, which is unknown, out if the session has too many of them.
    pub(super) fn limit_unknown_records(&mut self) {
        let records = self.ledger.unknown_records();
        self.is_left_out = records > MAX_UNKNOWN_RECORDS;
        if records == MAX_UNKNOWN_RECORDS + 1 {
            let message = format_args!(
                "the log has more than {MAX_UNKNOWN_RECORDS} records of unknown types; the others \
                 are counted, but are not events"
            );
            self.push_problem(self.record, ProblemKind::RecordsLeftOut, message);
        }
    }

    /// Returns whether the present record is left out, because the log has too many unknown ones.
    pub(crate) fn is_record_left_out(&self) -> bool {
        self.is_left_out
    }
}
