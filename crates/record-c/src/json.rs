//! JSON values of attributes, without a JSON library in the programs that load this one.
//!
//! Texts are those that `serde_json` writes and accepts; a test compares the two.

use std::collections::HashMap;
use std::fmt::{self, Write};

use taskscope_record::Json;

/// Values within each other; more are refused, as they are read by recursion.
const MAX_DEPTH: usize = 127;

/// A JSON value.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    Null,
    Boolean(bool),
    Integer(i128),
    /// Finite.
    Float(f64),
    Text(String),
    Array(Vec<Value>),
    Object(Object),
}

/// An object, whose members keep their order.
#[derive(Clone, Debug, Default)]
pub struct Object {
    members: Vec<(String, Value)>,
    places: HashMap<String, usize>,
}

/// Why a text is not JSON, and where.
#[derive(Debug)]
pub struct NotJson {
    expected: &'static str,
    byte: usize,
}

impl Object {
    pub fn is_empty(&self) -> bool {
        self.members.is_empty()
    }

    /// Keys and values in order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Value)> {
        self.members.iter().map(|(key, value)| (key.as_str(), value))
    }

    pub fn get(&self, key: &str) -> Option<&Value> {
        self.places.get(key).map(|place| &self.members[*place].1)
    }

    pub fn get_mut(&mut self, key: &str) -> Option<&mut Value> {
        self.places.get(key).map(|place| &mut self.members[*place].1)
    }

    /// Sets a member; a new one comes last.
    pub fn insert(&mut self, key: &str, value: Value) {
        match self.get_mut(key) {
            Some(old) => *old = value,
            None => {
                self.places.insert(key.to_owned(), self.members.len());
                self.members.push((key.to_owned(), value));
            }
        }
    }

    /// Returns a member, made by `make` if it is missing.
    pub fn get_or_insert(&mut self, key: &str, make: impl FnOnce() -> Value) -> &mut Value {
        if !self.places.contains_key(key) {
            self.insert(key, make());
        }
        let place = self.places[key];
        &mut self.members[place].1
    }

    pub fn remove(&mut self, key: &str) {
        if let Some(place) = self.places.remove(key) {
            self.members.remove(place);
            self.places.values_mut().filter(|other| **other > place).for_each(|other| *other -= 1);
        }
    }
}

impl PartialEq for Object {
    fn eq(&self, other: &Object) -> bool {
        self.members.len() == other.members.len()
            && self.iter().all(|(key, value)| other.get(key) == Some(value))
    }
}

impl<'k> FromIterator<(&'k str, Value)> for Object {
    fn from_iter<I: IntoIterator<Item = (&'k str, Value)>>(members: I) -> Object {
        let mut object = Object::default();
        members.into_iter().for_each(|(key, value)| object.insert(key, value));
        object
    }
}

