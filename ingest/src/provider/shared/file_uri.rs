//! Reads the path out of a `file:` URI, as editors write it, and writes one.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};

/// Schemes of URIs whose path is that of a file: on this machine, and on one that an editor is
/// connected to.
const SCHEMES: &[&str] = &["file://", "vscode-remote://"];

/// Returns the path that a URI names. `None` if the text is not a URI of a file.
///
/// The authority, such as the name of a remote machine, is left out. A path on Windows begins with
/// its drive.
pub(crate) fn file_uri_path(uri: &str) -> Option<String> {
    let rest = SCHEMES.iter().find_map(|scheme| uri.strip_prefix(scheme))?;
    let path = percent_decode_str(&rest[rest.find('/')?..]).decode_utf8().ok()?;
    let has_drive =
        matches!(path.as_bytes(), [b'/', drive, b':', ..] if drive.is_ascii_alphabetic());
    Some(if has_drive { path[1..].to_owned() } else { path.into_owned() })
}

/// Returns the URI of a path of any system.
pub(crate) fn to_file_uri(path: &str) -> String {
    const ESCAPES: &AsciiSet =
        &NON_ALPHANUMERIC.remove(b'/').remove(b'-').remove(b'.').remove(b'_').remove(b'~');

    let path = path.replace('\\', "/");
    let root = if path.starts_with('/') { "" } else { "/" };
    format!("file://{root}{}", utf8_percent_encode(&path, ESCAPES))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uris_name_paths_of_every_system() {
        let check = |uri: &str, want: Option<&str>| {
            assert_eq!(file_uri_path(uri).as_deref(), want, "{uri}");
        };
        check("file:///home/mira/code/my%20harbor", Some("/home/mira/code/my harbor"));
        check("file:///d%3A/code/harbor", Some("d:/code/harbor"));
        check("file:///C:/code", Some("C:/code"));
        check("vscode-remote://ssh-remote%2Bbox/srv/harbor", Some("/srv/harbor"));
        check("file:///100%/%zz/%C3%A9", Some("/100%/%zz/é"));
        check("file:///srv/50%+1", Some("/srv/50%+1"));
        check("file:///%ff", None);
        check("file://host", None);
        check("https://example.org/x", None);
        check("/home/mira", None);
        for path in ["/home/mira/my häfen", "D:/code/harbor"] {
            assert_eq!(file_uri_path(&to_file_uri(path)).as_deref(), Some(path));
        }
    }
}
