//! CPUs as workers. Nanos6, nOS-V and NODES run many threads, one at a time on each CPU, so the worker is the
//! CPU: its time is spliced from the threads that run on it, and is idle while none does.

use super::state::loom_cpus::{LoomCpus, LoomNumber, OnCpu};
use super::{Interpreter, Short};
use crate::payload;
use taskscope_event::Code;
use taskscope_event::models::ovni;
use taskscope_execution::{Change, Numbers, Observer, ProcessIndex, ThreadIndex, ThreadKind};

impl Interpreter {
    /// Adds a CPU of a loom in which CPUs are the workers, as the row with the next number. `index`
    /// is the number that events use.
    pub fn add_cpu(&mut self, process: ProcessIndex, loom: LoomNumber, index: i32) -> ThreadIndex {
        let row = self.add_thread(process);
        self.loom_mut(loom).by_index.insert(index, row);
        row
    }

    /// The loom with this number, made if it is new.
    fn loom_mut(&mut self, loom: LoomNumber) -> &mut LoomCpus {
        let number = loom.index();
        if number >= self.looms.len() {
            self.looms.resize_with(number + 1, LoomCpus::default);
        }
        &mut self.looms[number]
    }

    /// `thread`, with this id, belongs to a loom in which CPUs are the workers.
    pub fn works_on_cpus_of(&mut self, thread: ThreadIndex, loom: LoomNumber, tid: i32) {
        self.threads[thread.index()].on_cpu.loom = Some(loom);
        let recorder = self.threads[thread.index()].placed_by;
        let loom = self.loom_mut(loom);
        loom.tids.insert(tid, thread);
        loom.is_shared |= loom.recorder.replace(recorder).is_some_and(|other| other != recorder);
    }

    /// Worker that sends and receives. That is the CPU on which the thread is, if the CPUs belong to one
    /// process. CPUs shared by several processes belong to no rank: there it is the thread.
    pub(super) fn worker_of(&self, thread: ThreadIndex) -> ThreadIndex {
        let on_cpu = self.threads[thread.index()].on_cpu;
        let loom = on_cpu.loom.and_then(|loom| self.looms.get(loom.index())).filter(|loom| !loom.is_shared);
        let Some(loom) = loom else { return thread };
        // Before the runtime places it, it is on none of them.
        on_cpu.cpu.or_else(|| loom.by_index.values().min().copied()).unwrap_or(thread)
    }

    /// Records that the thread, and its loom's CPUs, still exist at `at`, without an event.
    pub fn lives_at(&mut self, thread: ThreadIndex, at: u64) {
        let loom = self.threads.get(thread.index()).and_then(|thread| thread.on_cpu.loom);
        if let Some(loom) = loom.and_then(|loom| self.looms.get_mut(loom.index())) {
            loom.last = loom.last.max(at);
        }
    }

    /// Ends the time of all CPUs. Returns the tasks with unknown execution, and the numbers of tasks and
    /// regions. Call after the last event.
    pub fn finish<O: Observer>(&mut self, out: &mut O) {
        self.leave_task_fors(out);
        out.numbers(Numbers { tasks: self.tasks.take_numbers(), regions: self.region_numbers() });
        for loom in self.looms.iter().filter(|loom| loom.begun) {
            for cpu in loom.by_index.values() {
                out.change(*cpu, loom.last, Change::ThreadEnds);
            }
        }
    }

    /// The CPUs of a loom exist from its first event to its last.
    #[inline(always)]
    pub(super) fn extend_loom<O: Observer>(&mut self, thread: ThreadIndex, at: u64, out: &mut O) {
        let Some(loom) = self.threads[thread.index()].on_cpu.loom else { return };
        let Some(loom) = self.looms.get_mut(loom.index()) else { return };
        loom.last = loom.last.max(at);
        if !loom.begun {
            loom.begun = true;
            for cpu in loom.by_index.values() {
                out.change(*cpu, at, Change::ThreadBegins);
                out.change(*cpu, at, Change::ThreadIs(ThreadKind::Cpu));
                out.change(*cpu, at, Change::ThreadWorks);
                out.change(*cpu, at, Change::Shows(ThreadIndex::NONE));
            }
        }
    }

