//! Events and streams as filters see them: fields, their kinds and their values.

use taskscope_event::decode::FieldValue;
use taskscope_event::models;
use taskscope_event::{Code, StreamFile};
use taskscope_filter::{Fields, Kind, Numbers, Record, SIGNED, Value, nearest};
use taskscope_trace::{MergedEvent, Trace};

/// Fields that every event has.
pub const EVENT_FIELDS: [&str; 12] = [
    "time",
    "clock",
    "thread",
    "thread_name",
    "process",
    "loom",
    "app",
    "stream",
    "model",
    "event",
    "name",
    "file",
];

/// Fields with one value for all events of a stream.
pub(super) const STREAM_FIELDS: [&str; 6] = ["thread", "thread_name", "process", "loom", "app", "stream"];

/// Common properties of all events of a stream.
pub(super) struct StreamRecord<'a> {
    pub trace: &'a Trace,
    pub stream: usize,
}

impl Record for StreamRecord<'_> {
    fn field<R>(&self, name: &str, with: impl FnOnce(Option<Value<'_>>) -> R) -> R {
        field_of_stream(self.trace, self.stream, name, with)
    }
}

/// The fields of events, for filters.
pub const FIELDS_OF_EVENTS: Fields = Fields {
    of: "events",
    kind: kind_of_field,
    names: || format!("{}, or a field of a payload (docs/events.md)", EVENT_FIELDS.join(", ")),
};

/// The kind of a field of events: one of [`EVENT_FIELDS`], or one of some payload.
fn kind_of_field(name: &str) -> Option<Kind> {
    match name {
        "time" => return Some(Kind::Time(0..=*SIGNED.end())),
        "clock" => return Some(Kind::Time(SIGNED)),
        "thread" | "process" | "app" => return Some(Kind::Number(SIGNED)),
        "model" => return Some(Kind::Words(models::MODELS.iter().map(|model| model.name).collect())),
        "event" => return Some(Kind::Checked(check_code)),
        "name" => return Some(Kind::Checked(check_name)),
        "file" => return Some(Kind::Words(vec![StreamFile::Standard.name(), StreamFile::Own.name()])),
        _ if EVENT_FIELDS.contains(&name) => return Some(Kind::Text),
        _ => {}
    }
    // Fields of one name may differ from event to event.
    let payload_fields = models::MODELS.iter().flat_map(|model| model.events).flat_map(|event| event.fields);
    let kinds = payload_fields.filter(|known| known.name == name).map(|known| match known.ty.numbers() {
        Some(numbers) if known.may_be_nanos() => Kind::Time(numbers),
        Some(numbers) => Kind::Number(numbers),
        None => Kind::Text,
    });
    kinds.reduce(|one, other| {
        let both = |a: Numbers, b: Numbers| *a.start().min(b.start())..=*a.end().max(b.end());
        match (one, other) {
            (Kind::Text, Kind::Text) => Kind::Text,
            (Kind::Number(a), Kind::Number(b)) => Kind::Number(both(a, b)),
            (Kind::Time(a), Kind::Time(b)) => Kind::Time(both(a, b)),
            _ => Kind::Any,
        }
    })
}

/// Whether an event is likely to have this code. Of other models nothing is known; a model of the table may have more events in a
/// later version, but to misspell a code is far more likely.
fn check_code(word: &str) -> Result<(), String> {
    // Bytes that are not characters are shown as `\xNN`.
    let code = match word.as_bytes().try_into().map(Code) {
        Ok(code) => code,
        Err(_) if word.contains("\\x") => return Ok(()),
        Err(_) => {
            let name = find_name(|name| name.eq_ignore_ascii_case(word));
            let hint =
                name.map_or_else(String::new, |name| format!("; names are asked for by `name = {name}`"));
            return Err(format!("`event` is a code of three characters, and `{word}` is none{hint}"));
        }
    };
    let Some(model) = models::model_of(code.model()) else { return Ok(()) };
    if model.find(code).is_some() {
        return Ok(());
    }
    let codes: Vec<String> = model.events.iter().map(|event| event.code.to_string()).collect();
    let hint = nearest(word, codes.iter().map(String::as_str))
        .map_or_else(String::new, |nearest| format!("; the nearest is `{nearest}`"));
    Err(format!("{} has no event `{word}`{hint} (`event ~ {word}` looks for it all the same)", model.name))
}

/// Whether an event can have this name: those that the table does not have are without one.
fn check_name(word: &str) -> Result<(), String> {
    if find_name(|name| name == word).is_some() {
        return Ok(());
    }
    let hint = nearest(word, names_of_events())
        .map_or_else(|| " (docs/events.md)".to_owned(), |nearest| format!("; the nearest is `{nearest}`"));
    Err(format!("no event is called `{word}`{hint}"))
}

fn find_name(is_meant: impl Fn(&str) -> bool) -> Option<&'static str> {
    names_of_events().find(|name| is_meant(name))
}

fn names_of_events() -> impl Iterator<Item = &'static str> {
    models::MODELS.iter().flat_map(|model| model.events).map(|event| event.name)
}

/// An event as filters see it.
#[derive(Clone, Copy)]
pub struct EventRecord<'a> {
    /// Its trace.
    pub trace: &'a Trace,
    /// The event.
    pub merged: MergedEvent<'a>,
    /// Nanoseconds since the trace's first event.
    pub time_ns: i64,
}

