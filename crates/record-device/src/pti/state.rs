//! PTI's functions, clock and correlator, which callbacks and records share.

use super::library::Pti;
use crate::clocks::DeviceClock;
use crate::correlate::{Correlator, QueueKey};
use crate::hub::{Device, lock};
use rustc_hash::FxHashMap;
use std::sync::{Mutex, OnceLock};
use taskscope_reorder::VendorKey;

pub(super) static PTI: OnceLock<Pti> = OnceLock::new();
pub(super) static CLOCK: OnceLock<DeviceClock> = OnceLock::new();
pub(super) static CORRELATOR: Correlator = Correlator::new("Level Zero by PTI", describe, new_device);

fn describe(key: &QueueKey) -> String {
    format!("{:#x}", key.queue)
}

fn new_device(device: u64) -> Device {
    let clock = CLOCK.get().copied().unwrap_or(DeviceClock::Own { nanos_per_tick: 1.0, bits: 64 });
    let name =
        if device == 0 { "Level Zero device".to_owned() } else { format!("Level Zero device {device:016x}") };
    Device { name, clock }
}

pub(super) fn key(id: u64) -> VendorKey {
    VendorKey { scope: 0, id, execution: 0 }
}

/// Devices by queue: the callback has a device's handle, the record the front of its universal id. The first
/// one names it.
static DEVICES: Mutex<Option<FxHashMap<u64, u64>>> = Mutex::new(None);

pub(super) fn queue_key(queue: u64, device: u64) -> QueueKey {
    let device = *lock(&DEVICES).get_or_insert_default().entry(queue).or_insert(device);
    QueueKey { device, context: 0, queue }
}
