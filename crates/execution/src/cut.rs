//! A part of an execution in time, as an execution of its own.

use crate::activities::{Activities, ActivityNumbers};
use crate::messages::{Communication, MpiCall};
use crate::samples::RegionPath;
use crate::track_builder::TrackBuilder;
use crate::{
    CutWait, Execution, Group, Hold, Holders, Loss, NO_TIME, OsTotals, Region, RegionIndex, Span, TaskIndex,
    TaskStatus, Tasks, ThreadIndex, Track,
};
use std::sync::Arc;

/// A part of the time, and the new numbers of its contents.
struct Part {
    begin: u64,
    end: u64,
    tasks: Vec<TaskIndex>,
    regions: Vec<RegionIndex>,
}

impl Execution {
    /// Keeps the part between `begin` (included) and `end` (not included), nanoseconds of the trace's clock. Intervals
    /// are cut at the borders. Tasks, regions and all other items outside are removed, and the rest is renumbered.
    /// Names, and counts of anomalies and of a thread's events, are unchanged. The whole is kept ([`Execution::whole`]).
    pub fn cut(&mut self, begin: u64, end: u64) {
        let end = end.max(begin);
        self.become_part(begin, end);
        let kept_tasks = (0..self.tasks.len()).map(|row| self.tasks.lives_in(row, begin, end));
        let tasks = numbers(kept_tasks).map(TaskIndex).collect();
        let kept_regions = self.regions.iter().map(|region| region_lives_in(region, begin, end));
        let regions = numbers(kept_regions).map(RegionIndex).collect();
        let part = Part { begin, end, tasks, regions };
        self.keep_numbers_of_whole(&part);

        let mut cut_waits = self.waits_across(begin, end);
        for hold in cut_waits.iter_mut().filter_map(|wait| wait.holder.as_mut()) {
            hold.task = part.task(hold.task);
        }

        // A new table must be cut here too.
        let Execution {
            processes,
            threads,
            catalog: _,
            activities,
            tasks,
            regions,
            team_limits,
            works,
            holds,
            cut_waits: _,
            target_waits,
            dependences,
            wait_dependences,
            detached,
            losses,
            off_cpu,
            blocked,
            system_time,
            queued,
            communication,
            thread_waits,
            uncertain,
            samples,
            anomalies: _,
            filtered: _,
            part: _,
        } = self;
        for process in processes {
            if let Some(cpus) = &mut process.cpus {
                // For readings around a border the split is unknown.
                cpus.throttled.retain(|throttled| overlaps(throttled.start, throttled.end, begin, end));
                cpus.stopped.retain_mut(|(start, end)| match part.within(*start, *end) {
                    Some(within) => {
                        (*start, *end) = within;
                        true
                    }
                    None => false,
                });
                cpus.loads.retain(|load| overlaps(load.start, load.end, begin, end));
            }
            (process.first, process.last) = part.within(process.first, process.last).unwrap_or((0, 0));
        }
        let mut activity_numbers = ActivityNumbers::of(activities);
        for thread in threads.iter_mut() {
            // One that never ended is there after its last event, too.
            let last = thread.last.max(thread.track.end());
            thread.track = part.of_track(&thread.track, activities, &mut activity_numbers);
            // One that begins at the end is not there.
            let within = part.within(thread.first, last).filter(|_| thread.first < end || begin == end);
            (thread.first, thread.last) = within.unwrap_or((NO_TIME, 0));
            thread.lost_events = 0;
            // Sums over the thread's life; the part is unknown.
            thread.os_totals = OsTotals::default();
        }
        part.cut_tasks(tasks);
        part.cut_regions(regions);
        team_limits.retain_mut(|(region, _)| {
            *region = part.region(*region);
            region.is_some()
        });
        works.retain_mut(|work| {
            work.region = part.region(work.region);
            part.keeps(&mut work.start, &mut work.end)
        });
        holds.to_mut().retain_mut(|hold| {
            hold.task = part.task(hold.task);
            part.keeps(&mut hold.start, &mut hold.end)
        });
        target_waits.retain_mut(|wait| part.keeps(&mut wait.start, &mut wait.end));
        dependences.to_mut().retain_mut(|dependence| {
            dependence.task = part.task(dependence.task);
            dependence.task.is_some()
        });
        wait_dependences.retain(|dependence| (begin..end).contains(&dependence.at));
        detached.retain_mut(|task| {
            *task = part.task(*task);
            task.is_some()
        });
        losses.retain_mut(|loss| {
            loss.events = events_within(loss, begin, end);
            part.keeps(&mut loss.start, &mut loss.end)
        });
        for loss in losses {
            let lost = &mut threads[loss.thread.index()].lost_events;
            *lost = lost.saturating_add(loss.events);
        }
        queued.retain_mut(|queued| {
            queued.task = part.task(queued.task);
            part.keeps(&mut queued.ready, &mut queued.began) && queued.task.is_some()
        });
        part.cut_communication(communication);
        samples.rows.retain(|sample| (begin..end).contains(&sample.at));
        // Wakers and holders are those of the whole.
        thread_waits.part = Some((begin, end));
        let region_paths = std::mem::take(&mut samples.region_paths).into_iter();
        let kept = region_paths.map(|(region, path)| (part.region(region), part.of_path(path)));
        samples.region_paths = kept.filter(|(region, _)| region.is_some()).collect();
        samples.renumber_levels(|task| part.task(task), |region| part.region(region));
        let task_paths = std::mem::take(&mut samples.task_paths).into_iter();
        let kept = task_paths.map(|(task, path)| (part.task(task), path));
        samples.task_paths = kept.filter(|(task, _)| task.is_some()).collect();
        off_cpu.retain_mut(|off| part.keeps(&mut off.start, &mut off.end));
        blocked.retain_mut(|off| part.keeps(&mut off.start, &mut off.end));
        system_time.retain_mut(|taken| part.keeps(&mut taken.start, &mut taken.end));
        uncertain.retain_mut(|stretch| part.keeps(&mut stretch.start, &mut stretch.end));
        self.cut_waits = cut_waits;
    }

