//! `taskscope export` to formats that show a run over time: preview, losses.

use crate::output::results;
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::process::ExitCode;
use taskscope_export::Folder;
use taskscope_export::chrome::ChromeWriter;
use taskscope_export::csv::CsvWriter;
use taskscope_export::firefox::FirefoxWriter;
use taskscope_export::otf2::{DIRECTORIES, Otf2Writer};
use taskscope_export::paje::PajeWriter;
use taskscope_export::paraver::RunWriter;
use taskscope_export::perfetto::PerfettoWriter;
use taskscope_export::timeline::{Content, Export, Held, Timeline, holdings, losses};
use taskscope_files::NewDirectory;
use taskscope_view::format::count;

/// Size from which viewers in a browser fail to open a file, bytes.
const LARGE: u64 = 1_500_000_000;

/// A format over time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum OverTime {
    /// Perfetto's protocol buffer.
    Perfetto,
    /// Trace events of Chrome.
    Chrome,
    /// Pajé's trace.
    Paje,
    /// An archive of OTF2, which is a directory.
    Otf2,
    /// A Paraver trace, which is a directory.
    Paraver,
    /// A profile of the Firefox Profiler.
    Firefox,
    /// A table.
    Csv,
}

impl OverTime {
    /// Whether it is a directory of files.
    pub fn is_directory(self) -> bool {
        matches!(self, OverTime::Otf2 | OverTime::Paraver)
    }

    /// Whether it has a form for samples, whose call paths need names then.
    pub fn holds_samples(self) -> bool {
        let mut nothing = io::sink();
        let export = self.export(&mut nothing, Path::new("."));
        matches!(export.holds(Content::Samples), Held::As(_))
    }

    /// Its writer. The bytes of a directory are written without the names of their files, to be counted. Unnamed files
    /// that the writer needs are beside `place`.
    fn export<'w>(self, out: &'w mut dyn Write, place: &Path) -> Box<dyn Export + 'w> {
        match self {
            OverTime::Perfetto => Box::new(PerfettoWriter::new(BufWriter::new(out))),
            OverTime::Chrome => Box::new(ChromeWriter::new(BufWriter::new(out))),
            OverTime::Paje => Box::new(PajeWriter::new(BufWriter::new(out))),
            OverTime::Otf2 => Box::new(Otf2Writer::new(Joined(out))),
            OverTime::Paraver => Box::new(RunWriter::new(Joined(out))),
            OverTime::Firefox => Box::new(FirefoxWriter::new(BufWriter::new(out), place)),
            OverTime::Csv => Box::new(CsvWriter::new(BufWriter::new(out))),
        }
    }

    /// Writes a timeline. Unnamed files that the writer needs are beside `place`, else in the directory for temporary files.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn write(self, timeline: &Timeline<'_>, out: &mut dyn Write, place: Option<&Path>) -> io::Result<()> {
        let temporary = std::env::temp_dir().join("taskscope");
        // `/dev/stdout` is written in place: its directory is none for files.
        let place = place.filter(|place| !place.starts_with("/dev") && !place.starts_with("/proc"));
        timeline.play(self.export(out, place.unwrap_or(&temporary)).as_mut())
    }

    /// Writes a timeline into a new directory.
    ///
    /// # Errors
    /// If the directory is not empty, or cannot be written.
    pub fn write_directory(self, timeline: &Timeline<'_>, directory: &Path) -> io::Result<()> {
        let new = |below: &[&str]| {
            let new = NewDirectory::create(directory)?;
            below.iter().try_for_each(|name| std::fs::create_dir(new.path().join(name)))?;
            io::Result::Ok(new)
        };
        let complete = match self {
            OverTime::Paraver => {
                let mut writer = RunWriter::new(new(&[])?);
                timeline.play(&mut writer)?;
                writer.into_inner()
            }
            _ => {
                let mut writer = Otf2Writer::new(new(&DIRECTORIES)?);
                timeline.play(&mut writer)?;
                writer.into_inner()
            }
        };
        complete.commit()
    }
}

/// All files of a folder as one stream of bytes.
struct Joined<'w>(&'w mut dyn Write);

impl Folder for Joined<'_> {
    fn append(&mut self, _: &str, bytes: &[u8]) -> io::Result<()> {
        self.0.write_all(bytes)
    }
}

/// Counts bytes, and keeps none.
struct Counted(u64);

impl Write for Counted {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 += bytes.len() as u64;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Prints size and content, and what the format cannot hold.
///
/// # Errors
/// If it cannot be printed.
pub fn preview(format: OverTime, name: &str, timeline: &Timeline<'_>) -> anyhow::Result<ExitCode> {
    let mut counted = Counted(0);
    format.write(timeline, &mut counted, None)?;
    let mut out = results();
    writeln!(out, "{name}: {} bytes in {} lanes", count(counted.0), timeline.lanes().len())?;
    let mut nothing = io::sink();
    let export = format.export(&mut nothing, Path::new("."));
    for row in holdings(timeline, export.as_ref()) {
        let form = match row.held {
            Held::As(form) => form.to_owned(),
            Held::Not(why) => format!("lost: {why}"),
        };
        writeln!(out, "  {:>12} {:<31} {form}", count(row.count), row.content)?;
    }
    for loss in timeline.dropped() {
        writeln!(out, "  {:>12} {:<31} lost: {}", count(loss.count), loss.content, loss.why)?;
    }
    if counted.0 > LARGE {
        writeln!(out, "  large: viewers in browsers open some 2 GB; select a part with --range")?;
    }
    out.flush()?;
    Ok(ExitCode::SUCCESS)
}

/// Prints a note for each content that is lost.
pub fn print_losses(format: OverTime, name: &str, timeline: &Timeline<'_>) {
    let mut nothing = io::sink();
    let export = format.export(&mut nothing, Path::new("."));
    for loss in losses(timeline, export.as_ref()) {
        eprintln!("note: {} {} are not in {name}: {}", loss.count, loss.content, loss.why);
    }
}
