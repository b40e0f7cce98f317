//! Compiling and starting MPI programs, with each MPI library that is installed.

use super::{output, program_source};
use std::path::{Path, PathBuf};
use std::process::Command;

/// An MPI library: its compiler wrapper and its launcher.
#[derive(Clone, Copy, Debug)]
pub struct Mpi {
    pub compiler: &'static str,
    pub fortran: &'static str,
    pub launcher: &'static str,
}

pub const OPEN_MPI: Mpi =
    Mpi { compiler: "mpicc.openmpi", fortran: "mpifort.openmpi", launcher: "mpirun.openmpi" };
pub const MPICH: Mpi = Mpi { compiler: "mpicc.mpich", fortran: "mpifort.mpich", launcher: "mpirun.mpich" };

/// More would have to share the cores of a small machine, on which MPI libraries wait busily.
pub const RANKS: usize = 2;

/// The installed libraries; prints the missing ones.
pub fn installed() -> Vec<Mpi> {
    let found: Vec<Mpi> = [OPEN_MPI, MPICH]
        .into_iter()
        .filter(|mpi| is_there(mpi.compiler) && is_there(mpi.launcher))
        .collect();
    if found.len() < 2 {
        taskscope_prerequisite::missing(format_args!("only {found:?} of Open MPI and MPICH is installed"));
    }
    found
}

pub fn is_there(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|at| at.join(program).is_file())
}

/// Lets Open MPI start more ranks than there are cores, as root too (containers), with session files of the command's own: launchers
/// that start at the same time fail to make a directory that they share.
pub fn permit(command: &mut Command) -> &mut Command {
    if let Some(directory) = command.get_current_dir().map(Path::to_owned) {
        command.env("OMPI_MCA_orte_tmpdir_base", &directory).env("PRTE_MCA_prte_tmpdir_base", &directory);
    }
    command
        .env("OMPI_ALLOW_RUN_AS_ROOT", "1")
        .env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1")
        .env("OMPI_MCA_rmaps_base_oversubscribe", "1")
        .env("OMPI_MCA_btl_vader_single_copy_mechanism", "none")
}

pub fn compile(mpi: Mpi, directory: &Path, source: &str, options: &[&str]) -> PathBuf {
    let program = directory.join("app");
    let compiler = if source.ends_with("f90") { mpi.fortran } else { mpi.compiler };
    let mut command = Command::new(compiler);
    command.args(["-w", "-g", "-O1", "-o"]).arg(&program).arg(program_source(source)).args(options);
    assert!(output(&mut command).status.success(), "the compiler failed");
    program
}
