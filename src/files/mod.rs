//! Writes the files that users request, opens those that may be pipes, reads stdin, and cleans up
//! temporary files of runs that were killed.

pub(crate) mod leftovers;
pub(crate) mod outfile;
pub(crate) mod pipes;
pub(crate) mod stdin;
