//! The division of CPUs among threads, in each interval between two changes, by the rules of traces (`taskscope_analysis::cpu_time`).

use rustc_hash::FxHashMap;

/// A waiting thread, as far as CPUs are concerned. Numbers are those of parts of rows (`Rows`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Doing {
    /// Would run otherwise, and waits for another thread. Whether that one runs.
    Wants(u32, bool),
    /// Would run otherwise, and sleeps by itself or waits for a file.
    WaitsAlone(u32),
    /// The wait is over, and it does not run yet.
    IsHandedOver(u32),
    /// It is not known whether it would run otherwise.
    NotKnown(u32),
    /// Sleeps by itself, without other work.
    Sleeps(u32),
    /// Waits for requests.
    Listens,
    /// Waits for the end of a thread, or for a wake that has not come.
    Rests,
}

#[derive(Clone, Copy, Debug)]
pub struct Piece {
    pub thread: u32,
    pub from: u64,
    pub until: u64,
    pub doing: Doing,
}

/// Time of threads on a CPU, and runnable without one, between two readings.
#[derive(Clone, Default)]
pub struct Round {
    pub until: u64,
    pub spent: FxHashMap<u32, (u64, u64)>,
    /// Nanoseconds of it in which the process was stopped: its threads had no CPU.
    pub stopped: u64,
}

/// CPU-nanoseconds so far, by the party they were lost to; `_threads` are nanoseconds of threads.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct CpuSums {
    pub capacity: f64,
    pub used: f64,
    pub no_cpu: f64,
    pub no_cpu_threads: f64,
    pub blocked: f64,
    pub blocked_threads: f64,
    pub alone: f64,
    pub idle: f64,
}

/// Parts of a thread's time outside of waits in a round.
#[derive(Clone, Copy, Default)]
struct Shares {
    ran: f64,
    no_cpu: f64,
    blocked: f64,
}

/// Times of a thread in a round, nanoseconds.
#[derive(Clone, Copy, Default)]
struct InRound {
    outside: f64,
    /// In waits in which it may be without a CPU: between wakes and next steps, and where signals of samples do not wake it.
    ended: f64,
}

/// The division of a round among the states of threads.
#[derive(Default)]
struct RoundShares {
    of: FxHashMap<u32, Shares>,
    /// The part of the running threads' time in which they had no CPU.
    system: f64,
    /// The same of the time between wakes and next steps.
    late: f64,
    /// Nanoseconds without a CPU in other waits: their requests had come.
    in_waits: f64,
    /// Nanoseconds on a CPU in calls that wait, in which the kernel works for the threads.
    ran_in_waits: f64,
}

impl Shares {
    fn add(&mut self, other: Shares, sign: f64) {
        self.ran += sign * other.ran;
        self.no_cpu += sign * other.no_cpu;
        self.blocked += sign * other.blocked;
    }
}

/// Numbers of waiting threads.
#[derive(Clone, Copy, Default)]
struct Waiting {
    wants: f64,
    wants_running: f64,
    handed_over: f64,
    not_known: f64,
    sleeps: f64,
    listens: f64,
}

/// Sums over time of the charge to one thread in each activity.
#[derive(Clone, Copy, Default)]
struct Columns {
    wants: f64,
    wants_running: f64,
    handed_over: f64,
    not_known: f64,
    sleeps: f64,
}

#[derive(Clone, Copy)]
enum Step {
    Wait(Doing, f64),
    /// A thread's time outside of waits begins or ends.
    Outside(f64),
}

/// The division of a stretch of time.
pub struct Sweep<'a> {
    rounds: &'a [Round],
    first: u64,
    /// In the order of time.
    changes: Vec<(u64, u32, Step)>,
    /// By round and thread: nanoseconds outside of waits, and in waits that may have been ended before.
    outside: Vec<FxHashMap<u32, InRound>>,
    /// By round: nanoseconds between wakes and next steps.
    handed_over: Vec<f64>,
    /// By thread: nanoseconds outside of waits in which it ran, or could.
    active: FxHashMap<u32, f64>,
    rows: Vec<(u64, Columns)>,
}

