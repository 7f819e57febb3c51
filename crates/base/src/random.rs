//! Random bytes.

/// Returns bytes that cannot be guessed.
///
/// # Errors
/// Returns the reason if the system has none.
pub fn random_bytes<const N: usize>() -> Result<[u8; N], String> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).map_err(|error| error.to_string())?;
    Ok(bytes)
}
