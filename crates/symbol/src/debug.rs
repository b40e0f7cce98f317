//! Debug information of one file: all its units, whole.
//!
//! With `-gsplit-dwarf` the program has a skeleton of each unit, with addresses and lines. The rest is in a `.dwo` file of its
//! own, or all of them in one `.dwp` file beside the program (DWARF 5, sections 7.3.2 and 7.3.5; GNU's extension of DWARF 4).

use crate::object_file::{Dwarf, Reader, dwarf_of, read_whole, section};
use addr2line::{LookupContinuation, LookupResult, SplitDwarfLoad};
use gimli::{DwarfFileType, DwoId, EndianRcSlice, Reader as _, RunTimeEndian};
use rustc_hash::FxHashMap;
use std::cell::{OnceCell, RefCell};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;

type Package = gimli::DwarfPackage<Reader>;

/// Debug information of one file, with its parts in other files.
pub(crate) struct Debug {
    pub dwarf: Arc<Dwarf>,
    program: PathBuf,
    package: OnceCell<Option<Package>>,
    /// Units found in other files so far.
    outside: RefCell<FxHashMap<u64, Option<Arc<Dwarf>>>>,
}

/// A unit of debug information.
pub(crate) struct Unit<'a> {
    pub dwarf: &'a Dwarf,
    pub unit: &'a gimli::Unit<Reader>,
    /// The program's own part of it, which has the names of its source files.
    pub own: (&'a Dwarf, &'a gimli::Unit<Reader>),
}

impl Unit<'_> {
    /// A text that an entry of the unit has.
    pub fn text(&self, value: gimli::AttributeValue<Reader>) -> Option<String> {
        text_of(self.dwarf, self.unit, value)
    }

    /// The name of a source file by its number.
    pub fn source(&self, number: u64) -> Option<String> {
        let (dwarf, unit) = self.own;
        let header = unit.line_program.as_ref()?.header();
        text_of(dwarf, unit, header.file(number)?.path_name())
    }
}

fn text_of(
    dwarf: &Dwarf,
    unit: &gimli::Unit<Reader>,
    value: gimli::AttributeValue<Reader>,
) -> Option<String> {
    Some(dwarf.attr_string(unit, value).ok()?.to_string_lossy().ok()?.into_owned())
}

impl Debug {
    pub fn new(dwarf: Arc<Dwarf>, program: &Path) -> Debug {
        let program = program.to_path_buf();
        Debug { dwarf, program, package: OnceCell::new(), outside: RefCell::default() }
    }

    /// Visits all units. A unit with an unreadable split part is visited as the program has it; a damaged one gives its
    /// readable part.
    pub fn for_each_unit(&self, mut visit: impl FnMut(&Unit<'_>) -> Result<(), gimli::Error>) {
        let mut units = self.dwarf.units();
        while let Ok(Some(header)) = units.next() {
            let Ok(own) = self.dwarf.unit(header) else { continue };
            let rest = self.rest_of(&own);
            let (dwarf, unit) = rest.as_ref().map_or((&*self.dwarf, &own), |(dwarf, unit)| (&**dwarf, unit));
            let _ = visit(&Unit { dwarf, unit, own: (&self.dwarf, &own) });
        }
    }

    fn rest_of(&self, own: &gimli::Unit<Reader>) -> Option<(Arc<Dwarf>, gimli::Unit<Reader>)> {
        let id = own.dwo_id?;
        let name = own.dwo_name().ok()?.and_then(|name| text_of(&self.dwarf, own, name));
        let directory = own.comp_dir.as_ref().and_then(path_of);
        let dwarf = self.outside(id, directory, name.map(PathBuf::from), &self.dwarf)?;
        let mut unit = dwarf.unit(dwarf.units().next().ok()??).ok()?;
        unit.copy_relocated_attributes(own);
        Some((dwarf, unit))
    }

    /// Completes a lookup, and loads the split units that it needs.
    pub fn look_up<L: LookupContinuation<Buf = Reader>>(&self, mut result: LookupResult<L>) -> L::Output {
        loop {
            result = match result {
                LookupResult::Output(output) => return output,
                LookupResult::Load {
                    load: SplitDwarfLoad { dwo_id, comp_dir, path, parent },
                    continuation,
                } => {
                    let [directory, path] = [comp_dir, path].map(|name| name.as_ref().and_then(path_of));
                    continuation.resume(self.outside(dwo_id, directory, path, &parent))
                }
            };
        }
    }

    fn outside(
        &self,
        id: DwoId,
        directory: Option<PathBuf>,
        path: Option<PathBuf>,
        own: &Dwarf,
    ) -> Option<Arc<Dwarf>> {
        if let Some(known) = self.outside.borrow().get(&id.0) {
            return known.clone();
        }
        #[allow(clippy::arc_with_non_send_sync, reason = "addr2line takes an Arc")]
        let found = self.packed(id, own).or_else(|| self.beside(id, directory, path?, own)).map(Arc::new);
        self.outside.borrow_mut().insert(id.0, found.clone());
        found
    }

    fn packed(&self, id: DwoId, own: &Dwarf) -> Option<Dwarf> {
        let package = self.package.get_or_init(|| {
            let mut path = self.program.clone().into_os_string();
            path.push(".dwp");
            let bytes = read_whole(Path::new(&path)).ok()?;
            let file = object::File::parse(&*bytes).ok()?;
            let nothing = EndianRcSlice::new(Rc::from(&[][..]), RunTimeEndian::Little);
            Package::load(|id| Ok::<_, gimli::Error>(section(&file, id.dwo_name())), nothing).ok()
        });
        package.as_ref()?.find_cu(id, own).ok()?
    }

    /// The split part of a unit from its own file: at the path stored by the compiler, or beside the program.
    fn beside(&self, id: DwoId, directory: Option<PathBuf>, path: PathBuf, own: &Dwarf) -> Option<Dwarf> {
        let made = directory.unwrap_or_default().join(&path);
        let moved = path.file_name().map(|name| self.program.with_file_name(name));
        [Some(made), moved].into_iter().flatten().find_map(|path| {
            let bytes = read_whole(&path).ok()?;
            let mut dwarf = dwarf_of(&object::File::parse(&*bytes).ok()?, true)?;
            let unit = dwarf.unit(dwarf.units().next().ok()??).ok()?;
            if unit.dwo_id != Some(id) {
                return None;
            }
            dwarf.make_dwo(own);
            Some(dwarf)
        })
    }
}

/// Whether a unit is a skeleton alone, as its rest was not found.
pub(crate) fn lacks_rest(unit: &gimli::UnitRef<'_, Reader>) -> bool {
    unit.unit.dwo_id.is_some() && unit.dwarf.file_type != DwarfFileType::Dwo
}

fn path_of(name: &Reader) -> Option<PathBuf> {
    use std::os::unix::ffi::OsStrExt;
    let name = name.to_slice().ok()?;
    Some(PathBuf::from(std::ffi::OsStr::from_bytes(&name)))
}
