//! The variables that attach the recorder to the command's processes.
//!
//! | variable | value |
//! | --- | --- |
//! | `OMP_TOOL_LIBRARIES` | our OMPT tool, which the OpenMP runtime loads, before the user's |
//! | `INTEL_LIBITTNOTIFY64`, `KOKKOS_TOOLS_LIBS`, `NVTX_INJECTION64_PATH` | the same library, which libraries with annotations load, unless the user names another ([`super::annotations`]) |
//! | `TASKSCOPE_TRACE_DIR` | absolute trace directory; the tool writes there |
//! | `TASKSCOPE_NEXT_TOOL_LIBRARIES` | a library of the program's with a tool, and the user's own `OMP_TOOL_LIBRARIES`; our tool chains to the first that starts |
//! | `LD_PRELOAD` | LLVM's OpenMP runtime, for programs on libgomp, before the user's libraries; our tool, after it, for samples and MPI, if a library of the program has a tool, or the runtime is linked into the program |
//! | `ASAN_OPTIONS` | in front of the user's, with a preloaded library: makes AddressSanitizer's library accept it |
//! | `TASKSCOPE_ADDED`, `TASKSCOPE_ADDED_*` | the additions ([`taskscope_record::attached`]) |
//! | `LD_LIBRARY_PATH` | in front of the user's: our `libovni.so.1` for programs that record through ovni, and for commands that use no OpenMP themselves, as they may start such programs ([`super::ovni`]), the program's own runtime for programs that offload ([`super::offload`]) |
//! | `TASKSCOPE_DRAINER` | the drainer of tails in memory, if any ([`super::tails`]) |
//! | `TASKSCOPE_SHARE` | 1 with `--share`: tails in memory are readable by other users |
//! | `TASKSCOPE_SECCOMP_FILTERS` | number of system call filters of `record`, if any ([`attached::Filters`]) |
//! | `TASKSCOPE_SAMPLE`, `TASKSCOPE_SAMPLE_CLOCK` | samples per second and thread; `wall` or `cpu` |

use super::elf::Dynamic;
use super::libgomp::{self, Decision};
use super::loader;
use super::run_file::Notice;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use taskscope_record::attached;

/// Tools that run behind ours, the first that wants to.
const NEXT_TOOLS: &str = "TASKSCOPE_NEXT_TOOL_LIBRARIES";
/// The loader's first search path.
const LIBRARY_PATH: &str = "LD_LIBRARY_PATH";

/// Variables to set, and notices for readers of the trace.
#[derive(Debug, Default)]
pub struct Environment {
    /// The variables, in no particular order.
    pub variables: Vec<(&'static str, OsString)>,
    /// Notices for the run file and the screen.
    pub notices: Vec<Notice>,
}

impl Environment {
    /// Attaches `tool` and makes it write to `trace`, seen from this process's variables.
    pub fn attach(&mut self, tool: &Path, trace: &Path) {
        self.set("TASKSCOPE_TRACE_DIR", trace);
        let next = users_tools(std::env::var_os("OMP_TOOL_LIBRARIES"));
        let mut tools = tool.as_os_str().to_owned();
        // The runtime tries these if ours declines a program.
        if let Some(users) = &next {
            tools.push(":");
            tools.push(users);
        }
        self.set("OMP_TOOL_LIBRARIES", tools);
        if let Some(next) = next {
            // The runtime silently skips libraries that it cannot load.
            let is_there = std::env::split_paths(&next).any(|library| loader::is_there(&library));
            let next_shown = next.display();
            if is_there {
                let text = format!("the tool in OMP_TOOL_LIBRARIES ({next_shown}) runs behind taskscope's");
                self.notice("tool-chained", text);
            } else {
                let text = format!("OMP_TOOL_LIBRARIES names {next_shown}, which does not exist");
                self.notice("tool-missing", text);
            }
            self.set(NEXT_TOOLS, &next);
        }
        if std::env::var_os("OMP_TOOL").is_some_and(|value| value == "disabled") {
            let text = "OMP_TOOL=disabled is set: the OpenMP runtime loads no tool, so OpenMP is not recorded; \
                        unset OMP_TOOL to record it";
            self.notice("tool-disabled", text.to_owned());
        }
    }

