//! Opens a link in the user's browser.
//!
//! Other users of the machine can read the arguments of a process, and the link has a secret. So the
//! browser opens a private file that leads to the link.

use std::io::{self, Write as _};
use std::path::PathBuf;
use std::process::{Command, Stdio};

use tempfile::TempPath;

use crate::config::environment::{find_program, read_variable};

/// Returns the program that opens pages in the user's browser; `None` if the user sees no browser of
/// this machine.
pub(super) fn find_browser() -> Option<PathBuf> {
    if read_variable("SSH_CONNECTION").is_some() || read_variable("CI").is_some() {
        return None;
    }
    if let Some(named) = read_variable("BROWSER") {
        return named.split(':').find_map(find_program);
    }
    if cfg!(windows) {
        return find_program("explorer");
    }
    if cfg!(target_os = "macos") {
        return find_program("open");
    }
    let has_display =
        ["WAYLAND_DISPLAY", "DISPLAY"].iter().any(|name| read_variable(name).is_some());
    ["wslview", "xdg-open"].into_iter().find_map(find_program).filter(|_| has_display)
}

/// Opens `link`. The returned file is needed until the page is open.
pub(super) fn open_link(browser: PathBuf, link: &str) -> io::Result<TempPath> {
    let mut file = tempfile::Builder::new().prefix("sessions-").suffix(".html").tempfile()?;
    writeln!(
        file,
        "<!doctype html><meta charset=\"utf-8\"><meta http-equiv=\"refresh\" content=\"0;url={link}\"><a href=\"{link}\">sessions</a>"
    )?;
    let path = file.into_temp_path();
    let mut command = Command::new(browser);
    command.arg(&path);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = command.spawn()?;
    // The program may run as long as the browser.
    std::thread::Builder::new().name("browser".to_owned()).spawn(move || child.wait())?;
    Ok(path)
}
