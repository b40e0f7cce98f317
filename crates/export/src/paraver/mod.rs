//! Paraver traces: of views, equal to ovniemu's ([`ParaverWriter`]), and of a run over time ([`RunWriter`]).
//!
//! Traces of views have ovniemu's lines, types, values, labels and rows. [`ParaverWriter`] receives changes and passes them in batches to one thread per file, which formats and writes. If
//! one file cannot be written completely, all are removed, and the error is returned. They are also removed if the
//! writer is dropped before its end: no output is silently short. Files get their names when they are complete.

mod cfg;
mod labels;
mod long_file;
pub mod nanos;
mod prv;
mod queues;
mod run;
mod whole_file;

pub use cfg::write_configurations;
pub use labels::{write_pcf, write_row};
use prv::{PrvFile, move_end};
pub use queues::write_queues;
pub use run::RunWriter;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, SendError, SyncSender, sync_channel};
use std::thread::JoinHandle;
use taskscope_execution::view::{ViewChange, ViewDescription, ViewFamily, ViewObserver};
use taskscope_files::{NewFile, remove_regular};
use whole_file::naming;
pub(crate) use whole_file::write_whole;

/// Changes in a batch.
const BATCH: usize = 8192;
/// Batches that may wait for a file's thread.
const WAITING_BATCHES: usize = 8;

/// A view to write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ViewFile {
    /// Its family.
    pub view: ViewFamily,
    /// Its number of rows.
    pub rows: usize,
}

/// Writes the `.prv` files of several families of views; `finish` adds their descriptions.
pub struct ParaverWriter {
    directory: PathBuf,
    /// Lanes in the order of [`ViewFamily::ALL`].
    lanes: [Option<Lane>; ViewFamily::ALL.len()],
    gzip: bool,
    /// Whether a pipe in the place of a view is written as it is.
    pipes: bool,
    /// The end of the views, if earlier than announced.
    earlier_end_ns: Option<i64>,
}

struct Lane {
    batch: Vec<ViewChange>,
    writer: LaneWriter,
    has_failed: bool,
    path: PathBuf,
    rows: usize,
}

/// The writer that turns a file's changes into records.
enum LaneWriter {
    Thread {
        sender: SyncSender<Vec<ViewChange>>,
        spent: Receiver<Vec<ViewChange>>,
        thread: JoinHandle<io::Result<NewFile>>,
    },
    /// The replaying thread itself, if no thread can be created.
    Here(Box<PrvFile>),
    /// The whole file under its temporary name.
    Written(NewFile),
    Failed(io::Error),
    /// The file has its name, or is removed.
    Closed,
}

impl ParaverWriter {
    /// Starts a file for each view in `directory`. `end_ns` is the time of the last event. With `pipes`, an existing
    /// pipe in the place of a view has a reader; in a directory of unknown origin it would block for ever.
    ///
    /// # Errors
    /// A file could not be created.
    pub fn create(
        directory: &Path,
        views: &[ViewFile],
        end_ns: i64,
        gzip: bool,
        pipes: bool,
    ) -> io::Result<ParaverWriter> {
        std::fs::create_dir_all(directory)?;
        // Views of an earlier run that are not written now would be taken for those of this trace, and the others take
        // room on the disk.
        for view in ViewFamily::ALL {
            for ending in ["prv", "prv.gz", "pcf", "row"] {
                remove_regular(&directory.join(view.file_name()).with_extension(ending));
            }
        }
        let lanes = ViewFamily::ALL.map(|_| None);
        let mut writer =
            ParaverWriter { directory: directory.to_path_buf(), lanes, gzip, pipes, earlier_end_ns: None };
        for file in views {
            writer.start(*file, end_ns)?;
        }
        Ok(writer)
    }

    fn start(&mut self, file: ViewFile, end_ns: i64) -> io::Result<()> {
        let base = self.directory.join(file.view.file_name());
        let path = base.with_extension(if self.gzip { "prv.gz" } else { "prv" });
        let create = if self.pipes { NewFile::create_or_pipe } else { NewFile::create };
        let prv = create(&path)
            .and_then(|new| PrvFile::begin(new, file.rows, end_ns, self.gzip))
            .map_err(|error| naming(&path, error))?;
        self.lanes[file.view as usize] = Some(Lane::start(prv, path, file.rows));
        Ok(())
    }

    /// Sets the end of the views to `end_ns`, if that is earlier than announced.
    pub fn end_earlier(&mut self, end_ns: i64) {
        self.earlier_end_ns = Some(end_ns);
    }

