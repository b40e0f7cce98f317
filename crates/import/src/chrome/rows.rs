//! One trace event as it is in the file.

use serde::Deserialize;
use serde_json::value::RawValue;
use std::borrow::Cow;

/// A trace event. Members that are not here are not read.
#[derive(Deserialize)]
#[serde(expecting = "an event")]
pub(super) struct Row<'a> {
    #[serde(borrow, default)]
    pub ph: Cow<'a, str>,
    #[serde(borrow, default)]
    pub name: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    pub cat: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    pub ts: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub dur: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub pid: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub tid: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub id: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub bp: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    pub s: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    pub args: Option<&'a RawValue>,
}

/// Arguments that are read.
#[derive(Deserialize, Default)]
pub(super) struct Args<'a> {
    #[serde(borrow, default)]
    pub name: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    pub labels: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    pub correlation: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub stream: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub device: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub bytes: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub file: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    pub line: Option<&'a RawValue>,
}

impl<'a> Row<'a> {
    /// Its arguments; none if they are not an object of the expected types.
    pub fn args(&self) -> Args<'a> {
        self.args.and_then(|args| serde_json::from_str(args.get()).ok()).unwrap_or_default()
    }
}