    fn keep_numbers_of_whole(&mut self, part: &Part) {
        let tasks = (0..part.tasks.len()).filter(|row| part.tasks[*row].is_some());
        let tasks = tasks.map(|row| self.task_of_whole(TaskIndex(row as u32))).collect();
        let regions = (0..part.regions.len()).filter(|row| part.regions[*row].is_some());
        let regions = regions.map(|row| self.region_of_whole(RegionIndex(row as u32))).collect();
        if let Some(part) = &mut self.part {
            part.numbers = Some((tasks, regions));
        }
    }

    /// The waits for locks that reach to a border or beyond it, split over their holders as in the whole: which hold was before
    /// the begin, and which comes after the end, does not show in the part.
    fn waits_across(&self, begin: u64, end: u64) -> Vec<CutWait> {
        let mut cut_waits = Vec::new();
        let mut holders = None;
        for (thread, row) in self.threads.iter().enumerate().filter(|(_, row)| row.worker) {
            let thread = ThreadIndex(thread as u32);
            let reaches = |span: &Span| span.start < begin || span.end >= end;
            let spans = row.track.spans().skip_while(|span| span.end <= begin);
            let spans = spans.take_while(|span| span.start < end).filter(reaches);
            for wait in spans.filter(|span| span.section.state.group() == Group::Mutex) {
                let holders = holders.get_or_insert_with(|| Holders::of(&self.holds));
                self.split_wait(holders, thread, &wait, |holder, from, to| {
                    let (start, end) = (from.max(begin), to.min(end));
                    if start < end {
                        cut_waits.push(CutWait { thread, start, end, holder });
                    }
                });
            }
        }
        cut_waits
    }