    /// Writes the rest, closes the `.prv` files, and writes `.pcf` and `.row` beside them.
    ///
    /// # Errors
    /// The first error of any file. If a `.prv` file could not be written, all are removed: replay stopped for
    /// all of them, and none is complete. If the description of a view could not be written, that view is removed.
    pub fn finish(
        mut self,
        mut describe: impl FnMut(ViewFamily) -> Option<ViewDescription>,
    ) -> io::Result<()> {
        let (earlier_end_ns, gzip) = (self.earlier_end_ns, self.gzip);
        let close = |result: io::Result<()>, lane: &mut Lane| {
            let closed = lane.close().and_then(|()| match (earlier_end_ns, &lane.writer) {
                (Some(end_ns), LaneWriter::Written(file)) => {
                    move_end(file, lane.rows, end_ns, gzip).map_err(|error| naming(&lane.path, error))
                }
                _ => Ok(()),
            });
            result.and(closed)
        };
        self.lanes.iter_mut().flatten().fold(Ok(()), close)?;
        let mut result = Ok(());
        for (view, lane) in ViewFamily::ALL.iter().zip(std::mem::take(&mut self.lanes)) {
            let Some(mut lane) = lane else { continue };
            let description = describe(*view).unwrap_or_default();
            let base = self.directory.join(view.file_name());
            let written = lane
                .commit()
                .and_then(|()| write_whole(&base.with_extension("pcf"), |out| write_pcf(out, &description)))
                .and_then(|()| write_whole(&base.with_extension("row"), |out| write_row(out, &description)))
                .and_then(|()| write_configurations(&self.directory, *view, &description));
            if written.is_err() {
                for ending in [if gzip { "prv.gz" } else { "prv" }, "pcf", "row"] {
                    remove_regular(&base.with_extension(ending));
                }
            }
            result = result.and(written);
        }
        result
    }

    /// Whether a file can no longer be written; playing on is of no use then.
    pub fn has_failed(&self) -> bool {
        self.lanes.iter().flatten().any(|lane| lane.has_failed)
    }
}

/// Removes unfinished files.
impl Drop for ParaverWriter {
    fn drop(&mut self) {
        self.lanes.iter_mut().flatten().for_each(Lane::discard);
    }
}

impl ViewObserver for ParaverWriter {
    #[inline]
    fn view_change(&mut self, change: ViewChange) {
        let Some(lane) = &mut self.lanes[change.view as usize] else { return };
        lane.batch.push(change);
        if lane.batch.len() == BATCH {
            lane.send();
        }
    }
}

impl Lane {
    fn start(prv: PrvFile, path: PathBuf, rows: usize) -> Lane {
        let (sender, receiver) = sync_channel::<Vec<ViewChange>>(WAITING_BATCHES);
        let (give_back, spent) = sync_channel(WAITING_BATCHES + 1);
        // A failed spawn drops its closure, so the file is passed over a channel.
        let (hand_over, taken) = sync_channel::<PrvFile>(1);
        let thread = std::thread::Builder::new().spawn(move || {
            let mut prv = taken.recv().map_err(|_| io::Error::other("the view was given up"))?;
            for mut batch in receiver {
                prv.write(&batch)?;
                batch.clear();
                // Batches circulate; a full way back only costs an allocation.
                let _ = give_back.try_send(batch);
            }
            prv.finish()
        });
        let writer = match thread {
            Ok(thread) => match hand_over.send(prv) {
                Ok(()) => LaneWriter::Thread { sender, spent, thread },
                Err(SendError(prv)) => LaneWriter::Here(Box::new(prv)),
            },
            Err(_) => LaneWriter::Here(Box::new(prv)),
        };
        Lane { batch: Vec::with_capacity(BATCH), writer, has_failed: false, path, rows }
    }

    fn send(&mut self) {
        match &mut self.writer {
            LaneWriter::Thread { sender, spent, .. } => {
                let next = spent.try_recv().unwrap_or_else(|_| Vec::with_capacity(BATCH));
                // The other end is gone only after an error, which `close` fetches.
                self.has_failed |= sender.send(std::mem::replace(&mut self.batch, next)).is_err();
            }
            LaneWriter::Here(prv) => {
                let written = prv.write(&self.batch);
                self.batch.clear();
                if let Err(error) = written {
                    self.has_failed = true;
                    self.writer = LaneWriter::Failed(error);
                }
            }
            _ => self.batch.clear(),
        }
    }

    /// Ends the thread and removes its file.
    fn discard(&mut self) {
        // Why that is done matters more than how the thread ended.
        let _ = self.close();
        self.writer = LaneWriter::Closed;
    }

