//! Fields of lines: separated by colons, whole numbers.

/// A field and a sentence.
pub(super) type Error = (String, String);

/// A whole number that is not negative.
pub(super) fn number(text: &str, field: &str) -> Result<u64, Error> {
    text.parse().map_err(|_| {
        let shown: String = text.chars().take(40).collect();
        (field.to_owned(), format!("{shown:?} is not a whole number from 0 on"))
    })
}

/// The rest of a line, field by field.
pub(super) struct Fields<'t>(pub &'t str);

impl<'t> Fields<'t> {
    /// The next field, if the line has one.
    pub fn another(&mut self) -> Option<&'t str> {
        if self.0.is_empty() {
            return None;
        }
        let (field, rest) = self.0.split_once(':').unwrap_or((self.0, ""));
        self.0 = rest;
        Some(field)
    }

    /// The next field, which the record needs.
    pub fn required(&mut self, name: &str) -> Result<&'t str, Error> {
        self.another().ok_or_else(|| (name.to_owned(), "the line ends before it".to_owned()))
    }
}
