//! The first line of a trace: its time unit, and the tree of applications, tasks and threads.

use super::fields::{Error, number};

/// Most threads of a file; Paraver itself has room for 65,535.
const MAX_THREADS: usize = 1 << 20;

/// A task of an application, which is a process.
pub(super) struct Task {
    /// Application and number in it, from 1.
    pub place: (u32, u32),
    /// Number of its node, from 1; 0 if it is not known.
    pub node: u32,
    /// Row of its first thread.
    pub first: u32,
    /// Number of its threads.
    pub threads: u32,
}

/// The content of the line.
pub(super) struct Header {
    /// End of the trace in nanoseconds.
    pub end: u64,
    /// Nanoseconds of a unit of time.
    pub unit: u64,
    /// All tasks, in order.
    pub tasks: Vec<Task>,
    /// Row of the first task of each application.
    firsts: Vec<usize>,
}

impl Header {
    /// Reads the line.
    pub fn parse(line: &str) -> Result<Header, Error> {
        let fail = |text: &str| ("header".to_owned(), text.to_owned());
        let rest = line.split_once("):").ok_or_else(|| fail("it has no date in parentheses"))?.1;
        let (end, rest) = rest.split_once(':').ok_or_else(|| fail("it ends after the time"))?;
        let digits = end.find(|c: char| !c.is_ascii_digit()).unwrap_or(end.len());
        let unit = match &end[digits..] {
            "_ns" => 1,
            "" | "_us" => 1000,
            "_ms" => 1_000_000,
            other => {
                let known = "the unit is none of _ns, _us, _ms";
                return Err(("header".to_owned(), format!("{known}: {other}")));
            }
        };
        let end = number(&end[..digits], "end time")?;
        let end = end.checked_mul(unit).filter(|end| *end <= i64::MAX as u64);
        let end = end.ok_or_else(|| fail("the end time is beyond the clock of 2^63 ns"))?;
        let mut fields = split_outside(rest);
        fields.next().ok_or_else(|| fail("it has no nodes"))?;
        let count = fields.next().ok_or_else(|| fail("it has no applications"))?;
        let count = number(count.trim(), "number of applications")?;
        let (mut tasks, mut firsts, mut threads) = (Vec::new(), Vec::new(), 0_usize);
        for application in 0..count {
            let text = fields.next().ok_or_else(|| fail("it has fewer applications than it announces"))?;
            let inner = text.split_once('(').and_then(|(count, rest)| Some((count, rest.split_once(')')?.0)));
            let (task_count, inner) = inner.ok_or_else(|| fail("an application has no list of tasks"))?;
            firsts.push(tasks.len());
            for (task, part) in inner.split(',').enumerate() {
                let (thread_count, node) = part.split_once(':').unwrap_or((part, "0"));
                let thread_count = number(thread_count, "number of threads")?;
                threads = threads.saturating_add(usize::try_from(thread_count).unwrap_or(usize::MAX));
                if threads.max(tasks.len()) > MAX_THREADS {
                    return Err(fail("it has more than a million threads or tasks"));
                }
                tasks.push(Task {
                    place: (application as u32 + 1, task as u32 + 1),
                    node: u32::try_from(number(node, "node")?)
                        .map_err(|_| fail("a node has too large a number"))?,
                    first: threads as u32 - thread_count as u32,
                    threads: thread_count as u32,
                });
            }
            let found = (tasks.len() - firsts[application as usize]) as u64;
            if number(task_count, "number of tasks")? != found {
                return Err(fail("an application has another number of tasks than it announces"));
            }
        }
        if threads == 0 {
            return Err(fail("it has no thread"));
        }
        Ok(Header { end, unit, tasks, firsts })
    }

    /// Number of tasks of an application.
    pub fn tasks_of(&self, application: u32) -> u32 {
        let first = |application: usize| self.firsts.get(application).copied().unwrap_or(self.tasks.len());
        (first(application as usize) - first(application as usize - 1)) as u32
    }

    /// The row of a thread, and that of its task; `None` if the header does not have it.
    pub fn thread(&self, application: u64, task: u64, thread: u64) -> Option<(u32, u32)> {
        let first = *self.firsts.get(usize::try_from(application.checked_sub(1)?).ok()?)?;
        let row = first.checked_add(usize::try_from(task.checked_sub(1)?).ok()?)?;
        let found = self.tasks.get(row).filter(|found| u64::from(found.place.0) == application)?;
        let thread = thread.checked_sub(1).filter(|thread| *thread < u64::from(found.threads))?;
        Some((found.first + thread as u32, row as u32))
    }
}

/// The parts between colons that are not in parentheses.
fn split_outside(text: &str) -> impl Iterator<Item = &str> {
    let mut depth = 0_usize;
    text.split(move |c: char| {
        match c {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        c == ':' && depth == 0
    })
}
