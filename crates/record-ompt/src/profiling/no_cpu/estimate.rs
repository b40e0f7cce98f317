//! Estimates from sums: pure functions of times by state.

use crate::profiling::states::{STATES, State, Sums, is_mutex};

/// Time by state that is not that state's, nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moved {
    /// Work without a CPU, and waiting while all threads with work had none.
    pub out_of_cpu: Sums,
    /// Waiting without an available CPU, as other workers had all of them.
    pub oversubscribed: Sums,
    /// Useful states in which the thread slept in the kernel.
    pub blocked: Sums,
}

impl Moved {
    /// No time moved.
    pub const NONE: Moved =
        Moved { out_of_cpu: [0; STATES], oversubscribed: [0; STATES], blocked: [0; STATES] };

    /// Adds `more`.
    pub fn add(&mut self, more: &Moved) {
        add(&mut self.out_of_cpu, &more.out_of_cpu);
        add(&mut self.oversubscribed, &more.oversubscribed);
        add(&mut self.blocked, &more.blocked);
    }

    /// The parts of a state without a CPU: for any reason, and with more workers than CPUs.
    pub fn of(&self, state: State) -> (u64, u64) {
        (part(&self.out_of_cpu, state), part(&self.oversubscribed, state))
    }

    /// All parts of a state.
    pub fn all_of(&self, state: State) -> u64 {
        let (out_of_cpu, oversubscribed) = self.of(state);
        out_of_cpu + oversubscribed + part(&self.blocked, state)
    }

    /// Takes the parts away from the sums of their states, which may be less, and adds them to the states that they are.
    pub fn take_from(&mut self, sums: &mut Sums) {
        let kinds = [
            (State::OutOfCpu, &mut self.out_of_cpu),
            (State::Oversubscribed, &mut self.oversubscribed),
            (State::Blocked, &mut self.blocked),
        ];
        let taken = kinds.map(|(state, parts)| {
            let take = |(sum, part): (&mut u64, &mut u64)| {
                *part = (*part).min(*sum);
                *sum -= *part;
                *part
            };
            (state, sums.iter_mut().zip(parts).map(take).sum::<u64>())
        });
        for (state, ns) in taken {
            if let Some(sum) = sums.get_mut(state as usize) {
                *sum += ns;
            }
        }
    }
}

fn part(sums: &Sums, state: State) -> u64 {
    sums.get(state as usize).copied().unwrap_or(0)
}

pub(super) fn add(sums: &mut Sums, more: &Sums) {
    sums.iter_mut().zip(more).for_each(|(sum, more)| *sum = sum.saturating_add(*more));
}

/// Whether other threads may wait for a thread in this state.
fn is_busy(state: State) -> bool {
    state.is_useful() || matches!(state, State::TaskCreation | State::ForkJoin)
}

/// Whether it is a wait caused inside this process.
fn is_waiting(state: State) -> bool {
    use State::*;
    is_mutex(state) || matches!(state, Barrier | JoinBarrier | Taskwait | TaskwaitDepend | Taskgroup | Idle)
}

/// Whether a thread in it may sleep.
fn may_sleep(state: State) -> bool {
    is_waiting(state) || matches!(state, State::Communication | State::TargetWait | State::Unknown)
}

/// Divides the run delay of a thread's interval among the states of that interval. `sleep` is the time in it
/// that the thread was neither on a CPU nor, by then, known to be runnable; `late` is the probability, by
/// state, that a thread has no CPU. Returns the delay by state, and the part of `sleep` in useful states, by state.
pub(super) fn divide(delay: u64, sleep: u64, spent: &Sums, late: &[f64; STATES]) -> (Sums, Sums) {
    let mut room = *spent;
    let slept_in_work = sleep - take_proportionally(&mut room, sleep, may_sleep);
    let mut blocked = room;
    let other = slept_in_work - take_proportionally(&mut room, slept_in_work, State::is_useful);
    blocked.iter_mut().zip(&room).for_each(|(sum, left)| *sum -= left);
    take_proportionally(&mut room, other, |_| true);
    let (mut off, mut left) = ([0; STATES], delay);
    // Delay that exceeds a state's time goes to the others.
    for _ in 0..3 {
        let weight = |index: usize, room: u64| room as f64 * late.get(index).copied().unwrap_or(0.0);
        let all: f64 = room.iter().enumerate().map(|(index, room)| weight(index, *room)).sum();
        if left == 0 || all <= 0.0 {
            break;
        }
        let owed = left;
        for (index, (room, off)) in room.iter_mut().zip(&mut off).enumerate() {
            let part = (owed as f64 * (weight(index, *room) / all)).ceil() as u64;
            let part = part.min(*room).min(left);
            (*room, *off, left) = (*room - part, *off + part, left - part);
        }
    }
    for (room, off) in room.iter().zip(&mut off) {
        let part = left.min(*room);
        (*off, left) = (*off + part, left - part);
    }
    (off, blocked)
}

