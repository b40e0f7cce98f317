//! Copies files of modules that may be gone when names are looked up: removed or replaced ones, those in no
//! directory (`memfd_create`), and those in directories for temporary files.
//!
//! A file is copied to `modules/` in the trace directory under its build id, once per recording. A removed
//! file is copied through its mapping, which needs privileges; otherwise its memory image is stored: headers,
//! exported symbols, code and unwind tables. Done when a module is first met, never in a handler.

use core::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::ffi::CString;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::sync::Mutex;

use taskscope_files::{NewFile, create_directory_below};
use taskscope_record::{limits, process};

use crate::sampler::modules::{self, MappedModule};

/// Directory in the trace. Readers have the same name in `taskscope_symbol::KeptModules`.
const DIRECTORY: &str = "modules";
/// Larger files are not kept whole.
const MAX_FILE_BYTES: u64 = 64 << 20;
/// Maximum size of all copies of a process.
const MAX_BYTES: u64 = 256 << 20;
/// Bytes of an ELF file that contain its headers: its first page.
const PAGE_BYTES: usize = 4096;
/// Directories with short-lived files.
const TEMPORARY: [&[u8]; 6] = [b"/tmp/", b"/var/tmp/", b"/dev/", b"/proc/", b"/run/", b"/memfd:"];

static KEPT_BYTES: AtomicU64 = AtomicU64::new(0);

/// Keeps a module's file, if it may be gone later.
pub fn keep(module: &MappedModule) {
    let is_own = module.contains(keep as fn(&MappedModule) as usize as u64) && !module.is_program;
    if !module.path.to_bytes().contains(&b'/') || is_own {
        return;
    }
    if process::place().is_some() && is_new(module) {
        // Without the file its names are missing, which readers report.
        let _ = try_keep(module);
    }
}

/// Writes a list of the executable memory without a file, in the form of perf's maps: start and size in
/// hexadecimal, and a name. Code generated at run time is there, unless it was freed.
pub fn keep_generated_code() {
    let Some((trace, _)) = process::place() else { return };
    let Ok(maps) = std::fs::read_to_string("/proc/self/maps") else { return };
    let modules = modules::all();
    let list: String = maps.lines().filter_map(|line| generated_code(line, &modules)).collect();
    if list.is_empty() {
        return;
    }
    let place = trace.join(DIRECTORY).join(format!("generated-{}.map", std::process::id()));
    // Without the list, such code is at an address in no known module.
    let _ = create_directory_below(&trace, DIRECTORY).and_then(|_| {
        store(&place, list.len() as u64, |mut part| io::Write::write_all(&mut part, list.as_bytes()))
    });
}

/// The entry for a line of `/proc/self/maps` that has generated code.
fn generated_code(line: &str, modules: &[MappedModule]) -> Option<String> {
    let mut fields = line.split_ascii_whitespace();
    let (start, end) = fields.next()?.split_once('-')?;
    let [start, end] = [start, end].map(|address| u64::from_str_radix(address, 16).ok());
    let (start, end) = (start?, end?);
    let is_executable = fields.next()?.as_bytes().get(2) == Some(&b'x');
    let name = fields.nth(3).unwrap_or("[anonymous]");
    let has_no_file = ["[anon", "/memfd:", "/dev/zero", "/SYSV"].iter().any(|begin| name.starts_with(begin));
    let is_loaded = modules.iter().any(|module| module.start < end && start < module.end);
    (is_executable && has_no_file && !is_loaded).then(|| format!("{start:x} {:x} {name}\n", end - start))
}

/// Whether a module has not been checked before.
fn is_new(module: &MappedModule) -> bool {
    static SEEN: Mutex<Vec<(u64, CString, CString)>> = Mutex::new(Vec::new());
    // A forked child may find it locked for ever; its parent has stored the modules.
    let Ok(mut seen) = SEEN.try_lock() else { return false };
    let same = |(start, id, path): &(u64, CString, CString)| {
        (*start, id, path) == (module.start, &module.build_id, &module.path)
    };
    if seen.iter().any(same) {
        return false;
    }
    seen.push((module.start, module.build_id.clone(), module.path.clone()));
    true
}

fn try_keep(module: &MappedModule) -> io::Result<()> {
    let Ok(id) = module.build_id.to_str() else { return Ok(()) };
    if id.is_empty() || id.len() > 128 {
        return Ok(());
    }
    let memory = File::open("/proc/self/mem")?;
    let mut page = [0; PAGE_BYTES];
    let page_bytes = memory.read_at(&mut page, module.start & !0xfff)?;
    let page = page.get(..page_bytes).unwrap_or_default();
    let path = Path::new(std::ffi::OsStr::from_bytes(module.path.to_bytes()));
    let own = open_if(path, |file| begins_with(file, page));
    if own.is_some() && !is_temporary(module) {
        return Ok(());
    }
    let Some((trace, _)) = process::place() else { return Ok(()) };
    let directory = trace.join(DIRECTORY);
    let place = directory.join(id);
    if place.symlink_metadata().is_ok() {
        return Ok(());
    }
    let source = own.or_else(|| open_removed(module, page));
    let bytes = source.as_ref().and_then(|file| file.metadata().ok()).map_or(u64::MAX, |found| found.len());
    create_directory_below(&trace, DIRECTORY)?;
    match source {
        Some(mut file) if bytes <= MAX_FILE_BYTES => {
            store(&place, bytes, |part| io::copy(&mut file, part).map(drop))
        }
        _ => {
            let image = image(module, &memory, page).ok_or(io::ErrorKind::InvalidData)?;
            store(&place, image.len() as u64, |mut part| io::Write::write_all(&mut part, &image))
        }
    }
}

