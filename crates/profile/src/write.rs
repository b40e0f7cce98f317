//! Writes a profile, with a buffer of a few kilobytes.

use crate::form::{MAGIC, VERSION, tag};
use crate::{Metric, NO_MODULE, Profile, ROOT, WaitCall, WaitPart, WaitRow, WaitTie};
use std::io::{self, Write};
use taskscope_event::{FNV_START, fnv1a};

/// Bytes after which a section is closed and the next one begun.
const SECTION_BYTES: usize = 32 << 10;

impl Profile {
    /// Writes the profile in the form of [`form`](crate::form). Hand over an unbuffered file: writes
    /// are few and large. For a file that others may be reading, write a new one and rename it.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        let mut sections = Sections { out, hash: FNV_START, rows: Vec::new(), count: 0, tag: 0 };
        sections.raw(&MAGIC)?;
        sections.raw(&VERSION.to_le_bytes())?;
        for process in &self.processes {
            sections.begin(tag::PROCESS)?;
            for (key, value) in process {
                sections.text(key);
                sections.text(value);
                // A process is one section of any size.
                sections.count += 1;
            }
        }
        sections.begin(tag::MODULES)?;
        for module in &self.modules {
            sections.text(&module.build_id);
            sections.text(&module.path);
            sections.row_ends()?;
        }
        sections.begin(tag::NODES)?;
        let mut before = 0_u64;
        for node in self.tree.ids() {
            let frame = self.tree.frame(node);
            sections.varint((node.0 - self.tree.parent(node).0) as u64);
            sections.rows.push(frame.kind as u8);
            sections.varint(if frame.module == NO_MODULE { 0 } else { frame.module as u64 + 1 });
            let step = frame.offset.wrapping_sub(before) as i64;
            sections.varint((step << 1 ^ step >> 63) as u64);
            before = frame.offset;
            sections.row_ends()?;
        }
        sections.begin(tag::VALUES)?;
        let mut values: Vec<(Metric, u64)> = Vec::new();
        for node in std::iter::once(ROOT).chain(self.tree.ids()) {
            values.clear();
            values.extend(self.tree.values(node).filter(|(_, value)| *value > 0));
            if values.is_empty() {
                continue;
            }
            values.sort_unstable_by_key(|(metric, _)| *metric);
            sections.varint(node.0 as u64);
            sections.varint(values.len() as u64);
            for (metric, value) in &values {
                sections.varint(metric.0 as u64);
                sections.varint(*value);
            }
            sections.row_ends()?;
        }
        sections.begin(tag::TOTALS)?;
        for (name, value) in &self.totals {
            sections.text(name);
            sections.varint(*value);
            sections.row_ends()?;
        }
        sections.begin(tag::THREAD_WAITS)?;
        for row in &self.thread_waits {
            sections.wait_row(row);
            sections.row_ends()?;
        }
        sections.begin(tag::UNUSED_CPUS)?;
        for (row, waits) in self.thread_waits.iter().enumerate() {
            for (number, part) in waits.parts.iter().enumerate().filter(|(_, part)| part.cpu_ns > 0) {
                [row as u64, number as u64, part.cpu_ns].into_iter().for_each(|value| sections.varint(value));
                sections.row_ends()?;
            }
        }
        sections.end(self.tree.unfit())
    }
}

struct Sections<'a> {
    out: &'a mut dyn Write,
    hash: u64,
    rows: Vec<u8>,
    count: u64,
    tag: u8,
}

impl Sections<'_> {
    fn raw(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.hash = fnv1a(self.hash, bytes);
        self.out.write_all(bytes)
    }

    fn varint(&mut self, value: u64) {
        push_varint(&mut self.rows, value);
    }

    fn text(&mut self, text: &str) {
        self.varint(text.len() as u64);
        self.rows.extend_from_slice(text.as_bytes());
    }

    fn module(&mut self, module: u32) {
        self.varint(if module == NO_MODULE { 0 } else { u64::from(module) + 1 });
    }

    fn wait_row(&mut self, row: &WaitRow) {
        self.varint(row.process.into());
        self.varint(row.kind.into());
        self.module(row.module);
        self.varint(row.object);
        self.call(row.call);
        for number in [row.waits, row.threads.into(), row.longest_ns, row.parts.len() as u64] {
            self.varint(number);
        }
        row.parts.iter().for_each(|part| self.wait_part(part));
    }

    fn wait_part(&mut self, part: &WaitPart) {
        self.rows.push(part.end as u8);
        self.tie(part.first);
        self.tie(part.last);
        match part.blocked {
            Some((kind, call)) => {
                self.varint(kind.into());
                self.call(call);
            }
            None => self.varint(0),
        }
        self.varint(part.length.into());
        self.varint(part.ns);
    }

    fn call(&mut self, WaitCall { module, offset, path }: WaitCall) {
        self.module(module);
        self.varint(offset);
        self.varint(path.0.into());
    }

    fn tie(&mut self, tie: Option<WaitTie>) {
        let (number, call) = match tie {
            None => return self.rows.push(0),
            Some(WaitTie::Holds(call)) => (1, call),
            Some(WaitTie::Wakes(call)) => (2, call),
            Some(WaitTie::IsJoined(call)) => (3, call),
        };
        self.rows.push(number);
        self.call(call);
    }

    fn row_ends(&mut self) -> io::Result<()> {
        self.count += 1;
        if self.rows.len() >= SECTION_BYTES { self.begin(self.tag) } else { Ok(()) }
    }

    /// Writes the section so far, if it has rows, and begins one of `tag`.
    fn begin(&mut self, tag: u8) -> io::Result<()> {
        if self.count > 0 {
            let mut head = vec![self.tag];
            let mut count = Vec::new();
            push_varint(&mut count, self.count);
            push_varint(&mut head, (count.len() + self.rows.len()) as u64);
            head.extend_from_slice(&count);
            self.raw(&head)?;
            self.hash = fnv1a(self.hash, &self.rows);
            self.out.write_all(&self.rows)?;
        }
        self.rows.clear();
        self.count = 0;
        self.tag = tag;
        Ok(())
    }

    fn end(&mut self, unfit: u64) -> io::Result<()> {
        self.begin(tag::LOSSES)?;
        if unfit > 0 {
            self.varint(unfit);
            let mut head = vec![tag::LOSSES];
            push_varint(&mut head, self.rows.len() as u64);
            head.append(&mut self.rows);
            self.raw(&head)?;
        }
        let hash = self.hash.to_le_bytes();
        let mut end = vec![tag::END, 8];
        end.extend_from_slice(&hash);
        self.out.write_all(&end)?;
        self.out.flush()
    }
}

fn push_varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}
