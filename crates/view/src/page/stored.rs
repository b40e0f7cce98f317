//! A page in a cache file: what the viewer shows of a run, without the trace.
//!
//! Sections, pyramids, tasks, dependences and holds stay in the file and are read where they are asked for; other
//! tables are copied, as they are much smaller.

use super::{Instance, Names, Page, Queue, QueueOperation, Queues, time_of};
use rustc_hash::FxHashMap;
use serde_json::{Value, json};
use std::ops::Range;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, OnceLock};
use taskscope_execution::lod::{CLASSES, FlagRules, Flags, Pyramid, Timeline};
use taskscope_execution::messages::{Call, Communication, PeerWait, PeerWaitKind, Rank};
use taskscope_execution::{
    Activities, Activity, Catalog, Column, Construct, CpuFacts, CpuLoad, CpuSet, Doubt, Execution, Gap, Loss,
    Module, Object, OffCpu, OsSource, OsTotals, Process, ProcessIndex, Quota, Region, RegionIndex, Runs,
    RuntimeRole, SharedBytes, Site, SiteIndex, SystemCause, SystemTime, TaskStatus, Tasks, Thread,
    ThreadIndex, ThreadKind, Throttled, Track, TrackColumns, Type, TypeIndex, TypeKind, Uncertain, WorkShare,
};
use taskscope_session::cache::{self, Cache, Key};

/// Blocks of a thread: seven columns of sections, nine of its pyramid.
const OF_THREAD: usize = 16;
/// Tables, which follow the threads; after them the tasks, then two blocks of each device queue.
const TABLES: usize = 10;
/// Holds and dependences, after the tables, which stay in the file.
const HOLDS: usize = TABLES;
const DEPENDENCES: usize = HOLDS + 1;
/// What the numbers in the tracks mean.
const ACTIVITIES: usize = DEPENDENCES + 1;
/// Columns of tasks, after them.
const TASKS: usize = ACTIVITIES + 1;
const TASK_COLUMNS: usize = 10;
/// Where the blocks of device queues begin.
const QUEUES: usize = TASKS + TASK_COLUMNS;
const KINDS: [ThreadKind; 5] =
    [ThreadKind::Initial, ThreadKind::Worker, ThreadKind::Helper, ThreadKind::Cpu, ThreadKind::Unknown];
const OS_SOURCES: [OsSource; 3] = [OsSource::Unknown, OsSource::Switches, OsSource::Estimated];
const STATUSES: [TaskStatus; 6] = [
    TaskStatus::Created,
    TaskStatus::Running,
    TaskStatus::Suspended,
    TaskStatus::Ended,
    TaskStatus::Cancelled,
    TaskStatus::Unseen,
];

