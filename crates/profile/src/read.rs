//! Reads a profile from untrusted bytes: never panics, and takes no more memory than a small multiple of
//! their size.

use crate::form::{MAGIC, VERSION, tag};
use crate::frame::FrameKind;
use crate::{
    Frame, Metric, Module, NO_MODULE, NodeId, Process, Profile, ROOT, WaitCall, WaitEnd, WaitPart, WaitRow,
    WaitTie,
};
use std::fmt;
use taskscope_event::{FNV_START, fnv1a};

/// Metrics' numbers are below: a tree searches the values of a node one by one.
const METRICS: u16 = 0x1000;

/// In which way the bytes are not a profile.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ReadErrorKind {
    /// The first bytes are not those of a profile.
    NotAProfile,
    /// A version that this reader does not know.
    Version(u16),
    /// The bytes end before the end section.
    Short,
    /// A number takes more than ten bytes or 64 bits.
    LongNumber,
    /// A text is not UTF-8.
    Text,
    /// A node refers to itself, or to one before the root.
    Parent,
    /// A node's kind is none.
    Kind,
    /// A frame refers to a file that is not listed.
    Module,
    /// Values of a node that does not exist.
    Node,
    /// A metric's number is too large.
    MetricNumber,
    /// A wait has a number that is too large, or an unknown kind of part.
    Wait,
    /// A section holds more bytes than its rows take.
    Excess,
    /// The sum over the bytes is not the one that was written.
    Checksum,
    /// Bytes after the end section.
    AfterEnd,
}

/// Error of a file that is not a profile.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ReadError {
    /// Kind of the error.
    pub kind: ReadErrorKind,
    /// Byte of the file.
    pub at: usize,
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let at = self.at;
        match self.kind {
            ReadErrorKind::NotAProfile => write!(f, "it is not a profile"),
            ReadErrorKind::Version(version) => {
                write!(f, "format version {version} is not supported; the supported one is {VERSION}")
            }
            ReadErrorKind::Short => write!(f, "it ends at byte {at}, before its end section"),
            ReadErrorKind::LongNumber => write!(f, "the number at byte {at} does not fit into 64 bits"),
            ReadErrorKind::Text => write!(f, "the text at byte {at} is not UTF-8"),
            ReadErrorKind::Parent => write!(f, "the path at byte {at} continues one that does not exist"),
            ReadErrorKind::Kind => write!(f, "the frame at byte {at} has an unknown kind"),
            ReadErrorKind::Module => write!(f, "the frame at byte {at} is in an unlisted file"),
            ReadErrorKind::Node => write!(f, "the values at byte {at} have no path"),
            ReadErrorKind::MetricNumber => write!(f, "the metric at byte {at} has an impossible number"),
            ReadErrorKind::Wait => write!(f, "the wait at byte {at} has an impossible number"),
            ReadErrorKind::Excess => write!(f, "the section that ends at byte {at} is too long"),
            ReadErrorKind::Checksum => write!(f, "its checksum is wrong"),
            ReadErrorKind::AfterEnd => write!(f, "there are bytes after its end section, from byte {at} on"),
        }
    }
}

impl std::error::Error for ReadError {}

struct Bytes<'a> {
    bytes: &'a [u8],
    at: usize,
    end: usize,
}

impl<'a> Bytes<'a> {
    fn fail<T>(&self, kind: ReadErrorKind) -> Result<T, ReadError> {
        Err(ReadError { kind, at: self.at })
    }

    fn take(&mut self, count: usize) -> Result<&'a [u8], ReadError> {
        let end = self.at.checked_add(count).filter(|end| *end <= self.end);
        let Some(part) = end.and_then(|end| self.bytes.get(self.at..end)) else {
            return Err(ReadError { kind: ReadErrorKind::Short, at: self.end });
        };
        self.at += count;
        Ok(part)
    }

    fn byte(&mut self) -> Result<u8, ReadError> {
        Ok(self.take(1)?[0])
    }

    fn varint(&mut self) -> Result<u64, ReadError> {
        let start = self.at;
        let mut value = 0_u64;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            let part = (byte & 0x7f) as u64;
            if shift == 63 && part > 1 {
                break;
            }
            value |= part << shift;
            if byte < 0x80 {
                return Ok(value);
            }
        }
        Err(ReadError { kind: ReadErrorKind::LongNumber, at: start })
    }

    fn text(&mut self) -> Result<String, ReadError> {
        let start = self.at;
        let length = self.varint()?;
        let part = self.take(usize::try_from(length).unwrap_or(usize::MAX))?;
        let text =
            std::str::from_utf8(part).map_err(|_| ReadError { kind: ReadErrorKind::Text, at: start })?;
        Ok(text.to_string())
    }
}

