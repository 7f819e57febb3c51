//! What is remembered of the responses of the model (docs/formats.md#claude-code).

use schemas::Usage;
use serde::{Deserialize, Serialize};

/// One API message. Its lines share the id, the step and the usage.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct ApiMessage {
    pub(super) id: String,
    pub(super) step: i32,
    /// The largest counts so far.
    pub(super) usage: Usage,
    /// The largest counts of each request next to the response.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) extra: Vec<Usage>,
}

/// The response that a line belongs to.
pub(super) struct ResponseLine {
    /// The id of the response. `None` if the line gives none.
    pub(super) id: Option<String>,
    /// The index of the response among the remembered ones, if an earlier line belongs to it.
    pub(super) known: Option<usize>,
    pub(super) step: i32,
}
