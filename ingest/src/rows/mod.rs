//! The rows of a session in the database of its agent, as a document from which they can be put back, and
//! by which their cells are replaced.
//! Unlike the document that a decoder reads, it has every cell.
//!
//! ```text
//! {"version":1,"tables":[
//!   {"table":"project","is_shared":true,"rows":[{"cells":{"id":"p1","worktree":"/home/mira/harbor"}}]},
//!   {"table":"session","rows":[{"cells":{"id":"ses_1","title":"Moor the boat","cost":"1.5"},
//!     "kinds":{"cost":"real"}}]}]}
//! ```
//!
//! Text and whole numbers are written as such, other cells as text with their kind: `real`, `utf8` for
//! bytes that are text, and `hex` for other bytes, or `zstd` for compressed text if secrets are to be
//! found in it.

mod all_tables;
mod cell;
mod document;
mod put_back;
mod read;
mod replace;
mod session_tables;

pub(crate) use self::all_tables::{for_each_table, for_each_text_cell};
pub(crate) use self::document::RowDocument;
pub(crate) use self::put_back::connect_for_writing;
pub use self::put_back::{PutBack, put_back_rows, roll_back};
pub use self::read::{has_rows, make_text_only, read_rows};
pub(crate) use self::replace::{
    CellChange, find_changed_cells, hash_rows, read_legible_rows, replace_cells,
};
pub(crate) use self::session_tables::{find_session, quoted};
