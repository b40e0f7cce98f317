//! Explanations of the names in reports: meaning, computation and usual remedies.
//!
//! Causes, blame, patterns and states come from `causes.toml` of the crate `cause`; all others are here.

use taskscope_cause::{Blamed, Cause, Group, Pattern, State, Text};

/// The explanation of one name.
#[derive(Clone, Copy, Debug)]
pub struct Explanation {
    /// The heading that it is listed under.
    pub group: &'static str,
    /// The kind of thing that has the name: names of different kinds may be equal.
    pub kind: &'static str,
    /// The name as reports print it.
    pub name: &'static str,
    /// The meaning.
    pub meaning: &'static str,
    /// The computation; may be empty.
    pub computed: &'static str,
    /// The usual remedy; may be empty.
    pub helps: &'static str,
    /// The texts of the vocabulary, and of a state its cause; none of other names.
    pub vocabulary: Option<(&'static Text, Option<Cause>)>,
}

impl Explanation {
    fn from_text([group, kind]: [&'static str; 2], text: &'static Text, cause: Option<Cause>) -> Explanation {
        let Text { name, meaning, computed, helps, .. } = *text;
        Explanation { group, kind, name, meaning, computed, helps, vocabulary: Some((text, cause)) }
    }

    /// Explains a cause.
    pub fn from_cause(cause: Cause) -> Explanation {
        Explanation::from_text(["Causes of lost time", "cause of lost time"], cause.text(), None)
    }

    /// Explains a blamed party.
    pub fn from_blamed(blamed: Blamed) -> Explanation {
        Explanation::from_text(["What is blamed", "blamed"], blamed.text(), None)
    }

    /// Explains a pattern.
    pub fn from_pattern(pattern: Pattern) -> Explanation {
        Explanation::from_text(["Patterns", "pattern"], pattern.text(), None)
    }

    /// Explains a group of states.
    pub fn from_group(group: Group) -> Explanation {
        Explanation::from_text(["Groups of states", "group of states"], group.text(), None)
    }

    /// Explains a state.
    pub fn from_state(state: State) -> Explanation {
        Explanation::from_text(["States of threads", "state of threads"], state.text(), Some(state.cause()))
    }
}

/// All explanations, those of a group together.
pub fn all() -> impl Iterator<Item = Explanation> {
    (Cause::ALL.into_iter().map(Explanation::from_cause))
        .chain(Blamed::ALL.into_iter().map(Explanation::from_blamed))
        .chain(Pattern::ALL.into_iter().map(Explanation::from_pattern))
        .chain(Group::ALL.into_iter().map(Explanation::from_group))
        .chain(State::ALL.into_iter().map(Explanation::from_state))
        .chain(EXPLANATIONS.iter().copied())
}

macro_rules! explanations {
    ($( $group:literal, $kind:literal { $( $name:literal: $meaning:literal; $computed:literal; $helps:literal; )* } )*) => {
        /// Explanations of names that are not in the vocabulary.
        static EXPLANATIONS: &[Explanation] = &[$($(
            Explanation {
                group: $group,
                kind: $kind,
                name: $name,
                meaning: $meaning,
                computed: $computed,
                helps: $helps,
                vocabulary: None,
            },
        )*)*];
    };
}

/// Returns the explanations of a name. Exact matches come first, then names that differ only in case,
/// separators or a trailing unit, then labels. A cause and a state may share a name. Of a name with a family
/// (`taken_barrier_ns`, `state.barrier`, `idle_host_bound`) it returns the family's and the rest's.
pub fn find(name: &str) -> Vec<Explanation> {
    let found = find_whole(name);
    if !found.is_empty() {
        return found;
    }
    let parts = FAMILIES.iter().find_map(|family| Some((family, name.strip_prefix(family)?)));
    let Some((family, rest)) = parts else { return found };
    let rest_matches = find_whole(rest.strip_suffix("_ns").unwrap_or(rest));
    match rest_matches.is_empty() {
        true => found,
        false => find_whole(&family[..family.len() - 1]).into_iter().chain(rest_matches).collect(),
    }
}

/// Beginnings of names of metrics and sums, with the separator.
const FAMILIES: [&str; 6] = ["taken_", "given_", "shared_", "state.", "no_cpu.", "idle_"];

fn find_whole(name: &str) -> Vec<Explanation> {
    let plain = |name: &str| name.to_lowercase().replace([' ', '-', '_', '.'], " ");
    let asked = plain(name);
    let without_unit = asked.strip_suffix(" ns").unwrap_or(&asked).to_owned();
    let matching = |is: &dyn Fn(&Explanation) -> bool| all().filter(|row| is(row)).collect::<Vec<_>>();
    let called = |row: &Explanation| row.vocabulary.is_some_and(|(text, _)| plain(text.label) == asked);
    let mut found = matching(&|row| row.name == name);
    for alike in [&asked, &without_unit] {
        if found.is_empty() {
            found = matching(&|row| plain(row.name) == *alike);
        }
    }
    if found.is_empty() { matching(&called) } else { found }
}

/// The vocabulary as a page of documentation, in Markdown.
pub fn page() -> String {
    let mut page = String::from(
        "# Causes of lost time\n\n<!-- Made from crates/cause/causes.toml by `make causes-page`. -->\n\n\
         Every worker-nanosecond has one cause, a node of this tree; a finding is a cause, what is blamed, and a place. \
         docs/ledger.md has how the sums are made. Unit of all times: worker-nanoseconds.\n",
    );
    let rows: Vec<Explanation> = all().filter(|row| row.vocabulary.is_some()).collect();
    for group in rows.chunk_by(|a, b| a.group == b.group) {
        page += &format!("\n## {}\n", group[0].group);
        for row in group {
            let Some((text, cause)) = row.vocabulary else { continue };
            page += &format!("\n### `{}`: {}\n\n{}\n", text.name, text.label, text.meaning);
            let cause = cause.map(|cause| format!("`{}`", cause.name())).unwrap_or_default();
            let parts = [
                ("Computed", text.computed),
                ("Blamed", text.blames),
                ("Counts as", &cause),
                ("Helps", text.helps),
                ("Elsewhere", text.published),
            ];
            for (title, text) in parts.into_iter().filter(|(_, text)| !text.is_empty()) {
                page += &format!("\n* {title}: {text}");
            }
            for (runtimes, advice) in text.advice {
                let names: Vec<&str> = runtimes.iter().map(|runtime| runtime.name()).collect();
                page += &format!("\n* {}: {advice}", names.join(", "));
            }
            page.push('\n');
        }
    }
    page
}

/// The first clause of a text of several words, outside brackets, cut between words to at most `width` characters.
pub fn summary(text: &str, width: usize) -> String {
    let ends = [". ", ": ", "; "].iter().flat_map(|mark| text.match_indices(mark)).map(|(at, _)| at);
    let is_clause = |end: &usize| {
        let before = &text[..*end];
        before.contains(' ') && before.matches('(').count() == before.matches(')').count()
    };
    let end = ends.filter(is_clause).min().unwrap_or(text.len());
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
    let names = all().map(|explanation| explanation.name).chain(parts);
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
/// Longest word that gets suggestions; bounds the work for arbitrary input.
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
    "Letters of SLOW (sections ledger, idle, diagnosis)", "letter of SLOW" {
    "starvation": "Workers had nothing to execute because there was not enough parallel work at the time.";
        "Idle time with a running task as its cause, followed from worker to worker; waiting for late ranks; and wait.drain.";
        "See tasks, too-coarse and badly-distributed in report --section diagnosis.";
    "latency": "Workers were idle because data was in transit.";
        "Idle time with a transfer, a communication call, a device or code blocked in the kernel as its cause, followed from worker to worker.";
        "See link, call and bad-locality in report --section diagnosis.";
    "overhead": "Workers were in the runtime, or had no CPU.";
        "Sections of the runtime, times off the CPU, ready tasks that were not started, and idle time caused by one of these.";
        "See too-fine, runtime and cpu in report --section diagnosis.";
    "contention": "Workers waited for a lock that others held.";
        "Waits for locks, and idle time caused by such a wait.";
        "See lock.";
    }
    "Sections by the task graph, and their contents", "by the task graph" {
    "ledger": "The cause of every nanosecond of every worker.";
        "The first cause that applies; a worker's own activity precedes the cause of its idle time. The causes sum to the capacity exactly; work, starvation, latency, overhead and contention are sums of them.";
        "Look at the largest cause, then at its rows in section blame.";
    "ready_work": "The place of ready tasks while a worker was idle: here (on its node), elsewhere (only on other nodes), or nowhere.";
        "At each instant of idle time, from the times at which tasks were ready and started.";
        "Here: look at the scheduler. Elsewhere: at the placement. Nowhere: at the parallelism of the program.";
    "blame": "The culprit of each loss: running code, a holder, or data in transit, at each instant.";
        "Each cause is followed along its worker's wait, instant by instant; the rows of a cause sum to it. The symptom is the code that lost the time.";
        "Change the culprit, not the symptom.";
    "data": "Waiting for inputs by the data that decided it, under the programmer's name.";
        "The input that was complete or arrived last decides; the rows of a cause sum to it.";
        "taskscope_name_data gives data a name; produce the first rows earlier, or place them on the nodes that read them.";
    "queues": "Ready tasks that no worker took, by node.";
        "From when a task could start to its start; idle_ns sums to wait.dispatch.";
        "Many tasks that wait while workers are idle: wake-ups, affinity or priority of the scheduler.";
    "diagnosis": "Root causes of the lost time, with remedies.";
        "Starvation, latency, overhead and contention split by root cause, culprit and pattern, by the numbers beside each. They sum to capacity - work.";
        "taskscope explain NAME explains each cause, culprit and pattern.";
    "tail": "Time of workers after their last task.";
        "While others still execute (wait.drain) and after all tasks (wait.end). Not a part of starvation, latency and overhead in section idle.";
        "See wait.drain and wait.end.";
    "direct": "A mode of section idle: while the producer's worker is itself idle, that is starvation, as V. S. Litvinov published it.";
        "Waiting for data that waits for the network counts as starvation too.";
        "Use it to compare with published numbers, and mode root for changes.";
    "chained": "A mode of section idle: while the producer's worker is itself idle, the overhead in that counts as overhead, the rest as starvation.";
        "As direct, with the overhead share of that worker's wait.";
        "See root.";
    "root": "The default mode of section idle: while the producer's worker is itself idle, the cause is whatever that worker waits for.";
        "Followed from worker to worker until one executes, is in the runtime, or waits for data in transit.";
        "Read starvation, latency and overhead in this mode.";
    "path": "The critical path: the chain of steps that determined the end of the run.";
        "From the end of the run backwards, each step is the last one that the next waited for; the steps tile the wall time exactly.";
        "Only changes of the path make the run shorter: shorten or split its largest steps.";
    "span": "T-infinity, the longest chain of tasks that wait for each other: no number of workers makes the run shorter.";
        "Work along the longest chain of dependences; burdened_span_ns adds the cost of running each of its tasks.";
        "Split the tasks on the path, or relax their dependences.";
    "parallelism": "The number of workers that the program could keep busy on average.";
        "All work divided by the longest chain (T1 over T-infinity).";
        "Below the number of workers: relax dependences or split long tasks.";
    "lower_bound": "The wall time that no run on this number of workers can undercut.";
        "The larger of the work spread evenly over all workers (area_bound_ns; node_bound_ns if tasks stay on their nodes) and the longest chain.";
        "Other scheduling could gain the difference to the wall time at most, without a change of the tasks.";
    "slack": "The delay that a task could have had without delaying the end of the run; tasks without any are critical.";
        "From the end of the run backwards over the dependents of each task, with the recorded costs.";
        "Speed up types with little slack; tasks with much slack may run later or on slower CPUs.";
    "metg": "The average cost of running a task: shorter tasks spend more than half of the time on the runtime (minimum effective task granularity at 50 %).";
        "Time in sections of the runtime and in starting ready tasks, divided by the number of tasks; after Slaughter et al., Task Bench, SC 2020.";
        "Tasks ten times as long lose a tenth.";
    "pop": "POP's efficiencies: parallel = load balance x serialization x transfer.";
        "Load balance: mean over maximum of the workers' work. Serialization: the largest work over the wall time of a replay on an ideal network. Transfer: that wall time over the recorded one. Start and end of MPI are excluded.";
        "Low load balance: distribute work. Low serialization: relax dependences; see path. Low transfer: improve communication; see link.";
    "whatif": "The duration of the recorded run with other costs.";
        "A replay with a stated scheduler: tasks stay on their node, a free worker takes the ready task that started first in the recorded run. replay_error is the error of the replay without a change.";
        "Try changes before they are made: --what-if TYPE=0.5, runtime=0, network=0.5, workers=8.";
    "growth": "In a diff, the growth of a number as a part of its former value. For a task type it is the work inflation: the cost of shared caches and memory for each task, between a run on one worker and one on many.";
        "Difference of the means over the mean before; interval_95 is Welch's.";
        "Inflation: smaller working sets per task, first touch on the node that uses it, tasks placed near their data.";

    }
    "Words of the report", "word of the report" {
    "capacity": "The time of all workers: the budget that the report divides.";
        "Workers × time from the first to the last event of their process, summed over processes. Programs without a task runtime have CPUs in the place of workers.";
        "Compare losses with it: their shares are shares of the capacity.";
    "confidence": "How surely the blamed code caused the loss: high, medium or low.";
        "High if that code held the awaited lock, or was the sole cause in at least 70 % of the loss. Medium from 30 % on, or if the load balance of a construct is at most 0.9. Low otherwise. For a task that runs alone, waits are not certain in which workers had no CPU and another task may have been ready.";
        "Begin with findings of high confidence. Look at the timeline before you change code for others.";
    "evidence": "The states in which the time of a finding was lost, and the part of it in which the blamed code was the sole cause; with the runtime's own time, the part of the waits.";
        "Sole cause: meanwhile no other worker ran code, and no other thread held the awaited object.";
        "The states lead to the rows of section time.";
    "finding": "A loss with its cause, blamed code and place, F1 being the largest.";
        "Entries of the ledger with the same cause, blamed code and place, summed. Waits belong to the code that caused them.";
        "taskscope explain F1 has its remedy and evidence.";
    }
    "Efficiency factors", "efficiency factor" {
    "efficiency": "Useful time over capacity: the part of the workers' time in which the program's own code ran.";
        "Capacity is workers × time from the first to the last event of the process. A worker is a thread that ever was in a team; without any region the initial thread. Efficiency = CPU availability × serialization × load balance × device offload × blocked × runtime overhead (× known), exactly: each factor is what remains after removing one kind of loss, in this order (as TALP does for OpenMP).";
        "Begin with the lowest factor.";
    "cpu_availability": "The time that remains without losses to missing CPUs and to more workers than CPUs."; "(C − Io) / C, with C the capacity and Io these losses. It comes first: A = C − Io is the base of the other factors."; "See cpu.none and cpu.oversubscribed.";
    "serialization": "The part of the remaining time without workers that had nothing to do (no region, not started, ended) or waited for their turn (locks, critical, ordered, atomic)."; "(A − Is) / A, with A the time with CPUs (see cpu_availability) and Is these losses."; "See findings blamed on serial code, and lock.";
    "load_balance": "The part of the remaining time without waiting in a team (barriers, taskwait, taskgroup) while others worked."; "(A − Is − Il) / (A − Is), Il these losses."; "See findings blamed on worksharing and tasks.";
    "device_offload": "The part of the remaining time without waiting for devices in target constructs and calls."; "(A − Is − Il − Id) / (A − Is − Il), Id these losses; 1 without devices."; "See device.";
    "runtime_overhead": "The part of the remaining time without the runtime's own time, and without waiting while no worker ran code."; "(A − Is − Il − Id − Ib − Ir) / (A − Is − Il − Id − Ib), Ir these losses, Ib blocked time."; "See runtime, and findings blamed on nobody.";
    "known": "The part of the remaining time without time of unknown state."; "U / (A − Is − Il − Id − Ib − Ir), U the useful time."; "See unknown.";

    }
    "Notices about the recording (--allow NAME)", "notice" {
    "unfinished-stream": "Streams did not end properly: the program was killed, became another one (exec), or still runs. Everything up to the last completed event is in the report."; "The thread's metadata has no mark of its end. A thread's state at its last event is taken to last until the last event of the process."; "The shown part is correct; later events are missing.";
    "uncertain": "Some intervals are uncertain: a stream ends before its thread, an event contradicts the known state of its thread, a thread's clock goes back, or several threads run on one CPU at once. Timelines hatch them, or print `?`."; "At the end of a stream the interval lasts from its last event to the end of the shown time; before a contradicting event, from the thread's previous change; if a clock goes back, from the earlier clock to the later one, at which the events are shown. A CPU is uncertain while the thread that it shows is. Times are counted as they are shown."; "taskscope check lists the contradictions, with stream and byte.";
    "slice": "The trace is a part of a run, written by `taskscope slice`."; "Operations of devices are not in a slice. Times off the CPU and their causes are those of the whole run."; "For causes of a part, use report --range on the whole trace.";
    "selected": "The report covers the threads that pass --where: capacity, causes, waits and tasks are those of these threads, and sum exactly."; "The other threads are read completely, so culprits of the selected threads' waits are found among them and charged. Waits of the other threads are left out. The critical path, what-if, locks' holds and the balance of loops and regions are of the whole run."; "Nothing is wrong. For a part of the time use --range.";
    "filtered": "The report covers the events that pass --where, without all other events of their threads."; "States last from one selected event of a thread to the next. Threads without passing events are read completely, so culprits are found among them. If workers are CPUs, a filter of some of their threads removes the others' events."; "To select threads, filter by thread, process, loom, app or stream alone. For a part of the time use --range, which keeps the states at its begin. taskscope view --where shows everything and dims the rest.";
    "lost-events": "The recorder could not keep all events, for instance because the disk was full."; "The recorder counts lost events and writes the number into the stream; time around a loss is `unknown`."; "Free disk space, raise the limit, or record fewer events.";
    "runtime-replaced": "The program was built for GCC's libgomp, which cannot be observed, and ran on LLVM's libomp instead. Timings are that runtime's."; "`taskscope record` checks that libomp has every function that the program needs before it does so."; "--no-preload keeps libgomp (then nothing of OpenMP is recorded); or build with clang.";
    "runtime-kept": "The program uses something of GCC's libgomp that LLVM's libomp lacks, so it ran unchanged and could not be observed."; "The missing symbols are named in the notice."; "Build with clang.";
    "no-ompt-runtime": "No OpenMP runtime that can be observed (OMPT) was found."; "The loader's search path was searched."; "Install LLVM's runtime (Debian: libomp-19-dev); taskscope doctor has details.";
    "tool-disabled": "OMP_TOOL=disabled is set, so the runtime loads no tool."; "The variable was set when the program was started."; "Unset OMP_TOOL.";
    "directory-taken": "The directory for the trace existed, so another one was used."; "The next free number is appended."; "-o DIR names another directory.";
    "cuda-injection-kept": "`CUDA_INJECTION64_PATH` was set already."; "CUDA's driver loads one library, and that of the user was kept: the trace has no CUDA records."; "Unset the variable to record CUDA.";
    "tool-chained": "Another OMPT tool was named by the user or loaded by the runtime; it receives all events too."; "The runtime accepts one tool: it loads taskscope's, which calls the other one."; "Its cost is part of the times: remove it for exact ones.";
    "tool-missing": "OMP_TOOL_LIBRARIES names an OMPT tool that cannot be found."; "The libraries of the list were searched as the loader does."; "Correct the path, or unset the variable.";
    "own-tool": "The program, or a library of it, has an OMPT tool of its own, which the runtime prefers: it does not load taskscope's."; "The program and the libraries that it needs were searched for the function ompt_start_tool."; "Link the program without its tool, or name that tool in OMP_TOOL_LIBRARIES instead: both run then.";
    "own-tool-replaced": "A library of the program has an OMPT tool of its own, which is not used: taskscope's is preloaded and replaces it."; "The libraries that the program needs were searched for the function ompt_start_tool."; "Name that tool in OMP_TOOL_LIBRARIES: both run then.";
    "runtimes-mixed": "The program and its libraries use more than one OpenMP runtime."; "From the needed libraries of the program and of its libraries."; "Build everything with one compiler, so that one runtime runs all of it.";
    "run-file": "The file about the run, taskscope-run.json, cannot be used."; "It is not valid JSON of the expected form."; "The report works without it; command, exit code and recording cost are missing.";
    "resting-not-recorded": "nOS-V was recorded without its idle states (Progressing, Resting), as below ovni.level=3.";
        "From nosv.can_breakdown of the streams. One of the workers that ask for tasks stays in Scheduler: Serving until a task arrives, so this section contains idle time as well as scheduling.";
        "Record with ovni.level=3. Without it, read long scheduling on one CPU as idle time.";
    "missing-names": "Some places in the code have no function or line."; "Files are compared with the recorded ones by build id; lines come from DWARF, names from DWARF or the symbol table."; "Compile with -g; keep the executables as they were when recorded, at the same path.";

    }
    "Events that contradict each other", "contradiction of events" {
    "inverted-edge": "A thread executed a region or task before its recorded creation. Clocks of threads differ a little, and the first region of a construct is recorded once its code is known."; "The creation is moved to the use, so that the distance is zero; count and largest distance are shown."; "None is needed: it is harmless up to some hundred nanoseconds, and once for each construct.";
    "late-release": "A lock's release was reported after the next acquisition. OMPT reports a release after it has happened, so some are always late."; "The next holder counts from its own acquisition; the late report is ignored."; "No action is needed: it moves no time.";
    "time-runs-back": "An event lies before its thread's previous one."; "It is moved to the previous one's time."; "taskscope check names the stream.";
    "end-without-begin": "An end event had no begin."; "It is ignored."; "taskscope check names the stream.";
    "ends-not-innermost": "An end event was not that of the innermost open section."; "The sections inside end too."; "taskscope check names the stream.";
    "not-created": "A task ran without a creation in the trace."; "It counts as a task of unknown type."; "Events may be lost; see lost-events.";
    "short-payload": "An event is shorter than its fields."; "It is ignored."; "taskscope check names the stream.";
    "after-end": "Events of a thread come after its end."; "They are ignored."; "taskscope check names the stream.";
    "instrumentation-misuse": "The program's own instrumentation contradicts itself: a close without an open, a task on two threads, a name with two meanings.";
        "Every event is played through the context of its task; contradictions are ignored or resolved in the most plausible way.";
        "`taskscope check` lists each with its stream and time.";
    "unknown-event": "Events belong to an unknown model."; "They are ignored and counted."; "Try a newer version of taskscope.";

    }
    "Damage of streams", "damage of a stream" {
    "unreadable": "A file or directory cannot be read."; "The operating system refused access."; "Check permissions.";
    "bad-metadata": "A stream.json is not JSON."; "It is ignored; names come from the directories."; "–";
    "metadata-version": "The version of a stream.json is not 3."; "Its known parts are read."; "–";
    "missing-attribute": "A stream.json lacks an attribute that the format demands."; "Readers of the format may refuse the trace; the report does not need it."; "–";
    "unknown-part": "A stream belongs to something that is not a thread."; "It is read as if it were one."; "–";
    "missing-metadata": "A directory has a stream.obs but no stream.json."; "Its events are skipped: their thread is not known."; "Check that the trace was copied completely.";
    "missing-stream": "A directory has a stream.json but no stream.obs."; "The thread has no events of standard models."; "–";
    "bad-magic": "A file of a stream lacks its header."; "It is not read."; "–";
    "stream-version": "The version of a stream file is not 1."; "It is not read."; "–";
    "empty-stream": "A stream has no events."; "–"; "–";
    "truncated-event": "A stream file ends within an event."; "Everything before it is read."; "Check that the file was copied completely.";
    "torn-event": "An event was being written when the program stopped."; "It is dropped; everything before it is read."; "No action is needed: at most one event per thread is missing.";
    "zero-tail": "A finished stream ends in zeros."; "They are ignored."; "–";
    "clock-goes-back": "A clock is lower than the one before it."; "It is raised to the one before, and the time between the two is marked as uncertain."; "taskscope sort, if the stream was recorded unsorted.";
    "unsorted-region": "Events were recorded out of order in a region marked as unsorted."; "They are sorted while reading."; "No action is needed.";
    "clock-too-large": "A clock exceeds 63 bits."; "The event is taken at the largest time."; "Record again: the file is damaged.";
    "clock-too-far": "Clocks of some events are implausibly far after the first one."; "These events are placed 26 days after the first event."; "The stream is damaged: taskscope check names it.";
    "open-unsorted-region": "A region of unsorted events was never closed."; "It is sorted to the end of the stream."; "No action is needed.";
    "clock-offsets": "The file with the clocks of hosts is malformed or names unknown hosts."; "The valid entries are used."; "taskscope sync writes a new one.";
    "no-clock-offsets": "The trace spans several hosts and lacks the clock offsets of some or all."; "Clocks are assumed to be equal."; "taskscope sync; with a single host, no action is needed.";
    "clock-gate": "The first events of streams are more than an hour apart."; "They are shown unchanged."; "Clocks of hosts differ: see clock-offsets.";

    }
    "Columns of call paths", "column of call paths" {
    "time": "Time at a path, with all that it calls.";
        "In traces the workers' time, divided among the samples at each place; in profiles the time of the samples. The legend above the columns says which.";
        "See work, waiting and idleness for its kinds.";
    "waiting": "Waiting at the path of the thread that waits: the symptom.";
        "The sum of taken_STATE_ns over the states.";
        "See blame and idleness for the code that others waited for.";
    "idleness": "Waiting of other threads while this code ran: the cause, if no single thread is charged.";
        "The sum of shared_STATE_ns over the states: each nanosecond of waiting is divided among the threads that worked meanwhile.";
        "Make code with much idleness parallel, or shorter.";
    "samples": "Samples of call stacks at a path.";
        "Their number, whatever time each represents.";
        "More samples: record --sample with a higher rate.";
    "task_time": "Time of the tasks that were created at a path.";
        "The bodies of the tasks, by the path of their creation.";
        "See task_types for the length of single tasks.";
    "taken": "Waiting in one state at the path of the thread that waits (taken_STATE_ns).";
        "Events of the wait, in nanoseconds."; "See given and shared for its cause.";
    "given": "Waiting of others in one state that is charged to the one thread at this path (given_STATE_ns).";
        "Waits for a lock, a task or a construct with one thread to wait for."; "Hold locks for shorter; see the state.";
    "shared": "Waiting of others in one state while this path worked (shared_STATE_ns).";
        "Divided evenly among all threads that worked meanwhile."; "See idleness.";

    }
    "Waits of threads for each other", "wait of threads" {
    "read-write lock": "A pthread_rwlock_t, or the like of a library."; "From the call to its return."; "Shorter sections; readers need not wait for readers.";
    "spin lock": "A pthread_spinlock_t."; "From the call to its return; the thread uses its CPU meanwhile."; "A mutex, where the holder may lose its CPU.";
    "interpreter lock": "The global interpreter lock of CPython: only the thread that holds it runs Python code."; "From the first wait for its condition to the unlock of its mutex; CPython waits 5 ms at a time."; "Processes instead of threads, or native code that releases the lock.";
    "GIL": "The global interpreter lock of CPython, an interpreter lock."; "As for interpreter lock."; "As for interpreter lock.";
    "condition": "A condition variable: the thread waits until another one wakes it."; "From the call to its return, without the wait for the mutex after it."; "The code that wakes the thread is charged: wake it earlier.";
    "semaphore": "A sem_t: the thread waits until another one posts."; "From the call to its return."; "As for condition.";
    "handover": "The awaited lock was free, or the thread was woken, and it did not run yet."; "From the release or the wake-up to the end of the wait."; "Free CPUs; fewer wake-ups.";
    "unrecorded": "The awaited thread was blocked in the kernel, in a call that is not recorded: why is not known."; "Its time off the CPU, outside of recorded waits and of waits of a runtime."; "See its samples in column blocked of section call-paths.";
    "timeout": "The caller's time limit ended the wait."; "Waits of functions with a time limit that return without the object."; "Nothing, if the thread polls on purpose.";

    }
    "Device queues", "device queues" {
    "device-busy": "An operation was submitted, and the device runs kernels of other queues.";
        "A gap of the queue with a waiting operation while a kernel of another queue of the device runs.";
        "No action is needed: the device is in use by other queues.";
    "device-account": "The counts of a queue do not add up: appended = delivered + cancelled + lost.";
        "From the counts that the recorder or the import wrote at the end.";
        "The trace was changed, or this is an error of taskscope: please report it.";
    "device-lane": "In a lane of a queue, an operation begins before the one before it ends.";
        "Begins and ends of each lane are compared in the order of the trace.";
        "The trace was changed, or this is an error of taskscope: please report it.";
    "device-release-order": "On an in-order queue, an operation follows one that was submitted later.";
        "Sequences of the queue are compared in the order of the trace.";
        "The trace was changed, or this is an error of taskscope: please report it.";
    "device-lost": "An operation was submitted, but its record never arrived.";
        "It was announced before its submission; it counts as lost after a wait for the device and a flush, or at the end of the program.";
        "Let the program wait for its queues before it ends; with a device's pool of stamps exhausted, or records dropped (device-dropped), record a shorter run.";
    "device-dropped": "The vendor's interface reports dropped records.";
        "The vendor's own count, for the whole process.";
        "Record a shorter part of the run, or fewer and larger operations.";
    "device-untimed": "A record has no start or no end, or an end before its start.";
        "From the vendor's record; the operation is delivered in its place, without a lane.";
        "A kernel that still ran at a forced flush has no end: let the program wait before it ends. Zeros on a busy device show an exhausted pool of stamps.";
    "device-overlap": "On an in-order queue, an operation starts before an earlier one ends.";
        "From starts and ends as recorded; both operations are kept, the later one in a separate lane.";
        "The device's clock, or the vendor's map of it to the host's, is wrong by at least the overlap: no order of records repairs that. Try a newer driver.";
    "device-start-before-submit": "An operation starts before, or exactly when, it was submitted.";
        "Its start is compared with its submission, in the same clock.";
        "As for device-overlap: times near it are wrong by at least the difference.";
    "device-start-goes-back": "An operation of an out-of-order queue was released after one that starts later.";
        "Its record came so late, or its clock was so wrong, that others had been released before.";
        "Order by start if that matters; the record is kept with its times.";
    "device-unannounced": "A record belongs to an operation without a recorded submission.";
        "Its sequence number was not appended before the record arrived.";
        "The recorder missed the submission: a call that it does not intercept, or a thread that began before recording.";
    "device-clock": "The map of a device's clock to the host's breaks one of its bounds.";
        "No operation may start before it was submitted, or end after its record was seen; the map is fitted between these bounds, and unsatisfied bounds are counted.";
        "`info` shows the map, its bounds and its steps. Compare times of device and host only beyond the worst violation.";
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use taskscope_analysis::slo::Mode;
    use taskscope_execution::Anomaly;

    #[test]
    fn every_name_that_a_report_can_print_is_explained() {
        let anomalies = Anomaly::NAMES.iter().copied();
        let words =
            ["starvation", "latency", "overhead", "contention", "tail", "growth", "filtered", "selected"];
        let sections = crate::Section::OF_GRAPH.iter().map(|section| section.name());
        let modes = Mode::ALL.iter().map(|mode| mode.name());
        let more = ["late-release", "lost-events", "run-file"];
        for name in anomalies.chain(words).chain(sections).chain(modes).chain(more) {
            assert!(!find(name).is_empty(), "{name} is not explained");
        }
        for (rule, _) in taskscope_check::device_rules::RULES {
            assert!(!find(rule).is_empty(), "{rule} is not explained");
        }
    }

    #[test]
    fn a_name_is_found_as_the_text_and_the_json_write_it() {
        let names = |asked: &str| find(asked).iter().map(|row| row.name).collect::<Vec<_>>();
        assert_eq!(names("metg_ns"), ["metg"]);
        assert_eq!(names("Load balance"), ["load_balance"]);
        assert_eq!(names("waiting for a lock"), ["lock", "lock_wait"]);
        assert_eq!(names("taken_lock_wait_ns"), ["taken", "lock_wait"]);
        assert_eq!(names("state.fork_join"), ["fork_join"]);
        assert_eq!(names("taken_nothing_ns"), Vec::<&str>::new());
        // The exact name selects among names that differ only in separators.
        assert_eq!(names("mpi.start"), ["mpi.start"]);
        assert_eq!(names("mpi_start"), ["mpi_start"]);
        assert_eq!(names("nothing such"), Vec::<&str>::new());
    }

    #[test]
    fn names_of_a_group_are_unique() {
        let mut names: Vec<_> = all().map(|row| (row.group, row.name)).collect();
        names.sort();
        assert!(names.windows(2).all(|pair| pair[0] != pair[1]));
    }

    #[test]
    fn the_page_and_the_schemas_have_the_vocabulary() {
        let docs = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
        if std::env::var_os("TASKSCOPE_WRITE_PAGES").is_some() {
            std::fs::write(docs.join("causes.md"), page()).unwrap();
        }
        let written = std::fs::read_to_string(docs.join("causes.md")).unwrap();
        assert!(written == page(), "docs/causes.md is not that of causes.toml: make causes-page");
        let names = |rows: &[&str]| serde_json::json!(rows);
        let causes = Cause::ALL.map(Cause::name);
        for schema in ["report", "causes"] {
            let text = std::fs::read_to_string(docs.join(format!("{schema}.schema.json"))).unwrap();
            let schema: serde_json::Value = serde_json::from_str(&text).unwrap();
            assert_eq!(schema["$defs"]["cause"]["enum"], names(&causes));
            assert_eq!(schema["$defs"]["blamed"]["enum"], names(&Blamed::ALL.map(Blamed::name)));
            assert_eq!(schema["$defs"]["pattern"]["enum"], names(&Pattern::ALL.map(Pattern::name)));
        }
    }

    #[test]
    fn summaries_are_sentences_that_fit() {
        assert_eq!(summary("A stream.json is missing. More.", 40), "A stream.json is missing");
        assert_eq!(summary("One two, three four", 12), "One two…");
        assert_eq!(summary("nosv_create: a task is made.", 40), "nosv_create: a task is made");
        assert_eq!(summary("Code (OpenCL: f). More.", 40), "Code (OpenCL: f)");
        assert!(all().all(|row| summary(row.meaning, 50).chars().count() <= 50));
    }

    #[test]
    fn near_names_are_found_by_letters_and_parts() {
        assert_eq!(near("serializatoin"), ["serialization"]);
        assert_eq!(near("runtime.frok")[0], "runtime.fork");
        assert_eq!(near("unfinished_streams")[0], "unfinished-stream");
        assert!(near("sponge").contains(&"Sponge mode"));
        assert!(near("no such name at all").is_empty());
        assert!(near(&"x".repeat(1 << 20)).is_empty());
    }

    #[test]
    fn groups_are_together() {
        let rows: Vec<_> = all().collect();
        let groups: Vec<_> = rows.chunk_by(|a, b| a.group == b.group).map(|rows| rows[0].group).collect();
        let distinct: std::collections::BTreeSet<_> = groups.iter().collect();
        assert_eq!(distinct.len(), groups.len());
    }
}
