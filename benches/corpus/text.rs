//! Invents text: words as unevenly frequent as in real logs, in the shapes of prompts, files and
//! outputs.
//!
//! All of it is escaped as inside a JSON string: `\n` is two characters here.

use std::fmt::Write as _;

use super::{PHRASE, TOGETHER};

/// Templates of the lines of a text. [`Writer::fill`] explains their letters.
pub(super) type Shape = &'static [&'static str];

pub(super) const PROSE: Shape =
    &["%s.", "%s, %s.", "%s `%i` %s.", "%s %n %s.", "%s %i: %s", "- %s", "%s %p %s.", "%s?"];
pub(super) const CODE: Shape = &[
    "let %i = %i.%w(%i);",
    "    if %i.%w() != %n {",
    "    let %i = %i::%w(%i, %i)?;",
    r#"        return Err(%i(\"%s\"));"#,
    r#"    %i(%i, \"%w\", %n);"#,
    "pub fn %i(%w: &%i) -> %i {",
    "    // %s",
    "    %i: %i,",
    "        }",
    "    }",
    "}",
    "",
];
pub(super) const LISTING: Shape = &[
    "-rw-r--r--  1 dev  staff  %n Nov %d %d:%d %p",
    "drwxr-xr-x  9 dev  staff  %n Jan %d %d:%d %w",
];
pub(super) const TESTS: Shape = &[
    "test %w::tests::%i ... ok",
    "test %w::tests::%i ... ok",
    "  ✓ %s (%n ms)",
    r"test %w::%i ... \u001b[31mFAILED\u001b[0m err_%e_%w: %s",
    "[2025-11-%dT%d:%d] INFO %i: %s",
];
pub(super) const MATCHES: Shape =
    &["%p:%n:    let %i = %i.%w(%i);", "%p:%n:// %s", r#"%p:%n:  %i(\"%w\", %i)"#];
pub(super) const JSON: Shape = &[
    r#"  { \"id\": \"%u\", \"%w\": \"%i\" },"#,
    r#"    \"%i\": %n,"#,
    r#"    \"%w\": \"%s\","#,
    r#"    \"%i\": \"%p\","#,
];
pub(super) const DIFF: Shape = &[
    "@@ -%n,7 +%n,9 @@ %i",
    "     let %i = %i.%w(%i);",
    "+    let %i = %i.%w(%i);",
    "-    %i(%i, %n);",
    "+    // %s",
    " }",
];
pub(super) const HISTORY: Shape = &["%h %s", "%h %w: %s (#%n)"];
pub(super) const PATHS: Shape = &["%p"];

/// The most frequent words. The rest of the vocabulary consists of syllables.
const HEAD: &str = "the to a of and in is for it this that with on be i as not are test file let \
    from now by if we or run an error all at add use code can need type but check no function \
    will name me which command so user when line should new output one path there first change \
    also do does build data value each see only work string read issue default already call \
    server list client key after make request session config update fix true set look start \
    cache id out commit time then return other same found branch into where more handle method \
    fails before pass current page version create log response case state without field how \
    index next instead main remove message actual both stale exists project missing directory \
    count works again old parse tool single open structure docs right because still result last \
    size module write find table thread token text lock ledger under content show problem level \
    match step format left restart common event query widget source none hook task why between \
    through store retry warning returned side object import limit copy every inside any failed \
    number timeout expected assert poison stop review keep lose small panic async await class";
const ONSETS: &[&str] = &[
    "b", "br", "c", "cl", "d", "dr", "f", "fl", "g", "gr", "h", "l", "m", "n", "p", "r", "s", "st",
    "t", "tr", "v", "sh", "",
];
const VOWELS: &[&str] = &["a", "e", "i", "o", "u", "ea", "ou", "io"];
const CODAS: &[&str] = &["", "", "", "n", "r", "l", "s", "t", "nd", "m", "ck", "ng"];
const FOREIGN: &[&str] = &[
    "té", "ü", "ña", "ço", "ør", "ště", "ğı", "漢", "設", "定", "検", "索", "の", "文", "✅", "🚀",
];
const FOLDERS: &[&str] = &["src", "lib", "tests", "docs", "api", "core", "internal", "web"];
const ENDINGS: &[&str] = &["rs", "ts", "py", "go", "md", "json", "tsx", "toml"];

/// The octaves from which a word's rank is drawn (1, 2-3, 4-7 …), as frequent as in real prose.
const OCTAVES: [u64; 32] = [
    0, 0, 1, 2, 2, 3, 3, 4, 4, 4, 5, 5, 5, 6, 6, 6, 7, 7, 7, 8, 8, 8, 9, 9, 9, 10, 10, 11, 12, 13,
    14, 15,
];

/// Ranks of words that depend on the text: each text uses one of `TOGETHER` and one of `PHRASE`.
const TOGETHER_RANK: usize = 40;
const PHRASE_RANK: usize = 41;

/// The random numbers of SplitMix64. All draws use integers, so they are the same on every
/// platform.
pub(super) struct Random(pub(super) u64);

impl Random {
    pub(super) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    pub(super) fn below(&mut self, end: usize) -> usize {
        ((u128::from(self.next()) * end as u128) >> 64) as usize
    }

    pub(super) fn percent(&mut self, chance: usize) -> bool {
        self.below(100) < chance
    }

    pub(super) fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())]
    }

    /// Draws a log-normal number, with `quarters` of a doubling as standard deviation. The number
    /// of set bits is close to normally distributed, with a deviation of 4 around 32.
    pub(super) fn around(&mut self, median: u64, quarters: u64) -> u64 {
        let step = 16 * quarters;
        // The unit is a 256th of a doubling.
        let exponent = u64::from(self.next().count_ones()) * step + self.next() % step;
        let power = u128::from(256 + exponent % 256) << (exponent / 256);
        ((u128::from(median) * power) >> (2 * quarters + 8)) as u64
    }

    /// Draws an index below `2^octaves`. Smaller ones are more likely.
    fn skewed(&mut self, octaves: u64) -> usize {
        let drawn = self.next();
        let start = 1 << (OCTAVES[(drawn % 32) as usize] * octaves / 16);
        (start - 1 + (drawn >> 32) % start) as usize
    }

    /// Draws letters and digits as in ids and signatures.
    pub(super) fn letters(&mut self, count: usize) -> String {
        const LETTERS: &[u8; 64] =
            b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789Xx";
        let mut bits = 0;
        let letter = |at: usize| {
            bits = if at.is_multiple_of(10) { self.next() } else { bits >> 6 };
            char::from(LETTERS[(bits % 64) as usize])
        };
        (0..count).map(letter).collect()
    }

    pub(super) fn uuid(&mut self) -> String {
        let (a, b) = (self.next(), self.next());
        let (version, variant) = ((a & 0xfff) | 0x4000, ((b >> 48) & 0x3fff) | 0x8000);
        let (c, d) = ((a >> 16) & 0xffff, b & 0xffff_ffff_ffff);
        format!("{:08x}-{c:04x}-{version:04x}-{variant:04x}-{d:012x}", a >> 32)
    }
}

