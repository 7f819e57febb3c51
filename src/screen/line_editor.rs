//! The line editor of the query shell: history, completion, and input of several lines.

use std::io;
use std::path::PathBuf;

use rustyline::completion::Completer;
use rustyline::error::ReadlineError;
use rustyline::highlight::Highlighter;
use rustyline::hint::Hinter;
use rustyline::history::DefaultHistory;
use rustyline::validate::{ValidationContext, ValidationResult, Validator};
use rustyline::{CompletionType, Config, Context, Editor, Helper};

/// The most entries of the history.
const MAX_HISTORY_ENTRIES: usize = 1_000;

/// What the user typed.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum TypedInput {
    Text(String),
    /// The user gave up the input with Ctrl-C.
    GivenUp,
    /// The user ended the input with Ctrl-D.
    End,
}

/// Knows the language that is typed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct InputLanguage {
    /// Returns the words that begin with the typed one. The text before it is passed, too.
    pub(crate) complete: fn(before: &str, word: &str) -> Vec<String>,
    /// Returns true if the text is whole. Otherwise another line is read.
    pub(crate) is_whole: fn(&str) -> bool,
}

/// A line editor with a history in a file.
pub(crate) struct LineEditor {
    editor: Editor<EditorHelper, DefaultHistory>,
    history: PathBuf,
}

impl LineEditor {
    /// Creates the editor. A history that cannot be read is empty.
    ///
    /// # Errors
    /// Fails if the terminal cannot be used.
    pub(crate) fn new(language: InputLanguage, history: PathBuf) -> io::Result<Self> {
        let config = Config::builder()
            .completion_type(CompletionType::List)
            .max_history_size(MAX_HISTORY_ENTRIES)
            .and_then(|config| config.history_ignore_dups(true))
            .map_err(to_io_error)?
            .history_ignore_space(true)
            .build();
        let mut editor = Editor::with_config(config).map_err(to_io_error)?;
        editor.set_helper(Some(EditorHelper { language }));
        let _ = editor.load_history(&history);
        Ok(Self { editor, history })
    }

    /// Reads one input.
    ///
    /// # Errors
    /// Fails if the terminal cannot be read.
    pub(crate) fn read_input(&mut self, prompt: &str) -> io::Result<TypedInput> {
        match self.editor.readline(prompt) {
            Ok(text) => {
                self.remember(&text);
                Ok(TypedInput::Text(text))
            }
            Err(ReadlineError::Interrupted) => Ok(TypedInput::GivenUp),
            Err(ReadlineError::Eof) => Ok(TypedInput::End),
            Err(error) => Err(to_io_error(error)),
        }
    }

    /// Adds an input to the history. A history that cannot be written lasts until the end of the
    /// program.
    fn remember(&mut self, text: &str) {
        if !text.trim().is_empty() && self.editor.add_history_entry(text).is_ok_and(|is_new| is_new)
        {
            if let Some(folder) = self.history.parent() {
                let _ = std::fs::create_dir_all(folder);
            }
            let _ = self.editor.save_history(&self.history);
        }
    }
}

fn to_io_error(error: ReadlineError) -> io::Error {
    if let ReadlineError::Io(error) = error { error } else { io::Error::other(error.to_string()) }
}

/// Connects the language to the editor.
struct EditorHelper {
    language: InputLanguage,
}

impl Completer for EditorHelper {
    type Candidate = String;

    fn complete(
        &self,
        line: &str,
        position: usize,
        _: &Context<'_>,
    ) -> rustyline::Result<(usize, Vec<String>)> {
        let typed = &line[..position];
        let is_break = |c: char| !(c.is_alphanumeric() || c == '_' || c == '.');
        let start = typed
            .rfind(is_break)
            .map_or(0, |at| at + typed[at..].chars().next().map_or(0, char::len_utf8));
        let (before, word) = typed.split_at(start);
        Ok((start, (self.language.complete)(before, word)))
    }
}

impl Validator for EditorHelper {
    fn validate(&self, context: &mut ValidationContext<'_>) -> rustyline::Result<ValidationResult> {
        if (self.language.is_whole)(context.input()) {
            return Ok(ValidationResult::Valid(None));
        }
        Ok(ValidationResult::Incomplete)
    }
}

impl Hinter for EditorHelper {
    type Hint = String;
}

impl Highlighter for EditorHelper {}

impl Helper for EditorHelper {}
