//! Functions of a run with the samples of their instructions.

use rustc_hash::FxHashMap;
use schemars::JsonSchema;
use serde::Serialize;
use taskscope_execution::ProcessIndex;
use taskscope_session::FunctionPlace;

/// A function with samples.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct SampledFunction {
    /// Its name, or its file and address.
    pub name: String,
    /// Its source file; null if unknown.
    pub file: Option<String>,
    /// Samples in it.
    pub samples: u64,
    /// Nanoseconds that they stand for.
    pub ns: u64,
}

/// The samples of all functions of a run.
#[derive(Debug, Default)]
pub struct SampledCode {
    pub(super) functions: Vec<KnownFunction>,
    /// Samples whose function is known, and all.
    pub(super) samples: (u64, u64),
}

/// A function of the run with its samples.
#[derive(Clone, Debug)]
pub(super) struct KnownFunction {
    pub process: ProcessIndex,
    pub place: FunctionPlace,
    pub facts: SampledFunction,
    /// Samples and nanoseconds by the instruction's address in the file.
    pub at: FxHashMap<u64, (u64, u64)>,
    /// Nanoseconds by file and line.
    pub lines: FxHashMap<(String, u32), u64>,
}
