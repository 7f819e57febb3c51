//! Answers the hooks of agents: decides what of the history of a project is worth saying at this
//! moment, and says nothing when unsure (docs/hooks.md).

mod answer;
pub mod background;
mod fence;
mod input;
mod past_question;
mod project;
mod recap;
mod reply;

pub use answer::{HookAnswer, HookHistory, ServedBefore};
pub use input::{FailedCallInput, HookInput, parse_input};
pub use reply::encode_reply;
