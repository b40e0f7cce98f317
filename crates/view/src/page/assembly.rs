//! Machine code of a sampled function, with the samples of each instruction.
//!
//! ```text
//! samples ── process, interrupted instruction ──▶ file, function ──▶ the function with most samples
//!                                                                      └─ its code on disk ──▶ instructions, lines
//! ```
//! A sample belongs to the instruction at which its thread was interrupted; processors report one that is a little later than
//! the costly one. The samples of a function are found once for all questions. A file is used only if it is the one that ran.

use super::Page;
use super::sampled_code::{KnownFunction, SampledCode, SampledFunction};
use rustc_hash::FxHashMap;
use schemars::JsonSchema;
use serde::Serialize;
use std::cmp::Reverse;
use std::sync::Arc;
use taskscope_execution::ProcessIndex;
use taskscope_session::FunctionPlace;

/// Instructions of an answer, around the one with most samples.
const MAX_INSTRUCTIONS: usize = 4000;
/// Functions that are listed.
const MAX_FUNCTIONS: usize = 40;
/// Interrupted instructions that are looked up, those of most samples.
const MAX_ADDRESSES: usize = 50_000;

/// The code of a function, or the reason why there is none.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct AssemblyFacts {
    /// The shown function's place in `functions`; null without one.
    pub shown: Option<usize>,
    /// The shown function, which `functions` need not have; null without one.
    pub function: Option<SampledFunction>,
    /// Why there are no instructions; null if there are.
    pub missing: Option<String>,
    /// Its instructions, at most 4000 around the one with most samples.
    pub instructions: Vec<InstructionFacts>,
    /// Instructions of the whole function.
    pub count: usize,
    /// Functions with samples, most first, 40 at most.
    pub functions: Vec<SampledFunction>,
    /// Samples of the run whose function is known, and all samples.
    pub samples: (u64, u64),
}

/// An instruction.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct InstructionFacts {
    /// Its address in the file, in hexadecimal digits.
    pub address: String,
    /// Its text.
    pub text: String,
    /// The position in the whole function of the target of a jump within it; null for others.
    pub target: Option<usize>,
    /// Its file; null if unknown.
    pub file: Option<String>,
    /// Its line; null if unknown.
    pub line: Option<u32>,
    /// Samples at it.
    pub samples: u64,
    /// Nanoseconds that they stand for.
    pub ns: u64,
    /// Its position in the whole function.
    pub number: usize,
}

impl Page {
    /// The code of the function with most samples: of those with samples at a line of a file, of those in the file, or of all.
    /// `number` chooses a function of the list instead.
    pub fn assembly(&self, file: Option<&str>, line: Option<u32>, number: Option<usize>) -> AssemblyFacts {
        let known = self.sampled_code();
        let functions: Vec<SampledFunction> =
            known.functions.iter().take(MAX_FUNCTIONS).map(|function| function.facts.clone()).collect();
        let facts = AssemblyFacts { functions, samples: known.samples, ..AssemblyFacts::default() };
        let missing = |why: &str| AssemblyFacts { missing: Some(why.to_owned()), ..facts.clone() };
        if known.samples.1 == 0 {
            return missing(match self.report.call_paths.is_some() {
                true => "the cache of the viewer has no samples: taskscope view --no-cache",
                false => "the run has no samples: record --sample",
            });
        }
        let at_line = |function: &KnownFunction| {
            let of = function.lines.iter().filter(|((of, at), _)| {
                file.is_some_and(|file| is_same_file(of, file)) && line.is_none_or(|line| line == *at)
            });
            of.map(|(_, ns)| ns).sum::<u64>()
        };
        let chosen = match (number, file) {
            (Some(number), _) => Some(number),
            (None, None) => Some(0),
            (None, Some(_)) => {
                let times = known.functions.iter().map(at_line).enumerate();
                times.filter(|(_, ns)| *ns > 0).max_by_key(|(at, ns)| (*ns, Reverse(*at))).map(|(at, _)| at)
            }
        };
        let Some(function) = chosen.and_then(|at| known.functions.get(at)) else {
            return missing(match line {
                _ if known.functions.is_empty() => "of no sample the file and the function are known",
                Some(_) => "no sample was taken in a function at this line",
                None => "no sample was taken in a function of this file",
            });
        };
        let shown = chosen.filter(|at| *at < MAX_FUNCTIONS);
        let named = Some(function.facts.clone());
        let (process, place) = (function.process, function.place.clone());
        let code = self.names.ask(move |places| Some(places.instructions(process, &place)));
        match code {
            Some(Ok(code)) => {
                let instructions = code.instructions;
                let numbers: FxHashMap<u64, usize> =
                    instructions.iter().enumerate().map(|(at, one)| (one.address, at)).collect();
                let of = |address| function.at.get(&address).copied().unwrap_or_default();
                let hottest =
                    instructions.iter().enumerate().max_by_key(|(at, one)| (of(one.address).1, Reverse(*at)));
                let middle = hottest.map_or(0, |(at, _)| at);
                let count = instructions.len();
                let first =
                    middle.saturating_sub(MAX_INSTRUCTIONS / 2).min(count.saturating_sub(MAX_INSTRUCTIONS));
                let shown_ones = instructions.into_iter().enumerate().skip(first).take(MAX_INSTRUCTIONS);
                let rows = shown_ones.map(|(number, one)| {
                    let (samples, ns) = of(one.address);
                    let (file, line) = one.line.unzip();
                    let target = numbers.get(&one.target).copied();
                    let address = format!("{:x}", one.address);
                    InstructionFacts { address, text: one.text, target, file, line, samples, ns, number }
                });
                AssemblyFacts { shown, function: named, instructions: rows.collect(), count, ..facts }
            }
            Some(Err(why)) => AssemblyFacts { shown, function: named, missing: Some(why), ..facts },
            None => missing("the code cannot be read"),
        }
    }

