//! Merges the declarations of each stream about its loom and process: contradictions become violations, and the first
//! declaration counts.

use crate::system::{Cpu, Loom, Mark, Process, System, Thread};
use crate::violation::{Violation, ViolationCode};
use rustc_hash::FxHashMap;
use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use taskscope_event::models::MODELS;
use taskscope_metadata::{CpuEntry, ThreadMetadata};

/// A stream and its declarations.
#[derive(Clone, Copy, Debug)]
pub struct ThreadDescription<'t> {
    /// Relative path of the stream.
    pub path: &'t str,
    /// Loom, process and thread by the names of the directories, for damaged metadata.
    pub named: (Option<&'t str>, Option<i64>, Option<i64>),
    /// Its declarations.
    pub metadata: &'t ThreadMetadata,
    /// Events in the stream.
    pub events: u64,
}

/// Merges the descriptions of all streams, which come in the order of the trace.
pub fn build_system(descriptions: &[ThreadDescription<'_>]) -> (System, Vec<Violation>) {
    let mut builder = Builder { violations: Vec::new(), stream: "", mark_labels: FxHashMap::default() };
    let system = builder.build(descriptions);
    (system, builder.violations)
}

struct Builder<'a> {
    violations: Vec<Violation>,
    stream: &'a str,
    /// Position of each label, by mark and value.
    mark_labels: FxHashMap<(u32, i64), usize>,
}

#[derive(Default)]
struct LoomDraft {
    name: String,
    /// Logical index by shown number.
    cpus: BTreeMap<i64, i64>,
    /// Whether a thread should have named CPUs. Imported threads know none.
    has_cpus: bool,
}

#[derive(Default)]
struct ProcessDraft {
    loom: usize,
    pid: i64,
    app_id: Option<i64>,
    rank: Option<(i64, i64)>,
}

impl<'a> Builder<'a> {
    fn report(&mut self, code: ViolationCode, text: String) {
        let stream = self.stream.to_owned();
        self.violations.push(Violation {
            code,
            stream,
            event: None,
            offset: None,
            time_ns: None,
            count: 1,
            text,
        });
    }

