//! Cost of ordering: records per second of CPU time of one thread, records held, and the cost of passing a
//! record on for the producing thread.
//!
//!     cargo run --release -p taskscope-reorder --example throughput [MILLIONS [WINDOW]]

use std::hint::black_box;
use std::sync::atomic::Ordering::Relaxed;
use taskscope_prerequisite::dice::Dice;
use taskscope_reorder::*;

const QUEUES: u64 = 16;

fn thread_cpu_seconds() -> f64 {
    let times = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    times.split(' ').next().and_then(|nanos| nanos.parse::<f64>().ok()).unwrap_or(f64::NAN) * 1e-9
}

fn peak_memory_mib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|text| text.trim().trim_end_matches(" kB").parse::<u64>().ok()).unwrap_or(0) / 1024
}

/// Numbers below `window`, each once, in an order that differs from window to window.
fn shuffled(window: u64, salt: u64, order: &mut [u64]) {
    for (index, place) in order.iter_mut().enumerate() {
        *place = index as u64;
    }
    let mut dice = Dice::new(salt);
    for index in (1..window).rev() {
        order.swap(index as usize, dice.below(index + 1) as usize);
    }
}

fn run(order: QueueOrder, window: u64, records: u64) {
    let mut reorder = Reorder::new(Limits::default());
    let queues: Vec<QueueIndex> = (0..QUEUES).map(|_| reorder.add_queue(order)).collect();
    let mut orders = vec![vec![0; window as usize]; 64];
    orders.iter_mut().enumerate().for_each(|(salt, order)| shuffled(window, salt as u64 + 1, order));
    let mut checksum = 0u64;
    let mut out = |output: Output| {
        if let Output::Released(record) = output {
            checksum = checksum.wrapping_mul(31).wrapping_add(record.seq ^ record.start);
        }
    };
    let per_window = window * QUEUES;
    let windows = records.div_ceil(per_window);
    let begin = thread_cpu_seconds();
    let mut early_peak = u64::MAX;
    for number in 0..windows {
        if number == windows / 10 {
            early_peak = peak_memory_mib();
        }
        let first = number * window;
        for offset in 0..window {
            for queue in &queues {
                let seq = first + offset;
                let (append, detail) = (seq * 10, Detail { id: seq, amount: 4096, what: 1 });
                let notice = Notice { queue: *queue, seq, thread: 1, append, earliest_start: append, detail };
                reorder.append(&notice, &mut out);
            }
        }
        let order = &orders[number as usize % orders.len()];
        for offset in order {
            for queue in &queues {
                let seq = first + offset;
                let start = seq * 10 + 5;
                let completion = Completion { queue: *queue, seq, submit: start - 1, start, end: start + 4 };
                reorder.complete(&completion, &mut out);
            }
        }
        for queue in &queues {
            reorder.no_append_before(*queue, (first + window) * 10, &mut out);
        }
    }
    reorder.finish(&mut out);
    let seconds = thread_cpu_seconds() - begin;
    black_box(checksum);
    let totals = reorder.totals();
    assert_eq!(totals.delivered, windows * per_window);
    assert!(peak_memory_mib() <= early_peak.saturating_add(4), "memory grows with the records");
    let held: u64 = queues.iter().map(|queue| reorder.account(*queue).held_peak).sum();
    println!(
        "{order:?}, window {window:>5}: {:>6.1} M records/CPU-s, {held:>7} held at most, {:>4} MiB",
        totals.delivered as f64 / seconds / 1e6,
        peak_memory_mib()
    );
}

/// Messages of a ring, as the recorder's, and records that a thread hands over without a pause.
const RING: usize = 8192;
const BURST: u64 = 4096;

fn notice(seq: u64) -> Notice {
    let detail = Detail { id: seq, amount: 1, what: 1 };
    Notice { queue: QueueIndex(0), seq, thread: 1, append: seq, earliest_start: seq, detail }
}

/// Nanoseconds of the middle one of many bursts, for one of its records.
fn middle(mut bursts: Vec<f64>) -> f64 {
    bursts.sort_by(f64::total_cmp);
    bursts.get(bursts.len() / 2).map_or(f64::NAN, |nanos| nanos / BURST as f64)
}

