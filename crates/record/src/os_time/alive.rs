//! The sign of life of a process that cannot record its own end: a mapped page with the time, kept up to date.
//!
//! Form and purpose: [`taskscope_event::alive`]. One store per beat; the program's threads are not involved.

use super::schedstat::Schedstat;
use crate::clock;
use crate::disk_file::{Mapping, reserve};
use crate::open_call::{Open, OpenCall, describe};
use crate::tail_place;
use core::sync::atomic::{AtomicU64, Ordering::*};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use taskscope_event::alive;

/// Between two stores of the time.
pub(super) const BEAT: Duration = Duration::from_millis(40);
/// Interval of checks for sleeping threads.
const LOOK: Duration = Duration::from_millis(200);
/// Minimum pause after a check, in durations of that check.
const PAUSE_PER_LOOK: u32 = 200;

/// A thread, and how long it has used no CPU, or has been in a call.
struct Watched {
    os_tid: i32,
    tid: i64,
    times: Schedstat,
    /// Its place for the call that it is in.
    place: &'static OpenCall,
    /// The begin of the call that it was seen blocked in, with the kind of wait and the object.
    call: Option<(u64, (u32, u64))>,
    /// Time on a CPU at the last check, nanoseconds.
    cpu_ns: Option<u64>,
    /// When that time was first seen.
    since: u64,
}

/// The page, and the checked threads.
#[derive(Default)]
pub(super) struct Alive {
    page: Option<Page>,
    threads: Vec<Watched>,
    looked: Option<(Instant, Duration)>,
    tables: u64,
}

impl Alive {
    /// Adds a thread to the checked ones.
    pub fn watch(&mut self, os_tid: i32, tid: i64, place: &'static OpenCall) {
        let (times, since) = (Schedstat::of(os_tid), clock::kernel_ns());
        self.threads.push(Watched { os_tid, tid, times, place, call: None, cpu_ns: None, since });
    }

    /// Removes a thread that ends.
    pub fn leave(&mut self, os_tid: i32) {
        self.threads.retain(|thread| thread.os_tid != os_tid);
    }

    /// Creates the page in the directory of the process. Without room for it there is none.
    pub fn begin(&mut self, process: &Path) {
        self.page = Page::create(&process.join(alive::FILE));
        self.beat();
    }

    /// Stores the time, and from time to time which threads sleep.
    pub fn beat(&mut self) {
        let Some(page) = &self.page else { return };
        page.store(alive::UNTIL_OFFSET, clock::kernel_ns());
        let is_due = |(at, took): (Instant, Duration)| at.elapsed() >= LOOK.max(took * PAUSE_PER_LOOK);
        if self.looked.is_none_or(is_due) {
            let (start, begin) = (Instant::now(), own_cpu_time());
            self.look();
            self.looked = Some((start, own_cpu_time().saturating_sub(begin)));
        }
    }

    /// Stores which threads sleep, for the last time: threads that run now are given time to block again.
    pub fn last_look(&mut self) {
        self.look_with(OpenCall::find);
    }

    fn look(&mut self) {
        self.look_with(OpenCall::find_now);
    }

    fn look_with(&mut self, find: Find) {
        let Some(page) = &self.page else { return };
        let table = self.tables % 2;
        let mut rows = 0;
        page.store(alive::look(table), clock::kernel_ns());
        for thread in &mut self.threads {
            let slept_since = thread.slept_since();
            let call = thread.open_call(find);
            let row = call.or(slept_since.map(|since| (since, (0, 0))));
            if let Some((since, (kind, object))) = row.filter(|_| rows < alive::MAX_ROWS) {
                let (row, call) = (alive::row(table, rows), alive::call(table, rows));
                page.store(row, thread.tid.cast_unsigned());
                page.store(row + 8, since);
                page.store(call, kind.into());
                page.store(call + 8, object);
                rows += 1;
            }
        }
        page.store(alive::TABLE_OFFSET, alive::table(table, rows));
        self.tables += 1;
    }

    /// Removes the page: the process records its end itself.
    pub fn finish(&mut self) {
        if let Some(page) = self.page.take() {
            page.remove();
        }
    }
}

/// Finds the call that the thread of a place is blocked in.
type Find = fn(&OpenCall, i32) -> Option<Open>;

