//! Paraver traces of views, equal to ovniemu's: the same lines, types, values, labels and rows.
//!
//! [`ParaverWriter`] hears of changes and hands them in batches to one thread per file, which
//! formats and writes. A file that could not be written whole is removed, and the error is returned:
//! no output is silently short.

mod cfg;
mod labels;
mod long_file;
pub mod nanos;
mod prv;
mod queues;

pub use cfg::write_configurations;
pub use labels::{write_pcf, write_row};
use prv::PrvFile;
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
    /// Whether to write `cfg/`: only where there is none.
    configurations: bool,
    /// In the order of [`View::ALL`].
    lanes: [Option<Lane>; View::ALL.len()],
}

struct Lane {
    batch: Vec<ViewChange>,
    sender: Option<SyncSender<Vec<ViewChange>>>,
    spent: Receiver<Vec<ViewChange>>,
    thread: Option<JoinHandle<io::Result<()>>>,
    path: PathBuf,
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
        let mut lanes = View::ALL.map(|_| None);
        for file in views {
            let suffix = if gzip { "prv.gz" } else { "prv" };
            let path = directory.join(format!("{}.{suffix}", file.view.file_name()));
            let prv = PrvFile::create(&path, file.rows, end_ns, gzip)?;
            lanes[file.view as usize] = Some(Lane::start(prv, path));
        }
        let configurations = !directory.join("cfg").exists();
        Ok(ParaverWriter { directory: directory.to_path_buf(), configurations, lanes })
    }

    /// Writes what is left, closes the `.prv` files, and writes `.pcf` and `.row` beside them.
    ///
    /// # Errors
    /// The first error of any file. Files that are not whole are removed.
    pub fn finish(mut self, mut describe: impl FnMut(View) -> Option<ViewDescription>) -> io::Result<()> {
        let mut result = Ok(());
        for (view, lane) in View::ALL.iter().zip(&mut self.lanes) {
            let Some(lane) = lane else { continue };
            let written = lane.close().and_then(|()| {
                let description = describe(*view).unwrap_or_default();
                let base = self.directory.join(view.file_name());
                write_whole(&base.with_extension("pcf"), |out| write_pcf(out, &description))?;
                write_whole(&base.with_extension("row"), |out| write_row(out, &description))?;
                if self.configurations {
                    write_configurations(&self.directory.join("cfg"), *view, &description)?;
                }
                Ok(())
            });
            if written.is_err() {
                // The error that is returned matters more than what happens to the remains.
                let _ = std::fs::remove_file(&lane.path);
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
    fn start(mut prv: PrvFile, path: PathBuf) -> Lane {
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
        Lane { batch: Vec::with_capacity(BATCH), sender: Some(sender), spent, thread: Some(thread), path }
    }

    fn send(&mut self) {
        let next = self.spent.try_recv().unwrap_or_else(|_| Vec::with_capacity(BATCH));
        let batch = std::mem::replace(&mut self.batch, next);
        // The other end is gone only after an error, which `close` fetches.
        if self.sender.as_ref().is_some_and(|sender| sender.send(batch).is_err()) {
            self.sender = None;
        }
    }

    fn close(&mut self) -> io::Result<()> {
        self.send();
        self.sender = None;
        match self.thread.take().map(JoinHandle::join) {
            Some(Ok(result)) => result,
            _ => Err(io::Error::other("the thread that writes the file has stopped")),
        }
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
    result
}