    /// Splits a wait of a thread for a lock, or a part of one, over its holders in sequence, as [`Holders::split`] does with these
    /// of its holds. Of a wait that is not over the holder may be the thread itself; of one that was cut the parts are those of
    /// the whole.
    pub fn split_wait(
        &self,
        holders: &Holders,
        thread: ThreadIndex,
        wait: &Span,
        mut take: impl FnMut(Option<Hold>, u64, u64),
    ) {
        let first = self.cut_waits.partition_point(|part| (part.thread, part.end) <= (thread, wait.start));
        let parts = self.cut_waits[first..].iter();
        let mut parts = parts.take_while(|part| part.thread == thread && part.start < wait.end).peekable();
        if parts.peek().is_some() {
            return parts
                .for_each(|part| take(part.holder, part.start.max(wait.start), part.end.min(wait.end)));
        }
        // A nested lock is taken again at once.
        let last_start = |track: &Track| track.len().checked_sub(1).map(|last| track.span(last).start);
        let row = self.threads.get(thread.index());
        let is_last = row.and_then(|row| last_start(&row.track)).is_some_and(|start| start <= wait.start);
        let own = if is_last { holders.own_of(thread, wait) } else { None };
        holders.split(thread, wait, |holder, start, end| take(holder.or(own), start, end));
    }
}

impl Tasks {
    fn lives_in(&self, row: usize, begin: u64, end: u64) -> bool {
        let from = self.created[row].min(self.began[row]);
        let is_over = matches!(self.status[row], TaskStatus::Ended | TaskStatus::Cancelled);
        let to = if is_over { self.ended[row] } else { NO_TIME };
        overlaps(from, to, begin, end)
    }
}

fn region_lives_in(region: &Region, begin: u64, end: u64) -> bool {
    // A region with an unknown begin is known from its members.
    let from = if region.begin == NO_TIME { 0 } else { region.begin };
    overlaps(from, region.end, begin, end)
}

/// The part of the lost events that counts between `begin` and `end`: as they would be if they were spread evenly, so that parts add up
/// to the whole.
fn events_within(loss: &Loss, begin: u64, end: u64) -> u64 {
    let length = loss.end.saturating_sub(loss.start);
    if length == 0 {
        return loss.events;
    }
    let until = |at: u64| {
        let passed = at.clamp(loss.start, loss.end) - loss.start;
        (u128::from(loss.events) * u128::from(passed) / u128::from(length)) as u64
    };
    until(end) - until(begin)
}

/// Whether the interval from `from` to `to` overlaps the part; an instant does if it is inside.
fn overlaps(from: u64, to: u64, begin: u64, end: u64) -> bool {
    from < end && (to > begin || (from == to && from == begin))
}

/// Numbers those that are kept, in their order.
fn numbers(kept: impl Iterator<Item = bool>) -> impl Iterator<Item = u32> {
    kept.scan(0, |next, kept| {
        let number = if kept { *next } else { u32::MAX };
        *next += u32::from(kept);
        Some(number)
    })
}

impl Part {
    fn task(&self, task: TaskIndex) -> TaskIndex {
        self.tasks.get(task.index()).copied().unwrap_or(TaskIndex::NONE)
    }

    fn region(&self, region: RegionIndex) -> RegionIndex {
        self.regions.get(region.index()).copied().unwrap_or(RegionIndex::NONE)
    }

    fn of_path(&self, path: RegionPath) -> RegionPath {
        let (parent_region, parent_task) = (self.region(path.parent_region), self.task(path.parent_task));
        RegionPath { parent_region, parent_task, ..path }
    }

    /// Cuts a stretch of time; false if nothing of it is left.
    fn keeps(&self, start: &mut u64, end: &mut u64) -> bool {
        let kept = overlaps(*start, *end, self.begin, self.end);
        *start = self.begin.max(*start);
        *end = self.end.min(*end);
        kept
    }

