//! The loader's view of an ELF file: needed libraries, search paths, imported and exported symbols.

use object::read::elf::{Dyn, ElfFile, FileHeader, ProgramHeader, SectionHeader, Sym};
use object::{Endianness, Object, ObjectSection, ObjectSymbol, ReadCache, ReadRef, StringTable};
use std::collections::BTreeSet;
use std::fs::File;
use std::path::Path;

/// The dynamic part of one ELF file. Names that are not UTF-8 are read with replacement characters.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Dynamic {
    /// 64-bit rather than 32-bit.
    pub is_64_bit: bool,
    /// The machine that the code is for (`e_machine`).
    pub machine: u16,
    /// The loader that is to run it (`PT_INTERP`).
    pub interpreter: Option<String>,
    /// `DT_NEEDED`, in order.
    pub needed: Vec<String>,
    /// `DT_RPATH`, split at colons, as written.
    pub rpath: Vec<String>,
    /// `DT_RUNPATH`, split at colons, as written.
    pub runpath: Vec<String>,
    /// Functions and data that it wants from other objects, without versions.
    pub imports: BTreeSet<String>,
    /// Functions and data that it offers to other objects, without versions.
    pub exports: BTreeSet<String>,
}

/// Reads a file; `None` when it is not an ELF file that a loader could use (a script, for instance).
pub fn read(path: &Path) -> Option<Dynamic> {
    let cache = ReadCache::new(File::open(path).ok()?);
    match object::FileKind::parse(&cache).ok()? {
        object::FileKind::Elf64 => parse::<object::elf::FileHeader64<Endianness>, _>(&cache),
        object::FileKind::Elf32 => parse::<object::elf::FileHeader32<Endianness>, _>(&cache),
        _ => None,
    }
}

fn parse<'data, Header: FileHeader<Endian = Endianness>, R: ReadRef<'data>>(data: R) -> Option<Dynamic> {
    let file = ElfFile::<Header, R>::parse(data).ok()?;
    let (header, endian) = (file.elf_header(), file.endian());
    let mut dynamic =
        Dynamic { is_64_bit: header.is_type_64(), machine: header.e_machine(endian).0, ..Dynamic::default() };
    // A statically linked program has no such section, and nothing to say here.
    if let Some((entries, link)) = file.elf_section_table().dynamic(endian, data).ok()? {
        let strings = file.elf_section_table().strings(endian, data, link).ok()?;
        for entry in entries {
            let text =
                || entry.string(endian, strings).ok().map(|name| String::from_utf8_lossy(name).into_owned());
            match entry.tag(endian) {
                object::elf::DT_NEEDED => dynamic.needed.extend(text()),
                object::elf::DT_RPATH => dynamic.rpath.extend(text().iter().flat_map(|paths| split(paths))),
                object::elf::DT_RUNPATH => {
                    dynamic.runpath.extend(text().iter().flat_map(|paths| split(paths)))
                }
                _ => {}
            }
        }
    }
    let mut headers = file.elf_program_headers().iter();
    let interpreter = headers.find_map(|header| header.interpreter(endian, data).ok().flatten());
    dynamic.interpreter = interpreter.map(|path| String::from_utf8_lossy(path).into_owned());
    let symbols = file.elf_dynamic_symbol_table();
    // At once: each name by itself would be a call of the system.
    let strings = file
        .elf_section_table()
        .section(symbols.string_section())
        .and_then(|section| section.data(endian, data));
    let strings = strings.unwrap_or_default();
    let strings = StringTable::new(strings, 0, strings.len() as u64);
    for symbol in symbols.iter() {
        let Ok(name) = symbol.name(endian, strings) else { continue };
        let names = if symbol.is_undefined(endian) { &mut dynamic.imports } else { &mut dynamic.exports };
        names.insert(String::from_utf8_lossy(name).into_owned());
    }
    Some(dynamic)
}

/// Whether an OpenMP runtime that loads tools is linked into a program: by the entry of every region, or, in a program
/// without names, by its call of a tool's entry.
pub fn holds_openmp_runtime(path: &Path) -> bool {
    let Ok(file) = File::open(path) else { return false };
    let cache = ReadCache::new(file);
    let Ok(file) = object::File::parse(&cache) else { return false };
    defines(&file, "__kmpc_fork_call")
        || file.section_by_name(".symtab").is_none() && holds(&file, ".rodata", "ompt_start_tool\0")
}

/// [`defines`] of the file at a path.
pub fn file_defines(path: &Path, function: &str) -> bool {
    let Ok(file) = File::open(path) else { return false };
    let cache = ReadCache::new(file);
    object::File::parse(&cache).is_ok_and(|file| defines(&file, function))
}

