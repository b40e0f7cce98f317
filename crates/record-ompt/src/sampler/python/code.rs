//! Places of Python's instructions: each code object is described once, by a line in a file of the trace.
//!
//! A line has, separated by tabulators: the first place and the number of places in hexadecimal; the first line of the
//! function; the form of the table of lines, and the table in hexadecimal; file; name. Written in the handler that meets the code
//! object first: so it is there however the process ends.

use core::sync::atomic::{AtomicI32, AtomicU64, Ordering::*};

use super::interpreter::Interpreter;
use super::layout::Instructions;
use super::memory::{word, words};
use crate::sampler::machine::copy_from_anywhere;
use taskscope_record::limits;

/// The upper 16 bits of places.
const TAG: u64 = 0x5059 << 48;
/// Places of one byte of a file.
const PLACES_OF_BYTE: u64 = 16;
/// No file is longer: further code objects have no place.
const MAX_FILE_BYTES: u64 = 1 << 22;
/// Code objects that can be known at a time.
const MAX_CODES: usize = 1 << 14;
/// Slots that are searched for one.
const SEARCHED: usize = 16;
/// Longer tables of lines are left out.
const MAX_TABLE_BYTES: usize = 6 << 10;
/// Longer names are cut off, in characters.
const MAX_NAME: usize = 256;
const MAX_FILE_NAME: usize = 1024;
/// A line: the table in hexadecimal, both names with up to four bytes a character, and the numbers.
const MAX_LINE_BYTES: usize = 2 * MAX_TABLE_BYTES + 4 * (MAX_NAME + MAX_FILE_NAME) + 128;
const MAX_PATH_BYTES: usize = 4096;

/// A known code object. All zeros is a free entry.
struct Known {
    code: AtomicU64,
    /// A hash of its fields: another object may be at the same address later.
    fingerprint: AtomicU64,
    /// The first place.
    start: AtomicU64,
    /// Number of places.
    places: AtomicU64,
}

static KNOWN: [Known; MAX_CODES] = [const {
    Known {
        code: AtomicU64::new(0),
        fingerprint: AtomicU64::new(0),
        start: AtomicU64::new(0),
        places: AtomicU64::new(0),
    }
}; MAX_CODES];

/// Process whose thread describes a code object; 0 for none.
static WRITER: AtomicI32 = AtomicI32::new(0);

/// Memory of the writer.
struct Memory {
    line: [u8; MAX_LINE_BYTES],
    table: [u8; MAX_TABLE_BYTES],
    path: [u8; MAX_PATH_BYTES],
}

struct Shared(core::cell::UnsafeCell<Memory>);
// SAFETY: `WRITER` lets one thread in.
unsafe impl Sync for Shared {}
static MEMORY: Shared = Shared(core::cell::UnsafeCell::new(Memory {
    line: [0; MAX_LINE_BYTES],
    table: [0; MAX_TABLE_BYTES],
    path: [0; MAX_PATH_BYTES],
}));

/// Words of a code object that are read.
pub const WORDS: usize = 18;

/// A code object whose instructions have places.
#[derive(Clone, Copy, Debug, Default)]
pub struct Code {
    /// Address of the first instruction, or 0 if instructions are known by their offsets.
    begin: u64,
    /// The first place, and their number.
    places: (u64, u64),
}

impl Code {
    /// The place of an instruction, one past its first byte, as return addresses are.
    pub fn place(&self, instruction: u64) -> u64 {
        let (start, places) = self.places;
        start + instruction.saturating_sub(self.begin).min(places.saturating_sub(1)) + 1
    }

