//! `libtaskscope_device.so`, which records device queues, for the runtimes that load such libraries.
//!
//! | variable | read by |
//! | --- | --- |
//! | `OPENCL_LAYERS` | OpenCL's loaders; a user's own layers stay, nearer to the program |
//! | `CUDA_INJECTION64_PATH` | CUDA's driver, which takes one library; a user's own stays, and ours is not loaded |

use super::environment::Environment;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

const CUDA_INJECTION: &str = "CUDA_INJECTION64_PATH";
const FILE_NAME: &str = "libtaskscope_device.so";

/// Has the library loaded where it is installed beside the OpenMP recorder `tool`. Programs without
/// device queues never load it.
pub fn attach(environment: &mut Environment, tool: &Path) {
    let Some(library) = find(tool) else { return };
    // Of several layers, the last one in the list is nearest to the program.
    let mut layers = OsString::from(&library);
    if let Some(others) = std::env::var_os("OPENCL_LAYERS").filter(|value| !value.is_empty()) {
        layers.push(":");
        layers.push(others);
    }
    environment.set("OPENCL_LAYERS", layers);
    match std::env::var_os(CUDA_INJECTION).filter(|value| !value.is_empty()) {
        Some(other) => {
            let text = format!(
                "{CUDA_INJECTION} names {}, which stays: CUDA is not recorded; unset it to record",
                other.display()
            );
            environment.notice("cuda-injection-kept", text);
        }
        None => environment.set(CUDA_INJECTION, &library),
    }
}

fn find(tool: &Path) -> Option<PathBuf> {
    let places = [tool.with_file_name(FILE_NAME), tool.with_file_name("deps").join(FILE_NAME)];
    places.into_iter().find(|path| path.is_file())
}
