//! The reason why a run left no events: the detected facilities of its programs, and how to record those.
//! Stored in `taskscope-run.json`, which every reading subcommand checks.

use super::elf;
use super::known::{self, Group, Known};
use super::loader;
use super::no_profile::Ended;
use super::program;
use super::run_file::{Found, NotRecorded, REASONS, RecordMode, RunFile};
use super::watcher::Seen;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use taskscope_view::format::shell_word;

/// Longer commands are not repeated in remedies.
const MAX_COMMAND: usize = 120;
/// Directories of the system's own programs, which run others as a rule.
const SYSTEM: [&str; 4] = ["/bin", "/usr/bin", "/sbin", "/usr/sbin"];
/// Directories of the system's libraries, which call thread functions even if a program has no threads.
const SYSTEM_LIBRARIES: [&str; 3] = ["/lib", "/usr/lib", "/usr/local/lib"];

impl Found {
    fn known(&self) -> Option<&'static Known> {
        known::by_key(self.key)
    }
}

/// Known facts on a run without events.
pub struct Run<'a> {
    pub file: &'a RunFile,
    /// The program, and those that it may have started.
    pub programs: &'a [PathBuf],
    pub seen: &'a Seen,
    pub uses_ovni: bool,
    /// Whether the recorder was to be loaded by `LD_PRELOAD`.
    pub is_preloaded: bool,
}

impl NotRecorded {
    /// The reason why a run left neither events nor profiles.
    pub fn of(run: &Run<'_>) -> NotRecorded {
        let programs = run.executed();
        let found = found_in(&programs, run.seen);
        let (reason, text, remedies) = run.reason(&programs, &found);
        let seen = run.seen;
        let known = (!seen.processes.is_empty()).then_some(seen.processes.len() as u64);
        NotRecorded { reason, text, found, threads: known.map(|_| seen.threads), processes: known, remedies }
    }
}

