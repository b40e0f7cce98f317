//! Paraver traces of views, equal to ovniemu's: the same lines, types, values, labels and rows.
//!
//! [`ParaverWriter`] hears of changes and hands them in batches to one thread per file, which
//! formats and writes. Where one could not be written whole, all are removed, and the error is returned; so they are
//! where the writer is dropped before its end: no output is silently short. `.pcf` and `.row` come last, and earlier
//! ones go first: a killed writer leaves a `.prv` without them.

mod cfg;
mod labels;
mod long_file;
pub mod nanos;
mod prv;
mod queues;

pub use cfg::write_configurations;
pub use labels::{write_pcf, write_row};
use prv::{PrvFile, move_end};
pub use queues::write_queues;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;
use taskscope_execution::view::{View, ViewChange, ViewDescription, ViewObserver};

/// Changes in a batch.
const BATCH: usize = 8192;
/// Batches that may wait for a file's thread.
const WAITING_BATCHES: usize = 8;

/// A view to write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ViewFile {
    /// Which family.
    pub view: View,
    /// Its number of rows.
    pub rows: usize,
}

/// Writes the `.prv` files of several families of views; `finish` adds what describes them.
pub struct ParaverWriter {
    directory: PathBuf,
    /// In the order of [`View::ALL`].
    lanes: [Option<Lane>; View::ALL.len()],
    gzip: bool,
    /// Where the views end, if earlier than was said at first.
    earlier_end_ns: Option<i64>,
}

struct Lane {
    batch: Vec<ViewChange>,
    sender: Option<SyncSender<Vec<ViewChange>>>,
    spent: Receiver<Vec<ViewChange>>,
    thread: Option<JoinHandle<io::Result<()>>>,
    path: PathBuf,
    rows: usize,
}

impl ParaverWriter {
    /// Starts a file for each view in `directory`. `end_ns` is the time of the last event.
    ///
    /// # Errors
    /// A file could not be created.
    pub fn create(
        directory: &Path,
        views: &[ViewFile],
        end_ns: i64,
        gzip: bool,
    ) -> io::Result<ParaverWriter> {
        std::fs::create_dir_all(directory)?;
        // Views of an earlier run that are not written now would be taken for those of this trace. What cannot be removed
        // will not be written either, and that is told. A pipe in the place of a view is somebody's who reads it.
        let now = if gzip { "prv.gz" } else { "prv" };
        for view in View::ALL {
            let is_written = views.iter().any(|file| file.view == view);
            let endings = ["prv", "prv.gz", "pcf", "row"].into_iter();
            for ending in endings.filter(|ending| !(is_written && *ending == now)) {
                let path = directory.join(view.file_name()).with_extension(ending);
                if path.symlink_metadata().is_ok_and(|metadata| metadata.is_file()) {
                    let _ = std::fs::remove_file(path);
                }
            }
        }
        let lanes = View::ALL.map(|_| None);
        let mut writer =
            ParaverWriter { directory: directory.to_path_buf(), lanes, gzip, earlier_end_ns: None };
        for file in views {
            writer.start(*file, end_ns)?;
        }
        Ok(writer)
    }

    fn start(&mut self, file: ViewFile, end_ns: i64) -> io::Result<()> {
        let base = self.directory.join(file.view.file_name());
        let path = base.with_extension(if self.gzip { "prv.gz" } else { "prv" });
        let prv =
            PrvFile::create(&path, file.rows, end_ns, self.gzip).map_err(|error| naming(&path, error))?;
        self.lanes[file.view as usize] = Some(Lane::start(prv, path, file.rows));
        Ok(())
    }

    /// Says that the views end at `end_ns`, where that is earlier than was said at first.
    pub fn end_earlier(&mut self, end_ns: i64) {
        self.earlier_end_ns = Some(end_ns);
    }

    /// Writes what is left, closes the `.prv` files, and writes `.pcf` and `.row` beside them.
    ///
    /// # Errors
    /// The first error of any file. Where a `.prv` file could not be written, all are removed: playing stopped for all
    /// of them, and none is whole. Where what describes a view could not be written, that view is removed.
    pub fn finish(mut self, mut describe: impl FnMut(View) -> Option<ViewDescription>) -> io::Result<()> {
        let (earlier_end_ns, gzip) = (self.earlier_end_ns, self.gzip);
        let close = |result: io::Result<()>, lane: &mut Lane| {
            let closed = lane.close().and_then(|()| match earlier_end_ns {
                Some(end_ns) => {
                    move_end(&lane.path, lane.rows, end_ns, gzip).map_err(|error| naming(&lane.path, error))
                }
                None => Ok(()),
            });
            result.and(closed)
        };
        self.lanes.iter_mut().flatten().fold(Ok(()), close)?;
        let mut result = Ok(());
        for (view, lane) in View::ALL.iter().zip(std::mem::take(&mut self.lanes)) {
            let Some(mut lane) = lane else { continue };
            let description = describe(*view).unwrap_or_default();
            let base = self.directory.join(view.file_name());
            let written = write_whole(&base.with_extension("pcf"), |out| write_pcf(out, &description))
                .and_then(|()| write_whole(&base.with_extension("row"), |out| write_row(out, &description)))
                .and_then(|()| write_configurations(&self.directory.join("cfg"), *view, &description));
            if written.is_err() {
                lane.discard();
                for ending in ["pcf", "row"] {
                    let _ = std::fs::remove_file(base.with_extension(ending));
                }
            }
            result = result.and(written);
        }
        result
    }

