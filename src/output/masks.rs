//! Formats which rules masked what.

use std::fmt::Write as _;

use super::layout::Layout;
use super::painted::Painted;
use super::show::Show;
use base::sanitize::one_line;
use tools::masks::{MaskReport, MaskedText};

/// Maximum number of rules listed for a kind whose rule is not known.
const MAX_RULES: usize = 10;

impl Show for MaskReport {
    fn paint(&self, _: &Layout) -> Painted {
        let mut out = String::new();
        if self.masked.is_empty() {
            let _ = writeln!(out, "Nothing is masked in {}.", one_line(&self.session_id));
            out.push_str("hint: `sessions doctor` counts the masked secrets of all sessions\n");
            return Painted::from_text(&out);
        }
        for masked in &self.masked {
            let place = masked.event_id.as_deref().unwrap_or(&self.session_id);
            let _ = write!(out, "{} {}: {}", one_line(place), masked.field, one_line(&masked.kind));
            if masked.count > 1 {
                let _ = write!(out, " ×{}", masked.count);
            }
            out.push('\n');
            if masked.is_of_user {
                let _ = writeln!(out, "    your rule {} in redact.toml", one_line(&masked.kind));
            }
            for rule in &masked.rules {
                let _ = writeln!(out, "    {rule}");
            }
            if masked.rules.is_empty() && !masked.is_of_user {
                let _ = writeln!(out, "    {}", describe_unknown(self, masked));
            }
        }
        for (kind, rules) in &self.rules_by_kind {
            let _ = writeln!(out, "rules for {}", one_line(kind));
            for rule in rules.iter().take(MAX_RULES) {
                let _ = writeln!(out, "    {rule}");
            }
            if rules.len() > MAX_RULES {
                let omitted = rules.len() - MAX_RULES;
                let _ = writeln!(out, "    and {omitted} more, which --json lists");
            }
        }
        Painted::from_text(&out)
    }
}

/// Returns what is known of the rule that masked a text if no rule masks a secret there now.
fn describe_unknown(report: &MaskReport, masked: &MaskedText) -> String {
    match report.rules_by_kind.get(&masked.kind) {
        Some(rules) => {
            format!("one of {} rules: what announced the secret is not in the text", rules.len())
        }
        None => "no rule of today: an earlier one, one of another machine, or the agent".to_owned(),
    }
}
