//! Flushes, reductions, the making of locks, edges between tasks, error directives.

use core::ffi::{CStr, c_char, c_int, c_uint, c_void};
use core::sync::atomic::{AtomicBool, Ordering::Relaxed};

use taskscope_event::models::omp;

use crate::abi::{self, Data, endpoint};
use crate::frames::Open;
use crate::mutex_kind::wait_kind;
use crate::payload::two;
use crate::thread::record;
use crate::tool_data::{EXPLICIT, ToolData};

/// `ompt_callback_flush`.
pub unsafe extern "C" fn flush(_thread: *mut Data, codeptr: *const c_void) {
    record(|moment| {
        let site = moment.site(codeptr);
        moment.recorder.own_point(moment.at, omp::FLUSH, site.to_le_bytes());
    });
}

/// `ompt_callback_reduction`.
pub unsafe extern "C" fn reduction(
    _kind: c_int,
    scope: c_int,
    _region: *mut Data,
    _task: *mut Data,
    codeptr: *const c_void,
) {
    record(|moment| {
        if scope & endpoint::BEGIN != 0 {
            let site = moment.site(codeptr);
            moment.open_with(Open::Reduction, site, |moment| {
                moment.recorder.own_begin(moment.at, omp::REDUCTION_BEGIN, site.to_le_bytes(), 0);
            });
        }
        if scope & endpoint::END != 0 {
            moment.close_in_context(|open| open == Open::Reduction);
        }
    });
}

/// `ompt_callback_lock_init`.
pub unsafe extern "C" fn lock_init(
    kind: c_int,
    _hint: c_uint,
    _implementation: c_uint,
    object: u64,
    codeptr: *const c_void,
) {
    record_lock(omp::LOCK_INIT, kind, object, codeptr);
}

/// `ompt_callback_lock_destroy`.
pub unsafe extern "C" fn lock_destroy(kind: c_int, object: u64, codeptr: *const c_void) {
    if crate::profiling::is_on() {
        crate::profiling::destroyed(object);
    }
    record_lock(omp::LOCK_DESTROY, kind, object, codeptr);
}

fn record_lock(code: taskscope_event::Code, kind: c_int, object: u64, codeptr: *const c_void) {
    record(|moment| {
        let mut payload = [0; 16];
        payload[..8].copy_from_slice(&object.to_le_bytes());
        payload[8..12].copy_from_slice(&moment.site(codeptr).to_le_bytes());
        payload[12..].copy_from_slice(&wait_kind(kind).to_le_bytes());
        moment.recorder.own_point(moment.at, code, payload);
    });
}

/// Set to anything: [`task_dependence`] is recorded.
const EDGES_VARIABLE: &str = "TASKSCOPE_TASK_EDGES";
static EDGES_ARE_WANTED: AtomicBool = AtomicBool::new(false);

/// Reads from the environment whether [`task_dependence`] is wanted.
pub fn wants_edges() -> bool {
    let wanted = std::env::var_os(EDGES_VARIABLE).is_some();
    EDGES_ARE_WANTED.store(wanted, Relaxed);
    wanted
}

/// `ompt_callback_task_dependence`: the predecessors that have not ended when a task is created. The trace
/// determines them from `dependences` and the ends of tasks, and a task with four dependences costs two more
/// events. So it is recorded only on demand, to show the runtime's own view.
pub unsafe extern "C" fn task_dependence(source: *mut Data, sink: *mut Data) {
    // Another tool may have requested the event.
    if !EDGES_ARE_WANTED.load(Relaxed) {
        return;
    }
    let (source, sink) = (ToolData::load(source), ToolData::load(sink));
    if source.has(EXPLICIT) && sink.has(EXPLICIT) {
        record(|moment| {
            moment.recorder.own_point(moment.at, omp::TASK_EDGE, two(source.id(), sink.id()));
        });
    }
}

/// `ompt_callback_error`.
pub unsafe extern "C" fn error(
    severity: c_int,
    message: *const c_char,
    _length: usize,
    codeptr: *const c_void,
) {
    // SAFETY: the runtime passes a C string, or null.
    let message = if abi::is_object(message) { unsafe { CStr::from_ptr(message) } } else { c"" };
    record(|moment| {
        let site = moment.site(codeptr);
        let parts = [&severity.to_le_bytes()[..], &site.to_le_bytes(), message.to_bytes_with_nul()];
        moment.recorder.own_jumbo(moment.at, omp::ERROR, &parts);
    });
}
