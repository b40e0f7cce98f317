//! The instrumentation interface as a program uses it: sinks receive the events of the trace, and mistakes
//! are in the trace.
#![cfg(feature = "instrument")]

mod support;

use std::cell::Cell;
use std::path::Path;
use std::sync::{Arc, Mutex};

use support::*;
use taskscope_context::{Behaviour, Contexts, Item, Lane, Out, Problem, Raw};
use taskscope_event::models::instrument as i;
use taskscope_record::instrument::sinks::{self, LiveEvent, Sink};
use taskscope_record::instrument::{
    Class, Content, Domain, Key, Level, StateName, TaskContext, TaskKind, composite, finish, hide_states,
    start,
};
use taskscope_trace::{OpenOptions, Trace};

static RUNNING: StateName = StateName::new("RUNNING", "");
static SOLVING: StateName = StateName::new("solving", "a linear system").counts_as(Class::Useful);
static LOOKING: StateName = StateName::new("looking for work", "").counts_as(Class::Scheduling);
static SIZE: Key = Key::new("block-size", "bytes that are allocated").unit("bytes");
static DEPTH: Key = Key::new("depth", "of recursion").level(Level::Developer).stacked();
static RARE: Key = Key::new("rare", "is off unless enabled").level(Level::Advanced);
static MESSAGES: Domain = Domain::new("mail", "between tasks");
static WORK: TaskKind = TaskKind::new("work");

const THREADS: usize = 3;
const STEPS: u64 = 300;

struct Collector(Behaviour, Arc<Mutex<Vec<(i64, String)>>>);

impl Sink for Collector {
    fn behaviour(&self) -> Behaviour {
        self.0
    }

    fn event(&mut self, event: &LiveEvent<'_>) {
        let line = format!("{} {:?}", event.at, without_thread(event.shown));
        self.1.lock().unwrap().push((i64::from(event.thread), line));
    }
}

/// Threads have other numbers in a living process.
fn without_thread(shown: sinks::Shown<'_>) -> String {
    use sinks::Shown;
    match shown {
        Shown::Resume { task, .. } => format!("resume {task}"),
        Shown::Suspend { task, last, .. } => format!("suspend {task} {last}"),
        other => format!("{other:?}"),
    }
}

/// Tasks on several threads, each at most on one at a time, that push, open, hide, send and move.
fn a_program() {
    let tasks: Vec<TaskContext> = (0..6).map(|_| WORK.create()).collect();
    let free = Arc::new(Mutex::new(tasks.clone()));
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let (free, tasks) = (free.clone(), tasks.clone());
            scope.spawn(move || {
                for step in 0..STEPS {
                    let Some(task) = free.lock().unwrap().pop() else { continue };
                    let on = task.enter();
                    let running = RUNNING.enter();
                    SIZE.open(step);
                    {
                        let _both = SOLVING.enter_with(&SIZE, step + 1);
                        let _depth = DEPTH.burst(step % 3);
                        let _hidden = hide_states();
                        let _looking = LOOKING.enter();
                        composite(&[(&SIZE, 1), (&DEPTH, 2), (&RARE, 3)]);
                    }
                    if step % 2 == 0 {
                        SIZE.close(step);
                    }
                    RARE.point(9);
                    let id = MESSAGES.next_id();
                    MESSAGES.send(id, Content::default());
                    let other = tasks[(step as usize + thread) % tasks.len()];
                    MESSAGES.receive_in(other, id, Content::default());
                    other.point_later(&SIZE, step);
                    drop(running);
                    drop(on);
                    free.lock().unwrap().insert(0, task);
                }
            });
        }
    });
    for task in tasks {
        let _on = task.enter();
        // Sections that odd steps left open.
        for step in (0..STEPS).filter(|step| step % 2 == 1) {
            SIZE.close(step);
        }
    }
}

#[derive(Default)]
struct Derived {
    tids: Vec<i64>,
    lines: Vec<(i64, String)>,
    problems: Vec<&'static str>,
}

impl Out for Derived {
    fn show(&mut self, item: Item<'_>) {
        if let Lane::Thread(thread) = item.lane {
            self.lines
                .push((self.tids[thread as usize], format!("{} {:?}", item.at, without_thread(item.shown))));
        }
    }

    fn problem(&mut self, _thread: u32, _at: u64, problem: Problem) {
        self.problems.push(problem.name());
    }
}