fn nanos_of(work: impl FnOnce()) -> f64 {
    let begin = std::time::Instant::now();
    work();
    begin.elapsed().as_secs_f64() * 1e9
}

/// Cost of a notice or a completion for the producing thread, with a collector that polls every millisecond
/// as the recorder's does; and the cost of storing as many bytes.
fn hand_over(records: u64) {
    let mut memory = vec![notice(0); RING];
    let floor = (0..records / BURST).map(|burst| {
        nanos_of(|| {
            for seq in burst * BURST..(burst + 1) * BURST {
                memory[seq as usize % RING] = notice(seq);
                black_box(&memory[seq as usize % RING]);
            }
        })
    });
    let floor = middle(floor.collect());
    black_box(&mut memory);
    for (rest, how) in [(true, "in bursts"), (false, "without a pause")] {
        let rings = Rings::new(RING);
        let mut producer = rings.producer();
        let consumer = std::sync::Arc::clone(&rings);
        let seen = std::sync::Arc::new(std::sync::atomic::AtomicU64::new(0));
        let taken = std::sync::Arc::clone(&seen);
        let most = records / BURST * BURST;
        let collector = std::thread::spawn(move || {
            while taken.load(Relaxed) < most {
                let count = consumer.drain(|notice: Notice| {
                    black_box(notice);
                });
                taken.fetch_add(count as u64, Relaxed);
                if count == 0 {
                    std::thread::park_timeout(std::time::Duration::from_millis(1));
                }
            }
        });
        let bursts = (0..records / BURST).map(|burst| {
            while rest && seen.load(Relaxed) < burst * BURST {
                std::thread::yield_now();
            }
            nanos_of(|| (burst * BURST..(burst + 1) * BURST).for_each(|seq| producer.put(notice(seq))))
        });
        let bursts = middle(bursts.collect());
        collector.join().expect("the collector does not panic");
        println!(
            "handing over a record, {how}: {bursts:.1} ns of the producing thread (storing {} bytes: {floor:.1} ns; rings outgrown: {})",
            size_of::<Notice>(),
            rings.outgrown()
        );
    }
}

/// One queue waits for its first record while another one continues: waiting records are on disk.
fn stuck(records: u64) {
    let mut reorder = Reorder::new(Limits { held_records: 65_536, ..Limits::default() });
    let queue = reorder.add_queue(QueueOrder::InOrder);
    let mut released = 0u64;
    let mut out = |output: Output| released += u64::from(matches!(output, Output::Released(_)));
    let begin = thread_cpu_seconds();
    for seq in 0..records {
        let notice =
            Notice { queue, seq, thread: 1, append: seq, earliest_start: seq, detail: Detail::default() };
        reorder.append(&notice, &mut out);
        if seq > 0 {
            reorder.complete(&Completion { queue, seq, submit: 0, start: seq + 1, end: seq + 2 }, &mut out);
        }
    }
    reorder.complete(&Completion { queue, seq: 0, submit: 0, start: 1, end: 2 }, &mut out);
    reorder.finish(&mut out);
    let seconds = thread_cpu_seconds() - begin;
    assert_eq!(released, records);
    println!(
        "{records} records behind a missing one, cap 65536: {:.1} M records/CPU-s, {} in memory at most, {} on disk",
        records as f64 / seconds / 1e6,
        reorder.totals().held_in_memory_peak,
        reorder.account(queue).spilled
    );
}

fn main() {
    let millions = std::env::args().nth(1).and_then(|text| text.parse().ok()).unwrap_or(10u64);
    let only = std::env::args().nth(2).and_then(|text| text.parse::<u64>().ok());
    let windows: Vec<u64> = only.map_or_else(|| vec![1, 16, 1024], |window| vec![window]);
    for order in [QueueOrder::InOrder, QueueOrder::OutOfOrder] {
        for window in &windows {
            run(order, *window, millions * 1_000_000);
        }
    }
    if only.is_some() {
        return;
    }
    hand_over(millions.min(10) * 1_000_000);
    stuck(millions.min(10) * 1_000_000);
}
