//! Reads what the user configured: environment variables, the settings file, the token of HTTP.

pub mod environment;
pub mod http_token;
pub mod overview;
pub mod patterns;
pub mod readers;
pub mod settings;
pub mod user_settings;
