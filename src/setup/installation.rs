//! Finds out how this copy of the program was installed, from its path alone. Nothing asks a
//! registry whether there is a newer version.

use std::path::{Path, PathBuf};

use serde::Serialize;

/// The name of the package on PyPI and npm, and in Debian, Homebrew and Scoop.
const PACKAGE: &str = "sessions-mcp";

/// How a copy of the program was installed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Installation {
    pub version: &'static str,
    /// The program that runs.
    pub path: PathBuf,
    /// What installed it: `npm`, `pip`, `source` and others.
    pub installed_by: &'static str,
    /// The command that gets the newest version, or what to do if it is not one command.
    pub upgrade: String,
}

/// A way to install the program: a part of the paths that it gives, its name, and what upgrades it.
/// `PACKAGE` is replaced by the name of the package.
struct Installer {
    path_part: &'static str,
    name: &'static str,
    upgrade: &'static str,
}

/// The first that matches counts. Paths are compared with slashes, in lower case.
const INSTALLERS: &[Installer] = &[
    Installer { path_part: "/_npx/", name: "npx", upgrade: "npx -y PACKAGE@latest --version" },
    Installer {
        path_part: "/node_modules/",
        name: "npm",
        upgrade: "npm install -g PACKAGE@latest",
    },
    Installer { path_part: "/uv/archive-", name: "uvx", upgrade: "uvx PACKAGE@latest --version" },
    Installer { path_part: "/uv/tools/", name: "uv", upgrade: "uv tool upgrade PACKAGE" },
    Installer { path_part: "/pipx/venvs/", name: "pipx", upgrade: "pipx upgrade PACKAGE" },
    Installer { path_part: "/.cargo/bin/", name: "cargo", upgrade: "cargo binstall PACKAGE" },
    Installer { path_part: "/cellar/", name: "homebrew", upgrade: "brew upgrade PACKAGE" },
    Installer { path_part: "/nix/store/", name: "nix", upgrade: "nix profile upgrade PACKAGE" },
    Installer { path_part: "/scoop/apps/", name: "scoop", upgrade: "scoop update PACKAGE" },
    Installer {
        path_part: "/winget/packages/",
        name: "winget",
        upgrade: "winget upgrade AgentSessions.Sessions",
    },
    Installer {
        path_part: "/claude extensions/",
        name: "claude-desktop",
        upgrade: "Open the .mcpb bundle of the new release with Claude Desktop",
    },
    Installer {
        path_part: "/target/release/",
        name: "source",
        upgrade: "git pull && cargo xtask install",
    },
    Installer {
        path_part: "/target/debug/",
        name: "source",
        upgrade: "git pull && cargo xtask install",
    },
];

/// Returns how the program at `path` was installed. `path` has no links, because installers put
/// links on PATH.
pub fn describe_installation(path: &Path) -> Installation {
    let text = path.to_string_lossy().replace('\\', "/").to_lowercase();
    let known = INSTALLERS.iter().find(|installer| text.contains(installer.path_part));
    let (installed_by, upgrade) = match known {
        Some(installer) => (installer.name, installer.upgrade),
        None => describe_by_files(path),
    };
    Installation {
        version: env!("CARGO_PKG_VERSION"),
        path: path.to_owned(),
        installed_by,
        upgrade: upgrade.replace("PACKAGE", PACKAGE),
    }
}

/// Returns the installer, and what upgrades the program, from the files next to it.
fn describe_by_files(path: &Path) -> (&'static str, &'static str) {
    let prefix = path.parent().and_then(Path::parent);
    let has_file = |name: &str| prefix.is_some_and(|prefix| prefix.join(name).exists());
    if has_file("pyvenv.cfg") {
        ("pip", "pip install --upgrade PACKAGE")
    } else if path == Path::new("/usr/bin/sessions") && has_file("share/doc/sessions-mcp") {
        ("debian", "Download the .deb of the new release and install it with `dpkg -i`")
    } else if has_file("lib/sessions") {
        ("source", "git pull && cargo xtask install")
    } else {
        ("archive", "Run install.sh of the new release with the same --prefix")
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[track_caller]
    fn check(path: &str, installed_by: &str, upgrade: &str) {
        let found = describe_installation(Path::new(path));
        assert_eq!((found.installed_by, found.upgrade.as_str()), (installed_by, upgrade));
    }

    #[test]
    fn paths_show_what_installed_the_program() {
        check(
            "/home/mira/.npm/_npx/1a/node_modules/sessions-mcp-linux-x64/bin/sessions",
            "npx",
            "npx -y sessions-mcp@latest --version",
        );
        check(
            "/usr/lib/node_modules/sessions-mcp-linux-x64/bin/sessions",
            "npm",
            "npm install -g sessions-mcp@latest",
        );
        check(
            "/home/mira/.local/share/uv/tools/sessions-mcp/bin/sessions",
            "uv",
            "uv tool upgrade sessions-mcp",
        );
        check("/home/mira/.cargo/bin/sessions", "cargo", "cargo binstall sessions-mcp");
        check(
            "/opt/homebrew/Cellar/sessions-mcp/0.1.0/bin/sessions",
            "homebrew",
            "brew upgrade sessions-mcp",
        );
        check(
            r"C:\Users\mira\scoop\apps\sessions-mcp\current\sessions.exe",
            "scoop",
            "scoop update sessions-mcp",
        );
        let other = describe_installation(Path::new("/nowhere/bin/sessions"));
        assert_eq!(other.installed_by, "archive");
    }

    #[test]
    fn files_next_to_the_program_show_it_too() {
        let scratch = tempfile::tempdir().expect("tempdir");
        let program = scratch.path().join("bin/sessions");
        fs::create_dir_all(scratch.path().join("lib/sessions")).expect("creates");
        assert_eq!(describe_installation(&program).installed_by, "source");
        fs::write(scratch.path().join("pyvenv.cfg"), "").expect("writes");
        let found = describe_installation(&program);
        assert_eq!(found.upgrade, "pip install --upgrade sessions-mcp");
    }
}
