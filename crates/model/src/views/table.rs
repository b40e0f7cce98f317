//! All channels of a thread, and their appearance: Paraver type, title, visibility, handling of repeated
//! values. One row per channel; the rest of the crate is generic over this table. Values' labels come from
//! the event table.

use taskscope_event::models::{MODELS, kernel, mpi, nanos6, nodes, nosv, openmp, ovni, tampi};
use taskscope_event::spec::{Channel, Effect};

/// When a thread's row shows the channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Track {
    /// Always.
    Any,
    /// While the thread runs.
    Running,
    /// While it runs, cools or warms.
    Active,
}

/// Output of a cell that is set to its present value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Repeat {
    /// No output.
    Skip,
    /// The value again, unless it is "nothing": separates consecutive tasks of one type.
    SkipNull,
    /// The value again.
    Emit,
}

/// The declaration of a channel.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ChannelSpec {
    pub(crate) model: u8,
    pub(crate) view_type: u32,
    pub(crate) title: &'static str,
    pub(crate) track: Track,
    pub(crate) repeat: Repeat,
    /// Whether writing the value that the channel already has is allowed.
    pub(crate) may_repeat: bool,
    pub(crate) initial: Option<i64>,
    /// Value of a CPU's row while no thread runs there.
    pub(crate) idle_cpu: Option<i64>,
    /// The event table's name of the channel, if plain push, pop and set events use it.
    pub(crate) effects: Option<Channel>,
    /// Values that events do not declare.
    pub(crate) further_labels: &'static [(i64, &'static str)],
}

/// Indices into [`CHANNELS`].
pub(crate) mod channel {
    pub(crate) const NANOS6_TASK: usize = 0;
    pub(crate) const NANOS6_TYPE: usize = 1;
    pub(crate) const NANOS6_SUBSYSTEM: usize = 2;
    pub(crate) const NANOS6_RANK: usize = 3;
    pub(crate) const NANOS6_IDLE: usize = 5;
    pub(crate) const KERNEL: usize = 7;
    pub(crate) const FLUSH: usize = 9;
    pub(crate) const OPENMP_SUBSYSTEM: usize = 10;
    pub(crate) const OPENMP_LABEL: usize = 11;
    pub(crate) const OPENMP_TASK: usize = 12;
    pub(crate) const NOSV_BODY: usize = 14;
    pub(crate) const NOSV_TASK: usize = 15;
    pub(crate) const NOSV_TYPE: usize = 16;
    pub(crate) const NOSV_APP: usize = 17;
    pub(crate) const NOSV_SUBSYSTEM: usize = 18;
    pub(crate) const NOSV_RANK: usize = 19;
    pub(crate) const NOSV_IDLE: usize = 20;
}

/// The idle state of a worker that makes progress, in Nanos6 and nOS-V.
pub(crate) const PROGRESSING: i64 = 100;
/// The idle state of a CPU without a thread.
const RESTING: i64 = 101;
/// Nanos6's subsystem value of a running task.
pub(crate) const NANOS6_IN_BODY: i64 = 1;
/// nOS-V's subsystem value of a running task.
pub(crate) const NOSV_IN_BODY: i64 = 11;
/// Nanos6's and nOS-V's value of a thread without a section on its stack.
pub(crate) const UNKNOWN_SUBSYSTEM: i64 = 2;
/// First Paraver type of user marks.
pub(crate) const MARK_TYPE: u32 = 100;
/// First Paraver type of hardware counters.
pub(crate) const COUNTER_TYPE: u32 = 200;

const fn base(model: u8, view_type: u32, title: &'static str, track: Track, repeat: Repeat) -> ChannelSpec {
    ChannelSpec {
        model,
        view_type,
        title,
        track,
        repeat,
        may_repeat: false,
        initial: None,
        idle_cpu: None,
        effects: None,
        further_labels: &[],
    }
}

impl ChannelSpec {
    const fn may_repeat(self) -> Self {
        ChannelSpec { may_repeat: true, ..self }
    }

    const fn effects(self, channel: Channel) -> Self {
        ChannelSpec { effects: Some(channel), ..self }
    }

    const fn labels(self, further_labels: &'static [(i64, &'static str)]) -> Self {
        ChannelSpec { further_labels, ..self }
    }

    const fn idle(self) -> Self {
        ChannelSpec {
            initial: Some(PROGRESSING),
            idle_cpu: Some(RESTING),
            effects: Some(Channel::Idle),
            ..self
        }
    }

    /// All values with labels, those of events first.
    pub(crate) fn labels_of_values(&self) -> Vec<(i64, String)> {
        let mut labels: Vec<(i64, String)> = Vec::new();
        let mut add = |value: i64, label: &str| {
            if !labels.iter().any(|(other, _)| *other == value) {
                labels.push((value, label.to_owned()));
            }
        };
        let events = MODELS.iter().filter(|model| model.letter == self.model).flat_map(|model| model.events);
        for event in events {
            match event.effect {
                Effect::Push(channel, value, label) | Effect::Set(channel, value, label)
                    if Some(channel) == self.effects =>
                {
                    add(value, label);
                }
                _ => {}
            }
        }
        for (value, label) in self.further_labels {
            add(*value, label);
        }
        labels
    }
}