fn derive(directory: &Path, behaviour: Behaviour) -> Derived {
    let trace = Trace::open(directory, &OpenOptions::default()).unwrap();
    let mut contexts = Contexts::new(behaviour);
    let mut out = Derived::default();
    for stream in trace.streams() {
        contexts.add_thread(0);
        out.tids.push(stream.tid().unwrap());
    }
    for merged in trace.merge() {
        let event = merged.event;
        if let Some(raw) = Raw::decode(event.code, event.payload).unwrap() {
            contexts.event(merged.stream as u32, event.clock_ns as u64, &raw, &mut out);
        }
    }
    out
}

#[test]
fn a_sink_receives_the_states_of_a_trace_view() {
    const NAME: &str = "a_sink_receives_the_states_of_a_trace_view";
    if let Some(directory) = role() {
        start(directory.join("trace")).unwrap();
        let heard: Vec<_> = Behaviour::ALL.map(|_| Arc::new(Mutex::new(Vec::new()))).into();
        for (behaviour, lines) in Behaviour::ALL.into_iter().zip(&heard) {
            sinks::add(Collector(behaviour, lines.clone()));
        }
        a_program();
        finish();
        for (behaviour, heard) in Behaviour::ALL.into_iter().zip(&heard) {
            let heard = heard.lock().unwrap();
            let derived = derive(&directory.join("trace"), behaviour);
            assert!(heard.len() > 10_000, "{behaviour:?}: {}", heard.len());
            for (row, (live, replayed)) in heard.iter().zip(&derived.lines).enumerate() {
                assert_eq!(live, replayed, "{behaviour:?}, row {row}");
            }
            assert_eq!(heard.len(), derived.lines.len(), "{behaviour:?}");
        }
        leave(0);
    }
    let directory = temporary("instrument-sinks");
    std::fs::create_dir_all(&directory).unwrap();
    let output = child(NAME, &directory).stderr(std::process::Stdio::piped()).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    std::fs::remove_dir_all(directory).unwrap();
}

fn recorded(name: &str, environment: &[(&str, &str)], look: impl FnOnce(&Path, &str)) {
    let directory = temporary(name.get(..20).unwrap_or(name));
    std::fs::create_dir_all(&directory).unwrap();
    let mut command = child(name, &directory);
    command.envs(environment.iter().copied()).stderr(std::process::Stdio::piped());
    let output = command.output().unwrap();
    let talk = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{talk}");
    look(&directory.join("trace"), &talk);
    std::fs::remove_dir_all(directory).unwrap();
}

/// All events of the instrument model in the order of time, with their sentences.
fn sentences(directory: &Path) -> Vec<String> {
    let trace = Trace::open(directory, &OpenOptions::default()).unwrap();
    let own = trace.merge().filter(|merged| merged.event.code.model() == i::LETTER);
    own.map(|merged| {
        let spec = taskscope_event::models::find(merged.event.code).unwrap();
        spec.sentence(merged.event.payload).to_string()
    })
    .collect()
}

fn count(sentences: &[String], of: &str) -> usize {
    sentences.iter().filter(|sentence| sentence.contains(of)).count()
}

#[test]
fn levels_and_prefixes_select_the_recorded_keys() {
    const NAME: &str = "levels_and_prefixes_select_the_recorded_keys";
    if let Some(directory) = role() {
        SIZE.point(1);
        start(directory.join("trace")).unwrap();
        SIZE.point(2);
        DEPTH.point(3);
        RARE.point(4);
        drop(RUNNING.enter());
        drop(LOOKING.enter());
        taskscope_record::instrument::set_enabled("rare", true);
        taskscope_record::instrument::set_enabled("block", false);
        RARE.point(5);
        SIZE.point(6);
        finish();
        leave(0);
    }
    recorded(NAME, &[("TASKSCOPE_LEVEL", "user"), ("TASKSCOPE_DISABLE", "state.look")], |trace, talk| {
        let sentences = sentences(trace);
        let all = sentences.join("\n");
        let points: Vec<_> = sentences.iter().filter(|s| s.starts_with("marks a point")).collect();
        assert_eq!(points.len(), 2, "{all}");
        assert!(points[0].ends_with("value 2") && points[1].ends_with("value 5"), "{all}");
        assert_eq!((count(&sentences, "enters state 7"), count(&sentences, "enters state")), (1, 1), "{all}");
        assert_eq!(count(&sentences, "\"block-size\": bytes that are allocated [bytes]"), 1, "{all}");
        assert_eq!(talk.matches("taskscope:").count(), 0, "{talk}");
    });
    recorded(NAME, &[("TASKSCOPE_LEVEL", "loud")], |trace, talk| {
        assert!(talk.contains("TASKSCOPE_LEVEL=loud is no level"), "{talk}");
        assert_eq!(count(&sentences(trace), "was wrong (problem 5)"), 1);
    });
}

