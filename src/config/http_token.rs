//! The token that clients of the HTTP server have to send.

use std::fs::File;
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use schemas::{ErrorCode, ToolError};

use super::environment::variable;
use super::settings::{read_text, wrong_file};
use crate::error::store_error;
use crate::store::Store;

/// Maximum size of a token file in bytes; a larger file is refused.
const TOKEN_BYTES: u64 = 64 << 10;

/// Returns the token that clients of the HTTP server have to send, and the path of its file if it
/// is stored in one. The token comes from the named file, the variable `SESSIONS_HTTP_TOKEN`, or a
/// file in the store that is created if it does not exist.
pub fn http_token(
    store: &Store,
    named: Option<&Path>,
) -> Result<(String, Option<PathBuf>), ToolError> {
    let check =
        |text: String, path: &Path| usable(&text).map_err(|reason| wrong_file(path, reason));
    if let Some(path) = named {
        // The path may be the output of another program: `--token-file <(pass show sessions)`.
        let text = File::open(path).and_then(|file| read_text(file, TOKEN_BYTES));
        let text = text.map_err(|error| wrong_file(path, error))?;
        return Ok((check(text, path)?, Some(path.to_owned())));
    }
    if let Some(token) = variable(TOKEN_VARIABLE) {
        return match usable(&token) {
            Ok(token) => Ok((token, None)),
            Err(reason) => Err(ToolError::new(
                ErrorCode::InvalidArgument,
                format!("{TOKEN_VARIABLE}: {reason}. Set another one, or none to have one made"),
            )),
        };
    }
    let kept = store.token_path();
    if let Some(text) = store.read_token().map_err(store_error)? {
        return Ok((check(text, &kept)?, Some(kept)));
    }
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes).map_err(|error| {
        let message = format!("No token could be made ({error}). Name one with --token-file");
        ToolError::new(ErrorCode::InternalError, message)
    })?;
    let token = URL_SAFE_NO_PAD.encode(bytes);
    store.write_token(&token).map_err(store_error)?;
    Ok((token, Some(kept)))
}

const TOKEN_VARIABLE: &str = "SESSIONS_HTTP_TOKEN";

/// Returns the token if it can be used in a header and is too long to be guessed.
fn usable(text: &str) -> Result<String, &'static str> {
    let token = text.trim();
    if token.len() < 16 {
        Err("a token has at least 16 characters")
    } else if !token.bytes().all(|byte| byte.is_ascii_graphic()) {
        Err("a token has visible ASCII characters only")
    } else {
        Ok(token.to_owned())
    }
}
