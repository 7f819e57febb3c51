//! The token that clients of the HTTP server have to send.

use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use schemas::{ErrorCode, ToolError};

use super::environment::read_variable;
use super::settings::invalid_file_error;
use crate::files::pipes::open_to_read;
use crate::files::stdin::read_text;
use base::random::random_bytes;
use store::Store;
use tools::error::store_error;

/// The environment variable with the token.
const TOKEN_VARIABLE: &str = "SESSIONS_HTTP_TOKEN";

/// Minimum length of a token in bytes, which are visible ASCII characters.
const MIN_TOKEN_BYTES: usize = 16;

/// Maximum size of a token file in bytes; a larger file is refused.
const MAX_TOKEN_FILE_BYTES: u64 = 64 << 10;

/// Returns the token that clients of the HTTP server have to send, and the path of its file if it
/// is stored in one. The token comes from the named file, the variable `SESSIONS_HTTP_TOKEN`, or a
/// file in the store that is created if it does not exist.
pub fn read_or_create_token(
    store: &Store,
    named: Option<&Path>,
) -> Result<(String, Option<PathBuf>), ToolError> {
    if let Some(path) = named {
        // The path may be the output of another program: `--token-file <(pass show sessions)`.
        let text = open_to_read(path).and_then(|file| read_text(file, MAX_TOKEN_FILE_BYTES));
        let text = text.map_err(|error| invalid_file_error(path, error))?;
        return Ok((parse_token_file(&text, path)?, Some(path.to_owned())));
    }
    if let Some(token) = read_variable(TOKEN_VARIABLE) {
        return match parse_token(&token) {
            Ok(token) => Ok((token, None)),
            Err(reason) => Err(ToolError::new(
                ErrorCode::InvalidArgument,
                format!(
                    "{TOKEN_VARIABLE}: {reason}. Set another token, or unset the variable to have one created"
                ),
            )),
        };
    }
    let kept = store.token_path();
    if let Some(text) = store.read_token().map_err(store_error)? {
        return Ok((parse_token_file(&text, &kept)?, Some(kept)));
    }

    let bytes = random_bytes::<32>().map_err(|error| {
        let message =
            format!("A token could not be created ({error}). Name a token file with --token-file");
        ToolError::new(ErrorCode::InternalError, message)
    })?;
    let token = URL_SAFE_NO_PAD.encode(bytes);
    store.write_token(&token).map_err(store_error)?;
    Ok((token, Some(kept)))
}

/// Returns the token in the text of the file `path`.
fn parse_token_file(text: &str, path: &Path) -> Result<String, ToolError> {
    parse_token(text).map_err(|reason| invalid_file_error(path, reason))
}

/// Returns the token in a text, if it can be used in a header and is too long to be guessed. The
/// error is the reason why not.
fn parse_token(text: &str) -> Result<String, &'static str> {
    let token = text.trim();
    if token.len() < MIN_TOKEN_BYTES {
        Err("a token needs at least 16 characters")
    } else if !token.bytes().all(|byte| byte.is_ascii_graphic()) {
        Err("a token may contain visible ASCII characters only")
    } else {
        Ok(token.to_owned())
    }
}