#[test]
fn mistakes_are_counted_in_the_trace() {
    const NAME: &str = "mistakes_are_counted_in_the_trace";
    static AGAIN: Key = Key::new("block-size", "something else");
    static NOBODYS: Key = Key::registered("nobody's");
    static ODD: Key = Key::new("\u{1}\"\\\n\0 ☃", "any bytes");
    if let Some(directory) = role() {
        start(directory.join("trace")).unwrap();
        SIZE.point(1);
        AGAIN.point(1);
        (0..7).for_each(|_| NOBODYS.point(1));
        ODD.point(1);
        assert!(taskscope_record::instrument::find_key("nothing").is_err());
        assert!(taskscope_record::instrument::find_key("block-size").is_ok());
        SIZE.close(77);
        let (one, two) = (WORK.create(), WORK.create());
        {
            let _one = one.enter();
            SIZE.open(5);
        }
        {
            let _two = two.enter();
            SIZE.close(5);
        }
        let on_this = one.enter();
        std::thread::spawn(move || drop(one.enter())).join().unwrap();
        drop(on_this);
        RUNNING.pop();
        one.end();
        one.ready();
        finish();
        for _ in 0..5 {
            SIZE.point(1);
        }
        let _late = RUNNING.enter();
        leave(0);
    }
    recorded(NAME, &[], |directory, talk| {
        let sentences = sentences(directory);
        assert_eq!(count(&sentences, "(problem 2) 1 times so far: \"block-size\" as \"something else\""), 1);
        for times in [1, 2, 4, 7] {
            let expected = format!("(problem 1) {times} times so far: key \"nobody's\", used at");
            assert_eq!(count(&sentences, &expected), 1, "{times}");
        }
        assert_eq!(count(&sentences, "(problem 1) 1 times so far: key \"nothing\""), 1);
        if cfg!(debug_assertions) {
            assert!(talk.contains("error: no key \"nobody's\" is registered"), "{talk}");
        }
        assert_eq!(
            derive(directory, Behaviour::Stacked).problems,
            [
                "burst-close-without-open",
                "burst-of-another-task",
                "task-runs-elsewhere",
                "state-pop-without-push",
                "open-at-task-end",
                "task-used-after-end",
            ]
        );
        let late = streams(directory)
            .into_iter()
            .filter(|stream| {
                let text = std::fs::read_to_string(stream.join("stream.json")).unwrap();
                let late = text.split("\"late_events\":").nth(1).unwrap().trim_start();
                !late.starts_with('0')
            })
            .count();
        assert_eq!(late, 1);
    });
}

/// As after 2³² keys.
#[test]
fn a_key_without_a_number_is_reported_and_not_recorded() {
    const NAME: &str = "a_key_without_a_number_is_reported_and_not_recorded";
    static LAST: Key = Key::new("last", "");
    static TOO_MANY: Key = Key::new("too many", "");
    static AGAIN: Key = Key::new("too many", "");
    if let Some(directory) = role() {
        use taskscope_record::instrument::named::{Space, go_on_with};
        start(directory.join("trace")).unwrap();
        SIZE.point(1);
        go_on_with(Space::Key, u64::from(u32::MAX - 3));
        LAST.point(2);
        for _ in 0..5 {
            TOO_MANY.point(3);
            drop(TOO_MANY.burst(4));
        }
        AGAIN.point(5);
        SIZE.point(6);
        finish();
        leave(0);
    }
    recorded(NAME, &[], |directory, _| {
        let sentences = sentences(directory);
        let all = sentences.join("\n");
        assert_eq!(count(&sentences, "marks a point of key"), 3, "{all}");
        assert_eq!(count(&sentences, &format!("key {}, value 2", u32::MAX - 3)), 1, "{all}");
        assert_eq!(count(&sentences, "opens a burst"), 0, "{all}");
        assert_eq!(count(&sentences, "(problem 3) 2 times so far: too many"), 1, "{all}");
    });
}

