//! The data for the first drawing of a page: tracks, states, views, the report.

use super::Page;
use super::counters::CounterKind;
use super::critical_path::PathOfPage;
use super::page_data::PageData;
use super::queues::LaneList;
use super::rows::View;
use super::sample_rows_of_page::SampleRowList;
use super::shown::NameAndLabel;
use crate::documents::Named;
use schemars::JsonSchema;
use serde::Serialize;
use taskscope_execution::{Process, RuntimeRole, State};

/// The data for the first drawing of a page. Times are nanoseconds since the start of the trace.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(tag = "schema", rename = "taskscope-page/1")]
pub struct Overview<'p> {
    /// The version of taskscope.
    pub version: &'static str,
    /// Start of the trace on its own clock, in decimal digits.
    pub start_ns: String,
    /// Length of the trace.
    pub length_ns: u64,
    /// All states, by number.
    pub states: Vec<StateWords>,
    /// All processes, by number.
    pub processes: Vec<ProcessRow>,
    /// Tracks that are listed.
    pub tracks: Vec<TrackRow>,
    /// The views of tracks.
    pub views: Vec<NameAndLabel>,
    /// Numbers over time.
    pub counters: Vec<NameAndLabel>,
    /// Rows of device queues.
    pub devices: LaneList,
    /// Rows of code by samples; empty without samples.
    pub samples: Vec<SampleRowList>,
    /// The worst instance of each finding that has one.
    pub instances: Vec<InstanceTimes>,
    /// Body times of each task type in the order of the report's: lower limit in nanoseconds, and tasks.
    pub histograms: &'p [Vec<(u64, u64)>],
    /// The critical path; null if the trace has no task graph.
    pub critical_path: Option<&'p PathOfPage>,
    /// The clocks of the trace, in words.
    pub clocks: &'p str,
    /// The report; null if it is beside this document, as on the HTML page.
    pub report: Option<&'p crate::Report>,
    /// Data that the viewer asks for, and the HTML page has in it.
    #[serde(flatten)]
    pub drawn: Option<PageData>,
}

/// A state.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct StateWords {
    /// Its name.
    pub name: Named<State>,
    /// Its words.
    pub label: &'static str,
    /// Its group.
    pub group: &'static str,
}

/// A process.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct ProcessRow {
    /// Its loom, as rows of the report have it.
    pub loom: String,
    /// Its node.
    pub node: String,
    /// Its id.
    pub pid: i64,
    /// Whether it represents the CPUs of a node.
    pub cpus: bool,
    /// Its rank; null without one.
    pub rank: Option<u32>,
}

/// A track: a thread, or a CPU.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct TrackRow {
    /// Its number.
    pub track: u32,
    /// The number of its process.
    pub process: u32,
    /// Thread id; of a CPU its physical id.
    pub tid: i64,
    /// The thread's name; empty for none.
    pub name: String,
    /// Its kind.
    pub kind: &'static str,
    /// The runtime's name for its role; null if not recorded.
    pub role: Option<Named<RuntimeRole>>,
    /// Whether it is a worker.
    pub worker: bool,
    /// Number of its events that were lost.
    pub lost_events: u64,
}

/// The worst instance of a finding.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct InstanceTimes {
    /// The finding: `F1`, …
    pub finding: String,
    /// The track.
    pub track: u32,
    /// Begin.
    pub start: u64,
    /// End.
    pub end: u64,
}

impl Overview<'_> {
    pub(super) fn of(page: &Page) -> Overview<'_> {
        let execution = &page.execution;
        let states = State::ALL.map(|state| StateWords {
            name: Named(state),
            label: state.label(),
            group: state.group().name(),
        });
        let ranks = &execution.communication.ranks;
        let processes = execution.processes.iter().zip(nodes(&execution.processes)).zip(0..);
        let processes = processes.map(|((process, node), number)| ProcessRow {
            loom: process.loom.to_string(),
            node,
            pid: process.pid,
            cpus: process.has_cpus,
            rank: ranks.get(&number).map(|rank| rank.rank),
        });
        let tracks = page.listed_tracks().into_iter().map(|track| {
            let thread = &execution.threads[track.index()];
            TrackRow {
                track: track.0,
                process: thread.process.0,
                tid: thread.tid,
                name: thread.name.to_string(),
                kind: thread.kind.name(),
                role: thread.role.map(Named),
                worker: thread.worker,
                lost_events: thread.lost_events,
            }
        });
        let views = View::ALL
            .map(|view| NameAndLabel { name: view.name().to_owned(), label: view.label().to_owned() });
        let counters = CounterKind::all(page).into_iter();
        let counters = counters.map(|kind| NameAndLabel { name: kind.name(), label: kind.label(page) });
        let instances = page.instances.iter().map(|instance| InstanceTimes {
            finding: instance.finding.clone(),
            track: instance.thread.0,
            start: page.since_start(instance.start),
            end: page.since_start(instance.end),
        });
        Overview {
            version: env!("CARGO_PKG_VERSION"),
            start_ns: page.start().to_string(),
            length_ns: page.length(),
            states: states.to_vec(),
            processes: processes.collect(),
            tracks: tracks.collect(),
            views: views.to_vec(),
            counters: counters.collect(),
            devices: page.queues.list(|pid, tid| page.thread_of(pid, tid)),
            samples: page.sample_lists(),
            instances: instances.collect(),
            histograms: &page.histograms,
            critical_path: page.critical_path.as_ref(),
            clocks: &page.clocks,
            report: Some(&page.report),
            drawn: None,
        }
    }
}

/// The node of each process. That of CPUs, which are of no process, is that of one that uses them.
fn nodes(processes: &[Process]) -> Vec<String> {
    let node = |of: &Process| {
        let uses = |process: &&Process| !process.has_cpus && process.loom == of.loom;
        // Looked for by CPUs alone: of many processes each would compare its loom with all before it.
        let user = if of.has_cpus { processes.iter().find(uses) } else { None };
        node_of(&of.loom, user.unwrap_or(of).pid)
    };
    processes.iter().map(node).collect()
}

/// The node of a loom: runtimes name looms `node.pid` or `node`.
fn node_of(loom: &str, pid: i64) -> String {
    let name = loom.strip_prefix("loom.").unwrap_or(loom);
    let node = name.strip_suffix(&pid.to_string()).and_then(|rest| rest.strip_suffix('.')).unwrap_or(name);
    if node.is_empty() { "this node".to_string() } else { node.to_string() }
}

impl Page {
    /// The data for the first drawing of a page.
    pub fn overview(&self) -> Overview<'_> {
        Overview::of(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_are_distinguished_from_looms() {
        assert_eq!(node_of("loom.host.1.77", 77), "host.1");
        assert_eq!(node_of("host", 77), "host");
        assert_eq!(node_of("", 77), "this node");
    }

    #[test]
    fn cpus_are_on_the_node_of_their_threads() {
        let process = |loom: &str, pid, has_cpus| Process {
            loom: loom.into(),
            pid,
            has_cpus,
            first: 0,
            last: 0,
            cpus: None,
        };
        let processes =
            [process("loom.vm.8", 8, false), process("loom.vm.8", 0, true), process("loom.vm.9", 9, false)];
        assert_eq!(nodes(&processes), ["vm", "vm", "vm"]);
    }
}