fn is_temporary(module: &MappedModule) -> bool {
    let path = module.path.to_bytes();
    let temporary = std::env::var_os("TMPDIR").filter(|directory| directory.len() > 1);
    TEMPORARY.iter().any(|directory| path.starts_with(directory))
        || temporary.is_some_and(|directory| path.starts_with(directory.as_bytes()))
}

/// Opens a regular file that satisfies `is_it`. Never waits for another process.
fn open_if(path: &Path, is_it: impl Fn(&File) -> bool) -> Option<File> {
    let file =
        OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY).open(path).ok()?;
    (file.metadata().is_ok_and(|found| found.is_file()) && is_it(&file)).then_some(file)
}

fn begins_with(file: &File, page: &[u8]) -> bool {
    let mut begin = [0; PAGE_BYTES];
    let Some(begin) = begin.get_mut(..page.len()) else { return false };
    let Ok(read) = file.read_at(begin, 0) else { return false };
    // The memory behind the end of a file is zero.
    begin.get(..read) == page.get(..read) && page.get(read..).is_some_and(|rest| rest.iter().all(|b| *b == 0))
}

/// Opens a removed file through `/proc`: the program itself, or, with privileges, any mapping.
fn open_removed(module: &MappedModule, page: &[u8]) -> Option<File> {
    let is_it = |file: &File| begins_with(file, page);
    if module.is_program {
        return open_if(Path::new("/proc/self/exe"), is_it);
    }
    let maps = std::fs::read_to_string("/proc/self/maps").ok()?;
    let begin = format!("{:x}-", module.start & !0xfff);
    let range = maps.lines().find(|line| line.starts_with(&begin))?.split(' ').next()?;
    open_if(&Path::new("/proc/self/map_files").join(range), is_it)
}

/// Writes a file whole or not at all.
fn store(place: &Path, bytes: u64, write: impl FnOnce(&mut NewFile) -> io::Result<()>) -> io::Result<()> {
    limits::check_file_size(bytes)?;
    if KEPT_BYTES.fetch_add(bytes, Relaxed).saturating_add(bytes) > MAX_BYTES {
        KEPT_BYTES.fetch_sub(bytes, Relaxed);
        return Err(io::ErrorKind::FileTooLarge.into());
    }
    let mut file = NewFile::create(place)?;
    write(&mut file)?;
    file.commit()
}

/// Builds a file image from memory, at the file's offsets: all read-only parts, and the dynamic section as it
/// was in the file. It has no section table.
fn image(module: &MappedModule, memory: &File, page: &[u8]) -> Option<Vec<u8>> {
    let word = |at: usize| Some(u64::from_ne_bytes(*page.get(at..)?.first_chunk()?));
    let count = usize::from(u16::from_ne_bytes(*page.get(0x38..)?.first_chunk()?));
    let table = usize::try_from(word(0x20)?).ok()?;
    let mut image: Vec<u8> = Vec::new();
    for number in 0..count {
        let at = table.checked_add(number * size_of::<libc::Elf64_Phdr>())?;
        let (kind, flags) = (word(at)? as u32, (word(at)? >> 32) as u32);
        let (offset, address, bytes) = (word(at + 8)?, word(at + 16)?, word(at + 32)?);
        if kind != libc::PT_DYNAMIC && (kind != libc::PT_LOAD || flags & libc::PF_W != 0) {
            continue;
        }
        let end = offset.checked_add(bytes).filter(|end| *end <= MAX_FILE_BYTES)?;
        let (start, end) = (offset as usize, end as usize);
        if image.len() < end {
            image.try_reserve(end - image.len()).ok()?;
            image.resize(end, 0);
        }
        let part = image.get_mut(start..end)?;
        memory.read_exact_at(part, module.bias.wrapping_add(address)).ok()?;
        if kind == libc::PT_DYNAMIC {
            unrelocate(part, module);
        }
    }
    // Offset, number and names of sections.
    for range in [0x28..0x30, 0x3c..0x40] {
        image.get_mut(range)?.fill(0);
    }
    Some(image)
}

/// Subtracts the load bias that the C library's loader added to the addresses in a dynamic section.
fn unrelocate(dynamic: &mut [u8], module: &MappedModule) {
    for value in dynamic.as_chunks_mut::<8>().0.iter_mut().skip(1).step_by(2) {
        let address = u64::from_ne_bytes(*value);
        if module.contains(address) {
            *value = address.wrapping_sub(module.bias).to_ne_bytes();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_executable_memory_without_a_file_is_generated_code() {
        let entry = |line| generated_code(line, &[]);
        let expected = |text: &str| Some(format!("{text}\n"));
        assert_eq!(entry("1000-3000 rwxp 00000000 00:00 0 "), expected("1000 2000 [anonymous]"));
        assert_eq!(
            entry("1000-3000 r-xs 00000000 00:01 7 /memfd:jit (deleted)"),
            expected("1000 2000 /memfd:jit")
        );
        for line in [
            "1000-3000 rw-p 00000000 00:00 0 ",
            "1000-3000 r-xp 00000000 08:01 7 /usr/lib/libc.so.6",
            "1000-3000 r-xp 00000000 00:00 0 [vsyscall]",
            "3000 r-xp 00000000 00:00 0",
            "",
        ] {
            assert_eq!(entry(line), None, "{line}");
        }
    }
}
