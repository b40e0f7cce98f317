//! The ordering core in C, for other tools and for vendors: `include/taskscope_device.h` documents each
//! function.
//!
//! A session is guarded by one lock, so that its functions may be called from any thread; callbacks
//! run within it. Recorders of our own use rings instead (`hub`).

use crate::hub::lock;
use rustc_hash::FxHashMap;
use std::ffi::{CStr, OsStr, c_char, c_void};
use std::mem::{MaybeUninit, offset_of};
use std::os::unix::ffi::OsStrExt;
use std::sync::Mutex;
use taskscope_reorder::{
    Completion, Detail, Limits, Notice, Output, QueueIndex, QueueOrder, Released, Reorder, WhenFull,
};

/// `ts_device_record`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct Record {
    size: u32,
    state: u32,
    queue: u64,
    seq: u64,
    id: u64,
    thread: u64,
    list: u64,
    context: u64,
    device: u64,
    append: u64,
    submit: u64,
    start: u64,
    end: u64,
    lane: u32,
    anomalies: u32,
}

type Requested = extern "C" fn(*mut c_void, u64, *mut *mut u8, *mut usize);
type Completed = extern "C" fn(*mut c_void, u64, *mut u8, usize, usize);

/// `ts_device_config`. Fields that a caller's older struct lacks are zero.
#[repr(C)]
pub struct Config {
    size: u32,
    key: u32,
    held_records: u64,
    requested: Option<Requested>,
    completed: Option<Completed>,
    user: *mut c_void,
    when_full: u32,
    reserved: u32,
    spill_directory: *const c_char,
}

/// Bytes of the first version of [`Config`].
const FIRST_CONFIG: usize = offset_of!(Config, when_full);

/// `ts_device_counts`.
#[repr(C)]
pub struct Counts {
    size: u32,
    reserved: u32,
    numbers: [u64; 11],
}

/// `ts_device_session`.
pub struct Session(Mutex<Inner>);

struct Inner {
    reorder: Reorder,
    queues: Vec<Queue>,
    /// Threads in the order of their first event: the core numbers them by 24 bits.
    threads: Vec<u64>,
    thread_numbers: FxHashMap<u64, u32>,
    buffers: Buffers,
}

struct Queue {
    next: u64,
    context: u64,
    device: u64,
}

struct Buffers {
    key: u32,
    requested: Requested,
    completed: Completed,
    user: *mut c_void,
    open: FxHashMap<u64, Buffer>,
    dropped: u64,
}

// SAFETY: `user` is the caller's, which allows calls from any thread by contract.
unsafe impl Send for Buffers {}

struct Buffer {
    start: *mut u8,
    size: usize,
    used: usize,
}

const DELIVERED: u32 = 0;
const LOST: u32 = 1;
const LATE: u32 = 2;
const DUPLICATE: u32 = 3;
const NO_LANE: u32 = u32::MAX;

impl Buffers {
    fn put(&mut self, record: &Record) {
        let key = match self.key {
            0 => record.thread,
            1 => record.list,
            2 => record.queue,
            3 => record.context,
            _ => record.device,
        };
        let size = size_of::<Record>();
        if self.open.get(&key).is_some_and(|buffer| buffer.size - buffer.used < size) {
            self.hand_over(key);
        }
        let buffer = self.open.entry(key).or_insert_with(|| {
            let (mut start, mut size) = (std::ptr::null_mut(), 0);
            (self.requested)(self.user, key, &raw mut start, &raw mut size);
            Buffer { start, size: if start.is_null() { 0 } else { size }, used: 0 }
        });
        if buffer.size - buffer.used < size {
            self.dropped += 1;
            self.hand_over(key);
            return;
        }
        // SAFETY: the consumer gave `size` bytes, of which enough are free; alignment is not assumed.
        unsafe { buffer.start.add(buffer.used).cast::<Record>().write_unaligned(*record) };
        buffer.used += size;
    }

    fn hand_over(&mut self, key: u64) {
        if let Some(buffer) = self.open.remove(&key)
            && !buffer.start.is_null()
        {
            (self.completed)(self.user, key, buffer.start, buffer.size, buffer.used);
        }
    }

    fn hand_over_all(&mut self) {
        let mut keys: Vec<u64> = self.open.keys().copied().collect();
        keys.sort_unstable();
        keys.into_iter().for_each(|key| self.hand_over(key));
    }
}