impl Watched {
    /// Since when it has used no CPU, if it is blocked now.
    fn slept_since(&mut self) -> Option<u64> {
        let at = clock::kernel_ns();
        let cpu_ns = self.times.read().map(|sums| sums.on_cpu);
        if cpu_ns.is_none() || cpu_ns != self.cpu_ns {
            // A thread that is seen for the first time may have slept since it was attached.
            self.since = if self.cpu_ns.is_none() { self.since } else { at };
            self.cpu_ns = cpu_ns;
            return None;
        }
        // A runnable thread uses no CPU either while others have it.
        (self.times.is_blocked() == Some(true)).then_some(self.since)
    }

    /// Begin, kind of wait and object of the call that it is in. Once it was seen blocked there, it may run now and then: signals wake it.
    fn open_call(&mut self, find: Find) -> Option<(u64, (u32, u64))> {
        let begun = self.place.begun()?;
        if self.call.is_none_or(|(known, _)| known != begun) {
            self.call = find(self.place, self.os_tid).and_then(|open| Some((open.begun, describe(&open)?)));
        }
        self.call.filter(|(known, _)| *known == begun)
    }
}

/// CPU time of the calling thread: other threads' time does not make checks rarer.
fn own_cpu_time() -> Duration {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is valid for writing; the clock exists on every Linux.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut time) };
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// The mapped page, in its file.
struct Page {
    mapping: Mapping,
    path: PathBuf,
    /// The real path of the file, if `path` is a link to it.
    linked: Option<PathBuf>,
}

// SAFETY: the mapping belongs to the value, and moves with it.
unsafe impl Send for Page {}

impl Page {
    fn create(path: &Path) -> Option<Page> {
        let linked = tail_place::link(path);
        let made = tail_place::create(path, linked.as_deref()).and_then(|(_, open)| {
            reserve(&open, 0, alive::BYTES as u64)?;
            Mapping::new(&open, 0, alive::BYTES)
        });
        let Ok(mapping) = made else {
            [Some(path), linked.as_deref()]
                .into_iter()
                .flatten()
                .for_each(|path| drop(std::fs::remove_file(path)));
            return None;
        };
        let page = Page { mapping, path: path.to_owned(), linked };
        page.store(alive::MARK.0, alive::MARK.1);
        Some(page)
    }

    fn store(&self, offset: u64, value: u64) {
        // SAFETY: all offsets are within the page and aligned, and the mapping lives as long as the value.
        let word = unsafe { AtomicU64::from_ptr(self.mapping.base.add(offset as usize).cast()) };
        word.store(value.to_le(), Release);
    }

    fn remove(self) {
        let _ = std::fs::remove_file(&self.path);
        if let Some(linked) = &self.linked {
            let _ = std::fs::remove_file(linked);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;

    #[test]
    fn page_has_the_time_and_the_threads_that_sleep() {
        let here = tempfile::tempdir().unwrap();
        let root = here.path();
        let before = clock::kernel_ns();
        let (end, ends) = mpsc::channel::<()>();
        let (sender, receiver) = mpsc::channel();
        let sleeper = std::thread::spawn(move || {
            sender.send(crate::os_thread::os_tid()).unwrap();
            let _ = ends.recv();
        });
        let mut all = Alive::default();
        let (place, none) =
            (&*Box::leak(Box::new(OpenCall::default())), &*Box::leak(Box::new(OpenCall::default())));
        let sleeper_tid = receiver.recv().unwrap();
        all.watch(sleeper_tid, 7, place);
        all.watch(crate::os_thread::os_tid(), 8, none);
        all.begin(root);
        let page = || std::fs::read(root.join(alive::FILE)).unwrap();
        assert!(alive::until(&page()).unwrap() >= before);
        if Schedstat::of(crate::os_thread::os_tid()).read().is_none() {
            println!("skipped: this kernel has no schedstat (CONFIG_SCHED_INFO)");
        } else {
            // The sleeping thread may not be asleep yet at the first checks.
            while alive::asleep(&page()).count() == 0 {
                std::thread::sleep(Duration::from_millis(1));
                all.look();
            }
            assert!(alive::asleep(&page()).all(|thread| thread.tid == 7 && thread.since >= before));
            all.threads.retain(|thread| thread.tid != 7);
            all.look();
            assert_eq!(alive::asleep(&page()).count(), 0);
        }
        all.finish();
        assert!(!root.join(alive::FILE).exists());
        drop(end);
        sleeper.join().unwrap();
    }
}
