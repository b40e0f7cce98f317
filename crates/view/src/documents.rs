//! Parts common to all JSON documents: names of vocabularies, and shared rows.
//!
//! A document is a structure that serialises itself and describes its own schema. It is named
//! `taskscope-NAME/VERSION`, once, in `#[serde(tag = "schema", rename = "…")]`; the version grows when a form
//! changes incompatibly. Times are integers in nanoseconds: lengths, or times since the first event of the trace.

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::borrow::Cow;
use taskscope_analysis::causes::ReadyWork;
use taskscope_analysis::{Confidence, Letter};
use taskscope_cause::{Blamed, Cause, Group, Pattern, State};
use taskscope_execution::{RuntimeRole, SiteIndex};
use taskscope_session::Places;

/// A fixed set of names, one definition of a schema.
pub trait Vocabulary: Copy + 'static {
    /// The definition's name.
    const KIND: &'static str;
    /// The definition's description.
    const DESCRIPTION: &'static str;

    /// All names, in their order.
    fn names() -> Vec<&'static str>;
    /// The name in JSON.
    fn name(self) -> &'static str;
    /// The one with this name in JSON.
    fn from_name(name: &str) -> Option<Self>;
}

macro_rules! vocabularies {
    ($( $type:ident $kind:literal $description:literal )*) => {$(
        impl Vocabulary for $type {
            const KIND: &'static str = $kind;
            const DESCRIPTION: &'static str = $description;

            fn names() -> Vec<&'static str> {
                $type::ALL.map($type::name).to_vec()
            }

            fn name(self) -> &'static str {
                $type::name(self)
            }

            fn from_name(name: &str) -> Option<$type> {
                $type::ALL.into_iter().find(|row| row.name() == name)
            }
        }
    )*};
}

vocabularies! {
    Cause "cause" "A cause of lost time (docs/causes.md)."
    Blamed "blamed" "What lost time is charged to (docs/causes.md)."
    Pattern "pattern" "A pattern of lost time, which decides what helps (docs/causes.md)."
    State "state" "A state of a thread (docs/causes.md)."
    Group "group" "A group of states (docs/report.md)."
    Confidence "confidence" "Confidence in the cause of a finding."
    Letter "letter" "A letter of SLOW."
    RuntimeRole "role" "The role of a thread in Nanos6 or nOS-V."
    ReadyWork "ready_work" "The place of ready tasks while a worker is idle."
}

/// A name of a vocabulary in a document.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Named<T>(pub T);

impl<T: Vocabulary> Serialize for Named<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.0.name())
    }
}

impl<'de, T: Vocabulary> Deserialize<'de> for Named<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Named<T>, D::Error> {
        let name = Word::deserialize(deserializer)?;
        T::from_name(&name).map(Named).ok_or_else(|| D::Error::custom(format!("no {}: {name}", T::KIND)))
    }
}

impl<T: Vocabulary> JsonSchema for Named<T> {
    fn schema_name() -> Cow<'static, str> {
        T::KIND.into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "description": T::DESCRIPTION, "type": "string", "enum": T::names() })
    }
}

/// A word of a fixed set in a document.
pub type Word = Cow<'static, str>;

/// The place of a piece of code, as far as it is known.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CodePlace {
    /// The function's name.
    // A document without the key has no place.
    #[serde(deserialize_with = "Option::deserialize")]
    pub function: Option<String>,
    /// Its source file.
    pub file: Option<String>,
    /// The line in it.
    pub line: Option<u32>,
}

impl CodePlace {
    /// Looks a site up; `None` for no site.
    pub(crate) fn of(places: &Places, site: SiteIndex) -> Option<CodePlace> {
        site.is_some().then(|| CodePlace::from(&*places.code(site)))
    }
}

impl From<&taskscope_symbol::CodePlace> for CodePlace {
    fn from(place: &taskscope_symbol::CodePlace) -> CodePlace {
        let frame = &place.frame;
        CodePlace { function: frame.function.clone(), file: frame.file.clone(), line: frame.line }
    }
}

/// A text, or `None` for an empty one.
pub(crate) fn some_text(text: impl Into<String>) -> Option<String> {
    Some(text.into()).filter(|text| !text.is_empty())
}

/// A fact about a trace that changes how its numbers are to be read.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Notice {
    /// Stable name, for `--allow`.
    pub name: String,
    /// One or more sentences.
    pub text: String,
    /// Whether it changes nothing that can be seen; text leaves it out.
    pub minor: bool,
}

impl Notice {
    /// A notice that matters.
    pub fn new(name: &str, text: String) -> Notice {
        Notice { name: name.to_owned(), text, minor: false }
    }
}
