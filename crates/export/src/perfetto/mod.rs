//! Perfetto's protocol buffer (`perfetto.protos.Trace`), for ui.perfetto.dev and its trace processor.
//!
//! One packet sequence. All names are interned by the first packet; a lane is a track, of a thread if it is one; an
//! arrow is a flow between the sections of its ends. A flow that arrives after the begin of its section is written at
//! the section's end, since the begin may be earlier than that of the flow's source.
//!
//! Clocks: timestamps are of the trace's clock, declared as `MONOTONIC`; a snapshot maps it to UTC if that is known.

mod wire;

use crate::ids::Ids;
use crate::timeline::{Arrow, Content, Counter, Export, Held, LaneKind, Record, Sample, Section, Timeline};
use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};
use wire::Message;

const SEQUENCE: u64 = 1;
const CLOCK_REALTIME: u64 = 1;
const CLOCK_MONOTONIC: u64 = 3;
const CLOCK_BOOTTIME: u64 = 6;

/// Fields of messages, by their numbers in Perfetto's definitions.
mod field {
    pub const PACKET: u32 = 1;
    // TracePacket
    pub const CLOCK_SNAPSHOT: u32 = 6;
    pub const TIMESTAMP: u32 = 8;
    pub const SEQUENCE_ID: u32 = 10;
    pub const TRACK_EVENT: u32 = 11;
    pub const INTERNED_DATA: u32 = 12;
    pub const SEQUENCE_FLAGS: u32 = 13;
    pub const DEFAULTS: u32 = 59;
    pub const TIMESTAMP_CLOCK: u32 = 58;
    pub const TRACK_DESCRIPTOR: u32 = 60;
    pub const PERF_SAMPLE: u32 = 66;
    // InternedData
    pub const FUNCTION_NAMES: u32 = 5;
    pub const FRAMES: u32 = 6;
    pub const CALLSTACKS: u32 = 7;
    pub const MAPPING_PATHS: u32 = 17;
    pub const MAPPINGS: u32 = 19;
    // TrackEvent
    pub const CATEGORIES: u32 = 3;
    pub const ANNOTATION: u32 = 4;
    pub const TYPE: u32 = 9;
    pub const NAME: u32 = 10;
    pub const TRACK: u32 = 11;
    pub const COUNTER_VALUE: u32 = 30;
    pub const SOURCE_LOCATION: u32 = 34;
    pub const FLOW: u32 = 47;
    pub const LAST_FLOW: u32 = 48;
}

const SLICE_BEGIN: u64 = 1;
const SLICE_END: u64 = 2;
const COUNTER: u64 = 4;

/// Names of annotations, by their interned numbers.
const ANNOTATIONS: [&str; 9] =
    ["task", "region", "waits for", "bytes", "lost events", "function", "communicator", "operation", "root"];
const TASK: u64 = 1;
const REGION: u64 = 2;
const WAITS_FOR: u64 = 3;
const BYTES: u64 = 4;
const LOST: u64 = 5;
const FUNCTION: u64 = 6;
const COMMUNICATOR: u64 = 7;
const OPERATION: u64 = 8;
const ROOT: u64 = 9;

/// Writes a trace of Perfetto.
pub struct PerfettoWriter<W: Write> {
    out: W,
    packet: Message,
    ids: Option<Ids>,
}

impl<W: Write> PerfettoWriter<W> {
    /// A trace that goes to `out`.
    pub fn new(out: W) -> Self {
        PerfettoWriter { out, packet: Message::default(), ids: None }
    }

    /// The target, when the trace is complete.
    pub fn into_inner(self) -> W {
        self.out
    }

    fn packet(&mut self, write: impl FnOnce(&mut Message)) -> io::Result<()> {
        self.packet.clear();
        self.packet.message(field::PACKET, |packet| {
            packet.varint(field::SEQUENCE_ID, SEQUENCE);
            write(packet);
        });
        self.out.write_all(self.packet.bytes())
    }

    fn event(&mut self, at: u64, write: impl FnOnce(&mut Message)) -> io::Result<()> {
        self.packet(|packet| {
            packet.varint(field::TIMESTAMP, at);
            // Needs the names of the first packet.
            packet.varint(field::SEQUENCE_FLAGS, 2);
            packet.message(field::TRACK_EVENT, write);
        })
    }

