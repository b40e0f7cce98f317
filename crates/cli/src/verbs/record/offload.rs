//! Programs that offload with LLVM's runtime, which finds OMPT tools through `libomp.so`.
//!
//! A program that finds its runtime by a path of its own does not help `dlopen("libomp.so")` in another library, so the
//! device's callbacks would be lost. Under `record` that name leads to the program's runtime.

use super::environment::Environment;
use super::libgomp::is_ompt_runtime_name;
use super::loader;
use std::fs;
use std::path::{Path, PathBuf};

/// Library that LLVM's offload runtime loads.
const ASKED_FOR: &str = "libomp.so";

/// A directory in the trace with [`ASKED_FOR`] alone; removed with this.
#[derive(Debug)]
pub struct Directory(PathBuf);

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = fs::remove_file(self.0.join(ASKED_FOR));
        let _ = fs::remove_dir(&self.0);
    }
}

/// Makes the runtime available under that name, if it is not. The directory must stay while the program runs.
pub fn attach(environment: &mut Environment, trace: &Path, programs: &[PathBuf]) -> Option<Directory> {
    let runtime = programs.iter().find_map(|program| runtime_of_offloader(program))?;
    let found = loader::places_of(ASKED_FOR).into_iter().next().and_then(|path| path.canonicalize().ok());
    if found.is_some_and(|found| runtime.canonicalize().is_ok_and(|runtime| runtime == found)) {
        return None;
    }
    let directory = Directory(trace.join(format!("libraries.{}", std::process::id())));
    fs::create_dir(&directory.0).ok()?;
    std::os::unix::fs::symlink(&runtime, directory.0.join(ASKED_FOR)).ok()?;
    environment.search_first(&directory.0);
    Some(directory)
}

/// The OpenMP runtime of a program that is linked with LLVM's offload runtime.
fn runtime_of_offloader(program: &Path) -> Option<PathBuf> {
    let objects = loader::objects_of(program);
    let offloads = objects
        .iter()
        .any(|(_, object)| object.needed.iter().any(|name| name.starts_with("libomptarget.so.")));
    let runtime = objects.into_iter().map(|(path, _)| path).find(|path| is_ompt_runtime_name(path));
    runtime.filter(|_| offloads)
}
