//! Frames of which framehop does not find the callers: of functions that align their stack, and of signal handlers; and the root
//! that has no unwind tables.
//!
//! framehop assumes a frame pointer in functions that it does not understand. Such code is located when a
//! module's tables are prepared, outside of the handler.

use std::sync::OnceLock;

use super::unwind_tables::Tables;
use crate::sampler::modules::MappedModule;

/// A piece of code.
#[derive(Clone, Copy, Debug)]
pub struct Unusual {
    start: u64,
    end: u64,
    rule: Rule,
}

/// How the caller of a piece of code is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    /// Interrupted by a signal; this code is the return address of its handler, and the kernel has saved the
    /// registers at the stack pointer.
    Interrupted,
    /// No caller: the process begins here, or the first function on a stack that the program made.
    Root,
    /// By the rows of the module's tables.
    #[cfg(target_arch = "x86_64")]
    Caller(tables::Caller),
}

/// The rule for an address among a module's, sorted pieces.
#[inline(always)]
pub fn rule(all: &'static [Unusual], address: u64) -> Option<&'static Rule> {
    if all.is_empty() {
        return None;
    }
    let after = all.partition_point(|piece| piece.start <= address);
    let piece = after.checked_sub(1).and_then(|index| all.get(index))?;
    (address < piece.end).then_some(&piece.rule)
}

/// A module's pieces.
pub fn find(module: &MappedModule, tables: Option<&Tables>) -> &'static [Unusual] {
    #[cfg(target_arch = "x86_64")]
    // Rust's compiler does not generate such code.
    let mut found = {
        let tables = tables.filter(|_| !module.contains(find as *const () as u64));
        tables.map(tables::find).unwrap_or_default()
    };
    #[cfg(target_arch = "aarch64")]
    let mut found = {
        let _ = tables;
        trampoline_of_kernel(module).into_iter().collect::<Vec<_>>()
    };
    found.extend(start_of_process(module));
    found.extend(end_of_contexts(module));
    found.sort_unstable_by_key(|piece| piece.start);
    if found.is_empty() { &[] } else { found.leak() }
}

/// Process entry in the dynamic linker: the caller of library constructors has no unwind tables.
fn start_of_process(module: &MappedModule) -> Option<Unusual> {
    /// Two dozen instructions.
    const BYTES: u64 = 64;
    // SAFETY: no preconditions; the linker's first bytes are its ELF header.
    let entry = unsafe {
        if module.start == 0 || module.start != libc::getauxval(libc::AT_BASE) {
            return None;
        }
        (*(module.start as *const libc::Elf64_Ehdr)).e_entry
    };
    let start = module.start.checked_add(entry).filter(|start| entry > 0 && module.contains(*start))?;
    Some(Unusual { start, end: start + BYTES, rule: Rule::Root })
}

/// Return address of functions that the program passed to `makecontext`.
fn end_of_contexts(module: &MappedModule) -> Option<Unusual> {
    static END: OnceLock<Option<u64>> = OnceLock::new();
    let end = (*END.get_or_init(end_of_a_context))?;
    // A return address is looked up at the byte before.
    let start = end.checked_sub(1).filter(|start| module.contains(*start))?;
    Some(Unusual { start, end: end + 1, rule: Rule::Root })
}

/// Reads it from a new context, as only the C library knows it.
fn end_of_a_context() -> Option<u64> {
    extern "C" fn never_called() {}
    let mut stack = [0u64; 128];
    let mut context = core::mem::MaybeUninit::<libc::ucontext_t>::zeroed();
    // SAFETY: the context is filled before it is changed, and never resumed; its registers point to its
    // return address.
    unsafe {
        if libc::getcontext(context.as_mut_ptr()) != 0 {
            return None;
        }
        let made = &mut *context.as_mut_ptr();
        (made.uc_stack.ss_sp, made.uc_stack.ss_size) = (stack.as_mut_ptr().cast(), size_of_val(&stack));
        made.uc_link = core::ptr::null_mut();
        libc::makecontext(made, never_called, 0);
        #[cfg(target_arch = "x86_64")]
        let end = (*made.uc_mcontext.gregs.get(libc::REG_RSP as usize)? as *const u64).read();
        #[cfg(target_arch = "aarch64")]
        let end = made.uc_mcontext.regs[30];
        Some(end)
    }
}