    /// Whether a file can no longer be written; playing on is of no use then.
    pub fn has_failed(&self) -> bool {
        self.lanes.iter().flatten().any(|lane| lane.sender.is_none())
    }
}

/// What was not finished is removed.
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
    fn start(mut prv: PrvFile, path: PathBuf, rows: usize) -> Lane {
        let (sender, receiver) = sync_channel::<Vec<ViewChange>>(WAITING_BATCHES);
        let (give_back, spent) = sync_channel(WAITING_BATCHES + 1);
        let thread = std::thread::spawn(move || {
            for mut batch in receiver {
                prv.write(&batch)?;
                batch.clear();
                // Batches circulate; a full way back only costs an allocation.
                let _ = give_back.try_send(batch);
            }
            prv.finish()
        });
        Lane {
            batch: Vec::with_capacity(BATCH),
            sender: Some(sender),
            spent,
            thread: Some(thread),
            path,
            rows,
        }
    }

    fn send(&mut self) {
        let next = self.spent.try_recv().unwrap_or_else(|_| Vec::with_capacity(BATCH));
        let batch = std::mem::replace(&mut self.batch, next);
        // The other end is gone only after an error, which `close` fetches.
        if self.sender.as_ref().is_some_and(|sender| sender.send(batch).is_err()) {
            self.sender = None;
        }
    }

    /// Removes the file. Why that is done matters more than what happens to the remains.
    fn discard(&mut self) {
        let _ = self.close();
        let _ = std::fs::remove_file(&self.path);
    }

    fn close(&mut self) -> io::Result<()> {
        self.send();
        self.sender = None;
        let result = match self.thread.take().map(JoinHandle::join) {
            Some(Ok(result)) => result,
            _ => Err(io::Error::other("the thread that writes the file has stopped")),
        };
        result.map_err(|error| naming(&self.path, error))
    }
}

/// Writes a file through a buffer, and removes it if that fails.
pub(crate) fn write_whole(
    path: &Path,
    write: impl FnOnce(&mut io::BufWriter<std::fs::File>) -> io::Result<()>,
) -> io::Result<()> {
    let attempt = || {
        let mut out = io::BufWriter::new(std::fs::File::create(path)?);
        write(&mut out)?;
        out.into_inner().map_err(io::IntoInnerError::into_error)?;
        Ok(())
    };
    let result = attempt();
    if result.is_err() {
        let _ = std::fs::remove_file(path);
    }
    result.map_err(|error| naming(path, error))
}

/// The same error, with the file's name before it.
fn naming(path: &Path, error: io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{}: {error}", path.display()))
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
        [ViewFile { view: View::Thread, rows: 1 }, ViewFile { view: View::Cpu, rows: 1 }];

    #[test]
    fn a_view_that_cannot_be_begun_leaves_none_of_the_others() {
        let directory = tempfile::tempdir().unwrap();
        std::fs::create_dir(directory.path().join("cpu.prv")).unwrap();
        assert!(ParaverWriter::create(directory.path(), &FILES, 10, false).is_err());
        assert_eq!(names(directory.path()), ["cpu.prv"]);
    }

    /// As on a full disk, where the one that fails makes room for the others.
    #[test]
    fn a_view_that_cannot_be_written_on_leaves_none_of_the_others() {
        let directory = tempfile::tempdir().unwrap();
        let pipe = directory.path().join("thread.prv");
        assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        // Whoever reads it goes away.
        let reader = std::thread::spawn(move || drop(std::fs::File::open(pipe).unwrap()));
        let mut writer = ParaverWriter::create(directory.path(), &FILES, 10, false).unwrap();
        reader.join().unwrap();
        let change = |view| ViewChange { view, row: 0, view_type: 1, value: 1, time_ns: 5 };
        writer.view_change(change(View::Cpu));
        while !writer.has_failed() {
            writer.view_change(change(View::Thread));
        }
        let error = writer.finish(|_| Some(ViewDescription::default())).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::BrokenPipe);
        assert!(error.to_string().contains("thread.prv: "), "{error}");
        assert!(names(directory.path()).is_empty(), "{:?}", names(directory.path()));
    }

    #[test]
    fn views_whose_writer_is_dropped_are_removed() {
        let directory = tempfile::tempdir().unwrap();
        drop(ParaverWriter::create(directory.path(), &FILES, 10, false).unwrap());
        assert!(names(directory.path()).is_empty(), "{:?}", names(directory.path()));
    }

    #[test]
    fn views_of_an_earlier_run_do_not_stay_beside_others() {
        let directory = tempfile::tempdir().unwrap();
        let write = |views: &[ViewFile], gzip: bool| {
            let writer = ParaverWriter::create(directory.path(), views, 10, gzip).unwrap();
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
            let writer = ParaverWriter::create(directory.path(), &FILES, 10, false).unwrap();
            let begun = names(directory.path());
            assert!(!begun.contains(&"thread.pcf".to_owned()) && !begun.contains(&"cpu.row".to_owned()));
            writer.finish(|_| None).unwrap();
            assert!(names(directory.path()).contains(&"thread.pcf".to_owned()));
        }
    }
}
