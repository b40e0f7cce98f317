//! The recorder that the collector is linked into.

use core::sync::atomic::{AtomicPtr, Ordering::*};

/// Functions of the recorder that the collector is linked into.
pub struct Host {
    /// Pauses recording, or continues it.
    pub set_paused: fn(bool),
}

/// The [`Host`], or null.
static HOST: AtomicPtr<Host> = AtomicPtr::new(core::ptr::null_mut());

pub(crate) fn host() -> Option<&'static Host> {
    // SAFETY: null, or stored by `set`, with a static lifetime.
    unsafe { HOST.load(Acquire).as_ref() }
}

/// Registers the host.
pub(crate) fn set(host: &'static Host) {
    HOST.store(core::ptr::from_ref(host).cast_mut(), Release);
}
