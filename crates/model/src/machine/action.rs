//! Maps an event's code to its action, in one table lookup.

use super::guard::{Guard, guard_of};
use super::slot::Slots;
use crate::views::table::{CHANNELS, channel};
use taskscope_event::Code;
use taskscope_event::models::{MODELS, kernel, nanos6, nosv, openmp, ovni};
use taskscope_event::spec::{Effect, EventSpec};

/// Action of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    Unknown,
    Nothing { guard: Guard },
    Push { slot: u16, value: i64, guard: Guard },
    Pop { slot: u16, value: i64, guard: Guard },
    Set { slot: u16, value: i64, guard: Guard },
    Rule(Rule),
}

/// An event with an action written as code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rule {
    /// Its model is not enabled or not known.
    NotEnabled,
    Create,
    Execute,
    End,
    Pause,
    Resume,
    Cool,
    Warm,
    SetAffinity,
    RemoteAffinity,
    Burst,
    Old,
    FlushBegin,
    FlushEnd,
    UnsortedBorder,
    MarkPush,
    MarkPop,
    MarkSet,
    OutOfCpu,
    BackOnCpu,
    TypeCreate,
    TaskCreate,
    ParallelTaskCreate,
    TaskExecute,
    TaskEnd,
    TaskPause,
    TaskResume,
    WorkshareExecute,
    WorkshareEnd,
    Counters,
}

/// Table entry of a code.
#[derive(Clone, Copy)]
pub(crate) struct Entry {
    pub(crate) action: Action,
    /// Total size of its declared fields of fixed size, in bytes; 0 for undeclared events.
    pub(crate) payload_bytes: u8,
    pub(crate) spec: Option<&'static EventSpec>,
}

/// Two characters of seven bits.
const CODES_PER_MODEL: usize = 1 << 14;

/// The action of each code, found by the code's characters.
pub(crate) struct ActionTable {
    /// First entry in `index` of each model letter.
    base: [u32; 256],
    index: Vec<u16>,
    entries: Vec<Entry>,
}

impl ActionTable {
    pub(crate) fn new(slots: &Slots) -> Self {
        let unknown = Entry { action: Action::Unknown, payload_bytes: 0, spec: None };
        let mut table = ActionTable { base: [u32::MAX; 256], index: Vec::new(), entries: vec![unknown] };
        for model in MODELS.iter().filter(|model| !model.own) {
            let base = table.index.len();
            table.base[model.letter as usize] = base as u32;
            table.index.resize(base + CODES_PER_MODEL, 0);
            for event in model.events {
                let action = action_of(event.code, event.effect, slots);
                table.insert(event.code, action, Some(event));
            }
            // Also accepted: every value of a burst and of a region's border, and an old event for the creation of
            // Nanos6 tasks.
            if model.letter == ovni::LETTER {
                for (code, rule) in [(ovni::BURST, Rule::Burst), (ovni::UNSORTED_BEGIN, Rule::UnsortedBorder)]
                {
                    let spec = model.find(code);
                    (0..128)
                        .for_each(|value| table.insert(with_value(code, value), Action::Rule(rule), spec));
                }
            }
            if model.letter == nanos6::LETTER {
                let old = with_value(nanos6::TASK_CREATE, nanos6::TASK_CREATE.0[2].to_ascii_uppercase());
                table.insert(old, Action::Rule(Rule::Old), None);
            }
        }
        table
    }

    fn insert(&mut self, code: Code, action: Action, spec: Option<&'static EventSpec>) {
        let number = self.entries.len() as u16;
        let sizes = spec.into_iter().flat_map(|spec| spec.fields).filter_map(|field| field.ty.size());
        self.entries.push(Entry { action, payload_bytes: sizes.sum::<usize>() as u8, spec });
        if let Some(place) = self.place(code) {
            self.index[place] = number;
        }
    }

    #[inline]
    fn place(&self, code: Code) -> Option<usize> {
        let [model, category, value] = code.0;
        let base = self.base[model as usize];
        if base == u32::MAX || (category | value) >= 128 {
            return None;
        }
        Some(base as usize + (usize::from(category) << 7 | usize::from(value)))
    }