    /// Handles programs with an OMPT tool of their own. The runtime takes the first tool that it finds in the program,
    /// preloaded libraries and its libraries, in this order, before any that a variable names. So a library's tool runs
    /// behind ours, which must be preloaded: returns whether that is so. A tool in the program itself always comes
    /// first.
    pub fn chain_own_tools(&mut self, programs: &[PathBuf]) -> bool {
        let objects =
            || programs.iter().flat_map(|program| loader::objects_of(program).into_iter().enumerate());
        // A runtime has a function of this name too, for programs without one.
        let has_tool = |object: &Dynamic| {
            object.exports.contains("ompt_start_tool") && !object.exports.contains("__kmpc_fork_call")
        };
        let Some((number, (object, _))) = objects().find(|(_, (_, object))| has_tool(object)) else {
            return false;
        };
        let shown = object.display();
        if number == 0 {
            let text = format!(
                "OpenMP is not recorded: {shown} has its own OMPT tool (ompt_start_tool), which the runtime uses instead of \
                 taskscope's; a tool in a library would run behind it"
            );
            self.notice("own-tool", text);
            return false;
        }
        let text = format!("the OMPT tool of {shown} runs behind taskscope's");
        self.notice("tool-chained", text);
        // The variable is a list separated by colons.
        let mut tools = object.into_os_string();
        let users = self.variables.iter().position(|(name, _)| *name == NEXT_TOOLS);
        if let Some((_, users)) = users.map(|index| self.variables.swap_remove(index)) {
            tools.push(":");
            tools.push(users);
        }
        self.set(NEXT_TOOLS, tools);
        true
    }

    /// Adds the needs of the command's programs that use libgomp. Returns whether one does.
    pub fn replace_libgomp(&mut self, programs: &[PathBuf]) -> bool {
        let decisions = programs.iter().map(|program| (program, libgomp::decide(program)));
        let mut decisions: Vec<_> =
            decisions.filter(|(_, decision)| *decision != Decision::NotNeeded).collect();
        // One program that cannot be run on the replacement decides for all, as all see the variable.
        decisions.sort_by_key(|(_, decision)| matches!(decision, Decision::Replace(_)));
        let Some((program, decision)) = decisions.into_iter().next() else { return false };
        let program = program.display();
        match decision {
            Decision::Replace(runtime) => {
                let text = format!(
                    "{program} is built for GCC's libgomp and runs on LLVM's {} instead, which can be recorded; \
                     times are those of that runtime (--no-preload keeps libgomp)",
                    runtime.file_name().unwrap_or_default().display()
                );
                self.notice("runtime-replaced", text);
                self.preload(&runtime);
            }
            Decision::Keep { symbol, used_by } => {
                let text = format!(
                    "{program} is not recorded: {} calls {symbol}, which LLVM's OpenMP runtime lacks for GCC's code, so it runs \
                     unchanged on GCC's libgomp; build it with clang -fopenmp to record it",
                    used_by.display()
                );
                self.notice("runtime-kept", text);
            }
            Decision::Mixed(other) => {
                let text = format!(
                    "{program} uses two OpenMP runtimes, GCC's libgomp and {}: only code on the second one is recorded",
                    other.display()
                );
                self.notice("runtimes-mixed", text);
            }
            Decision::NoReplacement => {
                let text = format!(
                    "{program} is not recorded: it is built for GCC's libgomp, which cannot be recorded, and \
                     LLVM's OpenMP runtime is not installed; to record it: apt-get install libomp-19-dev"
                );
                self.notice("no-ompt-runtime", text);
            }
            Decision::NotNeeded => {}
        }
        true
    }

    /// Preloads a runtime for code that a program loads later. The needs of that code are only known then.
    pub fn preload_runtime(&mut self, programs: &[PathBuf]) {
        let Some(program) = programs.iter().find(|program| !libgomp::has_ompt_runtime(program)) else {
            return;
        };
        match libgomp::replacement_for(program) {
            Some(runtime) => {
                let text = format!(
                    "code for GCC's libgomp that {} loads runs on LLVM's {} instead (--preload), if that has every function \
                     it calls; times are those of that runtime",
                    program.display(),
                    runtime.file_name().unwrap_or_default().display()
                );
                self.notice("runtime-replaced", text);
                self.preload(&runtime);
            }
            None => {
                let text = "--preload has no effect: LLVM's OpenMP runtime is not installed; apt-get install libomp-19-dev";
                self.notice("no-ompt-runtime", text.to_owned());
            }
        }
    }

    /// Notes the consequences of keeping libgomp by the user's wish, if a program uses it.
    pub fn keep_libgomp(&mut self, programs: &[PathBuf]) {
        if let Some(program) = programs.iter().find(|program| libgomp::decide(program) != Decision::NotNeeded)
        {
            let program = program.display();
            let text = format!(
                "{program} is not recorded: because of --no-preload it runs on GCC's libgomp, which cannot be recorded"
            );
            self.notice("runtime-kept", text);
        }
    }

    /// Takes out the pending value of a variable, else its current one.
    fn take(&mut self, variable: &str) -> OsString {
        match self.variables.iter().position(|(name, _)| *name == variable) {
            Some(index) => self.variables.swap_remove(index).1,
            None => std::env::var_os(variable).unwrap_or_default(),
        }
    }

    /// Adds a directory before all that the user names in the loader's search path.
    pub fn search_first(&mut self, directory: &Path) {
        let others = self.take(LIBRARY_PATH);
        let mut list = directory.as_os_str().to_owned();
        if !others.is_empty() {
            list.push(":");
            list.push(others);
        }
        self.set(LIBRARY_PATH, list);
    }

