//! The schemas of all JSON documents, kept in `docs/`.

use crate::reading::{ProblemLine, ViolationLine};
use crate::verbs::{doctor, dump, dump_queue, dump_shown, import_device_records, record, top};
use std::path::Path;
use taskscope_view::schemas::{self, NamedSchema, schema_of};

/// The documents of the command itself; those of reports are in [`schemas::SCHEMAS`].
const SCHEMAS: &[NamedSchema] = &[
    ("problem", schema_of::<ProblemLine>),
    ("violation", schema_of::<ViolationLine>),
    ("event", schema_of::<dump::EventLine>),
    ("shown", schema_of::<dump_shown::ShownLine>),
    ("queue-record", schema_of::<dump_queue::QueueRecord>),
    ("top", schema_of::<top::TopReport>),
    ("doctor", schema_of::<doctor::Report>),
    ("import-device-records", schema_of::<import_device_records::ImportReport>),
    ("run", schema_of::<record::RunFile>),
    ("tables", schema_of::<taskscope_table::Summary>),
];

/// Compares `docs/NAME.schema.json` with the structures; `make schemas` (UPDATE_SCHEMAS=1) writes them.
#[test]
fn schemas_in_docs_are_those_of_the_structures() {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
    let mut different = Vec::new();
    for (name, schema) in SCHEMAS.iter().chain(schemas::SCHEMAS) {
        let schema = schema();
        assert_eq!(
            schema["$id"].as_str().and_then(|id| id.split('/').next()),
            Some(&*format!("taskscope-{name}"))
        );
        let text = format!("{schema:#}\n");
        let path = docs.join(format!("{name}.schema.json"));
        if std::env::var_os("UPDATE_SCHEMAS").is_some() {
            std::fs::write(&path, text).unwrap();
        } else if std::fs::read_to_string(&path).ok().as_ref() != Some(&text) {
            different.push(*name);
        }
    }
    assert!(different.is_empty(), "make schemas writes these: {different:?}");
}