impl Run<'_> {
    /// Executed files, the command's first. Files named by a script are included only if the command runs
    /// others.
    fn executed(&self) -> Vec<PathBuf> {
        let Some((first, others)) = self.programs.split_first() else { return Vec::new() };
        let is_system =
            |path: &Path| SYSTEM.iter().any(|directory| path.parent() == Some(Path::new(directory)));
        let runs_others = program::is_text(first) || is_system(first);
        let named = others.iter().filter(|_| runs_others);
        let mut programs: Vec<PathBuf> = Vec::new();
        for program in std::iter::once(first).chain(&self.seen.programs).chain(named) {
            let program = program.canonicalize().unwrap_or_else(|_| program.clone());
            if !programs.contains(&program) {
                programs.push(program);
            }
        }
        programs
    }

    /// The command as it was typed.
    fn command(&self) -> String {
        let words: Vec<String> = self.file.command.iter().map(|word| argument(word)).collect();
        let command = words.join(" ");
        if command.chars().count() > MAX_COMMAND { format!("{} …", words[0]) } else { command }
    }

    fn reason(&self, programs: &[PathBuf], found: &[Found]) -> (&'static str, String, Vec<String>) {
        let shown = &self.file.command[0];
        if let Some(notice) = self.file.notices.iter().find(|notice| notice.stops_recording()) {
            return (notice.name, notice.text.clone(), Vec::new());
        }
        if let Some(reason) = self.replaced_preload() {
            return reason;
        }
        if self.file.mode == RecordMode::Profile {
            let ended = Ended { programs, wall_ns: self.file.wall_ns, signal: self.file.signal };
            return ("no-profile", ended.why_no_profile(), vec![ended.remedy().to_owned()]);
        }
        if let Some(program) = programs.iter().find(|program| loader::is_static(program)) {
            let is_go = elf::origins(program).contains(&"go");
            let what =
                if is_go { "is a Go program that is linked statically" } else { "is linked statically" };
            let remedy = match is_go {
                true => "a Go program that uses cgo is linked dynamically, and can be sampled: --sample 100",
                false => "link it dynamically, without -static and -static-pie",
            };
            let text = format!("{} {what}, so no recorder can be loaded into it", program.display());
            return ("static", text, vec![remedy.to_owned()]);
        }
        if let Some(signal) = self.file.signal {
            let text = format!("signal {signal} ended {shown} before anything was stored");
            return ("signal", text, Vec::new());
        }
        let is = |group: Group| {
            found.iter().filter(move |found| found.known().is_some_and(|known| known.group == group))
        };
        let runtimes = || is(Group::Ovni).filter(|found| found.key != "ovni");
        if self.uses_ovni || runtimes().next().is_some() {
            let text = format!("the runtime of {shown} is not configured to use ovni");
            let switches = runtimes().filter_map(|runtime| {
                Some(format!("{} taskscope record -- {}", runtime.known()?.hint?, self.command()))
            });
            let mut remedies: Vec<String> = switches.collect();
            if remedies.is_empty() {
                remedies.push(
                    "NOSV_CONFIG_OVERRIDE, NANOS6_CONFIG_OVERRIDE, ovni_proc_init(): see docs/recording.md"
                        .to_owned(),
                );
            }
            return ("ovni-off", text, remedies);
        }
        let loads_libraries = programs
            .iter()
            .filter_map(|program| elf::read(program))
            .any(|program| program.imports.contains("dlopen") || program.imports.contains("dlmopen"));
        self.by_findings(shown, found, loads_libraries)
    }

    /// The reason if the command sets the variable that loads the recorder, as `env LD_PRELOAD=…` does.
    fn replaced_preload(&self) -> Option<(&'static str, String, Vec<String>)> {
        let is_own = |word: &&String| word.starts_with("LD_PRELOAD=");
        let own = self.file.command.iter().skip(1).find(is_own).filter(|_| self.is_preloaded)?;
        let text = format!("{} sets LD_PRELOAD, by which the recorder would be loaded", self.file.command[0]);
        let (name, list) = own.split_once('=').unwrap_or((own, ""));
        let own = format!("{name}={}", shell_word(Path::new(list)));
        let remedy = format!("{own} taskscope record …        (loads the recorder beside these libraries)");
        Some(("preload-replaced", text, vec![remedy]))
    }

    /// Whether the recorder was to be loaded and is not among the libraries of the observed processes.
    fn is_not_loaded(&self) -> bool {
        let libraries = &self.seen.libraries;
        let is_recorder = |name: &String| name.starts_with("libtaskscope");
        self.is_preloaded && !libraries.is_empty() && !libraries.iter().any(is_recorder)
    }

    /// The reason if nothing failed: the run used something that is recorded in another way, or nothing at
    /// all.
    fn by_findings(
        &self,
        shown: &str,
        found: &[Found],
        loads_libraries: bool,
    ) -> (&'static str, String, Vec<String>) {
        let is_replaced = self.file.notices.iter().any(|notice| notice.name == "runtime-replaced");
        let in_groups = |groups: &[Group]| -> Vec<&Found> {
            found
                .iter()
                .filter(|found| found.known().is_some_and(|known| groups.contains(&known.group)))
                .collect()
        };
        let openmp = in_groups(&[Group::OpenMp]);
        let (mpi, devices) = (in_groups(&[Group::Mpi]), in_groups(&[Group::Device]));
        let others = in_groups(&[Group::Native, Group::Rust, Group::Interpreter]);
        let command = self.command();
        let subject = match self.seen.processes.len() {
            0 | 1 => shown.to_owned(),
            _ => format!("{shown}, with its child processes,"),
        };
        let threads = match self.seen.threads {
            0 | 1 => String::new(),
            many => format!(", at least {many} threads at once"),
        };
        let (mut parts, mut remedies) = (Vec::new(), Vec::new());
        let gcc = openmp.iter().find(|found| found.key == "gcc-openmp").filter(|_| !is_replaced);
        if let Some(gcc) = gcc {
            parts.push(format!("loaded {} while it ran, which only --preload records", listed(&[gcc])));
            remedies.push(format!(
                "taskscope record --preload -- {command}        (OpenMP, on LLVM's runtime in GCC's place)"
            ));
        } else if !openmp.is_empty() || is_replaced {
            parts.push(
                "is linked to an OpenMP runtime that ran nothing, or did not load the recorder".to_owned(),
            );
            remedies.push("taskscope doctor        (whether OpenMP can be recorded here)".to_owned());
        }
        if !mpi.is_empty() {
            parts.push(format!("uses {}, but its calls did not reach the recorder", listed(&mpi)));
            remedies.push("docs/mpi.md names the MPI libraries that can be recorded".to_owned());
        }
        if !devices.is_empty() {
            parts.push(format!("uses {}, but no operation of a device queue was recorded", listed(&devices)));
            remedies
                .push("docs/device-records.md names the drivers and loaders that can be recorded".to_owned());
        }
        if !in_groups(&[Group::Instrumented]).is_empty() {
            parts.push("is linked to taskscope's library, but recorded no event through it".to_owned());
            remedies.push(
                "taskscope_start(NULL) before the program's first event; docs/instrumenting.md".to_owned(),
            );
        }
        let (plain, named): (Vec<&Found>, Vec<&Found>) =
            others.iter().partition(|found| found.key == "threads");
        let parts_are_of_plain_threads = parts.is_empty() && named.is_empty();
        let is_not_loaded = self.is_not_loaded();
        let recorded_by = match is_not_loaded {
            true => "but was started without the recorder's LD_PRELOAD, or with other rights",
            false => "which --sample and --threads record",
        };
        if !named.is_empty() {
            parts.push(format!("uses {}{threads}, {recorded_by}", listed(&named)));
        } else if !plain.is_empty() || !threads.is_empty() {
            parts.push(format!("has its own threads{threads}, {recorded_by}"));
        }
        let reason = match (openmp.is_empty(), parts.is_empty()) {
            (_, true) => "nothing-parallel",
            (false, _) if others.is_empty() => "openmp-not-attached",
            _ => "other-runtime",
        };
        let is_silent = parts.is_empty();
        // Threads without a name may be those of a runtime that it loaded after the last look at its libraries.
        let may_have_openmp = is_silent || parts_are_of_plain_threads;
        if may_have_openmp && loads_libraries {
            remedies.push(format!(
                "taskscope record --preload -- {command}        (OpenMP of libraries that it loads itself)"
            ));
        }
        // Options that were set do not help.
        if is_not_loaded {
            remedies.push("taskscope record … -- PROGRAM, without the command that starts it".to_owned());
        } else {
            remedies.push(format!(
                "taskscope record --sample 100 -- {command}        (call paths; time on and off CPUs)"
            ));
        }
        if !is_not_loaded && (!others.is_empty() || !threads.is_empty()) {
            remedies.push(format!(
                "taskscope record --threads -- {command}        (also which threads wait for which)"
            ));
            remedies.push(format!(
                "taskscope record --mode profile -- {command}        (sums alone, for long runs)"
            ));
        }
        remedies.extend(others.iter().filter_map(|found| found.known()?.hint.map(str::to_owned)));
        let has_group =
            |group: Group| others.iter().any(|found| found.known().is_some_and(|known| known.group == group));
        if has_group(Group::Rust) || has_group(Group::Native) {
            remedies.push(
                "docs/instrumenting.md: record tasks and states with a few lines of Rust, C or C++"
                    .to_owned(),
            );
        }
        let text = match (is_silent, loads_libraries) {
            (false, _) => format!("{subject} {}", parts.join("; it ")),
            (true, false) => format!("no OpenMP, threads or other runtimes were seen in {shown}"),
            // It may have ended before the next look.
            (true, true) => format!(
                "no OpenMP, threads or other runtimes were seen in {shown}, which may have loaded some by itself (dlopen)"
            ),
        };
        (reason, text, remedies)
    }
}

