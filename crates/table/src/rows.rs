//! Rows of a table, collected column by column until they fill a row group.

use crate::schema::{Table, Type};
use parquet::data_type::ByteArray;
use rustc_hash::FxHashMap;

/// Rows of a row group.
pub const ROW_GROUP: usize = 131_072;

/// Different texts of a column that are kept for reuse within a row group.
const KEPT_TEXTS: usize = 4096;

/// A value of a row.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Value<'a> {
    /// Not known.
    Null,
    /// An integer.
    Int(i64),
    /// A floating-point number.
    Real(f64),
    /// True or false.
    Flag(bool),
    /// Text.
    Text(&'a str),
}

impl Value<'_> {
    /// A number of 64 bits as a bit pattern: addresses and ids may exceed signed integers.
    pub fn bits(number: u64) -> Self {
        Value::Int(number as i64)
    }
}

impl From<i64> for Value<'_> {
    fn from(number: i64) -> Self {
        Value::Int(number)
    }
}

impl From<i32> for Value<'_> {
    fn from(number: i32) -> Self {
        Value::Int(number.into())
    }
}

impl From<u32> for Value<'_> {
    fn from(number: u32) -> Self {
        Value::Int(number.into())
    }
}

impl From<u64> for Value<'_> {
    /// Counts and durations; those above the largest signed integer become that.
    fn from(number: u64) -> Self {
        Value::Int(i64::try_from(number).unwrap_or(i64::MAX))
    }
}

impl From<bool> for Value<'_> {
    fn from(flag: bool) -> Self {
        Value::Flag(flag)
    }
}

impl From<f64> for Value<'_> {
    fn from(number: f64) -> Self {
        Value::Real(number)
    }
}

impl<'a> From<&'a str> for Value<'a> {
    fn from(text: &'a str) -> Self {
        Value::Text(text)
    }
}

impl<'a, T: Into<Value<'a>>> From<Option<T>> for Value<'a> {
    fn from(value: Option<T>) -> Self {
        value.map_or(Value::Null, Into::into)
    }
}

/// A row that does not fit its table.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("column {column} of table {table} cannot hold {value}")]
pub struct Misfit {
    /// The table.
    pub table: &'static str,
    /// The column.
    pub column: &'static str,
    /// The value.
    pub value: String,
}

/// The values of a column.
pub(crate) enum Cells {
    Int32(Vec<i32>),
    Int64(Vec<i64>),
    Double(Vec<f64>),
    Boolean(Vec<bool>),
    Text(Vec<ByteArray>, FxHashMap<Box<str>, ByteArray>),
}

pub(crate) struct Buffer {
    pub cells: Cells,
    /// 1 for a value, 0 for null; empty if the column has no nulls.
    pub levels: Vec<i16>,
}

/// Rows of a table that are not written yet.
pub struct Rows {
    table: &'static Table,
    pub(crate) buffers: Vec<Buffer>,
    rows: usize,
}

impl Rows {
    /// No rows.
    pub fn of(table: &'static Table) -> Rows {
        let cells = |ty| match ty {
            Type::Int32 => Cells::Int32(Vec::new()),
            Type::Int64 => Cells::Int64(Vec::new()),
            Type::Double => Cells::Double(Vec::new()),
            Type::Boolean => Cells::Boolean(Vec::new()),
            Type::Text => Cells::Text(Vec::new(), FxHashMap::default()),
        };
        let columns = table.columns.iter();
        let buffers = columns.map(|column| Buffer { cells: cells(column.ty), levels: Vec::new() }).collect();
        Rows { table, buffers, rows: 0 }
    }

    /// Number of rows.
    pub fn len(&self) -> usize {
        self.rows
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.rows == 0
    }

    /// Adds a row.
    ///
    /// # Errors
    /// If a value does not fit its column: a wrong type, a null where none may be, an integer of more than 32 bits.
    ///
    /// # Panics
    /// If there are more or fewer values than columns.
    pub fn push<const N: usize>(&mut self, row: [Value<'_>; N]) -> Result<(), Misfit> {
        assert_eq!(N, self.buffers.len(), "columns of {}", self.table.name);
        for ((buffer, column), value) in self.buffers.iter_mut().zip(self.table.columns).zip(row) {
            let is_null = value == Value::Null;
            let fits = (!is_null || column.nullable) && buffer.push(value);
            if !fits {
                let value = format!("{value:?}");
                return Err(Misfit { table: self.table.name, column: column.name, value });
            }
            if column.nullable {
                buffer.levels.push(i16::from(!is_null));
            }
        }
        self.rows += 1;
        Ok(())
    }

    /// Removes all rows.
    pub fn clear(&mut self) {
        self.rows = 0;
        for Buffer { cells, levels } in &mut self.buffers {
            levels.clear();
            match cells {
                Cells::Int32(values) => values.clear(),
                Cells::Int64(values) => values.clear(),
                Cells::Double(values) => values.clear(),
                Cells::Boolean(values) => values.clear(),
                Cells::Text(values, kept) => {
                    values.clear();
                    kept.clear();
                }
            }
        }
    }
}

impl Buffer {
    /// Adds a value; false if it is of another type.
    fn push(&mut self, value: Value<'_>) -> bool {
        match (&mut self.cells, value) {
            (_, Value::Null) => {}
            (Cells::Int32(values), Value::Int(number)) => match i32::try_from(number) {
                Ok(number) => values.push(number),
                Err(_) => return false,
            },
            (Cells::Int64(values), Value::Int(number)) => values.push(number),
            (Cells::Double(values), Value::Real(number)) => values.push(number),
            (Cells::Boolean(values), Value::Flag(flag)) => values.push(flag),
            (Cells::Text(values, kept), Value::Text(text)) => {
                let value = match kept.get(text) {
                    Some(value) => value.clone(),
                    None => {
                        let value = ByteArray::from(text);
                        if kept.len() < KEPT_TEXTS {
                            kept.insert(text.into(), value.clone());
                        }
                        value
                    }
                };
                values.push(value);
            }
            _ => return false,
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::table;

    #[test]
    fn rows_that_do_not_fit_are_refused_by_column() {
        let loss = table("loss").unwrap();
        let mut rows = Rows::of(loss);
        let row = |location: Value<'static>| [location, 0_i64.into(), 1_i64.into(), 2_u64.into()];
        rows.push(row(1_i64.into())).unwrap();
        for wrong in [Value::Null, Value::Text("x"), Value::Int(1 << 31), Value::Real(1.0)] {
            let misfit = rows.push(row(wrong)).unwrap_err();
            assert_eq!((misfit.table, misfit.column), ("loss", "location"), "{misfit}");
        }
        assert_eq!(rows.len(), 1);
        assert_eq!(Value::from(u64::MAX), Value::Int(i64::MAX));
        assert_eq!(Value::bits(u64::MAX), Value::Int(-1));
    }
}
