//! The code of the process: its modules, and the callers of functions in them.

use crate::sample_ring::Registers;
use crate::target::{Mapping, Target};
use framehop::{
    CacheNative, ExplicitModuleSectionInfo, FrameAddress, MayAllocateDuringUnwind, Module, Unwinder,
    UnwinderNative,
};
use object::{Object, ObjectSection, ObjectSegment, ReadCache, ReadRef};
use rustc_hash::FxHashSet;
use std::ops::Range;

/// Longer paths are cut.
const MAX_FRAMES: usize = 512;
/// Larger sections are not read: without code, callers at the begin or end of a function may be wrong.
const MAX_SECTION_BYTES: u64 = 256 << 20;
const MAX_TEXT_BYTES: u64 = 64 << 20;

/// Name of the code that the kernel maps into each process.
const VDSO: &str = "linux-vdso.so.1";

/// A file in the memory of the process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoadedModule {
    /// First address.
    pub start: u64,
    /// First address behind it.
    pub end: u64,
    /// Address in memory less address in the file.
    pub bias: u64,
    /// In hexadecimal; empty if the file has none or cannot be read.
    pub build_id: String,
    /// As the process names it.
    pub path: String,
}

/// A call path, innermost first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Path {
    /// The instruction, then return addresses.
    pub addresses: Vec<u64>,
    /// Whether it reaches the first function of the thread.
    pub reached_root: bool,
    /// Whether it has more functions than are kept.
    pub is_cut: bool,
}

/// Modules and unwind tables that are known so far.
#[derive(Default)]
pub struct Code {
    unwinder: UnwinderNative<Vec<u8>, MayAllocateDuringUnwind>,
    cache: CacheNative<MayAllocateDuringUnwind>,
    modules: Vec<LoadedModule>,
    /// Addresses in no known module for which the mappings have been read.
    unknown: FxHashSet<u64>,
}

impl Code {
    /// Looks for modules that were loaded since the last call, and returns them.
    pub fn update(&mut self, target: &Target) -> Vec<LoadedModule> {
        let mut new = Vec::new();
        for (range, mappings) in files(&target.mappings()) {
            let path = name_of_file(&mappings[0].path);
            let is_known = |module: &LoadedModule| {
                (module.start, module.end, &*module.path) == (range.start, range.end, path)
            };
            if self.modules.iter().any(is_known) {
                continue;
            }
            // What was there before has been unloaded.
            let replaced = |module: &LoadedModule| module.start < range.end && range.start < module.end;
            for module in self.modules.iter().filter(|module| replaced(module)) {
                self.unwinder.remove_module(module.start);
            }
            self.modules.retain(|module| !replaced(module));
            let module = self.load(target, range, &mappings);
            self.modules.push(module.clone());
            new.push(module);
        }
        self.unknown.clear();
        new
    }

    /// Whether an address is in no known module, and was not asked for since the last update.
    pub fn is_new(&mut self, address: u64) -> bool {
        !self.modules.iter().any(|module| (module.start..module.end).contains(&address))
            && self.unknown.insert(address)
    }

    fn load(&mut self, target: &Target, range: Range<u64>, mappings: &[Mapping]) -> LoadedModule {
        let path = name_of_file(&mappings[0].path).to_owned();
        let mut module = LoadedModule {
            start: range.start,
            end: range.end,
            bias: range.start,
            build_id: String::new(),
            path,
        };
        if module.path == VDSO {
            let mut image = vec![0; (range.end - range.start).min(1 << 20) as usize];
            let length = target.read(range.start, &mut image);
            self.load_from(&image[..length], mappings, &mut module);
        } else if let Ok(file) = target.open_file(&module.path) {
            let cache = ReadCache::new(file);
            self.load_from(&cache, mappings, &mut module);
        }
        module
    }

    /// Reads a module's tables from its file, and completes the module.
    fn load_from<'data>(
        &mut self,
        data: impl ReadRef<'data>,
        mappings: &[Mapping],
        module: &mut LoadedModule,
    ) {
        let Ok(file) = object::File::parse(data) else { return };
        if let Some(bias) = bias(&file, mappings) {
            module.bias = bias;
        }
        let build_id = file.build_id().ok().flatten().unwrap_or_default();
        module.build_id = build_id.iter().map(|byte| format!("{byte:02x}")).collect();
        let range = |name| {
            let section = file.section_by_name(name)?;
            Some(section.address()..section.address().checked_add(section.size())?)
        };
        let bytes = |name, most| {
            let section = file.section_by_name(name).filter(|section| section.size() <= most)?;
            section.uncompressed_data().ok().map(|data| data.into_owned())
        };
        let sections = ExplicitModuleSectionInfo {
            text_svma: range(".text"),
            text: bytes(".text", MAX_TEXT_BYTES),
            got_svma: range(".got"),
            eh_frame_svma: range(".eh_frame"),
            eh_frame: bytes(".eh_frame", MAX_SECTION_BYTES),
            eh_frame_hdr_svma: range(".eh_frame_hdr"),
            eh_frame_hdr: bytes(".eh_frame_hdr", MAX_SECTION_BYTES),
            debug_frame: bytes(".debug_frame", MAX_SECTION_BYTES),
            ..ExplicitModuleSectionInfo::default()
        };
        self.unwinder.add_module(Module::new(
            module.path.clone(),
            module.start..module.end,
            module.bias,
            sections,
        ));
    }

    /// The call path of a thread with these registers. `read` has a word of its stack.
    pub fn path(&mut self, registers: Registers, mut read: impl FnMut(u64) -> Option<u64>) -> Path {
        let Registers { address, stack, frame, link } = registers;
        #[cfg(target_arch = "x86_64")]
        let (start, _) = (framehop::x86_64::UnwindRegsX86_64::new(address, stack, frame), link);
        #[cfg(target_arch = "aarch64")]
        let start = framehop::aarch64::UnwindRegsAarch64::new(link, stack, frame);
        let mut read = |address| read(address).ok_or(());
        let mut frames = self.unwinder.iter_frames(address, start, &mut self.cache, &mut read);
        let mut path = Path::default();
        loop {
            match frames.next() {
                Ok(Some(FrameAddress::InstructionPointer(address))) => path.addresses.push(address),
                Ok(Some(FrameAddress::ReturnAddress(address))) => path.addresses.push(address.get()),
                Ok(None) => {
                    path.reached_root = true;
                    return path;
                }
                Err(_) => return path,
            }
            if path.addresses.len() == MAX_FRAMES {
                path.is_cut = true;
                return path;
            }
        }
    }
}

