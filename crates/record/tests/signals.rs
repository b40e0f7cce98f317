//! Events from signal handlers: none is lost silently, and no stream is damaged.

mod support;

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use support::*;
use taskscope_event::models::ovni;
use taskscope_record::{enter, process, thread};

static EMITTED: AtomicU64 = AtomicU64::new(0);
static REFUSED: AtomicU64 = AtomicU64::new(0);

extern "C" fn handler(_: i32) {
    match enter() {
        Some(mut r) => {
            let at = r.now();
            r.point(at, ovni::BURST, [7; 4]);
            EMITTED.fetch_add(1, Relaxed);
        }
        None => {
            REFUSED.fetch_add(1, Relaxed);
        }
    }
}

#[test]
fn events_of_a_handler_are_in_the_interrupted_stream() {
    const NAME: &str = "events_of_a_handler_are_in_the_interrupted_stream";
    const ROUND: u64 = 1_000_000;
    const MIN_ROUNDS: u64 = 6;
    const MIN_SIGNALS: u64 = 500;
    if let Some(directory) = role() {
        start(&directory);
        assert!(attach());
        // SAFETY: the handler only records; the thread that it is sent to outlives the sender.
        unsafe {
            let mut action: libc::sigaction = std::mem::zeroed();
            action.sa_sigaction = handler as *const () as usize;
            action.sa_flags = libc::SA_RESTART;
            libc::sigaction(libc::SIGALRM, &action, std::ptr::null_mut());
        }
        static DONE: AtomicU64 = AtomicU64::new(0);
        // SAFETY: no preconditions.
        let target = unsafe { libc::pthread_self() };
        let sender = std::thread::spawn(move || {
            while DONE.load(Relaxed) == 0 {
                // SAFETY: the target waits for this thread's end.
                unsafe { libc::pthread_kill(target, libc::SIGALRM) };
                std::thread::sleep(std::time::Duration::from_micros(20));
            }
        });
        // If the sender has a CPU only now and then, signals are delayed.
        let mut events = 0;
        while events < MIN_ROUNDS * ROUND || EMITTED.load(Relaxed) < MIN_SIGNALS {
            emit(events + 1..=events + ROUND);
            events += ROUND;
        }
        DONE.store(1, Relaxed);
        sender.join().unwrap();
        let lost = enter().unwrap().lost_events();
        let counts = format!("{events} {} {} {lost}", EMITTED.load(Relaxed), REFUSED.load(Relaxed));
        std::fs::write(directory.join("counts"), counts).unwrap();
        thread::detach();
        process::finish();
        leave(0);
    }
    let directory = temporary("handler");
    assert!(child(NAME, &directory).status().unwrap().success());
    let counts = std::fs::read_to_string(directory.join("counts")).unwrap();
    let counts: Vec<u64> = counts.split(' ').map(|count| count.parse().unwrap()).collect();
    let (events, torn) = decode(&streams(&directory)[0].join("stream.obs"));
    assert!(!torn);
    assert!(sequence_numbers(&events).into_iter().eq(1..=counts[0]));
    assert!(events.is_sorted_by_key(|(_, clock, _)| *clock));
    let bursts = events.iter().filter(|(code, ..)| *code == ovni::BURST).count() as u64;
    assert_eq!(bursts, counts[1], "{counts:?}");
    assert_eq!((counts[2], counts[3]), (0, 0), "one handler never interrupts another here");
    std::fs::remove_dir_all(directory).unwrap();
}

#[test]
fn events_of_a_crash_handler_that_interrupts_the_recorder_are_kept() {
    const NAME: &str = "events_of_a_crash_handler_that_interrupts_the_recorder_are_kept";
    if let Some(directory) = role() {
        start(&directory);
        assert!(attach());
        emit(1..=10);
        // Held open, as when the signal comes in the middle of an event.
        let mut interrupted = enter().unwrap();
        let at = interrupted.now();
        interrupted.point(at, ovni::THREAD_CREATES, numbered(11));
        handler(0);
        handler(0);
        leave(0);
    }
    let directory = temporary("crash-handler");
    assert!(child(NAME, &directory).status().unwrap().success());
    let trace = taskscope_trace::Trace::open(&directory, &taskscope_trace::OpenOptions::default()).unwrap();
    let events: Vec<_> = trace.streams()[0].events().map(|event| event.1.code).collect();
    assert_eq!(events.len(), 13);
    assert_eq!(events[11..], [ovni::BURST, ovni::BURST]);
    assert_eq!(trace.problems().len(), 1, "unfinished, and nothing else: {:?}", trace.problems());
    std::fs::remove_dir_all(directory).unwrap();
}
