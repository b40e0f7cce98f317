//! All models: the eight of ovni, which live in `stream.obs`, and taskscope's own, which live in
//! `taskscope.obs` beside it; samples in `samples.obs`.

use crate::Code;
use crate::spec::{EventSpec, ModelSpec};

pub mod device;
pub mod dictionary;
pub mod graph;
pub mod instrument;
pub mod kernel;
pub mod messages;
pub mod mpi;
mod mpi_functions;
pub mod nanos6;
pub mod nodes;
pub mod nosv;
pub mod omp;
pub mod openmp;
pub mod ovni;
pub mod recorder;
pub mod samples;
pub mod system;
pub mod tampi;
pub mod wait;

/// Imports of every table.
mod prelude {
    pub(super) use crate::spec::Effect::*;
    #[allow(unused_imports, reason = "some tables have rules only")]
    pub(super) use crate::spec::{Channel, events};
}

macro_rules! model {
    ($module:ident, $name:literal, $own:literal) => {
        ModelSpec {
            letter: $module::LETTER,
            name: $name,
            version: $module::VERSION,
            own: $own,
            events: $module::EVENTS,
        }
    };
}

/// Every model, ovni's first.
pub static MODELS: &[ModelSpec] = &[
    model!(ovni, "ovni", false),
    model!(nanos6, "nanos6", false),
    model!(nosv, "nosv", false),
    model!(nodes, "nodes", false),
    model!(openmp, "openmp", false),
    model!(mpi, "mpi", false),
    model!(tampi, "tampi", false),
    model!(kernel, "kernel", false),
    model!(dictionary, "taskscope-dictionary", true),
    model!(wait, "taskscope-wait", true),
    model!(omp, "taskscope-omp", true),
    model!(recorder, "taskscope-recorder", true),
    model!(graph, "taskscope-graph", true),
    model!(device, "taskscope-device", true),
    model!(samples, "taskscope-samples", true),
    model!(instrument, "taskscope-instrument", true),
    model!(system, "taskscope-system", true),
    model!(messages, "taskscope-messages", true),
];

/// Models of runtimes that work on the CPUs of a loom: they report their sections as a stack.
pub const MODELS_OF_CPUS: [&str; 3] = ["nanos6", "nosv", "nodes"];

/// The model with codes that start with `letter`.
pub fn model_of(letter: u8) -> Option<&'static ModelSpec> {
    MODELS.iter().find(|model| model.letter == letter)
}

/// The declaration of `code`.
pub fn find(code: Code) -> Option<&'static EventSpec> {
    model_of(code.model())?.find(code)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::FieldType;
    use std::collections::HashSet;

    #[test]
    fn codes_are_unique_and_carry_their_model_letter() {
        let mut seen = HashSet::new();
        for model in MODELS {
            for event in model.events {
                assert_eq!(event.code.model(), model.letter, "{}", event.name);
                assert!(seen.insert(event.code), "{} twice", event.code);
            }
        }
    }

    #[test]
    fn payloads_can_be_framed() {
        for event in MODELS.iter().flat_map(|m| m.events) {
            let fixed: Option<usize> = event.fields.iter().map(|f| f.ty.size()).sum();
            match fixed {
                Some(bytes) if !event.jumbo => {
                    assert!(bytes != 1 && bytes <= crate::framing::MAX_PAYLOAD_BYTES, "{}", event.name)
                }
                Some(_) => {}
                None => assert!(event.jumbo, "{}: open-ended fields need a jumbo", event.name),
            }
            let rest = event.fields.iter().position(|f| f.ty == FieldType::Rest);
            assert!(rest.is_none_or(|i| i + 1 == event.fields.len()), "{}", event.name);
        }
    }

    #[test]
    fn sentences_name_existing_fields() {
        for event in MODELS.iter().flat_map(|m| m.events) {
            for part in event.meaning.split('{').skip(1) {
                let name = part.split('}').next().unwrap();
                assert!(event.fields.iter().any(|f| f.name == name), "{}: {{{name}}}", event.name);
            }
        }
    }

    #[test]
    fn values_in_nanoseconds_accept_a_unit() {
        let fields = || MODELS.iter().flat_map(|m| m.events).flat_map(|event| event.fields);
        for name in crate::spec::NANOS {
            assert!(fields().any(|field| field.name == name && field.ty.size() > Some(1)), "{name}");
        }
        for event in MODELS.iter().flat_map(|m| m.events) {
            for field in event.fields {
                let is_known = event.meaning.contains(&std::format!("{{{}}} ns", field.name));
                assert!(!is_known || field.may_be_nanos(), "{}: {}", event.name, field.name);
            }
        }
    }

    #[test]
    fn ovnis_models_have_365_events() {
        let standard: usize = MODELS.iter().filter(|m| !m.own).map(|m| m.events.len()).sum();
        assert_eq!(standard, 365);
    }
}
