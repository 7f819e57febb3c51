//! Lists the tools, and defines which of them a server serves.

use super::spec::ToolSpec;
use super::{analyze, details, event, find, label, list, memory, metadata, query, search, stats};

/// All tools, sorted by name.
pub const TOOLS: &[ToolSpec] = &[
    analyze::SPEC,
    event::SPEC,
    details::SPEC,
    list::SPEC,
    query::SPEC,
    search::SPEC,
    find::SPEC,
    stats::SPEC,
    metadata::SPEC,
    label::SPEC,
];

/// The tool that a server serves only if its user asks for it.
const SMALL_TOOL: &ToolSpec = &memory::SPEC;

/// Returns all tools that a server can serve: [`TOOLS`], then the small one.
fn servable_tools() -> impl Iterator<Item = &'static ToolSpec> {
    TOOLS.iter().chain([SMALL_TOOL])
}

/// The tools that a server serves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ServedTools {
    /// A bit for each of [`servable_tools`], in their order.
    bits: u16,
}

impl Default for ServedTools {
    fn default() -> Self {
        Self::ALL
    }
}

impl ServedTools {
    /// All tools except the small one, which answers with them.
    pub const ALL: Self = Self { bits: (1 << TOOLS.len()) - 1 };

    /// The small tool alone.
    pub const MEMORY: Self = Self { bits: 1 << TOOLS.len() };

    /// Returns the names of all tools that a server can serve.
    pub fn servable_names() -> impl Iterator<Item = &'static str> {
        servable_tools().map(|spec| spec.name)
    }

    /// Returns the tools with these names. Other names are ignored.
    pub fn from_names(names: &[String]) -> Self {
        let mut bits = 0;
        for (at, name) in Self::servable_names().enumerate() {
            if names.iter().any(|wanted| wanted == name) {
                bits |= 1 << at;
            }
        }
        Self { bits }
    }

    /// Returns the served tools, in their order.
    pub fn specs(self) -> impl Iterator<Item = &'static ToolSpec> {
        let with_bits = servable_tools().enumerate();
        with_bits.filter(move |(at, _)| self.bits & (1 << at) != 0).map(|(_, spec)| spec)
    }

    /// Returns true if the tool with this name is served.
    pub fn includes(self, name: &str) -> bool {
        self.find(name).is_some()
    }

    /// Finds the served tool with this name.
    pub fn find(self, name: &str) -> Option<&'static ToolSpec> {
        self.specs().find(|spec| spec.name == name)
    }

    /// Returns the tools that are not served, without the small one.
    pub fn missing(self) -> impl Iterator<Item = &'static ToolSpec> {
        TOOLS.iter().filter(move |spec| !self.includes(spec.name))
    }

    /// Replaces the names of tools that are not served by the commands that do the same.
    pub fn reword(self, text: &str) -> String {
        self.missing().fold(text.to_owned(), |text, spec| {
            text.replace(spec.name, &format!("`sessions {}`", spec.command))
        })
    }
}

/// Finds the tool with this name among all that a server can serve.
pub fn find_servable_tool(name: &str) -> Option<&'static ToolSpec> {
    servable_tools().find(|spec| spec.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(served: ServedTools) -> Vec<&'static str> {
        served.specs().map(|spec| spec.name).collect()
    }

    #[test]
    fn tools_are_served_by_name_in_their_order() {
        let named = ["session_stats", "list_sessions", "nonsense"].map(str::to_owned);
        let some = ServedTools::from_names(&named);
        assert_eq!(names(some), ["list_sessions", "session_stats"]);
        assert!(some.find("list_sessions").is_some() && some.find("query_sql").is_none());
        assert_eq!(some.missing().count(), TOOLS.len() - 2);
        assert_eq!(names(ServedTools::ALL).len(), TOOLS.len());
        assert_eq!(names(ServedTools::MEMORY), ["sessions"]);
        assert_eq!(ServedTools::servable_names().count(), TOOLS.len() + 1);
    }

    #[test]
    fn a_text_names_commands_for_tools_that_are_not_served() {
        let text = "as list_sessions and search_events say";
        assert_eq!(ServedTools::ALL.reword(text), text);
        let some = ServedTools::from_names(&["search_events".to_owned()]);
        assert_eq!(some.reword(text), "as `sessions list` and search_events say");
    }
}