    fn clocks(&mut self, timeline: &Timeline<'_>) -> io::Result<()> {
        let begin = timeline.execution().whole().range().0;
        self.packet(|packet| {
            packet.varint(field::TIMESTAMP, begin);
            packet.varint(field::TIMESTAMP_CLOCK, CLOCK_MONOTONIC);
            packet.message(field::CLOCK_SNAPSHOT, |snapshot| {
                let mut clock = |id: u64, at: u64| {
                    snapshot.message(1, |clock| {
                        clock.varint(1, id);
                        clock.varint(2, at);
                    });
                };
                clock(CLOCK_MONOTONIC, begin);
                // Perfetto's own time is BOOTTIME; the run has no other.
                clock(CLOCK_BOOTTIME, begin);
                if let Some(unix_ns) = timeline.run().start_unix_ns {
                    clock(CLOCK_REALTIME, unix_ns);
                }
                snapshot.varint(2, CLOCK_MONOTONIC);
            });
        })
    }

    /// All names; the state of the sequence begins here.
    fn names(&mut self, timeline: &Timeline<'_>) -> io::Result<()> {
        self.packet(|packet| {
            packet.varint(field::SEQUENCE_FLAGS, 1);
            packet.message(field::DEFAULTS, |defaults| {
                defaults.varint(field::TIMESTAMP_CLOCK, CLOCK_MONOTONIC);
            });
            packet.message(field::INTERNED_DATA, |data| {
                for (code, iid) in timeline.codes().iter().zip(1..) {
                    for (table, name) in [(1, &code.kind), (2, &code.name)] {
                        data.message(table, |entry| {
                            entry.varint(1, iid);
                            entry.text(2, name);
                        });
                    }
                    if !code.file.is_empty() {
                        data.message(4, |place| {
                            place.varint(1, iid);
                            place.text(2, &code.file);
                            place.text(3, &code.function);
                            place.varint(4, code.line.into());
                        });
                    }
                }
                stacks(timeline, data);
                for (name, iid) in ANNOTATIONS.iter().zip(1..) {
                    data.message(3, |entry| {
                        entry.varint(1, iid);
                        entry.text(2, name);
                    });
                }
            });
        })
    }

    fn track(&mut self, write: impl FnOnce(&mut Message)) -> io::Result<()> {
        self.packet(|packet| packet.message(field::TRACK_DESCRIPTOR, write))
    }

    fn tracks(&mut self, timeline: &Timeline<'_>) -> io::Result<()> {
        let ids = Ids::of(timeline);
        let mut shown = vec![false; timeline.execution().processes.len()];
        for lane in timeline.lanes() {
            if let Some(shown) = shown.get_mut(lane.process.index()) {
                *shown = true;
            }
        }
        for row in (0..shown.len()).filter(|row| shown[*row]) {
            let process = taskscope_execution::ProcessIndex(row as u32);
            self.track(|track| {
                track.varint(1, process_uuid(row));
                track.message(3, |descriptor| {
                    descriptor.varint(1, ids.process(process) as u64);
                    descriptor.text(6, timeline.process_name(process));
                });
            })?;
        }
        for (number, lane) in timeline.lanes().iter().enumerate() {
            let name = &lane.name;
            let (parent, tid) = match lane.kind {
                LaneKind::Thread(_) => (None, Some(ids.lane(number))),
                kind if kind.beside().is_some() => {
                    (kind.beside().map(|thread| lane_uuid(timeline.lane_of(thread))), None)
                }
                _ if lane.process.index() < shown.len() => (Some(process_uuid(lane.process.index())), None),
                _ => (None, None),
            };
            self.track(|track| {
                track.varint(1, lane_uuid(number as u32));
                if let Some(parent) = parent {
                    track.varint(5, parent);
                }
                match tid {
                    Some(tid) => track.message(4, |thread| {
                        thread.varint(1, ids.process(lane.process) as u64);
                        thread.varint(2, tid as u64);
                        thread.text(5, name);
                    }),
                    None => track.text(2, name),
                }
            })?;
        }
        for (number, counter) in timeline.counters().iter().enumerate() {
            let Counter { name, process, .. } = counter;
            self.track(|track| {
                track.varint(1, counter_uuid(number as u32));
                track.text(2, name);
                track.varint(5, process_uuid(process.index()));
                track.message(8, |_| {});
            })?;
        }
        Ok(())
    }