    /// Preloads a library, after those already in the list.
    pub fn preload(&mut self, library: &Path) {
        let mut list = self.take("LD_PRELOAD");
        if !list.is_empty() {
            list.push(":");
        }
        list.push(through_origin(library));
        self.set("LD_PRELOAD", list);
    }

    /// Names the additions to the environment, so that the recorder can remove them in a program that it must leave
    /// alone ([`taskscope_record::attached`]).
    pub fn name_additions(&mut self) {
        let items = |list: &OsStr| -> Vec<OsString> {
            list.as_bytes()
                .split(|byte| *byte == b':')
                .map(|item| OsStr::from_bytes(item).to_owned())
                .collect()
        };
        let mut own = OsString::from(attached::ADDED);
        let mut added = Vec::new();
        for (name, value) in &self.variables {
            own.push(":");
            match attached::LISTS.iter().find(|(list, _)| list == name) {
                None => own.push(name),
                Some((_, variable)) => {
                    let before = items(&std::env::var_os(name).unwrap_or_default());
                    let added_items = items(value).into_iter().filter(|item| !before.contains(item));
                    added.push((*variable, added_items.collect::<Vec<_>>().join(OsStr::new(":"))));
                    own.push(variable);
                }
            }
        }
        added.into_iter().for_each(|(variable, items)| self.set(variable, items));
        self.set(attached::ADDED, own);
    }

    /// Makes AddressSanitizer's library accept preloaded libraries, which it would end the program for: in all
    /// processes of the command, as not all are known.
    pub fn appease_sanitizer(&mut self, programs: &[PathBuf]) {
        const OPTIONS: &str = "ASAN_OPTIONS";
        if !self.variables.iter().any(|(name, _)| *name == "LD_PRELOAD") {
            return;
        }
        let is_sanitizer = |name: &String| name.starts_with("libasan.so");
        let has_sanitizer = |program: &&PathBuf| {
            loader::objects_of(program).iter().any(|(_, object)| object.needed.iter().any(is_sanitizer))
        };
        if let Some(program) = programs.iter().find(has_sanitizer) {
            let text = format!("{} has AddressSanitizer, which takes most of the time", program.display());
            self.notice("sanitizer", text);
        }
        let mut options = OsString::from("verify_asan_link_order=0");
        let users = self.take(OPTIONS);
        if !users.is_empty() {
            options.push(":");
            options.push(users);
        }
        self.set(OPTIONS, options);
    }

    /// The names of all variables, for launchers that pass on named ones only.
    pub fn names(&self) -> Vec<&'static str> {
        self.variables.iter().map(|(name, _)| *name).collect()
    }

    pub fn set(&mut self, name: &'static str, value: impl AsRef<OsStr>) {
        self.variables.push((name, value.as_ref().to_owned()));
    }

    /// Adds a notice for readers of the trace.
    pub fn notice(&mut self, name: &'static str, text: String) {
        self.notices.push(Notice { name, text });
    }
}

/// Maximum depth of a program's directory below the root.
const MAX_DEPTH: usize = 48;

/// The path of a library in a form that only glibc's loader expands: from the program's directory up to the
/// root, and down to the library. Other loaders (musl's) do not find the file and skip it; a library without
/// its dependences would end the program there.
fn through_origin(library: &Path) -> OsString {
    let mut path = OsString::from("$ORIGIN");
    path.push("/..".repeat(MAX_DEPTH));
    path.push(library);
    path
}

/// The user's list of tools without ours, which is in it when `record` runs inside `record`.
fn users_tools(list: Option<OsString>) -> Option<OsString> {
    let list = list?;
    let others: Vec<PathBuf> =
        std::env::split_paths(&list).filter(|path| !path.as_os_str().is_empty() && !is_ours(path)).collect();
    if others.is_empty() { None } else { std::env::join_paths(others).ok() }
}

/// Whether a path is that of a library with our OMPT tool.
pub fn is_ours(path: &Path) -> bool {
    let names = [
        super::recorder_library::FILE_NAME,
        super::mpi::FILE_NAME,
        super::recorder_library::THREADS_FILE_NAME,
    ];
    names.iter().any(|name| path.file_name() == Some(OsStr::new(name)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn our_own_tool_is_not_chained_to_itself() {
        let tools = |list: &str| users_tools(Some(list.into())).map(|list| list.into_string().unwrap());
        assert_eq!(tools("/x/libother.so"), Some("/x/libother.so".into()));
        assert_eq!(tools("/x/libtaskscope_ompt.so:/x/libother.so"), Some("/x/libother.so".into()));
        assert_eq!(tools("/x/libtaskscope_ompt.so"), None);
        assert_eq!(tools(""), None);
    }

    #[test]
    fn a_list_of_directories_grows_at_its_front() {
        let mut environment = Environment::default();
        environment.set(LIBRARY_PATH, "/of/the/user");
        environment.search_first(Path::new("/first"));
        environment.search_first(Path::new("/before"));
        assert_eq!(environment.variables, [(LIBRARY_PATH, "/before:/first:/of/the/user".into())]);
    }
}
