//! The breakdown: activity of the CPUs, as a histogram that is stacked anew at every change.
//!
//! Each physical CPU contributes one value: the type of the task that it runs, else the section that it is
//! in, or, when it makes no progress, its idle state. The view's rows are not CPUs: row *i* shows the *i*-th
//! smallest of these values, so equal values are adjacent and their thickness is their number.

use taskscope_execution::view::ViewFamily;

/// Rules for a CPU's value.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BreakdownRules {
    pub(crate) view: ViewFamily,
    pub(crate) view_type: u32,
    /// Channels (slots of the machine) that determine it.
    pub(crate) subsystem: u16,
    pub(crate) task: u16,
    /// OpenMP's has no idle state.
    pub(crate) idle: Option<u16>,
    /// The section value of a running task; `None` if a task counts in any section.
    pub(crate) in_body: Option<i64>,
    /// The value of a CPU with a thread outside of all sections; `None` leaves it out.
    pub(crate) no_section: Option<i64>,
}

/// Values of a CPU at the end of an event.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct CpuShows {
    pub(crate) subsystem: Option<i64>,
    pub(crate) task: Option<i64>,
    pub(crate) idle: Option<i64>,
    /// Whether the section was written in this event; only then the choice is made anew.
    pub(crate) subsystem_written: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Choice {
    #[default]
    Nothing,
    Task,
    Subsystem,
    NoSection,
}

/// Rows of equal value.
#[derive(Clone, Copy, Debug)]
struct Group {
    value: i64,
    count: u32,
}

/// The histogram of one runtime.
pub(crate) struct Breakdown {
    pub(crate) rules: BreakdownRules,
    /// Row of each CPU among the physical ones.
    position: Vec<Option<u32>>,
    choices: Vec<Choice>,
    values: Vec<i64>,
    /// Value of each row.
    sorted: Vec<i64>,
    /// Rows per value, in ascending order.
    groups: Vec<Group>,
    shown: Vec<Option<i64>>,
    touched: Vec<u32>,
    started: bool,
}

impl Breakdown {
    /// `physical` states for each CPU whether it takes part.
    pub(crate) fn new(rules: BreakdownRules, physical: &[bool]) -> Self {
        let mut count = 0;
        let position = physical
            .iter()
            .map(|takes_part| {
                takes_part.then(|| {
                    count += 1;
                    count - 1
                })
            })
            .collect();
        let rows = count as usize;
        Breakdown {
            rules,
            position,
            choices: vec![Choice::default(); rows],
            values: vec![0; rows],
            sorted: vec![0; rows],
            groups: vec![Group { value: 0, count }],
            shown: vec![None; rows],
            touched: Vec::new(),
            started: false,
        }
    }

    /// Takes over the values of `cpu`.
    pub(crate) fn update(&mut self, cpu: u32, shows: CpuShows) {
        let Some(index) = self.position[cpu as usize] else { return };
        let index = index as usize;
        if shows.subsystem_written || self.rules.in_body.is_none() {
            self.choices[index] = self.choose(shows);
        }
        let running = match self.choices[index] {
            Choice::Nothing => None,
            Choice::Task => shows.task,
            Choice::Subsystem => shows.subsystem,
            Choice::NoSection => self.rules.no_section,
        };
        let value = match shows.idle {
            _ if self.rules.idle.is_none() => running,
            Some(super::table::PROGRESSING) => running,
            idle => idle,
        };
        self.replace(index, value.unwrap_or(0));
    }

    fn choose(&self, shows: CpuShows) -> Choice {
        let in_task = match self.rules.in_body {
            Some(in_body) => shows.subsystem == Some(in_body) && shows.task.is_some(),
            None => shows.task.is_some(),
        };
        match shows.subsystem {
            _ if in_task => Choice::Task,
            Some(_) => Choice::Subsystem,
            None if self.rules.no_section.is_some() => Choice::NoSection,
            None => Choice::Nothing,
        }
    }

