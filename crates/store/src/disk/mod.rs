//! The files and folders of a store on disk: opens, creates, replaces, locks and checks them.

pub(super) mod checked_file;
pub(super) mod chunk_checksum;
pub(super) mod database;
pub(super) mod files;
pub(super) mod held_folder;
pub(super) mod lock;
pub(super) mod record_tables;