/// The code in the kernel's part that handlers return to, which has no unwind tables.
#[cfg(target_arch = "aarch64")]
fn trampoline_of_kernel(module: &MappedModule) -> Option<Unusual> {
    /// `mov x8, #139; svc #0`.
    const RETURN: [u8; 8] = [0x68, 0x11, 0x80, 0xd2, 0x01, 0x00, 0x00, 0xd4];
    // SAFETY: no preconditions.
    if !module.contains(unsafe { libc::getauxval(libc::AT_SYSINFO_EHDR) }) {
        return None;
    }
    // SAFETY: mapped and readable as long as the process lives.
    let code = unsafe {
        core::slice::from_raw_parts(module.start as *const u8, (module.end - module.start) as usize)
    };
    let at = (0..code.len()).step_by(4).find(|at| code.get(*at..*at + 8) == Some(&RETURN))? as u64;
    // Return addresses are looked up at the byte before.
    let start = module.start + at - 1;
    Some(Unusual { start, end: start + 9, rule: Rule::Interrupted })
}

#[cfg(target_arch = "x86_64")]
mod tables {
    use framehop::x86_64::Reg;
    use gimli::{
        BaseAddresses, CfaRule, EhFrame, EndianSlice, Operation, RegisterRule, RunTimeEndian, UnwindContext,
        UnwindExpression, UnwindSection as _, X86_64,
    };

    use super::{Rule, Tables, Unusual};
    use crate::sampler::machine::{Read, Registers, code, read_anywhere};

    // With the reader that framehop uses, its own calls of gimli's functions would no longer be compiled in place.
    type Section<'a> = EhFrame<EndianSlice<'a, RunTimeEndian>>;
    type Entry<'a> = gimli::FrameDescriptionEntry<EndianSlice<'a, RunTimeEndian>>;

