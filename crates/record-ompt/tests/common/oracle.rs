//! The rules of ovni's format and of its `ovni` and `openmp` models, as far as they concern the tool's
//! events, and those of taskscope's own models: a second opinion, written against the format's description
//! and not against the tool.

use std::collections::{HashMap, HashSet};

use taskscope_event::models::{dictionary, omp, openmp, ovni};
use taskscope_event::spec::{Channel, Effect};
use taskscope_event::{Code, models};

use super::trace::{Event, Trace};

/// ovni's limit for the values on one stack.
const STACK: usize = 512;

#[derive(Default)]
struct Thread {
    started: bool,
    ended: bool,
    sections: Vec<i64>,
    labels: Vec<i128>,
    tasks: Vec<i128>,
    regions: Vec<i128>,
    members: Vec<i128>,
    open_own: Vec<Code>,
}

#[derive(Default)]
struct Process {
    types: HashMap<i128, String>,
    tasks: HashMap<i128, i128>,
    running: HashSet<i128>,
}

impl Trace {
    /// Panics at the first fault of a finished trace.
    pub fn assert_sound(&self) {
        for pid in self.processes() {
            self.process_trace(pid).assert_process_sound();
        }
    }

    fn assert_process_sound(&self) {
        let mut tids = HashSet::new();
        for stream in &self.streams {
            let metadata = &stream.metadata;
            assert_eq!(metadata["version"], 3);
            assert!(stream.is_finished(), "{} is not finished", stream.path.display());
            assert!(stream.tail.is_empty(), "{} is not cut", stream.path.display());
            assert_eq!(metadata["taskscope"]["lost_events"], 0);
            assert!(tids.insert(metadata["ovni"]["tid"].as_i64().unwrap()), "thread ids repeat");
        }
        let mut process = Process::default();
        let mut threads: Vec<Thread> = self.streams.iter().map(|_| Thread::default()).collect();
        let mut merged: Vec<(usize, &Event)> =
            self.streams.iter().enumerate().flat_map(|(i, s)| s.events.iter().map(move |e| (i, e))).collect();
        merged.sort_by_key(|(_, event)| event.at);
        for (index, event) in merged {
            threads[index].step(event, &mut process);
        }
        for (thread, stream) in threads.iter().zip(&self.streams) {
            let path = stream.path.display();
            assert!(thread.started && thread.ended, "{path} has no begin or end");
            let open = (&thread.sections, &thread.labels, &thread.tasks, &thread.open_own);
            assert!(
                open.0.is_empty() && open.1.is_empty() && open.2.is_empty() && open.3.is_empty(),
                "{path}: {open:?}"
            );
        }
        self.assert_dictionary_complete();
    }

    /// Every site and type that an event names is explained.
    fn assert_dictionary_complete(&self) {
        let numbers = |code, field: &'static str| self.of(code).map(move |event| event.number(field));
        let sites: HashSet<i128> = numbers(dictionary::SITE, "site").chain([0]).collect();
        assert_eq!(sites.len(), self.count(dictionary::SITE) + 1, "a site was explained twice");
        for event in self.streams.iter().flat_map(|s| &s.events) {
            let fields = models::find(event.code).unwrap().fields;
            if fields.iter().any(|field| field.name == "site") {
                assert!(sites.contains(&event.number("site")), "{} names an unknown site", event.code);
            }
        }
        let explained: HashSet<i128> = numbers(dictionary::TASK_TYPE_SITE, "typeid")
            .chain(numbers(dictionary::WORK_TYPE_SITE, "typeid"))
            .collect();
        assert!(numbers(openmp::TYPE_CREATE, "typeid").all(|typeid| explained.contains(&typeid)));
        let modules: Vec<_> =
            self.of(dictionary::MODULE).map(|event| event.number("start")..event.number("end")).collect();
        for site in self.of(dictionary::SITE) {
            let address = site.number("address");
            assert!(modules.iter().any(|module| module.contains(&address)), "no module has {address:#x}");
        }
    }
}

