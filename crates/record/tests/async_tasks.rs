//! Futures and forks as tasks: spans of `tracing`, followed futures, tokio's workers, rayon's forks.

mod support;

use std::collections::BTreeMap;
use std::future::Future;
use std::path::Path;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use support::*;
use taskscope_context::{Behaviour, Contexts, Item, Lane, Out, Problem, Raw, Shown};
use taskscope_event::models::instrument as i;
use taskscope_record::instrument::{self, TaskKind};
use taskscope_trace::{OpenOptions, Trace};
use tracing::Instrument;

/// Pieces and order of each task.
#[derive(Default)]
struct Tasks {
    pieces: BTreeMap<u64, Vec<(u32, u64, u64)>>,
    words: BTreeMap<u64, Vec<String>>,
    own_ns: BTreeMap<u64, u64>,
    problems: Vec<&'static str>,
    /// Mistakes noticed by the recorder.
    mistakes: Vec<String>,
    /// Names of values.
    values: BTreeMap<u64, String>,
}

impl Out for Tasks {
    fn show(&mut self, item: Item<'_>) {
        let Lane::Task { task, .. } = item.lane else { return };
        let before = self.own_ns.insert(task, item.own_ns).unwrap_or(0);
        match item.shown {
            Shown::Resume { thread, .. } => {
                assert_eq!(item.own_ns, before, "the time of task {task} stood still meanwhile");
                self.pieces.entry(task).or_default().push((thread, item.at, item.at));
            }
            Shown::Suspend { last, .. } => {
                let pieces = self.pieces.entry(task).or_default();
                if let Some(piece) = pieces.last_mut().filter(|piece| piece.1 == piece.2) {
                    piece.2 = item.at;
                    let sum: u64 = pieces.iter().map(|(_, begin, end)| end - begin).sum();
                    assert_eq!(item.own_ns, sum, "task {task}: its own time is that of its pieces");
                } else {
                    assert!(last, "task {task}");
                }
            }
            _ => {}
        }
        self.words.entry(task).or_default().push(format!("{:?}", item.shown));
    }

    fn problem(&mut self, _thread: u32, _at: u64, problem: Problem) {
        self.problems.push(problem.name());
    }
}

fn play(directory: &Path) -> (Tasks, BTreeMap<u64, String>) {
    let trace = Trace::open(directory, &OpenOptions::default()).unwrap();
    let mut contexts = Contexts::new(Behaviour::Stacked);
    let mut tasks = Tasks::default();
    let (mut kinds, mut kind_of_task) = (BTreeMap::new(), BTreeMap::new());
    trace.streams().iter().for_each(|_| {
        contexts.add_thread(0);
    });
    for merged in trace.merge() {
        let event = merged.event;
        let spec = taskscope_event::models::find(event.code).unwrap();
        assert_eq!(spec.check_payload(event.payload, event.is_jumbo), Ok(()), "{}", spec.name);
        if event.code == i::KEY_VALUE {
            let value = u64::from_le_bytes(event.payload[4..12].try_into().unwrap());
            let name = event.payload[12..].split(|byte| *byte == 0).next().unwrap();
            tasks.values.insert(value, String::from_utf8_lossy(name).into_owned());
        }
        if event.code == i::PROBLEM {
            tasks.mistakes.push(spec.sentence(event.payload).to_string());
        }
        if event.code == i::TASK_KIND {
            let number = u32::from_le_bytes(event.payload[..4].try_into().unwrap());
            let name = event.payload[8..].split(|byte| *byte == 0).next().unwrap();
            kinds.insert(number, String::from_utf8_lossy(name).into_owned());
        }
        if let Some(raw) = Raw::decode(event.code, event.payload).unwrap() {
            if let Raw::TaskCreate { task, kind } = raw {
                kind_of_task.insert(task, kind);
            }
            contexts.event(merged.stream as u32, event.clock_ns as u64, &raw, &mut tasks);
        }
    }
    let names = kind_of_task.into_iter().map(|(task, kind)| (task, kinds[&kind].clone())).collect();
    (tasks, names)
}

fn recorded(name: &str, look: impl FnOnce(Tasks, BTreeMap<u64, String>)) {
    let directory = temporary(name.get(..20).unwrap_or(name));
    std::fs::create_dir_all(&directory).unwrap();
    let mut command = child(name, &directory);
    command.env("TASKSCOPE_TRACE_DIR", directory.join("trace")).stderr(std::process::Stdio::piped());
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let (tasks, names) = play(&directory.join("trace"));
    look(tasks, names);
    std::fs::remove_dir_all(directory).unwrap();
}

/// Waits once.
struct Once(bool);

