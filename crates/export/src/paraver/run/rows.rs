//! The objects of a Paraver trace: applications, tasks, threads, and a CPU for each thread.
//!
//! Application 1 has the processes of the program, so that sums over it are those of the program's threads; rows of CPUs,
//! which show the same sections again, and of devices are in applications of their own. Readers skip records with a CPU
//! on another node than their thread, and real CPUs are not known for every section: each row has a CPU of its own.

use crate::timeline::{LaneKind, Timeline};
use rustc_hash::FxHashMap;
use std::io::{self, Write};
use taskscope_execution::host;

/// Most rows that readers have room for.
const MAX_ROWS: usize = 65_535;
/// Names of applications.
const APPLICATIONS: [&str; 3] = ["program", "CPUs", "devices"];

/// The place of a row, all numbers from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Row {
    pub application: u32,
    pub task: u32,
    pub thread: u32,
    pub cpu: u32,
}

impl std::fmt::Display for Row {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}:{}:{}", self.cpu, self.application, self.task, self.thread)
    }
}

/// A process of an application, or its devices.
struct Task {
    name: String,
    /// Number of its node, from 0.
    node: u32,
    /// Names of its threads.
    threads: Vec<String>,
}

/// All rows.
pub(super) struct Rows {
    lane_rows: Vec<Row>,
    nodes: Vec<(String, u32)>,
    applications: Vec<(&'static str, Vec<Task>)>,
}

impl Rows {
    /// # Errors
    /// If there are more rows than readers have room for.
    pub fn of(timeline: &Timeline<'_>) -> io::Result<Rows> {
        let mut tasks: [Vec<Task>; 3] = Default::default();
        let mut nodes: Vec<(String, u32)> = Vec::new();
        let (mut known_tasks, mut known_nodes) = (FxHashMap::default(), FxHashMap::default());
        // Application, task, thread of each lane, from 0.
        let mut places = Vec::new();
        for lane in timeline.lanes() {
            let application = match lane.kind {
                LaneKind::Thread(_) => 0,
                LaneKind::Cpu(_) => 1,
                LaneKind::Queue(..) | LaneKind::Calls(..) => 2,
                LaneKind::Doubts(thread, _)
                | LaneKind::Waits(thread, _)
                | LaneKind::Collectives(thread, _) => {
                    // Its thread is before it.
                    places.push(places[timeline.lane_of(thread) as usize]);
                    continue;
                }
            };
            let of = &mut tasks[application];
            let task = *known_tasks.entry((application, lane.process)).or_insert_with(|| {
                let loom = timeline.execution().processes.get(lane.process.index());
                let name = loom.map_or("", |process| host(&process.loom));
                let node = *known_nodes.entry(name).or_insert_with(|| {
                    nodes.push((name.to_owned(), 0));
                    nodes.len() - 1
                });
                let name = timeline.process_name(lane.process).to_owned();
                of.push(Task { name, node: node as u32, threads: Vec::new() });
                of.len() - 1
            });
            let task_row = &mut of[task];
            places.push((application, task, task_row.threads.len()));
            task_row.threads.push(lane.name.clone());
            nodes[task_row.node as usize].1 += 1;
        }
        // Lanes beside threads have no rows of their own.
        let count: usize = nodes.iter().map(|node| node.1 as usize).sum();
        if count > MAX_ROWS {
            let text = format!("{count} rows: Paraver has room for {MAX_ROWS}; select a part with --where");
            return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
        }
        let applications: Vec<(&'static str, Vec<Task>)> =
            APPLICATIONS.into_iter().zip(tasks).filter(|(_, tasks)| !tasks.is_empty()).collect();
        let mut rows = Rows { lane_rows: Vec::new(), nodes, applications };
        rows.lane_rows = rows.numbered(&places);
        Ok(rows)
    }

    /// The rows of lanes: applications without tasks have no number, and CPUs are numbered node by node.
    fn numbered(&self, places: &[(usize, usize, usize)]) -> Vec<Row> {
        let mut next: Vec<u32> =
            self.nodes.iter().scan(1, |sum, node| Some(std::mem::replace(sum, *sum + node.1))).collect();
        let mut first_cpus: Vec<Vec<u32>> = Vec::new();
        for (_, tasks) in &self.applications {
            let first_cpu = |task: &Task| {
                let next = &mut next[task.node as usize];
                std::mem::replace(next, *next + task.threads.len() as u32)
            };
            first_cpus.push(tasks.iter().map(first_cpu).collect());
        }
        let number = |application: usize| {
            self.applications.iter().position(|(name, _)| *name == APPLICATIONS[application]).unwrap_or(0)
        };
        let row = |(application, task, thread): &(usize, usize, usize)| {
            let application = number(*application);
            Row {
                application: application as u32 + 1,
                task: *task as u32 + 1,
                thread: *thread as u32 + 1,
                cpu: first_cpus[application][*task] + *thread as u32,
            }
        };
        places.iter().map(row).collect()
    }

    /// The row of a lane; of one beside a thread, that of the thread.
    pub fn row(&self, lane: u32) -> Row {
        self.lane_rows[lane as usize]
    }

    /// The part of the header after the end time.
    pub fn header(&self) -> String {
        let cpus: Vec<String> = self.nodes.iter().map(|node| node.1.to_string()).collect();
        let applications = self.applications.iter().map(|(_, tasks)| {
            let tasks_text: Vec<String> =
                tasks.iter().map(|task| format!("{}:{}", task.threads.len(), task.node + 1)).collect();
            format!("{}({})", tasks.len(), tasks_text.join(","))
        });
        let applications: Vec<String> = applications.collect();
        format!("{}({}):{}:{}", cpus.len(), cpus.join(","), applications.len(), applications.join(":"))
    }

    /// Writes the `.row` file. Its first line has the number of CPUs: tools for efficiencies read it there.
    pub fn write(&self, out: &mut Vec<u8>) -> io::Result<()> {
        let mut level = |name: &str, labels: Vec<String>| -> io::Result<()> {
            writeln!(out, "LEVEL {name} SIZE {}", labels.len())?;
            labels.iter().try_for_each(|label| writeln!(out, "{}", one_line(label)))?;
            writeln!(out)
        };
        let node_cpus =
            |(node, count): (usize, u32)| (1..=count).map(move |cpu| format!("{}.{cpu}", node + 1));
        let counts = self.nodes.iter().map(|node| node.1).enumerate();
        level("CPU", counts.flat_map(node_cpus).collect())?;
        let name = |node: &(String, u32)| if node.0.is_empty() { "host".to_owned() } else { node.0.clone() };
        level("NODE", self.nodes.iter().map(name).collect())?;
        level("APPL", self.applications.iter().map(|(name, _)| (*name).to_owned()).collect())?;
        let tasks = || self.applications.iter().flat_map(|(_, tasks)| tasks);
        level("TASK", tasks().map(|task| task.name.clone()).collect())?;
        level("THREAD", tasks().flat_map(|task| task.threads.iter().cloned()).collect())
    }
}

/// A label of one line, which is not blank: strict readers take neither.
pub(super) fn one_line(label: &str) -> String {
    let plain: String = label.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    if plain.trim().is_empty() { "-".to_owned() } else { plain }
}