impl<'a> Sweep<'a> {
    /// Prepares the time from `first` to `end`. `lives` are threads with begin and end.
    pub fn over(
        (first, end): (u64, u64),
        rounds: &'a [Round],
        lives: impl Iterator<Item = (u32, u64, u64)>,
        pieces: &[Piece],
    ) -> Sweep<'a> {
        let mut sweep = Sweep {
            rounds,
            first,
            changes: Vec::with_capacity(4 * pieces.len()),
            outside: vec![FxHashMap::default(); rounds.len()],
            handed_over: vec![0.0; rounds.len()],
            active: FxHashMap::default(),
            rows: Vec::new(),
        };
        for (thread, from, until) in lives {
            let (from, until) = (from.max(first), until.min(end));
            if from < until {
                sweep.change(thread, from, until, Step::Outside(1.0), Step::Outside(-1.0));
                sweep.over_rounds(from, until, |sweep, round, ns| {
                    sweep.add_in_round(round, thread, (ns, 0.0))
                });
            }
        }
        for piece in pieces {
            let (from, until, doing) = (piece.from.max(first), piece.until.min(end), piece.doing);
            if from < until {
                sweep.change(piece.thread, from, until, Step::Wait(doing, 1.0), Step::Wait(doing, -1.0));
                sweep.change(piece.thread, from, until, Step::Outside(-1.0), Step::Outside(1.0));
                let may_have_ended = match doing {
                    Doing::IsHandedOver(_) | Doing::WaitsAlone(_) | Doing::Sleeps(_) | Doing::Listens => 1.0,
                    Doing::Wants(..) | Doing::NotKnown(_) | Doing::Rests => 0.0,
                };
                sweep.over_rounds(from, until, |sweep, round, ns| {
                    sweep.add_in_round(round, piece.thread, (-ns, ns * may_have_ended));
                    if let (Doing::IsHandedOver(_), Some(sum)) = (doing, sweep.handed_over.get_mut(round)) {
                        *sum += ns;
                    }
                });
            }
        }
        sweep.changes.sort_by_key(|(at, ..)| *at);
        sweep
    }

    fn change(&mut self, thread: u32, from: u64, until: u64, begin: Step, end: Step) {
        self.changes.push((from, thread, begin));
        self.changes.push((until, thread, end));
    }

    fn add_in_round(&mut self, round: usize, thread: u32, (outside, ended): (f64, f64)) {
        if let Some(threads) = self.outside.get_mut(round) {
            let times = threads.entry(thread).or_default();
            times.outside += outside;
            times.ended += ended;
        }
    }

    fn over_rounds(&mut self, from: u64, until: u64, mut add: impl FnMut(&mut Sweep<'a>, usize, f64)) {
        let mut at = from;
        let first = self.rounds.partition_point(|round| round.until <= from);
        for (number, round) in self.rounds.iter().enumerate().skip(first) {
            if at >= until {
                break;
            }
            let next = round.until.min(until);
            add(self, number, (next - at) as f64);
            at = next;
        }
    }

    /// Divides a round of this length, and adds the times of threads to the sums.
    fn shares(&self, number: usize, (round, length): (&Round, u64), sums: &mut CpuSums) -> RoundShares {
        let mut shares = RoundShares::default();
        let stopped = (round.stopped as f64 / (length as f64).max(1.0)).min(1.0);
        let (mut all, mut without, mut rest) = (0.0, 0.0, 0.0);
        for (thread, times) in self.outside.get(number).into_iter().flatten() {
            let (ran, delay) = round.spent.get(thread).copied().unwrap_or_default();
            let outside = times.outside.max(1.0);
            let stopped = outside * stopped;
            let all_ran = ran as f64;
            let ran = all_ran.min(outside - stopped);
            let ran_in_waits = (all_ran - ran).min(times.ended.max(0.0));
            let delayed = (delay as f64).min(outside - stopped - ran);
            let no_cpu = stopped + delayed;
            let in_waits = (delay as f64 - delayed).min((times.ended - ran_in_waits).max(0.0));
            all += ran + no_cpu;
            without += no_cpu;
            rest += in_waits;
            shares.ran_in_waits += ran_in_waits;
            sums.no_cpu_threads += no_cpu + in_waits;
            sums.blocked_threads += outside - ran - no_cpu;
            let of = Shares {
                ran: ran / outside,
                no_cpu: no_cpu / outside,
                blocked: (outside - ran - no_cpu) / outside,
            };
            shares.of.insert(*thread, of);
        }
        let handed_over = self.handed_over.get(number).copied().unwrap_or(0.0);
        shares.system = without / f64::max(all, 1.0);
        shares.late = (rest / handed_over.max(1.0)).min(1.0);
        shares.in_waits = (rest - handed_over).max(0.0);
        shares
    }

    /// Divides so many CPUs over the time, and adds to the sums.
    pub fn run(&mut self, cpus: f64, sums: &mut CpuSums) {
        let (mut waiting, mut columns) = (Waiting::default(), Columns::default());
        let mut outside: FxHashMap<u32, f64> = FxHashMap::default();
        let mut at = self.first;
        let mut next = 0;
        self.rows.push((at, columns));
        for (number, round) in self.rounds.iter().enumerate() {
            let length = round.until.saturating_sub(at);
            let RoundShares { of: shares, system, late, in_waits, ran_in_waits } =
                self.shares(number, (round, length), sums);
            for (thread, times) in self.outside.get(number).into_iter().flatten() {
                let Shares { ran, no_cpu, .. } = shares.get(thread).copied().unwrap_or_default();
                *self.active.entry(*thread).or_default() += (ran + no_cpu) * times.outside.max(0.0);
            }
            let of = |thread: u32| shares.get(&thread).copied().unwrap_or_default();
            let per_time = (length as f64).max(1.0);
            let mut now =
                Shares { ran: ran_in_waits / per_time, no_cpu: in_waits / per_time, ..Shares::default() };
            outside.iter().for_each(|(thread, count)| now.add(of(*thread), *count));
            let end = round.until;
            loop {
                let change = self.changes.get(next).copied().filter(|(time, ..)| *time < end);
                let until = change.map_or(end, |(time, ..)| time);
                if until > at {
                    let length = (until - at) as f64;
                    divide(cpus, length, &now, &waiting, (system, late), &mut columns, sums);
                    at = until;
                    self.rows.push((at, columns));
                }
                let Some((_, thread, step)) = change else { break };
                next += 1;
                match step {
                    Step::Outside(count) => {
                        *outside.entry(thread).or_default() += count;
                        now.add(of(thread), count);
                    }
                    Step::Wait(doing, count) => waiting.add(doing, count),
                }
            }
        }
    }

    /// Nanoseconds of a thread outside of waits in which it ran, or could, in the divided time.
    pub fn active(&self, thread: u32) -> f64 {
        self.active.get(&thread).copied().unwrap_or(0.0)
    }

    /// The number of a piece's part, and its charge by `end`.
    pub fn charged(&self, piece: &Piece, end: u64) -> Option<(u32, f64)> {
        let of = |at: u64| {
            let row = self.rows.partition_point(|(time, _)| *time < at);
            self.rows.get(row).or(self.rows.last()).map_or(Columns::default(), |(_, columns)| *columns)
        };
        let (from, until) = (of(piece.from.max(self.first)), of(piece.until.min(end)));
        Some(match piece.doing {
            Doing::Wants(number, true) => (number, until.wants_running - from.wants_running),
            Doing::Wants(number, false) | Doing::WaitsAlone(number) => (number, until.wants - from.wants),
            Doing::IsHandedOver(number) => (number, until.handed_over - from.handed_over),
            Doing::NotKnown(number) => (number, until.not_known - from.not_known),
            Doing::Sleeps(number) => (number, until.sleeps - from.sleeps),
            Doing::Listens | Doing::Rests => return None,
        })
    }
}

