//! The result of a query: batch by batch to stdout or a file.

mod table;

use crate::engine;
use crate::failure::Failure;
use datafusion::arrow::csv;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::arrow::error::ArrowError;
use datafusion::arrow::json;
use datafusion::arrow::json::writer::JsonArray;
use datafusion::arrow::record_batch::RecordBatch;
use datafusion::execution::SendableRecordBatchStream;
use datafusion::parquet::arrow::ArrowWriter;
use datafusion::parquet::arrow::arrow_writer::ArrowWriterOptions;
use datafusion::parquet::basic::{Compression, ZstdLevel};
use datafusion::parquet::errors::ParquetError;
use datafusion::parquet::file::properties::WriterProperties;
use futures::StreamExt;
use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, BufWriter, IsTerminal, Write};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use table::TableWriter;
use taskscope_files::NewFile;
use taskscope_terminal::Shown;

/// Form of a result.
#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
pub enum Form {
    /// Aligned columns
    Table,
    /// Comma-separated values with a header
    Csv,
    /// An array of objects, one a row
    Json,
    /// A Parquet file
    Parquet,
}

/// Form and place of a result.
pub struct Target {
    /// Its form.
    pub form: Form,
    /// Its file; none for stdout.
    pub file: Option<PathBuf>,
    /// Rows of a table; 0 for all.
    pub rows: usize,
}

/// An error while a batch is written.
enum Refused {
    Io(io::Error),
    Content(String),
}

impl From<io::Error> for Refused {
    fn from(error: io::Error) -> Refused {
        Refused::Io(error)
    }
}

impl From<ArrowError> for Refused {
    fn from(error: ArrowError) -> Refused {
        match error {
            ArrowError::IoError(_, error) => Refused::Io(error),
            other => Refused::Content(other.to_string()),
        }
    }
}

impl From<ParquetError> for Refused {
    fn from(error: ParquetError) -> Refused {
        match error {
            ParquetError::External(error) => match error.downcast::<io::Error>() {
                Ok(error) => Refused::Io(*error),
                Err(other) => Refused::Content(other.to_string()),
            },
            other => Refused::Content(other.to_string()),
        }
    }
}

type Out = Box<dyn Write + Send>;

/// A target that remembers whether its reader has closed it: writers of formats turn errors into text.
struct Watched<W: Write> {
    out: W,
    closed: Arc<AtomicBool>,
}

impl<W: Write> Watched<W> {
    fn seen<T>(&self, result: io::Result<T>) -> io::Result<T> {
        if let Err(error) = &result
            && error.kind() == io::ErrorKind::BrokenPipe
        {
            self.closed.store(true, Ordering::Relaxed);
        }
        result
    }
}

impl<W: Write> Write for Watched<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let result = self.out.write(bytes);
        self.seen(result)
    }

    fn flush(&mut self) -> io::Result<()> {
        let result = self.out.flush();
        self.seen(result)
    }
}

enum Writer {
    Table(TableWriter<Out>),
    Csv(Box<csv::Writer<Out>>),
    Json(json::Writer<Out, JsonArray>),
    Parquet(Box<ArrowWriter<Out>>),
}

impl Writer {
    fn begin(target: &Target, schema: &SchemaRef, out: Out) -> Result<Writer, Refused> {
        Ok(match target.form {
            Form::Table => Writer::Table(TableWriter::on(out, schema, target.rows)),
            Form::Csv => {
                let mut writer = csv::WriterBuilder::new().with_header(true).build(out);
                // The header, if the result has no rows.
                writer.write(&RecordBatch::new_empty(schema.clone()))?;
                Writer::Csv(Box::new(writer))
            }
            Form::Json => Writer::Json(json::WriterBuilder::new().with_explicit_nulls(true).build(out)),
            Form::Parquet => {
                let level = ZstdLevel::try_new(1)?;
                let properties =
                    WriterProperties::builder().set_compression(Compression::ZSTD(level)).build();
                // Without the schema of Arrow every engine reads the file.
                let options =
                    ArrowWriterOptions::new().with_properties(properties).with_skip_arrow_metadata(true);
                Writer::Parquet(Box::new(ArrowWriter::try_new_with_options(out, schema.clone(), options)?))
            }
        })
    }

