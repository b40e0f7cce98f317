//! Follows a stack from its innermost frame to its root.

use framehop::{FrameAddress, MustNotAllocateDuringUnwind, Unwinder as _};

use super::bounds::Bounds;
use super::code_map::{CodeMap, Owner};
use super::machine::{Read, Registers, follows_call, kept_registers, read_anywhere};
use super::python::{self, Chain, Interpreter, Native, Pages};
use super::unusual::Rule;

/// The unwinder's cache between walks, and its working memory.
pub type UnwindCache = framehop::CacheNative<MustNotAllocateDuringUnwind>;
/// Frames beyond this are cut off.
pub const MAX_FRAMES: usize = 256;
/// Signals that have interrupted each other on one stack, at most.
const MAX_SIGNALS: u32 = 16;

/// The frames of a stack, innermost first.
pub struct StackFrames {
    /// The interrupted instruction, then return addresses. For an outer instruction that a signal of the
    /// program interrupted, the address after its first byte.
    addresses: [u64; MAX_FRAMES],
    /// The stack pointer in each frame; that of frame i + 1 is the CFA of frame i.
    stack_pointers: [u64; MAX_FRAMES + 1],
    /// Owner of each address.
    owners: [Owner; MAX_FRAMES],
    count: usize,
    /// Whether the last frame is the stack's root.
    pub reached_root: bool,
    /// Whether there are more frames than fit.
    pub is_cut: bool,
    /// Whether code of no known module was met.
    pub met_unknown_code: bool,
    /// Handlers of signals that were met.
    signals: u32,
    /// Whether the alternate stack was left on which a handler ran. A thread has one.
    has_left_alternate: bool,
    /// Frames of Python that take the place of native ones.
    python: Chain,
    /// The interpreter's memory.
    memory: Pages,
    /// Whether there are such frames.
    has_python: bool,
}

impl StackFrames {
    /// None yet.
    pub const fn new() -> Self {
        StackFrames {
            addresses: [0; MAX_FRAMES],
            stack_pointers: [0; MAX_FRAMES + 1],
            owners: [Owner::Unknown; MAX_FRAMES],
            count: 0,
            reached_root: false,
            is_cut: false,
            met_unknown_code: false,
            signals: 0,
            has_left_alternate: false,
            python: Chain::new(),
            memory: Pages::new(),
            has_python: false,
        }
    }

    /// A stack with a root, of these addresses, innermost first, and of this code.
    #[cfg(test)]
    pub fn of(addresses: &[u64], owner_of: impl Fn(u64) -> Owner) -> StackFrames {
        let mut frames = StackFrames { count: addresses.len(), reached_root: true, ..StackFrames::new() };
        frames.addresses[..addresses.len()].copy_from_slice(addresses);
        frames.stack_pointers.iter_mut().zip(1..).for_each(|(place, index)| *place = index * 16);
        frames.owners.iter_mut().zip(addresses).for_each(|(place, address)| *place = owner_of(*address));
        frames
    }

    /// The addresses.
    pub fn addresses(&self) -> &[u64] {
        self.addresses.get(..self.count).unwrap_or_default()
    }

    /// Owner of frame `index`.
    pub fn owner(&self, index: usize) -> Option<Owner> {
        self.owners.get(..self.count)?.get(index).copied()
    }

    /// The stack pointer in frame `index`.
    pub fn stack_pointer(&self, index: usize) -> u64 {
        self.stack_pointers.get(index).copied().unwrap_or(0)
    }

    /// The canonical frame address of frame `index`: the stack pointer of its caller. Beyond all
    /// addresses for the root.
    pub fn frame_end(&self, index: usize) -> u64 {
        if index + 1 < self.count || !self.reached_root { self.stack_pointer(index + 1) } else { u64::MAX }
    }

    /// Walks from these registers. Safe in a signal handler: the stack may hold any values.
    pub fn walk(&mut self, map: &CodeMap, cache: &mut UnwindCache, from: (u64, Registers), bounds: Bounds) {
        self.has_python = false;
        let sp = from.1.sp();
        self.walk_native(map, cache, from, bounds);
        if let Some(interpreter) = python::interpreter()
            && self.addresses().iter().any(|address| interpreter.contains(*address))
        {
            self.add_python(map, interpreter, (bounds, sp));
        }
    }

