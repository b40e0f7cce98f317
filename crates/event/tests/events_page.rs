//! `docs/events.md` is the event table. `UPDATE_DOCS=1 cargo test -p taskscope-event` writes it anew.

use std::fmt::Write;
use taskscope_event::models::MODELS;
use taskscope_event::spec::{Effect, EventSpec, FieldType};

fn type_name(ty: FieldType) -> &'static str {
    match ty {
        FieldType::U8 => "u8",
        FieldType::U32 => "u32",
        FieldType::U64 => "u64",
        FieldType::I32 => "i32",
        FieldType::I64 => "i64",
        FieldType::Str => "str",
        FieldType::Rest => "bytes",
    }
}

fn effect(event: &EventSpec) -> String {
    match event.effect {
        Effect::Push(channel, value, label) => format!("push {channel:?} {value} “{label}”"),
        Effect::Pop(channel, value, label) => format!("pop {channel:?} {value} “{label}”"),
        Effect::Set(channel, value, label) => format!("set {channel:?} {value} “{label}”"),
        Effect::Ignore => "none".to_owned(),
        Effect::Rule => "rule".to_owned(),
    }
}

fn page() -> String {
    let mut page = String::from(
        "# Events\n\nAll events of all models, written from the event table in `crates/event/src/models`. \
         A `+` marks jumbo\nevents. The sentence's subject is the thread; `{field}` stands for a value.\n",
    );
    for model in MODELS {
        let file = if model.own { "taskscope.obs" } else { "stream.obs" };
        let _ = write!(
            page,
            "\n## {} {} (letter `{}`, `{file}`)\n\n| event | name | payload | effect | sentence |\n\
             | --- | --- | --- | --- | --- |\n",
            model.name, model.version, model.letter as char
        );
        for event in model.events {
            let jumbo = if event.jumbo { "+" } else { "" };
            let fields: Vec<String> =
                event.fields.iter().map(|field| format!("{} {}", type_name(field.ty), field.name)).collect();
            let _ = writeln!(
                page,
                "| `{}{jumbo}` | `{}` | {} | {} | {} |",
                event.code.to_string().replace('|', "\\|"),
                event.name,
                fields.join(", "),
                effect(event),
                event.meaning
            );
        }
    }
    page
}

#[test]
fn the_page_is_fresh() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/events.md");
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(path, page()).unwrap();
    }
    let stored = std::fs::read_to_string(path).unwrap_or_default();
    assert!(stored == page(), "docs/events.md is stale; run: UPDATE_DOCS=1 cargo test -p taskscope-event");
}
