//! `sessions init`: prints the code that connects a shell with this program, and completes its command
//! lines.

use std::ffi::OsString;
use std::io;
use std::path::Path;

use clap::{Command, ValueEnum};

use crate::cli::bash_line::{BashPlace, harmless_description};
use crate::cli::completion::complete_line;
use crate::cli::exit::{CommandOutcome, CommandResult};
use crate::output::Printer;

#[derive(Debug, clap::Args)]
pub(in crate::cli) struct InitFlags {
    /// Shell
    #[arg(value_enum)]
    shell: InteractiveShell,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
pub(in crate::cli) enum InteractiveShell {
    Bash,
    Zsh,
    Fish,
}

#[derive(Debug, clap::Args)]
pub(in crate::cli) struct CompleteLineFlags {
    /// Shell
    #[arg(value_enum)]
    shell: InteractiveShell,
    /// Add descriptions if there are several candidates
    #[arg(long)]
    describe: bool,
    /// The typed words, the last one possibly incomplete; for bash the line up to the cursor and
    /// the end of it that is replaced
    #[arg(last = true)]
    words: Vec<OsString>,
}

/// Descriptions follow the candidates only where bash lists them or inserts their common beginning: at
/// Tab (9), `?` (63), `!` (33) and `@` (64). Other keys insert candidates as they are.
const BASH_COMPLETION: &str = r#"_sessions() {
    local line describe=
    case "$COMP_TYPE" in 9 | 33 | 63 | 64) describe=--describe ;; esac
    COMPREPLY=()
    while IFS= read -r line; do COMPREPLY+=("$line"); done \
        < <(command sessions complete-line bash $describe -- \
            "${COMP_LINE:0:COMP_POINT}" "$2" 2>/dev/null)
}
complete -o bashdefault -o default -o nosort -F _sessions sessions 2>/dev/null ||
    complete -o bashdefault -o default -F _sessions sessions
"#;

/// Readline leaves the terminal as it needs it for single keys. Questions, and agents that are resumed,
/// need its usual state. Without the trap, Ctrl-C would end the function before it restores the other.
const BASH_KEY: &str = r#"_sessions_picker() {
    local state
    state=$(stty -g)
    stty icanon echo icrnl isig iexten opost
    (trap : INT; command sessions)
    stty "$state"
}
if [[ $- == *i* ]]; then
    bind -x '"\C-g": _sessions_picker'
fi
"#;

/// `compadd` quotes what it inserts for the place of the cursor. A percent sign in a listed line would
/// change its style.
const ZSH_COMPLETION: &str = r#"_sessions() {
    local line
    local -a lines values listed
    lines=("${(@f)$(command sessions complete-line zsh --describe -- \
        "${(@Q)words[1,CURRENT-1]}" "${(Q)PREFIX}" 2>/dev/null)}")
    for line in "${lines[@]}"; do
        [[ -z $line ]] && continue
        values+=("${line%%$'\t'*}")
        listed+=("${${line//\%/%%}/$'\t'/  }")
    done
    if (( ${#values} )); then
        compadd -U -V sessions -l -d listed -a values
    else
        _files
    fi
}
if [[ ${funcstack[1]-} == _sessions ]]; then
    _sessions "$@"
elif (( $+functions[compdef] )); then
    compdef _sessions sessions
fi
"#;

const ZSH_KEY: &str = r#"_sessions_picker() {
    zle -I
    command sessions < /dev/tty
    zle reset-prompt
}
zle -N _sessions_picker
bindkey '^G' _sessions_picker
"#;

/// Fish quotes what it inserts for the place of the cursor.
const FISH_COMPLETION: &str = r"function __sessions_complete
    set -l before (commandline -opc)
    command sessions complete-line fish --describe -- $before (commandline -ct) 2>/dev/null
end
complete -c sessions -k -a '(__sessions_complete)'
";

/// As in bash, the terminal is in the state for single keys.
const FISH_KEY: &str = r"function __sessions_picker
    set -l state (stty -g)
    stty icanon echo icrnl isig iexten opost
    command sessions
    stty $state
    commandline -f repaint
end
bind \cg __sessions_picker
";

/// Prints the code for a shell.
pub(in crate::cli) fn run(flags: &InitFlags, printer: &Printer) -> CommandResult {
    let (place, key) = match flags.shell {
        InteractiveShell::Bash => ("Add this line to ~/.bashrc", BASH_KEY),
        InteractiveShell::Zsh => ("Add this line to ~/.zshrc, after compinit", ZSH_KEY),
        InteractiveShell::Fish => ("Add this line to ~/.config/fish/config.fish", FISH_KEY),
    };
    let line = match flags.shell {
        InteractiveShell::Bash => r#"eval "$(sessions init bash)""#,
        InteractiveShell::Zsh => r#"eval "$(sessions init zsh)""#,
        InteractiveShell::Fish => "sessions init fish | source",
    };
    let completion = completion_code(flags.shell);
    printer.print_data(&format!(
        "# sessions: Ctrl-G opens the picker, Tab completes. {place}:\n#   {line}\n{completion}{key}"
    ))?;
    Ok(CommandOutcome::Done)
}

/// Returns the code with which a shell completes the command lines of this program.
pub(super) fn completion_code(shell: InteractiveShell) -> &'static str {
    match shell {
        InteractiveShell::Bash => BASH_COMPLETION,
        InteractiveShell::Zsh => ZSH_COMPLETION,
        InteractiveShell::Fish => FISH_COMPLETION,
    }
}

