//! The only room that prints. Data goes to stdout, everything else to stderr.

mod analyze;
mod blame;
mod compact;
mod endings;
mod files;
mod forget;
mod health;
mod hooks;
mod labels;
mod live;
pub mod logging;
mod printer;
mod progress;
mod quota;
mod screen_writer;
mod show;
mod stats;
mod text;
mod watch;

pub use self::files::ReportWritten;
pub use self::health::found_logs_text;
pub use self::hooks::HookLogList;
pub use self::live::LiveLines;
pub use self::printer::Printer;
pub use self::progress::IngestBar;
pub use self::quota::{join_status, quota_summary};
pub(crate) use self::screen_writer::screen_writer;
pub use self::show::Show;
pub use self::stats::usage_table;
pub use self::watch::watch_line;
