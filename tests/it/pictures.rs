//! The pictures of README: screens of the program over `sample-sessions`, drawn as SVG, and the page,
//! drawn by Chromium. With `UPDATE_DOCS=1` they are written; otherwise this checks that they show what
//! the program shows.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, SystemTime};

use regex::Regex;
use serde_json::Value;
use sha2::{Digest as _, Sha256};
use unicode_width::UnicodeWidthStr as _;
use vt100::{Cell, Color, Screen};

use crate::env::{TestEnv, compare, copy_folder, samples};
use crate::terminal::{DOWN, ENTER, TestTerminal};

const SIZE: (u16, u16) = (120, 28);

/// Width and height of a cell, in pixels.
const CELL_WIDTH: f32 = 8.4;
const CELL_HEIGHT: f32 = 18.0;

/// The space around the screen, in pixels.
const MARGIN: f32 = 14.0;

const FOREGROUND: &str = "#d4d7dd";
const BACKGROUND: &str = "#16181d";

/// The sixteen colours of a terminal.
const PALETTE: [&str; 16] = [
    "#3b3f48", "#e5707b", "#8fc983", "#e2c07a", "#6aa7ee", "#c68ae0", "#5dbfc9", "#d4d7dd",
    "#6c7280", "#f08a94", "#a5dc99", "#f0d394", "#8bbcf5", "#d7a5ec", "#7ed5de", "#ffffff",
];

#[test]
fn pictures_show_what_the_program_shows() {
    let env = TestEnv::new();
    env.ingest(copy_plain_samples(&env));
    let mut terminal = TestTerminal::start(&env, &[], SIZE);
    terminal.wait_for("52 sessions");
    let mut frames = vec![draw_frame(&terminal)];
    terminal.type_text("retry");
    frames.push(draw_frame(&terminal));
    terminal.type_text(" budget");
    terminal.wait_for("50+ sessions");
    frames.push(draw_frame(&terminal));
    // The match of the third session is a prompt.
    terminal.press(DOWN);
    terminal.press(DOWN);
    frames.push(draw_frame(&terminal));
    terminal.press(ENTER);
    terminal.wait_for("q back");
    let conversation = draw_frame(&terminal);
    check_picture(std::slice::from_ref(&conversation), "docs/pictures/conversation.svg");
    frames.push(conversation);
    check_picture(&frames, "docs/pictures/picker.svg");
}

/// Browsers that can draw the page.
const BROWSERS: [&str; 3] = ["chromium", "chromium-browser", "google-chrome"];

/// The page of a report, which is that of `sessions web` with its data inside. No two versions of a
/// browser draw it alike, so the hash of what is drawn is next to the picture.
#[test]
fn the_picture_of_the_page_is_of_this_page_and_these_sessions() {
    let env = TestEnv::new();
    let logs = copy_plain_samples(&env);
    set_file_times(&logs);
    env.ingest(&logs);
    let page = env.run(["report", "-o", "-"]).ok();
    let (_, rest) = page.split_once(r#"id="data">"#).expect("data");
    let (data, _) = rest.split_once("</script>").expect("its end");
    let mut data: Value = serde_json::from_str(data).expect("JSON");
    data["generated_at"] = Value::Null;
    for list in ["sessions", "others"] {
        for session in data[list].as_array_mut().expect("sessions") {
            session["source_path"] = Value::Null;
            session["cwd"] = Value::Null;
        }
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let sources = fs::read_to_string(root.join("src/page/bundle/SOURCES")).expect("the hash");
    let hash = Sha256::new_with_prefix(&sources).chain_update(data.to_string()).finalize();
    let hash: String = hash.iter().map(|byte| format!("{byte:02x}")).collect();

    let hash_file = root.join("docs/pictures/page.sha256");
    let drawn = fs::read_to_string(&hash_file).unwrap_or_default();
    if drawn.trim() == hash {
        return;
    }
    assert!(
        std::env::var_os("UPDATE_DOCS").is_some(),
        "docs/pictures/page.png is out of date: `cargo xtask pictures` draws it"
    );
    let report = env.path("report.html");
    env.write(&report, page);
    draw_page(&format!("file://{}#/?since=2026-10-05&by=day", report.display()), &env);
    fs::copy(env.path("page.png"), root.join("docs/pictures/page.png")).expect("copies");
    fs::write(hash_file, format!("{hash}\n")).expect("writes");
}

/// Sample sessions that are in no picture: those that are made of damaged records and hostile names, and
/// late ones of many further agents, which would fill the first screen.
const NOT_SHOWN: [&str; 25] = [
    "antigravity-ide",
    "broken",
    "chatgpt",
    "claudeai",
    "codebuddy",
    "codebuff",
    "codewhale",
    "commandcode",
    "cortex",
    "cursor-cli",
    "devin",
    "dsh",
    "forge",
    "geminiapps",
    "gptme",
    "hostile",
    "junie",
    "openhands",
    "piebald",
    "poolside",
    "qwenpaw",
    "reasonix",
    "vibe",
    "warp",
    "zcode",
];

/// Copies the sample sessions that are shown.
fn copy_plain_samples(env: &TestEnv) -> PathBuf {
    let logs = env.path("logs");
    copy_folder(&samples(), &logs);
    for name in NOT_SHOWN {
        fs::remove_dir_all(logs.join(name)).expect("removes");
    }
    logs
}

/// Sets the times of the files of a folder: those of some logs are the times of their sessions, and a
/// copy has new ones.
fn set_file_times(folder: &Path) {
    const DAY: Duration = Duration::from_secs(24 * 60 * 60);
    for entry in fs::read_dir(folder).expect("lists") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            set_file_times(&path);
            continue;
        }
        let file = fs::File::options().write(true).open(&path).expect("opens");
        file.set_modified(SystemTime::UNIX_EPOCH + 20_755 * DAY).expect("sets the time");
    }
}

