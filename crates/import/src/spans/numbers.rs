//! Numbers of processes and threads in a trace, and the names of their directories.

use super::run::Run;
use rustc_hash::FxHashSet;

/// Host of processes without one.
const HOST: &str = "imported";
/// First number of processes and threads without a usable number of their own.
const FIRST_NUMBER: i64 = 1 << 30;

/// Numbers of processes and threads in the trace.
pub(super) struct Numbers {
    /// Process numbers.
    pub pids: Vec<i64>,
    /// Thread numbers.
    pub tids: Vec<i64>,
}

impl Numbers {
    /// Numbers of the file if they are usable and unique, else new ones.
    pub fn of(run: &Run) -> Numbers {
        let given: Vec<Option<i64>> = run.processes.iter().map(|process| process.pid).collect();
        let pids = unique(&given);
        let mut tids = vec![0; run.threads.len()];
        let mut threads_by_process: Vec<Vec<usize>> = vec![Vec::new(); run.processes.len()];
        for (row, thread) in run.threads.iter().enumerate() {
            threads_by_process[thread.process as usize].push(row);
        }
        for rows in threads_by_process {
            let given: Vec<Option<i64>> = rows.iter().map(|row| run.threads[*row].tid).collect();
            for (row, tid) in rows.iter().zip(unique(&given)) {
                tids[*row] = tid;
            }
        }
        Numbers { pids, tids }
    }
}

fn unique(given: &[Option<i64>]) -> Vec<i64> {
    let usable = |number: &i64| (1..FIRST_NUMBER).contains(number);
    let mut taken: FxHashSet<i64> = FxHashSet::default();
    let mut next = FIRST_NUMBER;
    given
        .iter()
        .map(|number| match number.filter(usable) {
            Some(number) if taken.insert(number) => number,
            _ => {
                next += 1;
                next
            }
        })
        .collect()
}

/// The loom of a process. A host's part ends at the first dot, and is a part of a path.
pub(super) fn loom(host: &str, pid: i64) -> String {
    let kept = |c: char| if c.is_ascii_alphanumeric() || c == '-' || c == '_' { c } else { '_' };
    let host: String = host.chars().take(64).map(kept).collect();
    format!("{}.{pid}", if host.is_empty() { HOST } else { &host })
}
