//! Limits the requests that one client over stdio may have in progress. A client that sends
//! requests without reading the answers is no longer read from; a client that left is noticed.

use std::collections::HashMap;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rmcp::model::RequestId;
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};
use tokio::time::sleep;

/// Number of units of capacity. Every request in progress takes at least one, so at most this many
/// run at the same time.
const MAX_CONCURRENT_UNITS: u32 = 32;

/// Number of bytes of a request's text for which it takes one further unit: a parsed request takes
/// many times the memory of its text, so large ones run one after the other.
const UNIT_BYTES: usize = 4 << 10;

/// Interval at which the system is asked whether the client has closed the input. While there is no
/// capacity, or while an answer waits for a client that does not read, the input is not read, and its
/// end would not be noticed.
const CLOSED_CHECK_PERIOD: Duration = Duration::from_millis(100);

/// After the input has ended, the server continues until no answer was written for this long.
const DRAIN_TIMEOUT: Duration = Duration::from_millis(600);

/// Interval at which the server checks whether a further answer was written.
const ANSWER_CHECK_PERIOD: Duration = Duration::from_millis(50);

/// Maximum number of values in a request; the largest request needs far fewer, because lists hold
/// at most fifty ids. A value takes a hundred times the memory of its text when it is parsed and
/// copied.
const MAX_REQUEST_VALUES: usize = 2_000;

/// The error message for a request that [`has_too_many_values`].
pub(super) const TOO_MANY_VALUES: &str =
    "The request has more than 2,000 values. Send less at once";

/// Returns true if a JSON text has more than [`MAX_REQUEST_VALUES`] values. It counts the commas
/// outside strings, without parsing.
pub(super) fn has_too_many_values(text: &[u8]) -> bool {
    if text.len() <= MAX_REQUEST_VALUES {
        return false;
    }
    let mut commas = 0;
    let mut is_in_string = false;
    let mut is_escaped = false;
    for byte in text {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' => is_escaped = is_in_string,
            b'"' => is_in_string = !is_in_string,
            b',' if !is_in_string => commas += 1,
            _ => {}
        }
    }
    commas >= MAX_REQUEST_VALUES
}

/// The capacity that one request takes. It is released when the last clone is dropped.
pub(super) type Permit = Arc<OwnedSemaphorePermit>;

/// The requests of one client and their answers.
pub(super) struct Flow {
    units: Arc<Semaphore>,
    /// The requests without an answer so far. Sending an answer removes its permit.
    unanswered: Mutex<HashMap<RequestId, Permit>>,
    /// The number of messages written so far.
    written: AtomicU64,
    /// The first error in writing a message.
    failure: Mutex<Option<io::Error>>,
    input_ended: Notify,
    output_failed: Notify,
    /// Returns true if the client has closed the input, even if not all of it has been read.
    is_input_closed: fn() -> bool,
}

impl Flow {
    pub(super) fn new(is_input_closed: fn() -> bool) -> Self {
        Self {
            units: Arc::new(Semaphore::new(MAX_CONCURRENT_UNITS as usize)),
            unanswered: Mutex::default(),
            written: AtomicU64::new(0),
            failure: Mutex::default(),
            input_ended: Notify::new(),
            output_failed: Notify::new(),
            is_input_closed,
        }
    }

    /// Waits until there is capacity for a request of `bytes`.
    pub(super) async fn acquire_permit(&self, bytes: usize) -> Permit {
        let extra = u32::try_from(bytes / UNIT_BYTES).unwrap_or(MAX_CONCURRENT_UNITS);
        let units = (1 + extra).min(MAX_CONCURRENT_UNITS);
        match Arc::clone(&self.units).acquire_many_owned(units).await {
            Ok(permit) => Arc::new(permit),
            // Nothing closes the semaphore.
            Err(_) => std::future::pending().await,
        }
    }

    /// Records that the request `id` is to be answered.
    pub(super) fn begin_request(&self, id: RequestId, permit: Permit) {
        self.lock_unanswered().insert(id, permit);
    }

    /// Removes the capacity of a request that is being answered or never will be. A handler that
    /// still runs for it holds a clone.
    pub(super) fn take_permit(&self, id: &RequestId) -> Option<Permit> {
        self.lock_unanswered().remove(id)
    }