/// Takes `ns`, or all there is, from states in proportion to their time. Returns the amount taken, which may
/// be slightly less.
fn take_proportionally(sums: &mut Sums, ns: u64, takes: impl Fn(State) -> bool) -> u64 {
    let all: u64 = State::ALL.iter().zip(&*sums).filter(|(state, _)| takes(**state)).map(|(_, ns)| ns).sum();
    let (ns, mut taken) = (ns.min(all), 0);
    for (state, sum) in State::ALL.iter().zip(sums) {
        if takes(*state) {
            let part = part_of(*sum, ns, all);
            (*sum, taken) = (*sum - part, taken + part);
        }
    }
    taken
}

/// `of · part / all`, at most `of`.
pub(super) fn part_of(of: u64, part: u64, all: u64) -> u64 {
    if all == 0 { 0 } else { (u128::from(of) * u128::from(part.min(all)) / u128::from(all)) as u64 }
}

/// Times of all workers in a window.
struct Window {
    wall: f64,
    busy: f64,
    busy_off: f64,
    waiting: f64,
    waiting_off: f64,
}

impl Window {
    fn of(wall: u64, spent: &Sums, off: &Sums) -> Window {
        let sum = |sums: &Sums, counts: fn(State) -> bool| -> f64 {
            let counted = State::ALL.iter().zip(sums).filter(|(state, _)| counts(**state));
            counted.map(|(_, ns)| *ns as f64).sum()
        };
        let (busy, waiting) = (sum(spent, is_busy), sum(spent, is_waiting));
        let (busy_off, waiting_off) = (sum(off, is_busy).min(busy), sum(off, is_waiting).min(waiting));
        Window { wall: wall as f64, busy, busy_off, waiting, waiting_off }
    }

    /// The fraction of the window in which no thread with work had a CPU.
    fn none_running(&self) -> f64 {
        let part = |part: f64, of: f64| if of > 0.0 { part / of } else { 0.0 };
        let (at_once, on_cpu) = (part(self.busy, self.wall), self.busy - self.busy_off);
        let without = part(self.busy_off, self.busy);
        let none_running = if at_once < 1.0 {
            (1.0 - at_once) * part(self.waiting_off, self.waiting) + at_once * without
        } else {
            power(without, at_once).max(1.0 - on_cpu / self.wall)
        };
        none_running.clamp(0.0, 1.0)
    }
}

/// The time of a window in which no thread with work had a CPU, nanoseconds.
pub(super) fn none_running_ns(wall: u64, spent: &Sums, off: &Sums) -> u64 {
    ((wall as f64 * Window::of(wall, spent, off).none_running()) as u64).min(wall)
}

/// Estimates waiting that too little work does not explain, from the times by state of all workers in a
/// window of `wall` nanoseconds, on `cpus` CPUs: `spent`, of which `off` without a CPU. `max_workers` is the
/// maximum number of workers at a time.
///
/// If n threads on average do work that others may wait for, each without a CPU for a fraction f of its time,
/// none has a CPU for a fraction fⁿ: independently of each other if other processes took the CPUs, and at
/// least the remainder that their time on CPUs leaves. While no thread has work, waiting is charged to the
/// system as far as the waiting threads have no CPU. With more workers than CPUs, the remainder is lost to
/// too little work only as far as CPUs are free.
pub(super) fn estimate(wall: u64, (max_workers, cpus): (u64, u64), spent: &Sums, off: &Sums) -> Moved {
    let mut moved = Moved::NONE;
    let window = Window::of(wall, spent, off);
    let Window { wall, busy, busy_off, waiting, waiting_off } = window;
    if wall <= 0.0 || waiting <= 0.0 {
        return moved;
    }
    let (none_running, on_cpu) = (window.none_running(), busy - busy_off);
    let rest = waiting * (1.0 - none_running);
    let workers = State::ALL.iter().zip(spent).map(|(_, ns)| *ns as f64).sum::<f64>() / wall;
    // Workers begin and end within a window, and some of its time may be read in the next one.
    let over = if max_workers > cpus && workers > cpus as f64 + 0.1 {
        let free = cpus as f64 * wall * (1.0 - none_running) - on_cpu;
        let lost = rest.min(free.max(0.0)).min(waiting - waiting_off);
        (rest - lost) / waiting
    } else {
        0.0
    };
    let states = State::ALL.iter().zip(spent).zip(moved.out_of_cpu.iter_mut().zip(&mut moved.oversubscribed));
    for ((_, ns), (own_out, own_over)) in states.filter(|((state, _), _)| is_waiting(**state)) {
        *own_out = ((*ns as f64 * none_running) as u64).min(*ns);
        *own_over = ((*ns as f64 * over) as u64).min(*ns - *own_out);
    }
    moved
}

