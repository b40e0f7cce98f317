//! Payloads by their declaration: sizes, fields, sentences.

use crate::spec::{EventSpec, FieldType};
use core::fmt;

/// The value of a payload field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldValue<'a> {
    /// A number of any of the integer types.
    Integer(i128),
    /// A text without its terminating zero.
    Text(&'a [u8]),
    /// Bytes in a form of their own.
    Bytes(&'a [u8]),
}

/// How a payload departs from its declaration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PayloadError {
    /// Jumbo and should not be, or the other way round.
    WrongKind,
    /// Fewer bytes than the fields take.
    TooShort,
    /// Bytes are left after the last field.
    TooLong,
    /// A text has no terminating zero.
    NotTerminated,
}

/// The fields of a payload, in order; a repeating last field as often as there is room. After an error all
/// fields are missing.
pub struct Fields<'a> {
    spec: &'static EventSpec,
    next: usize,
    rest: &'a [u8],
    has_failed: bool,
}

impl<'a> Iterator for Fields<'a> {
    type Item = (&'static str, Result<FieldValue<'a>, PayloadError>);

    fn next(&mut self) -> Option<Self::Item> {
        // Counters come as many numbers of the declared field.
        let repeats = self.next == self.spec.fields.len() && self.spec.last_repeats() && self.rest.len() >= 8;
        let field = self.spec.fields.get(self.next - usize::from(repeats))?;
        self.next += usize::from(!repeats);
        let value = if self.has_failed { Err(PayloadError::TooShort) } else { self.read(field.ty) };
        if value.is_err() {
            self.has_failed = true;
            self.rest = &[];
        }
        Some((field.name, value))
    }
}

impl<'a> Fields<'a> {
    fn read(&mut self, ty: FieldType) -> Result<FieldValue<'a>, PayloadError> {
        let value = match ty {
            FieldType::U8 => i128::from(u8::from_le_bytes(self.take()?)),
            FieldType::U32 => i128::from(u32::from_le_bytes(self.take()?)),
            FieldType::U64 => i128::from(u64::from_le_bytes(self.take()?)),
            FieldType::I32 => i128::from(i32::from_le_bytes(self.take()?)),
            FieldType::I64 => i128::from(i64::from_le_bytes(self.take()?)),
            FieldType::Str => {
                let rest = self.rest;
                let Some(end) = rest.iter().position(|byte| *byte == 0) else {
                    self.rest = &[];
                    return Err(PayloadError::NotTerminated);
                };
                self.rest = &rest[end + 1..];
                return Ok(FieldValue::Text(&rest[..end]));
            }
            FieldType::Rest => {
                let rest = self.rest;
                self.rest = &[];
                return Ok(FieldValue::Bytes(rest));
            }
        };
        Ok(FieldValue::Integer(value))
    }

    fn take<const N: usize>(&mut self) -> Result<[u8; N], PayloadError> {
        let (bytes, rest) = self.rest.split_first_chunk::<N>().ok_or(PayloadError::TooShort)?;
        self.rest = rest;
        Ok(*bytes)
    }
}

impl EventSpec {
    /// The fields of a payload (of a jumbo event: its data).
    pub fn fields_of<'a>(&'static self, payload: &'a [u8]) -> Fields<'a> {
        Fields { spec: self, next: 0, rest: payload, has_failed: false }
    }

    /// Whether a payload is as declared.
    ///
    /// # Errors
    /// The first departure.
    pub fn check_payload(&'static self, payload: &[u8], is_jumbo: bool) -> Result<(), PayloadError> {
        if is_jumbo != self.jumbo {
            return Err(PayloadError::WrongKind);
        }
        let mut fields = self.fields_of(payload);
        for (_, value) in fields.by_ref() {
            value?;
        }
        if fields.rest.is_empty() { Ok(()) } else { Err(PayloadError::TooLong) }
    }

    fn last_repeats(&self) -> bool {
        self.jumbo && self.fields.last().is_some_and(|field| field.ty == FieldType::I64)
    }

