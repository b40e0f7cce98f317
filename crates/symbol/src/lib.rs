//! Address to function, file and line; names as users write them.
//!
//! The caller passes the loaded files and their addresses (as recorded), then queries return addresses. The crate
//! opens each file once, at its first query, compares its build id with the recorded one, and reads DWARF or, without
//! it, the symbol table. Bodies that a compiler outlined from a function for an OpenMP construct are named after that
//! function. A missing name comes with its reason.
//!
//! Files are read from the local disk only; nothing is fetched. Damaged files give no names, and no
//! panic.
//!
//! **Modules**, each importing only those named before it:
//!
//! | modules | content |
//! | --- | --- |
//! | `code_place`, `name` | results; names as users write them |
//! | `image`, `object_file`, `separate`, `unwind_entries`, `handlers`, `unwound` | an ELF file and its tables |
//! | `debug`, `declarations`, `fortran`, `inlined`, `variable` | debug information |
//! | `plt`, `tail_call`, `loops`, `module_file::instructions` | machine code |
//! | `kept_modules`, `module_file` | all of one file |
//! | `python_code`, `run_time_code`, `jit_dump`, `symbolizer` | all of a process |
#![forbid(unsafe_code)]

mod code_place;
mod debug;
mod declarations;
mod fortran;
mod handlers;
mod image;
mod inlined;
mod jit_dump;
mod kept_modules;
mod loops;
mod module_file;
mod name;
mod object_file;
mod plt;
mod python_code;
mod run_time_code;
mod separate;
mod symbolizer;
mod tail_call;
mod unwind_entries;
mod unwound;
mod variable;

pub use code_place::{CodePlace, Frame, LoopCode, Missing, RUN_TIME_CODE, UNKNOWN_CODE};
pub use kept_modules::KeptModules;
pub use module_file::{FunctionCode, Instruction};
pub use name::{
    abbreviated, acquires_for_its_caller, are_of_one_template, demangle, is_of_language_library, is_outlined,
    is_python_interpreter, is_stub, starts_code, starts_rust_program, user_function, without_parameters,
};
pub use python_code::is_python_place;
pub use symbolizer::{LoadedModule, Location, Symbolizer};
pub use variable::VariablePlace;