/// `base` (0 to 1) to the power of `exponent`, from one whole power to the next on a line: the C library's may not be called
/// everywhere.
fn power(base: f64, exponent: f64) -> f64 {
    let (mut value, mut left) = (1.0, exponent);
    while left >= 1.0 && value > 1e-9 {
        (value, left) = (value * base, left - 1.0);
    }
    if left >= 1.0 { 0.0 } else { value * (1.0 - left * (1.0 - base)) }
}

/// Delays of busy threads by state.
pub(super) fn own_delays(off: &Sums) -> Sums {
    let mut own = [0; STATES];
    for ((state, ns), own) in State::ALL.iter().zip(off).zip(&mut own) {
        if is_busy(*state) {
            *own = *ns;
        }
    }
    own
}

#[cfg(test)]
mod tests {
    use super::*;
    use taskscope_prerequisite::dice::Dice;

    const MS: u64 = 1_000_000;

    fn sums(parts: &[(State, u64)]) -> Sums {
        let mut sums = [0; STATES];
        parts.iter().for_each(|(state, ms)| sums[*state as usize] = ms * MS);
        sums
    }

    /// Parts of the waiting in `spent`, in percent: without CPU, more workers than CPUs.
    fn percent(cpus: u64, spent: &[(State, u64)], off: &[(State, u64)]) -> (u64, u64) {
        let spent = sums(spent);
        let moved = estimate(100 * MS, (8, cpus), &spent, &sums(off));
        let waiting: u64 =
            State::ALL.iter().filter(|state| is_waiting(**state)).map(|state| spent[*state as usize]).sum();
        let of = |sums: &Sums| (sums.iter().sum::<u64>() as f64 * 100.0 / waiting as f64).round() as u64;
        (of(&moved.out_of_cpu), of(&moved.oversubscribed))
    }

    #[test]
    fn waiting_for_a_thread_without_a_cpu_is_the_systems() {
        use State::*;
        // One works and has a CPU: the other waits for it.
        assert_eq!(percent(2, &[(Task, 100), (Barrier, 100)], &[]), (0, 0));
        assert_eq!(
            percent(2, &[(Task, 100), (Barrier, 100)], &[(Barrier, 90)]),
            (0, 0),
            "whatever it has itself"
        );
        // The working one has a CPU for a quarter of the time.
        assert_eq!(percent(2, &[(Task, 100), (Barrier, 100)], &[(Task, 75)]), (75, 0));
        // One of two working threads always has a CPU.
        assert_eq!(percent(4, &[(Task, 200), (CriticalWait, 100)], &[(Task, 100)]), (25, 0));
        // No thread works, and the woken one has no CPU for half of the time.
        assert_eq!(percent(2, &[(Barrier, 200)], &[(Barrier, 100)]), (50, 0));
        assert_eq!(percent(2, &[(Barrier, 200)], &[]), (0, 0));
    }

    #[test]
    fn time_in_which_none_runs_needs_no_waiting_thread() {
        use State::*;
        let none = |spent: &[(State, u64)], off: &[(State, u64)]| {
            none_running_ns(100 * MS, &sums(spent), &sums(off)) / MS
        };
        assert_eq!(none(&[(Serial, 100)], &[(Serial, 95)]), 95);
        assert_eq!(none(&[(Serial, 100), (Idle, 100)], &[(Serial, 95)]), 95);
        assert_eq!(none(&[(Task, 200)], &[(Task, 100)]), 25);
        assert_eq!(none(&[(MpiStart, 100)], &[]), 0);
        assert_eq!(none_running_ns(0, &sums(&[(Serial, 1)]), &sums(&[(Serial, 1)])), 0);
    }

