//! Findings of processes without a runtime, with recorded waits: reasons why their threads did not use all CPUs.
//!
//! Rows are losses of CPU time, one per object and culprit. They sum to the time of the CPUs that was not used.

use super::paths::HotPath;
use super::rows::{CpuTimes, Findings, Whose};
use super::wait_rows::{WaitRows, is_not_known};
use crate::CallPaths;
use crate::hang::HangWords;
use crate::named_finding::{NamedFinding, WaitsOf};
use crate::verdict::SMALL_LOSS;
use crate::words::{advise_on_hangs, numbered};
use taskscope_analysis::call_paths::TaskContext;
use taskscope_analysis::call_views::{Column, own};
use taskscope_analysis::{Analysis, Confidence, CpuTime, cpu_time, pattern_of_shortage};
use taskscope_cause::{Blamed, Cause, Pattern, Runtime};
use taskscope_execution::{SiteIndex, State, ThreadIndex};
use taskscope_profile::NodeId;
use taskscope_session::Session;

/// The part of the capacity that is not known, from which on no cause is sure: one in this many.
const UNSURE_PARTS: u64 = 5;

/// All findings; `None` if no waits are recorded, or if the CPUs or their use are not known.
pub(super) fn findings(session: &Session, analysis: &Analysis) -> Option<Findings> {
    let execution = &session.execution;
    if execution.thread_waits.waits.is_empty() {
        return None;
    }
    let cpus = cpu_time(execution)?;
    let not_known = cpus.losses.iter().filter(|loss| is_not_known(loss.to));
    let not_known: u64 = not_known.map(|loss| loss.ns).sum();
    let is_sure = !cpus.is_estimated && not_known.saturating_mul(UNSURE_PARTS) < cpus.capacity_ns;
    let mut rows = WaitRows::of(session, if is_sure { Confidence::High } else { Confidence::Medium });
    for loss in &cpus.losses {
        rows.add(loss.to, (loss.ns, loss.threads_ns));
    }
    let mut found = rows.finish(analysis, (cpus.threads_ns, Whose::Threads));
    name_hangs(&mut found, session, analysis);
    for finding in &mut found {
        match (finding.cause, finding.blamed) {
            (_, Blamed::Serial) => name_alone(finding, session, &cpus),
            (Cause::CpuNone, _) => finding.pattern = pattern_of_shortage(execution, &analysis.shortage),
            _ => {}
        }
    }
    found.retain(|finding| finding.ns > 0 || finding.hang.is_some());
    let mut rows = numbered(found, |_| Some(Runtime::Threads));
    advise_on_hangs(session, analysis, &mut rows);
    let CpuTime { millicpus, capacity_ns, used_ns, threads_ns, .. } = cpus;
    let cpu_time = CpuTimes { millicpus, capacity_ns, used_ns, threads_ns };
    let verdict = Some(verdict(&cpu_time, &rows));
    Some(Findings { rows, base_ns: capacity_ns, whose: Whose::Cpus, verdict, cpu_time: Some(cpu_time) })
}

/// Makes each hang a finding, which has the losses of its waits: no thread can end them.
fn name_hangs(found: &mut Vec<NamedFinding>, session: &Session, analysis: &Analysis) {
    for (row, hang) in analysis.hangs.iter().enumerate() {
        let sites: Vec<SiteIndex> =
            hang.waits.iter().map(|wait| session.places.site_of(wait.span.section.place)).collect();
        let is_of_hang =
            |waits: &WaitsOf| matches!(waits, WaitsOf::In(site) if site.is_some() && sites.contains(site));
        let is_lost_in_it = |finding: &NamedFinding| {
            (finding.cause, finding.pattern) == (Cause::Blocked, None)
                && !finding.waits.is_empty()
                && finding.waits.iter().all(is_of_hang)
        };
        let confidence = if hang.is_deadlock { Confidence::High } else { Confidence::Medium };
        let what = (State::LockWait, String::new());
        let mut own = NamedFinding::new((Cause::Lock, Blamed::Nobody), what, 0, confidence);
        (own.pattern, own.hang) = (Some(Pattern::Hung), Some(row));
        own.text = HangWords::of(session, hang).facts().sentence();
        found.retain_mut(|finding| {
            let is_lost = is_lost_in_it(finding);
            if is_lost {
                own.ns += finding.ns;
                own.victims.add(State::LockWait, finding.ns);
                own.waits.append(&mut finding.waits);
            }
            !is_lost
        });
        found.push(own);
    }
}

