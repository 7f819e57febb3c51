//! The state of the reading view: the lines of a conversation, and the place in them.

use std::collections::HashMap;
use std::sync::Arc;

use ratatui::layout::Rect;
use schemas::Zone;

use super::areas::divide_screen;
use crate::output::Highlighter;
use crate::output::conversation_blocks::{BlockContent, Conversation};
use crate::screen::conversation_lines::{ConversationFormat, ConversationLine, Detail};
use crate::screen::line_edit::LineEdit;
use crate::screen::text::highlight_query;
use crate::screen::theme::Theme;

/// A conversation on the screen.
pub(in crate::screen) struct Reader {
    pub(super) conversation: Arc<Conversation>,
    pub(super) theme: Theme,
    pub(super) zone: Zone,
    pub(super) words: Highlighter,
    /// How much of the calls is shown.
    pub(super) detail: Detail,
    /// How much of single blocks is shown, where it differs.
    pub(super) block_details: HashMap<usize, Detail>,
    pub(super) lines: Vec<ConversationLine>,
    /// The place of the lines when they were drawn.
    pub(super) area: Rect,
    /// The first line on the screen.
    pub(super) top: usize,
    /// The text to look for, while it is typed.
    pub(super) search: Option<LineEdit>,
}

impl Reader {
    /// Opens a conversation. The words of `query` are marked, and the block of the event `start_at`
    /// is the first one on the screen.
    pub(in crate::screen) fn open(
        conversation: Arc<Conversation>,
        query: &str,
        start_at: Option<u32>,
        theme: Theme,
        zone: Zone,
        area: Rect,
    ) -> Self {
        let mut reader = Self {
            conversation,
            theme,
            zone,
            words: highlight_query(query),
            detail: Detail::Folded,
            block_details: HashMap::new(),
            lines: Vec::new(),
            area: divide_screen(area).body,
            top: 0,
            search: None,
        };
        if let Some(event) = start_at {
            let block = reader.conversation.block_of_event(event);
            // What was found may be in the output of a call.
            if let Some(BlockContent::Calls(_) | BlockContent::Reasoning(_)) =
                reader.conversation.blocks.get(block).map(|block| &block.content)
            {
                reader.block_details.insert(block, Detail::Outputs);
            }
            reader.format_lines();
            reader.show_block(block);
            reader.show_match_of_block(block);
        } else {
            reader.format_lines();
        }
        reader
    }

    pub(in crate::screen) fn conversation(&self) -> &Conversation {
        &self.conversation
    }

    /// Formats the lines again, after a change of the width or of the details.
    pub(super) fn format_lines(&mut self) {
        let format = ConversationFormat {
            width: usize::from(self.area.width),
            theme: self.theme,
            words: &self.words,
            zone: &self.zone,
        };
        let detail = |block| self.block_details.get(&block).copied().unwrap_or(self.detail);
        self.lines = format.format(&self.conversation, detail);
    }

    /// Adapts to a new size of the screen.
    pub(in crate::screen) fn resize(&mut self, area: Rect) {
        let area = divide_screen(area).body;
        if area == self.area {
            return;
        }
        let has_new_width = area.width != self.area.width;
        self.area = area;
        if has_new_width {
            self.format_again();
        }
        self.scroll_to(self.top);
    }

    /// Formats the lines again. The first match on the screen stays in its row; without a match, the
    /// first line does.
    pub(super) fn format_again(&mut self) {
        let mut shown = self.top..self.lines.len().min(self.top + self.height());
        let found = shown.find(|line| self.lines[*line].is_match);
        let kept = found.unwrap_or(self.top);
        let Some(line) = self.lines.get(kept).cloned() else {
            self.format_lines();
            return;
        };
        let first = self.lines.iter().position(|other| other.block == line.block).unwrap_or(kept);

        self.format_lines();
        let is_same = |at: &usize| {
            let other = &self.lines[*at];
            other.block == line.block && other.line.to_string() == line.line.to_string()
        };
        let new_first = self.lines.iter().position(|other| other.block >= line.block);
        let new_first = new_first.unwrap_or(0);
        // A text may be there twice: the line at its old place in the block comes first.
        let old_place = Some(new_first + kept - first).filter(|at| *at < self.lines.len());
        let same = old_place.filter(is_same).or_else(|| (0..self.lines.len()).find(is_same));
        let is_wanted = |other: &ConversationLine| other.block == line.block && other.is_match;
        let of_match = || self.lines.iter().position(is_wanted).filter(|_| line.is_match);
        let place = same.or_else(of_match).unwrap_or(new_first);
        self.scroll_to(place.saturating_sub(kept - self.top));
    }

