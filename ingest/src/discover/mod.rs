//! Finds the logs of agents and recognises whose they are.

pub(crate) mod presence;
mod reach;
pub mod sniff;
pub(crate) mod walk;

pub use self::reach::file_of;
pub(crate) use self::reach::find_obstacle;
pub use self::walk::{Discovery, default_roots, discover, is_log_name};
