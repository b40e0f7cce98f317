//! Sums over the run so far, written at an interval while the program runs.
//!
//! One JSON object a line in `HOST.PID.live.jsonl`. The handler of the sample that passes the interval
//! writes it: formatting and the three system calls are async-signal-safe. The sums are those that the
//! profile has at the end, so that both agree.

use core::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::ffi::CString;
use std::os::unix::ffi::OsStrExt;
use std::sync::OnceLock;

use taskscope_profile::Marker;

/// Seconds between two lines.
pub const INTERVAL_VARIABLE: &str = "TASKSCOPE_LIVE";

/// Nanoseconds of samples per cause: 0 is work, the rest markers.
static SUMS: [AtomicU64; 15] = [const { AtomicU64::new(0) }; 15];
static INTERVAL_NS: AtomicU64 = AtomicU64::new(0);
static NEXT_NS: AtomicU64 = AtomicU64::new(0);
static PATH: OnceLock<CString> = OnceLock::new();

/// Reads the environment.
pub fn start() {
    let seconds = std::env::var(INTERVAL_VARIABLE).ok().and_then(|text| text.trim().parse::<f64>().ok());
    if let Some(seconds) = seconds.filter(|seconds| *seconds > 0.0) {
        INTERVAL_NS.store((seconds * 1e9) as u64, Relaxed);
    }
}

/// Tells where the lines go.
pub fn set_place(directory: &std::path::Path, process: &str) {
    let path = directory.join(format!("{process}.live.jsonl"));
    if let Ok(path) = CString::new(path.as_os_str().as_bytes()) {
        let _ = PATH.set(path);
    }
}

/// Counts a sample of a worker; for handlers.
pub fn count(cause: Option<Marker>, weight: u64, now: u64) {
    if let Some(sum) = SUMS.get(cause.map_or(0, |marker| marker as usize)) {
        sum.fetch_add(weight, Relaxed);
    }
    let interval = INTERVAL_NS.load(Relaxed);
    let next = NEXT_NS.load(Relaxed);
    if interval == 0 || now < next {
        return;
    }
    if NEXT_NS.compare_exchange(next, now + interval, Relaxed, Relaxed).is_ok() && next != 0 {
        write_line(now);
    }
}

/// The sums so far: nanoseconds of work, then per marker.
pub fn sums() -> impl Iterator<Item = (Option<Marker>, u64)> {
    SUMS.iter().enumerate().map(|(index, sum)| (Marker::of(index as u64), sum.load(Relaxed)))
}

struct Line {
    bytes: [u8; 512],
    used: usize,
}

impl Line {
    fn text(&mut self, text: &[u8]) {
        for byte in text {
            if let Some(place) = self.bytes.get_mut(self.used) {
                *place = *byte;
                self.used += 1;
            }
        }
    }

    fn number(&mut self, mut value: u64) {
        let mut digits = [0u8; 20];
        let mut first = digits.len();
        loop {
            first -= 1;
            if let Some(place) = digits.get_mut(first) {
                *place = b'0' + (value % 10) as u8;
            }
            value /= 10;
            if value == 0 {
                break;
            }
        }
        self.text(digits.get(first..).unwrap_or_default());
    }
}

fn write_line(now: u64) {
    let Some(path) = PATH.get() else { return };
    let (mut total, mut work, mut largest) = (0u64, 0u64, (0u64, None));
    for (cause, sum) in sums() {
        total += sum;
        match cause {
            None => work = sum,
            Some(_) if sum > largest.0 => largest = (sum, cause),
            Some(_) => {}
        }
    }
    let mut line = Line { bytes: [0; 512], used: 0 };
    line.text(b"{\"clock_ns\":");
    line.number(now);
    line.text(b",\"worker_ns\":");
    line.number(total);
    line.text(b",\"work_ns\":");
    line.number(work);
    line.text(b",\"efficiency_permille\":");
    line.number((u128::from(work) * 1000 / u128::from(total.max(1))) as u64);
    if let (sum, Some(marker)) = largest {
        line.text(b",\"largest_loss\":\"");
        line.text(marker.name().as_bytes());
        line.text(b"\",\"largest_loss_ns\":");
        line.number(sum);
    }
    line.text(b"}\n");
    // SAFETY: system calls on a C string and on our own buffer.
    unsafe {
        let file = libc::open(
            path.as_ptr(),
            libc::O_WRONLY | libc::O_CREAT | libc::O_APPEND | libc::O_CLOEXEC,
            0o644,
        );
        if file >= 0 {
            libc::write(file, line.bytes.as_ptr().cast(), line.used);
            libc::close(file);
        }
    }
}