    /// The object at this address, with its first words. `None` if that is not one, or it cannot be described now.
    pub fn of(interpreter: &Interpreter, code: u64, words: &[u64]) -> Option<Code> {
        let layout = &interpreter.layout.code;
        let field = |at: usize| words.get(at / 8).copied();
        if field(8)? != interpreter.code_type {
            return None;
        }
        let first_line = (field(layout.first_line)? >> (layout.first_line % 8 * 8)) as u32;
        let (file, name, lines) = (field(layout.file)?, field(layout.name)?, field(layout.lines)?);
        // Their number, or the object that has them.
        let (begin, instructions) = match layout.instructions {
            Instructions::Inside(at) => (code + at, field(16)?),
            Instructions::Bytes(at) => (0, field(at)?),
        };
        let fingerprint = [file, name, lines, u64::from(first_line), instructions]
            .iter()
            .fold(1, |hash: u64, field| (hash ^ field).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29))
            | 1;
        let places = match find(code, fingerprint) {
            Some(known) => known,
            None => {
                describe(interpreter, (code, fingerprint), (file, name, lines), (first_line, instructions))?
            }
        };
        Some(Code { begin, places })
    }
}

fn slots(code: u64, fingerprint: u64) -> impl Iterator<Item = &'static Known> {
    let first = ((code ^ fingerprint).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40) as usize;
    (0..SEARCHED).filter_map(move |next| KNOWN.get((first + next) % MAX_CODES))
}

fn find(code: u64, fingerprint: u64) -> Option<(u64, u64)> {
    slots(code, fingerprint)
        .find(|known| known.fingerprint.load(Acquire) == fingerprint && known.code.load(Relaxed) == code)
        .map(|known| (known.start.load(Relaxed), known.places.load(Relaxed)))
}

/// Describes a code object, unless another thread describes one. Returns its first place and their number.
#[cold]
fn describe(
    interpreter: &Interpreter,
    (code, fingerprint): (u64, u64),
    (file, name, lines): (u64, u64, u64),
    (first_line, instructions): (u32, u64),
) -> Option<(u64, u64)> {
    // SAFETY: no preconditions.
    let process = unsafe { libc::getpid() };
    let writer = WRITER.load(Relaxed);
    // A forked child may find its parent.
    if writer == process || WRITER.compare_exchange(writer, process, Acquire, Relaxed).is_err() {
        return None;
    }
    let free = slots(code, fingerprint).find(|known| known.fingerprint.load(Relaxed) == 0);
    let made = free.and_then(|free| {
        let bytes = match interpreter.layout.code.instructions {
            Instructions::Inside(_) => instructions.checked_mul(2)?,
            Instructions::Bytes(_) => word(instructions.checked_add(16)?)?,
        };
        // SAFETY: this thread is the only writer; the handler interrupts no other one in here.
        let Memory { line, table, path } = unsafe { &mut *MEMORY.0.get() };
        let size = word(lines.checked_add(16)?)?;
        let table = usize::try_from(size).ok().and_then(|size| table.get_mut(..size)).unwrap_or_default();
        let has_table = copy_from_anywhere(lines.checked_add(32)?, table) == table.len() && size != 0;
        let table = if has_table { &*table } else { &[] };
        let mut file_of_names = File::open(&interpreter.names, process, path)?;
        let start = TAG | ((process as u64 & 0x3f_ffff) << 26) | (file_of_names.bytes * PLACES_OF_BYTE);
        // A line is longer than this.
        let places = bytes.min((2 * table.len() as u64 + 16) * PLACES_OF_BYTE);
        let mut text = Text { bytes: line, used: 0 };
        text.number(start, 16);
        text.push(b"\t");
        text.number(places, 16);
        text.push(b"\t");
        text.number(u64::from(first_line), 10);
        text.push(&[b'\t', interpreter.layout.code.form, b'\t']);
        table.iter().for_each(|byte| text.push(&[digit(byte >> 4), digit(byte & 15)]));
        text.push(b"\t");
        string(interpreter, file, MAX_FILE_NAME, &mut text)?;
        text.push(b"\t");
        string(interpreter, name, MAX_NAME, &mut text)?;
        text.push(b"\n");
        file_of_names.write(text.bytes.get(..text.used)?)?;
        free.code.store(code, Relaxed);
        free.start.store(start, Relaxed);
        free.places.store(places, Relaxed);
        free.fingerprint.store(fingerprint, Release);
        Some((start, places))
    });
    WRITER.store(0, Release);
    made
}

/// The file of a process's names, open. System calls alone, as those of the C library are intercepted.
struct File {
    number: libc::c_long,
    bytes: u64,
}

