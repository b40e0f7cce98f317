//! A Parquet file of one table.

use crate::error::TableError;
use crate::rows::{Buffer, Cells, ROW_GROUP, Rows, Value};
use crate::schema::{Column, Table, Type, VERSION};
use parquet::basic::{Compression, Encoding, LogicalType, Repetition, Type as Physical, ZstdLevel};
use parquet::data_type::{BoolType, ByteArrayType, DoubleType, Int32Type, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::{WriterProperties, WriterPropertiesPtr};
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::{ColumnPath, Type as SchemaType, TypePtr};
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use taskscope_files::NewFile;

/// The encoded bytes of a file: written, or only counted.
enum Out {
    File(BufWriter<File>),
    Count,
}

impl Write for Out {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Out::File(file) => file.write(bytes),
            Out::Count => Ok(bytes.len()),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Out::File(file) => file.flush(),
            Out::Count => Ok(()),
        }
    }
}

/// A file while it is written.
pub(crate) struct TableFile {
    /// Its path, and the file; `None` if bytes are only counted.
    target: Option<(PathBuf, NewFile)>,
    writer: SerializedFileWriter<Out>,
    rows: Rows,
    written: u64,
}

impl TableFile {
    /// Begins a file; without a path its bytes are only counted.
    ///
    /// # Errors
    /// Those of the system.
    pub fn create(table: &'static Table, path: Option<&Path>) -> Result<TableFile, TableError> {
        let (target, out) = match path {
            None => (None, Out::Count),
            Some(path) => {
                let io = |error| TableError::Write(path.to_owned(), error);
                let target = NewFile::create(path).map_err(io)?;
                let out = Out::File(BufWriter::new(target.file().try_clone().map_err(io)?));
                (Some((path.to_owned(), target)), out)
            }
        };
        let writer = SerializedFileWriter::new(out, schema(table)?, properties(table)?)?;
        Ok(TableFile { target, writer, rows: Rows::of(table), written: 0 })
    }

    /// Adds a row, and writes a full row group.
    ///
    /// # Errors
    /// If the row does not fit the table, or the file cannot be written.
    pub fn push<const N: usize>(&mut self, row: [Value<'_>; N]) -> Result<(), TableError> {
        self.rows.push(row)?;
        if self.rows.len() >= ROW_GROUP { self.end_group() } else { Ok(()) }
    }

    /// Ends the row group.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn end_group(&mut self) -> Result<(), TableError> {
        if self.rows.is_empty() {
            return Ok(());
        }
        let mut group = self.writer.next_row_group()?;
        for Buffer { cells, levels } in &self.rows.buffers {
            let Some(mut column) = group.next_column()? else { break };
            let levels = (!levels.is_empty()).then_some(levels.as_slice());
            match cells {
                Cells::Int32(values) => column.typed::<Int32Type>().write_batch(values, levels, None)?,
                Cells::Int64(values) => column.typed::<Int64Type>().write_batch(values, levels, None)?,
                Cells::Double(values) => column.typed::<DoubleType>().write_batch(values, levels, None)?,
                Cells::Boolean(values) => column.typed::<BoolType>().write_batch(values, levels, None)?,
                Cells::Text(values, _) => {
                    column.typed::<ByteArrayType>().write_batch(values, levels, None)?
                }
            };
            column.close()?;
        }
        group.close()?;
        self.written += self.rows.len() as u64;
        self.rows.clear();
        Ok(())
    }

    /// Writes what is left, and gives the file its name. Returns its rows and bytes.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn finish(mut self) -> Result<(u64, u64), TableError> {
        self.end_group()?;
        self.writer.finish()?;
        let bytes = self.writer.bytes_written() as u64;
        if let Some((path, target)) = self.target {
            let io = |error| TableError::Write(path.clone(), error);
            self.writer.inner_mut().flush().map_err(io)?;
            target.commit().map_err(io)?;
        }
        Ok((self.written, bytes))
    }
}

/// Times and ids: differences are small.
fn has_small_steps(column: &Column) -> bool {
    column.ty == Type::Int64
}

fn properties(table: &Table) -> Result<WriterPropertiesPtr, ParquetError> {
    let version = KeyValue::new("taskscope.tables".to_owned(), VERSION.to_owned());
    let mut properties = WriterProperties::builder()
        .set_created_by(format!("taskscope {}", env!("CARGO_PKG_VERSION")))
        .set_compression(Compression::ZSTD(ZstdLevel::try_new(1)?))
        .set_key_value_metadata(Some(vec![version]));
    for column in table.columns.iter().filter(|column| has_small_steps(column)) {
        let path = ColumnPath::from(column.name);
        properties = properties
            .set_column_dictionary_enabled(path.clone(), false)
            .set_column_encoding(path, Encoding::DELTA_BINARY_PACKED);
    }
    Ok(Arc::new(properties.build()))
}

fn schema(table: &Table) -> Result<TypePtr, ParquetError> {
    let fields: Result<Vec<TypePtr>, ParquetError> = table.columns.iter().map(field).collect();
    Ok(Arc::new(SchemaType::group_type_builder(table.name).with_fields(fields?).build()?))
}

fn field(column: &Column) -> Result<TypePtr, ParquetError> {
    let physical = match column.ty {
        Type::Int32 => Physical::INT32,
        Type::Int64 => Physical::INT64,
        Type::Double => Physical::DOUBLE,
        Type::Boolean => Physical::BOOLEAN,
        Type::Text => Physical::BYTE_ARRAY,
    };
    let repetition = if column.nullable { Repetition::OPTIONAL } else { Repetition::REQUIRED };
    let text = (column.ty == Type::Text).then_some(LogicalType::String);
    let builder = SchemaType::primitive_type_builder(column.name, physical);
    Ok(Arc::new(builder.with_repetition(repetition).with_logical_type(text).build()?))
}
