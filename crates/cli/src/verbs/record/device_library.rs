//! `libtaskscope_device.so`, which records device queues, for the runtimes that load such libraries.
//!
//! | variable | read by |
//! | --- | --- |
//! | `OPENCL_LAYERS` | OpenCL's loaders; a user's own layers stay, nearer to the program |
//! | `CUDA_INJECTION64_PATH` | CUDA's driver, which takes one library; a user's own stays, and ours is not loaded |
//! | `LD_PRELOAD`, `TASKSCOPE_LEVEL_ZERO` | only for programs that use Level Zero: no loader asks for libraries there |
//! | `ZE_ENABLE_TRACING_LAYER` | Level Zero's loader, which can be listened to then |

use super::environment::Environment;
use super::loader;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

const CUDA_INJECTION: &str = "CUDA_INJECTION64_PATH";
const FILE_NAME: &str = "libtaskscope_device.so";

/// Libraries of which a program that uses Level Zero is linked with one.
fn is_of_level_zero(name: &str) -> bool {
    ["libze_loader.so", "libsycl.so", "libpti_view.so", "libur_loader.so"]
        .iter()
        .any(|of| name.starts_with(of))
        || name == "libomptarget.so"
}

/// Loads the library if it is installed beside the OpenMP recorder `tool`. Programs without device queues
/// never load it.
pub fn attach(environment: &mut Environment, tool: &Path, programs: &[PathBuf]) {
    let Some(library) = find(tool) else { return };
    // In a list of several layers, the last one is nearest to the program.
    let mut layers = OsString::from(&library);
    if let Some(others) = std::env::var_os("OPENCL_LAYERS").filter(|value| !value.is_empty()) {
        layers.push(":");
        layers.push(others);
    }
    environment.set("OPENCL_LAYERS", layers);
    match std::env::var_os(CUDA_INJECTION).filter(|value| !value.is_empty()) {
        Some(other) => {
            let text = format!(
                "{CUDA_INJECTION} names {}, which is kept: CUDA is not recorded; unset it to record CUDA",
                other.display()
            );
            environment.notice("cuda-injection-kept", text);
        }
        None => environment.set(CUDA_INJECTION, &library),
    }
    let mut objects = programs.iter().flat_map(|program| loader::objects_of(program));
    if objects.any(|(_, object)| object.needed.iter().any(|name| is_of_level_zero(name))) {
        environment.preload(&library);
        environment.set("TASKSCOPE_LEVEL_ZERO", "1");
        if std::env::var_os("ZE_ENABLE_TRACING_LAYER").is_none() {
            environment.set("ZE_ENABLE_TRACING_LAYER", "1");
        }
    }
}

fn find(tool: &Path) -> Option<PathBuf> {
    let places = [tool.with_file_name(FILE_NAME), tool.with_file_name("deps").join(FILE_NAME)];
    places.into_iter().find(|path| path.is_file())
}