/// Draws an address into `page.png`.
fn draw_page(address: &str, env: &TestEnv) {
    let found = BROWSERS.iter().find_map(|browser| {
        let mut command = Command::new(browser);
        command.args(["--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"]);
        command.args(["--window-size=1280,860", "--virtual-time-budget=8000"]);
        command.arg(format!("--user-data-dir={}", env.path("browser").display()));
        command.arg(format!("--screenshot={}", env.path("page.png").display())).arg(address);
        command.env("TZ", "UTC").output().ok()
    });
    let output = found.expect("Chromium draws the page: install the package chromium");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// Draws the screen once it stands still.
fn draw_frame(terminal: &TestTerminal) -> String {
    terminal.wait_until_quiet();
    terminal.with_screen(draw_screen)
}

/// Compares screens with their picture, without dates and ages, which change with the time.
fn check_picture(frames: &[String], name: &str) {
    let drawn = join_frames(frames);
    if std::env::var_os("UPDATE_DOCS").is_some() {
        compare("UPDATE_DOCS", name, &drawn);
        return;
    }
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(name);
    let shown = fs::read_to_string(path).unwrap_or_default();
    assert_eq!(
        visible_words(&shown),
        visible_words(&drawn),
        "{name} is out of date: `cargo xtask pictures` draws it"
    );
}

/// Returns the words in a picture that are not parts of dates or ages.
fn visible_words(picture: &str) -> Vec<String> {
    let marks = Regex::new("<[^>]*>").expect("a pattern");
    let dates = Regex::new(
        r"\b(?:[A-Z][a-z]{2} \d{1,2}|\d{4}-\d{2}-\d{2})\b(?: \d{2}:\d{2})?|\b\d+(?:mo|[smhdwy])\b",
    );
    let text = marks.replace_all(picture, " ");
    let text = dates.expect("a pattern").replace_all(&text, " ");
    text.split_whitespace().map(str::to_owned).collect()
}

/// Seconds for which a frame is shown.
const FRAME_SECONDS: usize = 2;

/// Makes an SVG of frames, which follow each other for ever. Where nothing moves, the last is shown.
fn join_frames(frames: &[String]) -> String {
    let (columns, rows) = SIZE;
    let width = 2.0 * MARGIN + CELL_WIDTH * f32::from(columns);
    let height = 2.0 * MARGIN + CELL_HEIGHT * f32::from(rows);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width:.0} {height:.0}\" \
         font-family=\"ui-monospace,SFMono-Regular,Menlo,Consolas,DejaVu Sans Mono,monospace\" \
         font-size=\"14\">\n\
         <rect width=\"100%\" height=\"100%\" rx=\"10\" fill=\"{BACKGROUND}\"/>\n"
    );
    let seconds = FRAME_SECONDS * frames.len();
    if frames.len() > 1 {
        let end = 100 / frames.len();
        let _ = writeln!(
            svg,
            "<style>@keyframes frame{{0%{{opacity:1}}{end}%{{opacity:0}}}}\
             g{{opacity:0;animation:frame {seconds}s step-end infinite}}g:last-child{{opacity:1}}\
             @media(prefers-reduced-motion){{g{{animation:none}}}}</style>"
        );
    }
    for (index, frame) in frames.iter().enumerate() {
        // A negative delay: the animation has begun before.
        let delay = FRAME_SECONDS * index;
        let delay = if index == 0 { 0.0 } else { delay as f32 - seconds as f32 };
        let _ = write!(svg, "<g style=\"animation-delay:{delay}s\">\n{frame}</g>\n");
    }
    svg.push_str("</svg>\n");
    svg
}

