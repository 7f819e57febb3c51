//! Formats the metadata of tools.

use schemas::tool::metadata::MetadataData;

use super::layout::Layout;
use super::list::push_not_found;
use super::painted::{PLAIN, Painted, STRONG};
use super::show::Show;

impl Show for MetadataData {
    fn paint(&self, _: &Layout) -> Painted {
        let mut painted = Painted::new();
        for tool in &self.tools {
            let facts = format!(
                "  {}  risk {}  {}: {}",
                tool.category, tool.risk_level, tool.title, tool.action_template
            );
            painted.push_inline(STRONG, tool.tool).push_inline(PLAIN, &facts);
            painted.end_line();
        }
        push_not_found(&mut painted, &self.not_found);
        painted
    }
}
