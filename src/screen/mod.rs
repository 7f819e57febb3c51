//! Screens that take the whole terminal: the picker of sessions, and the reading view.
//!
//! A screen is drawn by one thread. Searching and reading of sessions run in threads of their own,
//! which answer through a channel (`app.rs`). All text of logs is cleaned before it becomes a part of
//! a screen (`conversation.rs`, `picker/row.rs`). The bytes go through the writer of `output`.

mod actions;
mod app;
mod conversation_lines;
mod facts;
mod interrupt;
mod key_line;
mod latest;
mod line_edit;
mod line_editor;
mod loader;
mod picker;
mod popup;
mod reader;
mod setup;
mod terminal;
mod text;
mod theme;

pub(crate) use self::app::{run_picker, run_reader};
pub(crate) use self::interrupt::InterruptFlag;
pub(crate) use self::line_editor::{InputLanguage, LineEditor, TypedInput};
pub(crate) use self::setup::{EnterAction, ScreenEnd, ScreenRefresh, ScreenSetup};
