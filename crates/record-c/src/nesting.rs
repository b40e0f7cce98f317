//! Pairs of opening and closing events: room for the end is reserved with the begin, so a full disk cuts off
//! whole pairs.
//!
//! The pairs come from the event table: a push and the pop of the same value, and the rules of tasks
//! and threads by the names of their events. One byte an event code, in a table that is filled when
//! the first process starts; of its 2 MiB only the rows of models that exist are ever touched.

use std::sync::Once;
use std::sync::atomic::{AtomicU8, Ordering::Relaxed};

use taskscope_event::Code;
use taskscope_event::framing::EVENT_HEADER_BYTES;
use taskscope_event::models::MODELS;
use taskscope_event::spec::{Effect, EventSpec};
use taskscope_record::Nesting;

/// Opening and closing events on one thread, by their names in the event table.
const RULES: [(&str, &str); 6] = [
    ("TASK_EXECUTE", "TASK_END"),
    ("TASK_PAUSE", "TASK_RESUME"),
    ("WORKSHARE_EXECUTE", "WORKSHARE_END"),
    ("THREAD_EXECUTES", "THREAD_ENDS"),
    ("THREAD_PAUSES", "THREAD_RESUMES"),
    ("UNSORTED_BEGIN", "UNSORTED_END"),
];

const POINT: u8 = 0;
const END: u8 = 1;
/// Plus the bytes of the end's payload.
const BEGIN: u8 = 2;

static TABLE: [AtomicU8; 1 << 21] = [const { AtomicU8::new(POINT) }; 1 << 21];

/// Fills the table.
pub fn prepare() {
    static FILLED: Once = Once::new();
    FILLED.call_once(|| {
        for model in MODELS.iter().filter(|model| !model.own) {
            for begin in model.events {
                let closes = |end: &&EventSpec| is_pair(begin, end);
                if let (Some(begins), Some(end)) = (slot(begin.code), model.events.iter().find(closes)) {
                    begins.store(BEGIN + payload_bytes(end), Relaxed);
                    slot(end.code).inspect(|ends| ends.store(END, Relaxed));
                }
            }
        }
    });
}

fn is_pair(begin: &EventSpec, end: &EventSpec) -> bool {
    match (begin.effect, end.effect) {
        (Effect::Push(opened, value, _), Effect::Pop(closed, popped, _)) => {
            (opened, value) == (closed, popped)
        }
        (Effect::Rule, Effect::Rule) => RULES.contains(&(begin.name, end.name)),
        _ => false,
    }
}

fn payload_bytes(event: &EventSpec) -> u8 {
    event.fields.iter().filter_map(|field| field.ty.size()).sum::<usize>() as u8
}

fn slot(code: Code) -> Option<&'static AtomicU8> {
    let [model, category, value] = code.0.map(usize::from);
    // Codes that are not ASCII are in no table.
    (model | category | value < 128).then(|| &TABLE[(model & 127) << 14 | category << 7 | value])
}

/// Effect of `code` on nesting.
#[inline(always)]
pub fn of(code: Code) -> Nesting {
    match slot(code).map_or(POINT, |slot| slot.load(Relaxed)) {
        POINT => Nesting::Point,
        END => Nesting::End,
        begin => Nesting::Begin { end_bytes: EVENT_HEADER_BYTES + usize::from(begin - BEGIN) },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use taskscope_event::models::{mpi, nanos6, nosv, ovni};

    #[test]
    fn begins_know_the_size_of_their_end() {
        prepare();
        let begin = |end_bytes| Nesting::Begin { end_bytes };
        assert_eq!(of(nosv::TASK_EXECUTE), begin(12 + 8));
        assert_eq!(of(nosv::TASK_END), Nesting::End);
        assert_eq!(of(nanos6::TASK_EXECUTE), begin(12 + 4));
        assert_eq!(of(nosv::SCHEDULER_HUNGRY_BEGIN), begin(12));
        assert_eq!(of(nosv::SCHEDULER_HUNGRY_END), Nesting::End);
        assert_eq!(of(ovni::THREAD_EXECUTES), begin(12));
        assert_eq!(of(ovni::THREAD_ENDS), Nesting::End);
        assert_eq!(of(nosv::TASK_CREATE), Nesting::Point);
        assert_eq!(of(nosv::POINT_SEND_TASK), Nesting::Point);
        assert_eq!(of(Code([200, 255, 0])), Nesting::Point);
        let events = || MODELS.iter().filter(|model| !model.own).flat_map(|model| model.events);
        let pushes = events().filter(|event| matches!(event.effect, Effect::Push(..)));
        assert!(pushes.into_iter().all(|event| of(event.code) == begin(12)), "every push has its pop");
        let ends = events().filter(|event| of(event.code) == Nesting::End).count();
        assert!(ends > 100 && mpi::LETTER.is_ascii());
    }

    #[test]
    fn the_rules_names_are_in_the_table() {
        let names: Vec<&str> = MODELS.iter().flat_map(|model| model.events).map(|event| event.name).collect();
        assert!(RULES.iter().all(|(begin, end)| names.contains(begin) && names.contains(end)));
    }
}