    fn build(&mut self, descriptions: &'a [ThreadDescription<'_>]) -> System {
        let mut looms: Vec<LoomDraft> = Vec::new();
        let mut processes: Vec<ProcessDraft> = Vec::new();
        let mut loom_of_name: FxHashMap<&str, usize> = FxHashMap::default();
        let mut process_of_key: FxHashMap<(usize, i64), usize> = FxHashMap::default();
        // (stream, process, tid)
        let mut threads: Vec<(usize, usize, i64)> = Vec::new();
        let mut system = System {
            thread_of_stream: vec![None; descriptions.len()],
            paths: descriptions.iter().map(|description| description.path.to_owned()).collect(),
            ..System::default()
        };
        let mut enabled: Vec<u8> = Vec::new();
        let mut counters: Option<Vec<String>> = None;
        for (stream, description) in descriptions.iter().enumerate() {
            self.stream = description.path;
            if !self.is_thread(description) {
                continue;
            }
            let name = self.loom_name(description);
            let loom = *loom_of_name.entry(name).or_insert_with(|| {
                looms.push(LoomDraft { name: name.to_owned(), ..LoomDraft::default() });
                looms.len() - 1
            });
            let pid = self.identity(
                description.metadata.pid,
                description.named.1,
                ViolationCode::MissingPid,
                "pid",
            );
            let process = *process_of_key.entry((loom, pid)).or_insert_with(|| {
                processes.push(ProcessDraft { loom, pid, ..ProcessDraft::default() });
                processes.len() - 1
            });
            let tid = self.identity(
                description.metadata.tid,
                description.named.2,
                ViolationCode::MissingTid,
                "tid",
            );
            threads.push((stream, process, tid));
            self.merge_cpus(description, &mut looms[loom]);
            self.merge_process(description, &mut processes[process]);
            self.check_recording(description);
            self.require_models(description, &mut enabled);
            self.merge_marks(description, &mut system.marks);
            if requires(description, "nosv") {
                self.merge_counters(description, &mut counters);
                system.nosv_breakdown.1 += 1;
                if description.metadata.nosv_can_breakdown.is_none() {
                    system.nosv_breakdown_unknown.get_or_insert(stream);
                }
                system.nosv_breakdown.0 += usize::from(description.metadata.nosv_can_breakdown == Some(true));
            }
        }
        self.stream = "";
        self.compare_libraries(descriptions);
        self.finish_looms(&mut looms, &processes);
        self.check_processes(&looms, &processes);
        system.marks.sort_by_key(|mark| mark.number);
        system.hardware_counters = counters.unwrap_or_default();
        if !enabled.contains(&taskscope_event::models::ovni::LETTER) {
            enabled.push(taskscope_event::models::ovni::LETTER);
        }
        system.models = enabled;
        self.arrange(&mut system, looms, processes, threads);
        for thread in &mut system.threads {
            thread.ends_with_process = descriptions[thread.stream].metadata.recorder.ended_with_process;
        }
        system
    }

    fn is_thread(&mut self, description: &ThreadDescription<'_>) -> bool {
        match description.metadata.part.as_deref() {
            Some("thread") => true,
            Some(part) => {
                let code = if description.events > 0 {
                    ViolationCode::UnknownPartEvents
                } else {
                    ViolationCode::UnknownPart
                };
                self.report(code, format!("the stream is of part `{part}`, not of a thread"));
                false
            }
            None => {
                let text = format!("cannot get attribute ovni.part for stream: {}", description.path);
                self.report(ViolationCode::MissingPart, text);
                true
            }
        }
    }

    fn loom_name(&mut self, description: &'a ThreadDescription<'_>) -> &'a str {
        match description.metadata.loom.as_deref() {
            Some(name) => {
                if name.contains('/') {
                    self.report(ViolationCode::BadLoomName, format!("loom name cannot contain '/': {name}"));
                }
                name
            }
            None => {
                let text = format!("cannot get attribute ovni.loom for stream: {}", description.path);
                self.report(ViolationCode::MissingLoom, text);
                description.named.0.unwrap_or("")
            }
        }
    }

    fn identity(&mut self, id: Option<i64>, named: Option<i64>, code: ViolationCode, name: &str) -> i64 {
        match id {
            Some(id) if id != 0 => return id,
            Some(_) => self.report(code, format!("the {name} of stream {} is 0", self.stream)),
            None => {
                self.report(code, format!("cannot get attribute ovni.{name} for stream: {}", self.stream));
            }
        }
        named.unwrap_or(0)
    }

    fn merge_cpus(&mut self, description: &ThreadDescription<'_>, loom: &mut LoomDraft) {
        let cpus = &description.metadata.loom_cpus;
        loom.has_cpus |= cpus.is_some() || !description.metadata.recorder.threads_are_workers;
        let Some(cpus) = cpus else { return };
        if cpus.is_empty() {
            self.report(ViolationCode::BadCpus, "ovni.loom_cpus is empty".to_owned());
        }
        for &CpuEntry { index, phyid } in cpus {
            if index < 0 || phyid < 0 {
                self.report(
                    ViolationCode::BadCpus,
                    format!("a CPU has index {index} and phyid {phyid}; both must be 0 or more"),
                );
                continue;
            }
            let known = *loom.cpus.entry(phyid).or_insert(index);
            if known != index {
                let text = format!("the CPU with phyid {phyid} has index {known} and index {index}");
                self.report(ViolationCode::BadCpus, text);
            }
        }
    }

    fn merge_process(&mut self, description: &ThreadDescription<'_>, process: &mut ProcessDraft) {
        if let Some(app_id) = description.metadata.app_id {
            match process.app_id {
                _ if app_id <= 0 => {
                    self.report(ViolationCode::BadAppId, format!("app_id must be positive, but is {app_id}"));
                }
                None => process.app_id = Some(app_id),
                Some(other) if other != app_id => {
                    let text = format!("process {} has app_id {other} and app_id {app_id}", process.pid);
                    self.report(ViolationCode::BadAppId, text);
                }
                Some(_) => {}
            }
        }
        let (Some(rank), nranks) = (description.metadata.rank, description.metadata.nranks) else { return };
        let Some(nranks) = nranks else {
            self.report(ViolationCode::BadRank, format!("rank {rank} without a number of ranks"));
            return;
        };
        if rank < 0 || nranks <= 0 || rank >= nranks {
            self.report(ViolationCode::BadRank, format!("rank {rank} of {nranks} is not possible"));
            return;
        }
        match process.rank {
            None => process.rank = Some((rank, nranks)),
            Some(other) if other != (rank, nranks) => {
                let text = format!(
                    "process {} has rank {} of {} and rank {rank} of {nranks}",
                    process.pid, other.0, other.1
                );
                self.report(ViolationCode::BadRank, text);
            }
            Some(_) => {}
        }
    }

    fn check_recording(&mut self, description: &ThreadDescription<'_>) {
        if description.metadata.library_version.is_none() {
            let name = description.path.rsplit('/').next().unwrap_or_default();
            let text = format!("missing ovni.lib.version key in thread metadata: {name}");
            self.report(ViolationCode::MissingLibrary, text);
        }
        if description.metadata.library_commit.is_none() {
            let name = description.path.rsplit('/').next().unwrap_or_default();
            let text = format!("missing ovni.lib.commit key in thread metadata: {name}");
            self.report(ViolationCode::MissingCommit, text);
        }
        if !description.metadata.finished {
            let code = match description.metadata.recorder.closed {
                true => ViolationCode::NotFreed,
                false => ViolationCode::MissingFinished,
            };
            self.report(code, format!("missing ovni.finished: {}", description.path));
        }
    }

    fn compare_libraries(&mut self, descriptions: &[ThreadDescription<'_>]) {
        let threads = descriptions.iter().filter(|other| other.metadata.part.as_deref() == Some("thread"));
        let versions: BTreeSet<&str> =
            threads.filter_map(|thread| thread.metadata.library_version.as_deref()).collect();
        if versions.len() > 1 {
            let list: Vec<&str> = versions.into_iter().collect();
            let text = format!("streams were recorded by versions {} of libovni", list.join(", "));
            self.report(ViolationCode::MixedLibraries, text);
        }
    }

    fn require_models(&mut self, description: &ThreadDescription<'_>, enabled: &mut Vec<u8>) {
        let Some(require) = &description.metadata.require else {
            self.report(ViolationCode::MissingRequire, format!("missing ovni.require: {}", description.path));
            return;
        };
        for (name, wanted) in require {
            let Some(model) = MODELS.iter().find(|model| !model.own && model.name == name) else {
                let text = format!("the model `{name}` (version {wanted}) is not known");
                self.report(ViolationCode::UnknownModelRequired, text);
                continue;
            };
            if !is_compatible(wanted, model.version) {
                let thread = description.path.rsplit('/').next().unwrap_or_default();
                let text = format!(
                    "unsupported {name} model version (want {wanted}, have {}) in {thread}",
                    model.version
                );
                self.report(ViolationCode::BadModelVersion, text);
            }
            if !enabled.contains(&model.letter) {
                enabled.push(model.letter);
            }
        }
    }

    fn merge_marks(&mut self, description: &ThreadDescription<'_>, marks: &mut Vec<Mark>) {
        for mark in &description.metadata.marks {
            let Some(number) = mark.mark_type.parse().ok().filter(|number| *number < 100) else {
                let text = format!("mark type `{}` is not a number from 0 to 99", mark.mark_type);
                self.report(ViolationCode::BadMark, text);
                continue;
            };
            let is_stack = match mark.channel.as_deref() {
                Some("stack") => true,
                Some("single") => false,
                other => {
                    let text = format!("mark {number} has chan_type `{}`", other.unwrap_or("(none)"));
                    self.report(ViolationCode::BadMark, text);
                    continue;
                }
            };
            let Some(title) = &mark.title else {
                self.report(ViolationCode::BadMark, format!("mark {number} has no title"));
                continue;
            };
            let known = match marks.iter_mut().position(|known| known.number == number) {
                Some(index) => &mut marks[index],
                None => {
                    marks.push(Mark { number, title: title.clone(), is_stack, labels: Vec::new() });
                    marks.last_mut().expect("one was pushed")
                }
            };
            if known.title != *title || known.is_stack != is_stack {
                let text = format!("mark {number} is declared with another title or channel type elsewhere");
                self.report(ViolationCode::BadMark, text);
            }
            for (value, label) in mark.labels.iter() {
                let Ok(value) = value.parse::<i64>() else {
                    let text = format!("mark {number} labels `{value}`, which is not a number");
                    self.report(ViolationCode::BadMark, text);
                    continue;
                };
                let Some(label) = label else {
                    let text = format!("the label of value {value} of mark {number} is not a text");
                    self.report(ViolationCode::BadMark, text);
                    continue;
                };
                match self.mark_labels.entry((number, value)) {
                    Entry::Vacant(entry) => {
                        entry.insert(known.labels.len());
                        known.labels.push((value, label.to_owned()));
                    }
                    Entry::Occupied(entry) if known.labels[*entry.get()].1 != label => {
                        let other = &known.labels[*entry.get()].1;
                        let text = format!("mark {number} calls {value} both `{other}` and `{label}`");
                        self.report(ViolationCode::BadMark, text);
                    }
                    Entry::Occupied(_) => {}
                }
            }
        }
    }

    /// Takes the counters that a thread declares. nOS-V declares them in the thread that initializes it alone.
    fn merge_counters(&mut self, description: &ThreadDescription<'_>, counters: &mut Option<Vec<String>>) {
        if description.metadata.hardware_counters.is_empty() {
            return;
        }
        let mut named: Vec<(u32, String)> = Vec::new();
        for (index, name) in &description.metadata.hardware_counters {
            match (index.parse(), name) {
                (Ok(index), Some(name)) if index < 100 => named.push((index, name.clone())),
                _ => {
                    let text = format!("hardware counter `{index}` has no name or no number below 100");
                    self.report(ViolationCode::BadCounters, text);
                }
            }
        }
        named.sort_by_key(|(index, _)| *index);
        if named.iter().enumerate().any(|(expected, (index, _))| expected as u32 != *index) {
            let text = "hardware counters are not numbered from 0 without gaps".to_owned();
            self.report(ViolationCode::BadCounters, text);
        }
        let names: Vec<String> = named.into_iter().map(|(_, name)| name).collect();
        match counters {
            None => *counters = Some(names),
            Some(known) if *known != names => {
                let text = "hardware counters differ from those of other threads".to_owned();
                self.report(ViolationCode::BadCounters, text);
                if known.len() < names.len() {
                    *known = names;
                }
            }
            Some(_) => {}
        }
    }

    fn finish_looms(&mut self, looms: &mut [LoomDraft], processes: &[ProcessDraft]) {
        for (index, loom) in looms.iter_mut().enumerate() {
            if loom.cpus.is_empty() && loom.has_cpus {
                self.report(ViolationCode::BadCpus, format!("loom {} has no physical CPUs", loom.name));
            }
            let mut indices: Vec<i64> = loom.cpus.values().copied().collect();
            indices.sort_unstable();
            let twice = indices.windows(2).find(|pair| pair[0] == pair[1]).map(|pair| pair[0]);
            if let Some(index) = twice {
                let text = format!("cpu with index {index} already taken in loom {}", loom.name);
                self.report(ViolationCode::BadCpus, text);
            } else if let Some(position) = (0..indices.len()).find(|i| indices[*i] != *i as i64) {
                let text = format!(
                    "the CPU indices of loom {} are not 0 to {}: {} instead of {position}",
                    loom.name,
                    indices.len() - 1,
                    indices[position]
                );
                self.report(ViolationCode::BadCpus, text);
            }
            let mut ranked = processes
                .iter()
                .filter(|process| process.loom == index)
                .map(|process| process.rank.is_some());
            let first = ranked.next();
            if ranked.any(|has_rank| Some(has_rank) != first) {
                let text = format!("only some processes of loom {} have a rank", loom.name);
                self.report(ViolationCode::BadRank, text);
            }
        }
    }

    fn check_processes(&mut self, looms: &[LoomDraft], processes: &[ProcessDraft]) {
        for process in processes {
            if process.app_id.is_none() {
                let loom = &looms[process.loom].name;
                let text = format!("no thread of process {} in loom {loom} has an app_id", process.pid);
                self.report(ViolationCode::BadAppId, text);
            }
        }
    }

    /// Sorts everything into the order of rows.
    fn arrange(
        &mut self,
        system: &mut System,
        looms: Vec<LoomDraft>,
        processes: Vec<ProcessDraft>,
        mut threads: Vec<(usize, usize, i64)>,
    ) {
        let by_rank = !processes.is_empty() && processes.iter().all(|process| process.rank.is_some());
        let rank_of = |process: &ProcessDraft| process.rank.map_or(0, |(rank, _)| rank);
        let mut loom_order: Vec<usize> = (0..looms.len()).collect();
        if by_rank {
            let mut lowest = vec![None; looms.len()];
            for process in &processes {
                let (rank, lowest) = (rank_of(process), &mut lowest[process.loom]);
                *lowest = Some(lowest.map_or(rank, |known| rank.min(known)));
            }
            loom_order.sort_by_key(|loom| lowest[*loom].unwrap_or(0));
        } else {
            loom_order.sort_by(|a, b| looms[*a].name.as_bytes().cmp(looms[*b].name.as_bytes()));
        }
        let mut new_loom = vec![0; looms.len()];
        for (new, old) in loom_order.iter().enumerate() {
            new_loom[*old] = new as u32;
        }
        for old in &loom_order {
            let draft = &looms[*old];
            let begin = system.cpus.len() as u32;
            let loom = system.looms.len() as u32;
            let mut cpu_of_index = FxHashMap::default();
            for (&phyid, &index) in &draft.cpus {
                cpu_of_index.insert(index, system.cpus.len() as u32);
                system.cpus.push(Cpu { loom, phyid: Some(phyid) });
            }
            cpu_of_index.insert(-1, system.cpus.len() as u32);
            system.cpus.push(Cpu { loom, phyid: None });
            let cpus = begin..system.cpus.len() as u32;
            system.looms.push(Loom { name: draft.name.clone(), cpus, cpu_of_index });
        }
        let mut process_order: Vec<usize> = (0..processes.len()).collect();
        process_order.sort_by_key(|index| {
            let process = &processes[*index];
            (new_loom[process.loom], if by_rank { rank_of(process) } else { process.pid })
        });
        let mut new_process = vec![0; processes.len()];
        for old in process_order {
            let draft = &processes[old];
            new_process[old] = system.processes.len() as u32;
            system.processes.push(Process {
                loom: new_loom[draft.loom],
                pid: draft.pid,
                app_id: draft.app_id.unwrap_or(0),
                rank: draft.rank.map(|(rank, _)| rank),
            });
        }
        threads.sort_by_key(|(_, process, tid)| (new_process[*process], *tid));
        for (index, &(stream, process, tid)) in threads.iter().enumerate() {
            let process = new_process[process];
            if index > 0 && threads[index - 1].2 == tid && system.threads[index - 1].process == process {
                let text = format!("{} is thread {tid} again", system.paths[stream]);
                self.violations.push(Violation {
                    code: ViolationCode::RepeatedThread,
                    stream: system.paths[stream].clone(),
                    event: None,
                    offset: None,
                    time_ns: None,
                    count: 1,
                    text,
                });
            }
            let loom = system.processes[process as usize].loom;
            system.thread_of_stream[stream] = Some(index as u32);
            system.threads.push(Thread { stream, process, loom, tid, ends_with_process: false });
        }
    }
}