impl Record for EventRecord<'_> {
    fn field<R>(&self, name: &str, with: impl FnOnce(Option<Value<'_>>) -> R) -> R {
        let event = &self.merged.event;
        let spec = || models::find(event.code);
        match name {
            "time" => with(Some(Value::from(self.time_ns))),
            "clock" => with(Some(Value::from(event.clock_ns))),
            "event" => with(Some(Value::Text(&event.code.to_string()))),
            "model" => with(model_name(event.code).map(Value::Text)),
            "name" => with(spec().map(|spec| Value::Text(spec.name))),
            "file" => with(Some(Value::Text(self.merged.file.name()))),
            _ if EVENT_FIELDS.contains(&name) => field_of_stream(self.trace, self.merged.stream, name, with),
            _ => {
                let mut fields = spec().into_iter().flat_map(|spec| spec.fields_of(event.payload));
                match fields.find(|(field, _)| *field == name) {
                    Some((_, Ok(value))) => value_of_payload(value, with),
                    _ => with(None),
                }
            }
        }
    }

    fn any(&self, name: &str, passes: impl Fn(Value<'_>) -> bool) -> bool {
        if EVENT_FIELDS.contains(&name) {
            return self.field(name, |value| value.is_some_and(passes));
        }
        // All counters of an event are fields of one name.
        let event = &self.merged.event;
        let fields = models::find(event.code).into_iter().flat_map(|spec| spec.fields_of(event.payload));
        fields
            .filter(|(field, _)| *field == name)
            .filter_map(|(_, value)| value.ok())
            .any(|value| value_of_payload(value, |value| value.is_some_and(&passes)))
    }
}

fn value_of_payload<R>(value: FieldValue<'_>, with: impl FnOnce(Option<Value<'_>>) -> R) -> R {
    match value {
        FieldValue::Integer(number) => with(Some(Value::Integer(number))),
        text => with(Some(Value::Text(&text.to_string()))),
    }
}

/// The name of an event's model.
pub fn model_name(code: Code) -> Option<&'static str> {
    models::model_of(code.model()).map(|model| model.name)
}

/// A field that all events of a stream share.
pub fn field_of_stream<R>(
    trace: &Trace,
    stream: usize,
    name: &str,
    with: impl FnOnce(Option<Value<'_>>) -> R,
) -> R {
    let Some(stream) = trace.streams().get(stream) else { return with(None) };
    match name {
        "thread" => with(stream.tid().map(Value::from)),
        "thread_name" => with(Some(Value::Text(trace.thread_name(stream)))),
        "process" => with(stream.pid().map(Value::from)),
        "app" => with(stream.metadata.app_id.map(Value::from)),
        "loom" => with(stream.loom().map(Value::Text)),
        "stream" => with(Some(Value::Text(&stream.relative_path))),
        _ => with(None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use taskscope_filter::Filter;

    fn problem(filter: &str) -> Option<String> {
        Filter::parse(filter, &FIELDS_OF_EVENTS).err().map(|error| error.to_string())
    }

    #[test]
    fn names_that_no_event_has_are_refused_with_the_nearest() {
        let all_the_same =
            |word: &str| format!("(`event ~ {word}` looks for it all the same) (at character 9)");
        for (filter, expected) in [
            ("event = VTX", format!("nosv has no event `VTX`; the nearest is `VTx` {}", all_the_same("VTX"))),
            (
                "event in VTx, VT*",
                "nosv has no event `VT*`; the nearest is `VTc` (`event ~ VT*` looks for it all the same) (at character 15)".into(),
            ),
            (
                "event = task_execute",
                "`event` is a code of three characters, and `task_execute` is none; names are asked for by `name = TASK_EXECUTE` (at character 9)"
                    .into(),
            ),
            ("event != VTxx", "`event` is a code of three characters, and `VTxx` is none (at character 10)".into()),
            ("name = TASK_EXCUTE", "no event is called `TASK_EXCUTE`; the nearest is `TASK_EXECUTE` (at character 8)".into()),
            ("name = 'so long a name that nothing is near'", "no event is called `so long a name that nothing is near` (docs/events.md) (at character 8)".into()),
            ("file = stream", "no file is called `stream`; one of: stream.obs, taskscope.obs (at character 8)".into()),
        ] {
            assert_eq!(problem(filter), Some(expected), "{filter}");
        }
        // Other models, bytes that are not characters, patterns and orders.
        for filter in [
            "event = zzz",
            "event = 'V\\x00x'",
            "event ~ VTX",
            "event >= VT",
            "name ~ TASK_EX?UTE",
            "event in VTx, VTe",
            "event = '6W*'",
        ] {
            assert_eq!(problem(filter), None, "{filter}");
        }
    }

    #[test]
    fn fields_accept_values_of_any_payload() {
        // A mark's value has a sign, a burst's has all 64 bits; both may be times.
        for filter in [
            "value = -8",
            "value > 18446744073709551000",
            "value > 3ms",
            "cpu = -1",
            "tag = -5",
            "submit < 3ms",
        ] {
            assert_eq!(problem(filter), None, "{filter}");
        }
        for filter in
            ["taskid = 5ms", "taskid = -1", "bytes < 0", "cpu = 5ms", "key > 4294967295", "time < 0"]
        {
            assert!(problem(filter).is_some(), "{filter}");
        }
        for model in models::MODELS {
            for event in model.events {
                assert_eq!(problem(&format!("event = '{}' and name = {}", event.code, event.name)), None);
            }
        }
    }
}