impl Page {
    /// Writes the page into the cache of the trace in `root`.
    ///
    /// # Errors
    /// If it can be written nowhere, or `stop` was set.
    pub fn store(&self, root: &Path, key: &Key, stop: &AtomicBool) -> std::io::Result<()> {
        // Whoever adds a table must store it too.
        let Execution {
            processes,
            threads,
            catalog,
            activities,
            tasks,
            regions,
            works,
            holds,
            dependences,
            losses,
            off_cpu: _,
            blocked,
            system_time,
            // What follows from them is in the report.
            queued: _,
            target_waits: _,
            team_limits: _,
            wait_dependences: _,
            communication,
            uncertain,
            anomalies: _,
            // What was made of them is in the report.
            samples: _,
            filtered: _,
            thread_waits: _,
            // Only a whole is stored.
            cut_waits: _,
            part: _,
        } = &*self.execution;
        // Pages show whom a call waited for, not what was in its messages, and no data.
        let Communication { ranks, calls, .. } = communication;
        let Catalog { modules, data: _, sites, constructs, types, objects, gaps, operations: _ } = catalog;
        let rules = self.timeline.pyramid(ThreadIndex(0)).map(|p| p.rules().clone()).unwrap_or_default();
        let more = json!({
            "report": self.report,
            "histograms": self.histograms,
            "critical_path": self.critical_path,
            "clocks": self.clocks,
            "instances": self.instances.iter()
                .map(|i| json!([i.finding, i.thread.0, i.start, i.end])).collect::<Vec<_>>(),
            "long_ns": rules.long_ns.to_vec(),
            "always": rules.always.map(|flags| flags.0).to_vec(),
            "processes": processes.iter()
                .map(|p| json!([p.loom, p.pid, p.first, p.last, p.has_cpus, p.cpus.as_ref().map(cpus_to_json)])).collect::<Vec<_>>(),
            "threads": threads.iter().map(|t| json!([
                t.process.0, t.tid, KINDS.iter().position(|kind| *kind == t.kind), t.worker, t.ended, t.first,
                t.last, t.events, t.lost_events, t.track.end(),
                OS_SOURCES.iter().position(|source| *source == t.os_source),
                t.os_totals.on_cpu_ns, t.os_totals.run_delay_ns,
                t.cpus.as_ref().map(|cpus| cpus.to_string()),
                t.role.map(|role| role as u8),
                t.name,
            ])).collect::<Vec<_>>(),
            "streams": self.tracks_by_stream,
            "queues": self.queues.queues().iter()
                .map(|q| json!([q.name, q.device, q.pid, q.names])).collect::<Vec<_>>(),
            "ranks": ranks.iter().map(|(process, r)| json!([process, r.job, r.rank, r.ranks])).collect::<Vec<_>>(),
            "modules": modules.iter()
                .map(|m| json!([m.process.0, m.start, m.end, m.bias, m.build_id, m.path, m.at])).collect::<Vec<_>>(),
            "constructs": constructs.iter().map(|(site, c)| json!([site.0, c.body, c.location])).collect::<Vec<_>>(),
            "types": types.iter().map(|t| json!([t.process.0, t.label, t.site.0, type_kind(t.kind)])).collect::<Vec<_>>(),
        });
        let pyramids = (0..threads.len()).filter_map(|at| self.timeline.pyramid(ThreadIndex(at as u32)));
        let mut blocks: Vec<&[u8]> = Vec::with_capacity(threads.len() * OF_THREAD + 20);
        for (thread, pyramid) in threads.iter().zip(pyramids) {
            blocks.extend(thread.track.stored());
            blocks.extend(pyramid.stored());
        }
        let tables: [Column<u64>; TABLES] = [
            words(regions, |r| {
                [
                    r.number,
                    pair(r.site.0, r.parent.0),
                    pair(r.master.0, r.members),
                    r.begin,
                    r.end,
                    pair(r.team, r.requested),
                ]
            }),
            words(works, |w| {
                [
                    pair(w.ty.0, w.region.0),
                    pair(w.thread.0, w.ordinal),
                    w.start,
                    w.end,
                    u64::from(w.chunks),
                    w.iterations,
                ]
            }),
            words(losses, |l| [u64::from(l.thread.0), l.start, l.end, l.events]),
            words(sites, |s| [u64::from(s.process.0), s.address, s.at]),
            words(objects, |o| [pair(o.process.0, o.kind), o.id]),
            words(gaps, |g| [pair(g.after.0, g.before.0), u64::from(g.process.0)]),
            words(system_time, |part| [u64::from(part.thread.0), part.start, part.end, part.cause as u64]),
            words(uncertain, |u| [pair(u.thread.0, u.doubt as u32), u.start, u.end]),
            words(calls, words_of_call),
            words(blocked, |off| [u64::from(off.thread.0), off.start, off.end]),
        ];
        blocks.extend(tables.iter().map(Column::as_bytes));
        let activities = activities.stored();
        blocks.extend([holds.as_bytes(), dependences.as_bytes(), activities.as_bytes()]);
        let Tasks { number, ty, parent, region, creator, runner, created, began, ended, status } = tasks;
        let status: Vec<u8> = status.iter().map(|status| *status as u8).collect();
        blocks.extend([ty.as_bytes(), parent.as_bytes(), region.as_bytes(), creator.as_bytes()]);
        blocks.extend([runner.as_bytes(), created.as_bytes(), began.as_bytes(), ended.as_bytes()]);
        blocks.extend([&status[..], number.as_bytes()]);
        let queues: Vec<[Column<u64>; 2]> = (self.queues.queues().iter())
            .map(|queue| [words(&queue.operations, words_of_operation), queue.lost.clone().into()])
            .collect();
        blocks.extend(queues.iter().flatten().map(Column::as_bytes));
        cache::save(root, key, more, &blocks, stop).map(drop)
    }

