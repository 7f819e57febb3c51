//! A mutator that knows JSON: it changes values, keys and lines of a log and leaves the rest of it
//! whole, so that decoders see more than broken lines.

use libfuzzer_sys::fuzzer_mutate;
use serde_json::{Map, Value};

/// Longest piece that is handed to libFuzzer's own mutator.
const PIECE: usize = 256;

/// Values that some code may not expect.
const ODD: &[&str] = &[
    "null",
    "true",
    "false",
    "0",
    "-1",
    "1e308",
    "0.5",
    "9223372036854775807",
    "-9223372036854775808",
    "18446744073709551615",
    "253402300800",
    "1761033912000",
    "\"\"",
    "\"\\n\"",
    "\"\\u0000\"",
    "\"{}\"",
    "\"{\\\"a\\\":[1]}\"",
    "\"2026-10-21T07:45:12.345Z\"",
    "\"9999-12-31T23:59:59Z\"",
    "\"-009999-01-02T00:00:00Z\"",
    "[]",
    "{}",
    "[[]]",
    "[{}]",
    "[\"a\"]",
];

/// A small source of chance.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 >> 11).unwrap_or(0) % sides.max(1)
    }
}

/// Mutates `data[head..size]`, a log of lines or one document; returns the new size.
pub fn mutate_log(data: &mut [u8], size: usize, max: usize, seed: u32, head: usize) -> usize {
    let mut dice = Dice(u64::from(seed).wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    if size > head && dice.roll(4) > 0 {
        let log = &data[head..size];
        let mutated = match serde_json::from_slice(log) {
            Ok(document) => Some(document_mutated(document, &mut dice)),
            Err(_) => lines_mutated(log, &mut dice),
        };
        if let Some(log) = mutated.filter(|log| head + log.len() <= max.min(data.len())) {
            data[head..head + log.len()].copy_from_slice(&log);
            return head + log.len();
        }
    }
    fuzzer_mutate(data, size, max)
}

fn document_mutated(mut document: Value, dice: &mut Dice) -> Vec<u8> {
    let other = document.clone();
    change(&mut document, &other, dice);
    document.to_string().into_bytes()
}

fn lines_mutated(log: &[u8], dice: &mut Dice) -> Option<Vec<u8>> {
    let mut lines: Vec<&[u8]> = log.split_inclusive(|byte| *byte == b'\n').collect();
    let (at, other) = (dice.roll(lines.len()), dice.roll(lines.len()));
    let changed;
    match dice.roll(8) {
        0 => lines.swap(at, other),
        1 => lines.insert(at, lines[other]),
        2 => {
            lines.remove(at);
        }
        _ => {
            let mut value: Value = serde_json::from_slice(lines[at]).ok()?;
            let other = serde_json::from_slice(lines[other]).unwrap_or(Value::Null);
            for _ in 0..=dice.roll(3) {
                change(&mut value, &other, dice);
            }
            let end = if lines[at].ends_with(b"\n") { "\n" } else { "" };
            changed = format!("{value}{end}");
            lines[at] = changed.as_bytes();
        }
    }
    Some(lines.concat())
}

/// Changes one value of `root`, perhaps into one of `other`.
fn change(root: &mut Value, other: &Value, dice: &mut Dice) {
    let mut at = dice.roll(count(root));
    let Some(value) = nth(root, &mut at) else { return };
    match (dice.roll(6), value) {
        (0, value) => {
            *value = serde_json::from_str(ODD[dice.roll(ODD.len())]).unwrap_or(Value::Null);
        }
        (1, value) => {
            let (mut copy, mut at) = (other.clone(), dice.roll(count(other)));
            *value = nth(&mut copy, &mut at).map(Value::take).unwrap_or_default();
        }
        (_, Value::String(text)) => *text = piece_mutated(text, dice),
        (_, Value::Number(number)) => {
            let text = piece_mutated(&number.to_string(), dice);
            *number = serde_json::from_str(&text).unwrap_or_else(|_| dice.roll(1 << 40).into());
        }
        (_, Value::Array(items)) => {
            let at = dice.roll(items.len());
            match (dice.roll(3), items.get(at).cloned()) {
                (0, Some(item)) => items.insert(at, item),
                (1, Some(_)) => drop(items.remove(at)),
                _ => items.reverse(),
            }
        }
        (_, Value::Object(fields)) => change_fields(fields, dice),
        (_, value) => *value = Value::String(piece_mutated("", dice)),
    }
}

fn change_fields(fields: &mut Map<String, Value>, dice: &mut Dice) {
    let keys: Vec<String> = fields.keys().cloned().collect();
    let key = keys.get(dice.roll(keys.len())).cloned().unwrap_or_default();
    let other = keys.get(dice.roll(keys.len())).cloned().unwrap_or_default();
    match dice.roll(3) {
        0 => {
            fields.shift_remove(&key);
        }
        1 => {
            let value = fields.get(&key).cloned().unwrap_or_default();
            fields.insert(other, value);
        }
        _ => {
            let value = fields.get(&key).cloned().unwrap_or_default();
            fields.insert(piece_mutated(&other, dice), value);
        }
    }
}

/// A text as libFuzzer changes it; now and then it starts over with an empty one.
fn piece_mutated(text: &str, dice: &mut Dice) -> String {
    // An empty text becomes a word of the dictionary.
    let text = if dice.roll(3) == 0 { "" } else { text };
    let mut piece = text.as_bytes().to_vec();
    piece.truncate(PIECE);
    let size = piece.len();
    piece.resize(2 * PIECE, 0);
    let size = fuzzer_mutate(&mut piece, size, 2 * PIECE);
    piece.truncate(size);
    String::from_utf8_lossy(&piece).into_owned()
}

fn count(value: &Value) -> usize {
    1 + match value {
        Value::Array(items) => items.iter().map(count).sum(),
        Value::Object(fields) => fields.values().map(count).sum(),
        _ => 0,
    }
}

/// The value at a place in the order of the text.
fn nth<'v>(value: &'v mut Value, at: &mut usize) -> Option<&'v mut Value> {
    if *at == 0 {
        return Some(value);
    }
    *at -= 1;
    match value {
        Value::Array(items) => items.iter_mut().find_map(|item| nth(item, at)),
        Value::Object(fields) => fields.values_mut().find_map(|field| nth(field, at)),
        _ => None,
    }
}
