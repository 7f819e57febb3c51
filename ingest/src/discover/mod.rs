//! Finds the logs of agents and recognises which agent wrote each.

pub(crate) mod presence;
mod reach;
pub mod sniff;
pub(crate) mod walk;

pub(crate) use self::reach::find_obstacle;
pub use self::reach::{find_file, is_absent};
pub use self::walk::{Discovery, default_roots, discover, is_log_name};
