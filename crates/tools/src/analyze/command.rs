//! Compares command lines: which programs they run, where, and how similar two of them are.

use std::cmp::Ordering;

use base::paths::resolve_path;

use xxhash_rust::xxh3::xxh3_64;

/// Maximum number of bytes of a command line that are compared.
const MAX_COMPARED_BYTES: usize = 600;

/// Minimum percentage of words that two similar lines have in common if they run the same program.
const MIN_SAME_PROGRAM_PERCENT: usize = 40;

/// Minimum percentage of words that two similar lines have in common if they run different
/// programs.
const MIN_OTHER_PROGRAM_PERCENT: usize = 60;

/// Programs that do not show the purpose of a line.
const SILENT: &[&str] = &[
    "cd", "echo", "export", "set", "true", "false", "sleep", "source", ".", "printf", "pwd", "if",
    "fi", "for", "while", "done", "unset", "exit", "wait", "mkdir", "[", "test",
];

/// Words that may precede the program.
const BEFORE: &[&str] =
    &["sudo", "time", "timeout", "env", "nohup", "command", "exec", "!", "then", "do", "else"];

/// Programs whose first argument shows what they do.
const WITH_SUBCOMMAND: &[&str] = &[
    "git", "cargo", "npm", "pnpm", "yarn", "bun", "go", "docker", "kubectl", "gh", "uv", "pip",
    "pip3", "poetry", "make", "just", "mise", "npx", "bunx", "deno", "dotnet", "mvn", "gradle",
    "helm", "brew", "apt", "apt-get", "python", "python3", "node", "ruby", "rustup", "flutter",
    "mix", "composer", "bundle", "rake", "nix", "bazel",
];

/// Options that take a value and may precede a subcommand.
const WITH_VALUE: &[&str] = &["-C", "--prefix", "--cwd", "--manifest-path"];

/// A command line prepared for comparison.
pub(super) struct CommandLine {
    /// The programs, such as `cargo test`.
    programs: Vec<String>,
    /// Hashes of the words, sorted.
    words: Vec<u64>,
    /// The folder in which the line runs, and a hash of the line without the changes of folder
    /// that it begins with.
    folder: String,
    rest: u64,
}

impl CommandLine {
    /// Parses a command line that a call runs in `folder`; `None` means that the folder is not
    /// known.
    pub(super) fn parse(command: &str, folder: Option<&str>) -> Self {
        let mut place = folder.map(|folder| resolve_path(None, folder)).unwrap_or_default();
        let mut rest = command.trim();
        while let Some((folder, after)) = split_folder_change(rest) {
            place = resolve_path((!place.is_empty()).then_some(place.as_str()), folder);
            rest = after;
        }
        let rest = xxh3_64(rest.as_bytes());
        let command = &command[..command.floor_char_boundary(MAX_COMPARED_BYTES)];
        let words = command.split(is_separator).filter(|word| !word.is_empty());
        let mut words: Vec<u64> = words.map(|word| xxh3_64(word.as_bytes())).collect();
        words.sort_unstable();
        Self { programs: parse_programs(command), words, folder: place, rest }
    }

    /// Returns true if both lines run the same command in the same folder: `cd DIR && X` is `X` in
    /// DIR.
    pub(super) fn is_same_as(&self, other: &Self) -> bool {
        self.rest == other.rest && self.folder == other.folder
    }

    /// Returns true if the other line may be another attempt at the same thing: both run the same
    /// program for the same purpose, or share most of their words.
    pub(super) fn is_similar_to(&self, other: &Self) -> bool {
        let mut has_same_program = false;
        for program in &self.programs {
            if !other.programs.contains(program) {
                continue;
            }
            // A program with its subcommand shows the purpose.
            if program.contains(' ') {
                return true;
            }
            has_same_program = true;
        }
        let min_percent =
            if has_same_program { MIN_SAME_PROGRAM_PERCENT } else { MIN_OTHER_PROGRAM_PERCENT };
        self.shared_words_percent(other) >= min_percent
    }