impl Thread {
    fn step(&mut self, event: &Event, process: &mut Process) {
        if event.own {
            self.step_own(event);
            return;
        }
        let code = event.code;
        assert!(self.started || code == ovni::THREAD_EXECUTES, "{code} before the thread's begin");
        assert!(!self.ended, "{code} after the thread's end");
        match models::find(code).unwrap().effect {
            Effect::Push(Channel::Subsystem, value, _) => {
                self.sections.push(value);
                assert!(self.sections.len() <= STACK);
            }
            Effect::Pop(Channel::Subsystem, value, _) => {
                assert_eq!(self.sections.pop(), Some(value), "{code}")
            }
            _ => self.step_rule(event, process),
        }
    }

    fn step_rule(&mut self, event: &Event, process: &mut Process) {
        match event.code {
            ovni::THREAD_EXECUTES => {
                assert!(!self.started);
                assert_eq!(event.number("cpu"), -1);
                self.started = true;
            }
            ovni::THREAD_ENDS => self.ended = true,
            openmp::TYPE_CREATE => {
                let label = event.text("label");
                assert!(!label.is_empty() && label.len() < 512 && label.is_ascii(), "{label:?}");
                assert!(process.types.insert(event.number("typeid"), label).is_none(), "type twice");
            }
            openmp::TASK_CREATE => {
                let (task, typeid) = (event.number("taskid"), event.number("typeid"));
                assert!(task != 0 && process.types.contains_key(&typeid));
                assert!(process.tasks.insert(task, typeid).is_none(), "task {task} twice");
            }
            openmp::TASK_EXECUTE => {
                let task = event.number("taskid");
                self.labels.push(*process.tasks.get(&task).expect("the task was created before"));
                self.tasks.push(task);
                assert!(process.running.insert(task), "task {task} runs twice at a time");
                assert!(self.tasks.len() <= STACK && self.labels.len() <= STACK);
            }
            openmp::TASK_END => {
                let task = event.number("taskid");
                assert_eq!(self.tasks.pop(), Some(task));
                assert_eq!(self.labels.pop(), process.tasks.get(&task).copied());
                process.running.remove(&task);
            }
            openmp::WORKSHARE_EXECUTE => {
                let typeid = event.number("typeid");
                assert!(process.types.contains_key(&typeid));
                self.labels.push(typeid);
                assert!(self.labels.len() <= STACK);
            }
            openmp::WORKSHARE_END => assert_eq!(self.labels.pop(), Some(event.number("typeid"))),
            code => panic!("the tool does not write {code}"),
        }
    }

    fn step_own(&mut self, event: &Event) {
        let code = event.code;
        match code {
            omp::REGION_BEGIN => self.regions.push(event.number("region")),
            omp::REGION_END => assert_eq!(self.regions.pop(), Some(event.number("region"))),
            omp::IMPLICIT_BEGIN => {
                assert!(event.number("index") < event.number("team"));
                self.members.push(event.number("region"));
            }
            omp::IMPLICIT_END => assert_eq!(self.members.pop(), Some(event.number("region"))),
            _ => {}
        }
        let begin_of = |code| match code {
            omp::REGION_END => Some(omp::REGION_BEGIN),
            omp::IMPLICIT_END => Some(omp::IMPLICIT_BEGIN),
            omp::TASKGROUP_END => Some(omp::TASKGROUP_BEGIN),
            omp::MASKED_END => Some(omp::MASKED_BEGIN),
            _ => None,
        };
        if matches!(code, omp::REGION_BEGIN | omp::IMPLICIT_BEGIN | omp::TASKGROUP_BEGIN | omp::MASKED_BEGIN)
        {
            self.open_own.push(code);
        } else if let Some(begin) = begin_of(code) {
            assert_eq!(self.open_own.pop(), Some(begin), "{code}");
        }
    }
}
