//! Checks of JSON and of texts, as methods: what they find missing is in their message.

use serde_json::Value;

/// One text or several, all of which are looked for.
pub(crate) trait Parts {
    fn into_texts(self) -> Vec<String>;

    /// Checks that `text` has all parts, or none if `is_wanted` is false.
    #[track_caller]
    fn check(self, text: &str, is_wanted: bool, name: &str)
    where
        Self: Sized,
    {
        let parts = self.into_texts();
        let wrong: Vec<_> = parts.iter().filter(|part| text.contains(*part) != is_wanted).collect();
        let verb = if is_wanted { "lacks" } else { "has" };
        assert!(wrong.is_empty(), "{name} {verb} {wrong:?}:\n{text}");
    }
}

impl<T: AsRef<str> + ?Sized> Parts for &T {
    fn into_texts(self) -> Vec<String> {
        vec![self.as_ref().to_owned()]
    }
}

impl Parts for String {
    fn into_texts(self) -> Vec<String> {
        vec![self]
    }
}

impl<T: AsRef<str>, const N: usize> Parts for [T; N] {
    fn into_texts(self) -> Vec<String> {
        self.iter().map(|part| part.as_ref().to_owned()).collect()
    }
}

/// Checks of what a text, or a value of JSON, contains.
pub(crate) trait Checks {
    /// Checks that the text has all these parts.
    fn shows(&self, parts: impl Parts) -> &Self;

    /// Checks that the text has none of these parts.
    fn lacks(&self, parts: impl Parts) -> &Self;
}

impl Checks for str {
    #[track_caller]
    fn shows(&self, parts: impl Parts) -> &Self {
        parts.check(self, true, "the text");
        self
    }

    #[track_caller]
    fn lacks(&self, parts: impl Parts) -> &Self {
        parts.check(self, false, "the text");
        self
    }
}

/// A value that is a text is that text. Another one is its JSON.
impl Checks for Value {
    #[track_caller]
    fn shows(&self, parts: impl Parts) -> &Self {
        assert!(!self.is_null(), "there is no such value");
        parts.check(&text_of(self), true, "the value");
        self
    }

    #[track_caller]
    fn lacks(&self, parts: impl Parts) -> &Self {
        parts.check(&text_of(self), false, "the value");
        self
    }
}

fn text_of(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// Checks of a value of JSON, and access to values of a kind.
pub(crate) trait JsonChecks {
    /// Checks that the value has all fields of `part`, at any depth. Lists must have equal lengths,
    /// other values and `{}` must be equal, and `null` stands for a field that is not there, too.
    fn has(&self, part: Value) -> &Self;

    /// The elements of a list.
    fn list(&self) -> &[Value];

    /// The text.
    fn text(&self) -> &str;

    /// A field of each element of a list, which is a text.
    fn each(&self, field: &str) -> Vec<&str>;
}

impl JsonChecks for Value {
    #[track_caller]
    fn has(&self, part: Value) -> &Self {
        let mut differences = Vec::new();
        compare_parts(self, &part, "", &mut differences);
        assert!(differences.is_empty(), "{}\nin {self:#}", differences.join("\n"));
        self
    }

    #[track_caller]
    fn list(&self) -> &[Value] {
        self.as_array().unwrap_or_else(|| panic!("not a list: {self:#}"))
    }

    #[track_caller]
    fn text(&self) -> &str {
        self.as_str().unwrap_or_else(|| panic!("not a text: {self:#}"))
    }

    #[track_caller]
    fn each(&self, field: &str) -> Vec<&str> {
        self.list().iter().map(|element| element[field].text()).collect()
    }
}

/// Adds a line for each value of `part` that `whole` does not have.
fn compare_parts(whole: &Value, part: &Value, place: &str, differences: &mut Vec<String>) {
    match (whole, part) {
        (Value::Object(_), Value::Object(fields)) if !fields.is_empty() => {
            for (name, part) in fields {
                compare_parts(&whole[name], part, &format!("{place}/{name}"), differences);
            }
        }
        (Value::Array(elements), Value::Array(parts)) if elements.len() == parts.len() => {
            for (at, (element, part)) in elements.iter().zip(parts).enumerate() {
                compare_parts(element, part, &format!("{place}/{at}"), differences);
            }
        }
        _ if whole == part => {}
        _ => differences.push(format!("{place} is {whole}, not {part}")),
    }
}