/// Prints what completes the last word of a command line of `program`, one candidate a line, as the code
/// of the shell needs it.
pub(in crate::cli) fn run_complete_line(
    flags: CompleteLineFlags,
    program: Command,
    store: &Path,
    printer: &Printer,
) -> CommandResult {
    let CompleteLineFlags { shell, describe, mut words } = flags;
    let lines = match shell {
        InteractiveShell::Bash => complete_in_bash(program, store, &words, describe)?,
        InteractiveShell::Zsh => complete_words(program, store, words, describe)?,
        InteractiveShell::Fish => {
            if let Some(last) = words.last_mut() {
                *last = unquote_fish_word(&last.to_string_lossy()).into();
            }
            complete_words(program, store, words, describe)?
        }
    };
    printer.print_data(&lines)?;
    Ok(CommandOutcome::Done)
}

/// Returns the candidates for bash: the texts that are inserted. `line` has the line up to the cursor,
/// and the end of it that is replaced. If there are several, each has its description after it.
fn complete_in_bash(
    program: Command,
    store: &Path,
    line: &[OsString],
    describe: bool,
) -> io::Result<String> {
    let mut lines = String::new();
    let place = match line {
        [line, replaced] => line.to_str().zip(replaced.to_str()),
        _ => None,
    };
    let place = place.and_then(|(line, replaced)| BashPlace::find(line, replaced));
    let Some(place) = place else { return Ok(lines) };
    let words = place.words.iter().map(OsString::from).collect();
    let candidates = complete_line(program, store, words)?;
    let is_described = describe && candidates.len() > 1;
    for candidate in candidates {
        let Some(text) = place.quote(&candidate.value) else { continue };
        lines.push_str(&text);
        if let Some(description) = candidate.description.filter(|_| is_described) {
            lines.push_str("  ");
            lines.push_str(&harmless_description(&description));
        }
        lines.push('\n');
    }
    Ok(lines)
}

/// Returns the candidates for a shell that quotes them itself: the words, each with its description
/// after a tab.
fn complete_words(
    program: Command,
    store: &Path,
    words: Vec<OsString>,
    describe: bool,
) -> io::Result<String> {
    let mut lines = String::new();
    for candidate in complete_line(program, store, words)? {
        lines.push_str(&candidate.value);
        if let Some(description) = candidate.description.filter(|_| describe) {
            lines.push('\t');
            lines.push_str(&description);
        }
        lines.push('\n');
    }
    Ok(lines)
}

/// Returns a word that is being typed in fish without its quotes. Fish compares it again with the
/// candidates.
fn unquote_fish_word(word: &str) -> String {
    let mut value = String::with_capacity(word.len());
    let mut quote = None;
    let mut chars = word.chars().peekable();
    while let Some(c) = chars.next() {
        match (quote, c) {
            (None, '\'' | '"') => quote = Some(c),
            (Some(open), _) if c == open => quote = None,
            (None, '\\') => value.extend(chars.next()),
            (Some('\''), '\\') => {
                value.push(chars.next_if(|next| matches!(next, '\\' | '\'')).unwrap_or(c));
            }
            (Some(_), '\\') => {
                value.push(chars.next_if(|next| matches!(next, '\\' | '"' | '$')).unwrap_or(c));
            }
            (_, c) => value.push(c),
        }
    }
    value
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_of_fish_loses_its_quotes() {
        for (typed, value) in [
            (r"a\ b\$c", "a b$c"),
            (r"'a\'b\c", r"a'b\c"),
            (r#""a\"b\$c\d"#, r#"a"b$c\d"#),
            (r#"'a'"b"c\"#, "abc"),
        ] {
            assert_eq!(unquote_fish_word(typed), value, "{typed}");
        }
    }
}