impl Profile {
    /// Reads the output of [`Profile::write`].
    ///
    /// # Errors
    /// Kind and position of the first error.
    pub fn read(bytes: &[u8]) -> Result<Profile, ReadError> {
        let mut profile = Profile::default();
        // The node here of each node of the file: a path that is there twice becomes one.
        let mut nodes: Vec<NodeId> = vec![ROOT];
        let mut offset = 0_u64;
        let mut from = Bytes { bytes, at: 0, end: bytes.len() };
        if bytes.get(..MAGIC.len()) != Some(&MAGIC) {
            return from.fail(ReadErrorKind::NotAProfile);
        }
        from.at = MAGIC.len();
        let version = from.take(2)?;
        let version = u16::from_le_bytes([version[0], version[1]]);
        if version != VERSION {
            return from.fail(ReadErrorKind::Version(version));
        }
        loop {
            let start = from.at;
            let tag = from.byte()?;
            let length = usize::try_from(from.varint()?).unwrap_or(usize::MAX);
            let content = from.at;
            from.take(length)?;
            let mut section = Bytes { bytes, at: content, end: from.at };
            match tag {
                tag::PROCESS => profile.processes.push(process(&mut section)?),
                tag::MODULES => {
                    for _ in 0..section.varint()? {
                        let build_id = section.text()?;
                        profile.modules.push(Module { build_id, path: section.text()? });
                    }
                }
                tag::NODES => {
                    for _ in 0..section.varint()? {
                        node(&mut section, &mut profile, &mut nodes, &mut offset)?;
                    }
                }
                tag::VALUES => {
                    for _ in 0..section.varint()? {
                        values(&mut section, &mut profile, &nodes)?;
                    }
                }
                tag::TOTALS => {
                    for _ in 0..section.varint()? {
                        let name = section.text()?;
                        let value = section.varint()?;
                        let sum = profile.totals.entry(name).or_default();
                        *sum = sum.saturating_add(value);
                    }
                }
                tag::THREAD_WAITS => {
                    for _ in 0..section.varint()? {
                        let row =
                            Waits { section: &mut section, modules: profile.modules.len(), nodes: &nodes }
                                .row()?;
                        profile.thread_waits.push(row);
                    }
                }
                tag::UNUSED_CPUS => {
                    for _ in 0..section.varint()? {
                        let at = section.at;
                        let (row, number) = (section.varint()?, section.varint()?);
                        let row = usize::try_from(row).ok().and_then(|row| profile.thread_waits.get_mut(row));
                        let part = row.zip(usize::try_from(number).ok());
                        let part = part.and_then(|(row, number)| row.parts.get_mut(number));
                        let part = part.ok_or(ReadError { kind: ReadErrorKind::Wait, at })?;
                        part.cpu_ns = part.cpu_ns.saturating_add(section.varint()?);
                    }
                }
                tag::LOSSES => {
                    let unfit = section.varint()?.saturating_add(profile.tree.unfit());
                    profile.tree.set_unfit(unfit);
                }
                tag::END => {
                    let written = section.take(8)?;
                    if written != fnv1a(FNV_START, &bytes[..start]).to_le_bytes() {
                        return section.fail(ReadErrorKind::Checksum);
                    }
                    if from.at < bytes.len() {
                        return from.fail(ReadErrorKind::AfterEnd);
                    }
                }
                _ => section.at = section.end,
            }
            if section.at < section.end {
                return Err(ReadError { kind: ReadErrorKind::Excess, at: section.end });
            }
            if tag == tag::END {
                return Ok(profile);
            }
        }
    }
}

fn process(section: &mut Bytes<'_>) -> Result<Process, ReadError> {
    let mut process = Process::new();
    for _ in 0..section.varint()? {
        let key = section.text()?;
        process.insert(key, section.text()?);
    }
    Ok(process)
}

