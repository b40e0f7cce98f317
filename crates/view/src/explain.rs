//! What each name in a report means, how it is computed, and what usually helps.

use taskscope_execution::State;

/// The explanation of one name.
#[derive(Clone, Copy, Debug)]
pub struct Explanation {
    /// The heading that it is listed under.
    pub group: &'static str,
    /// The name as reports print it.
    pub name: &'static str,
    /// What it means.
    pub meaning: &'static str,
    /// How it is computed.
    pub computed: &'static str,
    /// What usually helps.
    pub helps: &'static str,
}

macro_rules! explanations {
    ($( $group:literal { $( $name:literal: $meaning:literal; $computed:literal; $helps:literal; )* } )*) => {
        /// All explanations, those of a group together.
        pub static EXPLANATIONS: &[Explanation] = &[$($(
            Explanation { group: $group, name: $name, meaning: $meaning, computed: $computed, helps: $helps },
        )*)*];
    };
}

/// The explanation of a name, if there is one: of the name itself, else of one that differs in its case, in what parts
/// its words, or in a unit at its end, or of the state that the text calls so.
pub fn find(name: &str) -> Option<&'static Explanation> {
    let exact = |name: &str| EXPLANATIONS.iter().find(|explanation| explanation.name == name);
    let plain = |name: &str| name.to_lowercase().replace([' ', '-', '_', '.'], " ");
    let asked = plain(name);
    let without_unit = asked.strip_suffix(" ns").unwrap_or(&asked);
    let alike = |asked: &str| EXPLANATIONS.iter().find(|explanation| plain(explanation.name) == asked);
    let state = || State::ALL.iter().find(|state| plain(state.label()) == asked);
    exact(name).or_else(|| alike(&asked)).or_else(|| alike(without_unit)).or_else(|| exact(state()?.name()))
}

/// The first sentence of a text, at most `width` characters: cut between words where it is longer.
pub fn summary(text: &str, width: usize) -> String {
    let end = [". ", ": ", "; "].iter().filter_map(|mark| text.find(mark)).min().unwrap_or(text.len());
    let sentence = text[..end].trim_end_matches(['.', ':']);
    if sentence.chars().count() <= width {
        return sentence.to_owned();
    }
    let mut cut = String::new();
    for word in sentence.split(' ') {
        if cut.chars().count() + word.chars().count() + 2 > width {
            break;
        }
        cut = if cut.is_empty() { word.to_owned() } else { format!("{cut} {word}") };
    }
    format!("{}…", cut.trim_end_matches(','))
}

/// Names that resemble one that is not there, the nearest first: of reports, and of runtimes.
pub fn near(name: &str) -> Vec<&'static str> {
    let plain = |name: &str| name.to_lowercase().replace([' ', '-', '_', '.', ':'], "");
    let asked = plain(name);
    let most = (asked.chars().count() / 3).max(1);
    let labels = crate::runtime_names::RUNTIME_NAMES.iter().map(|row| row.label);
    let parts = labels.flat_map(|label| [label, label.rsplit(": ").next().unwrap_or(label)]);
    let names = EXPLANATIONS.iter().map(|explanation| explanation.name).chain(parts);
    let mut near: Vec<(usize, usize, &'static str)> = Vec::new();
    for (order, candidate) in names.enumerate() {
        let known = plain(candidate);
        let holds = asked.chars().count() > 2 && known.contains(&asked);
        let distance = distance(&asked, &known);
        if (distance <= most || holds) && near.iter().all(|(.., other)| *other != candidate) {
            near.push((if holds { distance.min(most) } else { distance }, order, candidate));
        }
    }
    near.sort_unstable();
    near.into_iter().take(MAX_NEAR).map(|(.., name)| name).collect()
}

/// Names that are proposed for one that is not there.
const MAX_NEAR: usize = 4;
/// Longer words have no near ones; it bounds the work for what anybody types.
const MAX_WORD: usize = 64;

/// Letters to insert, remove, replace or exchange with the next one to make one word of another.
fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    if a.len() > MAX_WORD || b.len() > MAX_WORD {
        return usize::MAX;
    }
    let mut rows = vec![vec![0; b.len() + 1]; a.len() + 1];
    for i in 0..=a.len() {
        for j in 0..=b.len() {
            rows[i][j] = if i == 0 || j == 0 {
                i + j
            } else {
                let changed = rows[i - 1][j - 1] + usize::from(a[i - 1] != b[j - 1]);
                let mut least = changed.min(rows[i - 1][j] + 1).min(rows[i][j - 1] + 1);
                if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                    least = least.min(rows[i - 2][j - 2] + 1);
                }
                least
            };
        }
    }
    rows[a.len()][b.len()]
}

