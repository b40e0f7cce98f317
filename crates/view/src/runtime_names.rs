//! Names of the runtimes' subsystems, idle states, threads and tasks, as in ovni's views, with explanations.
//!
//! The names are the runtimes' own. How a part counts in reports follows from its event.

use taskscope_execution::State;

/// The accounting of a named interval's time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Counts {
    /// Counts as a state, and so as its cause.
    As(State),
    /// Counts as the enclosing state: the name alone decides nothing.
    Around,
    /// Takes no worker time: a moment, or a task that no worker executes.
    Nothing,
}

/// The name of something that a runtime's events show.
#[derive(Clone, Copy, Debug)]
pub struct RuntimeName {
    /// The runtime.
    pub runtime: &'static str,
    /// The named thing: a section, an idle state, a kind of thread, a state of tasks or threads, a function,
    /// a point.
    pub aspect: &'static str,
    /// The name, as ovni's views write it.
    pub label: &'static str,
    /// The event that begins it, and the one that ends it, if any; empty if there are several.
    pub events: &'static str,
    /// The meaning.
    pub meaning: &'static str,
    /// The accounting of its time, unless its event decides that.
    counts: Option<Counts>,
}

impl RuntimeName {
    /// The code of the event that begins it.
    fn begin(&self) -> Option<[u8; 3]> {
        self.events.as_bytes().first_chunk().copied()
    }

    /// The accounting of its time in reports.
    pub fn counts(&self) -> Counts {
        let event_state = || taskscope_session::state_of_event(self.begin()?).map(Counts::As);
        self.counts.or_else(event_state).unwrap_or(Counts::Nothing)
    }

    /// Whether it is called so: by its label, the part behind the colon, one of its events, or any of these behind the
    /// runtime's name.
    fn is_called(&self, asked: &str) -> bool {
        let wanted = plain(asked);
        let runtime = [plain(self.runtime), self.runtime.to_lowercase().replace('-', "")];
        let behind = runtime.iter().find_map(|runtime| wanted.strip_prefix(runtime)?.strip_prefix(' '));
        let (label, last) = (plain(self.label), plain(self.label.rsplit(": ").next().unwrap_or_default()));
        [Some(&*wanted), behind].into_iter().flatten().any(|wanted| wanted == label || wanted == last)
            || self.events.split(' ').any(|code| code == asked)
    }
}

/// A name without case, signs between its words, and hyphens.
fn plain(name: &str) -> String {
    let name = name.to_lowercase().replace([' ', '-', '_', '.', ':', '/'], " ");
    name.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// All that is called so, by any runtime.
pub fn find(name: &str) -> Vec<&'static RuntimeName> {
    RUNTIME_NAMES.iter().filter(|row| row.is_called(name)).collect()
}

macro_rules! counts {
    () => {
        None
    };
    (around) => {
        Some(Counts::Around)
    };
    (nothing) => {
        Some(Counts::Nothing)
    };
    ($state:ident) => {
        Some(Counts::As(State::$state))
    };
}

macro_rules! names {
    ($( $runtime:literal $aspect:literal { $( $events:literal $label:literal $(=> $counts:ident)?: $meaning:literal; )* } )*) => {
        /// All names.
        pub static RUNTIME_NAMES: &[RuntimeName] = &[$($(
            RuntimeName {
                runtime: $runtime,
                aspect: $aspect,
                label: $label,
                events: $events,
                meaning: $meaning,
                counts: counts!($($counts)?),
            },
        )*)*];
    };
}