impl Waiting {
    fn add(&mut self, doing: Doing, count: f64) {
        let to = match doing {
            Doing::Wants(_, true) => &mut self.wants_running,
            Doing::Wants(_, false) | Doing::WaitsAlone(_) => &mut self.wants,
            Doing::IsHandedOver(_) => &mut self.handed_over,
            Doing::NotKnown(_) => &mut self.not_known,
            Doing::Sleeps(_) => &mut self.sleeps,
            Doing::Listens => &mut self.listens,
            Doing::Rests => return,
        };
        *to += count;
    }
}

/// Divides the CPUs of an interval. `system` is the part of running threads without a CPU, `late` that of woken ones.
fn divide(
    cpus: f64,
    length: f64,
    now: &Shares,
    waiting: &Waiting,
    (system, late): (f64, f64),
    columns: &mut Columns,
    sums: &mut CpuSums,
) {
    let used = now.ran.clamp(0.0, cpus);
    sums.capacity += cpus * length;
    sums.used += used * length;
    let mut free = cpus - used;
    let mut give = |count: f64| {
        let part = free.min(count.max(0.0));
        free -= part;
        if count > 1e-6 { part / count * length } else { 0.0 }
    };
    let no_cpu = now.no_cpu.max(0.0);
    let each = give(no_cpu + waiting.wants + waiting.wants_running + waiting.handed_over);
    columns.wants += each;
    columns.wants_running += each * (1.0 - system);
    columns.handed_over += each * (1.0 - late);
    sums.no_cpu += each * (no_cpu + waiting.wants_running * system + waiting.handed_over * late);
    let blocked = now.blocked.max(0.0);
    let each = give(blocked + waiting.not_known);
    columns.not_known += each;
    sums.blocked += each * blocked;
    let rest = free * length;
    let active = (used + no_cpu).min(1.0);
    sums.alone += rest * active;
    match waiting.sleeps > 0.5 && waiting.listens < 0.5 {
        true => columns.sleeps += rest * (1.0 - active) / waiting.sleeps,
        false => sums.idle += rest * (1.0 - active),
    }
}
