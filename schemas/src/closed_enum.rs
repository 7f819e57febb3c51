//! Defines the macro for enums whose values are parsed from their names, with an error that lists
//! the valid names.

/// Defines a closed enum whose wire form is snake_case, with parsing and the list of its values.
macro_rules! closed_enum {
    ($(#[$meta:meta])* $name:ident { $($(#[$vmeta:meta])* $variant:ident = $text:literal),+ $(,)? }) => {
        $crate::named_enum::named_enum! {
            $(#[$meta])* $name { $($(#[$vmeta])* $variant = $text),+ }
        }

        impl std::str::FromStr for $name {
            type Err = $crate::error::ToolError;

            /// Parses the wire form. The error names the value and the valid values.
            fn from_str(text: &str) -> Result<Self, Self::Err> {
                Self::ALL.iter().copied().find(|value| value.as_str() == text).ok_or_else(|| {
                    $crate::error::ToolError::invalid_value("", text, Self::NAMES)
                })
            }
        }
    };
}
pub(crate) use closed_enum;
