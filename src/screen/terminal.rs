//! The terminal while a screen is shown: it is set up here, and restored however the screen ends.
//!
//! Three things can end a screen without its own doing. An error or a panic of the thread that draws
//! runs the destructor of [`Screen`]. A panic hook restores the terminal before the message of a
//! panic is printed. A signal sets a flag, which the loop of the screen checks.

#[cfg(unix)]
use std::io::Read as _;
use std::io::{self, Write};
#[cfg(unix)]
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ratatui::Frame;
use ratatui::Terminal;
use ratatui::backend::CrosstermBackend;
use ratatui::crossterm::event::{
    self, DisableBracketedPaste, DisableMouseCapture, EnableBracketedPaste, EnableMouseCapture,
    Event,
};
use ratatui::crossterm::terminal::{
    EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode,
};
use ratatui::crossterm::{cursor, execute};
use ratatui::layout::Rect;

use crate::output::screen_writer;

/// True while a screen is shown.
static IS_SHOWN: AtomicBool = AtomicBool::new(false);

/// True after a panic of any thread while a screen was shown.
static HAS_PANICKED: AtomicBool = AtomicBool::new(false);

/// The exit code of a program that a signal ended is this plus the signal's number.
const SIGNAL_EXIT_CODE: usize = 128;

/// A terminal that shows a screen.
pub(super) struct Screen {
    terminal: Terminal<CrosstermBackend<Box<dyn Write + Send>>>,
    signals: SignalFlags,
}

impl Screen {
    /// Takes the terminal: keys and the mouse are read one by one, and the screen is empty.
    pub(super) fn open() -> io::Result<Self> {
        let signals = SignalFlags::register()?;
        restore_on_panic();
        enable_raw_mode()?;
        IS_SHOWN.store(true, Ordering::SeqCst);
        let mut writer = screen_writer();
        let opened = execute!(
            writer,
            EnterAlternateScreen,
            EnableMouseCapture,
            EnableBracketedPaste,
            cursor::Hide
        )
        .and_then(|()| Terminal::new(CrosstermBackend::new(writer)));
        match opened {
            Ok(terminal) => Ok(Self { terminal, signals }),
            Err(error) => {
                restore_terminal();
                Err(error)
            }
        }
    }

    /// Draws the screen.
    pub(super) fn draw(&mut self, render: impl FnOnce(&mut Frame<'_>)) -> io::Result<()> {
        self.terminal.draw(render).map(|_| ())
    }

    /// Returns the size of the screen.
    pub(super) fn area(&self) -> io::Result<Rect> {
        let size = self.terminal.size()?;
        Ok(Rect::new(0, 0, size.width, size.height))
    }

    /// Returns what ends a wait for events from another thread.
    pub(super) fn waker(&self) -> io::Result<ScreenWaker> {
        self.signals.waker()
    }

    /// Returns the events that arrived, after waiting for at most `wait` for the first one or for a
    /// [`ScreenWaker`].
    ///
    /// # Errors
    /// Fails if the terminal is gone, or after a panic of another thread.
    pub(super) fn read_events(&self, wait: Duration) -> io::Result<Vec<Event>> {
        if HAS_PANICKED.load(Ordering::SeqCst) {
            return Err(io::Error::other("an internal error ended the screen"));
        }
        let mut wait = self.signals.wait_for_input(wait)?;
        let mut events = Vec::new();
        while events.len() < MAX_EVENTS_PER_FRAME && event::poll(wait)? {
            events.push(event::read()?);
            wait = READ_WAIT;
        }
        Ok(events)
    }

    /// Returns the exit code of the program if a signal asked it to end.
    pub(super) fn signal_exit_code(&self) -> Option<u8> {
        let signal = self.signals.received.load(Ordering::SeqCst);
        let code = u8::try_from(SIGNAL_EXIT_CODE + signal).unwrap_or(u8::MAX);
        if signal == 0 { None } else { Some(code) }
    }

    /// Passes a text to the clipboard of the terminal.
    pub(super) fn copy_to_clipboard(&mut self, text: &str) -> io::Result<()> {
        let writer = self.terminal.backend_mut();
        writer.write_all(copy_sequence(text).as_bytes())?;
        io::Write::flush(writer)
    }
}

/// How long crossterm may take to read what has arrived. It reads nothing if it may not wait at all.
const READ_WAIT: Duration = Duration::from_micros(200);

/// The most events that are handled before the screen is drawn again.
const MAX_EVENTS_PER_FRAME: usize = 64;

impl Drop for Screen {
    fn drop(&mut self) {
        restore_terminal();
    }
}

/// Restores the terminal, if a screen is shown. An error could not be shown.
fn restore_terminal() {
    if !IS_SHOWN.swap(false, Ordering::SeqCst) {
        return;
    }
    let _ = execute!(
        screen_writer(),
        DisableBracketedPaste,
        DisableMouseCapture,
        LeaveAlternateScreen,
        cursor::Show
    );
    let _ = disable_raw_mode();
}

/// Has the terminal restored before the message of a panic is printed.
fn restore_on_panic() {
    let print_message = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        if IS_SHOWN.load(Ordering::SeqCst) {
            HAS_PANICKED.store(true, Ordering::SeqCst);
            restore_terminal();
        }
        print_message(panic);
    }));
}