    fn lock_unanswered(&self) -> MutexGuard<'_, HashMap<RequestId, Permit>> {
        self.unanswered.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records the result of writing a message.
    pub(super) fn record_written(&self, result: &io::Result<()>) {
        let Err(error) = result else {
            self.written.fetch_add(1, Ordering::Relaxed);
            return;
        };
        let mut failure = self.failure.lock().unwrap_or_else(PoisonError::into_inner);
        if failure.is_none() {
            *failure = Some(io::Error::new(error.kind(), error.to_string()));
        }
        self.output_failed.notify_one();
    }

    /// Records that the client sends nothing more.
    pub(super) fn record_input_ended(&self) {
        self.input_ended.notify_one();
    }

    /// Waits until serving has no more use: the output has failed, or the input has ended and no
    /// further answer is written.
    pub(super) async fn wait_until_useless(&self) {
        tokio::select! {
            () = self.output_failed.notified() => {}
            () = self.wait_for_last_answer() => {}
        }
    }

    /// Waits until the input has ended and no answer was written for [`DRAIN_TIMEOUT`].
    async fn wait_for_last_answer(&self) {
        self.wait_for_end_of_input().await;
        let mut written = self.written.load(Ordering::Relaxed);
        let mut since = Instant::now();
        while since.elapsed() < DRAIN_TIMEOUT {
            sleep(ANSWER_CHECK_PERIOD).await;
            let now_written = self.written.load(Ordering::Relaxed);
            if now_written != written {
                written = now_written;
                since = Instant::now();
            }
        }
    }

    /// Waits until the input was read to its end, or the client has closed it.
    async fn wait_for_end_of_input(&self) {
        loop {
            tokio::select! {
                () = self.input_ended.notified() => return,
                () = sleep(CLOSED_CHECK_PERIOD) => {
                    if (self.is_input_closed)() {
                        return;
                    }
                }
            }
        }
    }

    /// Returns why the output failed. A client that closed its end is not a failure.
    pub(super) fn take_failure(&self) -> Option<io::Error> {
        let failure = self.failure.lock().unwrap_or_else(PoisonError::into_inner).take();
        failure.filter(|error| error.kind() != io::ErrorKind::BrokenPipe)
    }

    /// Returns true if a message could not be written.
    pub(super) fn has_failed(&self) -> bool {
        self.failure.lock().unwrap_or_else(PoisonError::into_inner).is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list_of_zeros(count: usize) -> String {
        format!("[{}]", vec!["0"; count].join(","))
    }

    #[test]
    fn values_are_counted_outside_strings() {
        assert!(has_too_many_values(list_of_zeros(MAX_REQUEST_VALUES + 1).as_bytes()));
        assert!(!has_too_many_values(list_of_zeros(MAX_REQUEST_VALUES).as_bytes()));
        let text = format!(r#"["\"{}"]"#, ",".repeat(2 * MAX_REQUEST_VALUES));
        assert!(!has_too_many_values(text.as_bytes()));
    }

    #[tokio::test]
    async fn permits_are_taken_by_number_and_size_and_freed_by_the_last_holder() {
        let flow = Flow::new(|| false);
        let mut permits = Vec::new();
        for _ in 0..MAX_CONCURRENT_UNITS {
            permits.push(flow.acquire_permit(100).await);
        }
        assert_eq!(flow.units.available_permits(), 0);
        let permit = permits.pop().expect("a permit");
        flow.begin_request(RequestId::Number(1), Arc::clone(&permit));
        drop(permit);
        assert_eq!(flow.units.available_permits(), 0, "it is not answered yet");
        drop(flow.take_permit(&RequestId::Number(1)));
        assert_eq!(flow.units.available_permits(), 1);
        drop(permits);
        let _large = flow.acquire_permit(1 << 30).await;
        assert_eq!(flow.units.available_permits(), 0, "a large one runs alone");
    }

    #[tokio::test]
    async fn a_client_that_left_is_noticed_while_there_is_no_room() {
        let flow = Flow::new(|| true);
        let _all = flow.acquire_permit(1 << 30).await;
        tokio::select! {
            _ = flow.acquire_permit(1) => panic!("there is no room"),
            () = flow.wait_until_useless() => {}
        }
        assert!(flow.take_failure().is_none());
    }

    #[tokio::test]
    async fn a_closed_pipe_ends_in_silence_and_a_full_disk_does_not() {
        for (kind, is_reported) in
            [(io::ErrorKind::BrokenPipe, false), (io::ErrorKind::StorageFull, true)]
        {
            let flow = Flow::new(|| false);
            flow.record_written(&Err(kind.into()));
            flow.wait_until_useless().await;
            assert!(flow.has_failed());
            assert_eq!(flow.take_failure().is_some(), is_reported, "{kind}");
        }
    }
}