    fn within(&self, first: u64, last: u64) -> Option<(u64, u64)> {
        let (first, last) = (first.max(self.begin), last.min(self.end));
        (first <= last).then_some((first, last))
    }

    /// The previous activities, restricted to `numbers`.
    fn of_track(&self, track: &Track, activities: &Arc<Activities>, numbers: &mut ActivityNumbers) -> Track {
        let mut part = TrackBuilder::of(numbers, 0);
        // Without any section left: whether the thread has ended or not begun yet.
        let mut last = track.end().clamp(self.begin, self.end);
        for span in track.spans() {
            if span.start >= self.end {
                break;
            }
            if span.end > self.begin && span.end > span.start {
                let mut section = span.section;
                section.task = self.task(section.task);
                section.region = self.region(section.region);
                part.set(span.start.max(self.begin), section);
                last = span.end.min(self.end);
            }
        }
        Track::of(part.finish(last, activities))
    }

    fn cut_tasks(&self, tasks: &mut Tasks) {
        let kept: Vec<usize> = (0..tasks.len()).filter(|row| self.tasks[*row].is_some()).collect();
        let Tasks { number, ty, parent, region, creator, runner, created, began, ended, status } = tasks;
        *number = kept.iter().filter_map(|row| number.get(*row).copied()).collect::<Vec<_>>().into();
        *ty = kept.iter().map(|row| ty[*row]).collect::<Vec<_>>().into();
        *parent = kept.iter().map(|row| self.task(parent[*row])).collect::<Vec<_>>().into();
        *region = kept.iter().map(|row| self.region(region[*row])).collect::<Vec<_>>().into();
        *creator = kept.iter().map(|row| creator[*row]).collect::<Vec<_>>().into();
        *runner = kept.iter().map(|row| runner[*row]).collect::<Vec<_>>().into();
        *created = kept.iter().map(|row| created[*row]).collect::<Vec<_>>().into();
        *began = kept.iter().map(|row| began[*row]).collect::<Vec<_>>().into();
        *ended = kept.iter().map(|row| ended[*row]).collect::<Vec<_>>().into();
        *status = kept.iter().map(|row| status[*row]).collect();
        let (created, began, ended) = (created.to_mut(), began.to_mut(), ended.to_mut());
        let (creator, runner) = (creator.to_mut(), runner.to_mut());
        let raise = |time: &mut u64| *time = if *time == NO_TIME { NO_TIME } else { self.begin.max(*time) };
        for row in 0..kept.len() {
            // Events after the part have not happened yet.
            if ended[row] != NO_TIME && ended[row] > self.end {
                ended[row] = NO_TIME;
                status[row] = TaskStatus::Running;
            }
            if began[row] != NO_TIME && began[row] >= self.end {
                (began[row], ended[row]) = (NO_TIME, NO_TIME);
                (runner[row], status[row]) = (ThreadIndex::NONE, TaskStatus::Created);
            }
            if created[row] != NO_TIME && created[row] >= self.end {
                (created[row], creator[row]) = (NO_TIME, ThreadIndex::NONE);
            }
            [&mut created[row], &mut began[row], &mut ended[row]].into_iter().for_each(raise);
        }
    }

