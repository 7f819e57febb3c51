//! Code that every layer uses: clean texts, the definition of equal words, tables of text, threads.

pub(crate) mod fold;
pub(crate) mod parallel;
pub(crate) mod sanitize;
pub(crate) mod stem;
pub(crate) mod text_table;
