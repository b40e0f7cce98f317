//! Fields of protocol buffers, with the bytes at which they are.

/// The byte of an error, and a sentence.
pub(super) type Error = (usize, String);

/// A value of a field.
#[derive(Clone, Copy, Debug)]
enum Value<'a> {
    Varint(u64),
    Fixed(u64),
    Bytes(&'a [u8]),
}

/// A field.
#[derive(Clone, Copy, Debug)]
pub(super) struct Field<'a> {
    pub number: u64,
    /// Place of its value in the file.
    pub at: usize,
    value: Value<'a>,
}

impl<'a> Field<'a> {
    /// A number; 0 for bytes.
    pub fn number(&self) -> u64 {
        match self.value {
            Value::Varint(value) | Value::Fixed(value) => value,
            Value::Bytes(_) => 0,
        }
    }

    /// The bytes of a text or message.
    pub fn bytes(&self) -> Option<&'a [u8]> {
        match self.value {
            Value::Bytes(bytes) => Some(bytes),
            Value::Varint(_) | Value::Fixed(_) => None,
        }
    }

    /// A text; invalid UTF-8 is replaced.
    pub fn text(&self) -> String {
        self.bytes().map_or(String::new(), |bytes| String::from_utf8_lossy(bytes).into_owned())
    }

    /// The fields of a message; none of other values.
    pub fn fields(&self) -> Cursor<'a> {
        Cursor::new(self.bytes().unwrap_or(&[]), self.at)
    }

    /// Numbers of eight bytes each: packed ones, or one.
    pub fn eights(&self) -> Vec<u64> {
        match self.value {
            Value::Bytes(bytes) => bytes
                .chunks_exact(8)
                .map(|eight| eight.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte)))
                .collect(),
            Value::Varint(value) | Value::Fixed(value) => vec![value],
        }
    }
}

/// Reads the fields of a message.
#[derive(Clone)]
pub(super) struct Cursor<'a> {
    bytes: &'a [u8],
    at: usize,
    /// Place of the message in the file.
    base: usize,
}

impl<'a> Cursor<'a> {
    pub fn new(bytes: &'a [u8], base: usize) -> Cursor<'a> {
        Cursor { bytes, at: 0, base }
    }

    pub fn at(&self) -> usize {
        self.at
    }

    pub fn is_at_end(&self) -> bool {
        self.at == self.bytes.len()
    }

    /// The next field; none at the end.
    pub fn next_field(&mut self) -> Result<Option<Field<'a>>, Error> {
        if self.is_at_end() {
            return Ok(None);
        }
        let start = self.base + self.at;
        let key = self.varint()?;
        let number = key >> 3;
        if number == 0 {
            return Err((start, "a field cannot have the number 0".to_owned()));
        }
        let at = self.base + self.at;
        let value = match key & 7 {
            0 => Value::Varint(self.varint()?),
            1 => Value::Fixed(self.fixed(8)?),
            5 => Value::Fixed(self.fixed(4)?),
            2 => {
                let length = self.varint()?;
                let at = self.base + self.at;
                let bytes = self.take(usize::try_from(length).unwrap_or(usize::MAX))?;
                return Ok(Some(Field { number, at, value: Value::Bytes(bytes) }));
            }
            kind => return Err((start, format!("a field has the kind {kind}, which does not exist"))),
        };
        Ok(Some(Field { number, at, value }))
    }

    /// Whether all fields satisfy a condition; reads them.
    pub fn all(mut self, holds: impl Fn(Result<Field<'a>, Error>) -> bool) -> bool {
        loop {
            match self.next_field() {
                Ok(None) => return true,
                Ok(Some(field)) if holds(Ok(field)) => {}
                Ok(Some(_)) => return false,
                Err(error) => return holds(Err(error)),
            }
        }
    }

    fn take(&mut self, length: usize) -> Result<&'a [u8], Error> {
        let end = self.at.checked_add(length).filter(|end| *end <= self.bytes.len());
        let end = end.ok_or_else(|| {
            (self.base + self.at, format!("it ends in a field, {length} bytes were expected"))
        })?;
        let taken = &self.bytes[self.at..end];
        self.at = end;
        Ok(taken)
    }

    fn fixed(&mut self, length: usize) -> Result<u64, Error> {
        Ok(self.take(length)?.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte)))
    }

    fn varint(&mut self) -> Result<u64, Error> {
        let start = self.base + self.at;
        let mut value = 0_u64;
        for shift in (0..70).step_by(7) {
            let byte = self.take(1)?[0];
            // Bits beyond 64 are cut, as other readers do.
            value |= u64::from(byte & 0x7f).checked_shl(shift).unwrap_or(0);
            if byte < 0x80 {
                return Ok(value);
            }
        }
        Err((start, "a number has more than 10 bytes".to_owned()))
    }
}
