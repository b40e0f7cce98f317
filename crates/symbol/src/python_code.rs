//! Functions and lines of Python code, from the file that a recorder wrote of its code objects (`modules/python-PID.map`). A
//! line has, separated by tabulators: first place and number of places in hexadecimal; first line of the function; form of the
//! table of lines, and the table in hexadecimal; file; name.
//!
//! The offset of an instruction is that of its place from the first one. Forms of tables, by their letter:
//!
//! - `l` (3.9, `co_lnotab`): pairs of bytes, the distance in instructions and that in lines, signed, from the entry before;
//! - `t` (3.10, `co_linetable`): pairs of bytes, the length of a range of instructions and the distance of its line, signed,
//!   from the range before; −128 for a range without a line;
//! - `p` (since 3.11, `co_linetable`): entries of a first byte with the highest bit set, then kind (4 bits) and length in
//!   units of two bytes less one (3 bits), and further bytes by kind, of which the first number is the distance of lines.

use crate::code_place::{CodePlace, Frame};

/// The upper 16 bits of places of Python's instructions.
const TAG: u64 = 0x5059;

/// Whether an address is a place of an instruction of Python: processors have no such addresses.
pub fn is_python_place(address: u64) -> bool {
    address >> 48 == TAG
}

/// The code objects of one process.
#[derive(Debug, Default)]
pub(crate) struct PythonCode {
    /// In the order of their places.
    functions: Vec<Function>,
}

#[derive(Debug)]
struct Function {
    start: u64,
    end: u64,
    first_line: u32,
    form: u8,
    table: Vec<u8>,
    file: String,
    name: String,
}

impl PythonCode {
    /// Reads a file. Lines of another form are skipped.
    pub(crate) fn parse(text: &str) -> PythonCode {
        let mut functions: Vec<Function> = text.split('\n').filter_map(function_of).collect();
        functions.sort_by_key(|function| function.start);
        PythonCode { functions }
    }

    /// Function, file and line of a place.
    pub(crate) fn find(&self, address: u64) -> Option<CodePlace> {
        let after = self.functions.partition_point(|function| function.start <= address);
        let function = self.functions.get(after.checked_sub(1)?)?;
        let offset = address.checked_sub(function.start).filter(|_| address < function.end)?;
        let frame = Frame {
            function: Some(function.name.clone()),
            file: Some(function.file.clone()),
            line: function.line(offset),
            ..Frame::default()
        };
        Some(CodePlace { frame, ..CodePlace::default() })
    }
}

fn function_of(line: &str) -> Option<Function> {
    let mut fields = line.split('\t');
    let hex = |field: Option<&str>| u64::from_str_radix(field?, 16).ok();
    let (start, places) = (hex(fields.next())?, hex(fields.next())?);
    let first_line = fields.next()?.parse().ok()?;
    let (form, table) = (*fields.next()?.as_bytes().first()?, fields.next()?);
    let (file, name) = (fields.next()?.to_owned(), fields.next()?.to_owned());
    let end = start.checked_add(places)?;
    let is_whole = is_python_place(start)
        && fields.next().is_none()
        && !name.is_empty()
        && table.len().is_multiple_of(2);
    let table = table
        .as_bytes()
        .chunks(2)
        .map(|pair| std::str::from_utf8(pair).ok().and_then(|digits| u8::from_str_radix(digits, 16).ok()));
    let table = table.collect::<Option<Vec<u8>>>()?;
    is_whole.then_some(Function { start, end, first_line, form, table, file, name })
}

impl Function {
    /// The line of the instruction at an offset in bytes; without a table that of the function.
    fn line(&self, offset: u64) -> Option<u32> {
        let first = i64::from(self.first_line);
        let line = match self.form {
            _ if self.table.is_empty() => Some(first),
            b'l' => Some(line_of_pairs(&self.table, first, offset)),
            b't' => line_of_ranges(&self.table, first, offset),
            b'p' => line_of_entries(&self.table, first, offset),
            _ => None,
        };
        line.and_then(|line| u32::try_from(line).ok()).filter(|line| *line != 0)
    }
}

fn line_of_pairs(table: &[u8], first: i64, offset: u64) -> i64 {
    let (mut line, mut at) = (first, 0);
    for pair in table.as_chunks::<2>().0 {
        at += u64::from(pair[0]);
        if at > offset {
            break;
        }
        line += i64::from(pair[1] as i8);
    }
    line
}

