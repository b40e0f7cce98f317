//! The functions of ROCTX, in the place of its library's, when this library is preloaded ([`taskscope_annotations::roctx`]).
//!
//! Each calls the library's function, which may be loaded for a part of the program only, and returns its result. Without that library
//! (the program has looked our function up) they do what it does without a tool.

use core::cell::Cell;
use core::ffi::{CStr, c_char, c_int};
use core::sync::atomic::{AtomicU8, AtomicU64, AtomicUsize, Ordering::*};

use taskscope_annotations::roctx;

use crate::annotations;
use crate::sampler::intercept::find_after;

/// Whether this process's ranges are recorded: not known yet, no, yes.
static RECORDS: AtomicU8 = AtomicU8::new(UNKNOWN);
const UNKNOWN: u8 = 0;
const NO: u8 = 1;
const YES: u8 = 2;

#[inline]
fn records() -> bool {
    match RECORDS.load(Acquire) {
        UNKNOWN => begin(),
        known => known == YES,
    }
}

#[cold]
fn begin() -> bool {
    let records = annotations::start("roctx");
    RECORDS.store(if records { YES } else { NO }, Release);
    records
}

/// The library's function behind ours, 0 without one.
struct Behind {
    name: &'static CStr,
    found: AtomicUsize,
}

/// In the place of an address: not looked up yet.
const UNSEEN: usize = 1;

impl Behind {
    const fn new(name: &'static CStr) -> Behind {
        Behind { name, found: AtomicUsize::new(UNSEEN) }
    }

    fn address(&self, ours: usize) -> Option<usize> {
        let known = match self.found.load(Relaxed) {
            UNSEEN => {
                let found = find_after(self.name, ours as *const ()) as usize;
                self.found.store(found, Relaxed);
                found
            }
            known => known,
        };
        (known != 0).then_some(known)
    }
}

/// `fn name(arguments) -> result, alone result, recorded …`: the result of the library's function, or without it another one; then
/// what is recorded of it.
macro_rules! functions {
    ($( fn $name:ident($($argument:ident : $type:ty)?) $(-> $result:ty)?, alone $alone:expr, recorded |$made:pat_param| $recorded:expr; )*) => { $(
        #[allow(non_snake_case, reason = "the library's name")]
        #[allow(clippy::let_unit_value, reason = "some functions return nothing")]
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $name($($argument: $type)?) $(-> $result)? {
            type Function = unsafe extern "C" fn($($type)?) $(-> $result)?;
            static BEHIND: Behind = Behind::new(match CStr::from_bytes_with_nul(concat!(stringify!($name), "\0").as_bytes()) {
                Ok(name) => name,
                Err(_) => c"",
            });
            let made = match BEHIND.address($name as *const () as usize) {
                // SAFETY: the library's function of this name has this type; the argument is the caller's.
                Some(address) => unsafe { core::mem::transmute::<usize, Function>(address)($($argument)?) },
                None => $alone,
            };
            if records() {
                let $made = made;
                $recorded;
            }
            made
        }
    )* };
}

thread_local! {
    /// Open ranges of the thread, for a program without the library.
    static LEVEL: Cell<c_int> = const { Cell::new(0) };
}

fn change_level(by: c_int) -> c_int {
    LEVEL.try_with(|level| level.replace((level.get() + by).max(0))).unwrap_or(0)
}

static NEXT: AtomicU64 = AtomicU64::new(1);

functions! {
    // SAFETY: the library's function takes a C string.
    fn roctxMarkA(message: *const c_char), alone (), recorded |()| unsafe { roctx::mark(message) };
    // SAFETY: as above.
    fn roctxRangePushA(message: *const c_char) -> c_int, alone change_level(1), recorded |_| unsafe { roctx::push(message) };
    fn roctxRangePop() -> c_int, alone change_level(-1) - 1, recorded |_| roctx::pop();
    // SAFETY: as above.
    fn roctxRangeStartA(message: *const c_char) -> u64, alone NEXT.fetch_add(1, Relaxed), recorded |range| unsafe { roctx::start(message, range) };
    fn roctxRangeStop(range: u64), alone (), recorded |()| roctx::stop(range);
    // SAFETY: as above.
    fn roctxNameOsThread(name: *const c_char) -> c_int, alone 0, recorded |_| unsafe { roctx::name_thread(name) };
}
