//! Variables of the environment that set up runtimes and libraries, for readers of the trace.

use std::collections::BTreeMap;

/// Variables that begin with one of these.
const PREFIXES: [&str; 32] = [
    "OMP_",
    "KMP_",
    "GOMP_",
    "LIBOMPTARGET_",
    "OMPI_MCA_btl",
    "OMPI_MCA_coll",
    "OMPI_MCA_mpi_",
    "OMPI_MCA_mtl",
    "OMPI_MCA_pml",
    "MPICH_",
    "MPIR_CVAR_",
    "I_MPI_",
    "UCX_",
    "NANOS6_",
    "NOSV_",
    "NODES_",
    "OVNI_",
    "STARPU_",
    "KOKKOS_",
    "TBB_",
    "RAYON_",
    "TOKIO_",
    "MKL_",
    "OPENBLAS_",
    "BLIS_",
    "NUMEXPR_",
    "CUDA_",
    "HIP_",
    "ROCR_",
    "SYCL_",
    "ONEAPI_",
    "POCL_",
];

/// Variables with these names.
const NAMES: [&str; 10] = [
    "LD_PRELOAD",
    "GOMAXPROCS",
    "JAVA_TOOL_OPTIONS",
    "MALLOC_ARENA_MAX",
    "PYTHONPERFSUPPORT",
    "PYTHON_GIL",
    "SLURM_CPUS_PER_TASK",
    "SLURM_CPU_BIND",
    "SLURM_NNODES",
    "ZE_AFFINITY_MASK",
];

/// Bytes of a value that are kept.
const MAX_VALUE: usize = 300;
/// Variables that are kept.
const MAX_VARIABLES: usize = 200;

/// The settings of this process, which its programs inherit. Bytes that are not UTF-8 are replaced, long values end with `…`.
pub fn settings() -> BTreeMap<String, String> {
    let all = std::env::vars_os();
    settings_of(
        all.map(|(name, value)| (name.to_string_lossy().into_owned(), value.to_string_lossy().into_owned())),
    )
}

/// Those of these variables that are settings.
pub fn settings_of(variables: impl Iterator<Item = (String, String)>) -> BTreeMap<String, String> {
    let is_setting =
        |name: &str| NAMES.contains(&name) || PREFIXES.iter().any(|prefix| name.starts_with(prefix));
    let mut kept: BTreeMap<String, String> = variables.filter(|(name, _)| is_setting(name)).collect();
    for value in kept.values_mut().filter(|value| value.len() > MAX_VALUE) {
        value.truncate(value.floor_char_boundary(MAX_VALUE));
        value.push('…');
    }
    while kept.len() > MAX_VARIABLES {
        kept.pop_last();
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_of_runtimes_are_kept_and_others_are_not() {
        let variables = [
            ("OMP_NUM_THREADS", "4"),
            ("KMP_AFFINITY", &*"é".repeat(400)),
            ("HOME", "/home/someone"),
            ("AWS_SECRET_ACCESS_KEY", "hidden"),
            ("SLURM_JOB_ID", "77"),
            ("GOMAXPROCS", "2"),
        ];
        let kept = settings_of(variables.iter().map(|(name, value)| (name.to_string(), value.to_string())));
        assert_eq!(kept.keys().collect::<Vec<_>>(), ["GOMAXPROCS", "KMP_AFFINITY", "OMP_NUM_THREADS"]);
        assert_eq!(kept["OMP_NUM_THREADS"], "4");
        assert_eq!(kept["KMP_AFFINITY"], "é".repeat(150) + "…");
    }
}