    /// Reads the frames of Python, of which a native one may run some.
    #[cold]
    fn add_python(&mut self, map: &CodeMap, interpreter: &Interpreter, (bounds, sp): (Bounds, u64)) {
        self.memory.renew(bounds, sp);
        if self.python.read(interpreter, &mut self.memory) {
            self.insert_python(map, interpreter.eval);
        }
    }

    /// Puts the frames of Python in the place of the native frames of the interpreter's loops, of which `eval` is the function.
    fn insert_python(&mut self, map: &CodeMap, eval: u64) {
        let root_end = self.stack_pointer(self.count);
        let is_eval = |address: u64| map.function(address) == Some(eval);
        let mut native = Native {
            addresses: &mut self.addresses,
            stack_pointers: &mut self.stack_pointers,
            owners: &mut self.owners,
            count: self.count,
        };
        let Some(total) = native.insert(&mut self.python, Owner::Program, is_eval) else { return };
        self.has_python = true;
        self.count = total.min(MAX_FRAMES);
        if total > MAX_FRAMES {
            (self.reached_root, self.is_cut) = (false, true);
        } else if let Some(after) = self.stack_pointers.get_mut(total) {
            *after = root_end;
        }
    }

    fn walk_native(
        &mut self,
        map: &CodeMap,
        cache: &mut UnwindCache,
        from: (u64, Registers),
        bounds: Bounds,
    ) {
        let (pc, mut registers) = from;
        (self.count, self.reached_root, self.is_cut, self.met_unknown_code) = (0, false, false, false);
        (self.signals, self.has_left_alternate) = (0, false);
        let start = registers.sp();
        let mut read = |address: u64| {
            if address & 7 == 0 && bounds.is_above(start, address) && address <= bounds.high - 8 {
                // SAFETY: in the thread's own stack, above its stack pointer, which is mapped; only this
                // thread changes it.
                Ok(unsafe { (address as *const u64).read_volatile() })
            } else {
                read_anywhere(address)
            }
        };
        let mut address = FrameAddress::InstructionPointer(pc);
        let mut code = map.along();
        loop {
            let (owner, rule) = code.owner_and_rule(address.address_for_lookup());
            if rule == Some(&Rule::Interrupted) {
                let Some(pc) = self.leave_handler(&mut registers, bounds, &mut read) else { return };
                address = FrameAddress::InstructionPointer(pc);
                continue;
            }
            // Without unwind tables, the caller's address may be any number.
            if self.count > 0 && code.is_data(address.address_for_lookup()) {
                return;
            }
            let (mut here, sp) = (address.address(), registers.sp());
            if owner == Owner::Unknown {
                // JIT-compiled or not found: likewise.
                let has_left_stack = self.signals == 0 && bounds.contains(start) && !bounds.contains(sp);
                let is_code = |here: u64| match address.is_return_address() {
                    true => follows_call(here),
                    false => read_anywhere(here & !7).is_ok(),
                };
                if self.count > 0 && (bounds.contains(here) || has_left_stack || !is_code(here)) {
                    return;
                }
                self.met_unknown_code = true;
            }
            let (Some(place), Some(stack_pointer), Some(whose)) = (
                self.addresses.get_mut(self.count),
                self.stack_pointers.get_mut(self.count),
                self.owners.get_mut(self.count),
            ) else {
                self.is_cut = true;
                return;
            };
            if self.count > 0 && !address.is_return_address() {
                here = here.saturating_add(1);
            }
            (*place, *stack_pointer, *whose) = (here, sp, owner);
            self.count += 1;
            let next = match rule {
                Some(Rule::Root) => Ok(None),
                #[cfg(target_arch = "x86_64")]
                Some(Rule::Caller(caller)) => {
                    caller.unwind(!address.is_return_address(), &mut registers, &mut read)
                }
                _ => map.unwinder.unwind_frame(address, &mut registers, cache, &mut read).map_err(|_| ()),
            };
            if let Some(after) = self.stack_pointers.get_mut(self.count) {
                *after = registers.sp();
            }
            match next {
                Ok(Some(caller)) => match FrameAddress::from_return_address(caller) {
                    Some(caller) => address = caller,
                    None => return,
                },
                // Code without unwind tables and a null frame pointer looks like a root, too.
                Ok(None) => {
                    self.reached_root = owner != Owner::Unknown;
                    return;
                }
                Err(()) => return,
            }
        }
    }

