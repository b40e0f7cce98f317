//! Python functions on a stack: the frames of CPython's interpreter, read from its memory.
//!
//! ```text
//!   loader ──▶ look: `_PyRuntime` and its version ▸ layout
//!   walk, if it has met the interpreter's code
//!          ──▶ chain: thread state ▸ frames, innermost first, each with the C stack of its interpreter loop
//!                └──▶ code: code object and instruction ▸ place, an address of its own; its names once to a file
//!          ──▶ the frames take the place of the loop's native frame
//! ```
//!
//! **Read from the handler, not by perf's trampolines.** A thread in its handler changes none of its own frames, so
//! the chain is consistent, and the same for Python 3.9 to 3.13; the interpreter runs as it would without a recorder.
//! Trampolines exist since 3.12 only, change how the interpreter runs, and have no lines.
//!
//! **Never harms the program.** Every word is copied by the kernel, which refuses bad addresses; loops are
//! bounded; the thread state must name the calling thread, and each code object must have Python's type. If anything
//! does not fit, the stack keeps its native frames.
//!
//! **Matching.** A loop keeps a record on its C stack: the `_PyCFrame` in 3.10 and 3.11, an entry frame since 3.12.
//! It is in the native frame of that loop, and the Python frames that the loop runs are those up to the next such record.
//! In 3.9 the native frames of the loop's function are counted: the frames must be as many.
//!
//! **Places.** The address of an instruction of Python is `0x5059` in its upper 16 bits, the process in 22, then 16 times
//! the position of the line in `modules/python-PID.map` that describes the code object, plus the offset of the instruction.
//! `taskscope_symbol` has the reader. A forked child keeps the places of its parent.

mod chain;
mod code;
mod exported;
mod interpreter;
mod layout;
mod memory;
mod merge;

pub use chain::Chain;
pub use interpreter::{Interpreter, interpreter, look};
pub use memory::Pages;
pub use merge::Native;