/// The vocabulary of the texts, the most frequent words first.
pub(super) struct Language {
    words: Vec<String>,
    foreign: Vec<String>,
    identifiers: Vec<String>,
    paths: Vec<String>,
}

impl Language {
    pub(super) fn new(random: &mut Random) -> Self {
        let mut words = HEAD.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        words.resize_with(1 << 16, || {
            let parts = [ONSETS, VOWELS, CODAS].repeat(2 + random.below(3));
            parts.into_iter().map(|part| random.pick(part)).collect()
        });
        let foreign = std::iter::repeat_with(|| {
            (0..2 + random.below(3)).map(|_| random.pick(FOREIGN)).collect()
        });
        let foreign = foreign.take(1 << 12).collect();
        let identifiers = (0..1 << 14).map(|_| identifier(&words, random)).collect();
        let paths = (0..1 << 12).map(|_| path(&words, random)).collect();
        Self { words, foreign, identifiers, paths }
    }
}

/// Draws two or three words as `snake_case`, `camelCase` or `PascalCase`.
fn identifier(words: &[String], random: &mut Random) -> String {
    let style = random.below(4);
    let mut parts =
        (0..2 + random.below(2)).map(|_| words[random.skewed(13)].clone()).collect::<Vec<_>>();
    if style > 1 {
        return parts.join("_");
    }
    for part in &mut parts[style..] {
        part[..1].make_ascii_uppercase();
    }
    parts.concat()
}

