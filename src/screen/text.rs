//! Fits text into a width: cells are counted as a terminal counts them.

use ratatui::style::Style;
use ratatui::text::{Line, Span};
use regex::{Regex, RegexBuilder};

use crate::output::term_pattern;
use base::cells::{text_width, truncate_end};

/// The fewest characters of a word that is marked.
const MIN_MARKED_CHARS: usize = 2;

/// Returns a text of exactly `width` cells: the beginning of `text`, filled up with spaces.
pub(super) fn fit_text(text: &str, width: usize) -> String {
    let mut shown = truncate_end(text, width);
    let cells = text_width(&shown);
    shown.push_str(&" ".repeat(width.saturating_sub(cells)));
    shown
}

/// The words of a query, to be marked where they occur.
#[derive(Debug, Clone, Default)]
pub(super) struct Marker(Option<Regex>);

impl Marker {
    /// Collects the words of a query. Qualifiers and excluded words are not among them.
    pub(super) fn new(query: &str) -> Self {
        let words = query
            .split(|c: char| c.is_whitespace() || c == '"')
            .filter(|word| !word.starts_with('-') && !word.contains(':'))
            .filter(|word| word.chars().count() >= MIN_MARKED_CHARS)
            .map(regex::escape);
        let pattern = words.collect::<Vec<_>>().join("|");
        if pattern.is_empty() {
            return Self(None);
        }
        Self(RegexBuilder::new(&pattern).case_insensitive(true).build().ok())
    }

    /// Finds a text as it was typed, also where a line breaks within it; `/regex/` is a pattern.
    pub(super) fn phrase(text: &str) -> Self {
        let pattern = term_pattern(text)
            .map(|pattern| RegexBuilder::new(&pattern).case_insensitive(true).build());
        Self(pattern.and_then(Result::ok))
    }

    /// Returns the positions of the lines in which matches begin.
    pub(super) fn matching_lines(&self, lines: &[String]) -> Vec<usize> {
        let text = lines.join("\n");
        let hits = self.0.iter().flat_map(|words| words.find_iter(&text));
        hits.map(|hit| text[..hit.start()].matches('\n').count()).collect()
    }

    /// Returns the text as spans, with its words marked.
    pub(super) fn mark(&self, text: &str, style: Style, found: Style) -> Vec<Span<'static>> {
        self.mark_pieces(&[(style, text)], found)
    }

    /// Returns the pieces of a text as spans, with the words of the text marked.
    pub(super) fn mark_pieces(&self, pieces: &[(Style, &str)], found: Style) -> Vec<Span<'static>> {
        let text: String = pieces.iter().map(|(_, text)| *text).collect();
        let hits = self.0.iter().flat_map(|words| words.find_iter(&text));
        let mut hits = hits.map(|hit| hit.range()).peekable();
        let mut spans = Vec::new();
        let mut end = 0;
        for (style, piece) in pieces {
            let mut at = end;
            end += piece.len();
            while at < end {
                while hits.next_if(|hit| hit.end <= at).is_some() {}
                let hit = hits.peek().cloned().unwrap_or(end..end);
                let (until, style) = if hit.start <= at {
                    (hit.end.min(end), style.patch(found))
                } else {
                    (hit.start.min(end), *style)
                };
                spans.push(Span::styled(text[at..until].to_owned(), style));
                at = until;
            }
        }
        spans
    }
}

/// Returns a line with `left` at its start and `right` at its end. The right part is dropped if there
/// is no space for both.
pub(super) fn justify(left: Line<'static>, right: Line<'static>, width: usize) -> Line<'static> {
    let used = left.width() + right.width();
    if right.width() == 0 || used + 1 > width {
        return left;
    }
    let mut spans = left.spans;
    spans.push(Span::raw(" ".repeat(width - used)));
    spans.extend(right.spans);
    Line::from(spans)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wide_characters_take_two_cells() {
        assert_eq!(fit_text("日本語", 4), "日… ");
        assert_eq!(fit_text("ab", 4), "ab  ");
    }

    #[test]
    fn words_of_the_query_are_marked() {
        let found = Style::new().add_modifier(ratatui::style::Modifier::BOLD);
        let marker = Marker::new("is:error -gone \"retry BUDGET\"");
        let spans = marker.mark("the Budget of a retry", Style::new(), found);
        let marked: Vec<&str> = spans
            .iter()
            .filter(|span| span.style == found)
            .map(|span| span.content.as_ref())
            .collect();
        assert_eq!(marked, ["Budget", "retry"]);
        let lines = ["a retry", "  budget, one"].map(str::to_owned);
        assert!(Marker::new("is:error").matching_lines(&["is:error".to_owned()]).is_empty());
        assert_eq!(Marker::phrase("Retry budget").matching_lines(&lines), [0]);
        assert!(Marker::phrase("budget retry").matching_lines(&lines).is_empty());
        assert_eq!(Marker::phrase("/o.e/").matching_lines(&lines), [1]);
        let plain = Style::new();
        let spans =
            Marker::new("RetryBudget").mark_pieces(&[(plain, "a Retry"), (plain, "Budget")], found);
        let marked = spans.iter().filter(|span| span.style == found).map(|span| &*span.content);
        assert_eq!(marked.collect::<Vec<_>>(), ["Retry", "Budget"]);
    }
}
