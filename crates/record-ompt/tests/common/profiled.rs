//! Runs under profiling, and their profiles by function name.

use super::{Compiler, Run, compile, fresh_directory, tool, virtual_time};
use std::path::{Path, PathBuf};
use std::process::Command;
use taskscope_profile::{Metric, NodeId, Profile};
use taskscope_symbol::{LoadedModule, Symbolizer};

/// A program of `tests/programs`, and the place of its profile.
pub struct Profiled {
    pub command: Command,
    pub directory: PathBuf,
}

impl Profiled {
    /// None without a compiler.
    pub fn new(program: &str, threads: u32, rate: &str, arguments: &[&str]) -> Option<Profiled> {
        if !Compiler::Clang.is_installed() {
            return None;
        }
        let program = compile(Compiler::Clang, program, &["-O2", "-lm", "-ldl", "-pthread"]);
        Some(Profiled::of(&program, threads, rate, arguments))
    }

    /// [`new`](Self::new) for a compiled program.
    pub fn of(program: &Path, threads: u32, rate: &str, arguments: &[&str]) -> Profiled {
        let directory = fresh_directory();
        let mut command = Run::program(Compiler::Clang, program)
            .env("TASKSCOPE_TRACE_DIR", &directory)
            .env("TASKSCOPE_MODE", "profile")
            .env("TASKSCOPE_SAMPLE", rate)
            .env("TASKSCOPE_LIVE", "0.05")
            // Attribution does not depend on which thread has a CPU.
            .env("TASKSCOPE_OS_TIME", "off")
            .env("OMP_NUM_THREADS", threads.to_string())
            .env("LD_PRELOAD", tool())
            .command;
        command.args(arguments);
        Profiled { command, directory }
    }

    /// [`new`](Self::new) in virtual time (`programs/virtual_time.h`): all measures are exact, on a machine
    /// of any load.
    pub fn in_virtual_time(program: &str, threads: u32, rate: &str, arguments: &[&str]) -> Option<Profiled> {
        Some(Profiled::new(program, threads, rate, arguments)?.with_virtual_time())
    }

    /// Advances time only at the program's request.
    pub fn with_virtual_time(mut self) -> Profiled {
        let mut preloaded = self.preloaded();
        preloaded.push(":");
        preloaded.push(virtual_time());
        self.command.env("LD_PRELOAD", preloaded).env("TASKSCOPE_CLOCK", "kernel").env("KMP_BLOCKTIME", "0");
        self
    }

    fn preloaded(&self) -> std::ffi::OsString {
        let mut variables = self.command.get_envs();
        let value = variables.find(|(name, _)| *name == "LD_PRELOAD").and_then(|(_, value)| value);
        value.expect("the tool is preloaded").to_owned()
    }

    /// Runs it to its end; the profile, and the size of its file.
    pub fn run(mut self) -> (Profile, u64) {
        let output = self.command.output().unwrap();
        assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
        let files = self.files();
        // The file of a program in a temporary directory is kept.
        let may_be_there = |path: &PathBuf| !path.is_dir() || path.ends_with("modules");
        assert!(files.iter().all(may_be_there), "no trace beside it: {files:?}");
        self.profile().expect("a profile")
    }

    pub fn files(&self) -> Vec<PathBuf> {
        std::fs::read_dir(&self.directory).unwrap().map(|entry| entry.unwrap().path()).collect()
    }

    /// The profile in the directory, and its size.
    pub fn profile(&self) -> Option<(Profile, u64)> {
        self.profiles().into_iter().next()
    }

    /// All profiles in the directory.
    pub fn profiles(&self) -> Vec<(Profile, u64)> {
        let is_profile = |path: &Path| path.extension().is_some_and(|extension| extension == "tsprof");
        let files = self.files().into_iter().filter(|path| is_profile(path));
        let read = |path| {
            let bytes = std::fs::read(path).unwrap();
            (Profile::read(&bytes).unwrap(), bytes.len() as u64)
        };
        files.map(read).collect()
    }

    /// The lines that were written while it ran.
    pub fn live(&self) -> Vec<serde_json::Value> {
        let path = self.files().into_iter().find(|path| path.extension().is_some_and(|e| e == "jsonl"));
        let text = path.map(|path| std::fs::read_to_string(path).unwrap()).unwrap_or_default();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }
}

impl Drop for Profiled {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.directory);
    }
}

/// Names the user frames of nodes; each file is opened once.
pub struct Names<'a> {
    profile: &'a Profile,
    symbolizers: Vec<Symbolizer>,
}

impl<'a> Names<'a> {
    pub fn of(profile: &'a Profile) -> Names<'a> {
        let symbolizers = (profile.modules.iter())
            .map(|module| {
                let (path, build_id) = (module.path.clone(), module.build_id.clone());
                Symbolizer::new(vec![LoadedModule {
                    since: 0,
                    start: 0,
                    end: u64::MAX,
                    bias: 0,
                    build_id,
                    path,
                }])
            })
            .collect();
        Names { profile, symbolizers }
    }

    /// The functions of a node's user frames in the program itself, innermost first.
    pub fn functions(&mut self, node: NodeId) -> Vec<String> {
        let programs = ["sampled", "blamed"];
        let is_program = |module: u32| {
            let module = self.profile.modules.get(module as usize);
            module.is_some_and(|module| programs.iter().any(|name| module.path.contains(name)))
        };
        let user = self.profile.tree.path(node).filter(|frame| frame.kind.is_user());
        user.filter(|frame| is_program(frame.module))
            .filter_map(|frame| {
                self.symbolizers.get_mut(frame.module as usize)?.call_place(frame.offset + 1).frame.function
            })
            .collect()
    }

    /// A metric at the paths with this function.
    pub fn sum_in(&mut self, metric: Metric, function: &str) -> u64 {
        let tree = &self.profile.tree;
        tree.ids()
            .filter(|node| tree.value(*node, metric) > 0)
            .filter(|node| self.functions(*node).iter().any(|name| name == function))
            .map(|node| tree.value(node, metric))
            .sum()
    }
}
