//! Long C++ names as users write them.

use std::borrow::Cow;

/// A C++ name as users write it: without arguments of the standard library's templates that are defaults, and without the
/// library's inner namespaces. Of a name that is still long, long lists of arguments are `<…>`.
pub fn abbreviated(name: &str) -> Cow<'_, str> {
    /// Maximum length in characters.
    const MAX_NAME: usize = 72;
    if !name.contains('<') && !name.contains("std::__") {
        return Cow::Borrowed(name);
    }
    let plain = name.replace("std::__cxx11::", "std::").replace("std::__1::", "std::");
    let usual = Arguments { text: &plain, at: 0, collapse: false }.rewritten(0);
    if usual.chars().count() <= MAX_NAME {
        return Cow::Owned(usual);
    }
    Cow::Owned(Arguments { text: &usual, at: 0, collapse: true }.rewritten(0))
}

/// Rewrites the template arguments in a name.
struct Arguments<'a> {
    text: &'a str,
    /// Bytes that were read.
    at: usize,
    /// Whether long lists become `<…>`.
    collapse: bool,
}

impl Arguments<'_> {
    /// Deeper ones are left as they are.
    const MAX_DEPTH: u32 = 48;
    /// Longer lists are collapsed, in bytes.
    const MAX_LIST: usize = 24;

    /// The text up to the end of an argument at this depth; all of it at depth 0.
    fn rewritten(&mut self, depth: u32) -> String {
        let mut out = String::new();
        let mut parentheses = 0_i32;
        while let Some(character) = self.text[self.at..].chars().next() {
            let in_operator = ends_in_operator(&out);
            match character {
                '<' if !in_operator && depth < Arguments::MAX_DEPTH => {
                    self.at += 1;
                    let list = self.list(depth + 1, &out);
                    if list == "char" && out.ends_with("std::basic_string") {
                        out.truncate(out.len() - "basic_string".len());
                        out.push_str("string");
                    } else {
                        let is_long = self.collapse && list.len() > Arguments::MAX_LIST;
                        out.extend(["<", if is_long { "…" } else { &list }, ">"]);
                    }
                    continue;
                }
                '>' | ',' if depth > 0 && parentheses <= 0 && !in_operator && !out.ends_with('-') => break,
                '(' | '{' | '[' => parentheses += 1,
                ')' | '}' | ']' => parentheses -= 1,
                _ => {}
            }
            out.push(character);
            self.at += character.len_utf8();
        }
        out
    }

    /// The arguments up to the closing bracket, without those at the end that are defaults of the template `of`.
    fn list(&mut self, depth: u32, of: &str) -> String {
        const DEFAULTS: [&str; 6] = [
            "std::allocator<",
            "std::less<",
            "std::char_traits<",
            "std::default_delete<",
            "std::hash<",
            "std::equal_to<",
        ];
        let mut all: Vec<String> = Vec::new();
        loop {
            all.push(self.rewritten(depth).trim().to_string());
            let end = self.text[self.at..].chars().next();
            self.at += usize::from(end.is_some());
            if end != Some(',') {
                break;
            }
        }
        let is_of_name = |c: char| c.is_alphanumeric() || matches!(c, '_' | ':');
        let is_standard = of[of.trim_end_matches(is_of_name).len()..].starts_with("std::");
        let is_default = |argument: &String| DEFAULTS.iter().any(|default| argument.starts_with(default));
        while is_standard && all.len() > 1 && all.last().is_some_and(is_default) {
            all.pop();
        }
        all.join(", ")
    }
}

/// Whether a text ends in an `operator` and the symbols of one, as `operator<<` or `operator-` do.
pub(super) fn ends_in_operator(text: &str) -> bool {
    /// Symbols of the longest one, `<=>`.
    const MAX_SYMBOLS: usize = 3;
    let last = text.bytes().rev().take(MAX_SYMBOLS);
    let symbols = last.take_while(|byte| b"<>-=".contains(byte)).count();
    text[..text.len() - symbols].ends_with("operator")
}
