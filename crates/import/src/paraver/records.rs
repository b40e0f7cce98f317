//! The lines of a trace, by thread.

use super::fields::{Error, Fields, number};
use super::header::Header;
use super::labels::{Labels, row_names};
use super::spans::{Change, MPI, OWN_CODE, OfThread, State, add_spans, is_read};
use crate::spans::{Flow, Losses, Process, Run, Thread};

/// The application of devices in `export --to paraver`, whose rows are not threads.
const OWN_DEVICES: &str = "devices";

/// A communication.
struct Communication {
    from: (u32, u64),
    to: (u32, u64),
    tag: u64,
    line: usize,
}

/// Collects records.
pub(super) struct Records<'h> {
    header: &'h Header,
    threads: Vec<OfThread>,
    communications: Vec<Communication>,
    losses: Losses,
    sizes: u64,
    has_mpi: bool,
    is_own: bool,
}

impl<'h> Records<'h> {
    pub fn new(header: &'h Header) -> Self {
        let count = header.tasks.iter().map(|task| task.threads as usize).sum();
        let threads = std::iter::repeat_with(OfThread::default).take(count).collect();
        let (communications, losses) = (Vec::new(), Losses::default());
        Records { header, threads, communications, losses, sizes: 0, has_mpi: false, is_own: false }
    }

    /// Takes a line.
    pub fn take(&mut self, line: &str, at: usize) -> Result<(), Error> {
        let (kind, rest) = line.split_once(':').unwrap_or((line, ""));
        let mut fields = Fields(rest);
        match kind {
            "1" => {
                let thread = self.row(&mut fields)?;
                let start = self.time(fields.required("begin")?, "begin")?;
                let end = match fields.required("end")? {
                    "-1" => None,
                    end => Some(self.time(end, "end")?),
                };
                if end.is_some_and(|end| end < start) {
                    return Err(("end".to_owned(), format!("it is before the begin {start}")));
                }
                let state = number(fields.required("state")?, "state")?;
                self.threads[thread as usize].states.push(State { start, end, state });
            }
            "2" => self.events(fields, at)?,
            "3" => self.communication(fields, at)?,
            "4" => self
                .losses
                .add("global communications", "Paraver itself ignores them", || format!("line {at}")),
            _ if line.is_empty() || line.starts_with('#') => {}
            // Members of a communicator, which follow the header.
            "c" | "C" | "i" | "I" => {}
            other => {
                let shown: String = other.chars().take(40).collect();
                return Err(("record".to_owned(), format!("{shown:?} is not a kind of record")));
            }
        }
        Ok(())
    }

    fn events(&mut self, mut fields: Fields<'_>, at: usize) -> Result<(), Error> {
        let thread = self.row(&mut fields)? as usize;
        let time = self.time(fields.required("time")?, "time")?;
        while let Some(ty) = fields.another() {
            let ty = number(ty, "type")?;
            let value = fields.required("value")?;
            if is_read(ty) {
                let value = number(value, "value")?;
                self.has_mpi |= MPI.contains(&ty);
                self.is_own |= ty == OWN_CODE;
                self.threads[thread].changes.push(Change { at: time, ty, value });
            } else {
                // Extrae writes all 64 bits without a sign, others with one.
                let is_number = value.parse::<i64>().is_ok() || value.parse::<u64>().is_ok();
                if !is_number {
                    return Err(("value".to_owned(), "it is not a number of 64 bits".to_owned()));
                }
                let why = "events of code, MPI and states are read";
                self.losses.add("events of other types", why, || format!("line {at}, type {ty}"));
            }
        }
        Ok(())
    }

    fn communication(&mut self, mut fields: Fields<'_>, line: usize) -> Result<(), Error> {
        let from = self.row(&mut fields)?;
        let sent = self.time(fields.required("logical send")?, "logical send")?;
        self.time(fields.required("physical send")?, "physical send")?;
        let to = self.row(&mut fields)?;
        let logical = self.time(fields.required("logical receive")?, "logical receive")?;
        let physical = self.time(fields.required("physical receive")?, "physical receive")?;
        let size = fields.required("size")?;
        size.parse::<i64>().map_err(|_| ("size".to_owned(), "it is not a number of 64 bits".to_owned()))?;
        self.sizes += u64::from(size != "0");
        let tag = number(fields.required("tag")?, "tag")?;
        self.communications.push(Communication {
            from: (from, sent),
            to: (to, logical.max(physical)),
            tag,
            line,
        });
        Ok(())
    }