/// A word for a shell. Options stay options.
fn argument(word: &str) -> String {
    let quoted = shell_word(Path::new(word));
    if word.starts_with('-') { quoted.replacen("./", "", 1) } else { quoted }
}

/// Names with the files that show them.
fn listed(found: &[&Found]) -> String {
    let one = |found: &&Found| match &found.file {
        Some(file) if !found.name.eq_ignore_ascii_case(file) => format!("{} ({file})", found.name),
        _ => found.name.to_owned(),
    };
    found.iter().map(one).collect::<Vec<_>>().join(", ")
}

/// The findings in the programs, their libraries and the observed running processes, each once.
fn found_in(programs: &[PathBuf], seen: &Seen) -> Vec<Found> {
    let mut found: BTreeMap<usize, Found> = BTreeMap::new();
    let mut add = |known: Option<&'static Known>, file: Option<String>| {
        let Some(known) = known else { return };
        let order = known::KNOWN.iter().position(|other| other.key == known.key).unwrap_or_default();
        found.entry(order).or_insert(Found { key: known.key, name: known.name, file });
    };
    for library in &seen.libraries {
        let name = library.trim_end_matches(" (deleted)");
        add(known::by_file(name), Some(name.to_owned()));
    }
    for program in programs {
        let name = |path: &Path| path.file_name().map(|name| name.to_string_lossy().into_owned());
        if let Some(name) = name(program) {
            add(known::by_file(&name), Some(name));
        }
        for (path, object) in loader::objects_of(program) {
            for needed in &object.needed {
                let needed = needed.rsplit('/').next().unwrap_or(needed);
                add(known::by_file(needed), Some(needed.to_owned()));
            }
            let is_ours = path.file_name().and_then(|name| name.to_str()).and_then(known::by_file);
            let is_ours = is_ours.is_some_and(|known| known.group == Group::Instrumented);
            if !is_ours && !SYSTEM_LIBRARIES.iter().any(|directory| path.starts_with(directory)) {
                for origin in elf::origins(&path) {
                    add(known::by_key(origin), None);
                }
            }
        }
    }
    particular(found.into_values().collect(), seen.threads)
}

