//! Finds the logs of agents and recognises which agent wrote each.

mod discovery;
mod folders;
pub(crate) mod presence;
mod reach;
pub mod sniff;
pub(crate) mod walk;

pub use self::discovery::{Discovery, is_log_name};
pub(crate) use self::reach::find_obstacle;
pub use self::reach::{find_file, is_absent};
pub use self::walk::{default_roots, discover};
