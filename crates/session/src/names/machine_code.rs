//! Machine code of sampled functions.

use super::places::Places;
use taskscope_execution::ProcessIndex;
use taskscope_symbol::FunctionCode;

/// A function of a file, by its begin.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FunctionPlace {
    /// Path of the file at run time.
    pub path: String,
    /// Its build id.
    pub build_id: String,
    /// Address of the function's begin in the file.
    pub start: u64,
}

impl Places {
    /// The function of an instruction of a process that was sampled at a time, and the instruction's address in its file;
    /// `None` if the file or the begin of the function is unknown.
    pub fn function_of(&self, process: ProcessIndex, address: u64, at: u64) -> Option<(FunctionPlace, u64)> {
        self.with_symbolizer(process, |symbolizer| {
            symbolizer.set_time(at);
            let (path, build_id, in_file) = symbolizer.file_of(address)?;
            let (start, _) = symbolizer.function_range(&path, &build_id, in_file)?;
            Some((FunctionPlace { path, build_id, start }, in_file))
        })
    }

    /// The instructions of a function of a process.
    ///
    /// # Errors
    /// The reason in words if the file is not the one that ran, or its code is not known.
    pub fn instructions(
        &self,
        process: ProcessIndex,
        function: &FunctionPlace,
    ) -> Result<FunctionCode, String> {
        self.with_symbolizer(process, |symbolizer| {
            symbolizer.instructions(&function.path, &function.build_id, function.start)
        })
    }
}