    fn cut_communication(&self, communication: &mut Communication) {
        let within = |from: u64, to: u64| overlaps(from, to, self.begin, self.end) && to <= self.end;
        let Communication { calls, messages, participations, fulfilments, awaited, .. } = communication;
        let kept = |call: &MpiCall| overlaps(call.start, call.end, self.begin, self.end);
        let kept_calls: Vec<u32> = numbers(calls.iter().map(kept)).collect();
        let of_messages: Vec<u32> =
            numbers(messages.iter().map(|m| within(m.sent.min(m.posted), m.received))).collect();
        let of_parts: Vec<u32> =
            numbers(participations.iter().map(|p| overlaps(p.begun, p.completed, self.begin, self.end)))
                .collect();
        let number = |numbers: &[u32], row: u32| numbers.get(row as usize).copied().unwrap_or(u32::MAX);
        calls.retain_mut(|call| {
            let kept = kept(call);
            (call.start, call.end) = (call.start.max(self.begin), call.end.min(self.end));
            call.wait = call.wait.filter(|wait| wait.until > call.start);
            if let Some(wait) = &mut call.wait {
                wait.until = wait.until.min(call.end);
            }
            kept
        });
        awaited.retain_mut(|(call, _)| {
            *call = number(&kept_calls, *call);
            *call != u32::MAX
        });
        let mut row = 0;
        messages.retain_mut(|message| {
            message.call = number(&kept_calls, message.call);
            message.sent = message.sent.max(self.begin);
            message.posted = message.posted.max(self.begin);
            row += 1;
            of_messages[row - 1] != u32::MAX
        });
        let mut row = 0;
        participations.retain_mut(|part| {
            part.call = number(&kept_calls, part.call);
            part.begun = part.begun.max(self.begin);
            if part.completed > self.end {
                part.completed = NO_TIME;
            }
            row += 1;
            of_parts[row - 1] != u32::MAX
        });
        fulfilments.retain_mut(|fulfilment| {
            fulfilment.task = self.task(fulfilment.task);
            fulfilment.message = number(&of_messages, fulfilment.message);
            fulfilment.participation = number(&of_parts, fulfilment.participation);
            (self.begin..self.end).contains(&fulfilment.at) && fulfilment.task.is_some()
        });
    }

    fn cut_regions(&self, regions: &mut Vec<Region>) {
        let mut row = 0;
        regions.retain_mut(|region| {
            let kept = self.regions[row].is_some();
            row += 1;
            region.parent = self.region(region.parent);
            if region.begin != NO_TIME {
                region.begin = region.begin.max(self.begin);
            }
            if region.end != NO_TIME && region.end > self.end {
                region.end = NO_TIME;
            }
            kept
        });
    }
}

#[cfg(test)]
mod tests {
    use crate::samples::{Level, NewSample};
    use crate::{
        Change, Execution, ExecutionBuilder, Observer, Section, SiteIndex, State, TaskIndex, TypeIndex,
    };
    use crate::{NO_TIME, PathIndex, RegionIndex, TaskStatus, ThreadIndex};

    /// A region from 10 to 90 with two tasks: one from 20 to 30, one from 40 to 70.
    fn execution() -> Execution {
        let mut builder = ExecutionBuilder::new();
        let process = builder.add_process("node.1", 5);
        let thread = builder.add_thread(process, 5);
        let mut change = |at: u64, change: Change| {
            builder.event(thread, at);
            builder.change(thread, at, change);
        };
        let region = RegionIndex(0);
        let in_task = |number| Section { task: TaskIndex(number), ..Section::of(State::Task) };
        change(0, Change::Becomes(Section::of(State::Serial)));
        let none = (RegionIndex::NONE, SiteIndex::NONE);
        change(10, Change::RegionBegins { region, parent: none.0, site: none.1, requested: 1 });
        change(10, Change::Becomes(Section { region, ..Section::of(State::ImplicitTask) }));
        for (number, from, to) in [(0, 20, 30), (1, 40, 70)] {
            let task = TaskIndex(number);
            let parent = TaskIndex::NONE;
            change(from - 5, Change::TaskCreated { task, ty: TypeIndex(0), parent, region });
            change(from, Change::TaskStarts { task });
            change(from, Change::Becomes(in_task(number)));
            change(to, Change::TaskEnds { task });
            change(to, Change::Becomes(Section { region, ..Section::of(State::ImplicitTask) }));
        }
        change(90, Change::RegionEnds { region });
        change(90, Change::Becomes(Section::of(State::Serial)));
        change(100, Change::ThreadEnds);
        builder.finish()
    }