/// Draws the cells of a screen.
fn draw_screen(screen: &Screen) -> String {
    let (rows, columns) = screen.size();
    let (rows, columns) = (rows.get(), columns.get());
    let mut svg = String::new();
    for row in 0..rows {
        let mut column = 0;
        while column < columns {
            let Some(first) = screen.cell(row, column) else { break };
            let style = Style::of(first);
            let from = column;
            let mut text = String::new();
            while let Some(cell) = screen.cell(row, column).filter(|cell| Style::of(cell) == style)
            {
                if !cell.is_wide_continuation() {
                    text.push_str(if cell.has_contents() { cell.contents() } else { " " });
                }
                column += 1;
            }
            style.draw(&text, row, from..column, &mut svg);
        }
    }
    svg
}

/// How a cell looks.
#[derive(PartialEq)]
struct Style {
    foreground: String,
    background: String,
    is_bold: bool,
    is_dim: bool,
}

impl Style {
    fn of(cell: &Cell) -> Self {
        let mut foreground = color(cell.fgcolor(), FOREGROUND);
        let mut background = color(cell.bgcolor(), BACKGROUND);
        if cell.inverse() {
            std::mem::swap(&mut foreground, &mut background);
        }
        Self { foreground, background, is_bold: cell.bold(), is_dim: cell.dim() }
    }

    /// Appends a text in these columns of a row.
    fn draw(&self, text: &str, row: u16, columns: std::ops::Range<u16>, svg: &mut String) {
        let x = MARGIN + CELL_WIDTH * f32::from(columns.start);
        let y = MARGIN + CELL_HEIGHT * f32::from(row);
        let width = CELL_WIDTH * f32::from(columns.end - columns.start);
        if self.background != BACKGROUND {
            let fill = &self.background;
            let _ = writeln!(
                svg,
                "<rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{CELL_HEIGHT:.1}\" fill=\"{fill}\"/>"
            );
        }
        let weight = if self.is_bold { " font-weight=\"bold\"" } else { "" };
        let opacity = if self.is_dim { " opacity=\"0.65\"" } else { "" };
        let fill = &self.foreground;
        for (column, words) in parts_between_gaps(text) {
            let x = x + CELL_WIDTH * column as f32;
            let width = CELL_WIDTH * words.width() as f32;
            let words = words.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
            let _ = writeln!(
                svg,
                "<text x=\"{x:.1}\" y=\"{:.1}\" textLength=\"{width:.1}\" fill=\"{fill}\"{weight}{opacity}>{words}</text>",
                y + 13.5
            );
        }
    }
}

/// Returns the parts of a text between two and more spaces, each with the column where it begins: a
/// part has its place whatever the font.
fn parts_between_gaps(text: &str) -> Vec<(usize, &str)> {
    let mut parts = Vec::new();
    let mut from = 0;
    for part in text.split("  ") {
        let words = part.trim();
        if !words.is_empty() {
            let start = from + part.find(words).unwrap_or(0);
            parts.push((text[..start].width(), words));
        }
        from += part.len() + 2;
    }
    parts
}

/// Returns a colour for SVG.
fn color(color: Color, default: &str) -> String {
    match color {
        Color::Default => default.to_owned(),
        Color::Idx(index) => match usize::from(index) {
            index @ 0..16 => PALETTE[index].to_owned(),
            index @ 16..232 => {
                let part = |divisor: usize| match (index - 16) / divisor % 6 {
                    0 => 0,
                    step => 55 + 40 * step,
                };
                format!("#{:02x}{:02x}{:02x}", part(36), part(6), part(1))
            }
            index => {
                let grey = 8 + 10 * (index - 232);
                format!("#{grey:02x}{grey:02x}{grey:02x}")
            }
        },
        Color::Rgb(red, green, blue) => format!("#{red:02x}{green:02x}{blue:02x}"),
    }
}