    fn begin_slice(&mut self, timeline: &Timeline<'_>, section: &Section, arrows: &[u32]) -> io::Result<()> {
        let code = &timeline.codes()[section.code as usize];
        let iid = u64::from(section.code) + 1;
        let task = timeline.task_number(section.task);
        let region = timeline.region_number(section.region);
        let object = timeline.object(section.object);
        let kind = timeline.lanes()[section.lane as usize].kind;
        self.event(section.start, |event| {
            event.varint(field::TYPE, SLICE_BEGIN);
            event.varint(field::TRACK, lane_uuid(section.lane));
            event.varint(field::CATEGORIES, iid);
            event.varint(field::NAME, iid);
            if !code.file.is_empty() {
                event.varint(field::SOURCE_LOCATION, iid);
            } else if !code.function.is_empty() {
                annotate_text(event, FUNCTION, &code.function);
            }
            let amount = match kind {
                LaneKind::Doubts(..) => LOST,
                _ => BYTES,
            };
            let collective = timeline.collective(section.part);
            let collective_key = collective.as_ref().map(|of| (of.communicator, of.operation));
            let numbers = [
                (TASK, task),
                (REGION, region),
                (amount, Some(section.amount).filter(|n| *n > 0)),
                (COMMUNICATOR, collective_key.map(|of| of.0)),
                (OPERATION, collective_key.map(|of| of.1)),
            ];
            for (name, number) in numbers {
                if let Some(number) = number {
                    event.message(field::ANNOTATION, |annotation| {
                        annotation.varint(1, name);
                        annotation.varint(3, number);
                    });
                }
            }
            if !object.is_empty() {
                annotate_text(event, WAITS_FOR, object);
            }
            if let Some(root) = collective.and_then(|of| of.root) {
                annotate_text(event, ROOT, &root);
            }
            for end in arrows {
                let arrow = &timeline.arrow(*end / 2);
                if end % 2 == 0 {
                    event.fixed64(field::FLOW, flow(*end));
                } else if arrives_at_begin(arrow, section) {
                    event.fixed64(field::LAST_FLOW, flow(*end));
                }
            }
        })
    }

    fn sample(&mut self, timeline: &Timeline<'_>, sample: &Sample) -> io::Result<()> {
        let process = timeline.lanes()[sample.lane as usize].process;
        let Some(ids) = &self.ids else { return Err(io::Error::other("the trace was not begun")) };
        let (pid, tid) = (ids.process(process) as u64, ids.lane(sample.lane as usize) as u64);
        self.packet(|packet| {
            packet.varint(field::TIMESTAMP, sample.at);
            packet.varint(field::SEQUENCE_FLAGS, 2);
            packet.message(field::PERF_SAMPLE, |of| {
                of.varint(2, pid);
                of.varint(3, tid);
                of.varint(4, u64::from(sample.path) + 1);
            });
        })
    }

    fn end_slice(&mut self, timeline: &Timeline<'_>, section: &Section, arrows: &[u32]) -> io::Result<()> {
        self.event(section.end, |event| {
            event.varint(field::TYPE, SLICE_END);
            event.varint(field::TRACK, lane_uuid(section.lane));
            for end in arrows {
                if end % 2 == 1 && !arrives_at_begin(&timeline.arrow(*end / 2), section) {
                    event.fixed64(field::LAST_FLOW, flow(*end));
                }
            }
        })
    }
}

