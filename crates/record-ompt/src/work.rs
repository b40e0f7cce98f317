//! Worksharing, chunks, masked, cancellation.

use core::ffi::{c_int, c_void};

use taskscope_event::models::omp;

use crate::abi::{self, Chunk, Data, dispatch as dispatch_kind, endpoint, work as work_kind};
use crate::fast_path::fast_callbacks;
use crate::frames::Open;
use crate::payload::two;
use crate::sections::{self, SectionCodes};
use crate::sink::Sink;
use crate::thread::{Kind, Moment, record};

/// `ompt_callback_work`.
pub unsafe extern "C" fn work<S: Sink>(
    kind: c_int,
    scope: c_int,
    parallel: *mut Data,
    task: *mut Data,
    count: u64,
    codeptr: *const c_void,
) {
    let is_plain = S::COUNTS && !matches!(kind as u32, work_kind::SINGLE_OTHER | work_kind::TASKLOOP);
    // SAFETY: the runtime's own arguments.
    unsafe {
        match scope {
            endpoint::BEGIN if is_plain => work_begins::<S>(kind, scope, parallel, task, count, codeptr),
            endpoint::END if is_plain => work_ends::<S>(kind, scope, parallel, task, count, codeptr),
            _ => work_slowly(kind, scope, parallel, task, count, codeptr),
        }
    }
}

fast_callbacks! {
    fn work_begins<S>(
        kind: c_int, scope: c_int, parallel: *mut Data, task: *mut Data, count: u64, codeptr: *const c_void
    ) = |recorder, thread| S::begin_work(recorder, thread, kind as u8), work_slowly;
    fn work_ends<S>(
        kind: c_int, scope: c_int, parallel: *mut Data, task: *mut Data, count: u64, codeptr: *const c_void
    ) = |recorder, thread| S::end_work(recorder, thread, kind as u8), work_slowly;
}

/// The slow path of [`work`].
#[inline(never)]
unsafe extern "C" fn work_slowly(
    kind: c_int,
    scope: c_int,
    _parallel: *mut Data,
    _task: *mut Data,
    _count: u64,
    codeptr: *const c_void,
) {
    let kind = kind as u32;
    // Threads that skip a `single` have no work in it.
    if kind == work_kind::SINGLE_OTHER {
        return;
    }
    record(|moment| {
        if scope != endpoint::END {
            moment.begin_work(kind, codeptr);
        }
        if scope != endpoint::BEGIN {
            moment
                .close_in_context(|open| matches!(open, Open::Work { kind: open, .. } if open == kind as u8));
        }
    });
}

/// `ompt_callback_dispatch`.
pub unsafe extern "C" fn dispatch(_parallel: *mut Data, _task: *mut Data, kind: c_int, instance: Data) {
    use dispatch_kind::{DISTRIBUTE_CHUNK, LOOP_CHUNK, TASKLOOP_CHUNK};
    if !matches!(kind, LOOP_CHUNK | TASKLOOP_CHUNK | DISTRIBUTE_CHUNK) {
        return;
    }
    // SAFETY: for these kinds the runtime passes a pointer to a chunk.
    let chunk = unsafe { instance.ptr }.cast::<Chunk>();
    if !abi::is_object(chunk) {
        return;
    }
    // SAFETY: as above.
    let Chunk { start, iterations } = unsafe { *chunk };
    record(|moment| {
        let mut payload = [0; 16];
        payload[..8].copy_from_slice(&start.to_le_bytes());
        payload[8..].copy_from_slice(&iterations.to_le_bytes());
        moment.recorder.own_point(moment.at, omp::CHUNK, payload);
    });
}

/// `ompt_callback_masked`.
pub unsafe extern "C" fn masked(
    scope: c_int,
    _parallel: *mut Data,
    _task: *mut Data,
    codeptr: *const c_void,
) {
    record(|moment| {
        if moment.thread.kind == Kind::Helper {
            return;
        }
        if scope == endpoint::BEGIN {
            let site = moment.site(codeptr);
            moment.open_with(Open::Masked, site, |moment| {
                moment.recorder.own_begin(moment.at, omp::MASKED_BEGIN, site.to_le_bytes(), 0);
            });
        } else {
            moment.close_in_context(|open| open == Open::Masked);
        }
    });
}

/// `ompt_callback_cancel`.
pub unsafe extern "C" fn cancel(_task: *mut Data, flags: c_int, codeptr: *const c_void) {
    record(|moment| {
        let site = moment.site(codeptr);
        moment.recorder.own_point(moment.at, omp::CANCEL, two(site, flags as u32));
    });
}

impl Moment<'_> {
    fn begin_work(&mut self, kind: u32, codeptr: *const c_void) {
        let entry = self.work_type(codeptr, kind);
        if kind != work_kind::TASKLOOP {
            // Worksharing does not nest in one task: one that is still open was not ended by the
            // runtime (under gcc, a single never is).
            self.close_in_context(
                |open| matches!(open, Open::Work { kind, .. } if kind != work_kind::TASKLOOP as u8),
            );
            self.thread.last_work_site = entry.site;
        }
        let open = Open::Work { typeid: entry.typeid, kind: kind as u8, codes: section_of(kind) };
        self.open(open, entry.site);
    }
}

/// ovni's section for a worksharing construct; a taskloop creates tasks, and has none.
fn section_of(kind: u32) -> Option<SectionCodes> {
    match kind {
        work_kind::LOOP_STATIC => Some(sections::STATIC_LOOP),
        work_kind::LOOP | work_kind::LOOP_DYNAMIC | work_kind::LOOP_GUIDED | work_kind::LOOP_OTHER => {
            Some(sections::DYNAMIC_LOOP)
        }
        work_kind::SECTIONS => Some(sections::SECTIONS),
        work_kind::SINGLE_EXECUTOR => Some(sections::SINGLE),
        work_kind::DISTRIBUTE => Some(sections::DISTRIBUTE),
        _ => None,
    }
}