    #[test]
    fn no_more_workers_lose_time_to_too_little_work_than_cpus_are_free() {
        use State::*;
        // Two CPUs that work all the time beside six that wait.
        assert_eq!(percent(2, &[(Task, 200), (Barrier, 600)], &[(Barrier, 600)]), (0, 100));
        // One CPU is free: one of the seven that wait could work.
        assert_eq!(percent(2, &[(Task, 100), (Barrier, 700)], &[(Barrier, 600)]), (0, 86));
        assert_eq!(percent(2, &[(Serial, 100), (Idle, 700)], &[]), (0, 86), "as when they sleep");
        // One CPU for four.
        assert_eq!(percent(1, &[(Task, 100), (Idle, 300)], &[(Idle, 300)]), (0, 100));
        // As many workers as CPUs: the waiting ones lack work.
        assert_eq!(percent(8, &[(Task, 100), (Barrier, 700)], &[]), (0, 0));
    }

    #[test]
    fn a_delay_belongs_to_causes_in_which_samples_were_late() {
        use State::*;
        let spent = sums(&[(Task, 6), (Barrier, 4)]);
        let mut late = [0.5; STATES];
        let (off, _) = divide(5 * MS, 0, &spent, &late);
        assert_eq!((off[Task as usize], off[Barrier as usize]), (3 * MS, 2 * MS), "where nothing is known");
        late[Task as usize] = 0.0;
        let (off, _) = divide(3 * MS, 0, &spent, &late);
        assert_eq!((off[Task as usize], off[Barrier as usize]), (0, 3 * MS));
        // More than has room there.
        let (off, _) = divide(5 * MS, 0, &spent, &late);
        assert_eq!((off[Task as usize], off[Barrier as usize]), (MS, 4 * MS));
        // Waiting threads sleep rather than working ones.
        let (off, blocked) = divide(4 * MS, 3 * MS, &spent, &[0.5; STATES]);
        assert_eq!(blocked, [0; STATES]);
        assert_eq!(off.iter().sum::<u64>(), 4 * MS);
        assert!(off[Barrier as usize] <= MS && off[Task as usize] >= 3 * MS, "{off:?}");
        let (_, blocked) = divide(0, 9 * MS, &spent, &late);
        assert_eq!(blocked, sums(&[(Task, 5)]), "more than it has waited");
        let (_, blocked) = divide(0, 9 * MS, &sums(&[(Serial, 6), (TaskCreation, 4)]), &late);
        assert_eq!(blocked, sums(&[(Serial, 6)]), "only code of the program is blocked");
    }

    #[test]
    fn divided_delays_have_their_sum_and_fit_their_causes() {
        let mut dice = Dice::new(1);
        let mut next = |below: u64| dice.below(below);
        for _ in 0..2000 {
            let spent: Sums = core::array::from_fn(|_| if next(3) == 0 { next(1 << 40) } else { 0 });
            let late = core::array::from_fn(|_| next(4) as f64 / 3.0);
            let wall: u64 = spent.iter().sum();
            let delay = if wall == 0 { 0 } else { next(wall + 1) };
            let sleep = next(wall - delay + 1);
            let (off, blocked) = divide(delay, sleep, &spent, &late);
            assert!(blocked.iter().sum::<u64>() <= sleep);
            assert_eq!(off.iter().sum::<u64>(), delay);
            assert!(off.iter().zip(&spent).all(|(off, spent)| off <= spent));
            let mut moved = estimate(1 + next(1 << 40), (next(9), next(8)), &spent, &off);
            add(&mut moved.out_of_cpu, &own_delays(&off));
            add(&mut moved.blocked, &blocked);
            let mut after = spent;
            moved.take_from(&mut after);
            assert_eq!(after.iter().sum::<u64>(), wall, "every nanosecond has one state");
        }
    }

    #[test]
    fn powers_fall_as_more_work() {
        assert_eq!([0.0, 1.0, 2.0].map(|exponent| power(0.5, exponent)), [1.0, 0.5, 0.25]);
        assert_eq!([power(0.0, 1.5), power(1.0, 7.5), power(0.5, 1e18)], [0.0, 1.0, 0.0]);
        assert!(
            (1..100)
                .all(|tenth| power(0.7, f64::from(tenth) / 10.0) > power(0.7, f64::from(tenth + 1) / 10.0))
        );
    }
}