/// Whether a file defines a function of this name, for itself alone or for others, as far as it was not stripped.
fn defines<'data>(file: &object::File<'data, impl ReadRef<'data>>, function: &str) -> bool {
    // Large programs have hundreds of thousands of symbols, each found apart: first whether the name is there at all.
    if ![".strtab", ".dynstr"].into_iter().any(|section| holds(file, section, function)) {
        return false;
    }
    let mut symbols = file.symbols().chain(file.dynamic_symbols());
    symbols.any(|symbol| symbol.is_definition() && symbol.name() == Ok(function))
}

/// Keys of the origins of a program's or library's own code and notes (`super::known`): the compiler, linked libraries,
/// calls that start threads.
pub fn origins(path: &Path) -> Vec<&'static str> {
    let Ok(file) = File::open(path) else { return Vec::new() };
    let cache = ReadCache::new(file);
    let Ok(file) = object::File::parse(&cache) else { return Vec::new() };
    let mut origins = Vec::new();
    let has_section = |name| file.section_by_name(name).is_some();
    if has_section(".go.buildinfo") || has_section(".note.go.buildid") {
        origins.push("go");
    }
    // Rust's panics name their files, with or without symbols.
    let is_rust = holds(&file, ".comment", "rustc version")
        || holds(&file, ".rodata", "/rustc/") && holds(&file, ".rodata", "/library/std/src/");
    if is_rust {
        origins.push("rust");
        let crates = [("rayon", ["rayon-core", "/rayon/src/"]), ("tokio", ["/tokio-1.", "/tokio/src/"])];
        let is_in = |texts: [&str; 2]| texts.iter().any(|text| holds(&file, ".rodata", text));
        origins.extend(crates.into_iter().filter(|(_, texts)| is_in(*texts)).map(|(key, _)| key));
    }
    let calls = |function: &str| {
        file.dynamic_symbols().any(|symbol| {
            symbol.is_undefined() && symbol.name().is_ok_and(|name| name.split('@').next() == Some(function))
        })
    };
    let starts_cxx_thread = |symbol: object::Symbol<'_, '_, _>| {
        symbol.is_undefined()
            && symbol.name().is_ok_and(|name| name.starts_with("_ZNSt6thread15_M_start_thread"))
    };
    if file.dynamic_symbols().any(starts_cxx_thread) {
        origins.push("cxx-threads");
    } else if calls("pthread_create") || calls("thrd_create") || defines(&file, "pthread_create") {
        origins.push("threads");
    }
    if holds(&file, ".strtab", "_ZN6Kokkos10initialize") || holds(&file, ".dynstr", "_ZN6Kokkos10initialize")
    {
        origins.push("kokkos");
    }
    origins
}

fn holds<'data>(file: &object::File<'data, impl ReadRef<'data>>, section: &str, text: &str) -> bool {
    let content = file.section_by_name(section).and_then(|section| section.data().ok());
    memchr::memmem::find(content.unwrap_or_default(), text.as_bytes()).is_some()
}

fn split(paths: &str) -> impl Iterator<Item = String> + '_ {
    paths.split(':').filter(|path| !path.is_empty()).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dynamic_program_needs_its_c_library() {
        let own = read(&std::env::current_exe().unwrap()).unwrap();
        assert!(own.needed.iter().any(|name| name.starts_with("libc.so")), "{:?}", own.needed);
        assert!(own.imports.contains("malloc"), "{:?}", own.imports);
        assert_eq!(own.is_64_bit, cfg!(target_pointer_width = "64"));
    }

    #[test]
    fn local_symbols_are_found() {
        let cache = ReadCache::new(File::open(std::env::current_exe().unwrap()).unwrap());
        let own = object::File::parse(&cache).unwrap();
        assert!(defines(&own, "main") && !defines(&own, "malloc"));
        assert!(!holds_openmp_runtime(Path::new("/nonexistent")));
    }

    #[test]
    fn origins_of_a_rust_program_are_found() {
        // This test program has rayon linked in.
        let own = origins(&std::env::current_exe().unwrap());
        assert!(["rust", "rayon", "threads"].iter().all(|key| own.contains(key)), "{own:?}");
        assert_eq!(origins(Path::new("/nonexistent")), [""; 0]);
    }

    #[test]
    fn other_files_are_not_elf() {
        let here = tempfile::tempdir().unwrap();
        for (name, content) in
            [("empty", &b""[..]), ("script", b"#!/bin/sh\n"), ("torn", b"\x7fELF\x02\x01\x01")]
        {
            let path = here.path().join(name);
            std::fs::write(&path, content).unwrap();
            assert_eq!(read(&path), None, "{name}");
        }
        assert_eq!(read(Path::new("/nonexistent")), None);
    }
}
