//! Finds out how this copy of the program was installed, from its path alone. Nothing asks a
//! registry whether there is a newer version.

use std::path::{Path, PathBuf};
use std::{fs, io};

use serde::Serialize;

use base::shell_word::shell_word;

/// The name of the package on PyPI and npm, and in Debian, Homebrew and Scoop.
const PACKAGE: &str = env!("CARGO_PKG_NAME");

/// The folder next to `bin` in which a build from source has its library.
const OWN_FOLDER: &str = "lib/sessions";

/// How a copy of the program was installed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Installation {
    pub version: &'static str,
    /// The program that runs.
    pub path: PathBuf,
    /// What installed it: `npm`, `pip`, `source` and others.
    pub installed_by: &'static str,
    /// The command that gets the newest version.
    pub upgrade: String,
    /// The command that removes the program; `None` if its files can be removed.
    #[serde(skip)]
    pub remove: Option<String>,
}

/// A way to install the program: a part of the paths that it gives, its name, and the commands that
/// upgrade and remove the program.
struct Installer {
    path_part: &'static str,
    name: &'static str,
    upgrade: &'static str,
    remove: &'static str,
}

const fn installer(
    path_part: &'static str,
    name: &'static str,
    upgrade: &'static str,
    remove: &'static str,
) -> Installer {
    Installer { path_part, name, upgrade, remove }
}

/// The first that matches counts. Paths are compared with slashes, in lower case. In commands, `PACKAGE`
/// is the name of the package, `REPOSITORY` the address of the sources, and `PREFIX` the folder above
/// `bin`.
const INSTALLERS: &[Installer] = &[
    installer("/_npx/", "npx", "npx -y PACKAGE@latest --version", "npm cache clean --force"),
    installer("/node_modules/", "npm", "npm install -g PACKAGE@latest", "npm uninstall -g PACKAGE"),
    installer("/uv/archive-", "uvx", "uvx PACKAGE@latest --version", "uv cache clean PACKAGE"),
    installer("/uv/tools/", "uv", "uv tool upgrade PACKAGE", "uv tool uninstall PACKAGE"),
    installer("/pipx/venvs/", "pipx", "pipx upgrade PACKAGE", "pipx uninstall PACKAGE"),
    installer("/.cargo/bin/", "cargo", "cargo binstall PACKAGE", "cargo uninstall PACKAGE"),
    installer("/cellar/", "homebrew", "brew upgrade PACKAGE", "brew uninstall PACKAGE"),
    installer("/nix/store/", "nix", "nix profile upgrade PACKAGE", "nix profile remove PACKAGE"),
    installer("/scoop/apps/", "scoop", "scoop update PACKAGE", "scoop uninstall PACKAGE"),
    installer(
        "/winget/packages/",
        "winget",
        "winget upgrade AgentSessions.Sessions",
        "winget uninstall AgentSessions.Sessions",
    ),
    installer(
        "/claude extensions/",
        "claude-desktop",
        "gh release download --repo REPOSITORY --pattern '*.mcpb' && open PACKAGE-*.mcpb",
        "open -a Claude",
    ),
    installer("/target/release/", "source", "git pull && cargo xtask install", "cargo clean"),
    installer("/target/debug/", "source", "git pull && cargo xtask install", "cargo clean"),
];

/// Returns how the program at `path` was installed. `path` has no links, because installers put
/// links on PATH.
pub fn describe_installation(path: &Path) -> Installation {
    let text = path.to_string_lossy().replace('\\', "/").to_lowercase();
    let known = INSTALLERS.iter().find(|installer| text.contains(installer.path_part));
    let (installed_by, upgrade, remove) = match known {
        Some(installer) => (installer.name, installer.upgrade, Some(installer.remove)),
        None => describe_by_files(path),
    };
    let prefix = path.parent().and_then(Path::parent).unwrap_or(Path::new("/"));
    let complete = |command: &str| {
        command
            .replace("PACKAGE", PACKAGE)
            .replace("REPOSITORY", env!("CARGO_PKG_REPOSITORY"))
            .replace("PREFIX", &shell_word(&prefix.to_string_lossy()))
    };
    Installation {
        version: env!("CARGO_PKG_VERSION"),
        path: path.to_owned(),
        installed_by,
        upgrade: complete(upgrade),
        remove: remove.map(complete),
    }
}

/// Returns the installer, and what upgrades and removes the program, from the files next to it.
fn describe_by_files(path: &Path) -> (&'static str, &'static str, Option<&'static str>) {
    let prefix = path.parent().and_then(Path::parent);
    let has_file = |name: &str| prefix.is_some_and(|prefix| prefix.join(name).exists());
    if has_file("pyvenv.cfg") {
        let pip = "PREFIX/bin/pip install --upgrade PACKAGE";
        ("pip", pip, Some("PREFIX/bin/pip uninstall PACKAGE"))
    } else if path == Path::new("/usr/bin/sessions")
        && has_file(concat!("share/doc/", env!("CARGO_PKG_NAME")))
    {
        let download = "gh release download --repo REPOSITORY --pattern '*.deb' && sudo dpkg -i PACKAGE_*_$(dpkg --print-architecture).deb";
        ("debian", download, Some("sudo dpkg -r PACKAGE"))
    } else if has_file(OWN_FOLDER) {
        ("source", "git pull && cargo xtask install --prefix PREFIX", None)
    } else {
        let script =
            "curl -fsSL REPOSITORY/releases/latest/download/install.sh | sh -s -- --prefix PREFIX";
        ("archive", script, None)
    }
}

/// Removes the files of a program that no package manager installed.
///
/// # Errors
/// Fails if the program cannot be removed; Windows keeps a program that runs.
pub fn remove_program(path: &Path) -> io::Result<()> {
    if let Some(prefix) = path.parent().and_then(Path::parent) {
        match fs::remove_dir_all(prefix.join(OWN_FOLDER)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            Ok(()) | Err(_) => {}
        }
    }
    fs::remove_file(path)
}

#[cfg(test)]
mod tests {
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
        assert!(other.upgrade.ends_with("/install.sh | sh -s -- --prefix /nowhere"), "{other:?}");
        assert_eq!(other.remove, None);
    }

    #[test]
    fn files_next_to_the_program_show_it_too() {
        let scratch = tempfile::tempdir().expect("tempdir");
        let program = scratch.path().join("bin/sessions");
        fs::create_dir_all(scratch.path().join("lib/sessions")).expect("creates");
        assert_eq!(describe_installation(&program).installed_by, "source");
        fs::write(scratch.path().join("pyvenv.cfg"), "").expect("writes");
        let found = describe_installation(&program);
        let pip = format!("{}/bin/pip install --upgrade sessions-mcp", scratch.path().display());
        assert_eq!(found.upgrade, pip);
    }
}
