//! Whether a cluster sees the tables of the manifest.
//!
//! The scheduler lists the files of a table, and a directory that it does not see has none: the answer would be that of empty tables.
//! So the rows of each table that a query reads are counted on the cluster first, which needs the ends of its files alone.

use crate::data_set::{DataSet, Table};
use crate::engine;
use crate::failure::Failure;
use datafusion::common::cast::as_int64_array;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::error::DataFusionError;
use datafusion::execution::SendableRecordBatchStream;
use datafusion::logical_expr::LogicalPlan;
use datafusion::prelude::DataFrame;
use futures::TryStreamExt;
use std::collections::BTreeSet;

/// A query that counts the rows of a table.
pub struct Count<'a> {
    /// Its text.
    pub sql: String,
    set: &'a DataSet,
    table: &'a Table,
    rows: u64,
}

impl<'a> Count<'a> {
    /// A count of each table that a query reads and of which the manifest has the rows.
    ///
    /// # Errors
    /// If the query cannot be planned.
    pub fn all(set: &'a DataSet, query: &DataFrame) -> Result<Vec<Count<'a>>, Failure> {
        let names = tables_of(query).map_err(|error| engine::failure(&error, ""))?;
        let read = set.tables.iter().filter(|table| names.contains(&table.name));
        let count = |table: &'a Table| {
            let sql = format!("SELECT COUNT(*) AS found FROM \"{}\"", table.name);
            Some(Count { sql, set, table, rows: table.rows? })
        };
        Ok(read.filter_map(count).collect())
    }

    /// Compares the result with the manifest.
    ///
    /// # Errors
    /// If the table has other rows, or they cannot be read.
    pub async fn compare(&self, mut result: SendableRecordBatchStream) -> Result<(), Failure> {
        let failed = |error: DataFusionError| engine::failure(&error, &self.sql);
        let mut found = 0;
        while let Some(batch) = result.try_next().await.map_err(failed)? {
            found += as_int64_array(batch.column(0)).map_err(failed)?.values().iter().sum::<i64>();
        }
        if u64::try_from(found) == Ok(self.rows) {
            return Ok(());
        }
        let (name, rows) = (&self.table.name, self.rows);
        Err(Failure::new(format!("the cluster does not see the tables at {}", self.set.url))
            .why(format!("table {name} has {found} rows there, and {rows} by its manifest"))
            .remedy("a directory that all nodes see, or --store with the place of all files"))
    }
}

/// Names of the tables that a query reads, also through views.
fn tables_of(query: &DataFrame) -> Result<BTreeSet<String>, DataFusionError> {
    let mut names = BTreeSet::new();
    query.clone().into_optimized_plan()?.apply_with_subqueries(|node| {
        if let LogicalPlan::TableScan(scan) = node {
            names.insert(scan.table_name.table().to_owned());
        }
        Ok(TreeNodeRecursion::Continue)
    })?;
    Ok(names)
}

#[cfg(test)]
mod tests {
    use super::*;
    use datafusion::arrow::datatypes::{DataType, Field, Schema};
    use datafusion::datasource::empty::EmptyTable;
    use datafusion::prelude::SessionContext;
    use std::sync::Arc;

    #[tokio::test]
    async fn tables_are_found_through_views_and_in_subqueries() {
        let session = SessionContext::new();
        for name in ["state", "location", "run"] {
            let schema = Schema::new(vec![Field::new("a", DataType::Int64, false)]);
            session.register_table(name, Arc::new(EmptyTable::new(Arc::new(schema)))).unwrap();
        }
        session.sql("CREATE VIEW v AS SELECT s.a FROM state s JOIN location l ON s.a = l.a").await.unwrap();
        let names = async |sql: &str| {
            tables_of(&session.sql(sql).await.unwrap()).unwrap().into_iter().collect::<Vec<_>>()
        };
        assert_eq!(names("SELECT COUNT(*) FROM v").await, ["location", "state"]);
        assert_eq!(names("SELECT a FROM run WHERE a > (SELECT MAX(a) FROM state)").await, ["run", "state"]);
        assert!(names("SELECT 1 AS one").await.is_empty());
    }
}
