//! What a screen works with, and how it ends.

use std::path::PathBuf;
use std::sync::Arc;

use schemas::Zone;
use schemas::price::PriceTable;

use tools::Tools;

/// What the screens work with.
pub(crate) struct ScreenSetup {
    pub(crate) tools: Arc<Tools>,
    pub(crate) prices: PriceTable,
    /// The zone of times.
    pub(crate) zone: Zone,
    /// The folder into which exports are written.
    pub(crate) folder: PathBuf,
    /// The folder of the project, for the filter of the picker.
    pub(crate) project: Option<String>,
    pub(crate) has_color: bool,
    pub(crate) refresh: ScreenRefresh,
    /// What Enter does in the picker.
    pub(crate) enter: EnterAction,
}

/// What Enter does with the session that is selected in the picker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EnterAction {
    Open,
    Resume,
    Forget,
}

impl EnterAction {
    /// Returns the name of the action, as the last row of the screen has it.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Resume => "resume",
            Self::Forget => "forget",
        }
    }
}

/// When logs that grew are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ScreenRefresh {
    /// The list shows what the store holds, also what other processes add to it.
    Never,
    WhileOpen,
}

/// How a screen ended.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum ScreenEnd {
    Closed,
    /// The user wants to resume this session.
    Resume(String),
    /// The user wants to remove this session from the store.
    Forget(String),
    /// A signal asked the program to end, with this exit code.
    Signal(u8),
}
