//! A terminal for tests: the program runs in a pseudo-terminal, keys are typed into it, and the screen
//! is what a terminal would show.

use std::io::{Read as _, Write as _};
use std::num::NonZeroU16;
use std::path::Path;
use std::process::Child;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use pty_process::Size;
use pty_process::blocking::{Command, Pty, open};

use crate::env::TestEnv;

/// The longest wait for something on the screen.
const TIMEOUT: Duration = Duration::from_secs(20);

/// Keys by their names.
pub(crate) const ENTER: &str = "\r";
pub(crate) const ESCAPE: &str = "\u{1b}";
pub(crate) const TAB: &str = "\t";
pub(crate) const DOWN: &str = "\u{1b}[B";
pub(crate) const CONTROL_C: &str = "\u{3}";
pub(crate) const CONTROL_D: &str = "\u{4}";
pub(crate) const CONTROL_G: &str = "\u{7}";

/// What a terminal received.
struct Received {
    screen: vt100::Parser,
    bytes: Vec<u8>,
}

/// A program in a terminal.
pub(crate) struct TestTerminal {
    pty: Arc<Pty>,
    child: Child,
    received: Arc<Mutex<Received>>,
    /// The number of keys that were pressed.
    pub(crate) keys: usize,
}

impl TestTerminal {
    /// Starts the program with these arguments in a terminal of this size.
    pub(crate) fn start(env: &TestEnv, args: &[&str], size: (u16, u16)) -> Self {
        Self::start_program(env, Path::new(env!("CARGO_BIN_EXE_sessions")), args, size)
    }

    /// Starts any program, such as a shell, which finds the program under test in its PATH.
    pub(crate) fn start_program(
        env: &TestEnv,
        program: &Path,
        args: &[&str],
        (columns, rows): (u16, u16),
    ) -> Self {
        let (pty, child) = spawn(env, program, args, (columns, rows));
        let pty = Arc::new(pty);
        let received = Arc::new(Mutex::new(Received {
            screen: vt100::Parser::new(cells(rows), cells(columns), 0),
            bytes: Vec::new(),
        }));
        let (reader, sink) = (Arc::clone(&pty), Arc::clone(&received));
        std::thread::spawn(move || {
            let mut buffer = [0; 8192];
            // At the end of the program, the read fails.
            while let Ok(length @ 1..) = (&*reader).read(&mut buffer) {
                let mut received = sink.lock().expect("lock");
                received.screen.process(&buffer[..length]);
                received.bytes.extend_from_slice(&buffer[..length]);
            }
        });
        Self { pty, child, received, keys: 0 }
    }

    /// Presses one key.
    pub(crate) fn press(&mut self, key: &str) {
        self.keys += 1;
        self.write(key);
    }

    /// Types a text, one key for each character.
    pub(crate) fn type_text(&mut self, text: &str) {
        self.keys += text.chars().count();
        self.write(text);
    }

    /// Sends bytes that are not keys, such as those of a mouse.
    pub(crate) fn write(&mut self, bytes: &str) {
        (&*self.pty).write_all(bytes.as_bytes()).expect("types");
    }

    /// Returns the text of the screen.
    pub(crate) fn screen(&self) -> String {
        self.received.lock().expect("lock").screen.screen().contents()
    }

    /// Returns what `read` makes of the screen.
    pub(crate) fn with_screen<T>(&self, read: impl FnOnce(&vt100::Screen) -> T) -> T {
        read(self.received.lock().expect("lock").screen.screen())
    }

    /// Waits until the program has written nothing for half a second.
    pub(crate) fn wait_until_quiet(&self) {
        let mut length = 0;
        while length != self.output().len() {
            length = self.output().len();
            std::thread::sleep(Duration::from_millis(500));
        }
    }

    /// Returns everything that the program wrote.
    pub(crate) fn output(&self) -> String {
        String::from_utf8_lossy(&self.received.lock().expect("lock").bytes).into_owned()
    }

    /// Waits until the screen has a text.
    pub(crate) fn wait_for(&mut self, text: &str) {
        self.wait_until(text, |screen| screen.contains(text));
    }

