//! The form of an event's declaration, and the macro that writes a model's table.

use crate::Code;
use core::ops::RangeInclusive;

/// The type of a payload field, little endian, unaligned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldType {
    /// 8-bit unsigned.
    U8,
    /// 32-bit unsigned.
    U32,
    /// 64-bit unsigned.
    U64,
    /// 32-bit signed.
    I32,
    /// 64-bit signed.
    I64,
    /// Bytes up to and including a NUL; only in jumbo events.
    Str,
    /// All remaining bytes, in an inner form that the event's meaning describes; only as last field.
    Rest,
}

impl FieldType {
    /// Size in bytes, if it is fixed.
    pub const fn size(self) -> Option<usize> {
        match self {
            FieldType::U8 => Some(1),
            FieldType::U32 | FieldType::I32 => Some(4),
            FieldType::U64 | FieldType::I64 => Some(8),
            FieldType::Str | FieldType::Rest => None,
        }
    }

    /// The range of numbers that it holds, if it holds numbers.
    pub const fn numbers(self) -> Option<RangeInclusive<i128>> {
        Some(match self {
            FieldType::U8 => 0..=u8::MAX as i128,
            FieldType::U32 => 0..=u32::MAX as i128,
            FieldType::U64 => 0..=u64::MAX as i128,
            FieldType::I32 => i32::MIN as i128..=i32::MAX as i128,
            FieldType::I64 => i64::MIN as i128..=i64::MAX as i128,
            FieldType::Str | FieldType::Rest => return None,
        })
    }
}

/// A named payload field.
#[derive(Clone, Copy, Debug)]
pub struct Field {
    /// Name as in the event's sentence.
    pub name: &'static str,
    /// How its bytes are read.
    pub ty: FieldType,
}

/// Fields that are times or durations in nanoseconds in at least one event, and users' values (`value`),
/// which may be either.
pub(crate) const NANOS: [&str; 21] = [
    "age",
    "append",
    "at",
    "begun",
    "busy_ns",
    "delay_ns",
    "end",
    "ended",
    "error",
    "late_by",
    "nanoseconds",
    "ns",
    "offset",
    "own_ns",
    "period_ns",
    "start",
    "stolen_ns",
    "submit",
    "value",
    "weight_ns",
    "woken",
];

impl Field {
    /// Whether it is nanoseconds, or may be some.
    pub fn may_be_nanos(&self) -> bool {
        NANOS.contains(&self.name)
    }
}

/// A value, or a stack of values, that a thread has per model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Channel {
    /// The part of the runtime that the thread is in; a stack.
    Subsystem,
    /// Whether the worker has work; a single value.
    Idle,
    /// The kind of thread; a stack.
    ThreadType,
    /// The library function that the thread is in; a stack.
    Function,
}