    /// Continues from a signal handler to the interrupted code; `None` if that is impossible.
    #[cold]
    fn leave_handler(&mut self, registers: &mut Registers, bounds: Bounds, read: &mut Read) -> Option<u64> {
        let sp = registers.sp();
        let pc;
        (pc, *registers) = kept_registers(sp, read).ok()?;
        let interrupted = registers.sp();
        self.signals += 1;
        let is_same_stack = interrupted > sp && bounds.contains(interrupted) == bounds.contains(sp);
        if !is_same_stack {
            if self.has_left_alternate {
                return None;
            }
            self.has_left_alternate = true;
            // On any stack, its frames are further in than the interrupted ones.
            self.stack_pointers.iter_mut().take(self.count).for_each(|place| *place = interrupted);
        }
        (self.signals <= MAX_SIGNALS).then_some(pc)
    }

    /// Whether all frames but the innermost have called the one before, in native code: the return addresses are on the stack.
    pub fn are_calls(&self) -> bool {
        self.signals == 0 && !self.has_python
    }
}

#[cfg(test)]
mod tests {
    use super::super::machine::registers_here;
    use super::*;

    #[test]
    fn a_walk_from_here_reaches_the_threads_first_function() {
        let mut frames = Box::new(StackFrames::new());
        let mut cache = UnwindCache::default();
        frames.walk(CodeMap::up_to_date(), &mut cache, registers_here(), Bounds::current_thread());
        assert!(frames.reached_root, "{} frames", frames.count);
        assert!(frames.count > 3);
        for index in 1..frames.count {
            assert!(frames.stack_pointer(index) > frames.stack_pointer(index - 1), "stacks grow downwards");
        }
    }

    #[test]
    fn where_the_linker_calls_constructors_is_the_root() {
        // SAFETY: the linker's ELF header.
        let entry = unsafe {
            let linker = libc::getauxval(libc::AT_BASE);
            linker + (*(linker as *const libc::Elf64_Ehdr)).e_entry
        };
        let mut frames = Box::new(StackFrames::new());
        let (_, registers) = registers_here();
        frames.walk(
            CodeMap::up_to_date(),
            &mut UnwindCache::default(),
            (entry + 40, registers),
            Bounds::current_thread(),
        );
        assert!(frames.reached_root && frames.count == 1, "{} frames", frames.count);
    }

    /// `cargo test -p taskscope-record-ompt --release --lib cost -- --ignored --nocapture`
    #[test]
    #[ignore = "a measurement"]
    fn cost_of_a_walk_over_twenty_frames() {
        #[inline(never)]
        fn at_depth(depth: u32, measure: &mut dyn FnMut()) -> u32 {
            if depth == 0 {
                measure();
                return 1;
            }
            core::hint::black_box(at_depth(depth - 1, measure)) + 1
        }
        let (map, bounds) = (CodeMap::up_to_date(), Bounds::current_thread());
        let mut frames = Box::new(StackFrames::new());
        let mut times = [Vec::new(), Vec::new()];
        let mut measure = || {
            let mut cache = UnwindCache::default();
            for round in 0..200 {
                if round < 20 {
                    cache = UnwindCache::default();
                }
                let begin = std::time::Instant::now();
                frames.walk(map, &mut cache, registers_here(), bounds);
                times[usize::from(round >= 21)].push(begin.elapsed().as_nanos());
            }
        };
        at_depth(8, &mut measure);
        let [cold, warm] = times.map(|mut times| {
            times.sort_unstable();
            times[times.len() / 2]
        });
        println!("{} frames: {cold} ns with an empty cache, {warm} ns with a full one", frames.count);
    }

    /// A stack with an unmapped lower half, and a handler of the program on it.
    #[cfg(target_arch = "x86_64")]
    struct Interrupted {
        memory: *mut u64,
    }

    #[cfg(target_arch = "x86_64")]
    impl Interrupted {
        const WORDS: usize = 2048;

        fn new() -> Interrupted {
            let bytes = Self::WORDS * 8;
            // SAFETY: new memory, the lower half of which is unused.
            let memory = unsafe {
                let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
                let protection = libc::PROT_READ | libc::PROT_WRITE;
                let memory = libc::mmap(core::ptr::null_mut(), bytes, protection, flags, -1, 0);
                assert_ne!(memory, libc::MAP_FAILED);
                assert_eq!(libc::mprotect(memory, bytes / 2, libc::PROT_NONE), 0);
                memory.cast()
            };
            Interrupted { memory }
        }