    /// Location of a caller's stack and frame pointer; its return address is the last word below the CFA.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct Caller {
        cfa: Cfa,
        bp: FramePointer,
    }

    /// An address: the value of a register, by its number in the tables, and an offset.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    struct BaseAndOffset {
        register: u8,
        offset: i32,
    }

    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    enum Cfa {
        Is(BaseAndOffset),
        /// In memory, and an offset from that.
        LiesAt(BaseAndOffset, i32),
    }

    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    enum FramePointer {
        Unchanged,
        LiesAt(BaseAndOffset),
        LiesFromCfa(i32),
    }

    impl BaseAndOffset {
        fn new(register: gimli::Register, offset: i64) -> Option<BaseAndOffset> {
            let register = u8::try_from(register.0).ok().filter(|number| reg(*number).is_some())?;
            Some(BaseAndOffset { register, offset: i32::try_from(offset).ok()? })
        }

        /// In the innermost frame, and in one that was interrupted, all registers are known.
        fn address(self, registers: &Registers, all_are_known: bool) -> Result<u64, ()> {
            let register = reg(self.register).ok_or(())?;
            if !all_are_known && !matches!(register, Reg::RSP | Reg::RBP) {
                return Err(());
            }
            registers.get(register).checked_add_signed(self.offset.into()).ok_or(())
        }
    }

    fn reg(number: u8) -> Option<Reg> {
        use Reg::*;
        const IN_TABLES: [Reg; 16] =
            [RAX, RDX, RCX, RBX, RSI, RDI, RBP, RSP, R8, R9, R10, R11, R12, R13, R14, R15];
        IN_TABLES.get(usize::from(number)).copied()
    }

    impl Caller {
        /// Goes to the caller. `Ok(None)` at the root.
        #[cold]
        pub fn unwind(
            self,
            is_interrupted: bool,
            registers: &mut Registers,
            read: &mut Read,
        ) -> Result<Option<u64>, ()> {
            let cfa = match self.cfa {
                Cfa::Is(place) => place.address(registers, is_interrupted)?,
                Cfa::LiesAt(place, offset) => {
                    let kept = read(place.address(registers, is_interrupted)?)?;
                    kept.checked_add_signed(offset.into()).ok_or(())?
                }
            };
            if cfa <= registers.sp() {
                return Err(());
            }
            let bp = match self.bp {
                FramePointer::Unchanged => registers.bp(),
                FramePointer::LiesAt(place) => read(place.address(registers, is_interrupted)?)?,
                FramePointer::LiesFromCfa(offset) => read(cfa.checked_add_signed(offset.into()).ok_or(())?)?,
            };
            let address = read(cfa - 8)?;
            if address == 0 {
                return Ok(None);
            }
            registers.set_ip(address);
            registers.set_sp(cfa);
            registers.set_bp(bp);
            Ok(Some(address))
        }

        /// Converts a row that framehop has no rule for.
        fn of(
            row: &gimli::UnwindTableRow<usize>,
            section: &Section<'_>,
            entry: &Entry<'_>,
        ) -> Option<Caller> {
            let offset = |offset: i64| i32::try_from(offset).ok();
            let cfa = match row.cfa() {
                CfaRule::RegisterAndOffset { register: X86_64::RSP | X86_64::RBP, .. } => return None,
                CfaRule::RegisterAndOffset { register, offset } => {
                    Cfa::Is(BaseAndOffset::new(*register, *offset)?)
                }
                CfaRule::Expression(expression) => match operations(expression, section, entry)? {
                    [Some(Operation::RegisterOffset { register, offset: at, .. }), DEREF, after] => {
                        let after = match after {
                            None => 0,
                            Some(Operation::PlusConstant { value }) => i64::try_from(value).ok()?,
                            Some(_) => return None,
                        };
                        Cfa::LiesAt(BaseAndOffset::new(register, at)?, offset(after)?)
                    }
                    _ => return None,
                },
            };
            let bp = match row.register(X86_64::RBP) {
                None | Some(RegisterRule::Undefined | RegisterRule::SameValue) => FramePointer::Unchanged,
                Some(RegisterRule::Offset(from_cfa)) => FramePointer::LiesFromCfa(offset(from_cfa)?),
                Some(RegisterRule::Expression(expression)) => {
                    match operations(&expression, section, entry)? {
                        [Some(Operation::RegisterOffset { register, offset, .. }), None, None] => {
                            FramePointer::LiesAt(BaseAndOffset::new(register, offset)?)
                        }
                        _ => return None,
                    }
                }
                Some(_) => return None,
            };
            let is_below_cfa = row.register(X86_64::RA) == Some(RegisterRule::Offset(-8));
            is_below_cfa.then_some(Caller { cfa, bp })
        }
    }

    type Operations<'a> = [Option<Operation<EndianSlice<'a, RunTimeEndian>>>; 3];

    const DEREF: Option<Operation<EndianSlice<'static, RunTimeEndian>>> =
        Some(Operation::Deref { base_type: gimli::UnitOffset(0), size: 8, space: false });

    /// The operations of an expression of three at most.
    fn operations<'a>(
        expression: &UnwindExpression<usize>,
        section: &Section<'a>,
        entry: &Entry<'a>,
    ) -> Option<Operations<'a>> {
        let mut iter = expression.get(section).ok()?.operations(entry.cie().encoding());
        let mut found = [None; 3];
        for place in &mut found {
            *place = iter.next().ok()?;
        }
        iter.next().ok()?.is_none().then_some(found)
    }

    /// Returns the unusual code in these tables, sorted.
    pub fn find(tables: &Tables) -> Vec<Unusual> {
        let candidates = candidates(tables.frame);
        if candidates.is_empty() {
            return Vec::new();
        }
        let mut section = EhFrame::new(tables.frame, RunTimeEndian::Little);
        section.set_address_size(8);
        let bases = BaseAddresses::default().set_eh_frame(tables.frame_at);
        let mut context = UnwindContext::new();
        let mut found = Vec::new();
        for offset in candidates {
            let Ok(entry) = section.fde_from_offset(&bases, offset.into(), EhFrame::cie_from_offset) else {
                continue;
            };
            if entry.is_signal_trampoline() {
                found.extend(trampoline(&entry));
                continue;
            }
            let Ok(mut rows) = entry.rows(&section, &bases, &mut context) else { continue };
            while let Ok(Some(row)) = rows.next_row() {
                let (start, end) = (row.start_address(), row.end_address());
                let piece = |caller| Unusual { start, end, rule: Rule::Caller(caller) };
                found.extend(Caller::of(row, &section, &entry).map(piece));
            }
        }
        follow_kept_registers(&mut found, tables, &section, &bases);
        found.sort_unstable_by_key(|piece| piece.start);
        found
    }

    /// Adds rules at calls for code that keeps the stack pointer in a callee-saved register (`rbx` in the C
    /// library's lazy binding): during a call the callee has saved that register.
    fn follow_kept_registers(
        found: &mut Vec<Unusual>,
        tables: &Tables,
        section: &Section<'_>,
        bases: &BaseAddresses,
    ) {
        let calls: Vec<KeptInCall> = found.iter().enumerate().flat_map(KeptInCall::all).collect();
        if calls.is_empty() {
            return;
        }
        for call in calls.iter().rev() {
            let Some(from_cfa) = saved_at(call, tables, section, bases) else { continue };
            let Some(piece) = found.get_mut(call.piece) else { continue };
            let (Rule::Caller(caller), end) = (piece.rule, piece.end) else { continue };
            // In the call, its first byte left out: there the register is known, or lost.
            let [inside, after] = [call.at + 1, call.at + CALL_BYTES];
            piece.end = inside;
            let cfa = Cfa::LiesAt(
                BaseAndOffset { register: X86_64::RSP.0 as u8, offset: from_cfa },
                call.kept.offset,
            );
            let rule = Rule::Caller(Caller { cfa, ..caller });
            found.push(Unusual { start: inside, end: after, rule });
            found.push(Unusual { start: after, end, rule: Rule::Caller(caller) });
        }
    }

    /// `call` with a 32-bit displacement.
    const CALL: u8 = 0xe8;
    const CALL_BYTES: u64 = 5;
    /// Maximum length of code that keeps its stack pointer in a register.
    const MAX_PIECE_BYTES: u64 = 4 << 10;

    /// A call by code that keeps its stack pointer in a callee-saved register.
    struct KeptInCall {
        /// Index of the piece of code.
        piece: usize,
        at: u64,
        callee: u64,
        kept: BaseAndOffset,
    }

    impl KeptInCall {
        fn all((number, piece): (usize, &Unusual)) -> Vec<KeptInCall> {
            let Rule::Caller(Caller { cfa: Cfa::Is(kept), .. }) = piece.rule else { return Vec::new() };
            let is_saved =
                matches!(reg(kept.register), Some(Reg::RBX | Reg::R12 | Reg::R13 | Reg::R14 | Reg::R15));
            if !is_saved || piece.end - piece.start > MAX_PIECE_BYTES {
                return Vec::new();
            }
            let code = code(piece.start, piece.end);
            let kept_in_call = |(offset, bytes): (usize, &[u8])| {
                let (CALL, displacement) = (bytes.first().copied()?, bytes.get(1..)?.first_chunk()?) else {
                    return None;
                };
                let at = piece.start + offset as u64;
                let callee = (at + CALL_BYTES).wrapping_add_signed(i32::from_le_bytes(*displacement).into());
                Some(KeptInCall { piece: number, at, callee, kept })
            };
            code.windows(CALL_BYTES as usize).enumerate().filter_map(kept_in_call).collect()
        }
    }

    /// Offset at which the callee saves the register, from the end of its caller's stack. (A byte sequence
    /// that only looks like a call leads to no function.)
    fn saved_at(
        call: &KeptInCall,
        tables: &Tables,
        section: &Section<'_>,
        bases: &BaseAddresses,
    ) -> Option<i32> {
        let entry = tables.entry(call.callee)?;
        let entry = section.fde_from_offset(bases, entry.into(), EhFrame::cie_from_offset).ok()?;
        let mut context = UnwindContext::new();
        let mut rows = entry.rows(section, bases, &mut context).ok()?;
        while let Ok(Some(row)) = rows.next_row() {
            if let Some(RegisterRule::Offset(from_cfa)) =
                row.register(gimli::Register(call.kept.register.into()))
            {
                return i32::try_from(from_cfa).ok();
            }
        }
        None
    }

    /// Entries of functions that may be unusual. Reading all of them would take one or two milliseconds of
    /// each process's start; the bytes of most exclude them. The last entry may be followed by other data.
    fn candidates(frame: &[u8]) -> Vec<usize> {
        let number = |at: usize| {
            let bytes = frame.get(at..)?.first_chunk()?;
            Some(u32::from_le_bytes(*bytes) as usize)
        };
        let (mut found, mut signal_frames, mut at) = (Vec::new(), Vec::new(), 0);
        while let Some((length, id)) = number(at).zip(number(at + 4)).filter(|(length, _)| *length > 4) {
            let end = at + 4 + length;
            if end > frame.len() {
                break;
            }
            if id == 0 {
                // Its version, and its augmentation, a C string.
                let content = frame.get(at + 8..end).unwrap_or_default();
                let says = content.iter().skip(1).take_while(|byte| **byte != 0);
                signal_frames.extend(says.copied().any(|byte| byte == b'S').then_some(at));
            // Begin and length of the code come before its instructions.
            } else if signal_frames.contains(&(at + 4).wrapping_sub(id))
                || may_be_unusual(frame, at + 16, end)
            {
                found.push(at);
            }
            at = end;
        }
        found
    }

    /// Whether there may be instructions in `frame[from..end]` by which another register than those for the stack and the frame
    /// leads to the caller's stack, or an expression.
    fn may_be_unusual(frame: &[u8], from: usize, end: usize) -> bool {
        for at in (from..end).step_by(LANES) {
            let among = match frame.get(at..).and_then(<[u8]>::first_chunk) {
                Some(bytes) => unusual_among(bytes),
                None => {
                    let mut bytes = [0; LANES + 1];
                    bytes.iter_mut().zip(frame.iter().skip(at)).for_each(|(to, from)| *to = *from);
                    unusual_among(&bytes)
                }
            };
            if among & !(u32::MAX << (end - at).min(LANES)) != 0 {
                return true;
            }
        }
        false
    }

    /// Bytes per step of the search.
    const LANES: usize = 16;

    /// One bit for each of these bytes but the last, from the lowest on: whether it, with the next one as its
    /// operand, may be such an instruction.
    #[inline(always)]
    fn unusual_among(bytes: &[u8; LANES + 1]) -> u32 {
        use core::arch::x86_64::*;
        const STACK: u8 = X86_64::RSP.0 as u8;
        const FRAME: u8 = X86_64::RBP.0 as u8;
        // SAFETY: both are within the bytes.
        let [instruction, operand] =
            [0, 1].map(|at| unsafe { _mm_loadu_si128(bytes.as_ptr().add(at).cast()) });
        // SAFETY: every processor of this kind has these instructions.
        unsafe {
            let all = |byte: u8| _mm_set1_epi8(byte.cast_signed());
            let is = |other: gimli::DwCfa| _mm_cmpeq_epi8(instruction, all(other.0));
            let operand_is = |byte: u8| _mm_cmpeq_epi8(operand, all(byte));
            let sets_register = _mm_or_si128(
                _mm_or_si128(is(gimli::DW_CFA_def_cfa), is(gimli::DW_CFA_def_cfa_sf)),
                is(gimli::DW_CFA_def_cfa_register),
            );
            let to_other =
                _mm_andnot_si128(_mm_or_si128(operand_is(STACK), operand_is(FRAME)), sets_register);
            let is_expression = _mm_andnot_si128(operand_is(0), is(gimli::DW_CFA_def_cfa_expression));
            let is_small = _mm_cmpeq_epi8(_mm_min_epu8(operand, all(15)), operand);
            let found = _mm_and_si128(_mm_or_si128(to_other, is_expression), is_small);
            _mm_movemask_epi8(found).cast_unsigned()
        }
    }

    /// The return code of signal handlers as in the C library: other implementations may keep the registers
    /// elsewhere.
    fn trampoline(entry: &Entry<'_>) -> Option<Unusual> {
        /// `mov $15, %rax; syscall`.
        const RETURN: [u8; 9] = [0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05];
        // It begins a byte before the code, at which the code's address is looked up.
        let (start, end) = (entry.initial_address(), entry.end_address());
        let code = start.checked_add(1)?;
        let words = [read_anywhere(code).ok()?, read_anywhere(code.checked_add(8)?).ok()?];
        let bytes = words.map(u64::to_le_bytes);
        let is_return = bytes.as_flattened().starts_with(&RETURN);
        is_return.then_some(Unusual { start, end, rule: Rule::Interrupted })
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[test]
        fn unusual_frames_are_found_at_any_place() {
            let is_unusual = |instruction: u8, operand: u8| match gimli::DwCfa(instruction) {
                gimli::DW_CFA_def_cfa_expression => (1..16).contains(&operand),
                gimli::DW_CFA_def_cfa | gimli::DW_CFA_def_cfa_sf | gimli::DW_CFA_def_cfa_register => {
                    operand < 16 && !matches!(gimli::Register(operand.into()), X86_64::RSP | X86_64::RBP)
                }
                _ => false,
            };
            for pair in 0..=u16::MAX {
                let [instruction, operand] = pair.to_le_bytes();
                // An instruction 0 is none of them.
                let mut frame = [0; 70];
                let at = 20 + pair as usize % 30;
                frame[at..at + 2].copy_from_slice(&[instruction, operand]);
                let as_instruction = is_unusual(instruction, operand) || is_unusual(operand, 0);
                assert_eq!(may_be_unusual(&frame, 16, 52), as_instruction, "{instruction} {operand} at {at}");
                assert!(!may_be_unusual(&frame, at + 2, 70) && !may_be_unusual(&frame, 0, at));
                assert_eq!(may_be_unusual(&frame[..at + 2], 16, at + 2), as_instruction);
            }
        }
    }
}
