//! Teams with fewer threads than requested, and the control variables that may be the reason.

use core::ffi::{CStr, c_int};
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::OnceLock;

use taskscope_event::models::omp;

use crate::thread::Moment;

type Getter = unsafe extern "C" fn() -> c_int;

/// The runtime's functions that return control variables; `None` if one of them is not LLVM's.
struct Getters {
    levels: Getter,
    threads: Getter,
    dynamic: Getter,
}

fn getters() -> Option<&'static Getters> {
    static GETTERS: OnceLock<Option<Getters>> = OnceLock::new();
    let find = |name: &CStr| {
        // LLVM's and Intel's runtime have this version, GCC's, which may be loaded too, has not. SAFETY: looks up
        // C strings.
        let function = unsafe { libc::dlvsym(libc::RTLD_DEFAULT, name.as_ptr(), c"VERSION".as_ptr()) };
        // SAFETY: OpenMP declares these functions so.
        (!function.is_null()).then(|| unsafe { core::mem::transmute::<*mut libc::c_void, Getter>(function) })
    };
    let all = || {
        Some(Getters {
            levels: find(c"omp_get_max_active_levels")?,
            threads: find(c"omp_get_thread_limit")?,
            dynamic: find(c"omp_get_dynamic")?,
        })
    };
    GETTERS.get_or_init(all).as_ref()
}

/// Sites with recorded limits: one bit each, selected by the site's low bits.
static RECORDED: [AtomicU64; 64] = [const { AtomicU64::new(0) }; 64];

impl Moment<'_> {
    /// Records the limits of a region with a smaller team than requested; once per site, as nested regions
    /// may be many.
    #[cold]
    #[inline(never)]
    pub fn record_team_limits(&mut self, region: u32, site: u32) {
        if self.thread.profile.is_some() {
            return;
        }
        let (word, bit) = (site as usize / 64 % RECORDED.len(), 1 << (site % 64));
        if RECORDED.get(word).is_none_or(|seen| seen.fetch_or(bit, Relaxed) & bit != 0) {
            return;
        }
        let Some(getters) = getters() else { return };
        // SAFETY: functions of the runtime that calls back, which take no lock and call no tool.
        let limits = unsafe { [(getters.levels)(), (getters.threads)(), (getters.dynamic)()] };
        let mut payload = [0; 16];
        let values = [region.cast_signed()].into_iter().chain(limits);
        for (part, value) in payload.chunks_exact_mut(4).zip(values) {
            part.copy_from_slice(&value.to_le_bytes());
        }
        self.recorder.own_point(self.at, omp::TEAM_LIMITS, payload);
    }
}
