//! A conversation as lines of a screen.

use ratatui::style::Style;
use ratatui::text::{Line, Span};
use schemas::Zone;

use super::facts::format_time;
use super::text::{justify, mark_words, matching_lines};
use super::theme::Theme;
use crate::output::conversation_blocks::{
    BlockContent, CallEntry, CallStatus, Conversation, ConversationBlock, run_line,
};
use crate::output::painted::{DIM, FAILED, PLAIN, PROMPT, STRONG, StyledText, diff_style};
use crate::output::{Highlighter, wrap_lines, wrap_markdown};
use base::cells::truncate_end;

/// The cells before the text of a message.
const INDENT: usize = 2;

/// The cells before the details of a call.
const DETAIL_INDENT: usize = 6;

/// The most characters of the line of a call before its remarks.
const MAX_CALL_CELLS: usize = 200;

/// How much of the calls and the reasoning is shown.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Detail {
    /// One line for all of a block.
    #[default]
    Folded,
    /// One line for each call.
    Calls,
    /// What each call got and returned, too.
    Outputs,
}

impl Detail {
    /// Returns the next detail, and after the last one the first.
    pub(super) const fn next(self) -> Self {
        match self {
            Self::Folded => Self::Calls,
            Self::Calls => Self::Outputs,
            Self::Outputs => Self::Folded,
        }
    }
}

/// A line of a conversation.
#[derive(Debug, Clone)]
pub(super) struct ConversationLine {
    pub(super) line: Line<'static>,
    /// The position of its block.
    pub(super) block: usize,
    /// True if a word of the search occurs in it.
    pub(super) is_match: bool,
}

/// Formats conversations.
pub(super) struct ConversationFormat<'a> {
    pub(super) width: usize,
    pub(super) theme: Theme,
    /// The words that are marked.
    pub(super) words: &'a Highlighter,
    /// The zone of the times of prompts.
    pub(super) zone: &'a Zone,
}

