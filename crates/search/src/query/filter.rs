//! Conditions on the fields of events and sessions: the qualifiers that name a value.

use std::borrow::Cow;

/// Defines the fields that a qualifier may examine, each with the name before the colon.
macro_rules! filter_fields {
    ($($field:ident = $name:literal),+ $(,)?) => {
        /// The field that a qualifier examines.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum FilterField { $($field),+ }

        impl FilterField {
            /// The names of the qualifiers.
            #[cfg(test)]
            const NAMES: &'static [&'static str] = &[$($name),+];

            /// Returns the name of the qualifier.
            pub fn as_str(self) -> &'static str {
                match self {
                    $(Self::$field => $name,)+
                }
            }

            /// Returns the field of a qualifier by the name before its colon.
            pub(super) fn from_name(name: &str) -> Option<Self> {
                match name {
                    // The names that the arguments of tools and the columns have.
                    "provider" => Some(Self::Agent),
                    "cwd" => Some(Self::Project),
                    "user_name" => Some(Self::User),
                    $($name => Some(Self::$field),)+
                    _ => None,
                }
            }
        }
    };
}

filter_fields! {
    Tool = "tool",
    Model = "model",
    Branch = "branch",
    File = "file",
    Agent = "agent",
    Project = "project",
    Label = "label",
    Machine = "machine",
    User = "user",
}

impl FilterField {
    /// Returns true if the field belongs to the session and not to the event.
    pub fn is_of_session(self) -> bool {
        match self {
            Self::Agent | Self::Project | Self::Label | Self::Machine | Self::User => true,
            Self::Tool | Self::Model | Self::Branch | Self::File => false,
        }
    }
}

/// A condition on a field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldFilter {
    pub field: FilterField,
    /// The texts in lower case, one of which must be part of the field.
    pub any: Vec<String>,
    /// True if none of `any` may be part of the field.
    pub is_excluded: bool,
}

impl FieldFilter {
    /// Returns true if `value` passes; `None` means that the event does not have the field.
    pub fn passes(&self, value: Option<&str>) -> bool {
        let Some(value) = value else { return self.is_excluded };
        let value = self.fold(&value.to_lowercase()).into_owned();
        let contains_any = self.any.iter().any(|wanted| value.contains(&*self.fold(wanted)));
        contains_any != self.is_excluded
    }

    /// Returns a text in lower case as it is compared: the version of a model may be `4.8` or `4-8`,
    /// and a path of Windows may be written with slashes.
    pub fn fold<'t>(&self, text: &'t str) -> Cow<'t, str> {
        match self.field {
            FilterField::Model => Cow::Owned(text.replace('.', "-")),
            FilterField::File | FilterField::Project => Cow::Owned(text.replace('\\', "/")),
            FilterField::Tool
            | FilterField::Branch
            | FilterField::Agent
            | FilterField::Label
            | FilterField::Machine
            | FilterField::User => Cow::Borrowed(text),
        }
    }

    /// Returns true if a field with several values passes: one of them contains a text of the filter,
    /// or none does if it excludes.
    pub fn passes_several(&self, values: &[Option<&str>]) -> bool {
        if self.is_excluded {
            values.iter().all(|value| self.passes(*value))
        } else {
            values.iter().any(|value| self.passes(*value))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::qualifiers::{QUALIFIERS, is_qualifier};
    use super::{FieldFilter, FilterField};

    #[test]
    fn paths_match_with_the_separators_of_any_system() {
        for field in [FilterField::File, FilterField::Project] {
            for (wanted, path) in [
                ("docs/plan.md", r"C:\Harbor\docs\plan.md"),
                (r"docs\plan.md", "/harbor/docs/plan.md"),
            ] {
                let any = vec![wanted.to_owned()];
                let filter = FieldFilter { field, any, is_excluded: false };
                assert!(filter.passes(Some(path)), "{wanted}: {path}");
                assert!(!filter.passes(Some("/harbor/docs-plan.md")), "{wanted}");
            }
        }
    }

    #[test]
    fn messages_list_every_field() {
        for name in FilterField::NAMES {
            assert!(is_qualifier(name), "{name} is not in {QUALIFIERS}");
        }
    }
}