/// Whether the description requires the model called `name`.
fn requires(description: &ThreadDescription<'_>, name: &str) -> bool {
    description.metadata.require.iter().flatten().any(|(model, _)| model == name)
}

/// Whether `wanted` can be served by `ours`: the same major, and no newer minor version.
fn is_compatible(wanted: &str, ours: &str) -> bool {
    let parse = |version: &str| -> Option<(u32, u32)> {
        let mut parts = version.split('.');
        let pair = (parts.next()?.parse().ok()?, parts.next()?.parse().ok()?);
        parts.next()?.parse::<u32>().ok()?;
        parts.next().is_none().then_some(pair)
    };
    match (parse(wanted), parse(ours)) {
        (Some(wanted), Some(ours)) => wanted.0 == ours.0 && wanted.1 <= ours.1,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use taskscope_metadata::MarkDeclaration;

    #[test]
    fn versions_are_compatible_within_a_major() {
        assert!(is_compatible("1.0.9", "1.1.0"));
        assert!(!is_compatible("1.2.0", "1.1.0"));
        assert!(!is_compatible("2.0.0", "1.1.0"));
        assert!(!is_compatible("1.1", "1.1.0"));
        assert!(!is_compatible("one", "1.1.0"));
    }

    fn thread(loom: &str, pid: i64, tid: i64) -> ThreadMetadata {
        ThreadMetadata {
            is_known: true,
            part: Some("thread".to_owned()),
            tid: Some(tid),
            pid: Some(pid),
            loom: Some(loom.to_owned()),
            app_id: Some(1),
            loom_cpus: Some(vec![CpuEntry { index: 0, phyid: 3 }, CpuEntry { index: 1, phyid: 1 }]),
            require: Some(vec![("ovni".to_owned(), "1.1.0".to_owned())]),
            library_version: Some("1.14.0".to_owned()),
            library_commit: Some("cf025e2".to_owned()),
            finished: true,
            ..ThreadMetadata::default()
        }
    }

    fn build(streams: &[(&str, ThreadMetadata)]) -> (System, Vec<Violation>) {
        let descriptions: Vec<_> = streams
            .iter()
            .map(|(path, metadata)| ThreadDescription {
                path,
                named: (None, None, None),
                metadata,
                events: 2,
            })
            .collect();
        build_system(&descriptions)
    }

    #[test]
    fn rows_are_sorted_by_loom_process_and_number() {
        let (system, violations) =
            build(&[("a", thread("m.1", 7, 9)), ("b", thread("m.1", 7, 8)), ("c", thread("m.0", 9, 9))]);
        assert_eq!(violations, []);
        let cpus: Vec<String> = (0..6).map(|cpu| system.cpu_label(cpu)).collect();
        assert_eq!(cpus, [" CPU 0.1", " CPU 0.3", "vCPU 0.*", " CPU 1.1", " CPU 1.3", "vCPU 1.*"]);
        assert_eq!(system.looms[0].cpu_of_index[&0], 1);
        assert_eq!(system.thread_of_stream, [Some(2), Some(1), Some(0)]);
    }

    #[test]
    fn contradictions_are_all_listed() {
        let mut second = thread("m.0", 7, 9);
        second.app_id = Some(2);
        second.loom_cpus = Some(vec![CpuEntry { index: 2, phyid: 3 }]);
        let (_, violations) = build(&[("a", thread("m.0", 7, 9)), ("b", second)]);
        let codes: Vec<_> = violations.iter().map(|violation| violation.code).collect();
        assert_eq!(codes, [ViolationCode::BadCpus, ViolationCode::BadAppId, ViolationCode::RepeatedThread]);
    }

    #[test]
    fn inconsistent_metadata_is_reported() {
        let codes = |streams: &[(&str, ThreadMetadata)]| -> Vec<ViolationCode> {
            build(streams).1.iter().map(|violation| violation.code).collect()
        };
        let mut second = thread("m.0", 7, 8);
        second.library_version = Some("1.13.0".to_owned());
        assert_eq!(
            codes(&[("a", thread("m.0", 7, 9)), ("b", second.clone())]),
            [ViolationCode::MixedLibraries]
        );
        second.library_commit = None;
        assert_eq!(codes(&[("b", second)]), [ViolationCode::MissingCommit]);
        let mut third = thread("m.0", 7, 8);
        third.marks = vec![MarkDeclaration {
            mark_type: "1".to_owned(),
            title: Some("phase".to_owned()),
            channel: Some("stack".to_owned()),
            labels: Arc::new([("1", Some("read")), ("2", None)].into_iter().collect()),
        }];
        assert_eq!(codes(&[("c", third)]), [ViolationCode::BadMark]);
    }
}