/// Every channel, in the order in which a Paraver configuration file lists its type.
#[rustfmt::skip]
pub(crate) static CHANNELS: &[ChannelSpec] = &[
    base(nanos6::LETTER, 35, "Nanos6 task ID", Track::Running, Repeat::Skip),
    base(nanos6::LETTER, 36, "Nanos6 task type", Track::Running, Repeat::Emit).may_repeat(),
    base(nanos6::LETTER, 37, "Nanos6 subsystem", Track::Active, Repeat::Skip).effects(Channel::Subsystem).labels(&[
        (NANOS6_IN_BODY, "Task: Running body"), (UNKNOWN_SUBSYSTEM, "Unknown subsystem"),
        (60, "EV Scheduler: Recv task"), (61, "EV Scheduler: Send task"), (62, "EV Scheduler: Self-assign task"),
        (63, "EV CPU: Becomes idle"), (64, "EV CPU: Becomes active"), (65, "EV Worker: Waking another thread"),
    ]),
    base(nanos6::LETTER, 38, "Nanos6 task MPI rank", Track::Running, Repeat::Emit).may_repeat(),
    base(nanos6::LETTER, 39, "Nanos6 thread type", Track::Any, Repeat::Skip).effects(Channel::ThreadType),
    base(nanos6::LETTER, 40, "Nanos6 idle state", Track::Running, Repeat::Skip).idle(),
    base(nodes::LETTER, 30, "NODES subsystem", Track::Active, Repeat::Skip).effects(Channel::Subsystem),
    base(kernel::LETTER, 45, "Kernel context switch", Track::Any, Repeat::Skip).labels(&[(3, "Context switch: Out of the CPU")]),
    base(mpi::LETTER, 25, "MPI function", Track::Running, Repeat::Skip).effects(Channel::Function),
    base(ovni::LETTER, 7, "Flushing ovni buffer", Track::Any, Repeat::Skip).labels(&[(1, "Flushing")]),
    base(openmp::LETTER, 50, "OpenMP subsystem", Track::Active, Repeat::SkipNull).may_repeat().effects(Channel::Subsystem)
        .labels(&[(4, "Barrier: Spin wait")]),
    base(openmp::LETTER, 51, "OpenMP label", Track::Active, Repeat::SkipNull).may_repeat(),
    base(openmp::LETTER, 52, "OpenMP task ID", Track::Active, Repeat::SkipNull).may_repeat(),
    base(tampi::LETTER, 20, "TAMPI subsystem", Track::Active, Repeat::Skip).effects(Channel::Subsystem),
    base(nosv::LETTER, 15, "nOS-V task body ID", Track::Running, Repeat::SkipNull).may_repeat(),
    base(nosv::LETTER, 10, "nOS-V task ID", Track::Running, Repeat::SkipNull).may_repeat(),
    base(nosv::LETTER, 11, "nOS-V task type", Track::Running, Repeat::SkipNull).may_repeat(),
    base(nosv::LETTER, 12, "nOS-V task AppID", Track::Running, Repeat::SkipNull).may_repeat(),
    base(nosv::LETTER, 13, "nOS-V subsystem", Track::Active, Repeat::SkipNull).may_repeat().effects(Channel::Subsystem).labels(&[
        (UNKNOWN_SUBSYSTEM, "Unknown subsystem"), (NOSV_IN_BODY, "Task: In body"),
        (34, "EV Scheduler: Recv task"), (35, "EV Scheduler: Send task"), (36, "EV Scheduler: Self-assign task"),
    ]),
    base(nosv::LETTER, 14, "nOS-V task MPI rank", Track::Running, Repeat::SkipNull).may_repeat(),
    base(nosv::LETTER, 16, "nOS-V idle state", Track::Running, Repeat::SkipNull).idle(),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn named_indices_point_to_their_channels() {
        let types = [
            (channel::NANOS6_TASK, 35),
            (channel::NANOS6_TYPE, 36),
            (channel::NANOS6_SUBSYSTEM, 37),
            (channel::NANOS6_RANK, 38),
            (channel::NANOS6_IDLE, 40),
            (channel::KERNEL, 45),
            (channel::FLUSH, 7),
            (channel::OPENMP_SUBSYSTEM, 50),
            (channel::OPENMP_LABEL, 51),
            (channel::OPENMP_TASK, 52),
            (channel::NOSV_BODY, 15),
            (channel::NOSV_TASK, 10),
            (channel::NOSV_TYPE, 11),
            (channel::NOSV_APP, 12),
            (channel::NOSV_SUBSYSTEM, 13),
            (channel::NOSV_RANK, 14),
            (channel::NOSV_IDLE, 16),
        ];
        for (index, view_type) in types {
            assert_eq!(CHANNELS[index].view_type, view_type);
        }
    }
}