        fn at(&self, index: usize) -> u64 {
            self.memory.wrapping_add(index) as u64
        }

        fn write(&mut self, index: usize, value: u64) {
            assert!((Self::WORDS / 2..Self::WORDS).contains(&index));
            // SAFETY: in the upper half.
            unsafe { self.memory.add(index).write(value) };
        }

        /// Walks from the first instruction of a handler at frame `index`, with these interrupted registers.
        fn walk(&mut self, index: usize, pc: u64, sp: u64) -> Vec<u64> {
            let handler = Self::walk as fn(&mut Self, usize, u64, u64) -> Vec<u64> as usize as u64;
            let registers = core::mem::offset_of!(libc::ucontext_t, uc_mcontext) / 8;
            self.write(index, trampoline());
            self.write(index + 1 + registers + libc::REG_RIP as usize, pc);
            self.write(index + 1 + registers + libc::REG_RSP as usize, sp);
            let bounds = Bounds { low: self.at(0), high: self.at(Self::WORDS) };
            let mut frames = Box::new(StackFrames::new());
            let start = (handler, Registers::new(handler, self.at(index), 0));
            frames.walk(CodeMap::up_to_date(), &mut UnwindCache::default(), start, bounds);
            assert_eq!(frames.addresses()[0], handler);
            assert!(!frames.are_calls());
            frames.addresses()[1..].to_vec()
        }
    }

    #[cfg(target_arch = "x86_64")]
    impl Drop for Interrupted {
        fn drop(&mut self) {
            // SAFETY: made by `new`.
            unsafe { libc::munmap(self.memory.cast(), Self::WORDS * 8) };
        }
    }

    /// Return address of signal handlers.
    #[cfg(target_arch = "x86_64")]
    fn trampoline() -> u64 {
        extern "C" fn handler(_: libc::c_int) {}
        // SAFETY: an empty handler, for a signal that is never sent.
        unsafe {
            let mut action: libc::sigaction = core::mem::zeroed();
            action.sa_sigaction = handler as extern "C" fn(libc::c_int) as usize;
            assert_eq!(libc::sigaction(libc::SIGUSR2, &action, core::ptr::null_mut()), 0);
            assert_eq!(libc::sigaction(libc::SIGUSR2, core::ptr::null(), &mut action), 0);
            action.sa_restorer.unwrap() as usize as u64
        }
    }

    #[cfg(target_arch = "x86_64")]
    #[test]
    fn an_interrupted_address_is_not_a_call() {
        // At their first instructions, which are looked up at their own addresses.
        let outer = trampoline as fn() -> u64 as usize as u64;
        let mut stack = Interrupted::new();
        let sp = stack.at(1500);
        stack.write(1500, outer + 1);
        stack.write(1501, 0);
        let found = stack.walk(1100, outer, sp);
        assert_eq!(found[..2], [outer + 1, outer + 1]);
    }

    /// The stack of a handler may hold any values: here, stack pointers of interrupted code.
    #[cfg(target_arch = "x86_64")]
    #[test]
    fn wild_stack_pointers_of_signals_are_not_followed() {
        let code = trampoline as fn() -> u64 as usize as u64;
        let mut stack = Interrupted::new();
        let top = stack.at(Interrupted::WORDS);
        let outside = [0, 7, 8, 1 << 40, 1 << 63, u64::MAX - 7, u64::MAX, top, top - 3, stack.at(0) - 8];
        let below = [stack.at(0), stack.at(100), stack.at(1023) + 4];
        for sp in [&outside[..], &below].concat() {
            assert_eq!(stack.walk(1100, code, sp), [code + 1], "{sp:x}");
            // Nor if it has interrupted the end of another handler.
            assert_eq!(stack.walk(1100, trampoline(), sp), [0; 0], "{sp:x}");
        }
        // Itself, again and again.
        let own = stack.at(1101);
        assert_eq!(stack.walk(1100, trampoline(), own), [0; 0]);
    }

    #[test]
    fn memory_that_is_not_there_is_no_word() {
        let here = 77u64;
        assert_eq!(read_anywhere(&raw const here as u64), Ok(77));
        assert_eq!(read_anywhere(0x10_0000_0000), Err(()));
        assert_eq!(read_anywhere(8), Err(()));
        assert_eq!(read_anywhere(u64::MAX - 3), Err(()));
    }
}
