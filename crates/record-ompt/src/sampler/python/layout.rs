//! Offsets, in bytes, in the structures of CPython for 64-bit systems, by version. They are those of the header files
//! `internal/pycore_runtime.h`, `cpython/pystate.h`, `internal/pycore_frame.h` (`frameobject.h`) and `cpython/code.h` (`code.h`).

/// The structures of one version.
#[derive(Debug)]
pub struct Layout {
    /// The key of thread states in `_PyRuntimeState`.
    pub key: u64,
    /// The handle of its thread in `PyThreadState`.
    pub thread_id: u64,
    /// How frames are linked.
    pub frames: FrameLinks,
    /// Fields of code objects.
    pub code: Code,
    /// Size of `PyASCIIObject`, behind which ASCII text begins.
    pub ascii_bytes: u64,
    /// Size of `PyCompactUnicodeObject`, behind which other text begins.
    pub compact_bytes: u64,
    /// Whether `_PyRuntimeState` begins with a description of the build.
    pub describes_itself: bool,
}

/// How frames are linked.
#[derive(Debug)]
pub enum FrameLinks {
    /// Each frame is an object and has a loop of its own.
    Objects {
        /// The innermost frame in `PyThreadState`.
        frame: u64,
        /// The innermost record of a loop in `PyThreadState`, and the next one in such a record.
        records: Option<(u64, u64)>,
        /// The last instruction in `PyFrameObject`; and the bytes of a unit.
        instruction: (u64, u64),
    },
    /// A loop runs several frames.
    Inlined {
        /// The record of the innermost loop in `PyThreadState`, the innermost frame in it, and the next record in it; or,
        /// without records, the innermost frame in `PyThreadState`.
        innermost: Innermost,
        /// Next frame, code object, instruction, and flags of `_PyInterpreterFrame`.
        previous: usize,
        code: usize,
        instruction: usize,
        flags: Flags,
    },
}

/// The place of the innermost frame.
#[derive(Debug)]
pub enum Innermost {
    /// `cframe`, `current_frame`, `previous`.
    Record(u64, u64, u64),
    /// `current_frame`.
    Frame(u64),
}

/// The mark of a loop's outermost frame.
#[derive(Debug)]
pub enum Flags {
    /// Nonzero in it.
    IsEntry(usize),
    /// Behind it is a frame without code on the C stack, with this byte 3 (`FRAME_OWNED_BY_CSTACK`).
    Owner(usize),
}

/// Fields of `PyCodeObject`.
#[derive(Debug)]
pub struct Code {
    /// `co_firstlineno`.
    pub first_line: usize,
    /// `co_filename`.
    pub file: usize,
    /// The qualified name, or `co_name`.
    pub name: usize,
    /// Lines of instructions.
    pub lines: usize,
    /// Form of these, as the file of names has it.
    pub form: u8,
    /// The instructions: in it, or an object of bytes that it refers to.
    pub instructions: Instructions,
}

/// Where the instructions are.
#[derive(Debug)]
pub enum Instructions {
    /// In the code object, from here on; their number is its size.
    Inside(u64),
    /// In another object.
    Bytes(usize),
}

const OLD_CODE: Code = Code {
    first_line: 40,
    file: 104,
    name: 112,
    lines: 120,
    form: b'l',
    instructions: Instructions::Bytes(48),
};

const NEW_CODE: Code = Code {
    first_line: 68,
    file: 112,
    name: 128,
    lines: 136,
    form: b'p',
    instructions: Instructions::Inside(192),
};

const V3_9: Layout = Layout {
    key: 584,
    thread_id: 176,
    frames: FrameLinks::Objects { frame: 24, records: None, instruction: (104, 1) },
    code: OLD_CODE,
    ascii_bytes: 48,
    compact_bytes: 72,
    describes_itself: false,
};

const V3_10: Layout = Layout {
    frames: FrameLinks::Objects { frame: 24, records: Some((48, 8)), instruction: (96, 2) },
    code: Code { form: b't', ..OLD_CODE },
    ..V3_9
};

const V3_11: Layout = Layout {
    key: 592,
    thread_id: 152,
    frames: FrameLinks::Inlined {
        innermost: Innermost::Record(56, 8, 16),
        previous: 48,
        code: 32,
        instruction: 56,
        flags: Flags::IsEntry(68),
    },
    code: Code { first_line: 72, instructions: Instructions::Inside(184), ..NEW_CODE },
    ascii_bytes: 48,
    compact_bytes: 72,
    describes_itself: false,
};

const V3_12: Layout = Layout {
    key: 1544,
    thread_id: 136,
    frames: FrameLinks::Inlined {
        innermost: Innermost::Record(56, 0, 8),
        previous: 8,
        code: 0,
        instruction: 56,
        flags: Flags::Owner(70),
    },
    code: NEW_CODE,
    ascii_bytes: 40,
    compact_bytes: 56,
    describes_itself: false,
};

const V3_13: Layout = Layout {
    key: 2160,
    thread_id: 152,
    frames: FrameLinks::Inlined {
        innermost: Innermost::Frame(72),
        previous: 8,
        code: 0,
        instruction: 56,
        flags: Flags::Owner(70),
    },
    code: Code { instructions: Instructions::Inside(200), ..NEW_CODE },
    ascii_bytes: 40,
    compact_bytes: 56,
    describes_itself: true,
};

impl Layout {
    /// The layout of a version (`PY_VERSION_HEX`), if it is known.
    pub fn of(version: u32) -> Option<&'static Layout> {
        match version >> 16 {
            0x0309 => Some(&V3_9),
            0x030a => Some(&V3_10),
            0x030b => Some(&V3_11),
            0x030c => Some(&V3_12),
            0x030d => Some(&V3_13),
            _ => None,
        }
    }
}
