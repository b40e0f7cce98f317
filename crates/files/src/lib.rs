//! Opens and writes files in directories with content prepared by another user.
//!
//! A trace comes from anywhere. A pipe in the place of one of its files would block its reader for ever, a device has no
//! end, and a link in the place of an output leads to the reader's own files. So:
//!
//! - [`open_regular`] and [`read_regular`] refuse all but regular files, and do not block.
//! - [`NewFile`] writes under a new name beside the target and takes the target's name when it is complete. It refuses
//!   symbolic links; of a target with several hard links only the name is replaced, never the shared content.
//! - [`NewDirectory`] does the same for a directory; its target is new or empty.
//! - [`append_regular`] and [`overwrite_regular`] change files of this program in place, and refuse links of both kinds.
//! - [`create_directory_below`] does not enter symbolic links.

#![forbid(unsafe_code)]

mod new_directory;
mod new_file;
mod read;

pub use new_directory::NewDirectory;
pub use new_file::{
    NewFile, append_regular, create_directory_below, file_without_name, overwrite_regular, remove_regular,
    write_file, write_named,
};
pub use read::{open_regular, read_open, read_regular};
