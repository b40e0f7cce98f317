//! What all JSON documents share: their identifiers, their schemas, and rows that occur in several.
//!
//! A document is a structure that serialises itself and describes its own schema. It is named
//! `taskscope-NAME/VERSION`, once, in `#[serde(tag = "schema", rename = "…")]`; the version grows when a form
//! changes incompatibly. Times are integers in nanoseconds: lengths, or times since the first event of the trace.

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde::Serialize;
use serde_json::{Value, json};
use taskscope_execution::SiteIndex;
use taskscope_session::Places;

/// A document's name in `docs/` and its schema.
pub type NamedSchema = (&'static str, fn() -> Value);

/// The documents of this crate; each schema is in `docs/NAME.schema.json`.
pub const SCHEMAS: &[NamedSchema] = &[
    ("info", schema_of::<crate::info::Info>),
    ("profile-info", schema_of::<crate::info::ProfileInfo>),
    ("profile", schema_of::<crate::ProfileReport>),
    ("diff", schema_of::<crate::RunDifferenceReport>),
    ("paths-diff", schema_of::<crate::PathsDifferenceReport>),
];

/// The schema of a document, JSON Schema 2020-12. Its `$id` is the document's identifier.
pub fn schema_of<T: JsonSchema>() -> Value {
    let generator = SchemaSettings::draft2020_12().for_serialize().into_generator();
    let mut schema = generator.into_root_schema_for::<T>().to_value();
    // schemars leaves out the tag of a structure, and takes the name that serde writes there for the title.
    let id = schema["title"].take();
    if let Some(required) = schema["required"].as_array_mut() {
        required.insert(0, "schema".into());
    }
    if let Some(properties) = schema["properties"].as_object_mut() {
        properties.shift_insert(0, "schema".into(), json!({ "const": id }));
    }
    let mut ordered = serde_json::Map::new();
    ordered.insert("$schema".into(), schema["$schema"].take());
    ordered.insert("$id".into(), id);
    if let Value::Object(rest) = schema {
        // What documents are, before their keys.
        let (head, keys): (Vec<_>, Vec<_>) = (rest.into_iter().filter(|(_, value)| !value.is_null()))
            .partition(|(key, _)| ["description", "type"].contains(&key.as_str()));
        ordered.extend(head);
        ordered.extend(keys);
    }
    Value::Object(ordered)
}

/// The place of a piece of code, as far as it is known.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct CodePlace {
    /// The function's name.
    pub function: Option<String>,
    /// Its source file.
    pub file: Option<String>,
    /// The line in it.
    pub line: Option<u32>,
}

impl CodePlace {
    /// Looks a site up; `None` for no site.
    pub(crate) fn of(places: &Places, site: SiteIndex) -> Option<CodePlace> {
        site.is_some().then(|| {
            let frame = &places.code(site).frame;
            CodePlace { function: frame.function.clone(), file: frame.file.clone(), line: frame.line }
        })
    }
}

/// A text, or `None` for an empty one.
pub(crate) fn some_text(text: impl Into<String>) -> Option<String> {
    Some(text.into()).filter(|text| !text.is_empty())
}

/// A fact about a trace that changes how its numbers are to be read.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Notice {
    /// Stable name, for `--allow`.
    pub name: String,
    /// One or more sentences.
    pub text: String,
}

impl From<crate::words::NoticeText> for Notice {
    fn from(notice: crate::words::NoticeText) -> Notice {
        Notice { name: notice.name, text: notice.text }
    }
}
