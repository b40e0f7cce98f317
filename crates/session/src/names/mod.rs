//! Code sites, data and call paths in words.

mod awaited;
mod call_tree;
mod callers;
mod data_names;
mod kernels;
mod machine_code;
mod places;
mod profile_waits;

pub use awaited::{kind_of_awaited, name_of_awaited};
pub use call_tree::{NamedNode, name_call_paths, name_nodes};
pub use callers::Caller;
pub use machine_code::FunctionPlace;
pub use places::{Places, words_of_code};
pub use profile_waits::ProfileWaitNames;
