//! A thread that works on the newest request only: a newer request replaces one that waits, and
//! cancels the one that is being worked on.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

/// The thread that works on requests, seen from the thread that sends them.
pub(super) struct LatestWorker<R> {
    slot: Arc<RequestSlot<R>>,
}

/// The place of the newest request.
struct RequestSlot<R> {
    state: Mutex<SlotState<R>>,
    changed: Condvar,
    /// The number of requests so far. Work on an older one is cancelled.
    newest: AtomicU64,
}

struct SlotState<R> {
    request: Option<R>,
    is_closed: bool,
}

impl<R: Send + 'static> LatestWorker<R> {
    /// Starts the thread. `work` gets a request, and a function that returns true once a newer one
    /// arrived.
    ///
    /// # Errors
    /// Fails if the system has no thread left.
    pub(super) fn start(
        name: &str,
        mut work: impl FnMut(R, &(dyn Fn() -> bool + Sync)) + Send + 'static,
    ) -> std::io::Result<Self> {
        let slot = Arc::new(RequestSlot {
            state: Mutex::new(SlotState { request: None, is_closed: false }),
            changed: Condvar::new(),
            newest: AtomicU64::new(0),
        });
        let own_slot = Arc::clone(&slot);
        std::thread::Builder::new().name(name.to_owned()).spawn(move || {
            while let Some((request, number)) = own_slot.take_request() {
                work(request, &|| own_slot.newest.load(Ordering::SeqCst) != number);
            }
        })?;
        Ok(Self { slot })
    }

    /// Replaces the request that waits, and cancels the one that is being worked on.
    pub(super) fn send(&self, request: R) {
        let mut state = self.slot.lock();
        state.request = Some(request);
        self.slot.newest.fetch_add(1, Ordering::SeqCst);
        self.slot.changed.notify_one();
    }
}

impl<R> Drop for LatestWorker<R> {
    fn drop(&mut self) {
        let mut state = self.slot.lock();
        state.is_closed = true;
        self.slot.newest.fetch_add(1, Ordering::SeqCst);
        self.slot.changed.notify_one();
    }
}

impl<R> RequestSlot<R> {
    fn lock(&self) -> MutexGuard<'_, SlotState<R>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for a request, and returns it with its number; `None` once the sender is gone.
    fn take_request(&self) -> Option<(R, u64)> {
        let mut state = self.lock();
        loop {
            if state.is_closed {
                return None;
            }
            if let Some(request) = state.request.take() {
                return Some((request, self.newest.load(Ordering::SeqCst)));
            }
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_newer_request_cancels_the_work_on_an_older_one() {
        let (send, receive) = channel();
        let worker = LatestWorker::start("test", move |request: u32, is_stale| {
            let mut is_cancelled = is_stale();
            while request == 1 && !is_cancelled {
                std::thread::sleep(Duration::from_millis(1));
                is_cancelled = is_stale();
            }
            send.send((request, is_cancelled)).expect("the test waits");
        })
        .expect("a thread");
        worker.send(1);
        std::thread::sleep(Duration::from_millis(20));
        worker.send(2);
        assert_eq!(receive.recv(), Ok((1, true)));
        assert_eq!(receive.recv(), Ok((2, false)));
    }
}