    /// The page of the trace in `root` from its cache; `None` where there is none that fits.
    pub fn stored(root: &Path, key: &Key) -> Option<Page> {
        let cache = Cache::open(root, key)?;
        let more = &cache.header;
        let rows = |name: &str| more[name].as_array().map(Vec::as_slice);
        let number = |value: &Value| value.as_u64();
        let small = |value: &Value| value.as_u64().and_then(|n| u32::try_from(n).ok());
        let text = |value: &Value| value.as_str().map(str::to_string);
        let thread_rows = rows("threads")?;
        let (of_threads, tables) = cache.blocks().split_at_checked(thread_rows.len() * OF_THREAD)?;
        let mut rules = FlagRules::default();
        for class in 0..CLASSES {
            rules.long_ns[class] = number(&more["long_ns"][class])?;
            rules.always[class] = Flags(u8::try_from(number(&more["always"][class])?).ok()?);
        }
        let mut execution = Execution::default();
        let activities = Column::<Activity>::shared(cache.bytes(), tables.get(ACTIVITIES)?.clone())?;
        execution.activities = Arc::new(Activities::from_stored(&activities));
        let mut pyramids = Vec::with_capacity(thread_rows.len());
        for (row, at) in thread_rows.iter().zip(of_threads.chunks_exact(OF_THREAD)) {
            let bytes = cache.bytes();
            let track = Track::from_columns(TrackColumns {
                start: Column::shared(bytes, at[0].clone())?,
                start_high: Runs::stored(Column::shared(bytes, at[1].clone())?),
                activity: Column::shared(bytes, at[2].clone())?,
                rare: Column::shared(bytes, at[3].clone())?,
                task: Runs::stored(Column::shared(bytes, at[4].clone())?),
                region: Runs::stored(Column::shared(bytes, at[5].clone())?),
                object: Runs::stored(Column::shared(bytes, at[6].clone())?),
                end: number(&row[9])?,
                activities: execution.activities.clone(),
                times: None,
            })?;
            pyramids.push(Pyramid::from_stored(bytes, at[7..].try_into().ok()?, &rules)?);
            execution.threads.push(Thread {
                process: ProcessIndex(small(&row[0])?),
                tid: row[1].as_i64()?,
                kind: *KINDS.get(number(&row[2])? as usize)?,
                role: match &row[14] {
                    Value::Null => None,
                    role => Some(*RuntimeRole::ALL.get(number(role)? as usize)?),
                },
                worker: row[3].as_bool()?,
                // Pages are of whole traces.
                selected: true,
                ended: row[4].as_bool()?,
                first: number(&row[5])?,
                name: text(&row[15])?,
                last: number(&row[6])?,
                // Only the analysis needs it, which was done before.
                last_event: number(&row[6])?,
                asleep_since: None,
                events: number(&row[7])?,
                lost_events: number(&row[8])?,
                os_source: *OS_SOURCES.get(number(&row[10])? as usize)?,
                os_totals: OsTotals { on_cpu_ns: number(&row[11]), run_delay_ns: number(&row[12]) },
                cpus: row[13].as_str().and_then(CpuSet::parse),
                track,
            });
        }
        for p in rows("processes")? {
            let (loom, pid) = (text(&p[0])?, p[1].as_i64()?);
            let (first, last, has_cpus) = (number(&p[2])?, number(&p[3])?, p[4].as_bool()?);
            execution.processes.push(Process {
                loom,
                pid,
                has_cpus,
                first,
                last,
                cpus: cpus_from_json(&p[5]),
            });
        }
        let catalog = &mut execution.catalog;
        for m in rows("modules")? {
            catalog.modules.push(Module {
                process: ProcessIndex(small(&m[0])?),
                start: number(&m[1])?,
                end: number(&m[2])?,
                bias: number(&m[3])?,
                build_id: text(&m[4])?,
                path: text(&m[5])?,
                at: number(&m[6])?,
            });
        }
        for c in rows("constructs")? {
            let construct = Construct { body: number(&c[1])?, location: text(&c[2])? };
            catalog.constructs.insert(SiteIndex(small(&c[0])?), construct);
        }
        for t in rows("types")? {
            let (process, label) = (ProcessIndex(small(&t[0])?), text(&t[1])?);
            catalog.types.push(Type {
                process,
                label,
                site: SiteIndex(small(&t[2])?),
                kind: kind_of_type(&t[3]),
            });
        }
        let table = |at: usize| Column::<u64>::shared(cache.bytes(), tables.get(at)?.clone());
        execution.tasks = stored_tasks(cache.bytes(), tables.get(TASKS..QUEUES)?)?;
        execution.holds = Column::shared(cache.bytes(), tables.get(HOLDS)?.clone())?;
        execution.dependences = Column::shared(cache.bytes(), tables.get(DEPENDENCES)?.clone())?;
        execution.regions = rows_of(&table(0)?, |[number, a, b, begin, end, requested]| Region {
            number,
            site: SiteIndex(high(a)),
            parent: RegionIndex(low(a)),
            master: ThreadIndex(high(b)),
            members: low(b),
            begin,
            end,
            requested: low(requested),
            team: high(requested),
        });
        execution.works = rows_of(&table(1)?, |[a, b, start, end, chunks, iterations]| WorkShare {
            ty: TypeIndex(high(a)),
            region: RegionIndex(low(a)),
            thread: ThreadIndex(high(b)),
            ordinal: low(b),
            start,
            end,
            chunks: low(chunks),
            iterations,
        });
        execution.losses = rows_of(&table(2)?, |[thread, start, end, events]| Loss {
            thread: ThreadIndex(low(thread)),
            start,
            end,
            events,
        });
        let catalog = &mut execution.catalog;
        catalog.sites = rows_of(&table(3)?, |[process, address, at]| Site {
            process: ProcessIndex(low(process)),
            address,
            at,
        });
        catalog.objects =
            rows_of(&table(4)?, |[a, id]| Object { process: ProcessIndex(high(a)), kind: low(a), id });
        catalog.gaps = rows_of(&table(5)?, |[a, process]| Gap {
            after: SiteIndex(high(a)),
            before: SiteIndex(low(a)),
            process: ProcessIndex(low(process)),
        });
        execution.uncertain = rows_of(&table(7)?, |[a, start, end]| Uncertain {
            thread: ThreadIndex(high(a)),
            doubt: Doubt::ALL.get(low(a) as usize).copied().unwrap_or(Doubt::DoesNotFit),
            start,
            end,
        });
        let mut queues = Vec::new();
        for (number, q) in rows("queues")?.iter().enumerate() {
            queues.push(Queue {
                name: text(&q[0])?,
                device: text(&q[1])?,
                pid: q[2].as_i64(),
                names: q[3].as_array()?.iter().map(text).collect::<Option<_>>()?,
                operations: rows_of(&table(QUEUES + 2 * number)?, operation_of_words),
                lost: table(QUEUES + 2 * number + 1)?.to_vec(),
            });
        }
        let mut tracks_by_stream = FxHashMap::default();
        for (path, track) in more["streams"].as_object()? {
            tracks_by_stream.insert(path.clone(), number(track)? as usize);
        }
        execution.system_time = rows_of(&table(6)?, |[thread, start, end, cause]| SystemTime {
            thread: ThreadIndex(low(thread)),
            start,
            end,
            cause: SystemCause::ALL.get(cause as usize).copied().unwrap_or(SystemCause::NoCpu),
        });
        execution.blocked = rows_of(&table(9)?, |[thread, start, end]| OffCpu {
            thread: ThreadIndex(low(thread)),
            start,
            end,
        });
        execution.communication.calls = rows_of(&table(8)?, call_of_words);
        for r in rows("ranks")? {
            let rank = Rank { job: number(&r[1])?, rank: small(&r[2])?, ranks: small(&r[3])? };
            execution.communication.ranks.insert(small(&r[0])?, rank);
        }
        let mut instances = Vec::new();
        for i in rows("instances")? {
            let thread = ThreadIndex(small(&i[1])?);
            instances.push(Instance {
                finding: text(&i[0])?,
                thread,
                start: number(&i[2])?,
                end: number(&i[3])?,
            });
        }
        let histogram = |rows: &Value| -> Option<Vec<(u64, u64)>> {
            rows.as_array()?.iter().map(|row| Some((number(&row[0])?, number(&row[1])?))).collect()
        };
        let histograms = rows("histograms")?.iter().map(histogram).collect::<Option<_>>()?;
        let known = |process: ProcessIndex| process.index() < execution.processes.len();
        if !execution.threads.iter().all(|thread| known(thread.process)) {
            return None;
        }
        let mut timeline = Timeline::from_pyramids(&execution, pyramids)?;
        for i in &instances {
            timeline.mark(i.thread, Flags::FINDING, vec![(i.start, i.end)]);
        }
        let execution = Arc::new(execution);
        let queued = queues.iter().map(|_| OnceLock::new()).collect();
        let queues = Queues::new(queues);
        let time = time_of(&execution, &queues);
        Some(Page {
            names: Names::of(execution.clone(), taskscope_session::KeptModules::of_trace(root)),
            execution,
            timeline,
            report: cache.header["report"].clone(),
            instances,
            histograms,
            critical_path: cache.header["critical_path"].clone(),
            clocks: cache.header["clocks"].as_str()?.to_string(),
            time,
            queues,
            root: root.to_path_buf(),
            key: Some(key.clone()),
            tracks_by_stream,
            models: OnceLock::new(),
            shown: OnceLock::new(),
            ready_tasks: OnceLock::new(),
            live_tasks: OnceLock::new(),
            dependences: OnceLock::new(),
            type_rows: OnceLock::new(),
            queued,
            highlighted: Mutex::default(),
        })
    }
}