/// An entry of the dictionary has to fit into one event.
#[test]
fn long_names_are_cut_and_kept_apart() {
    const NAME: &str = "long_names_are_cut_and_kept_apart";
    if let Some(directory) = role() {
        start(directory.join("trace")).unwrap();
        let text = |end: &str| -> &'static str { ("x".repeat(200_000) + end).leak() };
        let key =
            |end| -> &'static Key { Box::leak(Box::new(Key::new(text(end), text(end)).unit(text(end)))) };
        key("one").point(1);
        key("two").point(2);
        finish();
        leave(0);
    }
    recorded(NAME, &[], |directory, _| {
        let sentences = sentences(directory);
        assert_eq!((count(&sentences, "names key 1"), count(&sentences, "names key 2")), (1, 1));
        assert_eq!((count(&sentences, "of key 1, value 1"), count(&sentences, "of key 2, value 2")), (1, 1));
        assert_eq!(count(&sentences, "(problem 7) 6 times so far"), 1);
        let trace = Trace::open(directory, &OpenOptions::default()).unwrap();
        assert!(trace.merge().all(|merged| merged.event.code.model() != b'R'), "nothing was lost");
    });
}

#[test]
fn destructors_of_threads_and_signal_handlers_may_raise_events() {
    const NAME: &str = "destructors_of_threads_and_signal_handlers_may_raise_events";
    struct AtEnd(Cell<u64>);
    impl Drop for AtEnd {
        fn drop(&mut self) {
            SIZE.point(self.0.get());
        }
    }
    thread_local!(static AT_END: AtEnd = const { AtEnd(Cell::new(0)) });
    extern "C" fn handler(_: libc::c_int) {
        DEPTH.point(7);
    }
    if let Some(directory) = role() {
        start(directory.join("trace")).unwrap();
        std::thread::spawn(|| {
            AT_END.with(|at_end| at_end.0.set(11));
            SIZE.point(10);
        })
        .join()
        .unwrap();
        DEPTH.point(6);
        // SAFETY: the handler raises an event, which is under test; the timer is a plain one.
        unsafe {
            libc::signal(libc::SIGALRM, handler as *const () as libc::sighandler_t);
            let often = libc::timeval { tv_sec: 0, tv_usec: 200 };
            let timer = libc::itimerval { it_interval: often, it_value: often };
            libc::setitimer(libc::ITIMER_REAL, &timer, std::ptr::null_mut());
        }
        for round in 0..400_000 {
            drop(SIZE.burst(round));
        }
        // SAFETY: a timer of zero is none.
        unsafe {
            let none = std::mem::zeroed();
            libc::setitimer(libc::ITIMER_REAL, &none, std::ptr::null_mut());
        }
        finish();
        leave(0);
    }
    recorded(NAME, &[], |directory, _| {
        let sentences = sentences(directory);
        assert_eq!(sentences.iter().filter(|s| s.ends_with("point of key 1, value 11")).count(), 1);
        assert_eq!(count(&sentences, "opens a burst"), 400_000);
        assert_eq!(count(&sentences, "closes the burst"), 400_000);
        assert!(count(&sentences, "marks a point of key 2, value 7") > 0);
        assert_eq!(derive(directory, Behaviour::Stacked).problems, [""; 0]);
    });
}

#[test]
fn ready_made_sinks_are_loaded_by_the_environment() {
    const NAME: &str = "ready_made_sinks_are_loaded_by_the_environment";
    if let Some(directory) = role() {
        std::env::set_current_dir(&directory).unwrap();
        start(directory.join("trace")).unwrap();
        a_program();
        finish();
        leave(0);
    }
    let sinks = "text=t.txt,profile=p.txt,graph=g.dot,graph=g.json,nothing,wrong,trace";
    recorded(NAME, &[("TASKSCOPE_SINKS", sinks)], |trace, talk| {
        let directory = trace.parent().unwrap();
        let read = |name: &str| std::fs::read_to_string(directory.join(name)).unwrap();
        assert!(read("t.txt").lines().any(|line| line.ends_with("state solving {")));
        assert!(
            read("p.txt").lines().any(|line| line.starts_with("burst   block-size")),
            "{}",
            read("p.txt")
        );
        assert!(read("g.dot").starts_with("digraph tasks {") && read("g.dot").contains("label=\"work\\n1:"));
        assert!(read("g.json").contains("\"kind\":\"work\""));
        assert!(talk.contains("wrong is not loaded"), "{talk}");
        assert!(!derive(trace, Behaviour::Plain).lines.is_empty());
    });
    recorded(NAME, &[("TASKSCOPE_SINKS", "text=t.txt")], |trace, _| {
        assert!(!trace.exists(), "no trace is wanted");
        assert!(std::fs::read_to_string(trace.with_file_name("t.txt")).unwrap().contains("state solving {"));
    });
}

