//! Machine text in the user's role of a GitHub Copilot CLI log
//! (docs/formats.md#github-copilot-cli).

use crate::provider::shared::machine_text::MachineText;

/// Text around the words of a prompt.
#[rustfmt::skip]
pub(super) const TEXTS: &[MachineText] = &[
    // The heading of a field, where a program fills in a template (DSPy).
    MachineText { start: "[[ ## user_query ## ]]", end: "[[ ## user_query ## ]]", subtype: "template_field", seen: "1.0.64" },
];
