//! A result as aligned columns.

use datafusion::arrow::datatypes::{DataType, SchemaRef};
use datafusion::arrow::error::ArrowError;
use datafusion::arrow::record_batch::RecordBatch;
use datafusion::arrow::util::display::{ArrayFormatter, FormatOptions};
use std::io::{self, Write};
use taskscope_terminal::escaped;
use unicode_width::UnicodeWidthStr;

/// Collects rows, and writes them when the widths of all columns are known.
pub struct TableWriter<W: Write> {
    out: W,
    /// Whether a column has numbers, which are aligned to the right.
    numbers: Vec<bool>,
    /// The header, then rows.
    lines: Vec<Vec<String>>,
    /// Rows to print; 0 for all.
    most: usize,
    /// Rows of the result.
    rows: usize,
}

impl<W: Write> TableWriter<W> {
    /// A table of this many rows at most; 0 for all.
    pub fn on(out: W, schema: &SchemaRef, most: usize) -> TableWriter<W> {
        let is_number = |ty: &DataType| ty.is_numeric();
        let numbers = schema.fields().iter().map(|field| is_number(field.data_type())).collect();
        let header = schema.fields().iter().map(|field| escaped(field.name()).into_owned()).collect();
        TableWriter { out, numbers, lines: vec![header], most, rows: 0 }
    }

    /// Adds rows.
    ///
    /// # Errors
    /// If a value cannot be shown.
    pub fn write(&mut self, batch: &RecordBatch) -> Result<(), ArrowError> {
        let options = FormatOptions::default().with_null("NULL");
        let columns: Result<Vec<ArrayFormatter<'_>>, ArrowError> =
            batch.columns().iter().map(|column| ArrayFormatter::try_new(column, &options)).collect();
        let columns = columns?;
        let left = if self.most == 0 { usize::MAX } else { self.most.saturating_sub(self.lines.len() - 1) };
        for row in 0..batch.num_rows().min(left) {
            let cells: Result<Vec<String>, ArrowError> = columns
                .iter()
                .map(|column| Ok(escaped(&column.value(row).try_to_string()?).into_owned()))
                .collect();
            self.lines.push(cells?);
        }
        self.rows += batch.num_rows();
        Ok(())
    }

    /// Writes the table, and a note if it is not whole.
    ///
    /// # Errors
    /// Those of the system.
    pub fn finish(mut self) -> io::Result<()> {
        let widths: Vec<usize> = (0..self.numbers.len())
            .map(|column| self.lines.iter().map(|line| line[column].width()).max().unwrap_or(0))
            .collect();
        for line in &self.lines {
            let mut text = String::new();
            for (column, cell) in line.iter().enumerate() {
                let pad = " ".repeat(widths[column] - cell.width());
                let gap = if column == 0 { "" } else { "  " };
                let (before, after) =
                    if self.numbers[column] { (pad.as_str(), "") } else { ("", pad.as_str()) };
                text.push_str(&format!("{gap}{before}{cell}{after}"));
            }
            writeln!(self.out, "{}", text.trim_end())?;
        }
        self.out.flush()?;
        let shown = self.lines.len() - 1;
        if shown < self.rows {
            eprintln!(
                "note: {shown} of {} rows are shown; --rows 0 shows all, --format csv has no limit",
                self.rows
            );
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use datafusion::arrow::array::{Int64Array, StringArray};
    use datafusion::arrow::datatypes::{Field, Schema};
    use std::sync::Arc;

    #[test]
    fn columns_are_aligned_escaped_and_limited() {
        let fields = vec![Field::new("name", DataType::Utf8, true), Field::new("ns", DataType::Int64, false)];
        let schema = Arc::new(Schema::new(fields));
        let names = StringArray::from(vec![Some("日本"), None, Some("a\u{1b}b\nc")]);
        let columns: Vec<datafusion::arrow::array::ArrayRef> =
            vec![Arc::new(names), Arc::new(Int64Array::from(vec![1, 23, 456_789]))];
        let batch = RecordBatch::try_new(schema.clone(), columns).unwrap();
        let mut out = Vec::new();
        let mut table = TableWriter::on(&mut out, &schema, 0);
        table.write(&batch).unwrap();
        table.finish().unwrap();
        let expected = "name                 ns\n日本                  1\nNULL                 23\na\\u001bb\\u000ac  456789\n";
        assert_eq!(String::from_utf8(out).unwrap(), expected);
        let mut out = Vec::new();
        let mut table = TableWriter::on(&mut out, &schema, 1);
        table.write(&batch).unwrap();
        table.finish().unwrap();
        assert_eq!(String::from_utf8(out).unwrap().lines().count(), 2);
    }
}