#[test]
fn a_panicking_sink_is_unloaded_and_events_raised_by_a_sink_are_ignored() {
    const NAME: &str = "a_panicking_sink_is_unloaded_and_events_raised_by_a_sink_are_ignored";
    struct Panics(u32);
    impl Sink for Panics {
        fn event(&mut self, _: &LiveEvent<'_>) {
            self.0 += 1;
            assert!(self.0 < 3, "on purpose");
        }
    }
    struct Raises(Arc<Mutex<u32>>);
    impl Sink for Raises {
        fn event(&mut self, _: &LiveEvent<'_>) {
            *self.0.lock().unwrap() += 1;
            // More than once for an event: the first must not make the second one wait for itself.
            DEPTH.point(1);
            DEPTH.point(2);
            sinks::add(Raises(self.0.clone()));
        }
    }
    if let Some(directory) = role() {
        start(directory.join("trace")).unwrap();
        let heard = Arc::new(Mutex::new(0));
        sinks::add(Panics(0));
        sinks::add(Raises(heard.clone()));
        (0..10).for_each(|value| SIZE.point(value));
        sinks::remove_all();
        assert_eq!(*heard.lock().unwrap(), 10);
        SIZE.point(10);
        finish();
        leave(0);
    }
    recorded(NAME, &[], |directory, _| {
        let sentences = sentences(directory);
        assert_eq!(count(&sentences, "marks a point"), 10 + 20 + 1);
        assert_eq!(count(&sentences, "(problem 6) 1 times so far: a sink panicked"), 1, "{sentences:#?}");
        assert_eq!(count(&sentences, "(problem 6) 1 times so far: 30 events were raised by sinks"), 1);
    });
}

/// A signal handler, or a program with a full disk: sections begun before end, or their thread is away.
#[test]
fn states_begun_before_the_room_ended_are_ended() {
    const NAME: &str = "states_begun_before_the_room_ended_are_ended";
    if let Some(directory) = role() {
        start(directory.join("trace")).unwrap();
        let fill = || (0..20_000).for_each(|number| DEPTH.point(number));
        let (moved, stays) = (WORK.create(), WORK.create());
        moved.enter_now();
        SIZE.open(1);
        moved.leave_now();
        stays.enter_now();
        (0..5).for_each(|depth| DEPTH.open(depth));
        RUNNING.push();
        let another = std::thread::spawn(move || {
            SIZE.point(2);
            fill();
            // On a thread without room: the visit is dropped as a whole.
            moved.enter_now();
            SIZE.close(1);
            SIZE.open(3);
            moved.switch_to(WORK.create());
            SIZE.open(4);
        });
        another.join().unwrap();
        fill();
        for value in 0..2000 {
            drop(SIZE.burst(value));
            drop(SOLVING.enter());
        }
        moved.enter_now();
        SIZE.close(1);
        moved.end();
        (0..5).rev().for_each(|depth| DEPTH.close(depth));
        RUNNING.pop();
        stays.end();
        finish();
        leave(0);
    }
    recorded(NAME, &[("TASKSCOPE_MAX_SIZE", "400K")], |trace, _| {
        let sentences = sentences(trace);
        let all = sentences.join("\n");
        assert!(count(&sentences, "marks a point") < 30_000, "there was no room for all");
        assert_eq!(count(&sentences, "opens a burst of key 2"), 5, "{all}");
        assert_eq!(count(&sentences, "closes the burst of key 2"), 5, "{all}");
        assert_eq!(
            (count(&sentences, "enters state 7"), count(&sentences, "leaves state 7")),
            (1, 1),
            "{all}"
        );
        let bursts =
            (count(&sentences, "opens a burst of key 1"), count(&sentences, "closes the burst of key 1"));
        assert!(bursts.0 == bursts.1 || bursts.0 == bursts.1 + 1, "{bursts:?}");
        let problems = derive(trace, Behaviour::Stacked).problems;
        assert_eq!(problems, [""; 0], "{all}");
    });
}
