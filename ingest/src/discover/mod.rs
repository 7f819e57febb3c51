//! Finds the logs of agents and recognises which agent wrote each.

mod folder_walk;
mod log_head;
pub(crate) mod presence;
pub(crate) mod raw_log;
mod reach;
mod real_path;
pub mod sniff;
pub(crate) mod walk;

pub use self::folder_walk::is_log_name;
pub use self::presence::{LogFinder, LogPresence, discover_known, is_gone};
pub use self::raw_log::{RawLog, is_log_file};
pub(crate) use self::reach::find_obstacle;
pub use self::reach::{find_file, is_absent, is_below_root};
pub use self::real_path::real_path;
pub use self::walk::{
    Discovery, absent_roots, default_roots, discover, discover_changed, discover_observed,
};