/// The signal that asked the program to end, if one arrived.
struct SignalFlags {
    /// The number of the signal, or 0.
    received: Arc<AtomicUsize>,
    #[cfg(unix)]
    registered: Vec<signal_hook::SigId>,
    /// Has a byte to read after each signal, also after one that says that the size has changed, and
    /// after each call of a [`ScreenWaker`].
    #[cfg(unix)]
    wakes: UnixStream,
    #[cfg(unix)]
    wake_sender: UnixStream,
}

/// Ends the wait for events of the terminal, from any thread.
pub(super) struct ScreenWaker {
    #[cfg(unix)]
    sender: UnixStream,
}

impl ScreenWaker {
    pub(super) fn wake(&self) {
        // If the stream is full, the wait has ended anyway.
        #[cfg(unix)]
        let _ = (&self.sender).write_all(&[0]);
    }
}

impl SignalFlags {
    #[cfg(unix)]
    fn register() -> io::Result<Self> {
        use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGWINCH};
        use signal_hook::low_level::pipe;

        let received = Arc::new(AtomicUsize::new(0));
        let mut registered = Vec::new();
        for signal in [SIGHUP, SIGINT, SIGQUIT, SIGTERM] {
            let number = usize::try_from(signal).unwrap_or_default();
            let flag = Arc::clone(&received);
            registered.push(signal_hook::flag::register_usize(signal, flag, number)?);
        }
        let (wakes, wake_sender) = UnixStream::pair()?;
        wakes.set_nonblocking(true)?;
        wake_sender.set_nonblocking(true)?;
        for signal in [SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGWINCH] {
            registered.push(pipe::register(signal, wake_sender.try_clone()?)?);
        }
        Ok(Self { received, registered, wakes, wake_sender })
    }

    #[cfg(unix)]
    fn waker(&self) -> io::Result<ScreenWaker> {
        Ok(ScreenWaker { sender: self.wake_sender.try_clone()? })
    }

    /// Waits for input, for a signal, for a [`ScreenWaker`] or for the end of `wait`. Returns how long
    /// crossterm is to wait: it must not wait itself, because it does not return once the terminal is
    /// gone, and takes a whole core.
    ///
    /// # Errors
    /// Fails if the terminal is gone.
    #[cfg(unix)]
    fn wait_for_input(&self, wait: Duration) -> io::Result<Duration> {
        use rustix::event::{PollFd, PollFlags, Timespec, poll};

        let input = io::stdin();
        let mut polled =
            [PollFd::new(&input, PollFlags::IN), PollFd::new(&self.wakes, PollFlags::IN)];
        let timeout = Timespec::try_from(wait).map_err(io::Error::other)?;
        match poll(&mut polled, Some(&timeout)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        // Only that there was a byte matters, not how many there were.
        let _ = (&self.wakes).read(&mut [0; 64]);
        if polled[0].revents().intersects(PollFlags::HUP | PollFlags::ERR | PollFlags::NVAL) {
            return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the terminal is gone"));
        }
        Ok(READ_WAIT)
    }

    /// Returns a waker without effect: the wait is short while an answer may arrive.
    #[cfg(not(unix))]
    fn waker(&self) -> io::Result<ScreenWaker> {
        Ok(ScreenWaker {})
    }

    /// Leaves the wait to crossterm.
    #[cfg(not(unix))]
    fn wait_for_input(&self, wait: Duration) -> io::Result<Duration> {
        Ok(wait)
    }

    #[cfg(not(unix))]
    fn register() -> io::Result<Self> {
        Ok(Self { received: Arc::default() })
    }
}

#[cfg(unix)]
impl Drop for SignalFlags {
    fn drop(&mut self) {
        for id in self.registered.drain(..) {
            signal_hook::low_level::unregister(id);
        }
    }
}

/// Returns the sequence that asks the terminal to put `text` into the clipboard (OSC 52), over ssh as
/// well. The text is encoded, so it cannot end the sequence.
fn copy_sequence(text: &str) -> String {
    format!("\u{1b}]52;c;{}\u{7}", STANDARD.encode(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_cannot_end_the_sequence() {
        assert_eq!(copy_sequence("a-1"), "\u{1b}]52;c;YS0x\u{7}");
        let sequence = copy_sequence("\u{7}\u{1b}[2J");
        assert_eq!(sequence.matches(['\u{7}', '\u{1b}']).count(), 2);
    }
}