    /// Returns the percentage of words that both lines have.
    fn shared_words_percent(&self, other: &Self) -> usize {
        let mut mine = self.words.iter().peekable();
        let mut theirs = other.words.iter().peekable();
        let mut common = 0;
        while let (Some(a), Some(b)) = (mine.peek(), theirs.peek()) {
            match a.cmp(b) {
                Ordering::Less => {
                    mine.next();
                }
                Ordering::Greater => {
                    theirs.next();
                }
                Ordering::Equal => {
                    common += 1;
                    mine.next();
                    theirs.next();
                }
            }
        }
        200 * common / (self.words.len() + other.words.len()).max(1)
    }
}

/// Splits `cd DIR && X` into the folder and `X`. Returns `None` for any other line.
fn split_folder_change(line: &str) -> Option<(&str, &str)> {
    let after_cd = line.strip_prefix("cd")?;
    let argument = after_cd.trim_start_matches([' ', '\t']);
    if argument.len() == after_cd.len() {
        return None;
    }
    let (folder, rest) = match argument.chars().next()? {
        quote @ ('"' | '\'') => argument[1..].split_once(quote)?,
        _ => {
            let end = argument.find(|c: char| c.is_whitespace() || ";&|".contains(c))?;
            argument.split_at(end)
        }
    };
    let rest = rest.trim_start_matches([' ', '\t']);
    let rest = rest.strip_prefix("&&").or_else(|| rest.strip_prefix([';', '\n']))?;
    Some((folder, rest.trim_start())).filter(|(_, rest)| !rest.is_empty())
}

/// Returns true for the characters between two words.
fn is_separator(c: char) -> bool {
    c.is_whitespace() || "\"'=;|&()".contains(c)
}

/// Returns the programs that a command line runs, with their subcommands. The content of a
/// here-document is not read as commands.
pub(super) fn parse_programs(command: &str) -> Vec<String> {
    let command = command.split("<<").next().unwrap_or_default();
    let parts = command.split(['\n', ';']).flat_map(|part| part.split("&&"));
    let mut programs: Vec<String> =
        parts.flat_map(|part| part.split("||")).filter_map(parse_program).collect();
    programs.dedup();
    programs
}

/// Programs that only read.
const READING: &[&str] = &[
    "ls",
    "cat",
    "head",
    "tail",
    "grep",
    "rg",
    "find",
    "fd",
    "sed",
    "awk",
    "wc",
    "which",
    "type",
    "tree",
    "file",
    "stat",
    "du",
    "df",
    "ps",
    "jq",
    "diff",
    "sort",
    "uniq",
    "cut",
    "less",
    "man",
    "whoami",
    "date",
    "env",
    "uname",
    "git status",
    "git diff",
    "git log",
    "git show",
    "git branch",
    "git blame",
    "git remote",
    "git ls-files",
    "gh pr view",
    "gh run view",
    "gh pr",
    "gh run",
    "gh issue",
    "gh api",
];

/// Returns true if every program of a command line only reads, or if it runs none.
pub(super) fn is_reading_command(command: &str) -> bool {
    !command.contains("sed -i")
        && !writes_file(command)
        && parse_programs(command).iter().all(|program| READING.contains(&program.as_str()))
}

/// Returns true if a command line redirects output into a file, outside of quotes and of the text after
/// `<<`.
fn writes_file(command: &str) -> bool {
    let mut quote = None;
    let mut is_document = false;
    let mut rest = command.chars();
    while let Some(c) = rest.next() {
        match (c, quote) {
            (c, Some(open)) if c == open => quote = None,
            (_, Some('\'')) => {}
            ('\\', _) => {
                rest.next();
            }
            (_, Some(_)) => {}
            ('"' | '\'', None) => quote = Some(c),
            ('<', None) if rest.as_str().starts_with('<') => is_document = true,
            ('\n', None) if is_document => return false,
            ('>', None) => {
                let target = rest.as_str().trim_start_matches(['>', '|', ' ']);
                // The last one is PowerShell's.
                if !["&", "/dev/null", "$null"].iter().any(|none| target.starts_with(none)) {
                    return true;
                }
            }
            _ => {}
        }
    }
    false
}