    /// A sentence about the event, without subject and period: the declared meaning with the values of fields
    /// in their places.
    pub fn sentence<'a>(&'static self, payload: &'a [u8]) -> Sentence<'a> {
        Sentence { spec: self, payload }
    }
}

/// See [`EventSpec::sentence`].
pub struct Sentence<'a> {
    spec: &'static EventSpec,
    payload: &'a [u8],
}

impl fmt::Display for Sentence<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut rest = self.spec.meaning;
        while let Some((before, after)) = rest.split_once('{') {
            f.write_str(before)?;
            let Some((name, tail)) = after.split_once('}') else { return f.write_str(after) };
            let values = self.spec.fields_of(self.payload).filter(|(field, _)| *field == name);
            let mut before = "";
            for (_, value) in values {
                f.write_str(before)?;
                match value {
                    Ok(value) => value.fmt(f)?,
                    Err(_) => f.write_str("?")?,
                }
                before = ", ";
            }
            if before.is_empty() {
                f.write_str("?")?;
            }
            rest = tail;
        }
        f.write_str(rest)
    }
}

/// Invalid UTF-8 in a text appears as `\xNN`, so different texts are displayed differently.
impl fmt::Display for FieldValue<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FieldValue::Integer(number) => number.fmt(f),
            FieldValue::Text(text) => {
                for chunk in text.utf8_chunks() {
                    f.write_str(chunk.valid())?;
                    for byte in chunk.invalid() {
                        write!(f, "\\x{byte:02x}")?;
                    }
                }
                Ok(())
            }
            FieldValue::Bytes(bytes) => {
                for (index, byte) in bytes.iter().enumerate() {
                    write!(f, "{}{byte:02x}", if index == 0 { "" } else { ":" })?;
                }
                Ok(())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::models::{nosv, ovni};
    use std::string::ToString;

    fn spec(code: crate::Code) -> &'static EventSpec {
        crate::models::find(code).unwrap()
    }

    #[test]
    fn sentences_carry_values() {
        let payload = [3, 0, 0, 0, b'a', 0xff, b'b', 0];
        let sentence = spec(nosv::TYPE_CREATE).sentence(&payload).to_string();
        assert_eq!(sentence, "creates task type 3 named \"a\\xffb\"");
        assert_eq!(spec(ovni::SET_AFFINITY).sentence(&[]).to_string(), "moves to CPU ?");
    }

    #[test]
    fn fields_that_are_missing_are_there_as_such() {
        let fields = |bytes: &'static [u8]| -> std::vec::Vec<_> {
            let fields = spec(ovni::THREAD_CREATES).fields_of(bytes);
            fields.map(|(name, value)| (name, value.ok())).collect()
        };
        let three = Some(FieldValue::Integer(3));
        assert_eq!(fields(&[3, 0, 0, 0, 1, 0, 0]), [("cpu", three), ("tag", None)]);
        assert_eq!(fields(&[3, 0, 0]), [("cpu", None), ("tag", None)]);
    }

    #[test]
    fn payloads_are_checked() {
        let check = |code, payload: &[u8], jumbo| spec(code).check_payload(payload, jumbo);
        assert_eq!(check(ovni::SET_AFFINITY, &[1, 0, 0, 0], false), Ok(()));
        assert_eq!(check(ovni::SET_AFFINITY, &[1, 0, 0], false), Err(PayloadError::TooShort));
        assert_eq!(check(ovni::SET_AFFINITY, &[1, 0, 0, 0, 0], false), Err(PayloadError::TooLong));
        assert_eq!(check(ovni::SET_AFFINITY, &[1, 0, 0, 0], true), Err(PayloadError::WrongKind));
        assert_eq!(check(nosv::TYPE_CREATE, &[1, 0, 0, 0, b'x'], true), Err(PayloadError::NotTerminated));
        assert_eq!(check(nosv::HARDWARE_COUNTERS, &[0; 16], true), Ok(()));
        assert_eq!(check(nosv::HARDWARE_COUNTERS, &[0; 17], true), Err(PayloadError::TooLong));
    }
}
