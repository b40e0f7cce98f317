//! Storage of a run's changes while it is replayed: the columns of its tracks, and the tables of its tasks; for
//! interactive use on a separate thread.
//!
//! ```text
//! replaying   newest sections of each thread ──┐
//!             changes of tasks ────────────────┴──▶ batch ──▶ channel
//!                                                                │
//! beside                            columns, tables, file ◀──────┘
//! ```
//!
//! Steps are applied in order, so stored data is not needed before [`Storing::finish`].

use crate::SharedBytes;
use crate::activities::{Activities, ActivityNumbers};
use crate::columns_builder::ColumnsBuilder;
use crate::growing::{ColumnFile, FileParts};
use crate::newest::{Amendment, Row};
use crate::task_tables::TaskTables;
use crate::{Change, Joined, Place, State, ThreadIndex};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::thread::JoinHandle;

/// Sections and other steps that are handed over at once: they fill half of a core's L2 cache.
const BATCH: usize = 4096;
/// Batches that may wait in the channel: enough to even out the speeds of both threads, in little memory.
const WAITING: usize = 16;

/// The columns of all tracks, and the tables of tasks.
#[derive(Debug, Default)]
pub(crate) struct Tables {
    tasks: TaskTables,
    tracks: Vec<ColumnsBuilder>,
    activities: ActivityNumbers,
    /// Storage of long tracks, if not in memory.
    parts: Option<FileParts>,
}

impl Tables {
    fn of(&mut self, track: usize) -> &mut ColumnsBuilder {
        if track >= self.tracks.len() {
            self.tracks.resize_with(track + 1, ColumnsBuilder::default);
        }
        &mut self.tracks[track]
    }

    fn expect(&mut self, track: usize, sections: usize) {
        let mut parts = self.parts.take();
        self.of(track).expect(sections, parts.as_mut());
        self.parts = parts;
    }

    #[inline(always)]
    fn store(&mut self, track: usize, rows: &[Row]) {
        if track >= self.tracks.len() {
            self.of(track);
        }
        self.tracks[track].store(rows, &mut self.activities);
    }

    fn amend(&mut self, track: usize, amendment: &Amendment) {
        if let Some(columns) = self.tracks.get_mut(track) {
            columns.amend(amendment, &mut self.activities);
        }
    }

    fn take(&mut self, batch: &Batch) {
        for (thread, at, change) in &batch.tasks {
            self.tasks.change(*thread, *at, *change);
        }
        let mut rows = batch.rows.as_slice();
        for (track, step) in &batch.steps {
            let track = *track as usize;
            match step {
                Step::Expect(sections) => self.expect(track, *sections),
                Step::ExpectTasks(tasks) => self.tasks.tasks.expect(*tasks),
                Step::Store(count) => {
                    let (now, later) = rows.split_at(*count);
                    self.store(track, now);
                    rows = later;
                }
                Step::Amend(amendment) => self.amend(track, amendment),
            }
        }
    }
}

/// A step for a track.
#[derive(Debug)]
enum Step {
    Expect(usize),
    /// A step for all tracks.
    ExpectTasks(usize),
    /// Stores the next sections of the batch, of this number.
    Store(usize),
    Amend(Amendment),
}

#[derive(Debug, Default)]
struct Batch {
    /// Steps with their tracks.
    steps: Vec<(u32, Step)>,
    /// Sections of all steps [`Step::Store`], in their order.
    rows: Vec<Row>,
    /// Changes of tasks.
    tasks: Vec<(ThreadIndex, u64, Change)>,
}

/// A separate thread that owns the tables.
#[derive(Debug)]
pub(crate) struct Beside {
    batch: Batch,
    full: SyncSender<Batch>,
    /// Emptied batches, to be filled again.
    empty: Receiver<Batch>,
    thread: JoinHandle<Box<Tables>>,
}

impl Beside {
    #[inline(always)]
    fn send(&mut self, track: usize, step: Step, rows: &[Row]) {
        self.batch.steps.push((track as u32, step));
        self.batch.rows.extend_from_slice(rows);
        if self.batch.rows.len() + self.batch.steps.len() >= BATCH {
            self.hand_over();
        }
    }

    #[inline(always)]
    fn send_task_change(&mut self, thread: ThreadIndex, at: u64, change: Change) {
        self.batch.tasks.push((thread, at, change));
        if self.batch.tasks.len() >= BATCH {
            self.hand_over();
        }
    }

