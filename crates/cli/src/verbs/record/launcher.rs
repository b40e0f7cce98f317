//! Running under a launcher of parallel jobs (`mpirun taskscope record -- ./app`), and starting one
//! (`taskscope record -- mpirun ./app`).

use std::ffi::{OsStr, OsString};
use std::path::Path;
use std::process::{Command, Stdio};

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

/// Name, and rank, size and job variables, the most specific first. Slurm sets its rank variable in a batch script too, outside
/// of steps; that is not a rank.
const LAUNCHERS: [(&str, &str, &str, &[&str]); 6] = [
    (
        "Open MPI",
        "OMPI_COMM_WORLD_RANK",
        "OMPI_COMM_WORLD_SIZE",
        &["PMIX_NAMESPACE", "OMPI_MCA_ess_base_jobid"],
    ),
    ("MVAPICH2", "MV2_COMM_WORLD_RANK", "MV2_COMM_WORLD_SIZE", &[]),
    ("PALS", "PALS_RANKID", "PALS_SIZE", &["PALS_APID"]),
    ("Slurm", "SLURM_PROCID", "SLURM_STEP_NUM_TASKS", &["SLURM_JOB_ID", "SLURM_STEP_ID"]),
    ("PMIx", "PMIX_RANK", "PMIX_SIZE", &["PMIX_NAMESPACE"]),
    ("PMI", "PMI_RANK", "PMI_SIZE", &["PMI_JOBID"]),
];

/// Job ids of batch systems, for launchers that give none.
const BATCH_JOBS: [&str; 4] = ["SLURM_JOB_ID", "PBS_JOBID", "LSB_JOBID", "JOB_ID"];

/// This process's rank, if a launcher started it.
pub fn rank() -> Option<Rank> {
    rank_of(|name| std::env::var(name).ok().filter(|value| !value.is_empty()))
}

fn rank_of(variable: impl Fn(&str) -> Option<String>) -> Option<Rank> {
    LAUNCHERS.iter().find_map(|(name, rank, size, job)| {
        let rank = variable(rank)?.parse().ok()?;
        let size = variable(size);
        let ids: Vec<String> = job.iter().filter_map(|name| variable(name)).collect();
        if job.contains(&"SLURM_STEP_ID") && (ids.len() < job.len() || size.as_deref() == Some("1")) {
            return None;
        }
        // Open MPI's names are alternatives for one id; Slurm's are its parts.
        let id = if job.contains(&"SLURM_STEP_ID") { Some(ids.join(".")) } else { ids.into_iter().next() };
        let launcher = match size.as_deref().map(str::parse::<u64>) {
            Some(Ok(ranks)) => format!("{name}, {}", taskscope_view::format::counted(ranks, "rank")),
            _ => (*name).to_owned(),
        };
        let id = id.or_else(|| BATCH_JOBS.iter().find_map(|name| variable(name)));
        let job = id.or_else(|| size.map(|size| format!("np{size}"))).unwrap_or_else(|| "job".to_owned());
        Some(Rank {
            rank,
            launcher,
            job: job
                .chars()
                .map(|c| if c.is_alphanumeric() || "._-".contains(c) { c } else { '_' })
                .collect(),
        })
    })
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

    fn rank_with(variables: &[(&str, &str)]) -> Option<Rank> {
        rank_of(|name| variables.iter().find(|(known, _)| *known == name).map(|(_, value)| value.to_string()))
    }

    #[test]
    fn the_launchers_variables_are_understood() {
        let open_mpi = [
            ("OMPI_COMM_WORLD_RANK", "3"),
            ("OMPI_COMM_WORLD_SIZE", "4"),
            ("PMIX_RANK", "3"),
            ("PMIX_NAMESPACE", "prterun-node1-77@1"),
        ];
        let expected = |rank, job: &str, launcher: &str| {
            Some(Rank { rank, job: job.to_owned(), launcher: launcher.to_owned() })
        };
        assert_eq!(rank_with(&open_mpi), expected(3, "prterun-node1-77_1", "Open MPI, 4 ranks"));
        let slurm = [
            ("SLURM_PROCID", "1"),
            ("SLURM_JOB_ID", "77"),
            ("SLURM_STEP_ID", "2"),
            ("SLURM_STEP_NUM_TASKS", "8"),
        ];
        assert_eq!(rank_with(&slurm), expected(1, "77.2", "Slurm, 8 ranks"));
        let hydra = [("PMI_RANK", "0"), ("PMI_SIZE", "16"), ("PBS_JOBID", "9.host")];
        assert_eq!(rank_with(&hydra[..2]), expected(0, "np16", "PMI, 16 ranks"));
        assert_eq!(rank_with(&hydra), expected(0, "9.host", "PMI, 16 ranks"));
        assert_eq!(rank_with(&hydra[..1]), expected(0, "job", "PMI"));
    }

    #[test]
    fn a_batch_script_and_a_plain_shell_are_no_ranks() {
        assert_eq!(rank_with(&[("SLURM_PROCID", "0"), ("SLURM_JOB_ID", "77")]), None);
        assert_eq!(rank_with(&[]), None);
        assert_eq!(rank_with(&[("PMI_RANK", "none")]), None);
    }
}