impl File {
    fn open(names: &[u8], process: i32, path: &mut [u8]) -> Option<File> {
        let mut text = Text { bytes: path, used: 0 };
        text.push(names);
        text.number(process as u64, 10);
        text.push(b".map\0");
        let path = text.bytes.get(..text.used).filter(|path| path.ends_with(&[0]))?;
        let flags = libc::O_WRONLY
            | libc::O_CREAT
            | libc::O_APPEND
            | libc::O_NOFOLLOW
            | libc::O_NONBLOCK
            | libc::O_NOCTTY
            | libc::O_CLOEXEC;
        // SAFETY: a path that ends with zero.
        let number = unsafe { libc::syscall(libc::SYS_openat, libc::AT_FDCWD, path.as_ptr(), flags, 0o666) };
        if number < 0 {
            return None;
        }
        let mut file = File { number, bytes: 0 };
        // SAFETY: an open file. Its place is not used: writing appends.
        let bytes = unsafe { libc::syscall(libc::SYS_lseek, number, 0, libc::SEEK_END) };
        file.bytes = u64::try_from(bytes).ok().filter(|bytes| *bytes < MAX_FILE_BYTES)?;
        Some(file)
    }

    fn write(&mut self, line: &[u8]) -> Option<()> {
        limits::check_file_size(self.bytes + line.len() as u64).ok()?;
        // SAFETY: an open file and bytes in memory.
        let written = unsafe { libc::syscall(libc::SYS_write, self.number, line.as_ptr(), line.len()) };
        // Readers skip a part of a line, as its places are described nowhere else.
        (written == line.len() as libc::c_long).then_some(())
    }
}

impl Drop for File {
    fn drop(&mut self) {
        // SAFETY: its own file.
        unsafe { libc::syscall(libc::SYS_close, self.number) };
    }
}

/// Text in memory of fixed size. What does not fit is left out.
struct Text<'a> {
    bytes: &'a mut [u8],
    used: usize,
}

impl Text<'_> {
    fn push(&mut self, part: &[u8]) {
        if let Some(to) = self.bytes.get_mut(self.used..self.used + part.len()) {
            to.copy_from_slice(part);
            self.used += part.len();
        }
    }

    fn number(&mut self, number: u64, base: u64) {
        let mut digits = [0; 20];
        let (mut rest, mut first) = (number, digits.len());
        while rest != 0 || first == digits.len() {
            first -= 1;
            if let Some(place) = digits.get_mut(first) {
                *place = digit((rest % base) as u8);
            }
            rest /= base;
        }
        self.push(digits.get(first..).unwrap_or_default());
    }
}

fn digit(value: u8) -> u8 {
    if value < 10 { b'0' + value } else { b'a' - 10 + value }
}

/// Appends a string object. Characters that would end a field are replaced.
fn string(interpreter: &Interpreter, object: u64, max: usize, text: &mut Text<'_>) -> Option<()> {
    let [length, _, state]: [u64; 3] = words(object.checked_add(16)?)?;
    // Bits: interned (2), bytes of a character (3), in one piece, ASCII.
    let (kind, is_compact, is_ascii) = (state >> 2 & 7, state >> 5 & 1 == 1, state >> 6 & 1 == 1);
    if !is_compact || !matches!(kind, 1 | 2 | 4) {
        return None;
    }
    let layout = interpreter.layout;
    let at = object + if is_ascii { layout.ascii_bytes } else { layout.compact_bytes };
    let count = usize::try_from(length).ok()?.min(max);
    let mut read = 0;
    while read < count {
        let mut piece = [0; 256];
        let units = (piece.len() / kind as usize).min(count - read);
        let piece = piece.get_mut(..units * kind as usize)?;
        if copy_from_anywhere(at + (read as u64) * kind, piece) != piece.len() {
            return None;
        }
        for unit in piece.chunks_exact(kind as usize) {
            let number = unit.iter().rev().fold(0_u32, |number, byte| number << 8 | u32::from(*byte));
            let found = char::from_u32(number).filter(|found| !found.is_control()).unwrap_or('\u{fffd}');
            text.push(found.encode_utf8(&mut [0; 4]).as_bytes());
        }
        read += units;
    }
    Some(())
}