    /// Samples by function, found once.
    fn sampled_code(&self) -> &Arc<SampledCode> {
        self.derived.sampled_code.get_or_init(|| Arc::new(self.new_sampled_code()))
    }

    fn new_sampled_code(&self) -> SampledCode {
        /// Samples of an instruction, their nanoseconds, time of the first.
        type Counts = (u64, u64, u64);
        let samples = &self.execution.samples;
        let mut counts: FxHashMap<(ProcessIndex, u64), Counts> = FxHashMap::default();
        let selected = || samples.rows.iter().filter(|sample| self.execution.is_selected(sample.thread));
        for sample in selected() {
            let Some(address) = samples.frames(sample).first() else { continue };
            let Some(thread) = self.execution.threads.get(sample.thread.index()) else { continue };
            let count = counts.entry((thread.process, *address)).or_insert((0, 0, sample.at));
            (count.0, count.1) = (count.0 + 1, count.1.saturating_add(sample.weight_ns));
        }
        let mut counts: Vec<((ProcessIndex, u64), Counts)> = counts.into_iter().collect();
        counts.sort_unstable_by_key(|(key, (samples, ns, _))| (Reverse((*ns, *samples)), *key));
        counts.truncate(MAX_ADDRESSES);
        let all = selected().count() as u64;
        self.names.ask(move |places| {
            // Processes of one program share its code.
            let mut numbers: FxHashMap<FunctionPlace, usize> = FxHashMap::default();
            let mut functions: Vec<KnownFunction> = Vec::new();
            for ((process, address), (samples, ns, at)) in counts {
                let Some((place, in_file)) = places.function_of(process, address, at) else { continue };
                let frame = places.step(process, address, at, false).frame;
                let number = *numbers.entry(place.clone()).or_insert_with(|| {
                    let start = address.wrapping_sub(in_file - place.start);
                    let mut own = places.step(process, start, at, false);
                    let own = own.inlined_into.pop().unwrap_or(own.frame);
                    let short = place.path.rsplit('/').next().unwrap_or_default();
                    let name = own.function.unwrap_or_else(|| format!("{short}+{:#x}", place.start));
                    let facts = SampledFunction { name, file: own.file, samples: 0, ns: 0 };
                    let (at, lines) = (FxHashMap::default(), FxHashMap::default());
                    functions.push(KnownFunction { process, place, facts, at, lines });
                    functions.len() - 1
                });
                let function = &mut functions[number];
                function.facts.samples += samples;
                function.facts.ns = function.facts.ns.saturating_add(ns);
                let here = function.at.entry(in_file).or_default();
                *here = (here.0 + samples, here.1.saturating_add(ns));
                if let Some(line) = frame.file.zip(frame.line) {
                    let line_ns = function.lines.entry(line).or_default();
                    *line_ns = line_ns.saturating_add(ns);
                }
            }
            functions.sort_by_key(|function| Reverse((function.facts.ns, function.facts.samples)));
            let known = functions.iter().map(|function| function.facts.samples).sum();
            SampledCode { functions, samples: (known, all) }
        })
    }
}

/// Whether two recorded names can be of one file: one may lack directories.
fn is_same_file(one: &str, other: &str) -> bool {
    one == other || one.ends_with(&format!("/{other}")) || other.ends_with(&format!("/{one}"))
}