impl Inner {
    /// Calls the ordering core, and forwards its output.
    fn drive(&mut self, work: impl FnOnce(&mut Reorder, &mut dyn FnMut(Output))) {
        let (queues, threads, buffers) = (&self.queues, &self.threads, &mut self.buffers);
        let thread_of = |number: u32| threads.get(number as usize).copied().unwrap_or(0);
        let about = |queue: QueueIndex, seq: u64| {
            let known = &queues[queue.0 as usize];
            Record {
                size: size_of::<Record>() as u32,
                queue: u64::from(queue.0),
                seq,
                context: known.context,
                device: known.device,
                lane: NO_LANE,
                ..Record::default()
            }
        };
        let released_record = |released: Released, state: u32| Record {
            state,
            id: released.detail.id,
            list: released.detail.amount,
            thread: thread_of(released.thread),
            append: released.append,
            submit: released.submit,
            start: released.start,
            end: released.end,
            lane: released.lane.unwrap_or(NO_LANE),
            anomalies: released.anomalies.0,
            ..about(released.queue, released.seq)
        };
        let mut out = |output: Output| {
            let record = match output {
                Output::Released(released) => released_record(released, DELIVERED),
                Output::Late(released) => released_record(released, LATE),
                Output::Lost { queue, seq, thread, append, detail } => Record {
                    state: LOST,
                    id: detail.id,
                    list: detail.amount,
                    thread: thread_of(thread),
                    append,
                    ..about(queue, seq)
                },
                Output::Duplicate(again) => Record {
                    state: DUPLICATE,
                    submit: again.submit,
                    start: again.start,
                    end: again.end,
                    ..about(again.queue, again.seq)
                },
            };
            buffers.put(&record);
        };
        work(&mut self.reorder, &mut out);
    }

    fn thread_number(&mut self, thread: u64) -> u32 {
        let threads = &mut self.threads;
        *self.thread_numbers.entry(thread).or_insert_with(|| {
            threads.push(thread);
            threads.len() as u32 - 1
        })
    }
}

/// The session behind a pointer; null is ignored.
///
/// # Safety
/// As documented in the header: made by `ts_device_create`, not destroyed.
unsafe fn with<T>(session: *mut Session, work: impl FnOnce(&mut Inner) -> T) -> Option<T> {
    // SAFETY: by contract.
    let session = unsafe { session.as_ref() }?;
    Some(work(&mut lock(&session.0)))
}

/// A queue that exists.
fn known(inner: &Inner, queue: u64) -> Option<QueueIndex> {
    (queue < inner.queues.len() as u64).then_some(QueueIndex(queue as u32))
}

/// `ts_device_create`.
///
/// # Safety
/// As documented in the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ts_device_create(config: *const Config) -> *mut Session {
    if config.is_null() {
        return std::ptr::null_mut();
    }
    // SAFETY: by contract, the size is readable, and as many bytes as it states.
    let size = unsafe { config.cast::<u32>().read_unaligned() } as usize;
    if size < FIRST_CONFIG {
        return std::ptr::null_mut();
    }
    // SAFETY: copies no more than either has; all zeros are a valid `Config`.
    let config = unsafe {
        let mut known = MaybeUninit::<Config>::zeroed();
        let bytes = size.min(size_of::<Config>());
        std::ptr::copy_nonoverlapping(config.cast::<u8>(), known.as_mut_ptr().cast::<u8>(), bytes);
        known.assume_init()
    };
    let (Some(requested), Some(completed)) = (config.requested, config.completed) else {
        return std::ptr::null_mut();
    };
    let when_full = match config.when_full {
        0 => WhenFull::Spill,
        1 => WhenFull::DeclareLost,
        2 => WhenFull::Block,
        _ => return std::ptr::null_mut(),
    };
    if config.key > 4 {
        return std::ptr::null_mut();
    }
    let mut limits = Limits { when_full, ..Limits::default() };
    if !config.spill_directory.is_null() {
        // SAFETY: by contract, a NUL-terminated text.
        let directory = unsafe { CStr::from_ptr(config.spill_directory) };
        limits.spill_directory = Some(OsStr::from_bytes(directory.to_bytes()).into());
    }
    if config.held_records != 0 {
        limits.held_records = usize::try_from(config.held_records).unwrap_or(usize::MAX);
    }
    let buffers = Buffers {
        key: config.key,
        requested,
        completed,
        user: config.user,
        open: FxHashMap::default(),
        dropped: 0,
    };
    let inner = Inner {
        reorder: Reorder::new(limits),
        queues: Vec::new(),
        threads: Vec::new(),
        thread_numbers: FxHashMap::default(),
        buffers,
    };
    Box::into_raw(Box::new(Session(Mutex::new(inner))))
}

/// `ts_device_add_queue`.
///
/// # Safety
/// As documented in the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ts_device_add_queue(
    session: *mut Session,
    out_of_order: i32,
    context: u64,
    device: u64,
) -> u64 {
    let add = |inner: &mut Inner| {
        let order = if out_of_order == 0 { QueueOrder::InOrder } else { QueueOrder::OutOfOrder };
        inner.queues.push(Queue { next: 0, context, device });
        u64::from(inner.reorder.add_queue(order).0)
    };
    // SAFETY: by contract.
    unsafe { with(session, add) }.unwrap_or(u64::MAX)
}

