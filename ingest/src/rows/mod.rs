//! The rows of a session in the database of its agent, as a document from which they can be put back, and
//! by which their cells are replaced.
//! Unlike the document that a decoder reads, it has every cell.
//!
//! ```text
//! {"version":1,"tables":[
//!   {"table":"project","is_shared":true,"rows":[{"id":"p1","worktree":"/home/mira/harbor"}]},
//!   {"table":"session","rows":[{"id":"ses_1","title":"Moor the boat","time_created":1790000000000}]},
//!   {"table":"part","rows":[{"id":"prt_1","session_id":"ses_1","data":"{\"type\":\"text\"}"}]}]}
//! ```
//!
//! Text and whole numbers are written as such. Other cells are objects: `{"real":"1.5"}`,
//! `{"utf8":".."}` for bytes that are text, and `{"hex":".."}` for other bytes, or `{"zstd":".."}` for
//! compressed text if secrets are to be found in it.

mod cell;
mod document;
mod put_back;
mod read;
mod replace;
mod session_tables;

pub(crate) use self::document::SessionRows;
pub(crate) use self::put_back::connect_for_writing;
pub use self::put_back::put_back_rows;
pub use self::read::{has_rows, read_rows};
pub(crate) use self::replace::{
    CellChange, find_changed_cells, hash_rows, read_legible_rows, replace_cells,
};
pub(crate) use self::session_tables::{SessionTables, find_session, quoted};
