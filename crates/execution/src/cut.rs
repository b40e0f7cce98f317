//! A part of an execution in time, as an execution of its own.

#[cfg(test)]
mod tests;

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
            thread.track = part.cut_track(&thread.track, activities, &mut activity_numbers);
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
        let kept = region_paths.map(|(region, path)| (part.region(region), part.cut_path(path)));
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

    fn cut_path(&self, path: RegionPath) -> RegionPath {
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
    fn cut_track(&self, track: &Track, activities: &Arc<Activities>, numbers: &mut ActivityNumbers) -> Track {
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
        let message_rows: Vec<u32> =
            numbers(messages.iter().map(|m| within(m.sent.min(m.posted), m.received))).collect();
        let part_rows: Vec<u32> =
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
            message_rows[row - 1] != u32::MAX
        });
        let mut row = 0;
        participations.retain_mut(|part| {
            part.call = number(&kept_calls, part.call);
            part.begun = part.begun.max(self.begin);
            if part.completed > self.end {
                part.completed = NO_TIME;
            }
            row += 1;
            part_rows[row - 1] != u32::MAX
        });
        fulfilments.retain_mut(|fulfilment| {
            fulfilment.task = self.task(fulfilment.task);
            fulfilment.message = number(&message_rows, fulfilment.message);
            fulfilment.participation = number(&part_rows, fulfilment.participation);
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
