//! Emits `COUNT` events of one kind and ends; callgrind counts the instructions, and the test uses the
//! difference between two counts. Used by `tests/instructions.rs`.
//!
//! `instructions DIRECTORY KIND COUNT`, KIND one of `empty`, `sixteen`, `span`, `off`.

use taskscope_event::models::ovni;
use taskscope_record::{enter, instrument, process, span, thread};

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [directory, kind, count] = &arguments[..] else { panic!("three arguments") };
    let count: u64 = count.parse().unwrap();
    instrument::start(directory).unwrap();
    assert!(thread::attach(std::ptr::null_mut(), Box::new(|_, _| {})));
    drop(span!("one"));
    match kind.as_str() {
        "empty" => {
            for _ in 0..count {
                let mut r = enter().unwrap();
                let at = r.now();
                r.point(at, ovni::BURST, []);
            }
        }
        "sixteen" => {
            for i in 0..count {
                let mut r = enter().unwrap();
                let at = r.now();
                r.point(at, ovni::BURST, [i as u8; 16]);
            }
        }
        "span" => (0..count).for_each(|_| drop(span!("one"))),
        "off" => {
            instrument::switch_off();
            (0..count).for_each(|_| instrument::point());
        }
        other => panic!("unknown kind {other}"),
    }
    process::finish();
}