    #[cold]
    fn hand_over(&mut self) {
        let batch = std::mem::replace(&mut self.batch, self.empty.try_recv().unwrap_or_default());
        // The receiver is gone only after a panic, which `finish` passes on.
        let _ = self.full.send(batch);
    }

    fn finish(mut self) -> Box<Tables> {
        self.hand_over();
        drop(self.full);
        self.thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }
}

fn take_all(mut tables: Box<Tables>, batches: Receiver<Batch>, taken: Sender<Batch>) -> Box<Tables> {
    for mut batch in batches {
        tables.take(&batch);
        batch.steps.clear();
        batch.rows.clear();
        batch.tasks.clear();
        let _ = taken.send(batch);
    }
    tables
}

/// The complete stored data.
pub(crate) struct Stored {
    pub tasks: TaskTables,
    pub tracks: Vec<ColumnsBuilder>,
    pub activities: Arc<Activities>,
    /// The file that contains them, if any.
    pub file: Option<SharedBytes>,
}

/// Storage of changes.
#[derive(Debug)]
pub(crate) enum Storing {
    Here(Box<Tables>),
    Beside(Beside),
}

impl Default for Storing {
    fn default() -> Self {
        Storing::Here(Box::default())
    }
}

impl Storing {
    /// Stores later tracks with many expected sections in this file instead of memory; `columns` is the expected
    /// number of all columns.
    pub fn in_file(file: Arc<dyn ColumnFile>, columns: usize) -> Storing {
        Storing::Here(Box::new(Tables { parts: Some(FileParts::of(file, columns)), ..Tables::default() }))
    }

    /// Stores everything on a separate thread from now on, if one can be created.
    pub fn beside(self) -> Storing {
        let Storing::Here(tables) = self else { return self };
        let (give, given) = channel();
        let (full, batches) = sync_channel(WAITING);
        let (taken, empty) = channel();
        let spawned = std::thread::Builder::new().spawn(move || {
            let tables = given.recv().unwrap_or_default();
            take_all(tables, batches, taken)
        });
        let Ok(thread) = spawned else { return Storing::Here(tables) };
        match give.send(tables) {
            Ok(()) => Storing::Beside(Beside { batch: Batch::default(), full, empty, thread }),
            Err(unsent) => Storing::Here(unsent.0),
        }
    }

    /// Announces about how many sections a track has at most.
    pub fn expect(&mut self, track: usize, sections: usize) {
        match self {
            Storing::Here(tables) => tables.expect(track, sections),
            Storing::Beside(beside) => beside.send(track, Step::Expect(sections), &[]),
        }
    }

    /// Announces about how many tasks there are at most.
    pub fn expect_tasks(&mut self, tasks: usize) {
        match self {
            Storing::Here(tables) => tables.tasks.tasks.expect(tasks),
            Storing::Beside(beside) => beside.send(0, Step::ExpectTasks(tasks), &[]),
        }
    }

    /// Stores sections of a track, in time order.
    #[inline(always)]
    pub fn store(&mut self, track: usize, rows: &[Row]) {
        match self {
            Storing::Here(tables) => tables.store(track, rows),
            Storing::Beside(beside) => beside.send(track, Step::Store(rows.len()), rows),
        }
    }

    /// Replaces a stored section.
    pub fn amend(&mut self, track: usize, amendment: Amendment) {
        match self {
            Storing::Here(tables) => tables.amend(track, &amendment),
            Storing::Beside(beside) => beside.send(track, Step::Amend(amendment), &[]),
        }
    }

    /// Applies the change of a task.
    #[inline(always)]
    pub fn task_change(&mut self, thread: ThreadIndex, at: u64, change: Change) {
        match self {
            Storing::Here(tables) => tables.tasks.change(thread, at, change),
            Storing::Beside(beside) => beside.send_task_change(thread, at, change),
        }
    }

    /// Completes the tables, with these types and sites joined.
    pub fn finish(self, joined: &Joined) -> Stored {
        let mut tables = match self {
            Storing::Here(tables) => tables,
            Storing::Beside(beside) => beside.finish(),
        };
        tables.tracks.iter_mut().for_each(|columns| columns.complete(joined));
        tables.tasks.complete(joined);
        // The activity of CPUs without a thread.
        tables.activities.number(State::Idle, Place::UNKNOWN);
        Stored {
            tasks: tables.tasks,
            tracks: tables.tracks,
            activities: Arc::new(tables.activities.finish().joined(joined)),
            file: tables.parts.as_ref().and_then(FileParts::shared),
        }
    }
}
