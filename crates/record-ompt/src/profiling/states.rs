//! Sums by the state that a thread's time is booked to: those of a trace's ledger, from `causes.toml`.

use taskscope_cause::Group;
pub use taskscope_cause::State;

/// Number of states.
pub const STATES: usize = State::ALL.len();

/// Whether it is waiting for a lock, or acquiring a free one.
pub const fn is_mutex(state: State) -> bool {
    matches!(state.group(), Group::Mutex)
}

/// Whether a worker in it has nothing to do.
pub const fn is_idle(state: State) -> bool {
    matches!(state.group(), Group::Idle)
}

/// Whether workers without work are charged to a thread in this state, besides those that take a lock: it works, or a
/// device or another rank does for it.
pub fn is_charged(state: State) -> bool {
    state.is_useful() || matches!(state, State::TargetWait | State::Communication | State::MpiStart)
}

/// Whether a thread in it waits for other threads of its process, or for work.
pub fn waits_for_threads(state: State) -> bool {
    is_mutex(state) || is_idle(state) || matches!(state.group(), Group::Sync) && !is_charged(state)
}

/// Nanoseconds by state.
pub type Sums = [u64; STATES];

/// Adds to a state; the sums wrap around at the end of 64 bits, so that a part may be taken away again.
pub fn book(sums: &mut Sums, state: State, ns: u64) {
    if let Some(sum) = sums.get_mut(state as usize) {
        *sum = sum.wrapping_add(ns);
    }
}