    fn spans(execution: &Execution) -> Vec<(u64, u64, State, TaskIndex)> {
        let spans = execution.threads[0].track.spans();
        spans.map(|span| (span.start, span.end, span.section.state, span.section.task)).collect()
    }

    #[test]
    fn intervals_beyond_the_range_are_cut_and_numbers_follow() {
        let mut execution = execution();
        execution.cut(35, 60);
        let expected = [(35, 40, State::ImplicitTask, TaskIndex::NONE), (40, 60, State::Task, TaskIndex(0))];
        assert_eq!(spans(&execution), expected);
        let tasks = &execution.tasks;
        assert_eq!((tasks.len(), tasks.created[0], tasks.began[0], tasks.ended[0]), (1, 35, 40, NO_TIME));
        assert_eq!(tasks.status[0], TaskStatus::Running);
        assert_eq!((execution.regions[0].begin, execution.regions[0].end), (35, NO_TIME));
        assert_eq!(execution.range(), (35, 60));
    }

    #[test]
    fn a_part_of_a_cut_wait_has_the_holders_of_that() {
        use crate::{CutWait, Hold, Holders, ObjectIndex, Span};

        let thread = ThreadIndex(0);
        let (object, site, task) = (ObjectIndex(0), SiteIndex(3), TaskIndex::NONE);
        let hold = Hold { object, thread: ThreadIndex(1), site, task, start: 5, end: 90 };
        let cut = |thread, start, end, holder| CutWait { thread: ThreadIndex(thread), start, end, holder };
        let cut_waits = vec![
            cut(0, 10, 30, None),
            cut(0, 30, 50, Some(hold)),
            cut(0, 60, 70, None),
            cut(1, 10, 30, None),
        ];
        let execution = Execution { cut_waits, ..Execution::default() };
        let parts = |start, end| {
            let section = Section { object, ..Section::of(State::LockWait) };
            let mut parts = Vec::new();
            let holders = Holders::of(&[]);
            execution.split_wait(&holders, thread, &Span { start, end, section }, |holder, start, end| {
                parts.push((holder.is_some(), start, end));
            });
            parts
        };
        assert_eq!(parts(10, 50), [(false, 10, 30), (true, 30, 50)]);
        assert_eq!(parts(20, 40), [(false, 20, 30), (true, 30, 40)]);
        assert_eq!(parts(50, 60), [(false, 50, 60)], "another wait");
    }

    /// A thread waits for the lock that it has. The wait is cut where it has no CPU.
    #[test]
    fn each_part_of_a_last_wait_has_the_thread_s_own_hold() {
        use crate::{Holders, ObjectIndex, Span};

        let mut builder = ExecutionBuilder::new();
        let process = builder.add_process("node.1", 5);
        let thread = builder.add_thread(process, 5);
        let (object, site) = (ObjectIndex(0), SiteIndex(3));
        let section = Section { object, ..Section::of(State::LockWait) };
        for (at, change) in [
            (0, Change::Becomes(Section::of(State::Task))),
            (10, Change::Acquires { object, site }),
            (20, Change::Becomes(section)),
        ] {
            builder.event(thread, at);
            builder.change(thread, at, change);
        }
        builder.event(thread, 100);
        let execution = builder.finish();
        let holders = Holders::of(&execution.holds);
        for (start, end) in [(20, 100), (20, 50), (60, 100)] {
            let mut own = Vec::new();
            let wait = Span { start, end, section };
            execution
                .split_wait(&holders, thread, &wait, |hold, _, _| own.push(hold.map(|hold| hold.thread)));
            assert_eq!(own, [Some(thread)], "{start} to {end}");
        }
    }