/// Returns the first program of a pipe.
fn parse_program(part: &str) -> Option<String> {
    let part = part.split('|').next().unwrap_or_default();
    let mut words = part.split_whitespace().skip_while(|word| is_prefix_word(word));
    let name = words.next()?.trim_matches(['(', ')', '{', '}', '"', '\'']);
    let name = name.rsplit('/').next().unwrap_or(name);
    if name.is_empty() || SILENT.contains(&name) {
        return None;
    }
    let mut program = name.to_owned();
    if !WITH_SUBCOMMAND.contains(&name) {
        return Some(program);
    }
    while let Some(word) = words.next() {
        if WITH_VALUE.contains(&word) {
            words.next();
        } else if !word.starts_with(['-', '+']) {
            program.push(' ');
            program.push_str(word);
            // `npm run` alone does not show the purpose.
            if !matches!(word, "run" | "exec" | "x" | "tool") {
                break;
            }
        }
    }
    Some(program)
}

/// Returns true for words such as `sudo`, `RUST_LOG=debug` and the `60` of `timeout 60`.
fn is_prefix_word(word: &str) -> bool {
    let is_assignment = word.split_once('=').is_some_and(|(name, _)| {
        !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
    });
    let duration = word.trim_end_matches(['s', 'm', 'h']);
    let is_duration =
        !duration.is_empty() && duration.bytes().all(|b| b.is_ascii_digit() || b == b'.');
    BEFORE.contains(&word) || is_assignment || is_duration
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_include_their_subcommands() {
        for (command, want) in [
            ("cargo test --lib retry 2>&1", &["cargo test"][..]),
            ("cd /x && RUST_LOG=debug cargo +nightly test | tail -5", &["cargo test"][..]),
            ("git -C /a/b status --short; ls", &["git status", "ls"][..]),
            (
                "npm --prefix web run check && npm run build",
                &["npm run check", "npm run build"][..],
            ),
            ("timeout 60 /usr/bin/python3 - <<'E'\nimport os; rm\nE", &["python3"][..]),
            ("echo a", &[][..]),
            ("", &[][..]),
        ] {
            assert_eq!(parse_programs(command), want, "{command}");
        }
    }

    #[test]
    fn looking_is_distinguished_from_changing() {
        for command in [
            "ls -la",
            "cd x && git status",
            "cat a | wc -l",
            "echo done",
            "grep \"a -> b\" x",
            "rg 'it > that' 2> /dev/null",
            "find . 2>&1 | head",
            "cat <<E\na > b\nE",
            "",
        ] {
            assert!(is_reading_command(command), "{command}");
        }
        for command in [
            "npm install",
            "sed -i s/a/b/ x",
            "cat a > b",
            "echo x >file",
            "ls >>log",
            "cat <<E >x\na\nE",
            "ls && rm x",
        ] {
            assert!(!is_reading_command(command), "{command}");
        }
    }

    #[test]
    fn another_attempt_is_distinguished_from_another_command() {
        let resembles = |a: &str, b: &str| {
            CommandLine::parse(a, None).is_similar_to(&CommandLine::parse(b, None))
        };
        assert!(resembles("cargo test --lib retry", "cargo test"));
        assert!(resembles("python x.py --all data", "python3 x.py --all data"));
        assert!(resembles("rg -n foo src/a docs", "rg -n foo src"));
        assert!(!resembles("rg -n foo src/a", "rg bar"));
        assert!(!resembles("cargo test", "cargo build"));
        assert!(!resembles("ls", "cat x"));
        assert!(!resembles("", ""));
    }

    #[test]
    fn a_command_after_cd_is_the_command_there() {
        let is_same = |a: &str, a_in: Option<&str>, b: &str, b_in: Option<&str>| {
            CommandLine::parse(a, a_in).is_same_as(&CommandLine::parse(b, b_in))
        };
        let repo = Some("/home/m/harbor");
        assert!(is_same("cd /home/m/harbor && cargo test", None, "cargo test", repo));
        assert!(is_same("cd web && npm test", repo, "npm test", Some("/home/m/harbor/web/")));
        assert!(is_same("cd \"web\"; npm test", repo, "cd /home/m/harbor/web\nnpm test", None));
        assert!(is_same("cd web && cd .. && ls", repo, " ls", repo));
        assert!(is_same("cargo test", None, "cargo test", None));
        assert!(!is_same("cd web && npm test", repo, "npm test", repo));
        assert!(!is_same("cargo test", repo, "cargo test", Some("/home/m/pier")));
        assert!(!is_same("cd web", repo, "", Some("/home/m/harbor/web")));
        assert!(!is_same("cd web || ls", repo, "ls", Some("/home/m/harbor/web")));
    }
}
