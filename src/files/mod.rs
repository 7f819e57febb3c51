//! Writes the files that users request and logs of the archive, opens those that may be pipes, reads
//! stdin, finds files that are in use, cleans up temporary files of runs that were killed, and limits the
//! cache of lakes.

pub(crate) mod lake_cache;
pub(crate) mod leftovers;
pub(crate) mod open_files;
pub(crate) mod outfile;
pub(crate) mod pipes;
pub(crate) mod restore;
pub(crate) mod stdin;