explanations! {
    "Findings" {
    "hung": "The run hung: at its end threads waited for what could not come. The text names each wait, and what the awaited thread did last.";
        "Deadlock (confidence high): open waits of which each needs another one of them, or a thread that has ended: the holder of a lock, a member of the team that has not come to a barrier, a task that has not ended, a rank that has not called MPI so as to end the call (from the arguments that the call was recorded with). Silence (confidence medium): a process that did not end properly, and in which for long nothing was recorded and no thread worked: all waited, were idle, or slept in the kernel (by /proc/self/task/TID/schedstat and stat). Long is 200 ms, a tenth of the run (or 5 s), and three times each earlier wait of a waiting thread. Threads that compute are no evidence. Findings that are these waits and nothing else are left out.";
        "Locks in a circle: acquire them in one order everywhere, or hold one at a time. A member, task or rank that does not come: look at the place where it is. A wait without a partner: a receive that nobody sends to, an event that nobody fulfils, a barrier that not all members reach.";
    "lock-held": "Threads wait for a lock, a critical construct or an ordered turn, and the named place is where its holder asked for it. The waiting shows elsewhere; the cause is what the holder does while it holds.";
        "Every wait is split over the holders in sequence: at each instant the holder is the thread that acquired the object last. The waiting is charged to the place where that thread asked for it (directed blame). Handing the object over is charged to the holder before; where the wait began after that release, to the holder after; of ordered, to the one whose turn it is. A wait in which no other thread held it is what acquiring a free one costs: nobody's. What is given equals what was waited, to the nanosecond.";
        "Do less between acquiring and releasing at the named place; split one lock into several; let only one thread do the long operation while the others have other work.";
    "serial-code": "Workers have nothing to do because code outside of parallel regions and tasks runs on one thread.";
        "While workers are in no region, every nanosecond of each of them is charged in equal parts to the threads of the process that run (undirected blame). Serial code is named by the regions before and after it.";
        "Make the named stretch parallel, overlap it with other work, or shorten it. By Amdahl's law it bounds the speed-up whatever else is improved.";
    "few-tasks": "Workers wait in a barrier, taskwait or taskgroup because too few tasks can run: the named task type runs alone or nearly so.";
        "While workers wait, every nanosecond of each is charged in equal parts to the threads that run. The confidence is high where only one thread ran for 70 % of the loss.";
        "Split the long tasks; start them earlier (order of creation, priority); relax dependences, so that more tasks are ready while they run.";
    "small-tasks": "Tasks of the named type are so small that creating, queueing and starting one costs more than its body does. The threads spend their time in the runtime, which shows as waiting while nobody works, or while other tasks of the type run.";
        "The cost of a task is what the process lost in the runtime, and in waits of teams while no thread worked, divided by the tasks that ran. A type of at least 100 tasks counts as too small if the mean body is below that cost and below 10 µs: at that size less than half of the time is work (METG at 50 %, Slaughter et al., SC 2020). Recording adds about three events of some 10 ns to each task.";
        "Stop creating tasks below some size: a cut-off by depth or by number of elements; several elements a task. Ten times the cost is a good size: the runtime then takes less than a tenth.";
    "imbalance": "In a worksharing construct some threads have more to do than others, which wait at its end.";
        "Waiting time of those who arrived early, charged to the construct that the late ones are still in. The load balance is mean over maximum of the threads' busy times, weighted over all executions.";
        "Smaller pieces that are given out while the construct runs, or a better split by hand.";
    "task-creation": "Workers wait while the named code creates tasks: tasks are created more slowly than they are executed, or creation starts late.";
        "Waiting time charged to code that created tasks and ran meanwhile. OMPT marks the moment of each creation, not its length, so the cost of a single creation is part of the creating code.";
        "Make tasks larger; create them from several workers; do less between two creations.";
    "region-code": "Threads wait for code of a parallel region that lies in no worksharing construct and no task: some threads take longer through it.";
        "Waiting time charged to the region's own code that ran meanwhile.";
        "Look at what differs between threads there: an `if` on the thread number, work split by hand, first touch of memory.";
    "device-wait": "Threads wait for a device in target constructs or in calls (clFinish, blocking reads, cudaMemcpy, cudaStreamSynchronize), or others wait for such a thread. The named place is the construct; beside it is what the device ran meanwhile.";
        "From the construct's begin to its end on the host, copies included; of a call that waits all of it, of a blocking copy until the copy has ended. Table blame has the operation that the device ran at each instant; others that wait meanwhile are charged to the construct as to code that runs.";
        "Work for the host meanwhile; fewer and larger kernels; data that stays on the device. Section devices says what the device itself waits for.";
    "runtime-overhead": "Time that workers spend in their runtime itself: creating tasks, dependences, scheduling, starting and ending parallel regions.";
        "The sum of these states, where the runtime reports begin and end of them, and waiting charged to them.";
        "Larger tasks and pieces; fewer dependences per task.";
    "late-process": "Calls of MPI wait for a rank that comes late to them: it has not sent, received, or entered the operation yet. The named places are those of the calls that wait, the longest first.";
        "A receive waits until the message is sent, a send without a buffer until it is asked for, an operation until its last member enters, an access to a window until its lock is released or its target calls MPI: so far the time of the call is the late rank's doing; the rest of it is communication. After Scalasca's late sender, late receiver and wait states of collective operations.";
        "Look at what the late rank does meanwhile (report --section ranks,calls; the viewer draws it): give it less work, let it send earlier, or let the others do something else before they wait.";
    "mpi-start": "Ranks are in MPI_Init or MPI_Finalize: the launcher and the MPI library start or end the job. Workers of a rank that have nothing to do meanwhile are counted too.";
        "From these calls to their return, and waiting charged to them. It is no communication; the efficiencies leave out all time of a rank's workers while the rank is in such a call, as POP's and TALP's do (TALP measures from the end of MPI_Init to the begin of MPI_Finalize), and what-if keeps it as it was.";
        "It is paid once a job: longer runs make its share small. Else look at the launcher and at the MPI library's settings (transports that it probes, start of its daemons).";
    "absorbing-noise": "CPUs run no tasks, so that interrupts, daemons and other programs have a place: the runtime leaves them free, as it was configured. Nanos6 calls it sponge mode.";
        "Time in the section Worker: Sponge mode, and in the idle state Absorbing noise. Nobody is charged with it, and it is nobody's waiting. It counts as runtime overhead in the efficiency.";
        "Compare with a run without: if the noise is small, the CPUs are worth more with tasks.";
    "no-cpu": "Threads could run and had no CPU: other programs ran on the CPUs that this one may use, or a limit of its control group was reached. Workers that waited meanwhile are counted too where nobody worked because those who could (the holder of a lock, the last to arrive, a thread that was woken) had no CPU.";
        "Context switches of each thread, where the kernel shows them; else /proc/self/task/TID/schedstat every 10 ms, whose sums are spread over what the thread was in and marked estimated. A waiting thread for which somebody works on a CPU waits for that one, whatever its own CPU does. Factor cpu_availability of the efficiency.";
        "Run on CPUs that nobody else uses (a batch job of its own, taskset, a higher CPU limit of the container), or use fewer threads than there are free CPUs. Do not make waiting threads spin: they take CPUs from those that work. The other findings hold for the time that the program had CPUs.";
    "oversubscribed": "There are more workers than CPUs that they may use, so some of them can never run at the same time as the others, whatever the program does.";
        "At each instant only as many waiting workers can lose time to too little work as allowed CPUs stand free: the CPUs less the workers that run code or could. The other waiting workers, and those that have code to run while the job's own threads have all CPUs, are counted here. Allowed CPUs: the affinity mask, or the CPU limit of the control group if that is less; ranks of one node share those that their masks have in common. Factor cpu_availability of the efficiency.";
        "As many workers as CPUs: set the number of threads (per rank) to the CPUs that the job has, or give it more (taskset, the batch system's CPUs per task, the container's limit). The same work then takes as long or less.";
    "blocked": "Threads were blocked in the kernel in code of the program: they slept (usleep, nanosleep), waited for a file or a network, or in a wait that the runtime does not report (pthread_join, pthread_cond_wait, futex), or a signal had stopped the process (SIGSTOP: cpulimit, Ctrl-Z, a debugger). No CPU was missing.";
        "Context switches of each thread, where the kernel shows them; else the time that is in neither sum of its schedstat, marked estimated. It counts as no useful time, and has a factor of its own in the efficiency: (A − Is − Il − Id − Ib) / (A − Is − Il − Id), Ib this time. Waits and idleness keep their name. Others that waited for the thread meanwhile are charged to the code that it was in.";
        "Samples (--sample) have the calls: column blocked of the call paths. Read and write outside of parallel code, or from tasks that others do not wait for; wake waiting threads earlier. Where a program sleeps instead of working, record with TASKSCOPE_OS_TIME=off, and that is work.";
    "nobody-works": "Threads wait although no worker of the process runs any code and none is without a CPU, for instance in a taskwait between two short tasks. What passes there is the runtime's scheduling, the waking of threads, and the recording itself.";
        "Waiting time while no worker is in user code or a reported part of the runtime. Where it is not known whether threads had CPUs, the confidence is low. It counts as runtime overhead in the efficiency.";
        "Larger tasks: stop creating tasks below some size. Only where there are at least as many free CPUs as workers, waiting threads that spin are woken sooner.";
    "unknown": "The trace does not tell what ran: events were lost, or the runtime does not report them.";
        "Time around lost events, and time of threads in no known section.";
        "Record again with room for all events; see the notices of the report.";

    }
    "Causes of lost time (report --section ledger)" {
    "work": "A worker executes the body of a task, or code outside of tasks.";
        "Time in the body, without waits for locks, calls, sections of the runtime, times off the CPU and blocked in the kernel inside it. Runtime work inside it at unknown positions is taken out in its known amount.";
        "This is what the run is for. `report --section path` says which of it the end of the run waited for.";
    "lock.wait": "A worker waits for a lock that another holds.";
        "Charged, instant by instant, to the place from which the holder had asked for the lock, handing over included (see lock-held).";
        "Do less while holding the lock, or split it: see lock-held.";
    "comm": "A worker is in a communication call.";
        "The part in which it waits for another process that has not come to the call (late sender, late receiver, late member) is starvation with that process's name; the rest is latency.";
        "Late processes: balance the work between ranks. The rest: fewer and larger messages, nonblocking calls, work in between.";
    "device.wait": "A worker waits in a call for operations of a device.";
        "Latency, charged to what ran on the device at each instant: a kernel or copy with its queue, or nothing (docs/device-records.md).";
        "Submit earlier and wait later, so that the worker has tasks meanwhile; several queues; section devices says what the device waits for.";
    "runtime.start": "A worker is in MPI_Init or MPI_Finalize: the job is being started or ended, which is no communication.";
        "From the call to its return. Idle workers that wait for what comes after it have it as their cause too. Overhead; neither pop nor what-if changes or counts it.";
        "Paid once a job: see mpi-start.";
    "absorbing": "A worker's CPU is left free for the noise of the system, as its runtime was configured.";
        "Section Worker: Sponge mode and idle state Absorbing noise of Nanos6; kind absorbing of neutral traces. Overhead; what-if keeps it as it was.";
        "See absorbing-noise.";
    "os": "A worker could run, but the operating system gave it no CPU.";
        "Context switches of the thread where the kernel shows them, else shares of what schedstat tells every 10 ms, marked estimated.";
        "No more threads than CPUs, a machine of one's own.";
    "sync": "A worker is idle in a barrier or taskwait for what others execute.";
        "Charged to what the worker of the last one awaited does at the instant, or to whatever that worker waits for.";
        "Balance what the others execute; replace barriers by dependences, so that only what needs the result waits.";
    "starvation": "Workers had nothing to execute because there was not enough parallel work at the time.";
        "Instants of idle workers whose cause, followed from worker to worker, is a task that executes; and drain.";
        "See the situations low-parallelism, too-coarse and badly-distributed in report --section diagnosis.";
    "latency": "Workers were idle because data was under way.";
        "Instants of idle workers whose cause, followed from worker to worker, is a transfer or a communication call.";
        "See slow-link and bad-locality in report --section diagnosis.";
    "overhead": "The runtime or the operating system had the time.";
        "Sections of the runtime, times off the CPU, ready tasks that were not started, and instants of idle workers whose cause is one of these.";
        "See too-fine, slow-runtime and no-cpu in report --section diagnosis.";
    "contention": "Workers waited for what others held.";
        "Waits for locks, and instants of idle workers whose cause is such a wait.";
        "See contended-lock in report --section diagnosis.";
    "create.wait": "A worker was idle because its next task had not been created yet.";
        "Each instant is charged to what the creating worker did then, or to what that worker itself waited for. Where the creator is not known the time counts as starvation.";
        "Create tasks earlier or from several workers; do less between two creations; make tasks larger.";
    "depend.wait": "A worker was idle because an input of its next task had not been produced yet.";
        "Each instant before the production of the last produced input is charged to what the producing worker did then: executing a task is starvation, a section of the runtime is overhead, and if it was idle, whatever it waited for (mode root of section idle).";
        "If the charged task type is long: split it, or start it earlier. If ready_work says here or elsewhere: look at the scheduler or the placement first. If the chain ends in a link: see transfer.";
    "send.wait": "The last input of the next task was complete, but the runtime had not sent it yet.";
        "From production to sending of the last arriving input, where the source tells when it was sent; else this time is part of transfer.";
        "Send from the task that produces, not from a thread that comes by later; give the communication thread a core of its own.";
    "transfer": "The last input of the next task was under way between two nodes (latency).";
        "From sending (or production, where sending is not known) to arrival of the last arriving input, beyond the time in which inputs were still being produced. Charged to the link.";
        "Place tasks where their data is; send earlier; send less or in larger pieces. section whatif tells what an ideal network would save.";
    "deliver": "All inputs had arrived, but the runtime had not made the task ready.";
        "From the last arrival to the time at which the source says that the task was ready.";
        "A receiving thread that handles messages one by one is the usual cause: more of them, or less work in each.";
    "dispatch": "A task could start and did not: all of its inputs were there, and a worker was idle.";
        "From the time at which the task could start to its start, without sections of the runtime that the trace tells, which are the leaf runtime.";
        "Larger tasks, if they are not much longer than metg_ns of section path; else look at wake-up of workers, at priorities, and at stealing.";
    "drain": "Workers had no further task while others still executed.";
        "From a worker's last task to the end of all tasks; each nanosecond is shared among the tasks that executed then.";
        "Begin long tasks first; split what runs last.";
    "shutdown": "Workers lived on after the last task of the run had ended.";
        "From the end of all tasks to the end of the worker's life.";
        "Only worth a look in short runs: what does the program do after its last task?";

    }
    "Sections by the task graph, and what is in them" {
    "ledger": "Where every nanosecond of every worker went: each has one cause, a leaf.";
        "The first leaf that applies, a worker's own activity before what it was idle for. The leaves sum to the capacity exactly; work, starvation, latency, overhead and contention are sums of them.";
        "Look at the largest leaf, then at its rows in section blame.";
    "ready_work": "Was there a ready task while a worker was idle: here (on its node), elsewhere (only on other nodes), or nowhere?";
        "At each instant of idle time, from when tasks were ready and when they started.";
        "Here: look at the scheduler. Elsewhere: at the placement. Nowhere: at the parallelism of the program.";
    "blame": "Who caused each loss: what ran, held, or was under way at each instant of it.";
        "Each leaf is followed along what its worker waited for, instant by instant; the rows of a leaf sum to it. The symptom is the code that lost the time.";
        "Change what is named as who, not the symptom.";
    "data": "Waiting for inputs by the data that decided it, under the programmer's name.";
        "The input that was complete or arrived last decides; the rows of a leaf sum to it.";
        "taskscope_name_data gives data a name; produce what is at the top earlier, or place it where it is read.";
    "queues": "Ready tasks that no worker took, by node.";
        "From when a task could start to its start; idle_ns sums to the leaf dispatch.";
        "Many tasks that wait while workers are idle: wake-ups, affinity or priority of the scheduler.";
    "diagnosis": "What the lost time means, in the words of a remedy.";
        "Starvation, latency, overhead and contention split into situations that sum to capacity - work, by the numbers beside each.";
        "taskscope explain NAME tells each situation.";
    "tail": "Time of workers after their last task.";
        "While others still execute (drain) and after all tasks (shutdown). No part of starvation, latency and overhead in section idle.";
        "See drain and shutdown.";
    "direct": "A mode of section idle: while the producer's worker is itself idle, that is starvation, as V. S. Litvinov published it.";
        "Waiting for data that waits for the network counts as starvation too.";
        "Use it to compare with published numbers; mode root says what to change.";
    "chained": "A mode of section idle: while the producer's worker is itself idle, the overhead in that counts as overhead, the rest as starvation.";
        "As direct, with the overhead share of what that worker waits for.";
        "See root.";
    "root": "The usual mode of section idle: while the producer's worker is itself idle, the cause is whatever that worker waits for.";
        "Followed from worker to worker until one executes, is in the runtime, or waits for data under way.";
        "Read starvation, latency and overhead in this mode.";
    "path": "The critical path: what the end of the run waited for.";
        "From the end of the run backwards, each step is what was waited for last; the steps tile the wall time exactly.";
        "Only what is on the path makes the run shorter: shorten or split its largest steps.";
    "start": "A step of the critical path: nothing had begun to execute."; "From the begin of the run to the path's first step."; "–";
    "end": "A step of the critical path: all tasks had ended, and workers lived on."; "From the end of the last task to the end of the run."; "See shutdown.";
    "send": "A step of the critical path: the last input of its task was complete and not sent."; "From production to sending."; "See send.wait.";
    "device": "A step of the critical path: an operation of a device ran, for which a worker waited."; "By the device's records; see section devices."; "Shorten the operation, or submit it earlier.";
    "span": "T-infinity, the longest chain of tasks that wait for each other: no number of workers makes the run shorter.";
        "Work along the longest chain of dependences; burdened_span_ns adds what running each of its tasks costs.";
        "Split the tasks on the path, or relax what they wait for.";
    "parallelism": "How many workers the program could keep busy on average.";
        "All work divided by the longest chain (T1 over T-infinity).";
        "Below the number of workers: relax dependences or split long tasks.";
    "lower_bound": "No run on so many workers is shorter.";
        "The larger of the work spread evenly over all workers (area_bound_ns; node_bound_ns where tasks stay on their nodes) and the longest chain.";
        "What lies between it and the wall time can be won without changing the tasks.";
    "slack": "How much later a task could have ended without the run ending later; tasks without any are critical.";
        "From the end of the run backwards over what waits for each task, with the recorded costs.";
        "Speed up types with little slack; those with much may run later or on slower CPUs.";
    "metg": "What running a task costs on average: tasks that work less than this spend more than half of the time on the runtime (minimum effective task granularity at 50 %).";
        "Sections of the runtime and starting of ready tasks, divided by the tasks; after Slaughter et al., Task Bench, SC 2020.";
        "Tasks of ten times this lose a tenth.";
    "pop": "POP's efficiencies: parallel = load balance x serialization x transfer.";
        "Load balance: mean over maximum of the workers' work. Serialization: the largest work over the wall time of a replay on an ideal network. Transfer: that wall time over the recorded one. Start and end of MPI are left out.";
        "Load balance low: distribute work. Serialization low: dependences; see path. Transfer low: the network; see slow-link.";
    "whatif": "The recorded run again with other costs: how long would it take?";
        "A replay with a stated scheduler: tasks stay on their node, a free worker takes the ready task that started first in the recorded run. replay_error is how far the replay without a change is off.";
        "Try changes before they are made: --what-if TYPE=0.5, runtime=0, network=0.5, workers=8.";
    "growth": "In a diff, by how much a number has grown, as a part of what it was. Of a task type it is the work inflation: between a run on one worker and one on many, what sharing caches and memory costs each task.";
        "Difference of the means over the mean before; interval_95 is Welch's.";
        "Inflation: smaller working sets a task, first touch on the node that uses it, tasks placed where their data is.";

    }
    "Situations (report --section diagnosis)" {
    "low-parallelism": "Workers had nothing to do since the program has too little to do at once: no task was ready anywhere, and those that ran are too small to be split (or no tasks at all).";
        "Starvation (section ledger) while no task was ready on any node, charged to tasks no longer than 16 times what running one costs, or to code outside of tasks.";
        "Relax dependences: depend on the data that is really used, replace taskwait and barriers by dependences, let steps overlap; make serial stretches parallel. Else use fewer workers: section path tells the parallelism.";
    "too-coarse": "Workers had nothing to do while few long tasks ran: the work is there, in pieces that are too large.";
        "Starvation while no task was ready on any node, charged to tasks that are longer than 16 times what running one costs, so that they could be split in eight and the runtime still take little.";
        "Smaller tiles, blocks or chunks for the task type that section blame names; begin long tasks first. Aim at several tasks a worker and step, each at least ten times the cost that the evidence states.";
    "badly-distributed": "Workers had nothing to do although tasks were ready: on the same node (the scheduler did not give them out) or on others (the work lies where the workers are not).";
        "The share of starvation during which a ready task lay on some node (second axis of section ledger).";
        "Elsewhere: another distribution of data and tasks over the nodes, balanced by measured cost, or migration. Here: affinities, priorities or throttling that keep tasks from free workers.";
    "slow-link": "Workers waited for data under way, although few inputs come from other nodes: a transfer takes long.";
        "Latency (section ledger), while at most one in four inputs of tasks came from another node.";
        "Send earlier (from the task that produces), join small messages, overlap: more tasks a worker, so that some are ready. Look at the time a copy is under way against its bytes; what-if network=0 says what is to be gained.";
    "slow-device": "Workers stood in calls that wait for operations of a device.";
        "The leaf device.wait (section ledger).";
        "Let other tasks run while the device does; overlap copies with kernels; where nothing runs on the device, look at section devices for what it waits for.";
    "bad-locality": "Workers waited for data under way, and much of what tasks read comes from other nodes.";
        "Latency (section ledger), while more than one in four inputs of tasks came from another node.";
        "Place tasks where their data is; larger sub-domains (less surface for the same volume); keep a step's halo exchange to direct neighbours; recompute instead of sending.";
    "too-fine": "The runtime took the time, as tasks are small for what one costs.";
        "Overhead (section ledger) where the mean task works less than ten times what running one costs, and that cost is usual (up to 10 µs).";
        "Larger tasks: a cut-off, a grainsize, several elements a task; ten times the cost that the evidence states.";
    "slow-runtime": "The runtime took the time although tasks are large enough, or a task costs it more than usual.";
        "Overhead (section ledger) where tasks work at least ten times what running one costs, or that cost is above 10 µs.";
        "See section blame for what took it: creation (several creators), dispatch (wake-ups: idle workers that sleep), delivery (one receiving thread that handles messages one by one), send.";
    "contended-lock": "Workers waited for a lock that another held.";
        "Waiting for contention (section ledger); section blame names the place from which the holder had asked for the lock.";
        "Hold it for less, split it, or replace it by atomic operations or a reduction; see lock-held.";

    }
    "States, which are causes in JSON" {
    "task": "In the body of an explicit task; useful time.";
        "From its start to its end, without what is nested in it: waits, other tasks, nested regions.";
        "Table of task types: taskscope report --section tasks.";
    "worksharing": "In the body of a loop, sections, single or distribute construct; useful time.";
        "From the construct's begin to its end on each thread, without what is nested in it.";
        "Table of constructs: taskscope report --section constructs.";
    "masked": "In the body of a masked construct; useful time."; "From its begin to its end."; "–";
    "implicit_task": "In the code of a parallel region outside its constructs; useful time."; "Time in the implicit task that nothing nested in it covers."; "–";
    "serial": "In user code of an initial thread outside any parallel region; useful time on that thread."; "Time of an initial thread in no section."; "See serial-code: what it costs the other workers.";
    "task_creation": "Creating tasks where the runtime reports begin and end of it, as for a taskloop."; "The taskloop construct on the thread that meets it; OpenMP-V: allocation and duplication of tasks. A single `task` is only a point in time in OMPT and stays in the code around it."; "A larger grainsize.";
    "dependences": "The runtime registers or releases dependences."; "As reported; OMPT reports no time for it."; "Fewer dependences per task.";
    "fork_join": "A thread that begins a region starts or ends its team."; "The region on the thread that began it, without its implicit task and barrier."; "Fewer regions: enlarge the parallel region and use worksharing constructs in it.";
    "scheduling": "In the runtime's scheduler."; "As reported by runtimes that do; see nobody-works for what OMPT does not report."; "Larger tasks.";
    "runtime": "In another part of the runtime."; "As reported."; "–";
    "barrier": "Waiting in a barrier inside a region, without the tasks executed meanwhile."; "From its begin to its end, without nested tasks. The finding says what the others were doing."; "`nowait` where the next construct does not need the result; see imbalance and few-tasks.";
    "join_barrier": "Waiting in the barrier at the end of a region, without the tasks executed meanwhile."; "From the arrival to the end of the region. The runtime reports a worker's end only when it needs it next; from the region's end on it counts as idle."; "See imbalance and few-tasks.";
    "taskwait": "Waiting for the children of the current task, without the tasks executed meanwhile."; "From its begin to its end, without nested tasks."; "Dependences instead of taskwait; see few-tasks and nobody-works.";
    "taskwait_depend": "Waiting for the dependences of a `taskwait depend`."; "From its begin to its end, without nested tasks."; "See few-tasks.";
    "taskgroup": "Waiting for the tasks of a taskgroup."; "From its begin to its end, without nested tasks."; "See few-tasks.";
    "taskyield": "In a taskyield."; "As reported."; "–";
    "critical_wait": "Waiting for a critical construct."; "From asking to having it, contended or not."; "See lock-held.";
    "lock_wait": "Waiting for a lock."; "From asking to having it, contended or not."; "See lock-held.";
    "ordered_wait": "Waiting for the turn in an ordered construct."; "From asking to having it."; "Do more outside the ordered part; a larger chunk.";
    "atomic_wait": "Waiting for an atomic construct where the runtime reports it."; "From asking to having it."; "A reduction.";
    "mpi_start": "Starting or ending MPI: in MPI_Init, MPI_Init_thread, MPI_Session_init, MPI_Session_finalize or MPI_Finalize."; "From the call to its return; MPI_Finalize from the moment when the last rank has come to it. In no efficiency."; "Paid once a job: see mpi-start.";
    "communication": "In a communication library: MPI or TAMPI. As a finding: the part of it that waits for no late process, and workers that have nothing to do while a thread is in such a call."; "From the call to its return; see late-process for the other part."; "Fewer and larger messages; send earlier; overlap communication with tasks.";
    "target_wait": "Waiting for a device, in a target construct or a call."; "From the construct's or call's begin to its end on the host, copies included; table blame has the operation that the device ran meanwhile."; "See device-wait.";
    "idle": "A worker in no region: it has nothing to do."; "From the end of a region to the begin of the next one that it joins."; "See serial-code.";
    "out_of_cpu": "The thread could run and had no CPU, or waited while nobody worked because those who could had none."; "Context switches, or shares of the run delay in schedstat."; "See no-cpu.";
    "paused": "The task is blocked and its worker has no other yet, or the thread left its CPU to another thread of the runtime: of its own will, not by the operating system."; "From pause to resume, without what was done meanwhile."; "More tasks that can run meanwhile; fewer waits in tasks.";
    "not_started": "A worker did not exist yet."; "From the first event of its process to its own first event."; "Start the first region earlier; it shows serial start-up.";
    "absorbing_noise": "On a CPU that the runtime leaves free for the noise of the system."; "Section Worker: Sponge mode, or idle state Absorbing noise, whatever else the thread is in."; "See absorbing-noise.";
    "no_subsystem": "The thread runs, but is in no section of its runtime: code that Nanos6, nOS-V or NODES do not instrument, such as the main program outside of tasks. Paraver's views of these runtimes show it as 0 or \"Unknown subsystem\"."; "The stack of sections is empty while the thread runs."; "Record with a higher ovni.level; mark sections of the program's own.";
    "ended": "A worker had ended, its process had not."; "From the worker's end to the last event of its process."; "It shows serial work at the end.";

    }
    "Efficiency factors" {
    "efficiency": "Useful time over capacity: the part of the workers' time in which the program's own code ran.";
        "Capacity is workers × time from the first to the last event of the process. A worker is a thread that ever was in a team; without any region the initial thread. Efficiency = CPU availability × serialization × load balance × device offload × blocked × runtime overhead (× known), exactly: each factor is what remains after removing one kind of loss, in this order (as TALP does for OpenMP).";
        "Work on the factor that is lowest.";
    "cpu_availability": "What remains of the time after workers had no CPU, or were more than the CPUs."; "(C − Io) / C, with C the capacity and Io these losses. It comes first: A = C − Io is the base of the other factors."; "See no-cpu and oversubscribed.";
    "serialization": "What remains of that after workers had nothing to do (no region, not started, ended) or waited for their turn (locks, critical, ordered, atomic)."; "(A − Is) / A, with A the time that the system left (see cpu_availability) and Is these losses."; "See serial-code and lock-held.";
    "load_balance": "What remains after waiting in a team (barriers, taskwait, taskgroup) while others worked."; "(A − Is − Il) / (A − Is), Il these losses."; "See imbalance and few-tasks.";
    "device_offload": "What remains after waiting for devices in target constructs and calls."; "(A − Is − Il − Id) / (A − Is − Il), Id these losses; 1 without devices."; "See device-wait.";
    "runtime_overhead": "What remains after the runtime's own time, and after waiting while no worker ran any code."; "(A − Is − Il − Id − Ib − Ir) / (A − Is − Il − Id − Ib), Ir these losses, Ib blocked time."; "See runtime-overhead and nobody-works.";
    "known": "What remains after time that the trace cannot tell."; "U / (A − Is − Il − Id − Ib − Ir), U the useful time."; "See unknown.";

    }
    "Notices about the recording (--allow NAME)" {
    "unfinished-stream": "Streams did not end properly: the program was killed, became another one (exec), or still runs. Everything up to the last completed event is in the report."; "The thread's metadata does not say that it finished. What a thread was in at its last event is taken to last until the last event of the process."; "Nothing is wrong with what is shown; what came after is missing.";
    "uncertain": "In some stretches of time what is shown need not be what was: a stream ends before its thread does, an event does not fit what was known of its thread, a thread's clock goes back, or several threads run on one CPU at once. Timelines hatch them, or print `?`."; "At the end of a stream the stretch lasts from its last event to the end of what is shown; before an event that does not fit, from the thread's previous change; where a clock goes back, from the earlier clock to the later one, at which the events are shown. A CPU is uncertain while the thread that it shows is. Times are counted as they are shown."; "taskscope check lists what does not fit, with stream and byte.";
    "selected": "The report is of the threads that pass --where: capacity, causes, waits and tasks are theirs alone, and sum exactly."; "The other threads are read whole, so whoever made the selected ones wait is found among them too, and is charged with what these waited; what the others themselves waited is left out. The critical path, what-if, locks' holds and the balance of loops and regions are of the whole run."; "Nothing is wrong. For a part of the time use --range.";
    "filtered": "The report is of the events that pass --where: of the threads that have some, what the other events tell is missing in it."; "States last from one selected event of a thread to the next. Threads whose events cannot pass at all are read whole, so that those who made others wait are found among them; but where workers are CPUs, a filter of some of their threads leaves out the others' events."; "To ask about threads, filter by thread, process, loom, app or stream alone; for a part of the time use --range, which keeps what was true at its begin; taskscope view --where shows everything and fades the rest.";
    "lost-events": "The recorder could not keep all events, for instance because the disk was full."; "The recorder counts what it loses and writes the number into the stream; time around a loss is `unknown`."; "More room, or fewer events.";
    "runtime-replaced": "The program was built for GCC's libgomp, which cannot be observed, and ran on LLVM's libomp instead. Timings are that runtime's."; "`taskscope record` checks that libomp has every function that the program needs before it does so."; "--no-preload keeps libgomp (then nothing of OpenMP is recorded); or build with clang.";
    "runtime-kept": "The program uses something of GCC's libgomp that LLVM's libomp lacks, so it ran unchanged and could not be observed."; "The missing symbols are named in the notice."; "Build with clang.";
    "no-ompt-runtime": "No OpenMP runtime that can be observed (OMPT) was found."; "The loader's search path was looked through."; "Install LLVM's runtime (Debian: libomp-19-dev); taskscope doctor says more.";
    "tool-disabled": "OMP_TOOL=disabled is set, so the runtime loads no tool."; "The variable was set when the program was started."; "Unset OMP_TOOL.";
    "directory-taken": "The directory for the trace existed, so another one was used."; "The next free number is appended."; "-o DIR names another directory.";
    "cuda-injection-kept": "`CUDA_INJECTION64_PATH` was set already."; "CUDA's driver loads one library, which stayed the user's: the trace has nothing of CUDA."; "Unset the variable to record CUDA.";
    "tool-chained": "Another OMPT tool was named by the user or loaded by the runtime; it gets all events too."; "taskscope's tool takes the only place and calls the other one."; "Its cost is in the timings: leave it out for exact ones.";
    "tool-missing": "OMP_TOOL_LIBRARIES names an OMPT tool that cannot be found."; "The libraries of the list were looked for as the loader does."; "Correct the path, or unset the variable.";
    "own-tool": "The program, or a library of it, has an OMPT tool of its own, which the runtime takes first: taskscope's is not asked."; "The program and the libraries that it needs were searched for the function ompt_start_tool."; "Link the program without its tool, or name that tool in OMP_TOOL_LIBRARIES instead: both run then.";
    "own-tool-replaced": "A library of the program has an OMPT tool of its own, which does not run: taskscope's is preloaded and takes its place."; "The libraries that the program needs were searched for the function ompt_start_tool."; "Name that tool in OMP_TOOL_LIBRARIES: both run then.";
    "runtimes-mixed": "The program and its libraries use more than one OpenMP runtime."; "Libraries that the program loads are compared by what they need."; "Build everything with one compiler, so that one runtime runs it all.";
    "run-file": "The file about the run, taskscope-run.json, cannot be used."; "It is no valid JSON of the expected form."; "The report works without it; command, exit code and recording cost are missing.";
    "resting-not-recorded": "nOS-V was recorded without its idle states (Progressing, Resting), as below ovni.level=3.";
        "Streams say so (nosv.can_breakdown). One of the workers that ask for tasks stays in Scheduler: Serving until there is one, so that this section is idle time as well as scheduling.";
        "Record with ovni.level=3. Until then read long scheduling on one CPU as having nothing to do.";
    "missing-names": "Some places in the code have no function or line."; "Files are compared with the recorded ones by build id; lines come from DWARF, names from DWARF or the symbol table."; "Compile with -g; keep the executables as they were when recorded, at the same path.";

    }
    "Events that contradict each other" {
    "inverted-edge": "A thread executed a region or task before its recorded creation. Clocks of threads differ a little, and the first region of a construct is recorded once its code is known."; "The creation is moved to the use, so that the distance is zero; count and largest distance are shown."; "None is needed: it is harmless up to some hundred nanoseconds, and once for each construct.";
    "late-release": "A lock's release was reported after the next holder had it. OMPT reports a release after it has happened, so some are always late."; "The next holder counts from its own acquisition; the late report is ignored."; "Nothing: it moves no time.";
    "time-runs-back": "An event lies before its thread's previous one."; "It is moved to the previous one's time."; "taskscope check names the stream.";
    "end-without-begin": "An end event had no begin."; "It is ignored."; "taskscope check names the stream.";
    "ends-not-innermost": "An end event was not that of the innermost open section."; "What lay inside is taken as ended too."; "taskscope check names the stream.";
    "not-created": "A task ran whose creation is not in the trace."; "It counts as a task of unknown type."; "Events may be lost; see lost-events.";
    "short-payload": "An event is shorter than its fields."; "It is ignored."; "taskscope check names the stream.";
    "after-end": "Events of a thread come after its end."; "They are ignored."; "taskscope check names the stream.";
    "instrumentation-misuse": "The program's own instrumentation contradicts itself: a close without an open, a task on two threads, a name with two meanings.";
        "Every event is played through the context of its task; what does not fit is ignored or taken in the most plausible way.";
        "`taskscope check` lists each with its stream and time.";
    "unknown-event": "Events belong to no model that is known."; "They are ignored and counted."; "A newer taskscope may know them.";

    }
    "Damage of streams" {
    "unreadable": "A file or directory cannot be read."; "The system refused."; "Check permissions.";
    "bad-metadata": "A stream.json is no JSON."; "It is ignored; names come from the directories."; "–";
    "metadata-version": "A stream.json has another version than 3."; "It is read as far as it is understood."; "–";
    "missing-attribute": "A stream.json lacks an attribute that the format demands."; "Readers of the format may refuse the trace; the report does not need it."; "–";
    "unknown-part": "A stream belongs to something that is not a thread."; "It is read as if it were one."; "–";
    "missing-metadata": "A directory has a stream.obs but no stream.json."; "Its events are left out: nobody can say whose they are."; "Was the trace copied whole?";
    "missing-stream": "A directory has a stream.json but no stream.obs."; "The thread has no events of standard models."; "–";
    "bad-magic": "A stream file does not begin as one."; "It is not read."; "–";
    "stream-version": "A stream file has another version than 1."; "It is not read."; "–";
    "empty-stream": "A stream has no events."; "–"; "–";
    "truncated-event": "A stream file ends within an event."; "Everything before it is read."; "Was the file copied whole?";
    "torn-event": "An event was being written when the program stopped."; "It is left out; everything before it is read."; "Nothing: at most one event a thread.";
    "zero-tail": "A finished stream ends in zeros."; "They are ignored."; "–";
    "clock-goes-back": "A clock is lower than the one before it."; "It is raised to the one before, and the time between the two is marked as uncertain."; "taskscope sort, if the stream was recorded unsorted.";
    "unsorted-region": "Events were recorded out of order in a region that says so."; "They are sorted while reading."; "Nothing.";
    "clock-too-large": "A clock is beyond what 63 bits hold."; "The event is taken at the largest time."; "The file is damaged.";
    "clock-too-far": "Clocks of some events lie so far after the first that they cannot be true."; "They are taken at the limit of 26 days after the first event."; "The stream is damaged: taskscope check names it.";
    "open-unsorted-region": "A region of unsorted events was never closed."; "It is sorted to the end of the stream."; "Nothing.";
    "clock-offsets": "The file with the clocks of hosts is malformed or names unknown hosts."; "Entries that can be used are used."; "taskscope sync writes a new one.";
    "no-clock-offsets": "The trace spans several hosts and lacks the clock offsets of some or all."; "Clocks are taken as equal."; "On one host nothing is wrong; else taskscope sync.";
    "clock-gate": "The first events of streams lie more than an hour apart."; "Shown as they are."; "Clocks of hosts differ: see clock-offsets.";

    }
    "Device queues" {
    "host-bound": "A device queue is idle and nothing was submitted to it.";
        "Between the end of the last operation and the submission of the next one, per queue.";
        "Submit earlier and more at once: several threads or tasks, larger operations, fewer waits of the host between submissions. See Calls for devices: how long threads wait.";
    "transfer-bound": "An operation was submitted, but the device only copies.";
        "A gap of the queue in which something waits, while a copy or fill of another queue of the device runs, and no kernel.";
        "Copy less, copy earlier on a queue of its own, or use memory that the device reaches directly.";
    "device-busy": "An operation was submitted, and the device runs kernels of other queues.";
        "A gap of the queue in which something waits while a kernel of another queue of the device runs.";
        "Nothing, if the other work is wanted: the device is in use.";
    "dependency-bound": "An operation was submitted, and the device does nothing.";
        "A gap of the queue in which something waits while no operation of the device runs: it waits for an event, a barrier, the host, or the driver.";
        "Look at what the operation after the gap waits for (dump --queue); order less, and replace waits of the host by events. Short gaps at every operation are the driver's cost of a launch: make operations larger.";
    "device-account": "The counts of a queue do not add up: appended = delivered + cancelled + lost.";
        "From the counts that the recorder or the import wrote at the end.";
        "The trace was changed, or this is an error of taskscope: please report it.";
    "device-lane": "In a lane of a queue, an operation begins before the one before it ends.";
        "Begins and ends of each lane are compared in the order of the trace.";
        "The trace was changed, or this is an error of taskscope: please report it.";
    "device-release-order": "On an in-order queue, an operation stands after one that was submitted later.";
        "Sequences of the queue are compared in the order of the trace.";
        "The trace was changed, or this is an error of taskscope: please report it.";
    "device-lost": "An operation was submitted, but no record of it ever came.";
        "It was announced before its submission; it counts as lost after a wait for the device and a flush, or at the end of the program.";
        "Let the program wait for its queues before it ends; with a device's pool of stamps exhausted, or records dropped (device-dropped), record a shorter run.";
    "device-dropped": "The vendor's interface says that it dropped records.";
        "The vendor's own count, for the whole process.";
        "Record a shorter part of the run, or fewer and larger operations.";
    "device-untimed": "A record came without a start or an end, or with an end before its start.";
        "As the vendor gave it; the operation is delivered in its place, without a lane.";
        "A kernel that still ran at a forced flush has no end: let the program wait before it ends. Zeros on a busy device show an exhausted pool of stamps.";
    "device-overlap": "On an in-order queue, an operation starts before an earlier one ends.";
        "Starts and ends as they came; both are kept, the later one in a lane of its own.";
        "The device's clock, or the vendor's map of it to the host's, is wrong by at least the overlap: no order of records repairs that. A newer driver may.";
    "device-start-before-submit": "An operation starts before, or exactly when, it was submitted.";
        "Its start is compared with its submission, in the same clock.";
        "As for device-overlap: times near it are wrong by at least the difference.";
    "device-start-goes-back": "An operation of an out-of-order queue was released after one that starts later.";
        "It was told so late, or its clock was so wrong, that others had been released before.";
        "Order by start where that matters; the record is kept with its times.";
    "device-unannounced": "A record came of an operation that nobody was seen to submit.";
        "Its sequence was never appended before the record came.";
        "The submission went past the recorder: a call that is not watched, or a thread that began before recording.";
    "device-clock": "The map of a device's clock to the host's breaks one of its bounds.";
        "No operation may start before it was submitted, or end after its record was seen; the map is fitted between these bounds, and what cannot be satisfied is counted.";
        "`info` shows the map, its room and its steps. Compare times of device and host only beyond the worst violation.";
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use taskscope_analysis::FindingKind;
    use taskscope_analysis::causes::Leaf;
    use taskscope_analysis::critical_path::StepKind;
    use taskscope_analysis::diagnosis::Situation;
    use taskscope_analysis::slo::Mode;
    use taskscope_execution::Anomaly;

    #[test]
    fn every_name_that_a_report_can_print_is_explained() {
        let findings = FindingKind::ALL.iter().map(|kind| kind.name());
        let states = State::ALL.iter().map(|state| state.name());
        let anomalies = Anomaly::NAMES.iter().copied();
        let leaves = Leaf::ALL.iter().map(|leaf| leaf.name());
        let situations = Situation::ALL.iter().map(|situation| situation.name());
        let letters =
            ["starvation", "latency", "overhead", "contention", "tail", "growth", "filtered", "selected"];
        let steps = StepKind::ALL.iter().map(|kind| kind.name());
        let sections = crate::CausesSection::ALL.iter().map(|section| section.name());
        let modes = Mode::ALL.iter().map(|mode| mode.name());
        let of_graphs = leaves.chain(situations).chain(letters).chain(steps).chain(sections).chain(modes);
        for name in findings.chain(states).chain(anomalies).chain(of_graphs).chain([
            "late-release",
            "lost-events",
            "run-file",
        ]) {
            assert!(find(name).is_some(), "{name} is not explained");
        }
        for (rule, _) in taskscope_session::device_check::RULES {
            assert!(find(rule).is_some(), "{rule} is not explained");
        }
    }

    #[test]
    fn a_name_is_found_as_the_text_and_the_json_write_it() {
        let name = |asked: &str| find(asked).map(|explanation| explanation.name);
        assert_eq!(name("metg_ns"), Some("metg"));
        assert_eq!(name("Load balance"), Some("load_balance"));
        assert_eq!(name("waiting for a lock"), Some("lock_wait"));
        // Names that differ only in what parts their words are told apart by it.
        assert_eq!((name("mpi-start"), name("mpi_start")), (Some("mpi-start"), Some("mpi_start")));
        assert_eq!(name("nothing such"), None);
    }

    #[test]
    fn names_are_unique() {
        let mut names: Vec<_> = EXPLANATIONS.iter().map(|e| e.name).collect();
        names.sort();
        assert!(names.windows(2).all(|pair| pair[0] != pair[1]));
    }

    #[test]
    fn summaries_are_sentences_that_fit() {
        assert_eq!(summary("A stream.json is missing. More.", 40), "A stream.json is missing");
        assert_eq!(summary("One two, three four", 12), "One two…");
        assert!(EXPLANATIONS.iter().all(|row| summary(row.meaning, 50).chars().count() <= 50));
    }

    #[test]
    fn near_names_are_found_by_letters_and_parts() {
        assert_eq!(near("imbalanc"), ["imbalance"]);
        assert_eq!(near("lokc-held")[0], "lock-held");
        assert_eq!(near("unfinished_streams")[0], "unfinished-stream");
        assert!(near("sponge").contains(&"Sponge mode"));
        assert!(near("no such name at all").is_empty());
        assert!(near(&"x".repeat(1 << 20)).is_empty());
    }

    #[test]
    fn groups_are_together() {
        let groups: Vec<_> =
            EXPLANATIONS.chunk_by(|a, b| a.group == b.group).map(|rows| rows[0].group).collect();
        let distinct: std::collections::BTreeSet<_> = groups.iter().collect();
        assert_eq!(distinct.len(), groups.len());
    }
}