fn type_kind(kind: Option<TypeKind>) -> Value {
    match kind {
        Some(TypeKind::Task { flags }) => json!(["task", flags]),
        Some(TypeKind::Work { kind }) => json!(["work", kind]),
        None => Value::Null,
    }
}

fn kind_of_type(value: &Value) -> Option<TypeKind> {
    let number = u32::try_from(value[1].as_u64()?).ok()?;
    match value[0].as_str()? {
        "task" => Some(TypeKind::Task { flags: number }),
        "work" => Some(TypeKind::Work { kind: number }),
        _ => None,
    }
}

fn cpus_to_json(cpus: &CpuFacts) -> Value {
    json!([
        cpus.allowed.to_string(),
        cpus.online,
        cpus.quota.as_ref().map(|quota| json!([quota.millicpus, quota.cgroup])),
        cpus.throttled.iter().map(|t| [t.start, t.end, t.periods, t.ns]).collect::<Vec<_>>(),
        cpus.loads.iter().map(|l| [l.start, l.end, l.busy_ns, l.stolen_ns, l.own_ns]).collect::<Vec<_>>(),
        cpus.stopped.iter().map(|(start, end)| [start, end]).collect::<Vec<_>>(),
    ])
}

fn cpus_from_json(value: &Value) -> Option<CpuFacts> {
    let quota =
        |value: &Value| Some(Quota { millicpus: value[0].as_u64()?, cgroup: value[1].as_str()?.to_owned() });
    Some(CpuFacts {
        allowed: CpuSet::parse(value[0].as_str()?)?,
        online: value[1].as_u64().and_then(|count| u32::try_from(count).ok()),
        quota: quota(&value[2]),
        throttled: (numbers_of_rows(&value[3]).into_iter())
            .map(|[start, end, periods, ns]| Throttled { start, end, periods, ns })
            .collect(),
        stopped: numbers_of_rows(&value[5]).into_iter().map(|[start, end]| (start, end)).collect(),
        loads: (numbers_of_rows(&value[4]).into_iter())
            .map(|[start, end, busy_ns, stolen_ns, own_ns]| CpuLoad {
                start,
                end,
                busy_ns,
                stolen_ns,
                own_ns,
            })
            .collect(),
    })
}

