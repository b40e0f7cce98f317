//! An OpenMP runtime that is linked into the program: its part of the program's code, by the names of its
//! functions. Unknown for a program without names.

use core::sync::atomic::{AtomicPtr, Ordering::*};
use std::fs::File;
use std::os::unix::fs::FileExt;

/// The runtime's functions: start and end, sorted.
static RANGES: AtomicPtr<Vec<(u64, u64)>> = AtomicPtr::new(core::ptr::null_mut());

/// Finds the runtime's functions in the program, which is loaded with this bias. Returns their range.
pub fn look(bias: u64) -> Option<(u64, u64)> {
    let ranges = functions_of("/proc/self/exe", bias)?;
    let all = (ranges.first()?.0, ranges.iter().map(|range| range.1).max()?);
    RANGES.store(Box::into_raw(Box::new(ranges)), Release);
    Some(all)
}

/// Whether anything was found. For handlers too.
pub fn is_known() -> bool {
    !RANGES.load(Relaxed).is_null()
}

/// Whether an address is in one of the runtime's functions. For handlers too.
pub fn contains(address: u64) -> bool {
    // SAFETY: null, or a leaked box.
    let Some(ranges) = (unsafe { RANGES.load(Acquire).as_ref() }) else { return false };
    let after = ranges.partition_point(|(start, _)| *start <= address);
    after.checked_sub(1).and_then(|at| ranges.get(at)).is_some_and(|(_, end)| address < *end)
}

fn functions_of(file: &str, bias: u64) -> Option<Vec<(u64, u64)>> {
    let (symbols, names) = symbols_of(&File::open(file).ok()?)?;
    let function = |symbol: &[u8; SYMBOL_BYTES]| {
        const FUNCTION: u8 = 2;
        let (start, bytes) = (u64_at(symbol, 8)?, u64_at(symbol, 16)?);
        let name = names.get(u32_at(symbol, 0)? as usize..)?;
        let name = name.get(..name.iter().position(|byte| *byte == 0)?)?;
        let kind = symbol.get(4)? & 15;
        (kind == FUNCTION && start != 0 && is_runtimes(name))
            .then_some((start.wrapping_add(bias), start.wrapping_add(bias).wrapping_add(bytes)))
    };
    let mut found: Vec<(u64, u64)> =
        symbols.as_chunks::<SYMBOL_BYTES>().0.iter().filter_map(function).collect();
    found.sort_unstable();
    found.dedup_by_key(|(start, _)| *start);
    Some(found)
}

/// Whether a function of this name belongs to LLVM's runtime or Intel's.
fn is_runtimes(name: &[u8]) -> bool {
    const OWN: [&str; 8] = ["__kmp", "kmp", "__ompt_", "ompt_", "ompc_", "ompx_", "GOMP_", "__GOMP_"];
    /// Suffixes of the API functions. A program may have functions of its own that begin with `omp_`.
    const CALLED: [&str; 10] =
        ["set_", "unset_", "get_", "test_", "init_", "destroy_", "in_", "is_", "control_", "fulfill_"];
    let starts = |text: &[u8], with: &[&str]| with.iter().any(|with| text.starts_with(with.as_bytes()));
    let holds = |what: &[u8]| name.windows(what.len()).any(|part| part == what);
    starts(name, &OWN)
        || name.strip_prefix(b"omp_").is_some_and(|rest| starts(rest, &CALLED))
        || name.starts_with(b"_Z") && (holds(b"__kmp") || holds(b"kmp_flag") || holds(b"__ompt"))
}

const SYMBOL_BYTES: usize = 24;

/// The table of symbols of a file, and their names.
fn symbols_of(file: &File) -> Option<(Vec<u8>, Vec<u8>)> {
    const SYMBOL_TABLE: u32 = 2;
    const SECTION_BYTES: usize = 64;
    let part = |at: u64, bytes: u64| {
        let mut content = Vec::new();
        content.try_reserve_exact(usize::try_from(bytes).ok()?).ok()?;
        content.resize(bytes as usize, 0);
        file.read_exact_at(&mut content, at).ok()?;
        Some(content)
    };
    let head = part(0, 64)?;
    let count = u64::from(u16::from_le_bytes(head.get(60..62)?.try_into().ok()?));
    let table = part(u64_at(&head, 40)?, count * SECTION_BYTES as u64)?;
    let sections = table.as_chunks::<SECTION_BYTES>().0;
    let symbols = sections.iter().find(|section| u32_at(&section[..], 4) == Some(SYMBOL_TABLE))?;
    let names = sections.get(u32_at(symbols, 40)? as usize)?;
    let content = |section: &[u8]| part(u64_at(section, 24)?, u64_at(section, 32)?);
    Some((content(symbols)?, content(names)?))
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(bytes.get(at..at + 8)?.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sampler::code_map::{CodeMap, Owner};

    #[test]
    fn the_runtimes_functions_are_known_by_their_names() {
        let own = [
            "__kmpc_fork_call",
            "__kmp_invoke_microtask",
            "omp_set_lock",
            "GOMP_parallel",
            "ompt_start_tool",
        ];
        let inlined = ["_ZL20__kmp_launch_workerPv", "_ZN11kmp_flag_64ILb0ELb1EE4waitEP8kmp_infoi"];
        let programs =
            ["main", "main.omp_outlined", ".omp_task_entry.", "omp_solve", "_Z4workP10omp_lock_t", "spin"];
        assert!(own.iter().chain(&inlined).all(|name| is_runtimes(name.as_bytes())));
        assert!(!programs.iter().any(|name| is_runtimes(name.as_bytes())));
    }

    /// Under a name of the runtime's.
    #[unsafe(no_mangle)]
    extern "C" fn __kmp_test_of_names() -> u32 {
        std::process::id()
    }

    #[test]
    fn they_are_found_in_the_program() {
        let own = __kmp_test_of_names as extern "C" fn() -> u32 as usize as u64;
        let bias = crate::sampler::modules::find(own).unwrap().bias;
        let (start, end) = look(bias).unwrap();
        assert!((start..end).contains(&own) && contains(own), "{start:x} {own:x} {end:x}");
        assert!(!contains(they_are_found_in_the_program as fn() as usize as u64));
        assert!(functions_of("/dev/null", 0).is_none());
        let map = CodeMap::up_to_date();
        assert_eq!(map.owner(own), Owner::Runtime);
        assert_eq!(map.owner(they_are_found_in_the_program as fn() as usize as u64), Owner::Program);
    }
}
