//! Affinity masks.

/// CPUs as bits: bit *n* of byte *b* is CPU 8 *b* + *n*. Without zero bytes at the end.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Mask(Vec<u8>);

/// Bytes of the first try, for 1024 CPUs; the kernel refuses a mask that is shorter than its own.
const FIRST_BYTES: usize = 128;
/// The last try, for half a million CPUs.
const MAX_BYTES: usize = 64 << 10;

impl Mask {
    /// The CPUs that a thread may use; `os_tid` 0 is the calling thread. `None` if the thread is gone.
    pub fn thread_affinity(os_tid: i32) -> Option<Mask> {
        let mut bytes = FIRST_BYTES;
        loop {
            let mut words = vec![0_u64; bytes / size_of::<u64>()];
            // SAFETY: writes at most `bytes` bytes to the buffer, which has as many.
            let written =
                unsafe { libc::syscall(libc::SYS_sched_getaffinity, os_tid, bytes, words.as_mut_ptr()) };
            if let Ok(written) = usize::try_from(written) {
                let all = words.iter().flat_map(|word| word.to_le_bytes());
                return Some(Mask::from_bytes(all.take(written).collect())).filter(|mask| !mask.0.is_empty());
            }
            bytes *= 2;
            if std::io::Error::last_os_error().raw_os_error() != Some(libc::EINVAL) || bytes > MAX_BYTES {
                return None;
            }
        }
    }

    /// The CPUs that the process may use: of the calling thread and of the initial one, as either may be bound.
    pub fn process_affinity() -> Option<Mask> {
        let initial = Mask::thread_affinity(std::process::id().cast_signed());
        let calling = Mask::thread_affinity(0);
        match (initial, calling) {
            (Some(initial), Some(calling)) => Some(initial.union(&calling)),
            (initial, calling) => initial.or(calling),
        }
    }

    #[cfg(test)]
    pub(super) fn from_cpus_of_byte(byte: u8) -> Mask {
        Mask(vec![byte])
    }

    fn from_bytes(mut bytes: Vec<u8>) -> Mask {
        bytes.truncate(bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1));
        Mask(bytes)
    }

    fn union(&self, other: &Mask) -> Mask {
        let (long, short) = if self.0.len() > other.0.len() { (self, other) } else { (other, self) };
        let mut bytes = long.0.clone();
        bytes.iter_mut().zip(&short.0).for_each(|(byte, other)| *byte |= other);
        Mask(bytes)
    }

    /// The bits.
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }

    /// The numbers of the CPUs, rising.
    pub fn cpus(&self) -> impl Iterator<Item = usize> {
        let bits = |(at, byte): (usize, &u8)| {
            let byte = *byte;
            (0..8).filter(move |bit| byte >> bit & 1 != 0).map(move |bit| at * 8 + bit)
        };
        self.0.iter().enumerate().flat_map(bits)
    }

    /// Whether the CPU is among them.
    pub fn has(&self, cpu: usize) -> bool {
        self.0.get(cpu / 8).is_some_and(|byte| byte >> (cpu % 8) & 1 != 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_are_cpus() {
        let mask = Mask::from_bytes(vec![0b101, 0x80, 0, 0]);
        assert_eq!(mask.cpus().collect::<Vec<_>>(), [0, 2, 15]);
        assert!(mask.has(15) && !mask.has(1) && !mask.has(900) && mask.bytes().len() == 2);
        assert_eq!(mask.union(&Mask(vec![2])).cpus().collect::<Vec<_>>(), [0, 1, 2, 15]);
    }

    #[test]
    fn a_bound_thread_does_not_narrow_its_process() {
        let all = Mask::process_affinity().unwrap();
        let first = all.cpus().next().unwrap();
        let bound = std::thread::spawn(move || {
            // SAFETY: plain memory of the right type, and a CPU below its size.
            unsafe {
                let mut one: libc::cpu_set_t = core::mem::zeroed();
                libc::CPU_SET(first, &mut one);
                libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &one);
            }
            (Mask::thread_affinity(0), Mask::process_affinity())
        });
        let (own, process) = bound.join().unwrap();
        assert_eq!(own.unwrap().cpus().collect::<Vec<_>>(), [first]);
        assert_eq!(process.unwrap(), all);
        assert_eq!(Mask::thread_affinity(i32::MAX), None);
    }
}
