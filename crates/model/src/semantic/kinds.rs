//! What each event is, by its code: asked for every event, so it is a table.
//!
//! Most events of a trace only open or close a part of a runtime on their thread. They concern nobody else and rest
//! on nothing that other threads' events change: so the caller may play them later than those of other
//! threads, up to the thread's own next event that needs the order of all threads
//! ([`Interpreter::event`](super::Interpreter::event) says how).

use super::channels::{self, Step};
use super::sections::{Edge, Subsystem};
use taskscope_event::Code;
use taskscope_event::models::{MODELS, kernel, mpi, nanos6, nodes, nosv, openmp, ovni, tampi};
use taskscope_execution::State;

/// What follows from an event.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) enum Kind {
    /// Opens or closes a part of the OpenMP runtime.
    Subsystem(Subsystem, Edge),
    /// Opens one that is shown as this state, and of which nothing else is told.
    Plain(Subsystem, State),
    /// Enters or leaves a part of another runtime, or has nothing to do.
    Step(Step),
    /// The system takes the thread off its CPU.
    OutOfCpu,
    /// The system puts it back.
    BackOnCpu,
    /// Nothing.
    Nothing,
    /// What [`dispatch`](super::dispatch) says.
    Other,
}

#[derive(Clone, Copy)]
struct Row {
    kind: Kind,
    needs_order: bool,
}

/// The kinds of all events.
pub struct Kinds {
    /// By the model's place in [`LETTERS`], category and value.
    rows: Vec<Row>,
    /// Places by letter; all other models share the one after them.
    places: [u8; 256],
}

/// Models with events that concern only their threads.
const LETTERS: [u8; 8] = [
    ovni::LETTER,
    openmp::LETTER,
    nanos6::LETTER,
    nosv::LETTER,
    nodes::LETTER,
    mpi::LETTER,
    tampi::LETTER,
    kernel::LETTER,
];

/// Categories and values are ASCII.
const ASCII: usize = 128;
/// Set in the number of a code whose category or value is not.
const NOT_ASCII: usize = 0x80_8000;

const OTHER: Row = Row { kind: Kind::Other, needs_order: true };

impl Default for Kinds {
    fn default() -> Self {
        let mut places = [LETTERS.len() as u8; 256];
        for (place, letter) in LETTERS.iter().enumerate() {
            places[usize::from(*letter)] = place as u8;
        }
        let mut kinds = Kinds { rows: vec![OTHER; (LETTERS.len() + 1) * ASCII * ASCII], places };
        let models = MODELS.iter().filter(|model| LETTERS.contains(&model.letter));
        for event in models.flat_map(|model| model.events) {
            if let Some(row) = kinds.row(event.code) {
                let kind = kind(event.code, channels::step(event.code.model(), event.effect));
                let needs_order = event.code.model() == mpi::LETTER || needs_order(kind);
                kinds.rows[row] = Row { kind, needs_order };
            }
        }
        kinds
    }
}

impl Kinds {
    /// What follows from an event with this code.
    #[inline(always)]
    pub(super) fn of(&self, code: Code) -> Kind {
        self.row(code).and_then(|row| self.rows.get(row)).map_or(Kind::Other, |row| row.kind)
    }

    /// Whether an event with this code must be played after all earlier ones of all threads.
    #[inline(always)]
    pub fn needs_order(&self, code: Code) -> bool {
        self.row(code).and_then(|row| self.rows.get(row)).is_none_or(|row| row.needs_order)
    }

    #[inline(always)]
    fn row(&self, code: Code) -> Option<usize> {
        // The letter lowest, category and value above it.
        let number = code.to_u32() as usize;
        let (category, value) = (number >> 8 & (ASCII - 1), number >> 16);
        let place = usize::from(self.places[number & 0xff]);
        (number & NOT_ASCII == 0).then_some((place * ASCII + category) * ASCII + value)
    }
}

fn kind(code: Code, step: Option<Step>) -> Kind {
    /// Threads and where they run.
    const THREADS: [u8; 2] = [ovni::THREAD_ENDS.0[1], ovni::SET_AFFINITY.0[1]];
    match code {
        kernel::OUT_OF_CPU => Kind::OutOfCpu,
        kernel::BACK_ON_CPU => Kind::BackOnCpu,
        _ if code.model() == ovni::LETTER && !THREADS.contains(&code.0[1]) => Kind::Nothing,
        _ => match (Subsystem::of(code), step) {
            (Some((subsystem, edge)), _) => match subsystem.plain_state().filter(|_| edge == Edge::Begin) {
                Some(state) => Kind::Plain(subsystem, state),
                None => Kind::Subsystem(subsystem, edge),
            },
            (None, Some(step)) => Kind::Step(step),
            (None, None) => Kind::Other,
        },
    }
}

fn needs_order(kind: Kind) -> bool {
    use Subsystem::{BarrierJoin, BarrierPlain, ForkCall, UserMicrotask};
    match kind {
        // What these show rests on the region, of which other threads tell.
        Kind::Subsystem(BarrierJoin | BarrierPlain | ForkCall | UserMicrotask, Edge::Begin) => true,
        Kind::Other => true,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use taskscope_event::models::omp;

    #[test]
    fn every_subsystem_and_step_is_found_and_only_what_concerns_one_thread_needs_no_order() {
        let kinds = Kinds::default();
        for event in MODELS.iter().flat_map(|model| model.events) {
            let (kind, code) = (kinds.of(event.code), event.code);
            match Subsystem::of(code) {
                Some((subsystem, edge)) => {
                    let plain = subsystem.plain_state().map(|state| Kind::Plain(subsystem, state));
                    let expected = plain.filter(|_| edge == Edge::Begin);
                    assert_eq!(kind, expected.unwrap_or(Kind::Subsystem(subsystem, edge)), "{code}");
                }
                None => assert!(!matches!(kind, Kind::Subsystem(..) | Kind::Plain(..)), "{code}"),
            }
            if kind == Kind::Other || code.model() == mpi::LETTER {
                assert!(kinds.needs_order(code), "{code}");
            }
        }
        for code in [openmp::TASK_CREATE, nosv::TASK_EXECUTE, omp::REGION_END, ovni::THREAD_EXECUTES] {
            assert!(kinds.needs_order(code), "{code}");
        }
        for code in [openmp::TASK_ALLOCATION_BEGIN, nosv::API_CREATE_END, nanos6::TASK_CREATING_BEGIN] {
            assert!(!kinds.needs_order(code), "{code}");
        }
        assert!(kinds.needs_order(Code([255, 255, 255])) && kinds.needs_order(Code([b'V', 200, b'a'])));
    }
}