/// The rows of an array of arrays of `N` numbers; others are left out.
fn numbers_of_rows<const N: usize>(value: &Value) -> Vec<[u64; N]> {
    let row = |row: &Value| {
        let numbers: Option<Vec<u64>> = row.as_array()?.iter().map(Value::as_u64).collect();
        <[u64; N]>::try_from(numbers?).ok()
    };
    value.as_array().into_iter().flatten().filter_map(row).collect()
}

fn pair(high: u32, low: u32) -> u64 {
    u64::from(high) << 32 | u64::from(low)
}

fn high(word: u64) -> u32 {
    (word >> 32) as u32
}

fn low(word: u64) -> u32 {
    word as u32
}

/// Rows of a table as words, `N` each.
fn words<T, const N: usize>(rows: &[T], row: impl Fn(&T) -> [u64; N]) -> Column<u64> {
    rows.iter().flat_map(row).collect::<Vec<u64>>().into()
}

fn rows_of<T, const N: usize>(words: &[u64], row: impl Fn([u64; N]) -> T) -> Vec<T> {
    words.as_chunks::<N>().0.iter().map(|words| row(*words)).collect()
}

fn words_of_call(call: &Call) -> [u64; 7] {
    let wait = call.wait.map_or(0, |wait| {
        let kind = PeerWaitKind::ALL.iter().position(|kind| *kind == wait.kind).unwrap_or(0);
        pair(kind as u32 + 1, wait.culprit.0)
    });
    let until = call.wait.map_or(0, |wait| wait.until);
    let (who, what) = (pair(call.thread.0, call.function), pair(call.place.packed(), call.count));
    [who, call.start, call.end, wait, until, what, call.bytes]
}

