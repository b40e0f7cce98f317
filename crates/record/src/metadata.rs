//! `stream.json`, written without a JSON library so that traced programs load none.

use std::fmt::Write as _;
use std::io;
use std::path::Path;

/// Builds JSON text. Keys and strings are escaped; bytes that are not UTF-8 must be made text first.
#[derive(Clone, Debug, Default)]
pub struct Json(String);

impl Json {
    /// A string value.
    pub fn string(text: &str) -> Self {
        let mut out = String::with_capacity(text.len() + 2);
        out.push('"');
        for c in text.chars() {
            match c {
                '"' => out.push_str("\\\""),
                '\\' => out.push_str("\\\\"),
                c if (c as u32) < 0x20 => {
                    let _ = write!(out, "\\u{:04x}", c as u32);
                }
                c => out.push(c),
            }
        }
        out.push('"');
        Json(out)
    }

    /// An integer value.
    pub fn integer(value: impl Into<i128>) -> Self {
        Json(value.into().to_string())
    }

    /// An object of these members, in this order.
    pub fn object<K: AsRef<str>>(members: impl IntoIterator<Item = (K, Json)>) -> Self {
        let members: Vec<_> = members
            .into_iter()
            .map(|(key, value)| format!("{}:{}", Json::string(key.as_ref()).0, value.0))
            .collect();
        Json(format!("{{{}}}", members.join(",")))
    }

    /// An array.
    pub fn array(items: impl IntoIterator<Item = Json>) -> Self {
        let items: Vec<_> = items.into_iter().map(|item| item.0).collect();
        Json(format!("[{}]", items.join(",")))
    }

    /// Writes the text beside `path` and renames it into place.
    pub(crate) fn replace_file(&self, path: &Path) -> io::Result<()> {
        let part = path.with_extension("json.part");
        let written =
            std::fs::write(&part, format!("{}\n", self.0)).and_then(|()| std::fs::rename(&part, path));
        if written.is_err() {
            let _ = std::fs::remove_file(&part);
        }
        written
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_escaped() {
        let json =
            Json::object([("a\"", Json::string("b\\\n")), ("n", Json::integer(-3)), ("l", Json::array([]))]);
        assert_eq!(json.0, r#"{"a\"":"b\\\u000a","n":-3,"l":[]}"#);
    }
}
