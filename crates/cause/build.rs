//! Generates the enums of the vocabulary from `causes.toml`.

use serde::Deserialize;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Vocabulary {
    cause: Vec<Name>,
    blamed: Vec<Name>,
    pattern: Vec<Name>,
    group: Vec<Name>,
    state: Vec<Name>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Name {
    name: String,
    label: String,
    meaning: String,
    computed: Option<String>,
    helps: Option<String>,
    /// For causes: the blamed code, in words.
    blames: Option<String>,
    /// For causes: names in publications and other tools.
    published: Option<String>,
    /// For states: the cause that they count as.
    cause: Option<String>,
    /// For states: their group in an efficiency.
    group: Option<String>,
    /// For states: colours on a light and on a dark page.
    light: Option<String>,
    dark: Option<String>,
    /// For groups: the character of a timeline in a terminal.
    glyph: Option<char>,
    /// For groups: the number of its terminal colour, 0 to 15; none is the terminal's own.
    ansi: Option<u8>,
    /// For causes: the runtime that decides about it if it takes part in the run.
    decided_by: Option<String>,
    #[serde(default)]
    advice: BTreeMap<String, String>,
    /// Another name with advice that applies to this one too.
    advice_of: Option<String>,
}

const RUNTIMES: [(&str, &str); 9] = [
    ("openmp", "OpenMp"),
    ("openmp-v", "OpenMpV"),
    ("nanos6", "Nanos6"),
    ("nodes", "Nodes"),
    ("nosv", "Nosv"),
    ("instrumented", "Instrumented"),
    ("mpi", "Mpi"),
    ("threads", "Threads"),
    ("devices", "Devices"),
];

fn main() {
    println!("cargo:rerun-if-changed=causes.toml");
    let text = std::fs::read_to_string("causes.toml").expect("causes.toml is readable");
    let vocabulary: Vocabulary = toml::from_str(&text).unwrap_or_else(|error| panic!("causes.toml: {error}"));
    let mut out = String::new();
    let kinds = [
        ("Cause", "A node of the tree of causes.", &vocabulary.cause),
        ("Blamed", "What lost time is charged to.", &vocabulary.blamed),
        ("Pattern", "The shape of a loss in numbers, if it decides the remedy.", &vocabulary.pattern),
        (
            "Group",
            "The role of a state in an efficiency, and its appearance in a terminal's timeline.",
            &vocabulary.group,
        ),
        (
            "State",
            "What a thread can be doing. Every worker-nanosecond has exactly one of these states.",
            &vocabulary.state,
        ),
    ];
    for (kind, doc, names) in kinds {
        write_enum(&mut out, kind, doc, names, &vocabulary);
    }
    let categories = vocabulary.cause.iter().map(|cause| {
        let category = cause.name.split('.').next().unwrap_or_default();
        assert!(vocabulary.cause.iter().any(|row| row.name == category), "no category {category}");
        format!("Cause::{},", camel(category))
    });
    let _ = writeln!(
        out,
        "const CATEGORIES: [Cause; {}] = [{}];",
        vocabulary.cause.len(),
        categories.collect::<String>()
    );
    let state_rows = vocabulary.state.iter();
    let causes = state_rows.clone().map(|state| {
        let cause = state.cause.as_deref().expect("a state has a cause");
        assert!(vocabulary.cause.iter().any(|row| row.name == cause), "{}: no cause {cause}", state.name);
        format!("State::{} => Cause::{},", camel(&state.name), camel(cause))
    });
    let groups = state_rows.map(|state| {
        let group = state.group.as_deref().expect("a state has a group");
        assert!(vocabulary.group.iter().any(|row| row.name == group), "{}: no group {group}", state.name);
        format!("State::{} => Group::{},", camel(&state.name), camel(group))
    });
    let colours = vocabulary.state.iter().map(|state| match (&state.light, &state.dark) {
        (Some(light), Some(dark)) => format!("State::{} => Some([{light:?}, {dark:?}]),", camel(&state.name)),
        _ => format!("State::{} => None,", camel(&state.name)),
    });
    let _ = write!(
        out,
        "impl State {{
    /// The cause that its time counts as.
    pub const fn cause(self) -> Cause {{ match self {{ {} }} }}
    /// How it counts in an efficiency.
    pub const fn group(self) -> Group {{ match self {{ {} }} }}
    /// Colours on a light and on a dark page; `None` for absent threads.
    pub const fn colours(self) -> Option<[&'static str; 2]> {{ match self {{ {} }} }}
}}\n",
        causes.collect::<String>(),
        groups.collect::<String>(),
        colours.collect::<String>()
    );
    let glyphs = vocabulary.group.iter().map(|group| {
        format!("Group::{} => {:?},", camel(&group.name), group.glyph.expect("a group has a glyph"))
    });
    let ansi =
        vocabulary.group.iter().map(|group| format!("Group::{} => {:?},", camel(&group.name), group.ansi));
    let _ = write!(
        out,
        "impl Group {{
    /// The character of a timeline in a terminal; those of two groups differ.
    pub const fn glyph(self) -> char {{ match self {{ {} }} }}
    /// The number of its colour in a terminal, 0 to 15; none is the terminal's own.
    pub const fn ansi(self) -> Option<u8> {{ match self {{ {} }} }}
}}\n",
        glyphs.collect::<String>(),
        ansi.collect::<String>()
    );
    let directory = std::env::var_os("OUT_DIR").expect("cargo sets OUT_DIR");
    std::fs::write(Path::new(&directory).join("names.rs"), out).expect("OUT_DIR is writable");
}