fn path(words: &[String], random: &mut Random) -> String {
    let mut path = random.pick(FOLDERS).to_owned();
    for _ in 0..1 + random.below(3) {
        path.push('/');
        path += &words[random.skewed(12)];
    }
    path + "." + random.pick(ENDINGS)
}

/// A writer of texts, one after the other.
pub(super) struct Writer<'a> {
    pub(super) random: Random,
    language: &'a Language,
    /// The index of the words of `TOGETHER` and `PHRASE` that this text may contain.
    apart: usize,
    /// True if some words of this text contain characters outside ASCII.
    foreign: bool,
}

impl<'a> Writer<'a> {
    pub(super) fn new(language: &'a Language, random: Random) -> Self {
        Self { random, language, apart: 0, foreign: false }
    }

    /// Writes a text of about `bytes`, with `plant` in its middle.
    pub(super) fn text(&mut self, shape: Shape, bytes: u64, mut plant: Option<String>) -> String {
        let (bytes, flows) = (bytes as usize, shape == PROSE);
        self.apart = self.random.below(TOGETHER.len());
        self.foreign = self.random.percent(16);
        let mut text = String::with_capacity(bytes + 256);
        while text.len() < bytes || plant.is_some() {
            if !text.is_empty() {
                text += if flows && self.random.percent(75) { " " } else { r"\n" };
            }
            if let Some(plant) = plant.take_if(|_| text.len() * 2 >= bytes) {
                text += &plant;
            } else {
                let template = self.random.pick(shape);
                self.fill(template, &[], &mut text);
            }
        }
        text
    }

    /// Writes a template. `%0` to `%9` are the given texts. The letters mean: word, identifier,
    /// path, number, two digits, an error's five, hash, uuid, 24 letters, several words.
    pub(super) fn fill(&mut self, template: &str, given: &[&str], out: &mut String) {
        let mut parts = template.split('%');
        out.push_str(parts.next().unwrap_or_default());
        for part in parts {
            let (what, rest) = part.split_at(1);
            match what {
                "w" => self.word(out),
                "i" => out.push_str(self.identifier()),
                "p" => out.push_str(self.path()),
                "n" => put(out, format_args!("{}", self.random.around(60, 10))),
                "d" => put(out, format_args!("{}", 10 + self.random.below(14))),
                "e" => put(out, format_args!("{:05}", self.random.below(100_000))),
                "h" => put(out, format_args!("{:07x}", self.random.next() >> 36)),
                "u" => out.push_str(&self.random.uuid()),
                "l" => out.push_str(&self.random.letters(24)),
                "s" => self.words(out),
                digit => out.push_str(given[digit.parse::<usize>().expect("a digit")]),
            }
            out.push_str(rest);
        }
    }

    fn words(&mut self, out: &mut String) {
        self.word(out);
        for _ in 0..self.random.below(11) {
            out.push(' ');
            self.word(out);
        }
    }

    fn word(&mut self, out: &mut String) {
        let word = match self.random.skewed(16) {
            TOGETHER_RANK => TOGETHER[self.apart],
            PHRASE_RANK => PHRASE.split(' ').nth(self.apart).unwrap_or_default(),
            _ if self.foreign && self.random.percent(22) => {
                &self.language.foreign[self.random.skewed(12)]
            }
            rank => &self.language.words[rank],
        };
        out.push_str(word);
    }

    pub(super) fn identifier(&mut self) -> &'a str {
        &self.language.identifiers[self.random.skewed(14)]
    }

    pub(super) fn path(&mut self) -> &'a str {
        &self.language.paths[self.random.skewed(12)]
    }
}

fn put(out: &mut String, text: std::fmt::Arguments<'_>) {
    out.write_fmt(text).expect("a string takes everything");
}
