//! Code that every layer uses: text cleaning, folding, dropped and indexed texts, word stems,
//! paths, words of shells, cells and tables of a terminal, random bytes, and threads.

pub(crate) mod cells;
pub(crate) mod dropped_text;
pub(crate) mod fold;
pub(crate) mod home_paths;
pub(crate) mod json_length;
pub(crate) mod parallel;
pub(crate) mod paths;
pub(crate) mod random;
pub(crate) mod sanitize;
pub(crate) mod shell_word;
pub(crate) mod stem;
pub(crate) mod text_index;
pub(crate) mod text_table;
pub(crate) mod word_form;