fn write_enum(out: &mut String, kind: &str, doc: &str, names: &[Name], vocabulary: &Vocabulary) {
    let _ = writeln!(
        out,
        "/// {doc}\n#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]\n#[repr(u8)]\npub enum {kind} {{"
    );
    for name in names {
        let _ = writeln!(out, "/// {}\n{},", name.meaning.replace('\n', " "), camel(&name.name));
    }
    let _ = writeln!(
        out,
        "}}\nimpl {kind} {{\n/// All, in the order of `causes.toml`.\npub const ALL: [{kind}; {}] = [{}];",
        names.len(),
        names.iter().map(|name| format!("{kind}::{},", camel(&name.name))).collect::<String>()
    );
    let rows = names.iter().map(|name| {
        let text = |text: &Option<String>| text.clone().unwrap_or_default();
        let advice = name.advice_of.as_ref().map_or(&name.advice, |other| {
            assert!(name.advice.is_empty(), "{}: advice and advice_of", name.name);
            advice_of(vocabulary, other)
        });
        let advice = advice.iter().map(|(runtimes, text)| {
            let runtimes = runtimes.split(' ').map(|runtime| format!("{},", runtime_of(name, runtime)));
            format!("(&[{}], {text:?}),", runtimes.collect::<String>())
        });
        let decided_by = match &name.decided_by {
            Some(runtime) => format!("Some({})", runtime_of(name, runtime)),
            None => "None".to_owned(),
        };
        format!(
            "Text {{ name: {:?}, label: {:?}, meaning: {:?}, computed: {:?}, helps: {:?}, blames: {:?}, published: {:?}, decided_by: {decided_by}, advice: &[{}] }},\n",
            name.name,
            name.label,
            name.meaning,
            text(&name.computed),
            text(&name.helps),
            text(&name.blames),
            text(&name.published),
            advice.collect::<String>()
        )
    });
    let _ = writeln!(
        out,
        "const TEXTS: [Text; {}] = [{}];\n/// Its texts.\npub const fn text(self) -> &'static Text {{ &Self::TEXTS[self as usize] }}
/// The name in JSON, in filters and for `explain`.
pub const fn name(self) -> &'static str {{ self.text().name }}
/// The words in text.
pub const fn label(self) -> &'static str {{ self.text().label }}
/// The one with this name.
pub fn named(name: &str) -> Option<{kind}> {{ {kind}::ALL.into_iter().find(|row| row.name() == name) }}
}}",
        names.len(),
        rows.collect::<String>()
    );
}

/// The variant of a runtime that a name of the vocabulary mentions.
fn runtime_of(name: &Name, runtime: &str) -> String {
    let row = RUNTIMES.iter().find(|(known, _)| *known == runtime);
    format!("Runtime::{}", row.unwrap_or_else(|| panic!("{}: no runtime {runtime}", name.name)).1)
}

/// The advice of the cause, else of the blamed code, with this name.
fn advice_of<'a>(vocabulary: &'a Vocabulary, name: &str) -> &'a BTreeMap<String, String> {
    let found = vocabulary
        .cause
        .iter()
        .chain(&vocabulary.blamed)
        .find(|row| row.name == name && !row.advice.is_empty());
    &found.unwrap_or_else(|| panic!("advice_of {name}: no advice")).advice
}

/// A name as that of a variant: `wait.end` as `WaitEnd`.
fn camel(name: &str) -> String {
    let parts = name.split(['.', '_', '-']).map(|part| {
        let (first, rest) = part.split_at(1);
        first.to_uppercase() + rest
    });
    parts.collect()
}