names! {
    "Nanos6" "section" {
        "6Tx 6Te" "Task: Running body": "A worker executes the program's code of a task.";
        "6C[ 6C]" "Task: Creating": "Memory for a task is allocated and filled (nanos6_create_task).";
        "6U[ 6U]" "Task: Submitting": "A created task is handed over (nanos6_submit_task): its dependences are registered, and it is queued if none is open.";
        "6F[ 6F]" "Task: Spawning function": "A function is made a task of its own (nanos6_spawn_function).";
        "6O[ 6O]" "Task: Running task for": "A collaborator executes chunks of a task-for. The event names neither the task nor its type, so reports show all under the type `task for`. Nanos6 before 4.0 only.";
        "6Sa 6SA" "Scheduler: Adding ready tasks": "Tasks that became ready are put into the lock-free queues before the scheduler.";
        "6Sp 6SP" "Scheduler: Processing ready tasks": "The thread with the scheduler's lock moves tasks from these queues into the scheduler.";
        "6S[ 6S]" "Scheduler: Serving tasks": "The thread has the scheduler's lock and gives tasks to the others that wait for one.";
        "6Dr 6DR" "Dependency: Registering": "The accesses of a task are linked with those of earlier tasks.";
        "6Du 6DU" "Dependency: Unregistering": "The accesses of a task that ended are released, which makes its successors ready.";
        "6Bw 6BW" "Blocking: Taskwait": "A task waits for its children (taskwait). The thread leaves its CPU to others meanwhile.";
        "6Bb 6BB" "Blocking: Blocking current task": "A task blocks itself through the blocking API, as TAMPI does, until another unblocks it.";
        "6Bu 6BU" "Blocking: Unblocking remote task": "A task that is blocked is made ready again.";
        "6Bf 6BF" "Blocking: Wait for deadline": "A task lets so much time pass (nanos6_wait_for) and is queued again after it.";
        "6Ma 6MA" "Memory: Allocating": "The runtime allocates memory. A thread's first calls can be long.";
        "6Mf 6MF" "Memory: Freeing": "The runtime frees memory.";
        "6W[ 6W]" "Worker: Looking for work": "A worker asks the scheduler for a task and has none.";
        "6Wt 6WT" "Worker: Handling task": "A worker prepares and ends the execution of a task that it was given.";
        "6Ww 6WW" "Worker: Switching to another thread": "A thread hands its CPU over to another thread.";
        "6Wm 6WM" "Worker: Migrating CPU": "A thread moves to another CPU.";
        "6Ws 6WS" "Worker: Suspending thread": "A thread goes to sleep.";
        "6Wr 6WR" "Worker: Resuming another thread": "A thread wakes another one.";
        "6Wg 6WG" "Worker: Sponge mode": "The worker sleeps on its CPU and executes nothing, so that the system has a place for interrupts, daemons and other programs. CPUs are put into it by cpumanager.sponge_cpus.";
        "" "Unknown subsystem" => NoSubsystem: "The thread is in no section of the runtime: code of the program, or of the runtime that has no events. 0 or empty in Paraver; `no subsystem` in reports.";
    }
    "Nanos6" "idle state" {
        "6Pp" "Progressing" => around: "The worker has something to do.";
        "6Pr" "Resting": "The worker asked for a task and got none; also a CPU on which no thread runs.";
        "6Pa" "Absorbing noise": "The CPU is in sponge mode: left free for the noise of the system.";
    }
    "Nanos6" "kind of thread" {
        "6Hl 6HL" "Leader" => around: "Helps the process to start and end `main`; executes no tasks by itself.";
        "6Hm 6HM" "Main" => around: "The process's first thread, from before `main` begins.";
        "6Hw 6HW" "Worker" => around: "Made by the runtime; asks for tasks and executes them. A task that is paused keeps its thread, so there may be many more than CPUs.";
        "6He 6HE" "External" => around: "Made by the program, not by the runtime.";
    }
    "Nanos6" "state of a task" {
        "6Tc" "Created" => nothing: "The task exists and has not begun: its dependences are open, or no worker took it yet.";
        "6Tx" "Running": "A worker executes it, also while it is in a section of the runtime.";
        "6Tp 6Tr" "Paused" => Paused: "It left its worker before its end: it waits for children, is blocked, or lets time pass.";
        "6Te" "Dead" => nothing: "It has ended.";
    }
    "Nanos6" "point" {
        "6Sr" "EV Scheduler: Recv task" => nothing: "The thread was given a task by the one that serves.";
        "6Ss" "EV Scheduler: Send task" => nothing: "The thread that serves gave a task to another one.";
        "6S@" "EV Scheduler: Self-assign task" => nothing: "The thread that serves gave a task to itself.";
        "" "EV CPU: Becomes idle" => nothing: "Listed in Paraver's palette; current versions emit no such event.";
        "" "EV CPU: Becomes active" => nothing: "Listed in Paraver's palette; current versions emit no such event.";
        "6W*" "EV Worker: Waking another thread" => nothing: "The thread signals another one to wake up.";
    }
    "nOS-V" "section" {
        "VTx VTe" "Task: In body": "A worker executes the program's code of a task.";
        "VSh VSf" "Scheduler: Hungry": "A worker asks for a task and has none.";
        "VS[ VS]" "Scheduler: Serving": "The thread has the scheduler's lock and gives tasks to those that are hungry.";
        "VU[ VU]" "Scheduler: Submitting": "Tasks are put into the scheduler's queues.";
        "VMa VMA" "Memory: Allocating": "Memory of the shared segment is allocated.";
        "VMf VMF" "Memory: Freeing": "Memory of the shared segment is freed.";
        "VAr VAR" "API: Create": "nosv_create: a task is made.";
        "VAd VAD" "API: Destroy": "nosv_destroy: a task is freed.";
        "VAs VAS" "API: Submit": "nosv_submit: a task is made ready, or an event of it is fulfilled.";
        "VAp VAP" "API: Pause": "nosv_pause: the current task leaves its CPU until it is submitted again.";
        "VAy VAY" "API: Yield": "nosv_yield: the current task lets others run first.";
        "VAw VAW" "API: Waitfor": "nosv_waitfor: the current task leaves its CPU for a given time.";
        "VAc VAC" "API: Scheduling point": "nosv_schedpoint: the scheduler may switch to another task, once a quantum has passed.";
        "VAa VAA" "API: Attach": "nosv_attach: a thread of the program becomes a task of nOS-V.";
        "VAe VAE" "API: Detach": "nosv_detach: such a thread leaves nOS-V.";
        "VAl VAL" "API: Mutex lock": "Taking a nosv_mutex; a task that must wait leaves its CPU.";
        "VAt VAT" "API: Mutex trylock": "Taking a nosv_mutex if it is free.";
        "VAu VAU" "API: Mutex unlock": "Releasing a nosv_mutex, and waking the next in line.";
        "VAb VAB" "API: Barrier wait": "A task waits at a nosv_barrier for the others.";
        "VAo VAO" "API: Cond wait": "A task waits at a condition variable.";
        "VAg VAG" "API: Cond signal": "One task that waits at a condition variable is woken.";
        "VAk VAK" "API: Cond broadcast": "All tasks that wait at a condition variable are woken.";
        "VAj VAJ" "API: Join": "Waiting until a task has ended.";
        "VAm VAM" "API: Join all": "Waiting until several tasks have ended.";
        "VAi VAI" "API: Wait": "Waiting for a task.";
        "VAn VAN" "API: Wait all": "Waiting for several tasks.";
        "VHw VHW" "Thread: Worker": "A worker in code of nOS-V that has no section of its own.";
        "VHd VHD" "Thread: Delegate": "The thread that makes workers on behalf of other processes of the instance.";
        "" "Unknown subsystem" => NoSubsystem: "The thread is in no section of the runtime. 0 or empty in Paraver; `no subsystem` in reports.";
    }
    "nOS-V" "section (old)" {
        "VSN VSn" "Scheduler: Serving": "The thread serves without blocking; older versions.";
    }
    "nOS-V" "idle state" {
        "VPp" "Progressing" => around: "The worker has something to do.";
        "VPr" "Resting": "The worker waits for a task, or is put to sleep; also a CPU on which no thread runs.";
        "VPa" "Absorbing noise": "The CPU is left free for the noise of the system.";
    }
    "nOS-V" "kind of thread" {
        "" "Attached" => around: "Made by the program, which attached it as a task (nosv_attach).";
    }
    "nOS-V" "state of a task body" {
        "VTc" "Created" => nothing: "The body exists and has not begun. A parallel task (VTC) has several bodies.";
        "VTx" "Running": "A worker executes it.";
        "VTp VTr" "Paused" => Paused: "It left its worker before its end; parallel tasks cannot.";
        "VTe" "Dead" => nothing: "It has ended; a task that is submitted again runs again (as NODES's taskiter does).";
    }
    "nOS-V" "point" {
        "VSr" "EV Scheduler: Recv task" => nothing: "The thread was given a task by the one that serves.";
        "VSs" "EV Scheduler: Send task" => nothing: "The thread that serves gave a task to another one.";
        "VS@" "EV Scheduler: Self-assign task" => nothing: "The thread that serves gave a task to itself.";
    }
    "NODES" "section" {
        "DR[ DR]" "Dependencies: Registering task accesses": "The accesses of a task are linked with those of earlier tasks.";
        "DU[ DU]" "Dependencies: Unregistering task accesses": "The accesses of a task that ended are released, which may make others ready.";
        "DW[ DW]" "If0: Waiting for an If0 task": "A task waits for a child with if(0), which another executes.";
        "DI[ DI]" "If0: Executing an If0 task inline": "A child with if(0) is executed on the spot.";
        "DT[ DT]" "Taskwait: Taskwait": "A task waits for its children.";
        "DC[ DC]" "Add Task: Creating a task": "Memory for a task is allocated and filled.";
        "DS[ DS]" "Add Task: Submitting a task": "A task is handed over to the scheduler of nOS-V.";
        "DP[ DP]" "Spawn Function: Spawning a function": "A function is made a task of its own (nanos6_spawn_function).";
    }
    "OpenMP" "state of a thread (OMPT)" {
        "" "ompt_state_work_serial" => Serial: "In code outside of parallel regions.";
        "" "ompt_state_work_parallel" => ImplicitTask: "In code of a parallel region: of a construct or task, if it is in one.";
        "" "ompt_state_work_reduction" => ImplicitTask: "Combining the values of a reduction.";
        "" "ompt_state_work_free_agent" => Task: "A thread outside of the team executes a task of it (OpenMP 6.0).";
        "" "ompt_state_work_induction" => ImplicitTask: "Computing the values of an induction (OpenMP 6.0).";
        "" "ompt_state_wait_barrier_implicit_parallel" => JoinBarrier: "Waiting in the barrier at the end of a parallel region.";
        "" "ompt_state_wait_barrier_implicit_workshare" => Barrier: "Waiting in the barrier at the end of a worksharing construct.";
        "" "ompt_state_wait_barrier_implicit" => Barrier: "Waiting in an implicit barrier; older runtimes do not report the construct.";
        "" "ompt_state_wait_barrier_explicit" => Barrier: "Waiting in a barrier that the program wrote.";
        "" "ompt_state_wait_barrier_implementation" => Barrier: "Waiting in a barrier that the runtime needs.";
        "" "ompt_state_wait_barrier_teams" => JoinBarrier: "Waiting in the barrier at the end of a teams construct.";
        "" "ompt_state_wait_barrier" => Barrier: "Waiting in a barrier; older runtimes do not report which one.";
        "" "ompt_state_wait_taskwait" => Taskwait: "Waiting for the children of the current task; with dependences, for those that come before.";
        "" "ompt_state_wait_taskgroup" => Taskgroup: "Waiting for the tasks of a taskgroup.";
        "" "ompt_state_wait_mutex" => LockWait: "Waiting for exclusive access; the runtime does not report the object.";
        "" "ompt_state_wait_lock" => LockWait: "Waiting for a lock, nestable or not.";
        "" "ompt_state_wait_critical" => CriticalWait: "Waiting for a critical construct.";
        "" "ompt_state_wait_atomic" => AtomicWait: "Waiting for an atomic construct.";
        "" "ompt_state_wait_ordered" => OrderedWait: "Waiting for the turn in an ordered construct.";
        "" "ompt_state_wait_target" => TargetWait: "Waiting for a target construct.";
        "" "ompt_state_wait_target_map" => TargetWait: "Waiting for the mapping of data to or from a device.";
        "" "ompt_state_wait_target_update" => TargetWait: "Waiting for a target update.";
        "" "ompt_state_idle" => Idle: "A thread of the runtime outside of parallel regions.";
        "" "ompt_state_overhead" => Runtime: "In the runtime, not waiting: forking, joining, creating, scheduling.";
        "" "ompt_state_undefined" => around: "Not known to the runtime: a thread that it did not create.";
    }
    "devices" "kind of operation" {
        "" "kernel" => TargetWait: "Code on the device (OpenCL: clEnqueueNDRangeKernel). A thread that waits for it is waiting for a device.";
        "" "copy-in" => TargetWait: "A copy from the host to the device.";
        "" "copy-out" => TargetWait: "A copy from the device to the host.";
        "" "copy" => TargetWait: "A copy within the device, between devices, or of unknown direction.";
        "" "fill" => TargetWait: "Memory is filled with a value.";
        "" "synchronisation" => TargetWait: "A marker, barrier or wait in the queue.";
        "" "map" => TargetWait: "The host gets a view of device memory, or gives it back (clEnqueueMapBuffer).";
        "" "host-code" => TargetWait: "Code of the host that runs as an operation of the queue.";
        "" "graph" => TargetWait: "Recorded work as a whole: a graph, or a command list.";
        "" "call" => around: "A call of the host that submits operations or waits for them; only its waiting part counts as waiting for a device.";
        "" "overhead" => nothing: "Time that the vendor's own collection of records takes.";
        "" "other" => TargetWait: "Another operation.";
    }
    "OpenMP-V" "section" {
        "PBf PBF" "Barrier: Fork": "Workers wait for their next parallel region; the thread that begins one passes through it.";
        "PBj PBJ" "Barrier: Join": "The barrier at the end of a parallel region.";
        "PBb PBB" "Barrier: Plain": "A barrier inside a region, explicit or at the end of a worksharing construct.";
        "PBs PBS" "Barrier: Spin wait" => around: "The thread spins inside a barrier. Shown as the barrier around it.";
        "PBt PBT" "Barrier: Task": "Waiting in a barrier until the tasks of the region have ended.";
        "PIa PIA" "Critical: Acquiring": "Waiting to enter a critical construct.";
        "PIr PIR" "Critical: Releasing": "Leaving a critical construct.";
        "PI[ PI]" "Critical: Section" => around: "In the body of a critical construct, which counts as the code around it.";
        "PWd PWD" "Work-distribution: Distribute": "In a distribute construct.";
        "PWy PWY" "Work-distribution: Dynamic for initialization": "A loop with a dynamic schedule is set up.";
        "PWc PWC" "Work-distribution: Dynamic for chunk": "In iterations of a loop with a dynamic schedule.";
        "PWs PWS" "Work-distribution: Static for chunk": "In iterations of a loop with a static schedule.";
        "PWe PWE" "Work-distribution: Section": "In a section of a sections construct.";
        "PWi PWI" "Work-distribution: Single": "In a single construct.";
        "PTa PTA" "Task: Allocation": "Memory for a task is allocated.";
        "PTc PTC" "Task: Check deps": "The runtime looks whether dependences of a task are open.";
        "PTd PTD" "Task: Duplicating": "A taskloop copies its task for another part of the iterations.";
        "PTr PTR" "Task: Releasing deps": "Dependences of a task that ended are released.";
        "PT[ PT]" "Task: Running task": "The runtime runs a task; the body itself has events of its own.";
        "PTi PTI" "Task: Running task if0": "The same for a task that is not deferred.";
        "PTs PTS" "Task: Scheduling": "A task is handed over to the scheduler.";
        "PTg PTG" "Task: Taskgroup": "Waiting for the tasks of a taskgroup.";
        "PTt PTT" "Task: Taskwait": "Waiting for the children of the current task.";
        "PTw PTW" "Task: Taskwait deps": "Waiting for the dependences of a taskwait, or of a task that is not deferred.";
        "PTy PTY" "Task: Taskyield": "In a taskyield.";
        "PA[ PA]" "Runtime: Attached": "The initial thread belongs to the runtime: its serial code.";
        "PCf PCF" "Runtime: Fork call": "The thread begins and ends a parallel region.";
        "PCi PCI" "Runtime: Initialization": "The runtime starts.";
        "PMi PMI" "Runtime: Internal microtask": "A parallel region of the runtime's own, such as for a barrier of tasks.";
        "PMu PMU" "Runtime: User microtask": "In the program's code of a parallel region.";
        "PH[ PH]" "Runtime: Worker main loop": "A worker waits for regions and executes them.";
    }
    "OpenMP-V" "state of a task" {
        "PPc" "Created" => nothing: "The task exists and has not begun.";
        "PPx" "Running": "A thread executes it.";
        "PPe" "Dead" => nothing: "It has ended.";
        "PQx PQe" "Worksharing task" => Worksharing: "A thread is in its share of a worksharing construct of this type.";
    }
    "TAMPI" "section" {
        "TCi TCI" "Communication: Issuing a non-blocking operation": "TAMPI starts a non-blocking MPI operation in place of the program's call.";
        "TGc TGC" "Global array: Checking pending requests": "The polling task tests the requests of the process that are open.";
        "TLi TLI" "Library code: Interface function": "The program is in a function of TAMPI, or in an MPI call that TAMPI takes.";
        "TLp TLP" "Library code: Polling function": "The polling task looks for requests that have completed.";
        "TQa TQA" "Queue: Adding to a queue": "Requests of a call are queued for the polling task.";
        "TQt TQT" "Queue: Transfering to global array": "The polling task takes queued requests over.";
        "TRc TRC" "Request: Processing a completed request": "A request has completed: its task is notified, and made ready if that was the last one.";
        "TRt TRT" "Request: Testing a request": "One request is tested (MPI_Test).";
        "TRa TRA" "Request: Testing all requests": "Requests are tested together (MPI_Testall).";
        "TRs TRS" "Request: Testing some requests": "Requests are tested for those that have completed (MPI_Testsome).";
        "TTc TTC" "Ticket: Creating a ticket": "The requests of a call are bound to the task that waits for them.";
        "TTw TTW" "Ticket: Waiting a ticket": "A task waits in a blocking call until its requests have completed; its CPU is free meanwhile.";
    }
    "MPI" "function" {
        "MUi MUI" "MPI_Init": "Starts MPI.";
        "MUt MUT" "MPI_Init_thread": "Starts MPI with a level of thread support.";
        "MUf MUF" "MPI_Finalize": "Ends MPI.";
        "MW[ MW]" "MPI_Wait": "Waits for one request.";
        "MWa MWA" "MPI_Waitall": "Waits for all of several requests.";
        "MWy MWY" "MPI_Waitany": "Waits for one of several requests.";
        "MWs MWS" "MPI_Waitsome": "Waits for at least one of several requests.";
        "MT[ MT]" "MPI_Test": "Looks whether a request has completed.";
        "MTa MTA" "MPI_Testall": "Looks whether all of several requests have completed.";
        "MTy MTY" "MPI_Testany": "Looks whether one of several requests has completed.";
        "MTs MTS" "MPI_Testsome": "Looks which of several requests have completed.";
        "MR[ MR]" "MPI_Recv": "Waits for a message and receives it.";
        "MS[ MS]" "MPI_Send": "Sends a message; waits for the receiver if it is not buffered.";
        "MSb MSB" "MPI_Bsend": "Sends a message from the program's buffer.";
        "MSr MSR" "MPI_Rsend": "Sends a message to a receiver that is known to wait.";
        "MSs MSS" "MPI_Ssend": "Sends a message and waits until the receiver takes it.";
        "MRs MRS" "MPI_Sendrecv": "Sends a message and receives one.";
        "MRo MRO" "MPI_Sendrecv_replace": "Sends a message and receives one in its place.";
        "Mr[ Mr]" "MPI_Irecv": "Starts to receive a message.";
        "Ms[ Ms]" "MPI_Isend": "Starts to send a message.";
        "Msb MsB" "MPI_Ibsend": "Starts to send from the program's buffer.";
        "Msr MsR" "MPI_Irsend": "Starts to send to a receiver that is known to wait.";
        "Mss MsS" "MPI_Issend": "Starts to send; completes once the receiver takes the message.";
        "Mrs MrS" "MPI_Isendrecv": "Starts to send one message and to receive another.";
        "Mro MrO" "MPI_Isendrecv_replace": "Starts to send a message and to receive one in its place.";
        "MAg MAG" "MPI_Allgather": "Every rank gets the parts of all.";
        "MAr MAR" "MPI_Allreduce": "Every rank gets the sum, or another reduction, over all.";
        "MAa MAA" "MPI_Alltoall": "Every rank sends a part to every other.";
        "MCb MCB" "MPI_Barrier": "Waits until all ranks are there.";
        "MDb MDB" "MPI_Bcast": "One rank sends to all.";
        "MDg MDG" "MPI_Gather": "One rank gets the parts of all.";
        "ME[ ME]" "MPI_Reduce": "One rank gets a reduction over all.";
        "MEs MES" "MPI_Reduce_scatter": "Reduces, and gives each rank its part.";
        "MEb MEB" "MPI_Reduce_scatter_block": "Reduces, and gives each rank a part of equal size.";
        "MDs MDS" "MPI_Scatter": "One rank gives each its part.";
        "MCs MCS" "MPI_Scan": "Each rank gets the reduction over those up to itself.";
        "MCe MCE" "MPI_Exscan": "Each rank gets the reduction over those before itself.";
        "Mag MaG" "MPI_Iallgather": "Starts an MPI_Allgather.";
        "Mar MaR" "MPI_Iallreduce": "Starts an MPI_Allreduce.";
        "Maa MaA" "MPI_Ialltoall": "Starts an MPI_Alltoall.";
        "Mcb McB" "MPI_Ibarrier": "Starts an MPI_Barrier.";
        "Mdb MdB" "MPI_Ibcast": "Starts an MPI_Bcast.";
        "Mdg MdG" "MPI_Igather": "Starts an MPI_Gather.";
        "Me[ Me]" "MPI_Ireduce": "Starts an MPI_Reduce.";
        "Mes MeS" "MPI_Ireduce_scatter": "Starts an MPI_Reduce_scatter.";
        "Meb MeB" "MPI_Ireduce_scatter_block": "Starts an MPI_Reduce_scatter_block.";
        "Mds MdS" "MPI_Iscatter": "Starts an MPI_Scatter.";
        "Mcs McS" "MPI_Iscan": "Starts an MPI_Scan.";
        "Mce McE" "MPI_Iexscan": "Starts an MPI_Exscan.";
    }
    "kernel" "state of a thread" {
        "KCO KCI" "Context switch: Out of the CPU": "The kernel took the thread off its CPU, or the thread sleeps. nOS-V records it from ovni.level 3 on.";
    }
    "ovni" "state of a thread" {
        "" "Unknown" => NotStarted: "Before the thread's first event.";
        "OHx" "Running" => around: "The thread runs on its CPU, as far as the runtime knows.";
        "OHp OHr" "Paused" => Idle: "The runtime put the thread to sleep; its CPU is free or runs another thread.";
        "OHc" "Cooling" => Idle: "The thread is about to sleep and wakes the one that follows it on its CPU.";
        "OHw" "Warming" => Idle: "The thread is being woken, and another one may still be on its CPU.";
        "OHe" "Dead" => Ended: "The thread has ended.";
        "OF[ OF]" "Flushing" => around: "The recorder writes the thread's events to disk.";
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use taskscope_event::models::MODELS;
    use taskscope_event::spec::Effect;
    use taskscope_execution::devices::DeviceOperation;

    fn row(code: [u8; 3]) -> Option<&'static RuntimeName> {
        RUNTIME_NAMES.iter().find(|row| row.events.split(' ').any(|event| event.as_bytes() == code))
    }

    #[test]
    fn every_labelled_event_is_explained_under_its_label() {
        for event in MODELS.iter().filter(|model| !model.own).flat_map(|model| model.events) {
            let (Effect::Push(_, _, label) | Effect::Pop(_, _, label) | Effect::Set(_, _, label)) =
                event.effect
            else {
                continue;
            };
            let row = row(event.code.0).unwrap_or_else(|| panic!("{label}: {} is not explained", event.code));
            assert_eq!(row.label, label, "{}", event.code);
            assert!(find(label).iter().any(|found| std::ptr::eq(*found, row)), "{label}");
            assert!(
                find(&event.code.to_string()).iter().any(|found| std::ptr::eq(*found, row)),
                "{}",
                event.code
            );
        }
    }

    #[test]
    fn every_event_of_an_explanation_exists() {
        for code in RUNTIME_NAMES.iter().flat_map(|row| row.events.split(' ')).filter(|code| !code.is_empty())
        {
            let known =
                MODELS.iter().flat_map(|model| model.events).any(|event| event.code.to_string() == code);
            assert!(known, "{code}");
        }
    }

    #[test]
    fn names_are_found_by_label_part_and_runtime() {
        let found = |asked: &str| -> Vec<(&str, &str)> {
            find(asked).iter().map(|row| (row.runtime, row.label)).collect()
        };
        assert_eq!(found("sponge mode"), [("Nanos6", "Worker: Sponge mode")]);
        assert_eq!(found("Worker: Looking for work"), [("Nanos6", "Worker: Looking for work")]);
        assert_eq!(found("nosv resting"), [("nOS-V", "Resting")]);
        assert_eq!(found("nOS-V: Resting"), [("nOS-V", "Resting")]);
        assert_eq!(found("absorbing noise").len(), 2);
        assert_eq!(found("mpi_waitall"), [("MPI", "MPI_Waitall")]);
        assert_eq!(found("6Hl"), [("Nanos6", "Leader")]);
        assert_eq!(found("no such name"), []);
    }

    /// Names of a runtime that are explained.
    fn labels(runtime: &str) -> Vec<&'static str> {
        RUNTIME_NAMES.iter().filter(|row| row.runtime == runtime).map(|row| row.label).collect()
    }

    #[test]
    fn every_value_of_a_view_is_explained() {
        let values: Vec<_> = taskscope_model::labels_of_views().collect();
        assert!(values.len() > 150, "{}", values.len());
        for (model, title, label) in values {
            let runtime = match MODELS.iter().find(|row| row.letter == model).unwrap().name {
                "nanos6" => "Nanos6",
                "nosv" => "nOS-V",
                "nodes" => "NODES",
                "openmp" => "OpenMP-V",
                "tampi" => "TAMPI",
                "mpi" => "MPI",
                name => name,
            };
            assert!(labels(runtime).contains(&label.as_str()), "{title}: {label}");
        }
        for role in taskscope_execution::RuntimeRole::ALL {
            let known = |row: &RuntimeName| row.label.to_lowercase().ends_with(role.name());
            assert!(RUNTIME_NAMES.iter().any(known), "{}", role.name());
        }
        let kinds = (0..32).map(|kind| DeviceOperation { kind, ..DeviceOperation::default() });
        for name in kinds.map(|operation| operation.kind_name()) {
            assert!(labels("devices").contains(&name), "{name}");
        }
    }

    #[test]
    fn states_that_take_time_count_as_one_cause() {
        for row in RUNTIME_NAMES {
            let event_state = row.begin().and_then(taskscope_session::state_of_event);
            let is_moment = row.aspect == "point" || row.aspect.starts_with("state of a task");
            let has_one = row.counts.is_some() || event_state.is_some();
            assert!(has_one, "{} of {}: no cause", row.label, row.runtime);
            assert!(
                is_moment || row.runtime == "devices" || row.counts() != Counts::Nothing,
                "{}",
                row.label
            );
            // The event's state takes precedence, if it has one.
            if let (Some(Counts::As(own)), Some(event_state)) = (row.counts, event_state) {
                assert_eq!(own, event_state, "{} of {}", row.label, row.runtime);
            }
        }
    }

    #[test]
    fn time_counts_by_the_models_rule() {
        let state = |asked: &str| match find(asked)[0].counts() {
            Counts::As(state) => Some(state),
            Counts::Around | Counts::Nothing => None,
        };
        assert_eq!(state("Worker: Sponge mode"), Some(State::AbsorbingNoise));
        assert_eq!(state("Nanos6 Absorbing noise"), Some(State::AbsorbingNoise));
        assert_eq!(state("Nanos6 Resting"), Some(State::Idle));
        assert_eq!(state("Running task for"), Some(State::Task));
        assert_eq!(state("API: Barrier wait"), Some(State::Barrier));
        assert_eq!(state("MPI_Init"), Some(State::MpiStart));
        assert_eq!(state("Barrier: Join"), Some(State::JoinBarrier));
        assert_eq!(state("Leader"), None);
    }
}
