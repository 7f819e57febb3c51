//! One segment: writes its files, opens them, and reads its rows and texts.

pub(super) mod event_reader;
mod events_file;
pub(super) mod events_footer;
pub(super) mod indexed_columns;
pub(super) mod open_segment;
pub(super) mod pages;
mod segment_folder;
pub(super) mod segment_rows;
pub(super) mod segment_writer;
pub(super) mod session_summary;
pub(super) mod session_table;
pub(super) mod small_files;
pub(super) mod source_table;
pub(super) mod table_columns;
