//! The terminal while a screen is shown: it is set up here, and restored however the screen ends.
//!
//! Three things can end a screen without its own doing. An error or a panic of the thread that draws
//! runs the destructor of [`Screen`]. A panic hook restores the terminal before the message of a
//! panic is printed. A signal sets a flag, which the loop of the screen checks.

use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

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

use super::clipboard;
use crate::output::screen_writer;

/// True while a screen is shown.
static IS_SHOWN: AtomicBool = AtomicBool::new(false);

/// True after a panic of any thread while a screen was shown.
static HAS_PANICKED: AtomicBool = AtomicBool::new(false);

/// The exit code of a program that a signal ended is this plus the signal's number.
const SIGNAL_EXIT_CODE: usize = 128;

/// The exit code of a program whose terminal is gone.
#[cfg(unix)]
const HANGUP_EXIT_CODE: i32 = 129;

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

    /// Returns the events that arrived, after waiting for the first one for at most `wait`.
    ///
    /// # Errors
    /// Fails if the terminal is gone, or after a panic of another thread.
    pub(super) fn read_events(&self, wait: Duration) -> io::Result<Vec<Event>> {
        if HAS_PANICKED.load(Ordering::SeqCst) {
            return Err(io::Error::other("an internal error ended the screen"));
        }
        let mut events = Vec::new();
        let mut wait = wait;
        while events.len() < MAX_EVENTS_PER_FRAME && event::poll(wait)? {
            events.push(event::read()?);
            wait = Duration::ZERO;
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
        writer.write_all(clipboard::copy_sequence(text).as_bytes())?;
        io::Write::flush(writer)
    }
}

/// The most events that are handled before the screen is drawn again.
const MAX_EVENTS_PER_FRAME: usize = 64;

impl Drop for Screen {
    fn drop(&mut self) {
        restore_terminal();
    }
}

/// Restores the terminal, if a screen is shown. Nobody could read an error.
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
}

impl SignalFlags {
    #[cfg(unix)]
    fn register() -> io::Result<Self> {
        use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};
        use signal_hook::flag;

        let received = Arc::new(AtomicUsize::new(0));
        let mut registered = Vec::new();
        for signal in [SIGINT, SIGQUIT, SIGTERM] {
            let number = usize::try_from(signal).unwrap_or_default();
            registered.push(flag::register_usize(signal, Arc::clone(&received), number)?);
        }
        // The terminal is gone, so there is nothing to restore. The loop would not look at a flag any
        // more: crossterm reads the end of the input over and over without returning.
        let always = Arc::new(AtomicBool::new(true));
        let code = HANGUP_EXIT_CODE;
        registered.push(flag::register_conditional_shutdown(SIGHUP, code, always)?);
        Ok(Self { received, registered })
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
