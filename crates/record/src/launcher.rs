//! A process's place in its job, as the variables of its launcher give it before any library does.

/// A process of a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Launched {
    /// The launcher's name.
    pub launcher: &'static str,
    /// The rank, from 0.
    pub rank: u32,
    /// Number of ranks, if known.
    pub ranks: Option<u32>,
    /// The job's id, the same for all its processes, if the launcher or the batch system gives one.
    pub job: Option<String>,
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

/// This process, if a launcher started it.
pub fn launched() -> Option<Launched> {
    launched_by(|name| std::env::var(name).ok().filter(|value| !value.is_empty()))
}

/// The process with these variables, if a launcher started it.
pub fn launched_by(variable: impl Fn(&str) -> Option<String>) -> Option<Launched> {
    LAUNCHERS.iter().find_map(|(launcher, rank, size, job)| {
        let rank = variable(rank)?.parse().ok()?;
        let size = variable(size);
        let ids: Vec<String> = job.iter().filter_map(|name| variable(name)).collect();
        let is_slurm = job.contains(&"SLURM_STEP_ID");
        if is_slurm && (ids.len() < job.len() || size.as_deref() == Some("1")) {
            return None;
        }
        // Open MPI's names are alternatives for one id; Slurm's are its parts.
        let id = if is_slurm { Some(ids.join(".")) } else { ids.into_iter().next() };
        let job = id.or_else(|| BATCH_JOBS.iter().find_map(|name| variable(name)));
        let ranks = size.and_then(|size| size.parse().ok()).filter(|ranks| rank < *ranks);
        Some(Launched { launcher, rank, ranks, job })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(variables: &[(&str, &str)]) -> Option<Launched> {
        launched_by(|name| {
            variables.iter().find(|(known, _)| *known == name).map(|(_, value)| value.to_string())
        })
    }

    fn process(launcher: &'static str, rank: u32, ranks: Option<u32>, job: Option<&str>) -> Option<Launched> {
        Some(Launched { launcher, rank, ranks, job: job.map(str::to_owned) })
    }

    #[test]
    fn the_launchers_variables_are_understood() {
        let open_mpi = [
            ("OMPI_COMM_WORLD_RANK", "3"),
            ("OMPI_COMM_WORLD_SIZE", "4"),
            ("PMIX_RANK", "3"),
            ("PMIX_NAMESPACE", "prterun-node1-77@1"),
        ];
        assert_eq!(with(&open_mpi), process("Open MPI", 3, Some(4), Some("prterun-node1-77@1")));
        let slurm = [
            ("SLURM_PROCID", "1"),
            ("SLURM_JOB_ID", "77"),
            ("SLURM_STEP_ID", "2"),
            ("SLURM_STEP_NUM_TASKS", "8"),
        ];
        assert_eq!(with(&slurm), process("Slurm", 1, Some(8), Some("77.2")));
        let hydra = [("PMI_RANK", "0"), ("PMI_SIZE", "16"), ("PBS_JOBID", "9.host")];
        assert_eq!(with(&hydra[..2]), process("PMI", 0, Some(16), None));
        assert_eq!(with(&hydra), process("PMI", 0, Some(16), Some("9.host")));
        assert_eq!(with(&hydra[..1]), process("PMI", 0, None, None));
        // No job has a rank beyond its size.
        assert_eq!(with(&[("PMI_RANK", "4"), ("PMI_SIZE", "4")]), process("PMI", 4, None, None));
    }

    #[test]
    fn a_batch_script_and_a_plain_shell_are_no_ranks() {
        assert_eq!(with(&[("SLURM_PROCID", "0"), ("SLURM_JOB_ID", "77")]), None);
        assert_eq!(with(&[]), None);
        assert_eq!(with(&[("PMI_RANK", "none")]), None);
    }
}
