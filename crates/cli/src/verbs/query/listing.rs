//! Lists of tables, columns and stored queries.

use crate::messages::Failure;
use crate::output;
use std::io::Write;
use std::process::ExitCode;
use taskscope_table::{RECIPES, TABLES, VIEWS, table};

/// Prints all tables and views, or the columns of one table.
pub fn tables(name: &str) -> anyhow::Result<ExitCode> {
    let mut out = output::results();
    if name.is_empty() {
        let width = TABLES.iter().map(|table| table.name.len()).max().unwrap_or(0);
        for table in TABLES {
            writeln!(out, "{:<width$}  {}", table.name, table.meaning)?;
        }
        writeln!(out, "\nviews: {}", views().map(|(name, _)| name).collect::<Vec<_>>().join(", "))?;
    } else if let Some(table) = table(name) {
        writeln!(out, "{}: {}\n", table.name, table.meaning)?;
        let width = table.columns.iter().map(|column| column.name.len()).max().unwrap_or(0);
        for column in table.columns {
            let null = if column.nullable { "or null" } else { "" };
            let (ty, unit, meaning) = (column.ty.sql(), column.unit, column.meaning);
            writeln!(out, "{:<width$}  {ty:<7}  {null:<7}  {unit:<5}  {meaning}", column.name)?;
        }
    } else if let Some((_, view)) = views().find(|(view, _)| *view == name) {
        writeln!(out, "{view};")?;
    } else {
        return Err(Failure::new(format!("no table or view is named {name}"))
            .remedy("taskscope query --tables")
            .into());
    }
    out.flush()?;
    Ok(ExitCode::SUCCESS)
}

/// The views over the tables: name and definition.
fn views() -> impl Iterator<Item = (&'static str, &'static str)> {
    const CREATE: &str = "CREATE OR REPLACE VIEW ";
    VIEWS.split(";\n").filter(|text| !text.contains("read_parquet(")).filter_map(|text| {
        let text = text.trim();
        let name = text[text.find(CREATE)? + CREATE.len()..].split(' ').next()?;
        Some((name, text))
    })
}

/// Prints the stored queries with their questions.
pub fn recipes() -> anyhow::Result<ExitCode> {
    let mut out = output::results();
    let width = RECIPES.iter().map(|recipe| recipe.name.len()).max().unwrap_or(0);
    for recipe in RECIPES {
        writeln!(out, "{:<width$}  {}", recipe.name, recipe.question())?;
    }
    out.flush()?;
    Ok(ExitCode::SUCCESS)
}
