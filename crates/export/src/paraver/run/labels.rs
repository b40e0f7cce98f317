//! `.pcf`: the meanings of states, types and values.

use super::numbers::{
    COUNTERS, MEMORY_TRANSFER, REGION, STATES, TYPES, Type, beside, function_number, mpi_function,
};
use super::rows::one_line;
use crate::paraver::labels::PREAMBLE;
use crate::timeline::{Code, Timeline};
use std::collections::BTreeMap;
use std::io::{self, Write};
use taskscope_event::models::instrument;
use taskscope_execution::State;

/// First number of functions of MPI that Extrae's list does not have here.
const FIRST_OTHER_FUNCTION: u64 = 1000;

/// Numbers of values by their texts, which begin at 1 and are dense: readers lose labels of numbers beyond 2³¹.
#[derive(Default)]
pub(super) struct Places(BTreeMap<String, u64>);

impl Places {
    /// The places in the source of all codes, as Extrae writes them.
    pub fn of(codes: &[Code]) -> Places {
        let texts: std::collections::BTreeSet<String> = codes.iter().filter_map(text_of).collect();
        Places(texts.into_iter().zip(1..).collect())
    }

    /// The number of a code's place; 0 if it is not known.
    pub fn number(&self, code: &Code) -> u64 {
        text_of(code).and_then(|text| self.0.get(&text).copied()).unwrap_or(0)
    }
}

fn text_of(code: &Code) -> Option<String> {
    (!code.file.is_empty()).then(|| format!("{} ({})", code.line, one_line(&code.file)))
}

/// Numbers of functions of MPI.
#[derive(Default)]
pub(super) struct Functions(BTreeMap<String, u64>);

impl Functions {
    pub fn of(codes: &[Code]) -> Functions {
        let mut functions = Functions::default();
        for name in codes.iter().filter_map(mpi_function) {
            let next = FIRST_OTHER_FUNCTION + functions.0.len() as u64;
            functions.0.entry(name.to_owned()).or_insert_with(|| function_number(name).unwrap_or(next));
        }
        functions
    }

    /// The number of a function of one of the codes.
    pub fn number(&self, name: &str) -> u64 {
        self.0.get(name).copied().unwrap_or(0)
    }
}

/// Types and values that occur in the records.
#[derive(Default)]
pub(super) struct Used {
    pub types: [bool; TYPES],
    pub objects: BTreeMap<u64, String>,
}

/// Writes the `.pcf` file.
pub(super) fn write_labels(
    timeline: &Timeline<'_>,
    places: &Places,
    functions: &Functions,
    used: &Used,
    out: &mut Vec<u8>,
) -> io::Result<()> {
    out.write_all(PREAMBLE.as_bytes())?;
    writeln!(out, "\n\nSTATES")?;
    let states = || STATES.iter().chain([&MEMORY_TRANSFER]);
    states().try_for_each(|(number, label, _)| writeln!(out, "{number:<5} {label}"))?;
    writeln!(out, "\n\nSTATES_COLOR")?;
    states().try_for_each(|(number, _, [red, green, blue])| {
        writeln!(out, "{number:<5} {{{red},{green},{blue}}}")
    })?;
    for ty in Type::ALL.into_iter().filter(|ty| used.types[*ty as usize]) {
        let (number, label) = ty.number_and_label();
        write_type(number, label, &values(ty, timeline, places, functions, used), out)?;
    }
    let mut counters: Vec<&str> = timeline.counters().iter().map(|counter| counter.name).collect();
    counters.sort_unstable();
    counters.dedup();
    for (name, number) in counters.into_iter().zip(COUNTERS..) {
        write_type(number, name, &[], out)?;
    }
    let types: BTreeMap<u32, String> = timeline.lanes().iter().filter_map(|lane| beside(lane.kind)).collect();
    let stateless = timeline.codes().iter().zip(1..).filter(|(code, _)| code.state.is_none());
    let stateless: Vec<(u64, String)> = stateless.map(|(code, number)| (number, code.name.clone())).collect();
    types.iter().try_for_each(|(number, label)| write_type(*number, label, &stateless, out))
}

fn write_type(number: u32, label: &str, values: &[(u64, String)], out: &mut Vec<u8>) -> io::Result<()> {
    writeln!(out, "\n\nEVENT_TYPE\n0    {number:<10} {}", one_line(label))?;
    if values.is_empty() {
        return Ok(());
    }
    writeln!(out, "VALUES\n0      End")?;
    values.iter().try_for_each(|(value, label)| writeln!(out, "{value:<6} {}", one_line(label)))
}

/// The labels of a type's values but 0; none of numbers.
fn values(
    ty: Type,
    timeline: &Timeline<'_>,
    places: &Places,
    functions: &Functions,
    used: &Used,
) -> Vec<(u64, String)> {
    let codes = || timeline.codes().iter().zip(1..);
    let by_text =
        |of: &BTreeMap<String, u64>| of.iter().map(|(text, number)| (*number, text.clone())).collect();
    match ty {
        Type::Application => vec![(1, "Begin".to_owned())],
        Type::NanosState => instrument::STATES
            .iter()
            .zip(0..)
            .skip(1)
            .map(|((name, _), number)| (number, (*name).to_owned()))
            .collect(),
        Type::NanosFunction | Type::TaskFunction => codes()
            .filter(|(code, _)| code.state == Some(State::Task))
            .map(|(code, number)| (number, code.name.clone()))
            .collect(),
        Type::Construct => codes()
            .filter(|(code, _)| code.state.is_some_and(is_construct))
            .map(|(code, number)| (number, code.name.clone()))
            .collect(),
        Type::Code => codes().map(|(code, number)| (number, code.name.clone())).collect(),
        Type::State => {
            State::ALL.iter().zip(1..).map(|(state, number)| (number, state.label().to_owned())).collect()
        }
        Type::NanosPlace | Type::ConstructPlace | Type::TaskPlace => by_text(&places.0),
        Type::PointToPoint | Type::Collective | Type::OtherMpi | Type::OneSided | Type::MpiFile => {
            let class_functions = functions.0.iter().filter(|(name, _)| super::numbers::class_of(name) == ty);
            class_functions.map(|(name, number)| (*number, name.clone())).collect()
        }
        Type::Object => used.objects.iter().map(|(number, name)| (*number, name.clone())).collect(),
        Type::Region => vec![(REGION, "REGION (open)".to_owned())],
        Type::NanosTask | Type::RegionNumber | Type::Amount => Vec::new(),
    }
}

/// Whether a section is code of a construct that Extrae calls a parallel function.
pub(super) fn is_construct(state: State) -> bool {
    matches!(state, State::ImplicitTask | State::Worksharing | State::Masked)
}