    /// Returns the entry of `code`.
    #[inline]
    pub(crate) fn find(&self, code: Code) -> Entry {
        let number = self.place(code).map_or(0, |place| self.index[place]);
        self.entries[number as usize]
    }
}

fn with_value(code: Code, value: u8) -> Code {
    Code([code.0[0], code.0[1], value])
}

fn action_of(code: Code, effect: Effect, slots: &Slots) -> Action {
    let guard = guard_of(code.model());
    let slot_of = |channel| {
        let index = CHANNELS.iter().position(|c| c.model == code.model() && c.effects == Some(channel))?;
        slots.channel(index)
    };
    let not_enabled = Action::Rule(Rule::NotEnabled);
    match effect {
        Effect::Push(channel, value, _) => {
            slot_of(channel).map_or(not_enabled, |slot| Action::Push { slot, value, guard })
        }
        Effect::Pop(channel, value, _) => {
            slot_of(channel).map_or(not_enabled, |slot| Action::Pop { slot, value, guard })
        }
        Effect::Set(channel, value, _) => {
            slot_of(channel).map_or(not_enabled, |slot| Action::Set { slot, value, guard })
        }
        _ if !is_enabled(code.model(), slots) => not_enabled,
        Effect::Ignore => Action::Nothing { guard },
        Effect::Rule => rule_of(code).map_or(Action::Unknown, Action::Rule),
    }
}

/// Whether the machine has channels of a model.
fn is_enabled(model: u8, slots: &Slots) -> bool {
    CHANNELS.iter().enumerate().any(|(index, spec)| spec.model == model && slots.channel(index).is_some())
}

fn rule_of(code: Code) -> Option<Rule> {
    debug_assert!(CHANNELS[channel::FLUSH].model == ovni::LETTER);
    Some(match code {
        ovni::THREAD_CREATES => Rule::Create,
        ovni::THREAD_EXECUTES => Rule::Execute,
        ovni::THREAD_ENDS => Rule::End,
        ovni::THREAD_PAUSES => Rule::Pause,
        ovni::THREAD_RESUMES => Rule::Resume,
        ovni::THREAD_COOLS => Rule::Cool,
        ovni::THREAD_WARMS => Rule::Warm,
        ovni::SET_AFFINITY => Rule::SetAffinity,
        ovni::REMOTE_AFFINITY => Rule::RemoteAffinity,
        ovni::BURST => Rule::Burst,
        ovni::CPU_COUNT => Rule::Old,
        ovni::FLUSH_BEGIN => Rule::FlushBegin,
        ovni::FLUSH_END => Rule::FlushEnd,
        ovni::UNSORTED_BEGIN | ovni::UNSORTED_END => Rule::UnsortedBorder,
        ovni::MARK_PUSH => Rule::MarkPush,
        ovni::MARK_POP => Rule::MarkPop,
        ovni::MARK_SET => Rule::MarkSet,
        kernel::OUT_OF_CPU => Rule::OutOfCpu,
        kernel::BACK_ON_CPU => Rule::BackOnCpu,
        nanos6::TYPE_CREATE | nosv::TYPE_CREATE | openmp::TYPE_CREATE => Rule::TypeCreate,
        nanos6::TASK_CREATE | nosv::TASK_CREATE | openmp::TASK_CREATE => Rule::TaskCreate,
        nosv::PARALLEL_TASK_CREATE => Rule::ParallelTaskCreate,
        nanos6::TASK_EXECUTE | nosv::TASK_EXECUTE | openmp::TASK_EXECUTE => Rule::TaskExecute,
        nanos6::TASK_END | nosv::TASK_END | openmp::TASK_END => Rule::TaskEnd,
        nanos6::TASK_PAUSE | nosv::TASK_PAUSE => Rule::TaskPause,
        nanos6::TASK_RESUME | nosv::TASK_RESUME => Rule::TaskResume,
        openmp::WORKSHARE_EXECUTE => Rule::WorkshareExecute,
        openmp::WORKSHARE_END => Rule::WorkshareEnd,
        nosv::HARDWARE_COUNTERS => Rule::Counters,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_rule_event_has_a_rule() {
        for event in MODELS.iter().filter(|model| !model.own).flat_map(|model| model.events) {
            assert!(event.effect != Effect::Rule || rule_of(event.code).is_some(), "{}", event.code);
        }
    }
}
