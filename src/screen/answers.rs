//! The answers of the threads that work for a screen, and their way to its loop.

use std::io;
use std::sync::Arc;
use std::sync::mpsc::Sender;

use schemas::ToolError;

use super::loader::LoadRequest;
use super::picker::FinderAnswer;
use super::terminal::{Screen, ScreenWaker};
use crate::output::conversation_blocks::Conversation;

/// An answer of one of the threads.
pub(super) enum WorkerAnswer {
    Found(FinderAnswer),
    Read(LoadRequest, Result<Arc<Conversation>, ToolError>),
    /// The logs were checked; the store has this generation now.
    Refreshed(u64),
}

/// Passes the answers of a thread to the loop.
pub(super) struct AnswerSender {
    send: Sender<WorkerAnswer>,
    waker: ScreenWaker,
}

impl AnswerSender {
    /// Creates the sender for a thread that works for `screen`.
    ///
    /// # Errors
    /// Fails if the system has no file handle left.
    pub(super) fn new(send: Sender<WorkerAnswer>, screen: &Screen) -> io::Result<Self> {
        Ok(Self { send, waker: screen.waker()? })
    }

    /// Passes an answer to the loop, and ends its wait. The screen may have ended meanwhile.
    pub(super) fn deliver(&self, answer: WorkerAnswer) {
        let _ = self.send.send(answer);
        self.waker.wake();
    }
}