    /// The thread of `cpu:application:task:thread`, which has a record.
    fn row(&mut self, fields: &mut Fields<'_>) -> Result<u32, Error> {
        number(fields.required("CPU")?, "CPU")?;
        let application = number(fields.required("application")?, "application")?;
        let task = number(fields.required("task")?, "task")?;
        let thread = number(fields.required("thread")?, "thread")?;
        let row = self.header.thread(application, task, thread);
        let (row, _) = row.ok_or_else(|| {
            ("thread".to_owned(), format!("the header has no thread {application}.{task}.{thread}"))
        })?;
        self.threads[row as usize].is_seen = true;
        Ok(row)
    }

    /// Nanoseconds of a time.
    fn time(&self, text: &str, field: &str) -> Result<u64, Error> {
        let ns = number(text, field)?.checked_mul(self.header.unit).filter(|ns| *ns <= i64::MAX as u64);
        ns.ok_or_else(|| (field.to_owned(), format!("{text} is beyond the clock of 2^63 ns")))
    }

    /// The run.
    pub fn finish(self, labels: &Labels, rows: &str) -> Run {
        let mut run = Run::of("Paraver");
        run.losses = self.losses;
        let nodes = self.header.tasks.iter().map(|task| task.node).max().unwrap_or(0);
        let nodes = row_names(rows, "NODE", nodes as usize);
        let names =
            [row_names(rows, "TASK", self.header.tasks.len()), row_names(rows, "THREAD", self.threads.len())];
        let last = self.header.end;
        let applications = self.header.tasks.last().map_or(0, |task| task.place.0 as usize);
        let applications = row_names(rows, "APPL", applications);
        let is_device = |application: u32| {
            self.is_own && applications.get(application as usize - 1) == Some(&OWN_DEVICES)
        };
        let mut threads = self.threads.into_iter();
        // Rows of the header's threads in the run.
        let mut run_rows = Vec::with_capacity(threads.len());
        for (process, task) in self.header.tasks.iter().enumerate() {
            let application_tasks = self.header.tasks_of(task.place.0);
            let node = (task.node as usize).checked_sub(1);
            run.processes.push(Process {
                pid: None,
                name: names[0].get(process).map_or_else(
                    || format!("task {}.{}", task.place.0, task.place.1),
                    |name| (*name).to_owned(),
                ),
                host: node.map_or_else(String::new, |node| {
                    nodes.get(node).map_or_else(|| format!("node{}", node + 1), |name| (*name).to_owned())
                }),
                rank: (self.has_mpi && task.place.0 == 1).then_some((task.place.1 - 1, application_tasks)),
            });
            for row in task.first..task.first + task.threads {
                let records = threads.next().unwrap_or_default();
                run_rows.push(run.threads.len() as u32);
                if !records.is_seen {
                    let why = "the header alone has them: nothing is known of their time";
                    run.losses.add("threads without records", why, || {
                        format!("thread {}.{}.{}", task.place.0, task.place.1, row - task.first + 1)
                    });
                    continue;
                }
                let name = names[1].get(row as usize).map_or_else(
                    || format!("thread {}.{}.{}", task.place.0, task.place.1, row - task.first + 1),
                    |name| (*name).to_owned(),
                );
                let is_beside = is_device(task.place.0);
                let mut thread = Thread { process: process as u32, name, is_beside, ..Thread::default() };
                add_spans(records, labels, last, &mut thread, &mut run);
                run.threads.push(thread);
            }
        }
        run.losses.add_many("sizes of communications", "a dependence has no size", self.sizes);
        for Communication { from, to, tag, line } in self.communications {
            if to.1 < from.1 {
                let why = "they are received before they are sent: the clocks of their threads differ";
                run.losses.add("communications", why, || format!("line {line}"));
                continue;
            }
            let domain = run.domain(domain_name(self.is_own, tag));
            let [from_row, to_row] = [from, to].map(|(row, _)| run_rows[row as usize]);
            run.flows.push(Flow { from: from_row, from_at: from.1, to: to_row, to_at: to.1, domain });
        }
        run
    }
}

/// The name of a communication's domain: that of its arrow in `export --to paraver`.
fn domain_name(is_own: bool, tag: u64) -> &'static str {
    match (is_own, tag) {
        (true, 0) => "creation",
        (true, 1) => "dependence",
        (true, 3) => "message",
        (true, 6) => "submission",
        (true, 7) => "wake",
        _ => "communication",
    }
}
