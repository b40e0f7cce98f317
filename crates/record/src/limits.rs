//! How much this process may store, over all its threads.

use core::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::io;

use crate::disk_file::{NoRoom, check_size_limit};

/// The environment variable that caps the bytes of all streams of a process: a number with an
/// optional `K`, `M` or `G` (powers of 1024).
pub const MAX_SIZE_VARIABLE: &str = "TASKSCOPE_MAX_SIZE";
/// The environment variable that keeps only the newest bytes of each thread's `stream.obs`; the form
/// is that of [`MAX_SIZE_VARIABLE`].
pub const RING_VARIABLE: &str = "TASKSCOPE_RING";

static CAP: AtomicU64 = AtomicU64::new(u64::MAX);
static CHARGED: AtomicU64 = AtomicU64::new(0);
static RING: AtomicU64 = AtomicU64::new(0);

/// Reads the limits from the environment; a forked child starts counting anew.
pub(crate) fn start() {
    CAP.store(bytes_of_variable(MAX_SIZE_VARIABLE).unwrap_or(u64::MAX), Relaxed);
    RING.store(bytes_of_variable(RING_VARIABLE).unwrap_or(0), Relaxed);
    CHARGED.store(0, Relaxed);
}

/// Bytes of each thread's ring; 0 when everything is kept.
pub(crate) fn ring_bytes() -> u64 {
    RING.load(Relaxed)
}

/// Fails if a file of this process may not have `bytes` (`ulimit -f`): writing so many would raise SIGXFSZ in
/// the program.
pub fn check_file_size(bytes: u64) -> io::Result<()> {
    check_size_limit(bytes).map_err(|_| io::ErrorKind::FileTooLarge.into())
}

/// Takes `bytes` from the remaining budget.
pub(crate) fn charge(bytes: u64) -> Result<(), NoRoom> {
    let before = CHARGED.fetch_add(bytes, Relaxed);
    if before.saturating_add(bytes) <= CAP.load(Relaxed) {
        return Ok(());
    }
    refund(bytes);
    Err(NoRoom::SizeCap)
}

/// Returns the unused part of a finished stream's budget.
pub(crate) fn refund(bytes: u64) {
    CHARGED.fetch_sub(bytes, Relaxed);
}

fn bytes_of_variable(name: &str) -> Option<u64> {
    parse_bytes(&std::env::var(name).ok()?)
}

/// `"64M"` and the like.
pub fn parse_bytes(text: &str) -> Option<u64> {
    let text = text.trim();
    let digits = text.trim_end_matches(|c: char| !c.is_ascii_digit());
    let factor: u64 = match &text[digits.len()..] {
        "" | "B" => 1,
        "K" | "k" | "KiB" => 1 << 10,
        "M" | "m" | "MiB" => 1 << 20,
        "G" | "g" | "GiB" => 1 << 30,
        _ => return None,
    };
    digits.parse::<u64>().ok()?.checked_mul(factor)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_units() {
        assert_eq!(parse_bytes("512"), Some(512));
        assert_eq!(parse_bytes("64M"), Some(64 << 20));
        assert_eq!(parse_bytes(" 2GiB "), Some(2 << 30));
        assert_eq!(parse_bytes("M"), None);
        assert_eq!(parse_bytes("3x"), None);
        assert_eq!(parse_bytes("99999999999G"), None);
    }
}