    /// Scrolls to the first line of a block.
    pub(super) fn show_block(&mut self, block: usize) {
        let line = self.lines.iter().position(|line| line.block >= block);
        self.scroll_to(line.unwrap_or(0));
    }

    /// Scrolls down to the first match in a block, if it is below the screen.
    pub(super) fn show_match_of_block(&mut self, block: usize) {
        let is_wanted = |line: &ConversationLine| line.block == block && line.is_match;
        let Some(found) = self.lines.iter().position(is_wanted) else { return };
        if found >= self.top + self.height() {
            self.scroll_to(found.saturating_sub(2));
        }
    }

    pub(super) fn height(&self) -> usize {
        usize::from(self.area.height)
    }

    /// Scrolls so that `line` is the first one, if there are enough lines below it.
    pub(super) fn scroll_to(&mut self, line: usize) {
        self.top = line.min(self.lines.len().saturating_sub(self.height()));
    }

    /// Scrolls by a number of lines.
    pub(in crate::screen) fn scroll_by(&mut self, lines: isize) {
        self.scroll_to(self.top.saturating_add_signed(lines));
    }

    /// Scrolls to the next prompt, or to the one before.
    pub(super) fn show_prompt(&mut self, is_next: bool) {
        let is_prompt = |line: usize| {
            let block = self.lines[line].block;
            let is_first = line == 0 || self.lines[line - 1].block != block;
            let content = self.conversation.blocks.get(block).map(|block| &block.content);
            is_first && matches!(content, Some(BlockContent::Prompt(_)))
        };
        let found = self.find_line(is_prompt, is_next);
        self.scroll_to(found.unwrap_or(self.top));
    }

    /// Scrolls to the next line with a match, or to the one before. Returns false if there is none.
    pub(super) fn show_match(&mut self, is_next: bool) -> bool {
        let found = self.find_line(|line| self.lines[line].is_match, is_next);
        self.scroll_to(found.unwrap_or(self.top));
        found.is_some()
    }

    /// Finds the next wanted line after the first one on the screen, or the one before it.
    fn find_line(&self, is_wanted: impl Fn(usize) -> bool, is_next: bool) -> Option<usize> {
        if is_next {
            (self.top + 1..self.lines.len()).find(|line| is_wanted(*line))
        } else {
            (0..self.top).rev().find(|line| is_wanted(*line))
        }
    }

    /// Shows more of all calls, or folds them again.
    pub(super) fn switch_detail(&mut self) {
        self.detail = self.detail.next();
        self.block_details.clear();
        self.format_again();
    }

    /// Shows all of all calls. Returns what was shown of them before.
    pub(super) fn show_outputs(&mut self) -> (Detail, HashMap<usize, Detail>) {
        let detail = std::mem::replace(&mut self.detail, Detail::Outputs);
        (detail, std::mem::take(&mut self.block_details))
    }

    /// Shows more of the block in a row of the screen, or folds it again.
    pub(in crate::screen) fn switch_block_at(&mut self, row: u16) {
        let Some(offset) = row.checked_sub(self.area.y) else { return };
        let Some(line) = self.lines.get(self.top + usize::from(offset)) else { return };
        let block = line.block;
        let detail = self.block_details.get(&block).copied().unwrap_or(self.detail);
        self.block_details.insert(block, detail.next());
        let top = self.top;
        self.format_lines();
        self.scroll_to(top);
    }

    /// Looks for the typed text from the top of the screen on. Returns false if nothing has it.
    pub(super) fn run_search(&mut self, text: &str) -> bool {
        self.words = Highlighter::phrase(text);
        self.format_again();
        let is_shown = self.lines.get(self.top).is_some_and(|line| line.is_match);
        is_shown || self.show_match(true) || self.show_match(false)
    }
}
