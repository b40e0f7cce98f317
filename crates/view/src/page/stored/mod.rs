//! A page in a cache file: the viewer's data of a run, without the trace.
//!
//! Sections, pyramids, tasks, dependences and holds stay in the file and are read on demand; other tables are
//! copied, as they are much smaller.

mod rows;
mod words;

use super::derived::Derived;
use super::{Instance, Names, Page, PathOfPage, Queue, Queues, SampleTimes, time_of};
use crate::report_json::Report;
use crate::source_files::SourceRoots;
use rows::{
    ConstructRow, InstanceRow, ModuleRow, ProcessRow, QueueRow, RankRow, RuleRow, ThreadRow, TypeRow,
};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use taskscope_execution::lod::{CLASSES, FlagRules, Flags, Pyramid, Timeline};
use taskscope_execution::messages::{Communication, Rank};
use taskscope_execution::{
    Activities, Activity, Catalog, Column, Construct, Doubt, Execution, Gap, Loss, Object, OffCpu,
    ProcessIndex, Region, RegionIndex, Runs, SharedBytes, Site, SiteIndex, SystemCause, SystemTime,
    TaskStatus, Tasks, ThreadIndex, Track, TrackColumns, TypeIndex, Uncertain, WorkShare,
};
use taskscope_session::cache::{self, Cache, Key};
use words::{
    call_of_words, high, low, message_of_words, operation_of_words, pair, rows_of, sample_of_words,
    spot_of_words, step_of_words, words, words_of_call, words_of_message, words_of_operation,
    words_of_sample, words_of_spot, words_of_step,
};

/// Blocks of a thread: seven columns of sections, nine of its pyramid.
const OF_THREAD: usize = 16;
/// Tables, which follow the threads; after them the tasks, then two blocks of each device queue, the messages, and three blocks of samples.
const TABLES: usize = 11;
/// Holds and dependences, after the tables, which stay in the file.
const HOLDS: usize = TABLES;
const DEPENDENCES: usize = HOLDS + 1;
/// The meaning of the numbers in the tracks.
const ACTIVITIES: usize = DEPENDENCES + 1;
/// Columns of tasks, after them.
const TASKS: usize = ACTIVITIES + 1;
const TASK_COLUMNS: usize = 10;
/// Index of the first block of device queues.
const QUEUES: usize = TASKS + TASK_COLUMNS;
const STATUSES: [TaskStatus; 6] = [
    TaskStatus::Created,
    TaskStatus::Running,
    TaskStatus::Suspended,
    TaskStatus::Ended,
    TaskStatus::Cancelled,
    TaskStatus::Unseen,
];

/// Header of a page's file; the report is cloned only when the file is read.
#[derive(Serialize, Deserialize)]
struct Header<'p> {
    report: Cow<'p, Report>,
    critical_path: Cow<'p, Option<PathOfPage>>,
    histograms: Cow<'p, [Vec<(u64, u64)>]>,
    clocks: Cow<'p, str>,
    instances: Vec<InstanceRow>,
    rules: RuleRow,
    processes: Vec<ProcessRow>,
    threads: Vec<ThreadRow>,
    /// The thread of each stream, by its directory below the root.
    streams: BTreeMap<String, usize>,
    queues: Vec<QueueRow>,
    ranks: Vec<RankRow>,
    modules: Vec<ModuleRow>,
    constructs: Vec<ConstructRow>,
    types: Vec<TypeRow>,
    /// Names of the samples' functions and files.
    sample_words: Cow<'p, [String]>,
}

