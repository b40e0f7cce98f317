//! All tables of a run.

use crate::data_set::DataSet;
use crate::error::TableError;
use crate::numbers::Run;
use crate::{devices, marks, messages, names, results, samples, states, tasks, waits};
use taskscope_analysis::Analysis;
use taskscope_session::Session;

/// Writes all tables of a run, as the next run of the data set. Returns its number.
///
/// # Errors
/// If a file cannot be written.
pub fn write_run(set: &mut DataSet, session: &Session, analysis: &Analysis) -> Result<u32, TableError> {
    let run = &Run::next(session, &mut set.next);
    set.summary.runs.push(session.root.display().to_string());
    names::write(set, run, analysis)?;
    states::write(set, run)?;
    tasks::write(set, run, &analysis.body_times)?;
    waits::write(set, run)?;
    waits::write_intervals(set, run)?;
    messages::write(set, run)?;
    devices::write(set, run)?;
    samples::write(set, run)?;
    marks::write(set, run)?;
    results::write(set, run, analysis)?;
    let calls: usize = session.devices.calls.iter().map(|thread| thread.calls.len()).sum();
    if calls > 0 {
        set.summary.losses.push(format!("run {}: {calls} calls of the host into device interfaces", run.run));
    }
    let others = analysis.ledger.other_threads;
    if others > 0 {
        set.summary.losses.push(format!("run {}: states of {others} threads that are not workers", run.run));
    }
    Ok(run.run)
}
