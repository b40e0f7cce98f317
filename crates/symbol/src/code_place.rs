//! Names and lines of an address, and reasons of missing ones.

use crate::name::{acquires_for_its_caller, is_of_language_library, is_python_interpreter};

/// Name of code that no loaded file holds, in executable memory of its own.
pub const RUN_TIME_CODE: &str = "[code generated at run time]";
/// Name of an address that no loaded file holds, of which nothing is known.
pub const UNKNOWN_CODE: &str = "<address in no known module>";

/// The reason why an address has no function or no line.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, thiserror::Error)]
pub enum Missing {
    /// No recorded file holds the address.
    #[error("no recorded module holds the address")]
    NoModule,
    /// No file holds the code, and no map names it.
    #[error(
        "code that no loaded file holds has no names: it was generated at run time (JIT), and has none in /tmp/perf-PID.map \
         (compilers write that with an option, as --perf-basic-prof of Node.js)"
    )]
    RunTimeCode,
    /// The file is not there any more, or cannot be read.
    #[error("{path} cannot be read on this machine")]
    FileGone {
        /// Path at run time.
        path: String,
    },
    /// The file has another build id, or without one other headers, than when it was recorded.
    #[error("{path} is not the file that was recorded: it has been replaced or built again")]
    Changed {
        /// Path at run time.
        path: String,
    },
    /// The file was removed or replaced while the program ran.
    #[error(
        "{path} was removed or replaced before it could be read: only the functions that it exports have names"
    )]
    OnlyExported {
        /// Path at run time.
        path: String,
    },
    /// The file is not an executable or library.
    #[error("{path} is no executable or library that can be read")]
    NotReadable {
        /// Path at run time.
        path: String,
    },
    /// The file has no debug information for the address.
    #[error(
        "{path} has no debug information (compile with -g; of the system's libraries, install the debug symbols)"
    )]
    NoDebugInformation {
        /// Path at run time.
        path: String,
    },
    /// Debug information for the address was left outside of the file (`-gsplit-dwarf`), and is not there.
    #[error(
        "{path} has its debug information in .dwo files that are not where they were compiled (keep them, or pack them into \
         {path}.dwp): functions in line have no names"
    )]
    SplitGone {
        /// Path at run time.
        path: String,
    },
    /// The file has neither debug information nor symbols.
    #[error("{path} is stripped (no debug information and no symbols)")]
    Stripped {
        /// Path at run time.
        path: String,
    },
}

/// A function, inlined or not, with the line in it.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Frame {
    /// Its demangled name, as its author wrote it.
    pub function: Option<String>,
    /// Source file as the compiler recorded it.
    pub file: Option<String>,
    /// Line.
    pub line: Option<u32>,
    /// Whether it is the body of a construct that a compiler cut out of the function.
    pub cut_out: bool,
    /// Line of that construct, if the compiler stores it.
    pub construct_line: Option<u32>,
    /// Whether its body is called by a wrapper, which the compiler cut out, too.
    pub is_wrapped: bool,
    /// Whether it was split off the function of this name, which calls it.
    pub is_split_off: bool,
    /// Whether an outlined body's own name lacks the function. The name then comes from its lines (for a template,
    /// possibly with other arguments), or is the body's own.
    pub is_nameless: bool,
}

/// Names and lines of an address.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct CodePlace {
    /// The innermost function, with file and line.
    pub frame: Frame,
    /// Functions that this one was inlined into, inner ones first.
    pub inlined_into: Vec<Frame>,
    /// File name of the module and address in it, for addresses without a name.
    pub module: Option<(String, u64)>,
    /// Offset from the start of the function, if only the symbol table names it.
    pub offset: Option<u64>,
    /// The begin of the function in its file, if it has no name.
    pub unnamed: Option<u64>,
    /// The reason of a missing line or name.
    pub missing: Option<Missing>,
    /// Whether this is not the place of the call in question, but that of the call of the function that has it, which is not
    /// known.
    pub is_caller: bool,
}

impl Frame {
    /// Whether the function belongs to a language's library, or to a library of locks and channels: it waits and wakes for its
    /// caller.
    pub fn is_of_language_library(&self) -> bool {
        // Headers of C++ and sources of Rust: functions without a scope in the debug information have a file.
        const SOURCES: [&str; 4] =
            ["/include/c++/", "/library/std/src/", "/library/core/src/", "/library/alloc/src/"];
        let is_source = |file: &str| SOURCES.iter().any(|source| file.contains(source));
        self.function.as_deref().is_some_and(is_of_language_library)
            || self.file.as_deref().is_some_and(is_source)
    }
}

impl CodePlace {
    /// Whether the code belongs to a language's library, or to a library of locks and channels.
    pub fn is_of_language_library(&self) -> bool {
        const FILES: [&str; 7] =
            ["libstdc++.so", "libc++.so", "libc.so", "libc-", "libpthread", "libgcc_s.so", "ld-"];
        let is_in_file = |(module, _): &(String, u64)| FILES.iter().any(|file| module.starts_with(file));
        self.module.as_ref().is_some_and(|module| is_in_file(module) || is_python_interpreter(&module.0))
            || self.frame.is_of_language_library()
    }

    /// Replaces an inlined function that takes locks, waits or wakes for its caller by the code that calls it.
    pub fn leave_language_library(&mut self) {
        let is_left = |frame: &Frame| {
            frame.function.as_deref().is_some_and(acquires_for_its_caller) || frame.is_of_language_library()
        };
        while !self.inlined_into.is_empty() && is_left(&self.frame) {
            self.frame = self.inlined_into.remove(0);
        }
    }

    /// Replaces an inlined function by the outermost of its callers outside of languages' libraries.
    pub fn leave_inlined(&mut self) {
        if let Some(outer) = self.inlined_into.iter().rposition(|frame| !frame.is_of_language_library()) {
            self.frame = self.inlined_into.swap_remove(outer);
            self.inlined_into.clear();
        }
    }
}

/// Machine code of a loop.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoopCode {
    /// Addresses in its file that belong to its statement: its first instruction, unless it has the line of code
    /// before the loop, and the branches that leave it or return to its entry. Not empty.
    pub statement: Vec<u64>,
}