    #[test]
    fn a_part_without_anything_is_empty_and_the_whole_is_the_same() {
        let mut nothing = execution();
        nothing.cut(200, 300);
        assert!(nothing.tasks.is_empty() && nothing.regions.is_empty() && spans(&nothing).is_empty());
        let whole = execution();
        let mut same = execution();
        same.cut(0, u64::MAX);
        assert_eq!(spans(&same), spans(&whole));
        assert_eq!((same.tasks.len(), same.tasks.ended[1]), (2, 70));
    }

    #[test]
    fn partners_of_open_calls_stay_theirs() {
        use crate::Place;
        use crate::messages::{Awaited, Communication, MpiCall};

        let call = |start: u64, end: u64| MpiCall {
            thread: ThreadIndex(0),
            function: 0,
            place: Place::UNKNOWN,
            start,
            end,
            count: 1,
            bytes: 0,
            wait: None,
        };
        let calls = vec![call(10, 20), call(30, 90), call(95, 99)];
        let [first, open, last] = [1, 2, 3].map(|sequence| Awaited::Operation { comm: 7, sequence });
        let awaited = vec![(0, first), (1, open), (2, last)];
        let communication = Communication { calls, awaited, ..Communication::default() };
        let mut execution = Execution { communication, ..Execution::default() };
        execution.cut(25, 95);
        assert_eq!(execution.communication.awaited, [(0, open)]);
    }

    /// Cutting at any place divides the time of every state exactly.
    #[test]
    fn two_parts_make_the_whole() {
        let useful = |execution: &Execution| -> u64 {
            let spans = execution.threads[0].track.spans();
            spans.filter(|span| span.section.state == State::Task).map(|span| span.nanos()).sum()
        };
        for at in 0..=100 {
            let (mut before, mut after) = (execution(), execution());
            before.cut(0, at);
            after.cut(at, 100);
            assert_eq!(useful(&before) + useful(&after), 40, "cut at {at}");
        }
    }

    /// Task 1 holds a lock, for which another thread waits longer than the part; task 0 is over before it.
    #[test]
    fn holders_in_cut_waits_are_tasks_of_the_part() {
        use crate::ObjectIndex;

        let mut builder = ExecutionBuilder::new();
        let process = builder.add_process("node.1", 5);
        let [holder, waiter] = [5, 6].map(|tid| builder.add_thread(process, tid));
        let (object, site) = (ObjectIndex(0), SiteIndex(3));
        let [before, task] = [TaskIndex(0), TaskIndex(1)];
        let waits = Section { object, ..Section::of(State::LockWait) };
        for (thread, at, change) in [
            (holder, 0, Change::ThreadWorks),
            (waiter, 0, Change::ThreadWorks),
            (holder, 1, Change::TaskStarts { task: before }),
            (holder, 5, Change::TaskEnds { task: before }),
            (holder, 6, Change::TaskStarts { task }),
            (holder, 6, Change::Becomes(Section { task, ..Section::of(State::Task) })),
            (holder, 10, Change::Acquires { object, site }),
            (waiter, 20, Change::Becomes(waits)),
            (holder, 80, Change::Releases { object }),
            (waiter, 85, Change::Becomes(Section::of(State::Task))),
            (holder, 90, Change::TaskEnds { task }),
        ] {
            builder.event(thread, at);
            builder.change(thread, at, change);
        }
        let mut execution = builder.finish();
        execution.cut(30, 60);
        let holders: Vec<_> = execution.cut_waits.iter().map(|wait| wait.holder.unwrap().task).collect();
        assert_eq!((holders, execution.holds[0].task), (vec![TaskIndex(0)], TaskIndex(0)));
    }