fn call_of_words([who, start, end, wait, until, what, bytes]: [u64; 7]) -> Call {
    let kind = high(wait).checked_sub(1).and_then(|kind| PeerWaitKind::ALL.get(kind as usize)).copied();
    let wait = kind.map(|kind| PeerWait { kind, culprit: ProcessIndex(low(wait)), until });
    let (thread, function) = (ThreadIndex(high(who)), low(who));
    let (place, count) = (taskscope_execution::Place::from_packed(high(what)), low(what));
    Call { thread, function, place, start, end, count, bytes, wait }
}

fn words_of_operation(o: &QueueOperation) -> [u64; 9] {
    let (kind, lane) = (pair(o.kind, o.name), pair(o.lane, o.anomalies));
    [o.seq, o.start, o.end, o.append, o.bytes, o.thread as u64, o.late_by, kind, lane]
}

fn operation_of_words(words: [u64; 9]) -> QueueOperation {
    let [seq, start, end, append, bytes, thread, late_by, kind, lane] = words;
    QueueOperation {
        seq,
        start,
        end,
        append,
        bytes,
        thread: thread as i64,
        late_by,
        kind: high(kind),
        name: low(kind),
        lane: high(lane),
        anomalies: low(lane),
    }
}

/// Tasks whose columns stay where they lie, but for how they ended, which is one byte each.
fn stored_tasks(bytes: &SharedBytes, at: &[Range<usize>]) -> Option<Tasks> {
    let [ty, parent, region, creator, runner, created, began, ended, status, number] = at else {
        return None;
    };
    let status = Column::<u8>::shared(bytes, status.clone())?;
    let status = status.iter().map(|number| STATUSES.get(usize::from(*number)).copied());
    let tasks = Tasks {
        number: Column::shared(bytes, number.clone())?,
        ty: Column::shared(bytes, ty.clone())?,
        parent: Column::shared(bytes, parent.clone())?,
        region: Column::shared(bytes, region.clone())?,
        creator: Column::shared(bytes, creator.clone())?,
        runner: Column::shared(bytes, runner.clone())?,
        created: Column::shared(bytes, created.clone())?,
        began: Column::shared(bytes, began.clone())?,
        ended: Column::shared(bytes, ended.clone())?,
        status: status.collect::<Option<_>>()?,
    };
    let of_threads = [tasks.region.len(), tasks.creator.len(), tasks.runner.len(), tasks.parent.len()];
    let of_times = [tasks.created.len(), tasks.began.len(), tasks.ended.len(), tasks.status.len()];
    let is_numbered = tasks.number.is_empty() || tasks.number.len() == tasks.len();
    (is_numbered && of_threads == [tasks.len(); 4] && of_times == of_threads).then_some(tasks)
}
