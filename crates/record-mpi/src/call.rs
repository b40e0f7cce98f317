//! Steps of every wrapped call: begin, effects before the call, the call itself, effects after it, end.

use core::cell::{Cell, RefCell};
use core::ffi::{c_int, c_void};
use core::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::sync::OnceLock;

use taskscope_event::models::{messages, mpi, ovni};
use taskscope_event::spec::Effect;
use taskscope_ompt::shared::{Call, Moment, SectionCodes, record, start_recording};
use taskscope_record::{Json, process};

use crate::arguments::Arguments;
use crate::effects::{self, Flight, Operation};
use crate::functions::{Does, FUNCTIONS, Row, VARIANTS};
use crate::handle_kind::Kind;
use crate::language::{Language, REGISTERS};
use crate::library::{self, Real, WORDS};
use crate::{clocks, communicators};

/// `MPI_ERR_INTERN`, roughly, in both families: for a function that the MPI library lacks.
const NO_SUCH_FUNCTION: c_int = 16;

thread_local! {
    /// Whether the thread is in a wrapped call: nested calls inside MPI are not recorded.
    static INSIDE: Cell<bool> = const { Cell::new(false) };
    /// Last recorded code sites of functions, and the thread that recorded them: after a fork it is another.
    static SITES: RefCell<(i32, Vec<u32>)> = const { RefCell::new((0, Vec::new())) };
}

/// The common part of all entries: `index` is function and language, the arguments are the words at
/// `registers` and then those at `stack`, `caller` is the return address.
///
/// # Safety
/// Called by the entries alone.
pub unsafe extern "C" fn handle(
    index: u32,
    registers: *const usize,
    stack: *const usize,
    caller: *const c_void,
) -> c_int {
    let (position, variant) = (index as usize / VARIANTS, index as usize % VARIANTS);
    let language = Language::from_variant(variant);
    let Some(row) = FUNCTIONS.get(position) else { return NO_SUCH_FUNCTION };
    let arity = arity(row, language);
    let mut words = [0; WORDS];
    let handle_from_fortran = if language == Language::C { 0 } else { 1 + usize::from(row.strings) };
    let count = usize::from(arity) + handle_from_fortran;
    for (word, number) in words.iter_mut().zip(0..count) {
        // SAFETY: the caller passed so many arguments, in these places.
        *word = unsafe {
            if number < REGISTERS {
                registers.add(number).read()
            } else {
                stack.add(number - REGISTERS).read()
            }
        };
    }
    let arguments = Arguments { words, language, large: row.large, arity };
    let Some(real) = library::real(position, variant, row) else {
        missing(row);
        // SAFETY: the program's own call.
        return unsafe { arguments.fail(NO_SUCH_FUNCTION) };
    };
    // While a thread ends its variables may be gone; then the call goes straight through.
    let outermost = INSIDE.try_with(|inside| !inside.replace(true)).unwrap_or(false);
    if !outermost || !is_recording() {
        if outermost {
            let _ = INSIDE.try_with(|inside| inside.set(false));
        }
        // SAFETY: the program's own call.
        return unsafe { arguments.forward(real) }.0;
    }
    // SAFETY: the program's own call.
    let returned = unsafe { wrapped(position, row, arguments, real, caller) };
    let _ = INSIDE.try_with(|inside| inside.set(false));
    returned
}

/// Arguments without the error code of Fortran.
fn arity(row: &Row, language: Language) -> u8 {
    match (row.name, language) {
        (_, Language::C) => row.arity,
        // Fortran has no argc and argv.
        ("Init", _) => 0,
        ("Init_thread", _) => 2,
        _ => row.arity,
    }
}

/// # Safety
/// As [`handle`].
unsafe fn wrapped(
    position: usize,
    row: &'static Row,
    mut arguments: Arguments,
    real: Real,
    caller: *const c_void,
) -> c_int {
    let call = kind_of(position, row);
    let library = library::library();
    if let (Does::Finalize, Some(library)) = (row.does, library) {
        let (mut world, mut site) = (None, 0);
        record(|moment| {
            site = begin(moment, row, call, caller);
            world = effects::begin_end_of_job(library, row.number, moment);
        });
        // All ranks meet here: the wait for the last one is not time of ending MPI.
        clocks::measure(library);
        record(|moment| {
            if effects::all_have_come(world, moment) {
                moment.all_ranks_have_come(call, site);
            }
        });
        clocks::part(library);
        // SAFETY: the program's own call.
        let (returned, _) = unsafe { arguments.forward(real) };
        record(|moment| moment.end_last_call(call));
        return returned;
    }
    let mut flight = Flight::default();
    record(|moment| {
        begin(moment, row, call, caller);
        if let Some(library) = library {
            // SAFETY: the arguments are those of this function.
            unsafe { Operation { row, library }.before(&mut arguments, &mut flight, moment) };
        }
    });
    // SAFETY: the program's own call.
    let (returned, good) = unsafe { arguments.forward(real) };
    match (row.does, good, library) {
        (Does::Init, true, Some(library)) => begin_job(library),
        (Does::StartSession(session), true, Some(library)) => {
            // SAFETY: the call has made the session.
            let session = unsafe { arguments.handle_in(library, session, 0, Kind::Session) };
            begin_session(library, session);
        }
        _ => {}
    }
    record(|moment| {
        if let Some(library) = library {
            // SAFETY: as above, and the call has returned.
            unsafe { Operation { row, library }.after(&arguments, flight, good, moment) };
        }
        moment.end_call(call);
    });
    returned
}

