//! The page as one file, with its data inside: a report, or the transcript of a session. Its script
//! draws the data in the same way as the data of a server.
//!
//! ```text
//! <html data-frozen="report">
//!   <script type="application/json" id="data">    what the views show
//!   <script type="text/plain" data-talk="9ae8">   a conversation: JSON, compressed, as base64
//! <html data-frozen="transcript" data-session="9ae8">
//!   <div id="plain">                              the conversation, to be read without the script
//! ```

use std::io::Write as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::write::ZlibEncoder;
use schemas::tool::details::{Child, SessionEnd, Summary, ToolCount};
use schemas::{ErrorCode, ToolError};
use serde::Serialize;
use sha2::{Digest as _, Sha256};

use super::bundle::{LICENCES, SCRIPT, STYLE};
use super::escape::escape_html;

/// Level of compression. Higher ones make a conversation a few percent smaller and take twice as
/// long.
const COMPRESSION_LEVEL: u32 = 5;

/// What a document shows.
#[derive(Debug, Clone, Copy)]
pub(crate) enum FrozenView<'a> {
    Report,
    Transcript { session: &'a str },
}

/// The conversation of a session as a document has it.
pub(crate) struct PackedTalk {
    pub(crate) session: String,
    pub(crate) base64: String,
}

impl PackedTalk {
    /// Compresses a conversation.
    pub(crate) fn new(session: &str, talk: &impl Serialize) -> Result<Self, ToolError> {
        // The encoder clears its buffer at every write, so it gets the whole text at once.
        let json = serde_json::to_vec(talk).map_err(|error| no_document(&error))?;
        let mut encoder = ZlibEncoder::new(Vec::new(), Compression::new(COMPRESSION_LEVEL));
        encoder.write_all(&json).map_err(|error| no_document(&error))?;
        let bytes = encoder.finish().map_err(|error| no_document(&error))?;
        Ok(Self { session: session.to_owned(), base64: STANDARD.encode(bytes) })
    }

    /// Returns the number of bytes that the conversation has in a document.
    pub(crate) fn len(&self) -> usize {
        self.base64.len()
    }
}

/// The part of the answer of `get_session_details` that the page shows. The excerpts of a summary are
/// left out: the conversation has their texts.
#[derive(Serialize)]
pub(crate) struct ShownDetails<'a> {
    summary: Option<ShownSummary<'a>>,
}

#[derive(Serialize)]
struct ShownSummary<'a> {
    tools: &'a [ToolCount],
    #[serde(skip_serializing_if = "SessionEnd::is_empty")]
    end: &'a SessionEnd,
    children: &'a [Child],
}

impl<'a> ShownDetails<'a> {
    pub(crate) fn new(summary: Option<&'a Summary>) -> Self {
        let summary = summary.map(|summary| ShownSummary {
            tools: &summary.tools,
            end: &summary.end,
            children: &summary.children,
        });
        Self { summary }
    }
}

/// A page with its data.
pub(crate) struct FrozenDocument<'a, T> {
    pub(crate) view: FrozenView<'a>,
    pub(crate) title: &'a str,
    pub(crate) data: &'a T,
    pub(crate) talks: &'a [PackedTalk],
    /// What is shown without a script, as HTML.
    pub(crate) plain: &'a str,
}

impl FrozenView<'_> {
    /// Returns the tag that identifies a file as a report or as a transcript.
    pub(crate) fn generator_tag(self) -> &'static str {
        match self {
            Self::Report => r#"<meta name="generator" content="sessions report">"#,
            Self::Transcript { .. } => r#"<meta name="generator" content="sessions transcript">"#,
        }
    }

    /// Returns the attributes of the root, which the script reads.
    fn attributes(self) -> String {
        match self {
            Self::Report => r#"data-frozen="report""#.to_owned(),
            Self::Transcript { session } => {
                format!(r#"data-frozen="transcript" data-session="{}""#, escape_html(session))
            }
        }
    }
}

impl<T: Serialize> FrozenDocument<'_, T> {
    /// Renders the document.
    pub(crate) fn render(&self) -> Result<String, ToolError> {
        // Without `<`, the data cannot end the element that contains it.
        let data = serde_json::to_string(self.data)
            .map_err(|error| no_document(&error))?
            .replace('<', "\\u003c");
        let attributes = self.view.attributes();
        let generator = self.view.generator_tag();
        let policy = content_security_policy(SCRIPT.text, STYLE.text);
        let title = escape_html(self.title);
        let style = STYLE.text;
        let plain = self.plain;
        let mut out = format!(
            "<!doctype html>\n<html lang=\"en\" {attributes}>\n<head>\n<meta charset=\"utf-8\">\n\
             {generator}\n<meta http-equiv=\"Content-Security-Policy\" content=\"{policy}\">\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
             <title>{title}</title>\n<style>{style}</style>\n</head>\n<body>\n\
             <div id=\"app\"></div>\n<div id=\"plain\">\n{plain}</div>\n\
             <script type=\"application/json\" id=\"data\">{data}</script>\n"
        );
        for talk in self.talks {
            out.push_str("<script type=\"text/plain\" data-talk=\"");
            out.push_str(&escape_html(&talk.session));
            out.push_str("\">");
            out.push_str(&talk.base64);
            out.push_str("</script>\n");
        }
        // The script contains libraries, whose licences have to go with it.
        out.push_str("<script type=\"text/plain\" id=\"licences\">");
        out.push_str(LICENCES.text);
        out.push_str("</script>\n<script>");
        out.push_str(SCRIPT.text);
        out.push_str("</script>\n</body>\n</html>\n");
        Ok(out)
    }
}

fn no_document(error: &dyn std::fmt::Display) -> ToolError {
    ToolError::new(ErrorCode::InternalError, format!("The page cannot be written: {error}"))
}

/// Returns the content of the `Content-Security-Policy` of a document with this script and style. A
/// browser runs and applies only what is named by its hash, and turns no text into markup. So no text
/// from a log can run, and nothing is loaded from elsewhere. Images are part of the document.
fn content_security_policy(script: &str, style: &str) -> String {
    format!(
        "default-src 'none'; script-src {}; style-src {}; img-src data:; base-uri 'none'; \
         form-action 'none'; require-trusted-types-for 'script'; trusted-types 'none'",
        source_hash(script),
        source_hash(style)
    )
}

/// Returns the hash of a source in the form of a policy.
fn source_hash(source: &str) -> String {
    let digest = Sha256::digest(source.as_bytes());
    let bytes: &[u8] = &digest;
    format!("'sha256-{}'", STANDARD.encode(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_what_is_inside() {
        assert_eq!(source_hash("abc"), "'sha256-ungWv48Bz+pBQUDeXa4iI7ADYaOWF3qctBD/YfIAFa0='");
        assert!(
            content_security_policy("", "abc")
                .starts_with("default-src 'none'; script-src 'sha256-47DEQ")
        );
    }
}
