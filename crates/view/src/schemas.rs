//! Schemas of the JSON documents.

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde_json::{Value, json};

/// A document's name in `docs/` and its schema.
pub type NamedSchema = (&'static str, fn() -> Value);

/// The documents of this crate; each schema is in `docs/NAME.schema.json`.
pub const SCHEMAS: &[NamedSchema] = &[
    ("report", schema_of::<crate::Report>),
    ("causes", schema_of::<crate::CausesReport>),
    ("info", schema_of::<crate::info::Info>),
    ("profile-info", schema_of::<crate::info::ProfileInfo>),
    ("profile", schema_of::<crate::ProfileReport>),
    ("diff", schema_of::<crate::RunDifferenceReport>),
    ("compare", schema_of::<crate::comparison::Comparison>),
    ("history", schema_of::<crate::history::History>),
    ("paths-diff", schema_of::<crate::PathsDifferenceReport>),
    ("explain", schema_of::<crate::Explained>),
    ("names", schema_of::<crate::NameList>),
    ("timeline", schema_of::<crate::TimelineReport>),
    ("page", schema_of::<crate::page::Overview<'_>>),
    ("viewer", schema_of_parts::<crate::server::Answers<'_>>),
];

/// The schema of a document, JSON Schema 2020-12. Its `$id` is the document's identifier.
pub fn schema_of<T: JsonSchema>() -> Value {
    let mut schema = schema_of_parts::<T>();
    let id = schema["$id"].clone();
    // schemars leaves out the tag of a structure.
    if let Some(required) = schema["required"].as_array_mut() {
        required.insert(0, "schema".into());
    }
    if let Some(properties) = schema["properties"].as_object_mut() {
        properties.shift_insert(0, "schema".into(), json!({ "const": id }));
    }
    schema
}

/// The schema of several documents without an identifier of their own, as properties of one object.
fn schema_of_parts<T: JsonSchema>() -> Value {
    let generator = SchemaSettings::draft2020_12().for_serialize().into_generator();
    let mut schema = generator.into_root_schema_for::<T>().to_value();
    // The name that serde writes into documents.
    let id = schema["title"].take();
    let mut ordered = serde_json::Map::new();
    ordered.insert("$schema".into(), schema["$schema"].take());
    ordered.insert("$id".into(), id);
    if let Value::Object(rest) = schema {
        // The document's identifiers come before its keys.
        let (head, keys): (Vec<_>, Vec<_>) = (rest.into_iter().filter(|(_, value)| !value.is_null()))
            .partition(|(key, _)| ["description", "type"].contains(&key.as_str()));
        ordered.extend(head);
        ordered.extend(keys);
    }
    Value::Object(ordered)
}