/// The steps of sampled call paths as frames, and the paths as call stacks, outermost frame first.
fn stacks(timeline: &Timeline<'_>, data: &mut Message) {
    let modules: BTreeSet<&str> = timeline.steps().iter().map(|step| step.module.as_str()).collect();
    let modules: BTreeMap<&str, u64> = modules.into_iter().zip(1..).collect();
    let text = |data: &mut Message, table: u32, iid: u64, text: &str| {
        data.message(table, |entry| {
            entry.varint(1, iid);
            entry.text(2, text);
        });
    };
    for (module, iid) in &modules {
        text(data, field::MAPPING_PATHS, *iid, module);
        data.message(field::MAPPINGS, |mapping| {
            mapping.varint(1, *iid);
            mapping.varint(7, *iid);
        });
    }
    for (step, iid) in timeline.steps().iter().zip(1..) {
        text(data, field::FUNCTION_NAMES, iid, &step.function);
        data.message(field::FRAMES, |frame| {
            frame.varint(1, iid);
            frame.varint(2, iid);
            frame.varint(3, modules[step.module.as_str()]);
            // Steps are different frames, also those of one function.
            frame.varint(4, iid);
        });
    }
    let mut sampled: Vec<u32> = timeline.samples().iter().map(|sample| sample.path).collect();
    sampled.sort_unstable();
    sampled.dedup();
    for path in sampled {
        let mut steps: Vec<u32> = timeline.steps_of(path).collect();
        steps.reverse();
        data.message(field::CALLSTACKS, |stack| {
            stack.varint(1, u64::from(path) + 1);
            steps.iter().for_each(|step| stack.varint(2, u64::from(*step) + 1));
        });
    }
}

fn annotate_text(event: &mut Message, name: u64, text: &str) {
    event.message(field::ANNOTATION, |annotation| {
        annotation.varint(1, name);
        annotation.text(6, text);
    });
}

/// Whether a flow may be written at the begin of its last section: its first one began before.
fn arrives_at_begin(arrow: &Arrow, section: &Section) -> bool {
    arrow.end == section.start && arrow.start < section.start
}

fn flow(end: u32) -> u64 {
    u64::from(end / 2) + 1
}

fn process_uuid(process: usize) -> u64 {
    1 << 40 | process as u64
}

fn lane_uuid(lane: u32) -> u64 {
    2 << 40 | u64::from(lane)
}

fn counter_uuid(counter: u32) -> u64 {
    3 << 40 | u64::from(counter)
}

impl<W: Write> Export for PerfettoWriter<W> {
    fn holds(&self, content: Content) -> Held {
        match content {
            Content::Sections => {
                Held::As("slices on tracks of threads; those of CPUs on tracks of their own")
            }
            Content::Places => Held::As("source locations of slices"),
            Content::TaskNumbers => Held::As("annotations `task` and `region`"),
            Content::Colours => Held::Not("Perfetto derives colours from names"),
            Content::Creations
            | Content::Dependences
            | Content::Messages
            | Content::Submissions
            | Content::Wakes => Held::As("flows"),
            Content::Collectives => Held::As(
                "slices on tracks below their threads; annotations `communicator`, `operation`, `root`",
            ),
            Content::Counters => Held::As("counter tracks of processes"),
            Content::Operations => Held::As("slices on tracks of queues, in lanes"),
            Content::DeviceCalls => Held::As("slices on tracks of their own"),
            Content::Doubts | Content::ThreadWaits => Held::As("slices on tracks below their threads"),
            Content::Samples => Held::As("samples with call stacks (table `perf_sample`); weights are lost"),
        }
    }

    fn begin(&mut self, timeline: &Timeline<'_>) -> io::Result<()> {
        self.ids = Some(Ids::of(timeline));
        self.clocks(timeline)?;
        self.names(timeline)?;
        self.tracks(timeline)
    }

    fn record(&mut self, timeline: &Timeline<'_>, record: &Record<'_>) -> io::Result<()> {
        match record {
            Record::Enter { section, arrows } => self.begin_slice(timeline, section, arrows),
            Record::Leave { section, arrows } => self.end_slice(timeline, section, arrows),
            // Flows are written with the slices that they join.
            Record::ArrowStart { .. } | Record::ArrowEnd { .. } => Ok(()),
            Record::Sample(sample) => self.sample(timeline, sample),
            Record::Counter { counter, at, value } => self.event(*at, |event| {
                event.varint(field::TYPE, COUNTER);
                event.varint(field::TRACK, counter_uuid(*counter));
                event.varint(field::COUNTER_VALUE, *value as u64);
            }),
        }
    }

    fn end(&mut self, _: &Timeline<'_>) -> io::Result<()> {
        self.out.flush()
    }
}