impl Future for Once {
    type Output = ();
    fn poll(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<()> {
        if std::mem::replace(&mut self.0, true) { Poll::Ready(()) } else { Poll::Pending }
    }
}

#[test]
fn a_span_follows_its_future_from_thread_to_thread() {
    const NAME: &str = "a_span_follows_its_future_from_thread_to_thread";
    if role().is_some() {
        let recording = taskscope_record::tracing::init();
        let inner = Once(false).instrument(tracing::info_span!("inner"));
        let outer = async {
            tracing::info!(answer = 42, "begun");
            inner.await;
            Once(false).await;
        };
        let mut future: Pin<Box<dyn Future<Output = ()> + Send>> =
            Box::pin(outer.instrument(tracing::info_span!("outer", size = 7, name = "x")));
        for done in [false, false, true] {
            future = std::thread::spawn(move || {
                let polled = future.as_mut().poll(&mut Context::from_waker(Waker::noop()));
                assert_eq!(polled.is_ready(), done);
                future
            })
            .join()
            .unwrap();
        }
        drop(future);
        // One span, on two threads in parallel and twice on one.
        let shared = tracing::info_span!("shared");
        let here = shared.enter();
        std::thread::scope(|scope| {
            scope.spawn(|| shared.in_scope(|| ()));
        });
        shared.in_scope(|| ());
        drop(here);
        drop(shared);
        drop(recording);
        leave(0);
    }
    recorded(NAME, |tasks, names| {
        assert_eq!(tasks.problems, [""; 0]);
        let of = |name: &str| {
            names.iter().filter(|(_, of)| *of == name).map(|(task, _)| *task).collect::<Vec<_>>()
        };
        let [outer] = of("outer")[..] else { panic!("{names:?}") };
        let threads: std::collections::BTreeSet<u32> = tasks.pieces[&outer].iter().map(|p| p.0).collect();
        // Its destructor runs within the span, too.
        assert_eq!(threads.len(), 4, "each poll was on another thread");
        let words = tasks.words[&outer].join("\n");
        assert!(words.contains("Point { key: 1, value: 7 }"), "the field is a key: {words}");
        assert!(words.contains("Composite"), "the event is in the span: {words}");
        let [inner] = of("inner")[..] else { panic!("{names:?}") };
        assert!(tasks.pieces[&inner].len() >= 2);
        assert_eq!(of("shared").len(), 3, "what is entered twice is two tasks");
    });
}

#[test]
fn tokio_polls_wakes_and_idle_workers_are_recorded() {
    const NAME: &str = "tokio_polls_wakes_and_idle_workers_are_recorded";
    static POLITE: TaskKind = TaskKind::new("polite");
    static HOG: TaskKind = TaskKind::new("hog");
    if role().is_some() {
        let recording = taskscope_record::tracing::init();
        let mut builder = tokio::runtime::Builder::new_multi_thread();
        taskscope_record::tokio::observe(&mut builder).worker_threads(2).enable_all();
        let runtime = builder.build().unwrap();
        runtime.block_on(async {
            let polite = (0..20).map(|_| {
                taskscope_record::tokio::spawn(&POLITE, async {
                    for _ in 0..5 {
                        tokio::task::yield_now().await;
                        tokio::time::sleep(std::time::Duration::from_micros(100)).await;
                    }
                })
            });
            let hog = taskscope_record::tokio::spawn(&HOG, async {
                std::thread::sleep(std::time::Duration::from_millis(20));
            });
            let spans = (0..5).map(|n| {
                let work = async move {
                    tokio::time::sleep(std::time::Duration::from_micros(n)).await;
                };
                tokio::spawn(work.instrument(tracing::info_span!("span", n)))
            });
            for task in polite.chain([hog]).chain(spans).collect::<Vec<_>>() {
                task.await.unwrap();
            }
        });
        drop(runtime);
        drop(recording);
        leave(0);
    }
    recorded(NAME, |tasks, names| {
        assert_eq!(tasks.problems, [""; 0]);
        let polite: Vec<u64> =
            names.iter().filter(|(_, name)| *name == "polite").map(|(task, _)| *task).collect();
        assert_eq!(polite.len(), 20);
        for task in polite {
            let words = tasks.words[&task].join("\n");
            assert!(tasks.pieces[&task].len() >= 6, "{words}");
            assert!(words.matches("Ready").count() >= 5, "its wakes: {words}");
            assert!(words.ends_with("last: true }"), "{words}");
        }
        assert_eq!(names.values().filter(|name| *name == "span").count(), 5);
    });
}

/// A future that is dropped before its end, as in a `select`, with an open section.
#[test]
fn a_cancelled_future_closes_its_sections_in_its_task() {
    const NAME: &str = "a_cancelled_future_closes_its_sections_in_its_task";
    static CANCELLED: TaskKind = TaskKind::new("cancelled");
    static INSIDE: instrument::StateName = instrument::StateName::new("inside", "of the future");
    if role().is_some() {
        instrument::start_from_environment();
        for is_on in [true, false] {
            let mut future = Box::pin(CANCELLED.follow(async {
                let _inside = INSIDE.enter();
                Once(false).await;
            }));
            assert!(future.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
            if !is_on {
                instrument::switch_off();
            }
            drop(future);
        }
        instrument::finish();
        leave(0);
    }
    recorded(NAME, |tasks, names| {
        assert_eq!(tasks.problems, [""; 0]);
        let cancelled = names.iter().filter(|(_, name)| *name == "cancelled").map(|(task, _)| *task);
        let words: Vec<String> = cancelled.map(|task| tasks.words[&task].join("\n")).collect();
        // The second one while recording was switched off.
        assert_eq!(words.len(), 2);
        assert!(words.iter().all(|words| words.ends_with("last: true }")), "{words:?}");
    });
}

/// `make test-tokio-unstable`: tokio's own instrumentation reports tasks that the program does not name.
#[cfg(tokio_unstable)]
#[test]
fn every_tokio_task_and_wake_is_recorded() {
    const NAME: &str = "every_tokio_task_and_wake_is_recorded";
    if role().is_some() {
        let recording = taskscope_record::tracing::init();
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
        let runtime = runtime.unwrap();
        runtime.block_on(async {
            let plain = (0..10).map(|_| {
                tokio::spawn(async {
                    for _ in 0..4 {
                        tokio::time::sleep(std::time::Duration::from_millis(1)).await;
                    }
                })
            });
            let named = tokio::task::Builder::new().name("by name").spawn(async {}).unwrap();
            for task in plain.chain([named]).collect::<Vec<_>>() {
                task.await.unwrap();
            }
        });
        drop(runtime);
        drop(recording);
        leave(0);
    }
    recorded(NAME, |tasks, names| {
        assert_eq!(tasks.problems, [""; 0]);
        assert_eq!(names.values().filter(|name| *name == "by name").count(), 1, "{names:?}");
        let plain: Vec<u64> = names.iter().filter(|(_, n)| *n == "task").map(|(task, _)| *task).collect();
        assert_eq!(plain.len(), 10, "{names:?}");
        assert_eq!(names.values().filter(|name| *name == "block_on").count(), 1, "{names:?}");
        assert_eq!(names.len(), 12, "workers are no tasks: {names:?}");
        for task in plain {
            let words = tasks.words[&task].join("\n");
            assert!(tasks.pieces[&task].len() >= 5, "each poll is a piece: {words}");
            assert!(words.matches("Ready").count() >= 4, "its wakes: {words}");
            assert!(words.ends_with("last: true }"), "{words}");
        }
    });
}

/// Spans and forks cache the lookup of a name only until names change.
#[test]
fn names_can_be_switched_off_and_on_for_spans_and_forks() {
    const NAME: &str = "names_can_be_switched_off_and_on_for_spans_and_forks";
    if role().is_some() {
        let recording = taskscope_record::tracing::init();
        let round = |n: u64| {
            tracing::info_span!("round", number = n).in_scope(|| {
                tracing::info!("alone");
                tracing::info!(step = n, "with a field");
                tracing::info!(below = -(n as i64), "negative");
                tracing::info!(below = "text", "of a field that is a number elsewhere");
            });
            taskscope_record::rayon::join(|| (), || ());
        };
        round(1);
        for prefix in ["task.", "number", "step"] {
            instrument::set_enabled(prefix, false);
        }
        round(2);
        for prefix in ["task.", "number", "step"] {
            instrument::set_enabled(prefix, true);
        }
        round(3);
        drop(recording);
        leave(0);
    }
    recorded(NAME, |tasks, names| {
        let count = |name: &str| names.values().filter(|of| *of == name).count();
        assert_eq!((count("round"), count("join")), (2, 4), "{names:?}");
        for (task, _) in names.iter().filter(|(_, name)| *name == "round") {
            let words = tasks.words[task].join("\n");
            assert_eq!(
                (words.matches("Point").count(), words.matches("Composite").count()),
                (1, 4),
                "{words}"
            );
        }
        let text = tasks.values.iter().find(|(_, name)| *name == "text");
        assert!(text.is_some_and(|(value, _)| *value >= 1 << 48), "{:?}", tasks.values);
        let below = tasks.values.iter().filter(|(value, name)| name.starts_with('-') && **value as i64 <= -1);
        assert_eq!(
            below.map(|(_, name)| &**name).collect::<Vec<_>>(),
            ["-3", "-2", "-1"],
            "{:?}",
            tasks.values
        );
        assert_eq!((tasks.problems, tasks.mistakes), (vec![], vec![]));
    });
}

#[test]
fn pieces_of_parallel_iterators_are_tasks() {
    use rayon::prelude::*;
    use taskscope_record::rayon::AsTasks;
    const NAME: &str = "pieces_of_parallel_iterators_are_tasks";
    if role().is_some() {
        instrument::start_from_environment();
        let squares: Vec<u32> =
            (0..160_u32).into_par_iter().with_max_len(10).map(|n| n * n).as_tasks().collect();
        assert_eq!(squares, (0..160).map(|n| n * n).collect::<Vec<_>>(), "in order");
        // Pieces within pieces, without an order, that end early, and one that panics.
        let nested: u32 = (0..4_u32)
            .into_par_iter()
            .with_max_len(1)
            .map(|n| (0..n).into_par_iter().with_max_len(1).as_tasks().sum::<u32>())
            .as_tasks()
            .sum();
        assert_eq!(nested, 4);
        assert_eq!((0..100).par_bridge().filter(|n| n % 2 == 0).as_tasks().count(), 50);
        assert_eq!((0..100).into_par_iter().as_tasks().find_first(|n| *n > 40), Some(41));
        let pool = rayon::ThreadPoolBuilder::new().num_threads(2).build().unwrap();
        pool.install(|| [1, 2].par_iter().with_max_len(1).as_tasks().for_each(|_| ()));
        let failed = std::panic::catch_unwind(|| {
            (0..2).into_par_iter().with_max_len(1).as_tasks().for_each(|n| assert!(n > 5));
        });
        assert!(failed.is_err());
        taskscope_record::rayon::join(|| (), || ());
        drop(pool);
        instrument::finish();
        leave(0);
    }
    recorded(NAME, |tasks, names| {
        let count = |name: &str| names.values().filter(|of| *of == name).count();
        // At least one a piece: how far beyond that rayon splits is its own affair.
        assert!(count("par_iter") >= 16 + 4 + 2 + 2, "{}", count("par_iter"));
        assert_eq!(count("join"), 2);
        assert_eq!(tasks.problems, [""; 0]);
        assert!(tasks.mistakes.is_empty(), "{:?}", tasks.mistakes);
    });
}

#[test]
fn the_program_in_the_documentation_is_the_example() {
    let here = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    let page = std::fs::read_to_string(here.join("../../docs/instrumenting.md")).unwrap();
    let example = std::fs::read_to_string(here.join("examples/first_tasks.rs")).unwrap();
    let shown = page.split_once("```rust\n").and_then(|(_, rest)| rest.split_once("```")).unwrap().0;
    assert!(example.ends_with(shown) && shown.contains("fn main"), "{shown}");
}

#[test]
fn forks_of_rayon_are_tasks_with_parents() {
    const NAME: &str = "forks_of_rayon_are_tasks_with_parents";
    fn sum(from: u64, to: u64) -> u64 {
        if to - from < 10 {
            return (from..to).sum();
        }
        let middle = from.midpoint(to);
        let (left, right) = taskscope_record::rayon::join(|| sum(from, middle), || sum(middle, to));
        left + right
    }
    if role().is_some() {
        instrument::start_from_environment();
        assert_eq!(sum(0, 160), (0..160).sum::<u64>());
        taskscope_record::rayon::join(|| (), || ());
        let (send, receive) = std::sync::mpsc::channel();
        taskscope_record::rayon::scope(|scope| {
            for n in 0..3 {
                let send = send.clone();
                scope.spawn(move |scope| {
                    let again = send.clone();
                    scope.spawn(move |_| again.send(n).unwrap());
                    send.send(n).unwrap();
                });
            }
        });
        drop(send);
        assert_eq!(receive.iter().count(), 6);
        let (send, receive) = std::sync::mpsc::channel();
        taskscope_record::rayon::spawn(move || send.send(1).unwrap());
        assert_eq!(receive.recv(), Ok(1));
        // Its end comes after its messages.
        std::thread::sleep(std::time::Duration::from_millis(50));
        instrument::finish();
        leave(0);
    }
    recorded(NAME, |tasks, names| {
        let count = |name: &str| names.values().filter(|of| *of == name).count();
        assert_eq!((count("join"), count("scope"), count("spawn")), (64, 6, 1));
        assert_eq!(tasks.problems, [""; 0]);
        assert!(tasks.mistakes.is_empty(), "forks at two places are of two kinds: {:?}", tasks.mistakes);
        let nested = tasks.words.values().flatten();
        let nested = nested.filter(|w| w.starts_with("Created") && !w.contains("parent: 0 }"));
        assert!(nested.count() >= 60, "forks of forks have parents");
    });
}