    /// Returns the thread that runs on the CPU to which an event moves its thread, or another one, and that
    /// other thread.
    #[inline(never)]
    pub(super) fn reached_on_cpus(
        &self,
        thread: ThreadIndex,
        code: Code,
        payload: &[u8],
    ) -> [ThreadIndex; 2] {
        let on_cpu = self.threads[thread.index()].on_cpu;
        let Some(loom) = on_cpu.loom.and_then(|loom| self.looms.get(loom.index())) else {
            return [ThreadIndex::NONE; 2];
        };
        let word = |offset| payload::u32_at(payload, offset).map(|word| word as i32);
        let named = || word(0).and_then(|index| loom.by_index.get(&index)).copied();
        let (cpu, other) = match code {
            ovni::THREAD_EXECUTES | ovni::SET_AFFINITY => (named(), None),
            ovni::REMOTE_AFFINITY => (named(), word(4).and_then(|tid| loom.tids.get(&tid)).copied()),
            ovni::THREAD_RESUMES => (on_cpu.cpu, None),
            _ => (None, None),
        };
        let occupant = cpu.and_then(|cpu| self.threads[cpu.index()].runs.last().copied());
        [occupant, other].map(|reached| reached.unwrap_or(ThreadIndex::NONE))
    }

    /// Moves a thread to the CPU that the event names, if it names one. Called before its state changes.
    pub(super) fn place_on_cpu<O: Observer>(
        &mut self,
        thread: ThreadIndex,
        at: u64,
        code: Code,
        payload: &[u8],
        out: &mut O,
    ) -> Result<(), Short> {
        let Some(loom) = self.threads[thread.index()].on_cpu.loom else { return Ok(()) };
        let cpu_at = |looms: &[LoomCpus]| {
            let index = payload::u32_at(payload, 0).ok_or(Short)? as i32;
            Ok(looms.get(loom.index()).and_then(|loom| loom.by_index.get(&index)).copied())
        };
        match code {
            ovni::THREAD_EXECUTES => {
                let cpu = cpu_at(&self.looms)?;
                self.move_to(thread, at, cpu, true, out);
            }
            ovni::SET_AFFINITY => {
                let (cpu, running) = (cpu_at(&self.looms)?, self.threads[thread.index()].on_cpu.running);
                self.move_to(thread, at, cpu, running, out);
            }
            ovni::REMOTE_AFFINITY => {
                let cpu = cpu_at(&self.looms)?;
                let tid = payload::u32_at(payload, 4).ok_or(Short)? as i32;
                let other = self.looms.get(loom.index()).and_then(|loom| loom.tids.get(&tid)).copied();
                if let Some(other) = other {
                    let running = self.threads[other.index()].on_cpu.running;
                    self.move_to(other, at, cpu, running, out);
                }
            }
            ovni::THREAD_RESUMES => {
                let cpu = self.threads[thread.index()].on_cpu.cpu;
                self.move_to(thread, at, cpu, true, out);
            }
            ovni::THREAD_PAUSES | ovni::THREAD_COOLS | ovni::THREAD_WARMS | ovni::THREAD_ENDS => {
                let cpu = self.threads[thread.index()].on_cpu.cpu;
                self.move_to(thread, at, cpu, false, out);
            }
            _ => {}
        }
        Ok(())
    }

    fn move_to<O: Observer>(
        &mut self,
        thread: ThreadIndex,
        at: u64,
        cpu: Option<ThreadIndex>,
        running: bool,
        out: &mut O,
    ) {
        let before = self.threads[thread.index()].on_cpu;
        self.threads[thread.index()].on_cpu = OnCpu { cpu, running, ..before };
        let (left, come) = (before.cpu.filter(|_| before.running), cpu.filter(|_| running));
        if left == come {
            return;
        }
        if let Some(left) = left {
            let runs = &mut self.threads[left.index()].runs;
            let shown = runs.last().copied();
            runs.retain(|other| *other != thread);
            if runs.last().copied() != shown {
                out.change(left, at, Change::Shows(runs.last().copied().unwrap_or(ThreadIndex::NONE)));
            }
            if runs.len() == 1 {
                out.change(left, at, Change::IsShared(false));
            }
        }
        if let Some(come) = come {
            let runs = &mut self.threads[come.index()].runs;
            runs.push(thread);
            out.change(come, at, Change::Shows(thread));
            if runs.len() == 2 {
                out.change(come, at, Change::IsShared(true));
            }
        }
    }
}
