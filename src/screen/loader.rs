//! Reads sessions for the preview and the reading view, in a thread of its own.

use std::io;
use std::sync::Arc;

use schemas::{Timestamp, ToolError};

use super::latest::LatestWorker;
use crate::output::conversation_blocks::Conversation;
use tools::{Call, Tools};

/// The most events of a preview: to read and to format those of a long session takes longer than a key
/// may. The reading view shows all.
const MAX_PREVIEW_EVENTS: u32 = 600;

/// A session to be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct LoadRequest {
    pub(super) session_id: String,
    pub(super) extent: LoadExtent,
}

/// How much of a session is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LoadExtent {
    Whole,
    /// What a preview needs that shows this event, or else the beginning.
    Preview(Option<u32>),
}

impl LoadRequest {
    /// Returns true if a conversation of the session has what is asked for.
    pub(super) fn is_met_by(&self, conversation: &Conversation) -> bool {
        match self.extent {
            LoadExtent::Whole => conversation.is_whole,
            LoadExtent::Preview(event_index) => conversation.has_event(event_index),
        }
    }
}

/// Starts the thread that reads sessions and passes them to `answer`. A newer request ends the work on an
/// older one.
pub(super) fn start_loader(
    tools: Arc<Tools>,
    answer: impl Fn(LoadRequest, Result<Arc<Conversation>, ToolError>) + Send + 'static,
) -> io::Result<LatestWorker<LoadRequest>> {
    LatestWorker::start("loader", move |request: LoadRequest, is_stale| {
        let conversation = read_conversation(&tools, &request, is_stale).map(Arc::new);
        if !is_stale() {
            answer(request, conversation);
        }
    })
}

/// Reads a session. `stop` is polled from time to time; true ends the reading with an error.
pub(super) fn read_conversation(
    tools: &Tools,
    request: &LoadRequest,
    stop: &(dyn Fn() -> bool + Sync),
) -> Result<Conversation, ToolError> {
    let call = Call::new(Timestamp::now(), stop);
    let id = &request.session_id;
    let transcript = match request.extent {
        LoadExtent::Whole => tools.read_transcript(id, &call)?,
        LoadExtent::Preview(event_index) => {
            let event = event_index.unwrap_or(0);
            tools.read_transcript_around(id, event, MAX_PREVIEW_EVENTS, &call)?
        }
    };
    Ok(Conversation::new(transcript, true))
}
