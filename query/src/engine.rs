//! DataFusion with the tables and views of a data set, here or in front of a cluster; its errors as [`Failure`]s.

use crate::data_set::{DataSet, views};
use crate::failure::Failure;
use datafusion::arrow::datatypes::DataType;
use datafusion::arrow::util::display::{ArrayFormatter, FormatOptions};
use datafusion::common::{Diagnostic, Location};
use datafusion::error::DataFusionError;
use datafusion::execution::context::SQLOptions;
use datafusion::prelude::{DataFrame, ParquetReadOptions, SessionConfig, SessionContext};
use std::fmt::Write;

/// A session whose queries run here.
pub fn local() -> SessionContext {
    SessionContext::new_with_config(configured(SessionConfig::new()))
}

/// Errors have their places in the text of the query.
pub fn configured(config: SessionConfig) -> SessionConfig {
    config.set_bool("datafusion.sql_parser.collect_spans", true)
}

/// Makes the tables and views of a data set known to a session. A file is opened only for columns that the manifest does not list.
///
/// # Errors
/// If a table cannot be read.
pub async fn register(session: &SessionContext, set: &DataSet) -> Result<(), Failure> {
    for table in &set.tables {
        let mut options = ParquetReadOptions::default();
        if table.by_node {
            options = options.table_partition_cols(vec![("node".to_owned(), DataType::Int32)]);
        }
        if let Some(columns) = &table.columns {
            options = options.schema(columns);
        }
        let place = format!("{}{}/", set.url, table.name);
        session.register_parquet(&table.name, &place, options).await.map_err(|error| {
            Failure::new(format!("cannot read table {} in {}", table.name, set.url))
                .why(error.strip_backtrace())
        })?;
    }
    for (name, statement) in views() {
        // Tables of another minor version may lack a column; a query of that view then has its own error.
        if let Err(error) = session.sql(statement).await {
            let mut failure = Failure::new(format!("view {name} does not fit these tables"));
            failure = failure.why(error.strip_backtrace());
            eprintln!("note: {failure}");
        }
    }
    Ok(())
}

/// The plan of a query, which only reads.
///
/// # Errors
/// If the text is not one valid statement that reads.
pub async fn plan(session: &SessionContext, sql: &str) -> Result<DataFrame, Failure> {
    let reads = SQLOptions::new().with_allow_ddl(false).with_allow_dml(false).with_allow_statements(false);
    session.sql_with_options(sql, reads).await.map_err(|error| failure(&error, sql))
}

/// The plan as text.
///
/// # Errors
/// If no plan can be made.
pub async fn explain(frame: DataFrame, sql: &str) -> Result<String, Failure> {
    let failed = |error: DataFusionError| failure(&error, sql);
    let batches = frame.explain(false, false).map_err(failed)?.collect().await.map_err(failed)?;
    let mut text = String::new();
    for batch in &batches {
        let options = FormatOptions::default();
        let columns: Result<Vec<ArrayFormatter<'_>>, _> =
            batch.columns().iter().map(|column| ArrayFormatter::try_new(column, &options)).collect();
        let columns = columns.map_err(|error| failed(error.into()))?;
        for row in 0..batch.num_rows() {
            let mut cells = columns.iter().map(|column| column.value(row).to_string());
            let (kind, plan) = (cells.next().unwrap_or_default(), cells.next().unwrap_or_default());
            let _ = writeln!(text, "{kind}:");
            for line in plan.lines() {
                let _ = writeln!(text, "  {line}");
            }
        }
    }
    Ok(text)
}