/// `ts_device_append`.
///
/// # Safety
/// As documented in the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ts_device_append(
    session: *mut Session,
    queue: u64,
    thread: u64,
    list: u64,
    append: u64,
    id: u64,
) -> u64 {
    let work = |inner: &mut Inner| {
        let index = known(inner, queue)?;
        let thread = inner.thread_number(thread);
        let next = &mut inner.queues[index.0 as usize].next;
        let seq = *next;
        *next += 1;
        let detail = Detail { id, amount: list, what: 0 };
        let notice = Notice { queue: index, seq, thread, append, earliest_start: append, detail };
        inner.drive(|reorder, mut out| reorder.append(&notice, &mut out));
        Some(seq)
    };
    // SAFETY: by contract.
    unsafe { with(session, work) }.flatten().unwrap_or(u64::MAX)
}

/// Defines a function that does one thing to a queue of a session.
macro_rules! on_queue {
    ($name:ident($($argument:ident),*), |$reorder:ident, $index:ident, $out:ident| $work:expr) => {
        #[doc = concat!("`", stringify!($name), "`.")]
        ///
        /// # Safety
        /// As documented in the header.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(session: *mut Session, queue: u64 $(, $argument: u64)*) {
            let work = |inner: &mut Inner| {
                if let Some($index) = known(inner, queue) {
                    inner.drive(|$reorder, mut $out| $work);
                }
            };
            // SAFETY: by contract.
            unsafe { with(session, work) };
        }
    };
}

on_queue!(ts_device_cancel(seq), |reorder, queue, out| reorder.cancel(queue, seq, &mut out));
on_queue!(ts_device_complete(seq, submit, start, end), |reorder, queue, out| {
    reorder.complete(&Completion { queue, seq, submit, start, end }, &mut out)
});
on_queue!(ts_device_no_append_before(time), |reorder, queue, out| {
    reorder.no_append_before(queue, time, &mut out)
});
on_queue!(ts_device_not_started_before(seq, time), |reorder, queue, out| {
    reorder.not_started_before(queue, seq, time, &mut out)
});
on_queue!(ts_device_declare_lost(before), |reorder, queue, out| {
    reorder.declare_lost(queue, before, &mut out)
});

/// `ts_device_flush`.
///
/// # Safety
/// As documented in the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ts_device_flush(session: *mut Session) {
    // SAFETY: by contract.
    unsafe { with(session, |inner| inner.buffers.hand_over_all()) };
}

/// `ts_device_is_full`.
///
/// # Safety
/// As documented in the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ts_device_is_full(session: *mut Session) -> i32 {
    // SAFETY: by contract.
    unsafe { with(session, |inner| i32::from(inner.reorder.is_full())) }.unwrap_or(0)
}

/// `ts_device_dropped`.
///
/// # Safety
/// As documented in the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ts_device_dropped(session: *mut Session) -> u64 {
    // SAFETY: by contract.
    unsafe { with(session, |inner| inner.buffers.dropped) }.unwrap_or(0)
}

/// `ts_device_count`.
///
/// # Safety
/// As documented in the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ts_device_count(session: *mut Session, queue: u64, counts: *mut Counts) -> i32 {
    let account = |inner: &mut Inner| known(inner, queue).map(|queue| *inner.reorder.account(queue));
    // SAFETY: by contract.
    let (Some(account), Some(counts)) = (unsafe { (with(session, account).flatten(), counts.as_mut()) })
    else {
        return 0;
    };
    if (counts.size as usize) < size_of::<Counts>() {
        return 0;
    }
    counts.numbers = [
        account.appended,
        account.delivered,
        account.cancelled,
        account.lost,
        account.untimed,
        account.duplicates,
        account.late,
        account.overlaps,
        account.out_of_place,
        account.worst_late,
        account.held_peak,
    ];
    1
}

/// `ts_device_finish`.
///
/// # Safety
/// As documented in the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ts_device_finish(session: *mut Session) {
    let work = |inner: &mut Inner| {
        inner.drive(|reorder, mut out| reorder.finish(&mut out));
        inner.buffers.hand_over_all();
    };
    // SAFETY: by contract.
    unsafe { with(session, work) };
}

/// `ts_device_destroy`.
///
/// # Safety
/// As documented in the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ts_device_destroy(session: *mut Session) {
    if !session.is_null() {
        // SAFETY: by contract.
        drop(unsafe { Box::from_raw(session) });
    }
}