    pub(crate) fn wait_for_all<const N: usize>(&mut self, texts: [&str; N]) {
        self.wait_until(&texts.join("' and '"), |screen| {
            texts.iter().all(|text| screen.contains(text))
        });
    }

    /// Waits until the screen is as wanted. `what` is for the message if it never is.
    pub(crate) fn wait_until(&mut self, what: &str, is_wanted: impl Fn(&str) -> bool) {
        let began = Instant::now();
        while !is_wanted(&self.screen()) {
            assert!(began.elapsed() < TIMEOUT, "no '{what}' on the screen:\n{}", self.screen());
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Changes the size of the terminal, which also sends the signal.
    pub(crate) fn resize(&mut self, columns: u16, rows: u16) {
        self.received
            .lock()
            .expect("lock")
            .screen
            .screen_mut()
            .set_size(cells(rows), cells(columns));
        self.pty.resize(Size::new(rows, columns)).expect("resizes");
    }

    /// Sends a signal to the program.
    pub(crate) fn send_signal(&self, name: &str) {
        let id = self.child.id().to_string();
        let status = std::process::Command::new("kill").args([name, &id]).status();
        assert!(status.expect("kill runs").success());
    }

    /// Waits for the end of the program, and returns its exit code.
    pub(crate) fn wait_for_end(&mut self) -> i32 {
        let began = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().expect("waits") {
                // The last bytes may still be on their way.
                std::thread::sleep(Duration::from_millis(50));
                return status.code().unwrap_or(-1);
            }
            assert!(began.elapsed() < TIMEOUT, "it does not end:\n{}", self.screen());
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Asserts that the terminal is as it was before the program.
    pub(crate) fn assert_restored(&self) {
        let received = self.received.lock().expect("lock");
        let screen = received.screen.screen();
        assert!(!screen.alternate_screen(), "the alternate screen is left");
        assert!(!screen.hide_cursor(), "the cursor is shown");
        assert!(!screen.bracketed_paste(), "pastes are plain");
        assert_eq!(screen.mouse_protocol_mode(), vt100::MouseProtocolMode::None);
    }
}

impl Drop for TestTerminal {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn cells(count: u16) -> NonZeroU16 {
    NonZeroU16::new(count).expect("a size")
}

/// Starts the program in a terminal of this size.
fn spawn(
    env: &TestEnv,
    program: &Path,
    args: &[&str],
    (columns, rows): (u16, u16),
) -> (Pty, Child) {
    let (pty, pts) = open().expect("a pseudo-terminal");
    pty.resize(Size::new(rows, columns)).expect("resizes");
    let bin = env.path("bin");
    let own = Path::new(env!("CARGO_BIN_EXE_sessions")).parent().expect("a folder");
    let command = Command::new(program)
        .args(args)
        .env_clear()
        .env("HOME", env.root.path())
        .env("SESSIONS_STORE", env.store())
        .env("TZ", "UTC")
        .env("TERM", "xterm-256color")
        .env("PATH", format!("{}:{}:/usr/bin:/bin", bin.display(), own.display()))
        .env("LD_LIBRARY_PATH", std::env::var_os("LD_LIBRARY_PATH").unwrap_or_default())
        .current_dir(env.root.path());
    let child = command.spawn(pts).expect("starts");
    (pty, child)
}

/// Starts the program in a terminal, closes the terminal once it shows `text`, and returns whether the
/// program then ends.
pub(crate) fn ends_with_its_terminal(env: &TestEnv, size: (u16, u16), text: &str) -> bool {
    let program = Path::new(env!("CARGO_BIN_EXE_sessions"));
    let (mut pty, mut child) = spawn(env, program, &[], size);
    let mut shown = vt100::Parser::new(cells(size.1), cells(size.0), 0);
    let mut buffer = [0; 8192];
    while !shown.screen().contents().contains(text) {
        let length = pty.read(&mut buffer).expect("reads");
        shown.process(&buffer[..length]);
    }
    drop(pty);

    let began = Instant::now();
    while began.elapsed() < TIMEOUT {
        if child.try_wait().expect("waits").is_some() {
            return true;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    child.kill().expect("kills");
    child.wait().expect("waits");
    false
}
