//! Names of CPUs and processes, and numbers of processes.

use crate::format;
use taskscope_execution::{Execution, ObjectIndex, SiteIndex, ThreadIndex, ThreadKind, TypeIndex};
use taskscope_session::Session;
use taskscope_symbol::Missing;

/// The name of a worker CPU; `None` for a thread. With the loom, if several looms have CPUs.
pub fn cpu_name(execution: &Execution, thread: ThreadIndex) -> Option<String> {
    let row = execution.threads.get(thread.index()).filter(|row| row.kind == ThreadKind::Cpu)?;
    let has_several = execution.processes.iter().filter(|process| process.has_cpus).nth(1).is_some();
    let loom = execution.processes.get(row.process.index()).map_or("", |process| &process.loom);
    Some(if has_several { format!("CPU {} of {loom}", row.tid) } else { format!("CPU {}", row.tid) })
}

/// `rank 1`, or the process without a rank.
pub(crate) fn rank_or_process(rank: Option<u32>, pid: i64) -> String {
    match rank {
        Some(rank) => format!("rank {rank}"),
        None => format!("process {pid}"),
    }
}

/// The reasons for missing names, each kind once: a program may have loaded hundreds of files.
pub fn missing_names(all: &[Missing]) -> Vec<String> {
    let mut kinds: Vec<(&Missing, u64)> = Vec::new();
    for missing in all {
        match kinds
            .iter_mut()
            .find(|(first, _)| std::mem::discriminant(*first) == std::mem::discriminant(missing))
        {
            Some((_, others)) => *others += 1,
            None => kinds.push((missing, 0)),
        }
    }
    let text = |(first, others): (&Missing, u64)| match others {
        0 => first.to_string(),
        1 => format!("{first}; another file, too"),
        others => format!("{first}; {} other files, too", format::count(others)),
    };
    kinds.into_iter().map(text).collect()
}

/// Types and sites belong to a process, so the tables have a row for each process.
pub(crate) fn pid_of_type(session: &Session, ty: TypeIndex) -> Option<i64> {
    let execution = &session.execution;
    let process = execution.catalog.types.get(ty.index())?.process;
    execution.processes.get(process.index()).map(|process| process.pid)
}

pub(crate) fn pid_of_object(session: &Session, object: ObjectIndex) -> Option<i64> {
    let execution = &session.execution;
    let process = execution.catalog.objects.get(object.index())?.process;
    execution.processes.get(process.index()).map(|process| process.pid)
}

pub(crate) fn pid_of_site(session: &Session, site: SiteIndex) -> Option<i64> {
    let execution = &session.execution;
    let process = execution.catalog.sites.get(site.index())?.process;
    execution.processes.get(process.index()).map(|process| process.pid)
}

/// A thread's name and id; without a name, `thread 4021`.
pub fn thread_or_id(execution: &Execution, thread: ThreadIndex) -> String {
    match execution.threads.get(thread.index()) {
        None => "a thread".to_owned(),
        Some(row) if row.name.is_empty() => format!("thread {}", row.tid),
        Some(row) => format!("{} ({})", row.name, row.tid),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_of_one_kind_are_listed_once() {
        let without = |path: &str| Missing::NoDebugInformation { path: path.to_owned() };
        let all = [Missing::NoModule, without("a.so"), without("b.so"), without("c.so")];
        let reasons = missing_names(&all);
        assert_eq!(reasons.len(), 2);
        assert!(
            reasons[1].starts_with("a.so has no debug information")
                && reasons[1].ends_with("; 2 other files, too")
        );
    }
}
