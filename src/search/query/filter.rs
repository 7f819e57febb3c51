//! Conditions on the fields of events and sessions: the qualifiers that name a value.

/// The field that a qualifier examines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FilterField {
    Tool,
    Model,
    Branch,
    File,
    Agent,
    Label,
}

impl FilterField {
    /// Returns the field of a qualifier by the name before its colon.
    pub(super) fn from_name(name: &str) -> Option<Self> {
        match name {
            "tool" => Some(Self::Tool),
            "model" => Some(Self::Model),
            "branch" => Some(Self::Branch),
            "file" => Some(Self::File),
            "agent" => Some(Self::Agent),
            "label" => Some(Self::Label),
            _ => None,
        }
    }

    /// Returns true if the field belongs to the session and not to the event.
    pub fn is_of_session(self) -> bool {
        match self {
            Self::Agent | Self::Label => true,
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
        let value = value.to_lowercase();
        let contains_any = self.any.iter().any(|wanted| value.contains(wanted.as_str()));
        contains_any != self.is_excluded
    }
}