/// An error of the engine, with its place in the query if there is one.
pub fn failure(error: &DataFusionError, sql: &str) -> Failure {
    let mut words = parser_words(&first_line(&error.strip_backtrace()));
    let mut why = String::new();
    let mut place = place_in(&words);
    if let Some(found) = error.diagnostic() {
        words.clone_from(&found.message);
        place = found.span.map(|span| span.start).or(place);
        why = further(found);
    }
    let (error, remedy) = if refused(&words) {
        why = format!("{words}\n");
        ("the query is refused: it does more than read".to_owned(), "SELECT …")
    } else if words.contains("single SQL statement") {
        ("there are several queries".to_owned(), "one query at a time, without a semicolon inside")
    } else if let Some(message) = cluster_words(&words) {
        (format!("the cluster failed: {message}"), "look into the logs of the scheduler and the executors")
    } else if words.contains("Resources exhausted") {
        let error = format!("the query needs more memory than there is: {words}");
        (error, "select fewer rows or columns, or use --cluster")
    } else {
        (format!("the query failed: {words}"), "taskscope query --tables")
    };
    if let Some(place) = place
        && let Some(line) = sql.lines().nth((place.line as usize).wrapping_sub(1))
    {
        why = format!("{}{why}", pointed(place, line));
    }
    let failure = Failure::new(error).remedy(remedy);
    if why.is_empty() { failure } else { failure.why(why) }
}

fn refused(words: &str) -> bool {
    ["DDL", "DML", "Statement"].iter().any(|kind| words.contains(&format!("{kind} not supported: ")))
}

/// The message of a scheduler or of a connection to it, without its frame.
fn cluster_words(words: &str) -> Option<&str> {
    let (_, rest) = words.split_once("Status { code: ")?;
    let (_, message) = rest.split_once("message: \"")?;
    message.split("\", ").next()
}

/// The message of the parser without its frame.
fn parser_words(words: &str) -> String {
    let inner = words.strip_prefix("SQL error: ParserError(\"").and_then(|rest| rest.strip_suffix("\")"));
    inner.map_or_else(|| words.to_owned(), |inner| inner.replace("\\\"", "\""))
}

fn first_line(text: &str) -> String {
    text.lines().next().unwrap_or_default().to_owned()
}

/// Notes of the engine on an error.
fn further(found: &Diagnostic) -> String {
    let notes = found.notes.iter().map(|note| &note.message);
    notes.chain(found.helps.iter().map(|help| &help.message)).map(|text| format!("{text}\n")).collect()
}

/// The place in a message of the parser: `… at Line: 1, Column: 8`.
fn place_in(words: &str) -> Option<Location> {
    let (_, place) = words.rsplit_once(" at Line: ")?;
    let (line, column) = place.split_once(", Column: ")?;
    let digits = |text: &str| text.chars().take_while(char::is_ascii_digit).collect::<String>().parse().ok();
    Some(Location { line: digits(line)?, column: digits(column)? })
}

/// A line of the query, and a mark below the place.
fn pointed(place: Location, line: &str) -> String {
    /// Characters of a line that are shown before the place.
    const BEFORE: usize = 60;
    let column = (place.column as usize).saturating_sub(1);
    let skipped = column.saturating_sub(BEFORE);
    let shown: String = line.chars().skip(skipped).take(BEFORE + 40).collect();
    let shown = shown.replace('\t', " ");
    let head = format!("line {}, column {}: ", place.line, place.column);
    let indent = " ".repeat(head.len() + column - skipped);
    format!("{head}{shown}\n{indent}^\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_of_the_parser_are_found_and_marked() {
        let place = place_in("Expected: an expression, found: FROM at Line: 2, Column: 3").unwrap();
        assert_eq!((place.line, place.column), (2, 3));
        assert_eq!(pointed(place, "ab FROM"), "line 2, column 3: ab FROM\n                    ^\n");
        let status = "Execution error: Status { code: Internal, message: \"h2 error\", source: None }";
        assert_eq!(cluster_words(status), Some("h2 error"));
        assert_eq!(parser_words("SQL error: ParserError(\"found \\\"x\\\"\")"), "found \"x\"");
        assert_eq!(place_in("no place"), None);
        let long = format!("{}x", " ".repeat(500));
        assert!(pointed(Location { line: 1, column: 501 }, &long).lines().all(|line| line.len() < 140));
    }
}
