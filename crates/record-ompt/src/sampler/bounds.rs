//! Bounds of threads' stacks, and the room that samples need on them.

use super::machine::stack_pointer_here;

/// Bounds of a thread's stack: memory beyond its end is not read directly.
#[derive(Clone, Copy, Debug, Default)]
pub struct Bounds {
    pub(super) low: u64,
    pub(super) high: u64,
}

/// Code that is not optimised takes more of a stack.
pub const STACK_FACTOR: u64 = if cfg!(debug_assertions) { 4 } else { 1 };
/// Stack use of a walk and its callers, at most: a sample took 14 KB, a thread's first path 16 KB.
pub const ROOM: u64 = (24 << 10) * STACK_FACTOR;
/// Threads with smaller stacks are not sampled, in bytes.
const MIN_STACK_BYTES: u64 = (64 << 10) * STACK_FACTOR;

impl Bounds {
    /// Bounds of no memory.
    pub const NONE: Bounds = Bounds { low: 0, high: 0 };

    /// Bounds of the calling thread's stack. May allocate.
    pub fn current_thread() -> Bounds {
        // The C library reads a file for those of the first thread, which takes a tenth of a millisecond of each start.
        if let Some(bounds) = Bounds::initial_thread().filter(|bounds| bounds.contains(stack_pointer_here()))
        {
            return bounds;
        }
        let mut attributes = core::mem::MaybeUninit::<libc::pthread_attr_t>::uninit();
        let (mut low, mut bytes) = (core::ptr::null_mut(), 0);
        // SAFETY: the structure is filled by the first call and destroyed by the last.
        unsafe {
            if libc::pthread_getattr_np(libc::pthread_self(), attributes.as_mut_ptr()) != 0 {
                return Bounds::default();
            }
            libc::pthread_attr_getstack(attributes.as_ptr(), &mut low, &mut bytes);
            libc::pthread_attr_destroy(attributes.as_mut_ptr());
        }
        Bounds { low: low as u64, high: low as u64 + bytes as u64 }
    }

    /// Bounds of the process's initial stack, up to its maximum size; `None` if uncertain.
    fn initial_thread() -> Option<Bounds> {
        /// From programs with a limit no larger than this the kernel keeps other mappings so far away, at least.
        const MAX_STACK_LIMIT: u64 = 64 << 20;
        // SAFETY: the kernel's own string, the path of the program's file; and queries a limit.
        unsafe {
            let mut limit = core::mem::MaybeUninit::<libc::rlimit>::uninit();
            if libc::getrlimit(libc::RLIMIT_STACK, limit.as_mut_ptr()) != 0 {
                return None;
            }
            let bytes = Some(limit.assume_init().rlim_cur).filter(|bytes| *bytes <= MAX_STACK_LIMIT)?;
            // The kernel writes it first, beneath a last word of zero.
            let file = libc::getauxval(libc::AT_EXECFN);
            if file == 0 {
                return None;
            }
            let high = file + libc::strlen(file as *const libc::c_char) as u64 + 1 + size_of::<u64>() as u64;
            let page = libc::sysconf(libc::_SC_PAGESIZE) as u64;
            (high.is_multiple_of(page) && high > bytes).then(|| Bounds { low: high - bytes, high })
        }
    }

    /// Bounds of a memory range.
    #[cfg(test)]
    pub fn of(memory: &[u64]) -> Bounds {
        let low = memory.as_ptr() as u64;
        Bounds { low, high: low + size_of_val(memory) as u64 }
    }

    /// Bounds that contain every address.
    #[cfg(test)]
    pub fn everything() -> Bounds {
        Bounds { low: 0, high: u64::MAX }
    }

    /// Whether recording needs more than the program can spare of this stack: 29 KB were measured at the
    /// start of a thread.
    pub fn is_small(&self) -> bool {
        (1..MIN_STACK_BYTES).contains(&(self.high - self.low))
    }

    /// Whether a walk from `sp` fits on this stack. `false` for other stacks.
    pub fn have_room_below(&self, sp: u64) -> bool {
        self.contains(sp) && sp - self.low >= ROOM
    }

    /// Whether `address` is on this stack, above `sp`.
    pub fn is_above(&self, sp: u64, address: u64) -> bool {
        self.contains(sp) && address >= sp && address < self.high
    }

    /// Whether `address` is on this stack.
    pub(super) fn contains(&self, address: u64) -> bool {
        (self.low..self.high).contains(&address)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_initial_threads_stack_ends_at_the_systems_bound() {
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
        let stack = maps.lines().find(|line| line.ends_with("[stack]")).unwrap();
        let (low, high) = stack.split_once(' ').unwrap().0.split_once('-').unwrap();
        let [low, high] = [low, high].map(|digits| u64::from_str_radix(digits, 16).unwrap());
        // Without a result, the stack has no limit, or a large one.
        if let Some(bounds) = Bounds::initial_thread() {
            assert_eq!(bounds.high, high);
            assert!(bounds.low <= low);
        }
        assert!(Bounds::current_thread().contains(stack_pointer_here()));
    }
}
