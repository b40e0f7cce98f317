//! Callers: their language, and how they pass arguments.

/// The language of a caller.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Language {
    C,
    /// `mpif.h` and `use mpi`.
    Fortran,
    /// `use mpi_f08`: like Fortran, under names of its own.
    Fortran2008,
}

impl Language {
    /// The language of a variant of a symbol: 0 is that of C, 1 and 6 are those of `mpif.h`.
    pub fn from_variant(variant: usize) -> Language {
        match variant {
            0 => Language::C,
            1 | 6 => Language::Fortran,
            _ => Language::Fortran2008,
        }
    }
}

/// Argument words in registers.
#[cfg(target_arch = "x86_64")]
pub const REGISTERS: usize = 6;
/// Argument words in registers.
#[cfg(target_arch = "aarch64")]
pub const REGISTERS: usize = 8;