    /// Moves one CPU from its old value to the new one. Of every value between the two, one row
    /// changes: the groups of equal values shift by one row, so only their borders move.
    fn replace(&mut self, index: usize, new: i64) {
        let old = std::mem::replace(&mut self.values[index], new);
        if old == new {
            return;
        }
        if !self.started {
            self.started = true;
            self.touched.extend(0..self.shown.len() as u32);
        }
        let (first, mut end) = self.group_of(old);
        let mut group = first;
        if old < new {
            // The last row of each group takes the value of the group above.
            let mut above = self.value_of(group + 1).filter(|above| *above <= new);
            while let Some(value) = above.filter(|above| *above < new) {
                self.write_row(end - 1, value);
                group += 1;
                end += self.groups[group].count;
                above = self.value_of(group + 1).filter(|above| *above <= new);
            }
            self.write_row(end - 1, new);
            if above.is_some() {
                self.groups[group + 1].count += 1;
            } else {
                self.groups.insert(group + 1, Group { value: new, count: 1 });
            }
            self.take_one(first);
        } else {
            // The first row of each group takes the value of the group below.
            let value_below = |groups: &[Group], group: usize| {
                let below = group.checked_sub(1).map(|below| groups[below].value);
                below.filter(|below| *below >= new)
            };
            end -= self.groups[group].count;
            let mut below = value_below(&self.groups, group);
            while let Some(value) = below.filter(|below| *below > new) {
                self.write_row(end, value);
                group -= 1;
                end -= self.groups[group].count;
                below = value_below(&self.groups, group);
            }
            self.write_row(end, new);
            self.take_one(first);
            if below.is_some() {
                self.groups[group - 1].count += 1;
            } else {
                self.groups.insert(group, Group { value: new, count: 1 });
            }
        }
    }

    fn value_of(&self, group: usize) -> Option<i64> {
        self.groups.get(group).map(|group| group.value)
    }

    /// Takes one row out of a group, which goes with its last one.
    fn take_one(&mut self, group: usize) {
        self.groups[group].count -= 1;
        if self.groups[group].count == 0 {
            self.groups.remove(group);
        }
    }

    /// The group of a value that is there, and the row after its last.
    fn group_of(&self, value: i64) -> (usize, u32) {
        let mut end = 0;
        for (index, group) in self.groups.iter().enumerate() {
            end += group.count;
            if group.value == value {
                return (index, end);
            }
        }
        (0, end)
    }

    #[inline]
    fn write_row(&mut self, row: u32, value: i64) {
        self.sorted[row as usize] = value;
        self.touched.push(row);
    }

    /// Calls `emit(row, value)` for every row that shows another value than before.
    pub(crate) fn flush(&mut self, mut emit: impl FnMut(u32, i64)) {
        for row in self.touched.drain(..) {
            let value = self.sorted[row as usize];
            if self.shown[row as usize] != Some(value) {
                self.shown[row as usize] = Some(value);
                emit(row, value);
            }
        }
    }
}

/// A CPU that may have another value in a breakdown.
#[derive(Clone, Copy)]
pub(crate) struct TouchedBreakdown {
    pub(crate) index: u16,
    pub(crate) cpu: u32,
    /// Whether its section was written.
    pub(crate) subsystem: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replacing_keeps_the_rows_sorted_and_reports_changes() {
        let rules = BreakdownRules {
            view: ViewFamily::OpenmpBreakdown,
            view_type: 53,
            subsystem: 0,
            task: 1,
            idle: None,
            in_body: None,
            no_section: None,
        };
        let mut breakdown = Breakdown::new(rules, &[true; 7]);
        let mut shown = [0; 7];
        let mut values = [0; 7];
        let mut random = 12345u64;
        for _ in 0..5000 {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let (cpu, value) = ((random >> 33) as usize % 7, (random >> 45) as i64 % 5);
            values[cpu] = value;
            let shows = CpuShows { subsystem: Some(value), subsystem_written: true, ..CpuShows::default() };
            breakdown.update(cpu as u32, shows);
            breakdown.flush(|row, value| shown[row as usize] = value);
            let mut expected = values;
            expected.sort_unstable();
            assert_eq!(shown, expected);
        }
    }
}
