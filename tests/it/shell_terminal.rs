//! Shells in a terminal for tests, with the code that `sessions init` prints.

use std::path::{Path, PathBuf};

use crate::env::TestEnv;
use crate::left_out::report_left_out;
use crate::terminal::TestTerminal;

const SIZE: (u16, u16) = (110, 40);

/// The prompt of the shells of these tests.
pub(crate) const PROMPT: &str = "ready>";

/// Returns the path of a shell. Says so if it is not installed.
pub(crate) fn find_shell(name: &str) -> Option<PathBuf> {
    let found = ["/usr/bin", "/bin"].iter().map(|folder| Path::new(folder).join(name));
    let path = found.into_iter().find(|path| path.exists());
    if path.is_none() {
        report_left_out("install these programs to run these tests", name);
    }
    path
}

/// Starts a shell with the integration, after these lines of its own.
pub(crate) fn start_shell(env: &TestEnv, name: &str, lines: &str) -> Option<TestTerminal> {
    let shell = find_shell(name)?;
    let (file, setup) = match name {
        "bash" => (".bashrc", format!("PS1='{PROMPT} '\neval \"$(sessions init bash)\"\n")),
        "zsh" => (
            ".zshrc",
            format!(
                "PS1='{PROMPT} '\nautoload -Uz compinit\ncompinit -u\neval \"$(sessions init zsh)\"\n"
            ),
        ),
        _ => (
            ".config/fish/config.fish",
            format!(
                "function fish_prompt; echo -n '{PROMPT} '; end\nset -g fish_greeting\nsessions init fish | source\n"
            ),
        ),
    };
    let path = env.path(file);
    std::fs::create_dir_all(path.parent().expect("a folder")).expect("creates");
    std::fs::write(path, format!("{setup}{lines}")).expect("writes");
    let mut terminal = TestTerminal::start_program(env, &shell, &["-i"], SIZE);
    terminal.wait_until("the prompt of the shell", |screen| screen.contains(PROMPT));
    Some(terminal)
}

pub(crate) fn ends_with_prompt(screen: &str) -> bool {
    screen.trim_end().ends_with(PROMPT)
}
