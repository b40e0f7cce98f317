//! The worst instances of findings that have no events: from samples and the threads' times off their CPUs.
//!
//! ```text
//! CPU time that few threads used   ─▶ the longest time in which one ran alone
//! work, or time, of a call path    ─▶ the longest stretch of samples with this path
//! blocked, without a CPU           ─▶ the longest such time of a thread with recorded switches
//! ```

use super::samples::{NONE, SampleTimes};
use crate::NamedFinding;
use taskscope_cause::Cause;
use taskscope_execution::{Execution, OffCpu, OsSource, ThreadIndex};

/// Begin, end and thread of a stretch, on the trace's clock.
pub(super) type Stretch = (u64, u64, ThreadIndex);

/// The worst instance of a finding without events; `None` if samples and switches know none.
pub(super) fn of_finding(
    execution: &Execution,
    samples: &SampleTimes,
    finding: &NamedFinding,
) -> Option<Stretch> {
    // Of recorded waits it is not known which of these times are theirs.
    let has_waits = !execution.thread_waits.waits.is_empty();
    match finding.cause {
        _ if finding.alone.is_some() => finding.alone.map(|(thread, start, end)| (start, end, thread)),
        // Of threads with states only some of these times are losses.
        Cause::CpuNone | Cause::Blocked if !execution.knows_samples_alone() => None,
        Cause::CpuNone => longest_away(execution, &execution.off_cpu),
        Cause::Blocked if !has_waits => longest_away(execution, &execution.blocked),
        Cause::Work | Cause::Unknown if !finding.path.is_empty() => {
            longest_with_path(execution, samples, &finding.path)
        }
        _ => None,
    }
}

fn longest_away(execution: &Execution, away: &[OffCpu]) -> Option<Stretch> {
    let is_known = |off: &&OffCpu| {
        let thread = execution.threads.get(off.thread.index());
        thread.is_some_and(|thread| thread.selected && thread.os_source == OsSource::Switches)
    };
    let longest = away.iter().filter(is_known).max_by_key(|off| (off.end - off.start, off.start));
    longest.map(|off| (off.start, off.end, off.thread))
}

/// The longest stretch of samples with paths that begin with these steps.
fn longest_with_path(execution: &Execution, samples: &SampleTimes, path: &[String]) -> Option<Stretch> {
    // Of each step how many of the path's steps it and those further out are, from the outermost on; and its depth.
    let mut known: Vec<(usize, usize)> = Vec::with_capacity(samples.steps.len());
    for step in &samples.steps {
        let (matched, depth) = if step.outer == NONE { (0, 0) } else { known[step.outer as usize] };
        let is_next = matched == depth && path.get(depth).is_some_and(|name| name == samples.word(step.name));
        known.push((matched + usize::from(is_next), depth + 1));
    }
    let has_path = |spot: u32| {
        let step = samples.spots.get(spot as usize).and_then(|spot| known.get(spot.step as usize));
        step.is_some_and(|(matched, _)| *matched == path.len())
    };
    let mut longest: Option<(u64, Stretch)> = None;
    for (thread, own) in samples.by_thread() {
        let mut stretch: Option<(u64, u64)> = None;
        for piece in SampleTimes::pieces(execution, own).into_iter().filter(|piece| has_path(piece.spot)) {
            let start =
                stretch.filter(|(_, end)| *end == piece.start).map_or(piece.start, |(start, _)| start);
            stretch = Some((start, piece.end));
            let ns = piece.end - start;
            if longest.is_none_or(|(most, _)| ns > most) {
                longest = Some((ns, (start, piece.end, thread)));
            }
        }
    }
    longest.map(|(_, stretch)| stretch)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::page::samples::{SampleTime, Spot, Step};
    use taskscope_execution::ExecutionBuilder;

    #[test]
    fn work_has_the_longest_stretch_with_its_path() {
        let execution = ExecutionBuilder::new().finish();
        let step = |outer, name| Step { outer, name, file: NONE, line: 0 };
        let spot = |step| Spot { step, file: NONE, line: 0 };
        let row = |thread, spot, start, end| SampleTime { thread: ThreadIndex(thread), spot, start, end };
        let samples = SampleTimes {
            words: ["f", "main", "g"].map(str::to_owned).to_vec(),
            // main ▸ f ▸ g, main ▸ g ▸ f, and f alone.
            steps: vec![step(NONE, 1), step(0, 0), step(1, 2), step(0, 2), step(3, 0), step(NONE, 0)],
            spots: [1, 2, 4, 5].map(spot).to_vec(),
            rows: vec![
                row(0, 0, 0, 10),
                row(0, 1, 10, 25),
                row(0, 2, 25, 90),
                row(1, 3, 0, 50),
                row(1, 0, 60, 80),
            ],
        };
        let found = |path: &[&str]| {
            let path: Vec<String> = path.iter().map(|step| (*step).to_owned()).collect();
            longest_with_path(&execution, &samples, &path)
        };
        assert_eq!(found(&["main", "f"]), Some((0, 25, ThreadIndex(0))));
        assert_eq!(found(&["main", "g", "f"]), Some((25, 90, ThreadIndex(0))));
        assert_eq!(found(&["f"]), Some((0, 50, ThreadIndex(1))));
        assert_eq!(found(&["g"]), None);
    }
}