/// Names the code that ran while too few other threads had work.
fn name_alone(finding: &mut NamedFinding, session: &Session, cpus: &CpuTime) {
    let (path, samples) = path_of_alone(session, cpus);
    finding.place = path.place();
    finding.path = path.steps.clone();
    if !path.steps.is_empty() {
        finding.text = path.after(&finding.text, samples);
    }
    finding.evidence = path.evidence_of("samples meanwhile", samples);
    finding.alone = longest_alone(&cpus.alone);
}

/// The longest of the times in which threads ran alone, which are in the order of threads and time: those that touch are one.
fn longest_alone(alone: &[(ThreadIndex, u64, u64)]) -> Option<(ThreadIndex, u64, u64)> {
    let mut longest: Option<(ThreadIndex, u64, u64)> = None;
    let mut now: Option<(ThreadIndex, u64, u64)> = None;
    for &(thread, from, until) in alone {
        let begun =
            now.filter(|(of, _, end)| *of == thread && *end >= from).map_or(from, |(_, begun, _)| begun);
        now = Some((thread, begun, until));
        if longest.is_none_or(|(_, from, until_longest)| until - begun > until_longest - from) {
            longest = now;
        }
    }
    longest
}

/// The path of most samples of threads that ran while too few others had work, and the number of these samples.
fn path_of_alone(session: &Session, cpus: &CpuTime) -> (HotPath, u64) {
    // The times are of the part and of selected threads, so the samples in them are, too.
    let mut execution = session.execution.whole().clone();
    execution.samples.rows.retain(|sample| {
        let key = (sample.thread, sample.at);
        let next = cpus.alone.partition_point(|(thread, _, until)| (*thread, *until) < key);
        let is_alone =
            cpus.alone.get(next).is_some_and(|(thread, from, _)| *thread == key.0 && *from <= key.1);
        is_alone && session.execution.is_selected(sample.thread)
    });
    let paths = CallPaths::from_execution(session, &execution, TaskContext::Creation);
    let tree = paths.tree.without_runtime();
    let values: Vec<(NodeId, u64)> =
        tree.nodes().map(|node| (node, own(&tree.tree, node, Column::Samples))).collect();
    let total = values.iter().map(|(_, value)| value).sum();
    (HotPath::of(&tree, &values), total)
}

