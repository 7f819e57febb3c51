//! Fits text into a width: cells are counted as a terminal counts them.

use ratatui::style::Style;
use ratatui::text::{Line, Span};
use schemas::Timestamp;

use crate::output::Highlighter;
use base::cells::{text_width, truncate_end};
use search::Query;

/// Returns a text of exactly `width` cells: the beginning of `text`, filled up with spaces.
pub(super) fn fit_text(text: &str, width: usize) -> String {
    let mut shown = truncate_end(text, width);
    let cells = text_width(&shown);
    shown.push_str(&" ".repeat(width.saturating_sub(cells)));
    shown
}

/// Returns the words that a query marks. Nothing is marked while it is not complete.
pub(super) fn highlight_query(text: &str) -> Highlighter {
    let query = Query::parse(text, Timestamp::now());
    query.map(|query| Highlighter::new(&query.to_parsed_query())).unwrap_or_default()
}

/// Returns the positions of the lines in which matches begin.
pub(super) fn matching_lines(words: &Highlighter, lines: &[String]) -> Vec<usize> {
    let text = lines.join("\n");
    words.find_in(&text).map(|hit| text[..hit.start].matches('\n').count()).collect()
}

/// Returns the pieces of a text as spans, with the words in the text marked.
pub(super) fn mark_words(
    words: &Highlighter,
    pieces: &[(Style, &str)],
    found: Style,
) -> Vec<Span<'static>> {
    let text: String = pieces.iter().map(|(_, text)| *text).collect();
    let mut hits = words.find_in(&text).peekable();
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
        let marked = |words: &Highlighter, pieces: &[&str]| {
            let pieces: Vec<_> = pieces.iter().map(|piece| (Style::new(), *piece)).collect();
            let spans = mark_words(words, &pieces, found);
            let spans = spans.into_iter().filter(|span| span.style == found);
            spans.map(|span| span.content.into_owned()).collect::<Vec<_>>()
        };
        let words = highlight_query("is:error -gone shared \"retry BUDGET\"");
        let text = "gone is:error of the shared Retry budget, no retry";
        assert_eq!(marked(&words, &[text]), ["shared", "Retry budget"]);
        assert_eq!(
            marked(&highlight_query("retrybudget"), &["a Retry", "Budget"]),
            ["Retry", "Budget"]
        );
        assert!(marked(&highlight_query("\"not closed"), &["not closed"]).is_empty());
        let lines = ["a retry", "  budget, one"].map(str::to_owned);
        assert_eq!(matching_lines(&Highlighter::phrase("Retry budget"), &lines), [0]);
        assert!(matching_lines(&Highlighter::phrase("budget retry"), &lines).is_empty());
        assert_eq!(matching_lines(&Highlighter::phrase("/o.e/"), &lines), [1]);
    }
}