fn line_of_ranges(table: &[u8], first: i64, offset: u64) -> Option<i64> {
    let (mut line, mut end) = (first, 0);
    for pair in table.as_chunks::<2>().0 {
        end += u64::from(pair[0]);
        let distance = pair[1] as i8;
        if distance != i8::MIN {
            line += i64::from(distance);
        }
        if offset < end {
            return (distance != i8::MIN).then_some(line);
        }
    }
    None
}

fn line_of_entries(table: &[u8], first: i64, offset: u64) -> Option<i64> {
    let (mut line, mut end) = (first, 0_u64);
    let mut at = 0;
    while let Some(head) = table.get(at) {
        let further = table.get(at + 1..)?;
        at += 1;
        end += u64::from(head & 7) * 2 + 2;
        // Kinds: 0 to 9 without a distance, 10 to 12 with that, 13 and 14 with a number, 15 without a line.
        let kind = head >> 3 & 15;
        line += match kind {
            10..=12 => i64::from(kind) - 10,
            13 | 14 => signed(further)?,
            _ => 0,
        };
        // The highest bit begins an entry.
        at += further.iter().take_while(|byte| **byte & 0x80 == 0).count();
        if offset < end {
            return (kind != 15).then_some(line);
        }
    }
    None
}

/// A number in units of six bits, the lowest first; another unit follows each with bit 6; the lowest bit is the sign.
fn signed(bytes: &[u8]) -> Option<i64> {
    let mut number = 0_u64;
    for (byte, shift) in bytes.iter().zip((0..36).step_by(6)) {
        number |= u64::from(byte & 63) << shift;
        if byte & 64 == 0 {
            let value = (number >> 1) as i64;
            return Some(if number & 1 == 1 { -value } else { value });
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_have_the_lines_of_their_instructions() {
        // Of `def f(a):\n  b = a\n\n  return b` at line 3 in each form; and code without a line in the later ones.
        let text = "5059000000000000\t8\t3\tl\t0001040204fe\tx.py\tf\n\
                    5059000000000100\ta\t3\tt\t040104020280\tx.py\tf\n\
                    5059000000000200\tc\t3\tp\td8040580d90b0c80f0\tx.py\tC.f\n\
                    5059000000000300\t8\t9\tp\t\tx.py\t<module>\n";
        let code = PythonCode::parse(text);
        let lines = |start: u64, count: u64| -> Vec<Option<u32>> {
            let places = (0..count).step_by(2).map(|offset| 0x5059_0000_0000_0000 + start + offset + 1);
            places.map(|place| code.find(place).unwrap().frame.line).collect()
        };
        assert_eq!(lines(0, 8), [Some(4), Some(4), Some(6), Some(6)]);
        assert_eq!(lines(0x100, 10), [Some(4), Some(4), Some(6), Some(6), None]);
        assert_eq!(lines(0x300, 4), [Some(9); 2]);
        let place = code.find(0x5059_0000_0000_0201).unwrap();
        assert_eq!(place.frame.function.as_deref(), Some("C.f"));
        assert_eq!(place.frame.file.as_deref(), Some("x.py"));
        assert!(code.find(0x5059_0000_0000_0008).is_none());
    }

    #[test]
    fn damaged_lines_give_no_place() {
        for line in [
            "",
            "5059000000000000\t8\t3\tl\t00010\tx.py\tf",
            "5059000000000000\t8\t3\tl\tzz\tx.py\tf",
            "0\t8\t3\tl\t\tx.py\tf",
            "5059000000000000\tffffffffffffffff\t3\tl\t\tx.py\tf",
            "5059000000000000\t8\t3\tl\t\tx.py\t",
            "5059000000000000\t8\t3\tl\t\tx.py\tf\tg",
            "5059000000000000\t8\t-3\tl\t\tx.py\tf",
        ] {
            assert!(PythonCode::parse(line).find(0x5059_0000_0000_0001).is_none(), "{line}");
        }
        for table in ["ff", "e8", "e8ffffff", "f8", "00"] {
            let text = format!("5059000000000000\t80\t3\tp\t{table}\tx.py\tf");
            let place = PythonCode::parse(&text).find(0x5059_0000_0000_0070).unwrap();
            assert_eq!(place.frame.line, None, "{table}");
        }
    }
}
