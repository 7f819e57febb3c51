//! `sessions init`: prints the code that connects a shell with this program, and completes its command
//! lines.

use std::ffi::OsString;
use std::path::Path;

use clap::{Command, ValueEnum};

use crate::cli::completion::complete_line;
use crate::cli::exit::{CommandFailure, CommandOutcome};
use crate::output::Printer;

#[derive(Debug, clap::Args)]
pub(in crate::cli) struct InitFlags {
    /// Shell
    #[arg(value_enum)]
    shell: InteractiveShell,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum InteractiveShell {
    Bash,
    Zsh,
    Fish,
}

#[derive(Debug, clap::Args)]
pub(in crate::cli) struct CompleteLineFlags {
    /// Position of the word to complete
    index: usize,
    /// The typed words
    #[arg(last = true)]
    words: Vec<OsString>,
}

const BASH: &str = r#"# sessions: Ctrl-G opens the picker, Tab completes. Put this line into ~/.bashrc:
#   eval "$(sessions init bash)"
_sessions() {
    local line
    local -a lines=()
    while IFS= read -r line; do lines+=("$line"); done \
        < <(command sessions complete-line "$COMP_CWORD" -- "${COMP_WORDS[@]}" 2>/dev/null)
    COMPREPLY=()
    for line in "${lines[@]}"; do
        if [ "${#lines[@]}" -gt 1 ] && [ "$COMP_TYPE" != 37 ]; then
            COMPREPLY+=("${line/$'\t'/  }")
        else
            COMPREPLY+=("${line%%$'\t'*}")
        fi
    done
}
complete -o bashdefault -o default -o nosort -F _sessions sessions 2>/dev/null ||
    complete -o bashdefault -o default -F _sessions sessions
if [[ $- == *i* ]]; then
    bind -x '"\C-g": command sessions'
fi
"#;

const ZSH: &str = r#"# sessions: Ctrl-G opens the picker, Tab completes. Put this line into ~/.zshrc, after compinit:
#   eval "$(sessions init zsh)"
_sessions() {
    local line value
    local -a lines described
    lines=("${(@f)$(command sessions complete-line $((CURRENT - 1)) -- "${words[@]}" 2>/dev/null)}")
    for line in "${lines[@]}"; do
        [[ -z $line ]] && continue
        value=${${line%%$'\t'*}//:/\\:}
        if [[ $line == *$'\t'* ]]; then
            described+=("$value:${line#*$'\t'}")
        else
            described+=("$value")
        fi
    done
    if (( ${#described} )); then
        _describe -V sessions described
    else
        _files
    fi
}
(( $+functions[compdef] )) && compdef _sessions sessions
_sessions_picker() {
    zle -I
    command sessions < /dev/tty
    zle reset-prompt
}
zle -N _sessions_picker
bindkey '^G' _sessions_picker
"#;

const FISH: &str = r"# sessions: Ctrl-G opens the picker, Tab completes. Put this line into ~/.config/fish/config.fish:
#   sessions init fish | source
function __sessions_complete
    set -l before (commandline -opc)
    command sessions complete-line (count $before) -- $before (commandline -ct) 2>/dev/null
end
complete -c sessions -k -a '(__sessions_complete)'
function __sessions_picker
    command sessions
    commandline -f repaint
end
bind \cg __sessions_picker
";

/// Prints the code for a shell.
pub(in crate::cli) fn run(
    flags: &InitFlags,
    printer: &Printer,
) -> Result<CommandOutcome, CommandFailure> {
    printer.print_data(match flags.shell {
        InteractiveShell::Bash => BASH,
        InteractiveShell::Zsh => ZSH,
        InteractiveShell::Fish => FISH,
    })?;
    Ok(CommandOutcome::Done)
}

/// Prints the words that complete a command line of `program`, each with its description after a tab.
pub(in crate::cli) fn run_complete_line(
    flags: CompleteLineFlags,
    program: Command,
    store: &Path,
    printer: &Printer,
) -> Result<CommandOutcome, CommandFailure> {
    let mut lines = String::new();
    for (word, description) in complete_line(program, store, flags.words, flags.index)? {
        // A word from a log with a break cannot be a word of a line.
        if word.contains(char::is_control) {
            continue;
        }
        lines.push_str(&word);
        if let Some(description) = description {
            lines.push('\t');
            lines.push_str(&description.replace(['\n', '\r', '\t'], " "));
        }
        lines.push('\n');
    }
    printer.print_data(&lines)?;
    Ok(CommandOutcome::Done)
}
