//! Runtimes, languages and libraries of parallel programs, and their traces in files.

/// Ways to record the time of a kind of program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Group {
    /// OpenMP, through a runtime that may have been loaded too late.
    OpenMp,
    /// Recorded through libovni, if the runtime's own switch is on.
    Ovni,
    Mpi,
    /// Recorded through the layers and libraries that device drivers load.
    Device,
    /// Recorded by samples, or by instrumentation in C, C++ or Rust.
    Native,
    /// Recorded by samples, or by the crate.
    Rust,
    /// Recorded by samples of the interpreter or of the code that it generates.
    Interpreter,
    /// Records itself, once it has started that.
    Instrumented,
}

/// One thing that programs use.
#[derive(Debug)]
pub struct Known {
    /// Stable, for `taskscope-run.json`.
    pub key: &'static str,
    /// The common name.
    pub name: &'static str,
    pub group: Group,
    /// Beginnings of the file names of its libraries, or of the programs that hold it (followed by a version at most).
    pub files: &'static [&'static str],
    /// Another fact for recording it.
    pub hint: Option<&'static str>,
}

macro_rules! known {
    ($( $key:literal $name:literal $group:ident [$($file:literal),*] $(: $hint:literal)?; )*) => {
        /// All known runtimes. Those without files are found by their compilers' traces in programs.
        pub static KNOWN: &[Known] = &[$(
            Known { key: $key, name: $name, group: Group::$group, files: &[$($file),*], hint: known!(@ $($hint)?) },
        )*];
    };
    (@) => { None };
    (@ $hint:literal) => { Some($hint) };
}

known! {
    "gcc-openmp" "GCC's OpenMP" OpenMp ["libgomp.so"];
    "llvm-openmp" "LLVM's OpenMP" OpenMp ["libomp.so", "libomp5.so"];
    "intel-openmp" "Intel's OpenMP" OpenMp ["libiomp5.so"];
    "nosv" "nOS-V" Ovni ["libnosv.so"]: "NOSV_APPID=1 NOSV_CONFIG_OVERRIDE=instrumentation.version=ovni,ovni.level=2";
    "nanos6" "Nanos6" Ovni ["libnanos6"]: "NANOS6_CONFIG_OVERRIDE=version.instrument=ovni,instrument.ovni.level=2";
    "nodes" "NODES" Ovni ["libnodes.so"]: "NODES_OVNI=1 NOSV_CONFIG_OVERRIDE=instrumentation.version=ovni,ovni.level=2";
    "ovni" "libovni" Ovni ["libovni.so"];
    "mpi" "MPI" Mpi ["libmpi.so", "libmpich.so", "libmpi_mpifh.so", "libmpifort.so", "libmpi_cxx.so"];
    "cuda" "CUDA" Device ["libcuda.so", "libcudart.so"];
    "opencl" "OpenCL" Device ["libOpenCL.so"];
    "level-zero" "Level Zero" Device ["libze_loader.so"];
    "sycl" "SYCL" Device ["libsycl.so"];
    "hip" "HIP" Native ["libamdhip64.so"];
    "tbb" "TBB" Native ["libtbb.so"];
    "kokkos" "Kokkos" Native ["libkokkoscore.so"];
    "starpu" "StarPU" Native ["libstarpu"];
    "hpx" "HPX" Native ["libhpx"];
    "argobots" "Argobots" Native ["libabt.so"];
    "qthreads" "Qthreads" Native ["libqthread.so"];
    "cilk" "Cilk" Native ["libopencilk.so", "libcilkrts.so"];
    "dispatch" "libdispatch" Native ["libdispatch.so"];
    "qt" "Qt" Native ["libQt5Core.so", "libQt6Core.so"];
    "boost" "Boost.Thread" Native ["libboost_thread", "libboost_fiber"];
    "openblas" "OpenBLAS" Native ["libopenblas", "libscipy_openblas"];
    "mkl" "MKL" Native ["libmkl_core.so", "libmkl_rt.so"];
    "python" "Python" Interpreter ["python", "libpython"]: "python3 -X perf (3.12 or later) names Python's functions in call paths";
    "java" "Java" Interpreter ["java", "libjvm.so"]: "java -XX:+UnlockDiagnosticVMOptions -XX:+DumpPerfMapAtExit (17 or later) names Java's methods in call paths";
    "node" "Node.js" Interpreter ["node", "libnode.so"]: "node --perf-basic-prof names JavaScript's functions in call paths";
    "dotnet" ".NET" Interpreter ["dotnet", "libcoreclr.so"]: "DOTNET_PerfMapEnabled=1 names its methods in call paths";
    "julia" "Julia" Interpreter ["julia", "libjulia.so"];
    "ruby" "Ruby" Interpreter ["ruby", "libruby"];
    "r" "R" Interpreter ["libR.so"];
    "erlang" "Erlang" Interpreter ["beam.smp"];
    "perl" "Perl" Interpreter ["perl", "libperl.so"];
    "go" "Go" Native [];
    "taskscope" "taskscope's own library" Instrumented ["libtaskscope.so"];
    "rayon" "rayon" Rust []: "crate taskscope-record, feature rayon";
    "tokio" "tokio" Rust []: "crate taskscope-record, features tokio and tracing";
    "rust" "Rust threads" Rust [];
    "cxx-threads" "C++ threads" Native [];
    "threads" "threads" Native [];
}

/// The known thing with this key.
pub fn by_key(key: &str) -> Option<&'static Known> {
    KNOWN.iter().find(|known| known.key == key)
}

/// The owner of a file name: a library (`libtbb.so.12`), or a program (`python3.11`).
pub fn by_file(name: &str) -> Option<&'static Known> {
    let is_version = |rest: &str| rest.chars().all(|c| c.is_ascii_digit() || c == '.' || c == '-');
    let is_it =
        |file: &str| name.strip_prefix(file).is_some_and(|rest| file.starts_with("lib") || is_version(rest));
    KNOWN.iter().find(|known| known.files.iter().any(|file| is_it(file)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_belong_to_runtimes_by_their_beginnings() {
        let key = |name: &str| by_file(name).map(|known| known.key);
        assert_eq!(key("libtbb.so.12.8"), Some("tbb"));
        assert_eq!(key("libtbbmalloc.so.2"), None);
        assert_eq!(key("libQt6Core.so.6"), Some("qt"));
        assert_eq!(key("python3.11"), Some("python"));
        assert_eq!(key("pythonic"), None);
        assert_eq!(key("libpython3.12.so.1.0"), Some("python"));
        assert_eq!(key("javac"), None);
        assert_eq!(key("libmpi.so.40.30.4"), Some("mpi"));
        assert_eq!(key("libc.so.6"), None);
    }

    #[test]
    fn keys_are_unique() {
        let keys: std::collections::BTreeSet<_> = KNOWN.iter().map(|known| known.key).collect();
        assert_eq!(keys.len(), KNOWN.len());
    }
}