impl Page {
    /// Writes the page into the cache of the trace in `root`.
    ///
    /// # Errors
    /// If it can be written nowhere, or `stop` was set.
    pub fn store(&self, root: &Path, key: &Key, stop: &AtomicBool) -> std::io::Result<()> {
        // A new table must be stored here too.
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
            off_cpu,
            blocked,
            system_time,
            // Their results are in the report.
            queued: _,
            target_waits: _,
            team_limits: _,
            wait_dependences: _,
            detached: _,
            communication,
            uncertain,
            anomalies: _,
            // Their results are in the report, and in the page's own samples.
            samples: _,
            filtered: _,
            thread_waits: _,
            // Only a whole is stored.
            cut_waits: _,
            part: _,
        } = &*self.execution;
        // Of collective operations pages show the peer that a call waited for.
        let Communication { ranks, calls, messages, .. } = communication;
        let Catalog { modules, data: _, sites, constructs, types, objects, gaps, operations: _ } = catalog;
        let rules = self.timeline.pyramid(ThreadIndex(0)).map(|p| p.rules().clone()).unwrap_or_default();
        let more = Header {
            report: Cow::Borrowed(&self.report),
            critical_path: Cow::Borrowed(&self.critical_path),
            histograms: Cow::Borrowed(&self.histograms),
            clocks: Cow::Borrowed(&self.clocks),
            instances: (self.instances.iter())
                .map(|instance| InstanceRow {
                    finding: instance.finding.clone(),
                    thread: instance.thread.0,
                    start: instance.start,
                    end: instance.end,
                })
                .collect(),
            rules: RuleRow {
                long_ns: rules.long_ns.to_vec(),
                always: rules.always.map(|flags| flags.0).to_vec(),
            },
            processes: processes.iter().map(ProcessRow::of).collect(),
            threads: threads.iter().map(ThreadRow::of).collect(),
            streams: self.tracks_by_stream.iter().map(|(path, track)| (path.clone(), *track)).collect(),
            queues: (self.queues.queues().iter())
                .map(|queue| QueueRow {
                    name: queue.name.clone(),
                    device: queue.device.clone(),
                    pid: queue.pid,
                    names: queue.names.clone(),
                })
                .collect(),
            ranks: (ranks.iter())
                .map(|(process, row)| RankRow {
                    process: *process,
                    job: row.job,
                    rank: row.rank,
                    ranks: row.ranks,
                })
                .collect(),
            modules: modules.iter().map(ModuleRow::of).collect(),
            constructs: (constructs.iter())
                .map(|(site, row)| ConstructRow {
                    site: site.0,
                    body: row.body,
                    location: row.location.clone(),
                })
                .collect(),
            types: types.iter().map(TypeRow::of).collect(),
            sample_words: Cow::Borrowed(&self.samples.words),
        };
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
            words(sites, |s| [pair(s.process.0, s.number), s.address, s.at]),
            words(objects, |o| [pair(o.process.0, o.kind), o.id]),
            words(gaps, |g| [pair(g.after.0, g.before.0), u64::from(g.process.0)]),
            words(system_time, |part| [u64::from(part.thread.0), part.start, part.end, part.cause as u64]),
            words(uncertain, |u| [pair(u.thread.0, u.doubt as u32), u.start, u.end]),
            words(calls, words_of_call),
            words(blocked, |off| [u64::from(off.thread.0), off.start, off.end]),
            words(off_cpu, |off| [u64::from(off.thread.0), off.start, off.end]),
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
        let messages = words(messages, words_of_message);
        blocks.push(messages.as_bytes());
        let SampleTimes { words: _, steps, spots, rows } = &self.samples;
        let samples =
            [words(steps, words_of_step), words(spots, words_of_spot), words(rows, words_of_sample)];
        blocks.extend(samples.iter().map(Column::as_bytes));
        cache::save(root, key, &more, &blocks, stop).map(drop)
    }

    /// The page of the trace in `root` from its cache; `None` without a valid one.
    pub fn stored(root: &Path, key: &Key) -> Option<Page> {
        let cache: Cache<Header<'static>> = Cache::open(root, key)?;
        let header = &cache.header;
        let (thread_blocks, tables) = cache.blocks().split_at_checked(header.threads.len() * OF_THREAD)?;
        let rules = FlagRules {
            long_ns: header.rules.long_ns.as_slice().try_into().ok()?,
            always: <[u8; CLASSES]>::try_from(header.rules.always.as_slice()).ok()?.map(Flags),
        };
        let mut execution = Execution::default();
        let activities = Column::<Activity>::shared(cache.bytes(), tables.get(ACTIVITIES)?.clone())?;
        execution.activities = Arc::new(Activities::from_stored(&activities));
        let mut pyramids = Vec::with_capacity(header.threads.len());
        for (row, at) in header.threads.iter().zip(thread_blocks.chunks_exact(OF_THREAD)) {
            let bytes = cache.bytes();
            let track = Track::from_columns(TrackColumns {
                start: Column::shared(bytes, at[0].clone())?,
                start_high: Runs::stored(Column::shared(bytes, at[1].clone())?),
                activity: Column::shared(bytes, at[2].clone())?,
                rare: Column::shared(bytes, at[3].clone())?,
                task: Runs::stored(Column::shared(bytes, at[4].clone())?),
                region: Runs::stored(Column::shared(bytes, at[5].clone())?),
                object: Runs::stored(Column::shared(bytes, at[6].clone())?),
                end: row.track_end,
                activities: execution.activities.clone(),
                times: None,
            })?;
            pyramids.push(Pyramid::from_stored(bytes, at[7..].try_into().ok()?, &rules)?);
            execution.threads.push(row.thread(track)?);
        }
        execution.processes = header.processes.iter().map(ProcessRow::process).collect::<Option<_>>()?;
        let catalog = &mut execution.catalog;
        catalog.modules = header.modules.iter().map(ModuleRow::module).collect();
        for row in &header.constructs {
            let construct = Construct { body: row.body, location: row.location.clone() };
            catalog.constructs.insert(SiteIndex(row.site), construct);
        }
        catalog.types = header.types.iter().map(TypeRow::ty).collect();
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
        catalog.sites = rows_of(&table(3)?, |[a, address, at]| Site {
            process: ProcessIndex(high(a)),
            number: low(a),
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
        for (number, row) in header.queues.iter().enumerate() {
            queues.push(Queue {
                name: row.name.clone(),
                device: row.device.clone(),
                pid: row.pid,
                names: row.names.clone(),
                operations: rows_of(&table(QUEUES + 2 * number)?, operation_of_words),
                lost: table(QUEUES + 2 * number + 1)?.to_vec(),
            });
        }
        execution.system_time = rows_of(&table(6)?, |[thread, start, end, cause]| SystemTime {
            thread: ThreadIndex(low(thread)),
            start,
            end,
            cause: SystemCause::ALL.get(cause as usize).copied().unwrap_or(SystemCause::NoCpu),
        });
        let off_cpu =
            |[thread, start, end]: [u64; 3]| OffCpu { thread: ThreadIndex(low(thread)), start, end };
        execution.blocked = rows_of(&table(9)?, off_cpu);
        execution.off_cpu = rows_of(&table(10)?, off_cpu);
        execution.communication.calls = rows_of(&table(8)?, call_of_words);
        execution.communication.messages =
            rows_of(&table(QUEUES + 2 * header.queues.len())?, message_of_words);
        for row in &header.ranks {
            let rank = Rank { job: row.job, rank: row.rank, ranks: row.ranks };
            execution.communication.ranks.insert(row.process, rank);
        }
        let instances: Vec<Instance> = (header.instances.iter())
            .map(|row| Instance {
                finding: row.finding.clone(),
                thread: ThreadIndex(row.thread),
                start: row.start,
                end: row.end,
            })
            .collect();
        let known = |process: ProcessIndex| process.index() < execution.processes.len();
        if !execution.threads.iter().all(|thread| known(thread.process)) {
            return None;
        }
        let mut timeline = Timeline::from_pyramids(&execution, pyramids)?;
        for i in &instances {
            timeline.mark(i.thread, Flags::FINDING, vec![(i.start, i.end)]);
        }
        let execution = Arc::new(execution);
        let queues = Queues::new(queues);
        let time = time_of(&execution, &queues);
        let samples = QUEUES + 2 * queues.queues().len() + 1;
        let (steps, spots) =
            (rows_of(&table(samples)?, step_of_words), rows_of(&table(samples + 1)?, spot_of_words));
        let rows = rows_of(&table(samples + 2)?, sample_of_words);
        let Header { report, critical_path, histograms, clocks, streams, sample_words, .. } = cache.header;
        let samples = SampleTimes { words: sample_words.into_owned(), steps, spots, rows };
        if !samples.is_sound() {
            return None;
        }
        Some(Page {
            names: Names::of(execution.clone(), taskscope_session::KeptModules::in_trace(root)),
            execution,
            timeline,
            report: report.into_owned(),
            instances,
            histograms: histograms.into_owned(),
            critical_path: critical_path.into_owned(),
            clocks: clocks.into_owned(),
            time,
            queues,
            samples,
            root: root.to_path_buf(),
            key: Some(key.clone()),
            tracks_by_stream: streams.into_iter().collect(),
            derived: Derived::default(),
            sources: SourceRoots::default(),
        })
    }
}

/// Tasks with their columns in place; their status, one byte each, is copied.
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
    let link_lengths = [tasks.region.len(), tasks.creator.len(), tasks.runner.len(), tasks.parent.len()];
    let time_lengths = [tasks.created.len(), tasks.began.len(), tasks.ended.len(), tasks.status.len()];
    let is_numbered = tasks.number.is_empty() || tasks.number.len() == tasks.len();
    (is_numbered && link_lengths == [tasks.len(); 4] && time_lengths == link_lengths).then_some(tasks)
}
