//! The channels that a trace really has: those of enabled models, of its marks and its counters.

use super::guard::{Guard, guard_of};
use crate::system::System;
use crate::views::table::{CHANNELS, COUNTER_TYPE, MARK_TYPE, Repeat, Track};
use rustc_hash::FxHashMap;
use std::borrow::Cow;
use taskscope_event::models::{nosv, ovni};
use taskscope_event::spec::Channel;

/// An enabled channel. All threads have the same ones.
#[derive(Clone, Debug)]
pub(crate) struct Slot<'s> {
    pub(crate) model: u8,
    pub(crate) view_type: u32,
    pub(crate) title: String,
    /// Whether the title is used alone, without the name of its owner.
    pub(crate) bare_title: bool,
    pub(crate) track: Track,
    pub(crate) repeat: Repeat,
    pub(crate) may_repeat: bool,
    pub(crate) initial: Option<i64>,
    pub(crate) idle_cpu: Option<i64>,
    pub(crate) labels: Cow<'s, [(i64, String)]>,
    pub(crate) is_mark: bool,
    pub(crate) is_stack: bool,
    /// Whether ovni's lint checks that it is empty at the end.
    pub(crate) is_linted: bool,
}

impl Slot<'_> {
    /// Name of a value in messages.
    pub(crate) fn label_of(&self, value: i64) -> String {
        match self.labels.iter().find(|(other, _)| *other == value) {
            Some((_, label)) => format!("`{label}`"),
            None => format!("value {value}"),
        }
    }
}

/// Places of the channels.
#[derive(Clone, Debug, Default)]
pub(crate) struct Slots {
    /// By index in [`CHANNELS`].
    channels: Vec<Option<u16>>,
    /// By mark number.
    marks: FxHashMap<i32, u16>,
    counters: std::ops::Range<u16>,
}

impl Slots {
    #[inline]
    pub(crate) fn channel(&self, index: usize) -> Option<u16> {
        self.channels[index]
    }

    pub(crate) fn mark(&self, number: i32) -> Option<u16> {
        self.marks.get(&number).copied()
    }

    pub(crate) fn counters(&self) -> std::ops::Range<u16> {
        self.counters.clone()
    }
}

/// All slots of a trace, in the order in which Paraver's configuration lists them.
pub(crate) fn enabled_slots<'s>(system: &'s System, enabled: &[bool; 256]) -> (Vec<Slot<'s>>, Slots) {
    let mut slots = Vec::new();
    let mut found = Slots { channels: vec![None; CHANNELS.len()], ..Slots::default() };
    for (index, channel) in CHANNELS.iter().enumerate() {
        if enabled[channel.model as usize] {
            found.channels[index] = Some(slots.len() as u16);
            slots.push(Slot {
                model: channel.model,
                view_type: channel.view_type,
                title: channel.title.to_owned(),
                bare_title: false,
                track: channel.track,
                repeat: channel.repeat,
                may_repeat: channel.may_repeat,
                initial: channel.initial,
                idle_cpu: channel.idle_cpu,
                labels: channel.labels_of_values().into(),
                is_mark: false,
                is_stack: true,
                is_linted: matches!(channel.effects, Some(Channel::Subsystem | Channel::Function)),
            });
        }
        if channel.model == ovni::LETTER {
            for mark in &system.marks {
                found.marks.insert(mark.number as i32, slots.len() as u16);
                slots.push(user_slot(
                    ovni::LETTER,
                    MARK_TYPE + mark.number,
                    &mark.title,
                    mark.is_stack,
                    true,
                ));
                if let Some(slot) = slots.last_mut() {
                    slot.labels = mark.labels.as_slice().into();
                }
            }
        }
    }
    let first_counter = slots.len() as u16;
    if enabled[nosv::LETTER as usize] {
        for (index, name) in system.hardware_counters.iter().enumerate() {
            slots.push(user_slot(nosv::LETTER, COUNTER_TYPE + index as u32, name, false, false));
        }
    }
    found.counters = first_counter..slots.len() as u16;
    debug_assert!(
        slots.iter().all(|slot| enabled[slot.model as usize] || guard_of(slot.model) == Guard::None)
    );
    (slots, found)
}

fn user_slot(model: u8, view_type: u32, title: &str, is_stack: bool, is_mark: bool) -> Slot<'static> {
    Slot {
        model,
        view_type,
        title: title.to_owned(),
        bare_title: true,
        track: Track::Active,
        repeat: Repeat::SkipNull,
        may_repeat: true,
        initial: None,
        idle_cpu: None,
        labels: Cow::default(),
        is_mark,
        is_stack,
        is_linted: false,
    }
}
