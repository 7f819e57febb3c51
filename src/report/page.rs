//! The HTML file of a report: the data and the code that shows it, all in one file.

use serde::Serialize;

use crate::export::csp::content_security_policy;

/// Chart.js as published on npm; `assets/chart.js-LICENSE.md` is its licence.
const CHARTS: &str = include_str!("assets/chart.umd.min.js");

/// The script that draws the charts, after the functions that word its values.
const SCRIPT: &str = concat!(include_str!("assets/values.js"), include_str!("assets/report.js"));

/// The style sheet of the page.
const STYLE: &str = include_str!("assets/report.css");

/// The tag that identifies a file as a report.
pub(super) const GENERATOR: &str = r#"<meta name="generator" content="sessions report">"#;

/// Returns the page that shows `report`, which the script of the page reads as JSON.
pub(super) fn render_page(report: &impl Serialize) -> Result<String, serde_json::Error> {
    // Without `<`, the data cannot end the element that contains it.
    let data = serde_json::to_string(report)?.replace('<', "\\u003c");
    let policy = content_security_policy(&[CHARTS, SCRIPT], &[STYLE]);
    Ok(format!(
        r##"<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
{GENERATOR}
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Coding sessions</title>
<style>{STYLE}</style>
</head>
<body>
<a class="skip" href="#main">Skip to the content</a>
<main id="main" tabindex="-1"><noscript>This report draws itself with JavaScript, which is switched off here.</noscript></main>
<script type="application/json" id="data">{data}</script>
<script>{CHARTS}</script>
<script>{SCRIPT}</script>
</body>
</html>
"##
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_inside_cannot_end_its_element() {
        for (asset, end) in [(CHARTS, "</script"), (SCRIPT, "</script"), (STYLE, "</style")] {
            assert!(!asset.contains(end) && !asset.contains("<!--") && !asset.contains('\r'));
        }
    }
}
