//! One segment: writes its files, opens them, and reads its rows and texts.

pub(super) mod event_reader;
mod events_file;
pub(super) mod events_footer;
pub(super) mod indexed_columns;
pub(super) mod open_segment;
pub(super) mod pages;
mod recorded_rows;
mod row_columns;
mod row_decoder;
mod row_encoder;
mod row_file;
mod segment_folder;
pub(super) mod segment_writer;
pub(super) mod session_brief;
pub(super) mod session_table;
mod session_texts;
pub(super) mod small_files;
mod source_brief;
pub(super) mod source_table;
pub(super) mod table_columns;
