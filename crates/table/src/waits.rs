//! Waits of threads, and intervals beside their sections.

use crate::by_process::by_process;
use crate::data_set::DataSet;
use crate::error::TableError;
use crate::numbers::Run;
use crate::rows::Value;
use taskscope_execution::{
    Cause, Group, Hold, Holders, Loss, ObjectIndex, SiteIndex, State, SystemCause, SystemTime, TaskIndex,
    ThreadIndex, ThreadWait, Uncertain, WaitOutcome,
};

struct Wait {
    thread: ThreadIndex,
    start: u64,
    end: u64,
    kind: &'static str,
    object: ObjectIndex,
    site: Option<u32>,
    holder: Option<(ThreadIndex, TaskIndex, SiteIndex)>,
    outcome: Option<&'static str>,
}

pub(crate) fn write(set: &mut DataSet, run: &Run<'_>) -> Result<(), TableError> {
    let mut waits = lock_waits(run);
    waits.extend(thread_waits(run));
    by_process(
        set,
        run,
        "wait",
        waits,
        |wait| wait.thread,
        |wait| wait.start,
        |file, wait| {
            let (holder, task, site) =
                wait.holder.unwrap_or((ThreadIndex::NONE, TaskIndex::NONE, SiteIndex::NONE));
            file.push([
                run.location(wait.thread).into(),
                run.at(wait.start),
                run.at(wait.end),
                wait.kind.into(),
                run.object(wait.object).into(),
                wait.site.into(),
                run.location(holder).into(),
                run.task(task).into(),
                run.site(site).into(),
                wait.outcome.into(),
            ])
        },
    )
}

/// The waits of selected workers for locks of the runtime, split over the holders in sequence.
fn lock_waits(run: &Run<'_>) -> Vec<Wait> {
    let holders = Holders::of(&run.execution.holds);
    let mut waits = Vec::new();
    for (thread, row) in run.execution.selected_workers() {
        let is_wait = |state: State, _| state.group() == Group::Mutex;
        row.track.for_each_in(is_wait, |wait| {
            run.execution.split_wait(&holders, thread, &wait, |holder, start, end| {
                if end > start {
                    waits.push(Wait {
                        thread,
                        start,
                        end,
                        kind: "lock",
                        object: wait.section.object,
                        site: run.site_of(wait.section.place),
                        holder: holder.map(|Hold { thread, task, site, .. }| (thread, task, site)),
                        outcome: None,
                    });
                }
            });
        });
    }
    waits
}

fn thread_waits<'a>(run: &'a Run<'_>) -> impl Iterator<Item = Wait> + 'a {
    run.execution.thread_waits.waits.iter().map(|wait| Wait {
        thread: wait.thread,
        start: wait.start,
        end: wait.end,
        kind: "thread",
        object: wait.object,
        site: run.site(wait.site),
        holder: ended_by(run, wait),
        outcome: Some(match wait.outcome {
            WaitOutcome::Done => "done",
            WaitOutcome::TimedOut => "timed-out",
            WaitOutcome::Failed => "failed",
            WaitOutcome::Open => "open",
        }),
    })
}

/// The thread that ended a wait: its waker, or the last holder of the lock.
fn ended_by(run: &Run<'_>, wait: &ThreadWait) -> Option<(ThreadIndex, TaskIndex, SiteIndex)> {
    if let Some(waker) = wait.waker {
        return Some((waker.thread, TaskIndex::NONE, waker.site));
    }
    let holds = run.execution.thread_waits.holds_of(wait.object, wait.start, wait.end);
    let last = holds.last().filter(|_| wait.outcome == WaitOutcome::Done);
    last.map(|hold| (hold.thread, hold.task, hold.site))
}

/// Times that the system took, lost events, uncertain intervals.
pub(crate) fn write_intervals(set: &mut DataSet, run: &Run<'_>) -> Result<(), TableError> {
    let execution = run.execution;
    let interval = |thread, start, end| -> [Value<'static>; 3] {
        [run.location(thread).into(), run.at(start), run.at(end)]
    };
    let rows = execution.system_time.clone();
    by_process(
        set,
        run,
        "off_cpu",
        rows,
        |row| row.thread,
        |row| row.start,
        |file, row| {
            let SystemTime { thread, start, end, cause } = row;
            let [location, start, end] = interval(thread, start, end);
            let cause = match cause {
                SystemCause::NoCpu => Cause::CpuNone,
                SystemCause::MoreWorkers => Cause::CpuOversubscribed,
                SystemCause::Blocked => Cause::Blocked,
                SystemCause::Device => Cause::Device,
            };
            file.push([location, start, end, cause.name().into()])
        },
    )?;
    let rows = execution.losses.clone();
    by_process(
        set,
        run,
        "loss",
        rows,
        |row| row.thread,
        |row| row.start,
        |file, row| {
            let Loss { thread, start, end, events } = row;
            let [location, start, end] = interval(thread, start, end);
            file.push([location, start, end, events.into()])
        },
    )?;
    let rows = execution.uncertain.clone();
    by_process(
        set,
        run,
        "uncertain",
        rows,
        |row| row.thread,
        |row| row.start,
        |file, row| {
            let Uncertain { thread, start, end, doubt } = row;
            let [location, start, end] = interval(thread, start, end);
            file.push([location, start, end, doubt.name().into()])
        },
    )
}