    fn write(&mut self, batch: &RecordBatch) -> Result<(), Refused> {
        match self {
            Writer::Table(writer) => writer.write(batch)?,
            Writer::Csv(writer) => writer.write(batch)?,
            Writer::Json(writer) => writer.write(batch)?,
            Writer::Parquet(writer) => writer.write(batch)?,
        }
        Ok(())
    }

    fn finish(self) -> Result<(), Refused> {
        match self {
            Writer::Table(writer) => Ok(writer.finish()?),
            Writer::Csv(writer) => Ok(writer.into_inner().flush()?),
            Writer::Json(mut writer) => {
                writer.finish()?;
                let mut out = writer.into_inner();
                out.write_all(b"\n")?;
                Ok(out.flush()?)
            }
            Writer::Parquet(writer) => Ok(writer.into_inner()?.flush()?),
        }
    }
}

impl Target {
    /// Checks what does not depend on the result.
    ///
    /// # Errors
    /// If a binary form has no file.
    pub fn check(&self) -> Result<(), Failure> {
        if self.form == Form::Parquet && self.file.is_none() {
            return Err(Failure::new("the form parquet is binary, and needs a file")
                .remedy("taskscope query --format parquet -o FILE.parquet …"));
        }
        Ok(())
    }

    fn place(&self) -> String {
        self.file.as_ref().map_or_else(|| "the result".to_owned(), |file| file.display().to_string())
    }

    /// Writes a text.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn write_text(&self, text: &str) -> Result<(), Failure> {
        let failed = |error: io::Error| Failure::output(&self.place(), &error);
        match &self.file {
            Some(file) => {
                taskscope_files::write_file(file, |out| out.write_all(text.as_bytes())).map_err(failed)
            }
            None => {
                let mut out = Shown::without_styles(io::stdout().lock());
                out.write_all(text.as_bytes()).and_then(|()| out.flush()).map_err(failed)
            }
        }
    }

    /// Writes the batches of a result as they come.
    ///
    /// # Errors
    /// If the query fails, the form cannot hold the result, or it cannot be written.
    pub async fn write(&self, mut stream: SendableRecordBatchStream, sql: &str) -> Result<(), Failure> {
        let schema = stream.schema();
        if matches!(self.form, Form::Json | Form::Parquet) {
            let mut names = BTreeSet::new();
            if let Some(twice) = schema.fields().iter().find(|field| !names.insert(field.name())) {
                return Err(Failure::new(format!("two columns of the result are named {}", twice.name()))
                    .why("each value of a row needs a name of its own in this form")
                    .remedy("SELECT column AS other_name"));
            }
        }
        let closed = Arc::new(AtomicBool::new(false));
        let failed = |refused: Refused| match refused {
            Refused::Content(_) if closed.load(Ordering::Relaxed) => {
                Failure::output(&self.place(), &io::ErrorKind::BrokenPipe.into())
            }
            Refused::Io(error) => Failure::output(&self.place(), &error),
            Refused::Content(why) => {
                let form = format!("{:?}", self.form).to_lowercase();
                Failure::new(format!("the form {form} cannot hold the result"))
                    .why(why)
                    .remedy("--format json")
            }
        };
        let file = match &self.file {
            Some(path) => Some(NewFile::create(path).map_err(|error| failed(error.into()))?),
            None => None,
        };
        let out = open(file.as_ref().map(NewFile::file), &closed).map_err(|error| failed(error.into()))?;
        let mut writer = Writer::begin(self, &schema, out).map_err(failed)?;
        while let Some(batch) = stream.next().await {
            writer.write(&batch.map_err(|error| engine::failure(&error, sql))?).map_err(failed)?;
        }
        writer.finish().map_err(failed)?;
        file.map_or(Ok(()), NewFile::commit).map_err(|error| failed(error.into()))
    }
}

/// The file, or stdout; text on a terminal is escaped.
fn open(file: Option<&File>, closed: &Arc<AtomicBool>) -> io::Result<Out> {
    let stdout = || Watched { out: io::stdout(), closed: closed.clone() };
    Ok(match file {
        Some(file) => Box::new(BufWriter::new(file.try_clone()?)),
        None if io::stdout().is_terminal() => Box::new(Shown::without_styles(BufWriter::new(stdout()))),
        None => Box::new(BufWriter::new(stdout())),
    })
}
