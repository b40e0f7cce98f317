use core::fmt;

/// The three characters that name an event: model, category, value.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Code(pub [u8; 3]);

impl Code {
    /// The code with these three characters.
    pub const fn new(characters: &[u8; 3]) -> Self {
        Code(*characters)
    }

    /// The letter of the model that the event belongs to.
    pub const fn model(self) -> u8 {
        self.0[0]
    }

    /// The code as a number, for `match` and for tables: model in the lowest byte.
    pub const fn to_u32(self) -> u32 {
        self.0[0] as u32 | (self.0[1] as u32) << 8 | (self.0[2] as u32) << 16
    }
}

/// Prints the three characters; bytes that are not printable ASCII appear as `\xNN`.
impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for byte in self.0 {
            if byte.is_ascii_graphic() || byte == b' ' {
                write!(f, "{}", byte as char)?;
            } else {
                write!(f, "\\x{byte:02x}")?;
            }
        }
        Ok(())
    }
}

impl fmt::Debug for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Code({self})")
    }
}