impl ConversationFormat<'_> {
    /// Returns the lines of a conversation. `detail` returns how much of a block is shown.
    pub(super) fn format(
        &self,
        conversation: &Conversation,
        detail: impl Fn(usize) -> Detail,
    ) -> Vec<ConversationLine> {
        let mut lines = Vec::new();
        for (position, block) in conversation.blocks.iter().enumerate() {
            let mut own = Vec::new();
            self.append_block(&mut own, block, detail(position));
            // One empty line between two blocks is enough.
            let ends_empty =
                lines.last().is_none_or(|last: &ConversationLine| last.line.width() == 0);
            if ends_empty && own.first().is_some_and(|line| line.width() == 0) {
                own.remove(0);
            }
            let texts: Vec<String> = own.iter().map(Line::to_string).collect();
            let matches = matching_lines(self.words, &texts);
            lines.extend(own.into_iter().enumerate().map(|(at, line)| ConversationLine {
                is_match: matches.contains(&at),
                line,
                block: position,
            }));
        }
        lines
    }

    fn append_block(
        &self,
        out: &mut Vec<Line<'static>>,
        block: &ConversationBlock,
        detail: Detail,
    ) {
        match &block.content {
            BlockContent::Prompt(text) => self.append_prompt(out, block, text),
            BlockContent::Answer(text) => self.append_answer(out, text),
            BlockContent::Reasoning(text) if detail == Detail::Folded => {
                let words = text.split_whitespace().count();
                let summary = format!("  ▸ thought, {words} words");
                out.push(Line::styled(summary, self.theme.style(DIM)));
            }
            BlockContent::Reasoning(text) => {
                out.push(Line::styled("  ▾ thought", self.theme.style(DIM)));
                self.append_text(out, text, INDENT + 2, self.theme.style(DIM));
            }
            BlockContent::Calls(calls) => self.append_calls(out, calls, detail),
            BlockContent::Notices(summary) => {
                let summary = truncate_end(summary, self.width.saturating_sub(INDENT + 2));
                out.push(Line::styled(format!("  · {summary}"), self.theme.style(DIM)));
            }
        }
    }

    fn append_prompt(&self, out: &mut Vec<Line<'static>>, block: &ConversationBlock, text: &str) {
        out.push(Line::default());
        let time = block.timestamp.as_deref().map(|time| format_time(time, self.zone));
        let time = time.unwrap_or_default();
        let width = self.width.saturating_sub(INDENT);
        for (row, line) in wrap_lines(text, width).into_iter().enumerate() {
            let sign = if row == 0 { "❯ " } else { "  " };
            let mut spans = vec![Span::styled(sign, self.theme.style(PROMPT))];
            spans.extend(self.mark(&line, self.theme.style(STRONG)));
            let time = if row == 0 { time.as_str() } else { "" };
            let time = Line::styled(time.to_owned(), self.theme.style(DIM));
            out.push(justify(Line::from(spans), time, self.width));
        }
        out.push(Line::default());
    }

    /// Appends an answer after an empty line, so that the calls that it announces follow it.
    fn append_answer(&self, out: &mut Vec<Line<'static>>, text: &str) {
        out.push(Line::default());
        for pieces in wrap_markdown(text, self.width.saturating_sub(INDENT)) {
            let pieces: Vec<(Style, &str)> = pieces
                .iter()
                .map(|piece| (self.theme.style(piece.kind.style()), piece.text.as_str()))
                .collect();
            let mut spans = vec![Span::raw(" ".repeat(INDENT))];
            spans.extend(mark_words(self.words, &pieces, self.theme.found()));
            out.push(Line::from(spans));
        }
    }

    /// Returns a text as spans, with its words marked.
    fn mark(&self, text: &str, style: Style) -> Vec<Span<'static>> {
        mark_words(self.words, &[(style, text)], self.theme.found())
    }

    fn append_text(&self, out: &mut Vec<Line<'static>>, text: &str, indent: usize, style: Style) {
        for line in wrap_lines(text, self.width.saturating_sub(indent)) {
            let mut spans = vec![Span::raw(" ".repeat(indent))];
            spans.extend(self.mark(&line, style));
            out.push(Line::from(spans));
        }
    }

    fn append_calls(&self, out: &mut Vec<Line<'static>>, calls: &[CallEntry], detail: Detail) {
        if let ([_, _, ..], Detail::Folded) = (calls, detail) {
            out.push(self.folded_calls(calls));
            return;
        }
        for call in calls {
            out.push(self.call_line(call));
            if detail != Detail::Outputs {
                continue;
            }
            for line in wrap_lines(&call.details, self.width.saturating_sub(DETAIL_INDENT)) {
                let mut spans = vec![Span::raw(" ".repeat(DETAIL_INDENT))];
                spans.extend(self.mark(&line, self.theme.style(diff_style(&line))));
                out.push(Line::from(spans));
            }
        }
    }

    /// Returns the line for a run of calls.
    fn folded_calls(&self, calls: &[CallEntry]) -> Line<'static> {
        let mut line = vec![(DIM, "  ▸ ".to_owned())];
        line.extend(run_line(calls, self.width.saturating_sub(INDENT + 2)));
        Line::from(self.mark_texts(&line))
    }

    fn call_line(&self, call: &CallEntry) -> Line<'static> {
        let style = if call.status == CallStatus::Failed { FAILED } else { DIM };
        let remarks = Line::styled(call.remarks.join(", "), self.theme.style(style));
        let width = self.width.saturating_sub(INDENT + remarks.width() + 1).min(MAX_CALL_CELLS);
        let mut line = vec![(PLAIN, " ".repeat(INDENT))];
        line.extend(call.line(width));
        justify(Line::from(self.mark_texts(&line)), remarks, self.width)
    }

    /// Returns texts as spans, with their words marked.
    fn mark_texts(&self, texts: &[StyledText]) -> Vec<Span<'static>> {
        let pieces: Vec<(Style, &str)> =
            texts.iter().map(|(style, text)| (self.theme.style(*style), text.as_str())).collect();
        mark_words(self.words, &pieces, self.theme.found())
    }
}
