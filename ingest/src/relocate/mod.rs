//! Moves a log to another folder, on this machine or from another one: rewrites the fields of its records
//! that name the working folder, and computes where the agent looks for it.
//!
//! ```text
//! ~/.claude/projects/C--code-harbor/9ae8...jsonl     {"cwd":"C:\\code\\harbor\\src",...}
//! ~/.claude/projects/-home-mira-harbor/9ae8...jsonl  {"cwd":"/home/mira/harbor/src",...}
//! ```
//!
//! All other bytes stay: what was said, and what the agent sends back to its service. A session in a database
//! moves as the document of its rows.

mod fields;
mod folders;
mod place;
mod rows;

pub use self::fields::{hash_of_folder, rewrite_log};
pub use self::folders::FolderMove;
pub use self::place::{
    LogPlace, below_log_folder, find_obstacle_to_moving, is_safe_below, place_log,
};
pub use self::rows::{is_place_of_rows, select_travelling_rows};
