//! Lines: any bytes that come in any pieces give the lines of a plain split.
#![no_main]

use std::io::{self, Read};

use ingest::source::line_source::LineSource;
use ingest::source::lines::{LogLine, LogLines};
use libfuzzer_sys::fuzz_target;

/// Gives the bytes in pieces of the sizes named; a size of 0 is an interruption.
struct Drip<'a> {
    rest: &'a [u8],
    sizes: std::iter::Cycle<std::slice::Iter<'a, u8>>,
}

impl LineSource for Drip<'_> {}

impl Read for Drip<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let size = usize::from(*self.sizes.next().unwrap_or(&255));
        if size == 0 {
            return Err(io::ErrorKind::Interrupted.into());
        }
        let size = size.min(into.len()).min(self.rest.len());
        let (now, rest) = self.rest.split_at(size);
        into[..size].copy_from_slice(now);
        self.rest = rest;
        Ok(size)
    }
}

/// A line as owned data: its place, its bytes or what is known of a long one, whether it has_newline.
type Owned = (u64, Result<Vec<u8>, (u64, Vec<u8>)>, bool);

fn expected(data: &[u8], max_line: usize) -> Vec<Owned> {
    let mut lines = Vec::new();
    let mut offset = 0;
    for part in data.split_inclusive(|byte| *byte == b'\n') {
        let (body, has_newline) =
            part.strip_suffix(b"\n").map_or((part, false), |body| (body, true));
        let (mut place, mut line) = (offset, body.strip_suffix(b"\r").unwrap_or(body));
        if let Some(rest) = line.strip_prefix(b"\xef\xbb\xbf").filter(|_| offset == 0) {
            (place, line) = (3, rest);
        }
        lines.push(if body.len() > max_line {
            (offset, Err((body.len() as u64, body[..body.len().min(4096)].to_vec())), has_newline)
        } else {
            (place, Ok(line.to_vec()), has_newline)
        });
        offset += part.len() as u64;
    }
    lines
}

fuzz_target!(|input: &[u8]| {
    let [longest, chunk, a, b, c, data @ ..] = input else { return };
    let max_line = usize::from(*longest) * 16;
    let sizes = [*a, *b, *c, 200];
    let drip = Drip { rest: data, sizes: sizes.iter().cycle() };
    let mut lines = LogLines::with_bounds(drip, 0, max_line, usize::from(*chunk) + 2);
    let mut found: Vec<Owned> = Vec::new();
    while let Some(line) = lines.next_line().expect("no errors") {
        found.push(match line {
            LogLine::Whole { offset, bytes } => (offset, Ok(bytes.to_vec()), true),
            LogLine::Tail { offset, bytes } => (offset, Ok(bytes.to_vec()), false),
            LogLine::Oversized { offset, length, head, has_newline } => {
                // How much of it is kept depends on what was read of it.
                assert!(data[usize::try_from(offset).expect("small")..].starts_with(head));
                (offset, Err((length, Vec::new())), has_newline)
            }
        });
    }
    assert_eq!(lines.offset(), data.len() as u64);
    let mut expected = expected(data, max_line);
    for (_, line, _) in &mut expected {
        if let Err((_, head)) = line {
            head.clear();
        }
    }
    assert_eq!(found, expected);
});