    /// In every part of a run its threads' times tile the process's, also of those that are not there in it.
    #[test]
    fn times_of_threads_tile_every_part() {
        let whole = || {
            let mut builder = ExecutionBuilder::new();
            let process = builder.add_process("node.1", 5);
            for (tid, first, last) in [(0, 1000, 1100), (1, 1000, 1030), (2, 1060, 1100)] {
                let thread = builder.add_thread(process, tid);
                builder.event(thread, first);
                builder.change(thread, first, Change::Becomes(Section::of(State::Task)));
                builder.change(thread, first, Change::ThreadWorks);
                builder.event(thread, last);
                builder.change(thread, last, Change::ThreadEnds);
            }
            builder.finish()
        };
        for (begin, end) in (1000..1100).flat_map(|begin| (begin + 1..=1101).map(move |end| (begin, end))) {
            let mut part = whole();
            part.cut(begin, end);
            let (first, last) = (part.processes[0].first, part.processes[0].last);
            for thread in 0..3 {
                let spans: Vec<_> = part.spans_of_run(ThreadIndex(thread)).collect();
                let reported = format!("{thread} from {begin} to {end}: {spans:?}");
                assert!(spans.windows(2).all(|two| two[0].end == two[1].start), "{reported}");
                assert_eq!((spans[0].start, spans[spans.len() - 1].end), (first, last), "{reported}");
            }
            let of = |thread: u32| part.spans_of_run(ThreadIndex(thread)).next().unwrap().section.state;
            if begin >= 1030 {
                assert_eq!(of(1), State::Ended, "from {begin} to {end}");
            }
            if end <= 1060 {
                assert_eq!(of(2), State::NotStarted, "from {begin} to {end}");
            }
        }
    }

    /// Task 0 and region 0 are over before the part; region 2 begins in task 1, which is in region 1.
    #[test]
    fn samples_are_of_the_tasks_and_regions_of_the_part() {
        let mut builder = ExecutionBuilder::new();
        let process = builder.add_process("node.1", 5);
        let thread = builder.add_thread(process, 5);
        let [none, outer, inner] = [RegionIndex::NONE, RegionIndex(1), RegionIndex(2)];
        let begins = |region: RegionIndex, parent: RegionIndex| Change::RegionBegins {
            region,
            parent,
            site: SiteIndex::NONE,
            requested: 1,
        };
        let creates = |task: TaskIndex| Change::TaskCreated {
            task,
            ty: TypeIndex(0),
            parent: TaskIndex::NONE,
            region: RegionIndex(0),
        };
        let task = TaskIndex(1);
        let inner_path =
            Change::RegionPath { region: inner, path: PathIndex(0), parent_region: outer, parent_task: task };
        for (at, change) in [
            (0, begins(RegionIndex(0), none)),
            (5, creates(TaskIndex(0))),
            (6, Change::TaskStarts { task: TaskIndex(0) }),
            (8, Change::TaskEnds { task: TaskIndex(0) }),
            (10, Change::RegionEnds { region: RegionIndex(0) }),
            (20, begins(outer, none)),
            (25, creates(task)),
            (30, Change::TaskStarts { task }),
            (40, begins(inner, outer)),
            (40, inner_path),
            (90, Change::RegionEnds { region: inner }),
            (95, Change::TaskEnds { task }),
            (99, Change::RegionEnds { region: outer }),
        ] {
            builder.event(thread, at);
            builder.change(thread, at, change);
        }
        let levels = [
            Level { first: 0, end: 1, region: inner, task: TaskIndex::NONE },
            Level { first: 1, end: 2, region: outer, task },
        ];
        let (weight_ns, flags, state, addresses) = (1, 0, 0, &[7, 8]);
        builder.sample(&NewSample { thread, at: 50, weight_ns, flags, state, levels: &levels, addresses });
        let mut execution = builder.finish();
        execution.cut(15, 60);
        let samples = &execution.samples;
        let found: Vec<_> =
            samples.levels(&samples.rows[0]).iter().map(|level| (level.region, level.task)).collect();
        assert_eq!(found, [(RegionIndex(1), TaskIndex::NONE), (RegionIndex(0), TaskIndex(0))]);
        let path = samples.region_paths[&RegionIndex(1)];
        assert_eq!((path.parent_region, path.parent_task), (RegionIndex(0), TaskIndex(0)));
    }
}