    fn close(&mut self) -> io::Result<()> {
        self.send();
        let written = match std::mem::replace(&mut self.writer, LaneWriter::Closed) {
            LaneWriter::Thread { sender, thread, .. } => {
                drop(sender);
                let stopped = |_| Err(io::Error::other("the thread that writes the file has stopped"));
                thread.join().unwrap_or_else(stopped)
            }
            LaneWriter::Here(prv) => prv.finish(),
            LaneWriter::Failed(error) => Err(error),
            other => {
                self.writer = other;
                return Ok(());
            }
        };
        self.writer = LaneWriter::Written(written.map_err(|error| naming(&self.path, error))?);
        Ok(())
    }

    /// Gives the file its name.
    fn commit(&mut self) -> io::Result<()> {
        match std::mem::replace(&mut self.writer, LaneWriter::Closed) {
            LaneWriter::Written(file) => file.commit().map_err(|error| naming(&self.path, error)),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(directory: &Path) -> Vec<String> {
        let entries = std::fs::read_dir(directory).unwrap();
        let mut names: Vec<_> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    const FILES: [ViewFile; 2] =
        [ViewFile { view: ViewFamily::Thread, rows: 1 }, ViewFile { view: ViewFamily::Cpu, rows: 1 }];

    #[test]
    fn a_view_that_cannot_be_begun_leaves_none_of_the_others() {
        let directory = tempfile::tempdir().unwrap();
        std::fs::create_dir(directory.path().join("cpu.prv")).unwrap();
        assert!(ParaverWriter::create(directory.path(), &FILES, 10, false, false).is_err());
        assert_eq!(names(directory.path()), ["cpu.prv"]);
    }

    #[test]
    fn views_are_not_written_through_links_and_pipes() {
        for place in ["thread.prv", "cpu.pcf", "thread.row", "cfg", "cfg/cpu"] {
            for pipe in [false, true] {
                let directory = tempfile::tempdir().unwrap();
                let (out, victim) = (directory.path().join("out"), directory.path().join("victim"));
                std::fs::create_dir_all(out.join(place).parent().unwrap()).unwrap();
                match place.starts_with("cfg") {
                    true => std::fs::create_dir(&victim).unwrap(),
                    false => std::fs::write(&victim, "precious").unwrap(),
                }
                match pipe {
                    true => {
                        let made = std::process::Command::new("mkfifo").arg(out.join(place)).status();
                        assert!(made.unwrap().success());
                    }
                    false => std::os::unix::fs::symlink(&victim, out.join(place)).unwrap(),
                }
                let written = ParaverWriter::create(&out, &FILES, 10, false, false)
                    .and_then(|writer| writer.finish(|_| Some(ViewDescription::default())));
                let error = written.unwrap_err().to_string();
                assert!(error.contains(place), "{place}: {error}");
                match place.starts_with("cfg") {
                    true => assert!(names(&victim).is_empty(), "{place}"),
                    false => assert_eq!(std::fs::read(&victim).unwrap(), b"precious"),
                }
                assert!(!names(&out).iter().any(|name| name.contains(".part")), "{place}");
            }
        }
    }

    #[test]
    fn dropping_a_writer_removes_its_views() {
        let directory = tempfile::tempdir().unwrap();
        drop(ParaverWriter::create(directory.path(), &FILES, 10, false, false).unwrap());
        assert!(names(directory.path()).is_empty(), "{:?}", names(directory.path()));
    }

    #[test]
    fn views_of_an_earlier_run_do_not_stay_beside_others() {
        let directory = tempfile::tempdir().unwrap();
        let write = |views: &[ViewFile], gzip: bool| {
            let writer = ParaverWriter::create(directory.path(), views, 10, gzip, false).unwrap();
            writer.finish(|_| Some(ViewDescription::default())).unwrap();
        };
        write(&FILES, true);
        write(&FILES[..1], false);
        let left: Vec<_> = names(directory.path()).into_iter().filter(|name| name != "cfg").collect();
        assert_eq!(left, ["thread.pcf", "thread.prv", "thread.row"]);
    }

    #[test]
    fn labels_of_earlier_views_do_not_stay_beside_those_that_are_being_written() {
        let directory = tempfile::tempdir().unwrap();
        for _ in 0..2 {
            let writer = ParaverWriter::create(directory.path(), &FILES, 10, false, false).unwrap();
            let begun = names(directory.path());
            assert!(!begun.contains(&"thread.pcf".to_owned()) && !begun.contains(&"cpu.row".to_owned()));
            writer.finish(|_| None).unwrap();
            assert!(names(directory.path()).contains(&"thread.pcf".to_owned()));
        }
    }
}