/// The findings without general ones that follow from particular ones.
fn particular(mut found: Vec<Found>, threads: u64) -> Vec<Found> {
    let has = |found: &[Found], keys: &[&str]| found.iter().any(|found| keys.contains(&found.key));
    let is_interpreted =
        found.iter().any(|found| found.known().is_some_and(|known| known.group == Group::Interpreter));
    for (general, particular) in [
        ("rust", &["rayon", "tokio"][..]),
        ("cxx-threads", &["tbb", "kokkos", "hpx", "qt"]),
        ("ovni", &["nosv", "nanos6", "nodes"]),
    ] {
        if has(&found, particular) {
            found.retain(|found| found.key != general);
        }
    }
    let is_native = |found: &Found| {
        found.known().is_some_and(|known| matches!(known.group, Group::Native | Group::Rust))
            && found.key != "threads"
    };
    // Every Rust program is one; that is relevant only with threads.
    if threads <= 1 && !has(&found, &["threads", "cxx-threads"]) {
        found.retain(|found| found.key != "rust");
    }
    if is_interpreted || found.iter().any(is_native) {
        found.retain(|found| found.key != "threads");
    }
    found
}

impl NotRecorded {
    /// The sentence and the remedies, as lines for the end of a run.
    pub fn lines(&self, wall: &str, mode: &str) -> Vec<String> {
        let what = if mode == "profile" { "no profile was written" } else { "nothing was recorded" };
        // A notice has been printed before the run.
        let text = if REASONS.contains(&self.reason) { format!(": {}", self.text) } else { String::new() };
        let mut lines = vec![format!("taskscope: {wall}  {what}{text}")];
        for (number, remedy) in self.remedies.iter().enumerate() {
            lines.push(format!("  {:<5} {remedy}", if number == 0 { "try:" } else { "" }));
        }
        lines
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(libraries: &[&str], threads: u64) -> Seen {
        Seen {
            libraries: libraries.iter().map(|name| name.to_string()).collect(),
            threads,
            processes: [1].into(),
            ..Seen::default()
        }
    }

    fn of(seen: &Seen, mode: RecordMode) -> NotRecorded {
        let program = PathBuf::from("/nonexistent/app");
        let mut file = RunFile::begin(vec!["./app".into(), "a b".into()], &program, mode, None, Vec::new());
        file.wall_ns = Some(1_000_000);
        reason_for(&file, &program, seen, false)
    }

    fn reason_for(file: &RunFile, program: &Path, seen: &Seen, is_preloaded: bool) -> NotRecorded {
        let programs = &[program.to_owned()];
        NotRecorded::of(&Run { file, programs, seen, uses_ovni: false, is_preloaded })
    }

    #[test]
    fn a_command_that_replaces_the_preloaded_recorder_is_named() {
        let command = ["env", "LD_PRELOAD=./a b.so", "./app"].map(str::to_owned).to_vec();
        let program = Path::new("/nonexistent/env");
        for mode in [RecordMode::Trace, RecordMode::Profile] {
            let file = RunFile::begin(command.clone(), program, mode, None, Vec::new());
            let seen = seen(&["a b.so", "libc.so.6"], 3);
            let replaced = reason_for(&file, program, &seen, true);
            assert_eq!(replaced.reason, "preload-replaced");
            assert!(replaced.text.starts_with("env sets LD_PRELOAD"), "{replaced:?}");
            assert!(
                replaced.remedies[0].starts_with("LD_PRELOAD='./a b.so' taskscope record"),
                "{replaced:?}"
            );
            assert_ne!(reason_for(&file, program, &seen, false).reason, "preload-replaced");
        }
    }

    #[test]
    fn options_that_were_set_are_no_remedy() {
        let program = Path::new("/nonexistent/app");
        let file = RunFile::begin(vec!["./start".into()], program, RecordMode::Trace, None, Vec::new());
        let without = reason_for(&file, program, &seen(&["libc.so.6"], 3), true);
        assert!(without.text.contains("without the recorder's LD_PRELOAD"), "{without:?}");
        assert!(without.remedies.iter().all(|remedy| !remedy.contains("--threads")), "{without:?}");
        let with = reason_for(&file, program, &seen(&["libtaskscope_threads.so", "libc.so.6"], 3), true);
        assert!(with.text.contains("--threads"), "{with:?}");
    }

    #[test]
    fn runtimes_are_named_with_their_libraries_and_threads() {
        let tbb = of(&seen(&["libtbb.so.12.8", "libc.so.6"], 5), RecordMode::Trace);
        assert_eq!(
            tbb.text,
            "./app uses TBB (libtbb.so.12.8), at least 5 threads at once, which --sample and --threads record"
        );
        assert_eq!((tbb.reason, tbb.threads, tbb.processes), ("other-runtime", Some(5), Some(1)));
        assert!(tbb.remedies[0].starts_with("taskscope record --sample 100 -- ./app 'a b'  "), "{tbb:?}");
    }

    #[test]
    fn a_program_that_did_not_start_its_own_recording_is_named() {
        let linked = of(&seen(&["libtaskscope.so.1", "libc.so.6"], 3), RecordMode::Trace);
        assert!(linked.text.contains("taskscope's library") && !linked.text.contains("Rust"), "{linked:?}");
        assert!(linked.remedies[0].starts_with("taskscope_start(NULL)"), "{linked:?}");
        let recorder = of(&seen(&["libtaskscope_ompt.so"], 1), RecordMode::Trace);
        assert_eq!(recorder.reason, "nothing-parallel");
    }

    #[test]
    fn openmp_is_denied_only_where_nothing_else_was_found() {
        let none = of(&seen(&["libc.so.6"], 1), RecordMode::Trace);
        assert_eq!(none.reason, "nothing-parallel");
        assert!(none.text.starts_with("no OpenMP, "), "{none:?}");
        for (libraries, threads) in
            [(&["libcuda.so.1"][..], 1), (&["libmpich.so.12"], 1), (&[], 2), (&["libjvm.so"], 9)]
        {
            let found = of(&seen(libraries, threads), RecordMode::Trace);
            assert!(!found.text.contains("no OpenMP") && found.reason == "other-runtime", "{found:?}");
        }
    }

    #[test]
    fn openmp_that_was_loaded_later_is_preloaded() {
        let later = of(&seen(&["libgomp.so.1", "libpython3.12.so.1.0"], 4), RecordMode::Trace);
        assert!(
            later.text.contains("GCC's OpenMP (libgomp.so.1)") && later.text.contains("Python"),
            "{later:?}"
        );
        assert!(later.remedies[0].starts_with("taskscope record --preload"), "{later:?}");
    }

    #[test]
    fn threads_may_be_those_of_openmp_in_a_library_that_was_loaded_after_the_last_look() {
        let file =
            RunFile::begin(vec!["./app".into()], Path::new("app"), RecordMode::Trace, None, Vec::new());
        let preloads = |libraries: &[&str], threads, loads_libraries| {
            let seen = seen(libraries, threads);
            let run = Run { file: &file, programs: &[], seen: &seen, uses_ovni: false, is_preloaded: false };
            let found = particular(found_in(&[], &seen).into_iter().collect(), threads);
            let (_, _, remedies) = run.by_findings("./app", &found, loads_libraries);
            remedies.iter().any(|remedy| remedy.starts_with("taskscope record --preload"))
        };
        assert!(preloads(&[], 2, true) && preloads(&[], 1, true));
        assert!(!preloads(&[], 2, false), "it loads nothing by itself");
        assert!(!preloads(&["libjvm.so"], 9, true), "these are known threads");
    }

    #[test]
    fn general_things_give_way_to_particular_ones() {
        let keys = |keys: &[&'static str], threads: u64| {
            let found = keys.iter().map(|key| Found { key, name: key, file: None }).collect();
            particular(found, threads).iter().map(|found| found.key).collect::<Vec<_>>()
        };
        assert_eq!(keys(&["rust", "threads"], 1), ["rust"], "of a short program");
        assert_eq!(keys(&["rust"], 3), ["rust"]);
        assert_eq!(keys(&["rust"], 1), [""; 0]);
        assert_eq!(keys(&["rayon", "rust", "threads"], 1), ["rayon"]);
        assert_eq!(keys(&["tbb", "cxx-threads"], 1), ["tbb"]);
        assert_eq!(keys(&["python", "threads"], 1), ["python"]);
        assert_eq!(keys(&["threads"], 1), ["threads"]);
    }

    #[test]
    fn switches_of_runtimes_are_shown() {
        let nosv = of(&seen(&["libnosv.so.1"], 4), RecordMode::Trace);
        assert_eq!(nosv.reason, "ovni-off");
        assert!(nosv.remedies[0].contains("ovni.level=2 taskscope record -- ./app"), "{nosv:?}");
    }

    #[test]
    fn reasons_are_listed() {
        for found in [
            of(&seen(&[], 1), RecordMode::Trace),
            of(&seen(&[], 1), RecordMode::Profile),
            of(&seen(&["libomp.so.5"], 2), RecordMode::Trace),
        ] {
            assert!(REASONS.contains(&found.reason), "{found:?}");
        }
    }
}