impl Value {
    /// An object of these members.
    pub fn object<'k>(members: impl IntoIterator<Item = (&'k str, Value)>) -> Value {
        Value::Object(members.into_iter().collect())
    }

    /// A number; `None` if it is not finite. Whole ones are written without a point.
    pub fn number(number: f64) -> Option<Value> {
        let whole = number as i64;
        if whole as f64 == number && whole.unsigned_abs() < 1 << 53 {
            return Some(whole.into());
        }
        number.is_finite().then_some(Value::Float(number))
    }

    /// Reads a text.
    ///
    /// # Errors
    /// If it is not one JSON value.
    pub fn parse(text: &str) -> Result<Value, NotJson> {
        let mut parser = Parser { text, at: 0 };
        let value = parser.value(0)?;
        parser.skip_blanks();
        if parser.at < text.len() { Err(parser.error("the end of the text")) } else { Ok(value) }
    }

    pub fn as_object(&self) -> Option<&Object> {
        if let Value::Object(object) = self { Some(object) } else { None }
    }

    pub fn as_object_mut(&mut self) -> Option<&mut Object> {
        if let Value::Object(object) = self { Some(object) } else { None }
    }

    pub fn as_str(&self) -> Option<&str> {
        if let Value::Text(text) = self { Some(text) } else { None }
    }

    pub fn as_bool(&self) -> Option<bool> {
        if let Value::Boolean(value) = self { Some(*value) } else { None }
    }

    pub fn as_f64(&self) -> Option<f64> {
        match self {
            Value::Integer(number) => Some(*number as f64),
            Value::Float(number) => Some(*number),
            _ => None,
        }
    }

    /// The text with an indentation of four blanks, as the original writes it.
    pub fn pretty(&self) -> String {
        let mut out = String::new();
        self.write(&mut out, Some(0));
        out
    }

    /// Writes the text in one line, or in lines within so many levels.
    fn write(&self, out: &mut String, level: Option<usize>) {
        let end = |out: &mut String, level: Option<usize>| {
            if let Some(level) = level {
                let _ = write!(out, "\n{:1$}", "", level * 4);
            }
        };
        let inner = level.map(|level| level + 1);
        match self {
            Value::Null => out.push_str("null"),
            Value::Boolean(value) => drop(write!(out, "{value}")),
            Value::Integer(number) => drop(write!(out, "{number}")),
            // Decimal where it is no longer than with an exponent.
            Value::Float(number) if (1e-5..1e-4).contains(&number.abs()) => drop(write!(out, "{number}")),
            Value::Float(number) => {
                let text = format!("{number:?}");
                let is_small = text.contains("e-");
                out.push_str(&if is_small { text } else { text.replace('e', "e+") });
            }
            Value::Text(text) => out.push_str(Json::string(text).as_str()),
            Value::Array(items) => {
                out.push('[');
                for (number, item) in items.iter().enumerate() {
                    out.push_str(if number > 0 { "," } else { "" });
                    end(out, inner);
                    item.write(out, inner);
                }
                end(out, level.filter(|_| !items.is_empty()));
                out.push(']');
            }
            Value::Object(object) => {
                out.push('{');
                for (number, (key, value)) in object.iter().enumerate() {
                    out.push_str(if number > 0 { "," } else { "" });
                    end(out, inner);
                    out.push_str(Json::string(key).as_str());
                    out.push_str(if level.is_some() { ": " } else { ":" });
                    value.write(out, inner);
                }
                end(out, level.filter(|_| !object.is_empty()));
                out.push('}');
            }
        }
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = String::new();
        self.write(&mut out, None);
        f.write_str(&out)
    }
}

impl fmt::Display for NotJson {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "expected {} at byte {}", self.expected, self.byte)
    }
}

impl From<bool> for Value {
    fn from(value: bool) -> Value {
        Value::Boolean(value)
    }
}

impl From<i32> for Value {
    fn from(number: i32) -> Value {
        Value::Integer(number.into())
    }
}

impl From<i64> for Value {
    fn from(number: i64) -> Value {
        Value::Integer(number.into())
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Value {
        Value::Text(text.to_owned())
    }
}

impl From<String> for Value {
    fn from(text: String) -> Value {
        Value::Text(text)
    }
}

struct Parser<'t> {
    text: &'t str,
    at: usize,
}

