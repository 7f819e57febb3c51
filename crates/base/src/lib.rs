//! Code that every layer uses: text cleaning, folding, dropped and indexed texts, word stems,
//! names of models, numbers, paths, words of shells, cells and tables of a terminal, files, random bytes, and threads.

pub mod cells;
pub mod dropped_text;
pub mod files;
pub mod fold;
pub mod home_paths;
pub mod image_notes;
pub mod json_length;
pub mod model_name;
pub mod numbers;
pub mod parallel;
pub mod paths;
pub mod random;
pub mod sanitize;
pub mod shell_word;
pub mod text_index;
pub mod text_table;
pub mod word_form;