fn node(
    section: &mut Bytes<'_>,
    profile: &mut Profile,
    nodes: &mut Vec<NodeId>,
    before: &mut u64,
) -> Result<(), ReadError> {
    let at = section.at;
    let wrong = |kind| ReadError { kind, at };
    let back = section.varint()?;
    let parent = (nodes.len() as u64).checked_sub(back).filter(|_| back > 0);
    let parent = parent.ok_or(wrong(ReadErrorKind::Parent))? as usize;
    let kind = FrameKind::of(section.byte()?).ok_or(wrong(ReadErrorKind::Kind))?;
    let module = match section.varint()? {
        0 => NO_MODULE,
        number if number <= profile.modules.len() as u64 => (number - 1) as u32,
        _ => return Err(wrong(ReadErrorKind::Module)),
    };
    let step = section.varint()?;
    *before = before.wrapping_add((step >> 1) ^ (step & 1).wrapping_neg());
    let node = profile.tree.child(nodes[parent], Frame { kind, module, offset: *before });
    nodes.push(node);
    Ok(())
}

fn values(section: &mut Bytes<'_>, profile: &mut Profile, nodes: &[NodeId]) -> Result<(), ReadError> {
    let at = section.at;
    let node = usize::try_from(section.varint()?).ok().and_then(|node| nodes.get(node));
    let node = *node.ok_or(ReadError { kind: ReadErrorKind::Node, at })?;
    for _ in 0..section.varint()? {
        let at = section.at;
        let metric = u16::try_from(section.varint()?).ok().filter(|metric| *metric < METRICS);
        let metric = metric.ok_or(ReadError { kind: ReadErrorKind::MetricNumber, at })?;
        let value = section.varint()?;
        profile.tree.add(node, Metric::from_file_number(metric), value);
    }
    Ok(())
}

/// Waits of threads.
struct Waits<'a, 'b> {
    section: &'a mut Bytes<'b>,
    modules: usize,
    nodes: &'a [NodeId],
}

impl Waits<'_, '_> {
    fn small(&mut self) -> Result<u32, ReadError> {
        let at = self.section.at;
        u32::try_from(self.section.varint()?).map_err(|_| ReadError { kind: ReadErrorKind::Wait, at })
    }

    fn module(&mut self) -> Result<u32, ReadError> {
        let at = self.section.at;
        match self.section.varint()? {
            0 => Ok(NO_MODULE),
            number if number <= self.modules as u64 => Ok((number - 1) as u32),
            _ => Err(ReadError { kind: ReadErrorKind::Module, at }),
        }
    }

    fn row(&mut self) -> Result<WaitRow, ReadError> {
        let (process, kind, module) = (self.small()?, self.small()?, self.module()?);
        let (object, call) = (self.section.varint()?, self.call()?);
        let (waits, threads, longest_ns) = (self.section.varint()?, self.small()?, self.section.varint()?);
        let mut parts = Vec::new();
        for _ in 0..self.section.varint()? {
            parts.push(self.part()?);
        }
        Ok(WaitRow { process, kind, module, object, call, waits, threads, longest_ns, parts })
    }

    fn part(&mut self) -> Result<WaitPart, ReadError> {
        let at = self.section.at;
        let end = WaitEnd::of(self.section.byte()?).ok_or(ReadError { kind: ReadErrorKind::Wait, at })?;
        let (first, last) = (self.tie()?, self.tie()?);
        let blocked = match self.small()? {
            0 => None,
            kind => Some((kind, self.call()?)),
        };
        let (length, ns) = (self.small()?, self.section.varint()?);
        Ok(WaitPart { end, first, last, blocked, length, ns, cpu_ns: 0 })
    }

    fn tie(&mut self) -> Result<Option<WaitTie>, ReadError> {
        let at = self.section.at;
        Ok(match self.section.byte()? {
            0 => None,
            1 => Some(WaitTie::Holds(self.call()?)),
            2 => Some(WaitTie::Wakes(self.call()?)),
            3 => Some(WaitTie::IsJoined(self.call()?)),
            _ => return Err(ReadError { kind: ReadErrorKind::Wait, at }),
        })
    }

    fn call(&mut self) -> Result<WaitCall, ReadError> {
        let (module, offset, at) = (self.module()?, self.section.varint()?, self.section.at);
        let node = usize::try_from(self.section.varint()?).ok().and_then(|node| self.nodes.get(node));
        let path = *node.ok_or(ReadError { kind: ReadErrorKind::Node, at })?;
        Ok(WaitCall { module, offset, path })
    }
}