impl Parser<'_> {
    fn error(&self, expected: &'static str) -> NotJson {
        NotJson { expected, byte: self.at }
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn skip_blanks(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\n' | b'\r' | b'\t')) {
            self.at += 1;
        }
    }

    /// Takes a text if it comes next.
    fn takes(&mut self, text: &str) -> bool {
        let comes = self.text.as_bytes()[self.at..].starts_with(text.as_bytes());
        if comes {
            self.at += text.len();
        }
        comes
    }

    fn value(&mut self, depth: usize) -> Result<Value, NotJson> {
        self.skip_blanks();
        match self.peek() {
            Some(b'"') => self.string().map(Value::Text),
            Some(b'-' | b'0'..=b'9') => self.number(),
            Some(b'[' | b'{') if depth == MAX_DEPTH => {
                Err(self.error("at most 127 values within each other"))
            }
            Some(b'[') => self.array(depth + 1),
            Some(b'{') => self.object(depth + 1),
            _ if self.takes("null") => Ok(Value::Null),
            _ if self.takes("true") => Ok(Value::Boolean(true)),
            _ if self.takes("false") => Ok(Value::Boolean(false)),
            _ => Err(self.error("a value")),
        }
    }

    fn array(&mut self, depth: usize) -> Result<Value, NotJson> {
        self.at += 1;
        let mut items = Vec::new();
        self.skip_blanks();
        if self.takes("]") {
            return Ok(Value::Array(items));
        }
        loop {
            items.push(self.value(depth)?);
            self.skip_blanks();
            if self.takes("]") {
                return Ok(Value::Array(items));
            }
            if !self.takes(",") {
                return Err(self.error("`,` or `]`"));
            }
        }
    }

    fn object(&mut self, depth: usize) -> Result<Value, NotJson> {
        self.at += 1;
        let mut object = Object::default();
        self.skip_blanks();
        if self.takes("}") {
            return Ok(Value::Object(object));
        }
        loop {
            self.skip_blanks();
            let key = self.string()?;
            self.skip_blanks();
            if !self.takes(":") {
                return Err(self.error("`:`"));
            }
            let value = self.value(depth)?;
            object.insert(&key, value);
            self.skip_blanks();
            if self.takes("}") {
                return Ok(Value::Object(object));
            }
            if !self.takes(",") {
                return Err(self.error("`,` or `}`"));
            }
        }
    }

    fn string(&mut self) -> Result<String, NotJson> {
        if !self.takes("\"") {
            return Err(self.error("a string"));
        }
        let mut out = String::new();
        loop {
            let plain = self.text.as_bytes()[self.at..]
                .iter()
                .take_while(|byte| !matches!(byte, b'"' | b'\\' | 0..0x20));
            let end = self.at + plain.count();
            out.push_str(&self.text[self.at..end]);
            self.at = end;
            match self.peek() {
                Some(b'"') => {
                    self.at += 1;
                    return Ok(out);
                }
                Some(b'\\') => out.push(self.escape()?),
                _ => return Err(self.error("a character or `\"`")),
            }
        }
    }

    fn escape(&mut self) -> Result<char, NotJson> {
        self.at += 1;
        let character = match self.peek() {
            Some(character @ (b'"' | b'\\' | b'/')) => char::from(character),
            Some(b'b') => '\u{8}',
            Some(b'f') => '\u{c}',
            Some(b'n') => '\n',
            Some(b'r') => '\r',
            Some(b't') => '\t',
            Some(b'u') => {
                self.at += 1;
                let first = self.hexadecimal()?;
                let units = match first {
                    0xd800..0xdc00 if self.takes("\\u") => vec![first, self.hexadecimal()?],
                    _ => vec![first],
                };
                return match char::decode_utf16(units).collect::<Result<Vec<char>, _>>().as_deref() {
                    Ok([character]) => Ok(*character),
                    _ => Err(self.error("two halves of a character")),
                };
            }
            _ => return Err(self.error("an escape")),
        };
        self.at += 1;
        Ok(character)
    }

    fn hexadecimal(&mut self) -> Result<u16, NotJson> {
        let digits =
            self.text.get(self.at..self.at + 4).filter(|text| text.bytes().all(|b| b.is_ascii_hexdigit()));
        let number = digits.and_then(|digits| u16::from_str_radix(digits, 16).ok());
        let number = number.ok_or_else(|| self.error("four hexadecimal digits"))?;
        self.at += 4;
        Ok(number)
    }

    fn number(&mut self) -> Result<Value, NotJson> {
        let begin = self.at;
        let is_negative = self.takes("-");
        match self.digits()? {
            digits if digits > 1 && self.text.as_bytes()[self.at - digits] == b'0' => {
                return Err(self.error("a number without a zero first"));
            }
            _ => {}
        }
        let mut is_whole = true;
        if self.takes(".") {
            self.digits()?;
            is_whole = false;
        }
        if self.takes("e") || self.takes("E") {
            let _ = self.takes("+") || self.takes("-");
            self.digits()?;
            is_whole = false;
        }
        let text = &self.text[begin..self.at];
        let whole = match is_negative {
            true => text.parse::<i64>().ok().filter(|number| *number != 0).map(i128::from),
            false => text.parse::<u64>().ok().map(i128::from),
        };
        if let Some(number) = whole.filter(|_| is_whole) {
            return Ok(Value::Integer(number));
        }
        let number = text.parse::<f64>().ok().filter(|number| number.is_finite());
        number.map(Value::Float).ok_or_else(|| self.error("a smaller number"))
    }

    /// Passes over digits, at least one, and returns how many.
    fn digits(&mut self) -> Result<usize, NotJson> {
        let digits = self.text.as_bytes()[self.at..].iter().take_while(|byte| byte.is_ascii_digit()).count();
        self.at += digits;
        if digits == 0 { Err(self.error("a digit")) } else { Ok(digits) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn agrees(text: &str) {
        match (Value::parse(text), serde_json::from_str::<serde_json::Value>(text)) {
            (Ok(own), Ok(other)) => {
                assert_eq!(own.to_string(), other.to_string(), "{text}");
                let mut bytes = Vec::new();
                let style = serde_json::ser::PrettyFormatter::with_indent(b"    ");
                let mut serializer = serde_json::Serializer::with_formatter(&mut bytes, style);
                serde::Serialize::serialize(&other, &mut serializer).unwrap();
                assert_eq!(own.pretty(), String::from_utf8(bytes).unwrap());
                assert_eq!(Value::parse(&own.to_string()).unwrap(), own);
            }
            (Err(_), Err(_)) => {}
            (own, other) => panic!("{text}: {own:?}, {other:?}"),
        }
    }

    #[test]
    fn texts_are_those_of_serde_json() {
        for text in [
            "",
            " ",
            "null",
            "nul",
            "true ",
            "false,",
            "[]",
            "{}",
            "[1,]",
            "[,1]",
            "{\"a\":}",
            "{\"a\" : [ 1 , {} ] }",
            "{a:1}",
            "{\"a\":1,\"b\":2,\"a\":{\"c\":[[],[{}],\"\"]}}",
            "\"",
            "\"a\tb\"",
            r#""\"\\\/\b\f\n\r\t\u00e9\u0001\u007f""#,
            r#""\ud83d\ude42""#,
            r#""\ud83d""#,
            r#""\ude42""#,
            r#""\ud83dx""#,
            r#""\ud83d\u0041""#,
            r#""\u12""#,
            r#""\u+123""#,
            r#""\x""#,
            "\"日本語 🙂\u{2028}\"",
            "0",
            "-0",
            "-1",
            "00",
            "01",
            "-01",
            "1.",
            ".5",
            "1.5",
            "-0.0",
            "1e3",
            "1E+3",
            "1e",
            "1e-",
            "18446744073709551615",
            "18446744073709551616",
            "-9223372036854775808",
            "-9223372036854775809",
            "1e999",
            "1e-999",
            "123456789012345678901234567890",
            "0.1",
            "1e15",
            "1e16",
            "1e17",
            "123456789.125",
            "1.7976931348623157e308",
            "5e-324",
            "+1",
            "NaN",
            "Infinity",
            "1 2",
            "\u{feff}1",
            "[1\u{b}]",
            "\"\u{7f}\"",
        ] {
            agrees(text);
        }
        for depth in [1, 126, 127, 128, 5000] {
            agrees(&format!("{}{}", "[".repeat(depth), "]".repeat(depth)));
            agrees(&format!("{}1{}", "{\"a\":".repeat(depth), "}".repeat(depth)));
        }
        for exponent in -12..24 {
            for digits in ["1", "9.5", "1.2345678901234567", "-3.25"] {
                agrees(&format!("{digits}e{exponent}"));
            }
        }
    }

    #[test]
    fn damaged_texts_are_judged_as_serde_json_does() {
        let whole = r#"{"a b":[1,-2.5e3,"x\u00e9\n"],"c":{"d":null,"e":[true,false,{}]}}"#;
        let mut state = 1_u64;
        for _ in 0..20_000 {
            let mut text = whole.as_bytes().to_vec();
            for _ in 0..2 {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                let at = (state >> 33) as usize % text.len();
                let byte = br#"{}[],:"\ 019.eE-+ntu"#[(state >> 50) as usize % 20];
                if state >> 63 == 0 { text[at] = byte } else { drop(text.splice(at..at + 1, [])) }
            }
            agrees(&String::from_utf8_lossy(&text));
        }
    }

    #[test]
    fn objects_keep_the_order_of_their_members() {
        let mut object = Object::from_iter([("b", Value::from(1)), ("a", 2.into()), ("c", 3.into())]);
        object.remove("b");
        object.insert("a", Value::Null);
        object.insert("b", "x".into());
        *object.get_or_insert("c", || Value::Null) = true.into();
        assert_eq!(Value::Object(object.clone()).to_string(), r#"{"a":null,"c":true,"b":"x"}"#);
        assert_eq!((object.get("c"), object.get("d")), (Some(&Value::Boolean(true)), None));
    }

    #[test]
    fn whole_numbers_have_no_point() {
        let text = |number| Value::number(number).map(|value| value.to_string());
        assert_eq!(text(7.0).as_deref(), Some("7"));
        assert_eq!(text(0.5).as_deref(), Some("0.5"));
        assert_eq!(text(1e300).as_deref(), Some("1e+300"));
        assert_eq!((text(f64::NAN), text(f64::INFINITY)), (None, None));
    }
}
