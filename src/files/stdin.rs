//! Reads a text that another program passes on stdin.

use std::io::{self, Read};
use std::sync::mpsc;
use std::time::Duration;

/// Reads a text of at most `max_bytes` bytes from stdin. `first_byte_wait` is how long its first byte may
/// take; with `None` it may take for ever. Returns `None` if nothing arrived in time: a program that
/// starts others, such as an agent, may leave the pipe open and write nothing.
///
/// # Errors
/// Fails if stdin cannot be read, if the text is longer, or if it is not UTF-8.
pub(crate) fn read_stdin_text(
    max_bytes: u64,
    first_byte_wait: Option<Duration>,
) -> io::Result<Option<String>> {
    let Some(wait) = first_byte_wait else {
        return read_text(io::stdin().lock(), max_bytes).map(Some);
    };

    // A read cannot be given up. The thread that waits in it ends with the process.
    let (sender, receiver) = mpsc::channel();
    std::thread::Builder::new().name("stdin".to_owned()).spawn(move || {
        let mut input = io::stdin().lock();
        let mut first = [0; 1];
        let result = match input.read(&mut first) {
            Ok(0) => Ok(String::new()),
            Ok(length) => {
                // The receiver is waiting for this one.
                let _ = sender.send(None);
                read_text(first[..length].chain(input), max_bytes)
            }
            Err(error) => Err(error),
        };
        let _ = sender.send(Some(result));
    })?;
    let Ok(arrived) = receiver.recv_timeout(wait) else { return Ok(None) };
    let result = match arrived {
        Some(result) => result,
        None => match receiver.recv() {
            Ok(Some(result)) => result,
            Ok(None) | Err(_) => Err(io::Error::other("the thread that reads it ended early")),
        },
    };
    result.map(Some)
}

/// Reads a text of at most `max_bytes` bytes.
pub(crate) fn read_text(source: impl Read, max_bytes: u64) -> io::Result<String> {
    let mut text = String::new();
    source.take(max_bytes + 1).read_to_string(&mut text)?;
    if text.len() as u64 > max_bytes {
        return Err(io::Error::other(format!("it has more than {max_bytes} bytes")));
    }
    Ok(text)
}
