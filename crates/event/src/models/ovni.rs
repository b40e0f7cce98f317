//! The events of ovni's `ovni` model, version 1.1.0.

use super::prelude::*;

/// The letter that opens every code of this model.
pub const LETTER: u8 = b'O';
/// The model version that these events belong to.
pub const VERSION: &str = "1.1.0";

events! {
    REMOTE_AFFINITY = b"OAr" plain (cpu: i32, tid: i32) Rule, "moves thread {tid} to CPU {cpu}";
    SET_AFFINITY = b"OAs" plain (cpu: i32) Rule, "moves to CPU {cpu}";
    BURST = b"OB." plain () Rule, "marks a burst point", Thread;
    THREAD_CREATES = b"OHC" plain (cpu: i32, tag: u64) Rule, "creates a thread on CPU {cpu} with tag {tag}";
    THREAD_COOLS = b"OHc" plain () Rule, "enters the cooling state";
    THREAD_ENDS = b"OHe" plain () Rule, "ends the thread";
    THREAD_PAUSES = b"OHp" plain () Rule, "pauses the thread";
    THREAD_RESUMES = b"OHr" plain () Rule, "resumes the thread";
    THREAD_WARMS = b"OHw" plain () Rule, "enters the warming state";
    THREAD_EXECUTES = b"OHx" plain (cpu: i32, tid: i32, tag: u64) Rule, "starts the thread on CPU {cpu}, created by {tid} with tag {tag}";
    CPU_COUNT = b"OCn" plain (cpu: i32) Rule, "reports the CPU count {cpu} (old)", Thread;
    FLUSH_BEGIN = b"OF[" plain () Rule, "starts writing its buffer", Thread;
    FLUSH_END = b"OF]" plain () Rule, "stops writing its buffer", Thread;
    UNSORTED_BEGIN = b"OU[" plain () Rule, "opens a region of unsorted events", Thread;
    UNSORTED_END = b"OU]" plain () Rule, "closes the region of unsorted events", Thread;
    MARK_PUSH = b"OM[" plain (value: i64, r#type: i32) Rule, "pushes mark {value} of type {type}", Thread;
    MARK_POP = b"OM]" plain (value: i64, r#type: i32) Rule, "pops mark {value} of type {type}", Thread;
    MARK_SET = b"OM=" plain (value: i64, r#type: i32) Rule, "sets mark {value} of type {type}", Thread;
}