/// Effect of an event on its thread.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Effect {
    /// Pushes a value with its label.
    Push(Channel, i64, &'static str),
    /// Pops that value, which must be on top.
    Pop(Channel, i64, &'static str),
    /// Sets a single-valued channel.
    Set(Channel, i64, &'static str),
    /// No effect.
    Ignore,
    /// The effect is written as code in the model.
    Rule,
}

/// What an event affects, which decides the order in which readers replay it. Recorders do not read it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// Its own thread alone, independent of what other threads' events change: it is replayed after the thread's event
    /// before it, in any order relative to other threads.
    Thread,
    /// Other threads too, or what other threads' events change: it is replayed in the order of the whole trace.
    Trace,
}

impl Scope {
    /// The scope of an event: as declared with it, else with its table, else by its effect. A stack of parts of the runtime
    /// and the idle state are the thread's own.
    pub(crate) const fn of(declared: &[Scope], table: Option<Scope>, effect: Effect) -> Scope {
        if let [scope, ..] = declared {
            return *scope;
        }
        if let Some(scope) = table {
            return scope;
        }
        match effect {
            Effect::Push(Channel::ThreadType, ..) | Effect::Pop(Channel::ThreadType, ..) => Scope::Trace,
            Effect::Push(..) | Effect::Pop(..) | Effect::Set(..) => Scope::Thread,
            Effect::Ignore | Effect::Rule => Scope::Trace,
        }
    }
}

/// The declaration of one event.
#[derive(Clone, Copy, Debug)]
pub struct EventSpec {
    /// Name of the constant that holds the code.
    pub name: &'static str,
    /// The three characters.
    pub code: Code,
    /// Whether the payload is jumbo data.
    pub jumbo: bool,
    /// Payload fields in order.
    pub fields: &'static [Field],
    /// Effect on the thread that emitted it.
    pub effect: Effect,
    /// What it affects.
    pub scope: Scope,
    /// A sentence with the thread as its subject; `{field}` stands for a value.
    pub meaning: &'static str,
}

/// The declaration of one model.
#[derive(Clone, Copy, Debug)]
pub struct ModelSpec {
    /// The letter that opens its codes.
    pub letter: u8,
    /// Name as in `ovni.require` or, for taskscope's own models, in `taskscope.require`.
    pub name: &'static str,
    /// Version of the events below, `major.minor.patch`.
    pub version: &'static str,
    /// Whether it is one of taskscope's own models, which live in `taskscope.obs`.
    pub own: bool,
    /// All its events.
    pub events: &'static [EventSpec],
}

impl ModelSpec {
    /// The declaration of `code`, if it belongs to this model.
    pub fn find(&self, code: Code) -> Option<&'static EventSpec> {
        self.events.iter().find(|event| event.code == code)
    }
}

macro_rules! field_type {
    (u8) => {
        $crate::spec::FieldType::U8
    };
    (u32) => {
        $crate::spec::FieldType::U32
    };
    (u64) => {
        $crate::spec::FieldType::U64
    };
    (i32) => {
        $crate::spec::FieldType::I32
    };
    (i64) => {
        $crate::spec::FieldType::I64
    };
    (str) => {
        $crate::spec::FieldType::Str
    };
    (rest) => {
        $crate::spec::FieldType::Rest
    };
}
pub(crate) use field_type;

macro_rules! is_jumbo {
    (plain) => {
        false
    };
    (jumbo) => {
        true
    };
}
pub(crate) use is_jumbo;

/// `NAME = b"MCV" plain|jumbo (field: type, …) Effect, "meaning";` for each event: declares a
/// constant `NAME: Code` and a row of the table `EVENTS`. A [`Scope`] that differs from that of the effect follows the
/// meaning, or, for all events of a table, precedes the first: `all Trace;`.
macro_rules! events {
    (all $scope:ident; $($rows:tt)*) => {
        $crate::spec::events! { @table (Some($crate::spec::Scope::$scope)) $($rows)* }
    };
    (@table $all:tt $( $name:ident = $code:literal $kind:ident ($($field:ident : $ty:ident),*) $effect:expr, $meaning:literal $(, $scope:ident)?; )*) => {
        $(
            #[doc = concat!("The thread ", $meaning, ".")]
            pub const $name: $crate::Code = $crate::Code::new($code);
        )*
        /// All events of this model.
        pub static EVENTS: &[$crate::spec::EventSpec] = &[$(
            $crate::spec::EventSpec {
                name: stringify!($name),
                code: $name,
                jumbo: $crate::spec::is_jumbo!($kind),
                fields: &[$( $crate::spec::Field {
                    name: $crate::spec::field_name(stringify!($field)),
                    ty: $crate::spec::field_type!($ty),
                } ),*],
                effect: $effect,
                scope: $crate::spec::Scope::of(&[$($crate::spec::Scope::$scope)?], $all, $effect),
                meaning: $meaning,
            },
        )*];
    };
    ($($rows:tt)*) => {
        $crate::spec::events! { @table (None) $($rows)* }
    };
}
pub(crate) use events;

/// A field's name without the `r#` that keeps it from being a keyword.
pub(crate) const fn field_name(name: &'static str) -> &'static str {
    match name.as_bytes() {
        [b'r', b'#', ..] => name.split_at(2).1,
        _ => name,
    }
}