/// Begins a call. Returns its code site.
fn begin(moment: &mut Moment<'_>, row: &Row, call: Call, caller: *const c_void) -> u32 {
    let site = moment.code_site(caller);
    let thread = moment.recorder.os_tid();
    let is_new = SITES.try_with(|sites| {
        let mut sites = sites.borrow_mut();
        if sites.0 != thread {
            *sites = (thread, vec![0; messages::FUNCTIONS.len()]);
        }
        sites.1.get_mut(row.number as usize).is_some_and(|last| core::mem::replace(last, site) != site)
    });
    if is_new.unwrap_or(false) {
        let mut payload = [0; 8];
        payload[..4].copy_from_slice(&row.number.to_le_bytes());
        payload[4..].copy_from_slice(&site.to_le_bytes());
        moment.recorder.own_point(moment.at, messages::CALL_SITE, payload);
    }
    moment.begin_call(call, site);
    site
}

/// After `MPI_Init`: records rank and clock.
fn begin_job(library: &'static library::Library) {
    let Some(job) = clocks::meet(library) else { return };
    record_job(job);
    record(|moment| drop(communicators::find(library, library.comm_world, None, moment)));
    clocks::measure(library);
}

/// After the first `MPI_Session_init` of a program without `MPI_Init`: records the rank. The job has no
/// number, as the processes that take part in a message are unknown.
fn begin_session(library: &'static library::Library, session: usize) {
    static HAS_BEGUN: AtomicU32 = AtomicU32::new(0);
    if clocks::has_met() || HAS_BEGUN.swap(1, Relaxed) != 0 {
        return;
    }
    if let Some((rank, ranks)) = library.meet_in_session(session) {
        record_job(clocks::Job { number: 0, rank, ranks });
    }
}

/// Records the rank and the library.
fn record_job(job: clocks::Job) {
    communicators::set_job(job.number);
    process::set_ovni_member("rank", Json::integer(job.rank));
    process::set_ovni_member("nranks", Json::integer(job.ranks));
    let version = library::version();
    let library_name = Json::string(version.lines().next().unwrap_or("").trim_end_matches('\0'));
    process::set_attribute("mpi", Json::object([("library", library_name)]));
    record(|moment| {
        effects::record_rank(job, moment);
        moment.recorder.store_metadata();
    });
}

/// The section of a function, standard if ovni has one.
fn kind_of(position: usize, row: &Row) -> Call {
    static KINDS: OnceLock<Vec<Call>> = OnceLock::new();
    let kinds = KINDS.get_or_init(|| FUNCTIONS.iter().map(look_up).collect());
    kinds.get(position).copied().unwrap_or(Call::Numbered(row.number))
}

fn look_up(row: &Row) -> Call {
    let mut pair = [None, None];
    for event in mpi::EVENTS {
        match event.effect {
            Effect::Push(_, _, label) if label.strip_prefix("MPI_") == Some(row.name) => {
                pair[0] = Some(event.code)
            }
            Effect::Pop(_, _, label) if label.strip_prefix("MPI_") == Some(row.name) => {
                pair[1] = Some(event.code)
            }
            _ => {}
        }
    }
    match pair {
        [Some(begin), Some(end)] => Call::Standard(SectionCodes::new(begin, end)),
        _ => Call::Numbered(row.number),
    }
}

/// Whether this process records; determined once, at its first call of MPI.
fn is_recording() -> bool {
    const UNASKED: u32 = 0;
    const YES: u32 = 1;
    const NO: u32 = 2;
    static STATE: AtomicU32 = AtomicU32::new(UNASKED);
    match STATE.load(Relaxed) {
        YES => true,
        NO => false,
        _ => {
            let records = start_recording(&[("ovni", ovni::VERSION), ("mpi", mpi::VERSION)]);
            STATE.store(if records { YES } else { NO }, Relaxed);
            records
        }
    }
}

#[cold]
fn missing(row: &Row) {
    eprintln!("taskscope: MPI_{} is not in the MPI library, but was called", row.name);
}
