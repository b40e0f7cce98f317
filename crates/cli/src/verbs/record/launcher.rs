//! Running under a launcher of parallel jobs (`mpirun taskscope record -- ./app`), and starting one
//! (`taskscope record -- mpirun ./app`).

use std::ffi::{OsStr, OsString};
use std::path::Path;
use std::process::{Command, Stdio};
use taskscope_record::launcher::{Launched, launched};

/// One process of a job, as its launcher's variables describe it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rank {
    /// The rank, from 0.
    pub rank: u32,
    /// A name that all processes of the job know: its id, or else its size (`np4`).
    pub job: String,
    /// The launcher and the number of processes: `Slurm, 8 ranks`.
    pub launcher: String,
}

/// This process's rank, if a launcher started it.
pub fn rank() -> Option<Rank> {
    launched().map(rank_of)
}

fn rank_of(Launched { launcher, rank, ranks, job }: Launched) -> Rank {
    let size = ranks.map(|ranks| format!("np{ranks}"));
    let job = job.or(size).unwrap_or_else(|| "job".to_owned());
    let job = job.chars().map(|c| if c.is_alphanumeric() || "._-".contains(c) { c } else { '_' }).collect();
    let launcher = match ranks {
        Some(ranks) => format!("{launcher}, {}", taskscope_view::format::counted(u64::from(ranks), "rank")),
        None => launcher.to_owned(),
    };
    Rank { rank, job, launcher }
}

/// Additional arguments of a launcher so that its programs on other nodes get these variables. Only Open MPI needs
/// them.
pub fn arguments_that_pass_on(program: &Path, variables: &[&str]) -> Vec<OsString> {
    if !is_open_mpi(program) || std::env::var_os("OMPI_MCA_mca_base_env_list").is_some() {
        return Vec::new();
    }
    variables.iter().flat_map(|name| [OsString::from("-x"), OsString::from(name)]).collect()
}

/// The user's own list of variables for Open MPI, which does not allow `-x` beside it, extended.
pub fn extended_list(program: &Path, variables: &[&str]) -> Option<OsString> {
    let mut list = std::env::var_os("OMPI_MCA_mca_base_env_list").filter(|_| is_open_mpi(program))?;
    for name in variables {
        list.push(";");
        list.push(name);
    }
    Some(list)
}

/// Whether a program has the name of a launcher of MPI programs.
pub fn is_launcher(program: &Path) -> bool {
    program.file_name().and_then(OsStr::to_str).is_some_and(|name| {
        ["mpirun", "mpiexec", "orterun", "prterun", "srun", "aprun"]
            .iter()
            .any(|known| name.starts_with(known))
    })
}

fn is_open_mpi(program: &Path) -> bool {
    if !is_launcher(program) {
        return false;
    }
    let version = Command::new(program).arg("--version").stdin(Stdio::null()).stderr(Stdio::null()).output();
    let version =
        String::from_utf8_lossy(&version.map(|output| output.stdout).unwrap_or_default()).into_owned();
    version.contains("Open MPI") || version.contains("PRRTE") || version.contains("prterun")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jobs_and_launchers_have_names() {
        let launched = |ranks, job: Option<&str>| {
            let job = job.map(str::to_owned);
            let Rank { rank, job, launcher } = rank_of(Launched { launcher: "PMI", rank: 3, ranks, job });
            (rank, job, launcher)
        };
        let expected = |job: &str, launcher: &str| (3, job.to_owned(), launcher.to_owned());
        assert_eq!(launched(Some(4), Some("node1-77@1")), expected("node1-77_1", "PMI, 4 ranks"));
        assert_eq!(launched(Some(16), None), expected("np16", "PMI, 16 ranks"));
        assert_eq!(launched(None, None), expected("job", "PMI"));
    }
}
