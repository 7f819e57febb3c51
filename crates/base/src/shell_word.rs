//! Quotes words of printed commands, so that a shell takes ids, paths and names of logs literally.

/// Characters besides letters and digits that no shell takes for anything else within a word.
const PLAIN: &str = "-_./:=@%+,";

/// Returns a word as it is typed at a shell of this system: in a POSIX shell or, on Windows, in
/// PowerShell.
pub fn shell_word(word: &str) -> String {
    if cfg!(windows) { powershell_word(word) } else { posix_word(word) }
}

/// Returns these words as a command for a shell of this system.
pub fn shell_line<W: AsRef<str>>(words: impl IntoIterator<Item = W>) -> String {
    let words: Vec<String> = words.into_iter().map(|word| shell_word(word.as_ref())).collect();
    words.join(" ")
}

/// Returns a word for a POSIX shell, for zsh and for fish.
fn posix_word(word: &str) -> String {
    if is_plain(word, PLAIN) {
        return word.to_owned();
    }
    // Within single quotes, fish gives a backslash before a quote or a backslash a meaning.
    let mut quoted = String::with_capacity(word.len() + 2);
    for part in word.split_inclusive(['\'', '\\']) {
        let literal = part.trim_end_matches(['\'', '\\']);
        if !literal.is_empty() {
            quoted.push_str(&format!("'{literal}'"));
        }
        for mark in part[literal.len()..].chars() {
            quoted.push('\\');
            quoted.push(mark);
        }
    }
    if quoted.is_empty() { "''".to_owned() } else { quoted }
}

/// Returns a word for PowerShell. Within double quotes, most paths mean the same in cmd.exe and in the
/// shell of Git.
fn powershell_word(word: &str) -> String {
    if is_plain(word, "-_./:=+") {
        word.to_owned()
    } else if is_plain(word, "-_./:=@+,~ \\()") && !word.ends_with('\\') && !word.contains(r"\\") {
        format!("\"{word}\"")
    } else {
        format!("'{}'", word.replace('\'', "''"))
    }
}

/// Returns true if a word has only letters, digits and these characters. A shell may replace an equals
/// sign at its beginning.
fn is_plain(word: &str, others: &str) -> bool {
    !word.is_empty()
        && !word.starts_with('=')
        && word.chars().all(|c| c.is_ascii_alphanumeric() || others.contains(c))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_quoted_where_a_shell_would_read_them() {
        for (word, posix, powershell) in [
            ("9ae82b3a:14", "9ae82b3a:14", "9ae82b3a:14"),
            ("", "''", "''"),
            ("my code", "'my code'", "\"my code\""),
            ("$(touch x)", "'$(touch x)'", "'$(touch x)'"),
            ("it's", r"'it'\''s'", "'it''s'"),
            ("'", r"\'", "''''"),
            (r"C:\my code\x", r"'C:'\\'my code'\\'x'", r#""C:\my code\x""#),
            (r"C:\", r"'C:'\\", r"'C:\'"),
            (r"\\pier\x", r"\\\\'pier'\\'x'", r"'\\pier\x'"),
            ("=ls", "'=ls'", "'=ls'"),
            ("a~2", "'a~2'", "\"a~2\""),
            ("%PATH%", "%PATH%", "'%PATH%'"),
        ] {
            assert_eq!(posix_word(word), posix, "{word}");
            assert_eq!(powershell_word(word), powershell, "{word}");
        }
    }
}