/// The verdict in one sentence.
pub(super) fn verdict(cpus: &CpuTimes, findings: &[NamedFinding]) -> String {
    let cpu_count = |ns: u64| {
        let used = ns as f64 / cpus.capacity_ns as f64 * cpus.millicpus as f64 / 1000.0;
        if used < 9.995 { format!("{used:.2}") } else { format!("{used:.1}") }
    };
    let all = match cpus.millicpus {
        1000 => "1 CPU".to_owned(),
        all => format!("{} CPUs", all as f64 / 1000.0),
    };
    let is_idle = |finding: &&NamedFinding| finding.pattern == Some(Pattern::NoWork);
    let is_unknown = |finding: &&NamedFinding| matches!(finding.cause, Cause::Blocked | Cause::Unknown);
    let sum = |is: &dyn Fn(&&NamedFinding) -> bool| {
        findings.iter().filter(is).map(|finding| finding.ns).sum::<u64>()
    };
    let (idle, unknown) = (sum(&is_idle), sum(&is_unknown));
    let lost: u64 = findings.iter().map(|finding| finding.ns).sum::<u64>() - idle;
    let used = ["Of", &all, "the program used", &cpu_count(cpus.used_ns)].join(" ");
    let is_small = |ns: u64| (ns as f64) < cpus.capacity_ns as f64 * SMALL_LOSS;
    let no_work = match is_small(idle) {
        true => String::new(),
        false => format!(
            "; {} had nothing to do, as all threads waited for requests, timers, input or other threads' ends",
            cpu_count(idle)
        ),
    };
    let not_known = format!(
        "why {} were unused is not known, as the awaited threads are not recorded",
        cpu_count(unknown)
    );
    if unknown > cpus.capacity_ns / 2 {
        return format!("{used}{no_work}; {not_known}.");
    }
    if is_small(lost) {
        return match is_small(idle) {
            true => format!("Nothing to mend: of {all} the program used {}.", cpu_count(cpus.used_ns)),
            false => format!("{used}{no_work}."),
        };
    }
    let mut text = format!("{used}{no_work}");
    let known = || findings.iter().filter(|finding| !is_idle(finding) && !is_unknown(finding));
    let largest = known().next();
    if !is_small(unknown) && largest.is_none_or(|loss| loss.ns < unknown) {
        text += "; ";
        text += &not_known;
    }
    // What the system takes is not in the program's hands.
    let is_of_system = |finding: &&NamedFinding| {
        let is_own = finding.pattern == Some(Pattern::Bound);
        finding.cause.is_in(Cause::Cpu) && !is_own
    };
    let taken = |loss: &NamedFinding| format!("; {} were lost as {}", cpu_count(loss.ns), loss.text);
    match largest {
        Some(loss) if is_of_system(&loss) => {
            text += &taken(loss);
            if let Some(own) = known().find(|loss| !is_of_system(loss)).filter(|loss| !is_small(loss.ns)) {
                text += &format!("; the largest loss of its own, {}: {}", cpu_count(own.ns), own.text);
            }
        }
        Some(loss) => {
            text += &format!("; the largest loss, {}: {}", cpu_count(loss.ns), loss.text);
            // A busy machine makes each wait longer.
            if let Some(loss) = known().find(is_of_system).filter(|loss| !is_small(loss.ns)) {
                text += &taken(loss);
            }
        }
        None => {}
    }
    text + "."
}

#[cfg(test)]
mod tests {
    use super::*;
    use taskscope_cause::State;

    fn loss((cause, blamed): (Cause, Blamed), ns: u64, text: &str) -> NamedFinding {
        let place = (State::Idle, String::new());
        let text = text.to_owned();
        NamedFinding { text, ..NamedFinding::new((cause, blamed), place, ns, Confidence::Medium) }
    }

    #[test]
    fn times_alone_that_touch_are_one() {
        let alone = |thread, from, until| (ThreadIndex(thread), from, until);
        let times = [alone(0, 0, 10), alone(0, 10, 25), alone(0, 30, 50), alone(1, 50, 60)];
        assert_eq!(longest_alone(&times), Some(alone(0, 0, 25)));
        assert_eq!(longest_alone(&[]), None);
    }

    /// The sentence on two CPUs, of which the program used a tenth.
    fn sentence(findings: &[NamedFinding]) -> String {
        let cpus = CpuTimes { millicpus: 2000, capacity_ns: 1000, used_ns: 100, threads_ns: 2000 };
        verdict(&cpus, findings)
    }

    #[test]
    fn a_busy_machine_is_named_beside_a_larger_loss() {
        let serial = loss((Cause::Wait, Blamed::Serial), 500, "few threads work");
        let busy = loss((Cause::CpuNone, Blamed::System), 400, "threads had no CPU");
        let both = sentence(&[serial.clone(), busy.clone()]);
        assert_eq!(
            both,
            "Of 2 CPUs the program used 0.20; the largest loss, 1.00: few threads work; \
             0.80 were lost as threads had no CPU."
        );
        let busy_first =
            sentence(&[NamedFinding { ns: 600, ..busy }, NamedFinding { ns: 300, ..serial.clone() }]);
        assert_eq!(
            busy_first,
            "Of 2 CPUs the program used 0.20; 1.20 were lost as threads had no CPU; \
             the largest loss of its own, 0.60: few threads work."
        );
        assert_eq!(
            sentence(&[serial]),
            "Of 2 CPUs the program used 0.20; the largest loss, 1.00: few threads work."
        );
    }
}
