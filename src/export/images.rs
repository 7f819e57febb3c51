//! Reads the images of a transcript from the log.

use std::cell::Cell;

use schemas::tool::event::Event;

use tools::{Call, EventImage, Tools, count_images};

/// Maximum size of all images of a transcript in bytes.
const MAX_IMAGES_BYTES: usize = 40 << 20;

/// The images of one transcript.
pub(super) struct TranscriptImages<'a> {
    tools: &'a Tools,
    call: &'a Call<'a>,
    is_wanted: bool,
    /// The bytes of images that still fit.
    room: Cell<usize>,
}

impl<'a> TranscriptImages<'a> {
    /// Creates the reader of one transcript. It reads nothing if images are not wanted.
    pub(super) fn new(tools: &'a Tools, call: &'a Call<'a>, is_wanted: bool) -> Self {
        Self { tools, call, is_wanted, room: Cell::new(MAX_IMAGES_BYTES) }
    }

    /// Returns the images of an event. Those that the log no longer has, or that do not fit, are left
    /// out: the text of the event names them.
    pub(super) fn read(&self, event: &Event) -> Vec<EventImage> {
        let count = if self.is_wanted {
            count_images(event.text.as_deref().unwrap_or_default())
        } else {
            0
        };
        let mut images = Vec::new();
        for number in 0..count {
            let Ok(image) = self.tools.read_image(&event.event_id, number, self.call) else {
                continue;
            };
            let Some(room) = self.room.get().checked_sub(image.bytes.len()) else { continue };
            self.room.set(room);
            images.push(image);
        }
        images
    }
}