/// Address in memory less address in the file: by the segment that the first mapping of the file shows.
fn bias<'data>(file: &impl Object<'data>, mappings: &[Mapping]) -> Option<u64> {
    mappings.iter().find_map(|mapping| {
        let holds = |segment: &_| {
            let (offset, length) = ObjectSegment::file_range(segment);
            (offset & !0xfff) <= mapping.offset && mapping.offset < offset.saturating_add(length)
        };
        let segment = file.segments().find(holds)?;
        let (offset, _) = segment.file_range();
        let in_file = segment.address().wrapping_add(mapping.offset).wrapping_sub(offset);
        Some(mapping.start.wrapping_sub(in_file))
    })
}

fn name_of_file(mapped: &str) -> &str {
    if mapped == "[vdso]" { VDSO } else { mapped }
}

/// Mapped files with code, each with its whole range.
fn files(mappings: &[Mapping]) -> Vec<(Range<u64>, Vec<Mapping>)> {
    let mut found: Vec<Vec<Mapping>> = Vec::new();
    for mapping in mappings {
        match found.last_mut() {
            // A file that is mapped a second time begins anew.
            Some(file) if file[0].path == mapping.path && mapping.offset >= file[file.len() - 1].offset => {
                file.push(mapping.clone());
            }
            _ => found.push(vec![mapping.clone()]),
        }
    }
    let has_code = |file: &Vec<Mapping>| file.iter().any(|mapping| mapping.is_executable);
    found.into_iter().filter(has_code).map(|file| (file[0].start..file[file.len() - 1].end, file)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample_ring::{SampleRing, UNKNOWN_FRAME};
    use crate::target::InSystemCall;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
    use std::sync::mpsc::{Receiver, channel};

    #[inline(never)]
    fn blocked_here(gate: &Receiver<()>) {
        let _ = gate.recv();
        std::hint::black_box(gate);
    }

    /// The call that a thread is blocked in when its `is_there` is set.
    fn blocked_in(target: &Target, tid: i32, is_there: &AtomicBool) -> InSystemCall {
        loop {
            match target.system_call(tid) {
                Some(call) if call.number == libc::SYS_futex && is_there.load(Relaxed) => return call,
                _ if target.threads().contains(&tid) => std::thread::yield_now(),
                _ => panic!("the thread has ended"),
            }
        }
    }

    #[test]
    fn a_path_reaches_its_root_only_through_all_functions() {
        let (open, gate) = channel();
        let (begin, begun) = channel::<()>();
        let (tell, told) = channel();
        let is_there = Arc::new(AtomicBool::new(false));
        let own = Arc::clone(&is_there);
        let thread = std::thread::spawn(move || {
            // SAFETY: no preconditions.
            let _ = tell.send(unsafe { libc::syscall(libc::SYS_gettid) } as i32);
            let _ = begun.recv();
            own.store(true, Relaxed);
            blocked_here(&gate);
        });
        let tid = told.recv().unwrap();
        let mut leaving = SampleRing::open_leaving(tid);
        begin.send(()).unwrap();
        let target = Target::open(std::process::id().cast_signed()).unwrap();
        let mut code = Code::default();
        assert!(code.update(&target).iter().any(|module| module.path.contains("taskscope_record_attach")));
        assert_eq!(code.update(&target), [], "nothing new");
        let call = blocked_in(&target, tid, &is_there);
        let read = |address| {
            let mut word = [0; 8];
            (target.read(address, &mut word) == 8).then(|| u64::from_le_bytes(word))
        };
        let here = blocked_here as fn(&Receiver<()>) as usize as u64;
        let is_here = |address: &u64| (here..here + 400).contains(address);
        let without_frame =
            Registers { address: call.address, stack: call.stack, frame: UNKNOWN_FRAME, link: 0 };
        let path = code.path(without_frame, read);
        assert_eq!(path.reached_root, path.addresses.iter().any(is_here), "{path:x?}, {here:x}");
        match &mut leaving {
            Err(why) => println!("skipped: switches of threads are not shown here ({why})"),
            Ok(ring) => {
                let mut last = Registers::default();
                ring.take(|sample| last = sample.registers);
                assert_eq!((last.address, last.stack), (call.address, call.stack));
                let path = code.path(last, read);
                assert!(path.reached_root && path.addresses.iter().any(is_here), "{path:x?}, {here:x}");
            }
        }
        open.send(()).unwrap();
        thread.join().unwrap();
    }
}
