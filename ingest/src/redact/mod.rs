//! stub
use std::borrow::Cow;
use std::collections::BTreeMap;
#[derive(Default, Debug)]
pub struct Counts(pub BTreeMap<String, u64>);
pub struct Redactor;
pub struct UserRule;
#[derive(Debug, thiserror::Error)]
#[error("x")]
pub struct RuleError;
impl Redactor {
    pub fn new(_: &[UserRule]) -> Result<Self, RuleError> {
        Ok(Self)
    }
    pub fn version(&self) -> u64 {
        1
    }
    pub fn mask<'t>(&self, text: &'t str, _: &mut Counts) -> Cow<'t, str> {
        Cow::Borrowed(text)
    }
}
pub fn user_rules(_: &str) -> Result<Vec<UserRule>, RuleError> {
    Ok(Vec::new())
}
