//! The form of a profile's file, `*.tsprof`.
//!
//! ```text
//! bytes 0..8    "tsprof\r\n"         (a copy that "repairs" line ends is noticed)
//! bytes 8..10   u16 little endian    version, 1
//! sections      u8 tag, varint n, n bytes
//! ```
//!
//! | tag | content |
//! | --- | --- |
//! | 1 process | varint count, then count × (text key, text value) |
//! | 2 modules | varint count, then count × (text build id, text path); numbering goes on |
//! | 3 nodes | varint count, then count × (varint index − parent, u8 kind, varint module + 1 or 0, zigzag offset − offset of the node before); numbering goes on, the first node of the file has index 1 |
//! | 4 values | varint count, then count × (varint node, varint n, n × (varint metric, varint value)) |
//! | 5 totals | varint count, then count × (text name, varint value) |
//! | 6 losses | varint: how often a path or a value found no room |
//! | 7 thread waits | varint count, then count × (varint process, kind, module + 1 or 0, object, call, varint waits, threads, longest, n, n × part) |
//! | 8 unused CPUs | varint count, then count × (varint row of thread waits, part, CPU-nanoseconds) |
//! | 255 end | u64 little endian: FNV-1a of every byte before this section's tag |
//!
//! A call is varint module + 1 or 0, offset, node. A part is u8 end, tie of the first and of the last thread, varint kind of the sleep
//! or I/O and, if that is not 0, its call; varint length of the chain and nanoseconds. A tie is u8 1 (holds), 2 (wakes) or 3 (is joined)
//! with a call, or 0.
//!
//! A varint is little endian, seven bits a byte, at most ten bytes. A text is a varint length and that many
//! bytes of UTF-8. Sections 1 to 5, 7 and 8 may repeat, so a writer needs a small buffer only. Readers skip sections
//! with unknown tags. A change of a section's meaning requires a new version.

/// The first bytes of every file.
pub const MAGIC: [u8; 8] = *b"tsprof\r\n";
/// The version that is written, and the only one that is read.
pub const VERSION: u16 = 1;
/// How files are named: `HOST.PID.tsprof`.
pub const EXTENSION: &str = "tsprof";

pub(crate) mod tag {
    pub const PROCESS: u8 = 1;
    pub const MODULES: u8 = 2;
    pub const NODES: u8 = 3;
    pub const VALUES: u8 = 4;
    pub const TOTALS: u8 = 5;
    pub const LOSSES: u8 = 6;
    pub const THREAD_WAITS: u8 = 7;
    pub const UNUSED_CPUS: u8 = 8;
    pub const END: u8 = 255;
}
