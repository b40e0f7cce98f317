//! Chrome's trace events (JSON): files of PyTorch's profiler (Kineto), viztracer, Taskflow, APEX, uftrace, Perfetto's and
//! taskscope's own exports.
//!
//! ```text
//!  text ──▶ elements: rows with their places ──▶ events: one row to the run ──▶ begins with ends, flows, devices
//! ```
//!
//! | in the file | in the run |
//! | --- | --- |
//! | complete events (`X`), begins and ends (`B`, `E`) | spans of threads, tasks by name |
//! | flows (`s`, `t`, `f`) | flows: the code after the end waited for the code before the begin |
//! | names of processes and threads (`M`) | their names |
//! | instants of threads (`i`) | points |
//! | kernels, copies and fills of Kineto, with a stream | operations of device queues |
//! | calls of CUDA and HIP with a correlation | calls that concern devices |
//!
//! All others are counted as lost. Times are microseconds with any number of decimals, read exactly and rounded to
//! nanoseconds. Format: "Trace Event Format", Google, 2016; Kineto's categories by its documentation.

mod device_rows;
mod devices;
mod elements;
mod events;
mod flows;
mod lanes;
mod number;
mod rows;

use crate::spans::{Run, find_rows_beside};
use crate::{ImportError, ImportErrors};
use elements::Elements;
use events::Reader;

/// Errors that are listed before reading stops.
const MAX_ERRORS: usize = 100;

/// Whether the text looks like trace events.
pub fn is_chrome(text: &str) -> bool {
    elements::is_chrome(text)
}

/// Reads trace events.
///
/// # Errors
/// All errors, each with line and event: invalid JSON, times that are missing, negative or beyond the clock.
pub fn read_chrome(text: &str) -> Result<Run, ImportErrors> {
    let elements = Elements::of(text)?;
    let mut reader = Reader::new(&elements);
    let mut errors: Vec<ImportError> = Vec::new();
    for number in 0..elements.len() {
        if let Err((field, text)) = reader.take(number) {
            errors.push(elements.error(number, &field, text));
            if errors.len() == MAX_ERRORS {
                break;
            }
        }
    }
    if !errors.is_empty() {
        return Err(ImportErrors(errors));
    }
    let mut run = reader.finish();
    find_rows_beside(&mut run);
    if run.threads.is_empty() && run.queues.is_empty() {
        let text = "it has no event of a thread or a device".to_owned();
        return Err(ImportErrors(vec![ImportError {
            file: String::new(),
            line: 0,
            field: "traceEvents".to_owned(),
            text,
        }]));
    }
    Ok(run)
}
