//! The files of the page, as `cargo xtask web` built them from the sources in `source/`.

/// A file that every client may read.
pub(crate) struct BundledFile {
    pub(crate) content_type: &'static str,
    pub(crate) text: &'static str,
}

const HTML: BundledFile = BundledFile {
    content_type: "text/html; charset=utf-8",
    text: include_str!("bundle/index.html"),
};
pub(crate) const SCRIPT: BundledFile = BundledFile {
    content_type: "text/javascript; charset=utf-8",
    text: include_str!("bundle/page.js"),
};
pub(crate) const STYLE: BundledFile =
    BundledFile { content_type: "text/css; charset=utf-8", text: include_str!("bundle/page.css") };
const ICON: BundledFile =
    BundledFile { content_type: "image/svg+xml", text: include_str!("bundle/icon.svg") };

pub(crate) const LICENCES: BundledFile = BundledFile {
    content_type: "text/plain; charset=utf-8",
    text: include_str!("bundle/licences.txt"),
};

/// The first part of the paths that the script of the page turns into a view.
const VIEWS: &[&str] = &["", "search", "session", "live", "sql"];

/// Returns the file at a path.
pub(crate) fn find_file(path: &str) -> Option<&'static BundledFile> {
    let first = path.strip_prefix('/')?.split('/').next()?;
    match path {
        "/page.js" => Some(&SCRIPT),
        "/page.css" => Some(&STYLE),
        "/icon.svg" => Some(&ICON),
        "/licences.txt" => Some(&LICENCES),
        _ => VIEWS.contains(&first).then_some(&HTML),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn views_are_the_page_and_other_paths_are_nothing() {
        for path in ["/", "/search", "/session/9ae82b3a:4", "/sql"] {
            assert!(find_file(path).is_some_and(|file| file.text == HTML.text), "{path}");
        }
        for path in ["", "/etc/passwd", "/page.js/x", "/../page.js", "/searching", "search"] {
            assert!(find_file(path).is_none(), "{path}");
        }
    }

    #[test]
    fn what_is_inside_a_document_cannot_end_its_element() {
        for (text, end) in
            [(SCRIPT.text, "</script"), (LICENCES.text, "</script"), (STYLE.text, "</style")]
        {
            assert!(!text.contains(end) && !text.contains("<!--") && !text.contains('\r'), "{end}");
        }
    }
}
