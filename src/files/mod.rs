//! Writes the files that users request, and cleans up temporary files of runs that were killed.

pub(crate) mod leftovers;
pub(crate) mod outfile;
