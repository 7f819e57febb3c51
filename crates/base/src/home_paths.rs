//! Replaces the paths of home folders in texts, for what leaves the machine.

use std::borrow::Cow;
use std::path::Path;

use regex::{Regex, escape};

/// What a home folder is replaced by.
const HOME: &str = "~";

/// Minimum length in bytes of a home folder that is searched for. The home of some containers is
/// `/`, which every path begins with.
const MIN_HOME_BYTES: usize = 3;

/// The homes of other users and machines: `/home/NAME`, `/Users/NAME`, `C:\Users\NAME`, the last
/// also as in JSON.
const USUAL_HOMES: &str =
    r#"[A-Za-z]:\\{1,2}Users\\{1,2}[^/\\\s"'<>|:*?]+|/(?:home|Users)/[^/\\\s"'<>|:*?]+"#;

/// Finds the paths of home folders.
pub struct HomePaths(Regex);

impl HomePaths {
    /// Returns what finds `home`, the homes of other users and machines, and the form in which
    /// agents name the folders of projects: `-home-mira-code`. `None` if no pattern can be built,
    /// which no path causes.
    pub fn new(home: &Path) -> Option<Self> {
        let home = home.to_string_lossy();
        let home = home.trim_end_matches(['/', '\\']);
        let mut patterns = Vec::new();
        if home.len() >= MIN_HOME_BYTES {
            let dashed: String =
                home.chars().map(|c| if c.is_alphanumeric() { c } else { '-' }).collect();
            for form in [home.to_owned(), home.replace('\\', "\\\\"), dashed] {
                patterns.push(format!(r"{}\b", escape(&form)));
            }
        }
        patterns.push(USUAL_HOMES.to_owned());
        Regex::new(&patterns.join("|")).ok().map(Self)
    }

    /// Returns a text with `~` instead of every home folder.
    pub fn replace<'t>(&self, text: &'t str) -> Cow<'t, str> {
        self.0.replace_all(text, HOME)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn homes_are_replaced_in_every_form_and_other_paths_stay() {
        let homes = HomePaths::new(Path::new("/root/mira/")).expect("builds");
        for (text, wanted) in [
            ("cat /root/mira/code/a.rs", "cat ~/code/a.rs"),
            ("/root/mirabelle/x", "/root/mirabelle/x"),
            ("~/.claude/projects/-root-mira-code/s.jsonl", "~/.claude/projects/~-code/s.jsonl"),
            ("cd /home/tom && ls", "cd ~ && ls"),
            ("/Users/tom/x:/Users/ann", "~/x:~"),
            ("C:/Users/Tom/x", "C:~/x"),
            (r"C:\Users\Tom\x and C:\\Users\\Tom\\x", r"~\x and ~\\x"),
            ("/usr/home.txt", "/usr/home.txt"),
        ] {
            assert_eq!(homes.replace(text), wanted);
        }
    }

    #[test]
    fn a_home_that_every_path_begins_with_is_not_replaced() {
        let homes = HomePaths::new(Path::new("/")).expect("builds");
        assert_eq!(homes.replace("/etc/hosts"), "/etc/hosts");
    }
}
