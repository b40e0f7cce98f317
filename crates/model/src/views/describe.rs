//! Descriptions for exports of each family of views: rows, types and their labels.

use crate::machine::Machine;
use crate::machine::commit::{PID_TYPE, RUNNING_TYPE, TID_TYPE};
use crate::machine::uncertain_rows::{DOUBT_LABELS, DOUBT_TITLES, DOUBT_TYPE};
use crate::views::table::{CHANNELS, Track};
use std::collections::BTreeMap;
use taskscope_event::models::ovni;
use taskscope_execution::view::{ViewDescription, ViewFamily, ViewObserver, ViewType};

/// Labels of the thread states by their value.
pub(crate) const THREAD_STATES: [(i64, &str); 6] =
    [(0, "Unknown"), (1, "Running"), (2, "Paused"), (3, "Dead"), (4, "Cooling"), (5, "Warming")];

/// Every label that runtimes give to values of views: the letter of the model, the view's title, the label.
pub fn labels_of_views() -> impl Iterator<Item = (u8, &'static str, String)> {
    let channel_labels = CHANNELS.iter().flat_map(|channel| {
        let labels = channel.labels_of_values().into_iter();
        labels.map(|(_, label)| (channel.model, channel.title, label))
    });
    channel_labels.chain(THREAD_STATES.map(|(_, label)| (ovni::LETTER, "Thread state", label.to_owned())))
}

/// Types of the view of CPUs that Paraver configurations use without a description: number and title.
pub const PLAIN_CPU_TYPES: [(u32, &str); 3] = [
    (RUNNING_TYPE, "CPU: number of RUNNING threads"),
    (TID_TYPE, "CPU: TID of the RUNNING thread"),
    (PID_TYPE, "CPU: PID of the RUNNING thread"),
];

impl<O: ViewObserver> Machine<'_, O> {
    /// Rows and types of a family; `None` if it is not shown. Task types are complete only after
    /// the last event.
    pub fn describe(&self, view: ViewFamily) -> Option<ViewDescription> {
        match view {
            ViewFamily::Thread => Some(ViewDescription {
                rows: (0..self.system.threads.len() as u32)
                    .map(|thread| self.system.thread_label(thread))
                    .collect(),
                types: self.thread_types(),
            }),
            ViewFamily::Cpu => Some(ViewDescription {
                rows: (0..self.system.cpus.len() as u32).map(|cpu| self.system.cpu_label(cpu)).collect(),
                types: (0..self.slots.len())
                    .map(|slot| self.slot_type(slot, true))
                    .chain(self.doubt_type(true))
                    .collect(),
            }),
            _ => self.describe_breakdown(view),
        }
    }

    fn thread_types(&self) -> Vec<ViewType> {
        let cpus =
            (0..self.system.cpus.len() as u32).map(|cpu| (i64::from(cpu) + 1, self.system.cpu_label(cpu)));
        let states = THREAD_STATES.map(|(value, label)| (value, label.to_owned()));
        let mut types = vec![
            ViewType { number: 6, title: "Thread: CPU affinity".to_owned(), values: cpus.collect() },
            ViewType { number: 2, title: "Thread: TID of the ACTIVE thread".to_owned(), values: Vec::new() },
            ViewType { number: 4, title: "Thread: thread state".to_owned(), values: states.to_vec() },
        ];
        types.extend((0..self.slots.len()).map(|slot| self.slot_type(slot, false)));
        types.extend(self.doubt_type(false));
        types
    }

    /// The type for marks of uncertain rows, if there are any.
    fn doubt_type(&self, is_cpu: bool) -> Option<ViewType> {
        let labels = if is_cpu { &DOUBT_LABELS[..] } else { &DOUBT_LABELS[..DOUBT_LABELS.len() - 1] };
        let title_index = usize::from(is_cpu);
        self.doubts.used[title_index].then(|| ViewType {
            number: DOUBT_TYPE,
            title: DOUBT_TITLES[title_index].to_owned(),
            values: labels.iter().map(|(value, label)| (*value, (*label).to_owned())).collect(),
        })
    }

    fn slot_type(&self, slot: usize, is_cpu: bool) -> ViewType {
        let spec = &self.slots[slot];
        let values = match spec.view_type {
            36 | 11 | 51 => self.type_labels(spec.view_type),
            number => match self.system.marks.iter().find(|mark| number == table_mark(mark.number)) {
                Some(mark) if self.is_mark_slot(slot) => mark.labels.clone(),
                _ => spec.labels.to_vec(),
            },
        };
        let title = match (&spec.bare_title, spec.track, is_cpu) {
            (true, ..) => spec.title.clone(),
            (_, _, true) | (_, Track::Running, _) => format!("{} of the RUNNING thread", spec.title),
            (_, Track::Active, _) => format!("{} of the ACTIVE thread", spec.title),
            (_, Track::Any, _) => format!("{} ", spec.title),
        };
        ViewType { number: spec.view_type, title, values }
    }

    fn describe_breakdown(&self, view: ViewFamily) -> Option<ViewDescription> {
        let breakdown = self.breakdowns.iter().find(|breakdown| breakdown.rules.view == view)?;
        let count = self.system.physical_cpus().count();
        let (title, subsystem, idle, task_type) = match view {
            ViewFamily::NosvBreakdown => ("CPU: nOS-V Runtime/Idle/Task breakdown", 13, Some(16), 11),
            ViewFamily::Nanos6Breakdown => ("CPU: Nanos6 Runtime/Idle/Task breakdown", 37, Some(40), 36),
            _ => ("CPU: OpenMP Runtime/Label breakdown", 50, None, 51),
        };
        let labels = |number: u32| {
            CHANNELS
                .iter()
                .find(|channel| channel.view_type == number)
                .map(|channel| channel.labels_of_values())
        };
        let mut values = labels(subsystem).unwrap_or_default();
        values.extend(idle.and_then(labels).unwrap_or_default());
        values.extend(self.type_labels(task_type));
        Some(ViewDescription {
            rows: (1..=count).rev().map(|row| format!("~CPU {row:4}")).collect(),
            types: vec![ViewType { number: breakdown.rules.view_type, title: title.to_owned(), values }],
        })
    }

    /// Labels of task types by their value, each once.
    fn type_labels(&self, view_type: u32) -> Vec<(i64, String)> {
        let tables = match view_type {
            36 => &self.nanos6_tasks,
            11 => &self.nosv_tasks,
            _ => &self.openmp_tasks,
        };
        let mut known: BTreeMap<i64, ()> = BTreeMap::new();
        let mut labels = Vec::new();
        for task_type in tables.iter().flat_map(|table| table.types()) {
            if known.insert(i64::from(task_type.value), ()).is_none() {
                labels.push((i64::from(task_type.value), task_type.label.clone()));
            }
        }
        labels
    }
}

fn table_mark(number: u32) -> u32 {
    super::table::MARK_TYPE + number
}
