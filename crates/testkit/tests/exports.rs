//! Exports over time, of stored recordings: what records promise, and that each format keeps all that it has a form for.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::PathBuf;
use taskscope_export::chrome::ChromeWriter;
use taskscope_export::csv::{self, CsvWriter};
use taskscope_export::firefox::FirefoxWriter;
use taskscope_export::otf2::Otf2Writer;
use taskscope_export::paje::PajeWriter;
use taskscope_export::paraver::RunWriter;
use taskscope_export::perfetto::PerfettoWriter;
use taskscope_export::timeline::{Content, Export, Held, LaneKind, Record, Run, Section, Step, Timeline};
use taskscope_filter::TimeRange;
use taskscope_import::paraver::{ParaverFiles, read_paraver};
use taskscope_session::selection::Selection;
use taskscope_session::{ReadProgress, Session};

/// OpenMP tasks with MPI and samples; tasks; instrumented fibers; device queues.
const STORED: [&str; 5] = [
    "traces/pic",
    "shown/runtimes/openmp/cholesky.trace",
    "shown/howto/instrument/fibers.trace",
    "shown/howto/device-queues/queues.trace",
    "shown/howto/threads/orders.trace",
];

fn opened(name: &str, range: &str) -> Session {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../cli/tests").join(name);
    let range = TimeRange::parse(range).unwrap();
    Session::open_part(root, &Selection { range, ..Selection::default() }, &ReadProgress::default()).unwrap()
}

/// Checks and sums the records.
#[derive(Default)]
struct Sums {
    at: u64,
    open: BTreeMap<u32, Section>,
    sections: u64,
    /// Time by lane.
    ns: BTreeMap<u32, u64>,
    begun: BTreeSet<u32>,
    arrows: u64,
    values: u64,
    samples: u64,
}

impl Export for Sums {
    fn holds(&self, _: Content) -> Held {
        Held::As("sums")
    }

    fn begin(&mut self, _: &Timeline<'_>) -> io::Result<()> {
        Ok(())
    }

    fn record(&mut self, timeline: &Timeline<'_>, record: &Record<'_>) -> io::Result<()> {
        let at = match *record {
            Record::Enter { section, .. } => {
                assert!(self.open.insert(section.lane, section).is_none(), "{section:?} overlaps another");
                self.sections += 1;
                *self.ns.entry(section.lane).or_default() += section.end - section.start;
                section.start
            }
            Record::Leave { section, arrows } => {
                assert_eq!(self.open.remove(&section.lane), Some(section));
                for end in arrows {
                    assert!((*end as usize) < 2 * timeline.arrows().len());
                }
                section.end
            }
            Record::ArrowStart { number, arrow } => {
                assert!(self.begun.insert(number), "{arrow:?} begins twice");
                self.require_in_section(arrow.from, arrow.position(false));
                arrow.position(false)
            }
            Record::ArrowEnd { number, arrow } => {
                assert!(self.begun.contains(&number), "{arrow:?} ends before it begins");
                self.require_in_section(arrow.to, arrow.position(true));
                self.arrows += 1;
                arrow.position(true)
            }
            Record::Sample(sample) => {
                assert!(matches!(timeline.lanes()[sample.lane as usize].kind, LaneKind::Thread(_)));
                assert!(timeline.steps_of(sample.path).count() > 0);
                self.samples += 1;
                sample.at
            }
            Record::Counter { at, value, .. } => {
                assert!(value >= 0, "counters count things");
                self.values += 1;
                at
            }
        };
        assert!(at >= self.at, "{record:?} comes after {}", self.at);
        self.at = at;
        Ok(())
    }

    fn end(&mut self, timeline: &Timeline<'_>) -> io::Result<()> {
        assert!(self.open.is_empty());
        assert_eq!(self.arrows, timeline.arrows().len() as u64, "every arrow is delivered whole");
        assert_eq!(self.begun.len() as u64, self.arrows);
        assert_eq!(self.samples, timeline.samples().len() as u64);
        Ok(())
    }
}

impl Sums {
    fn require_in_section(&self, lane: u32, at: u64) {
        let section = self.open.get(&lane).unwrap_or_else(|| panic!("no section in lane {lane} at {at}"));
        assert!((section.start..=section.end).contains(&at));
    }
}

fn for_each_timeline(mut check: impl FnMut(&str, &Timeline<'_>, &Sums)) {
    for name in STORED {
        for range in ["..", "30%..60%"] {
            let session = opened(name, range);
            let mut names = session.names();
            let run = Run { name: name.to_owned(), start_unix_ns: Some(1_700_000_000_000_000_000) };
            let mut timeline = Timeline::of(&session.execution, &session.devices, &mut names, run);
            timeline.find_steps(&mut |_, address, _, _| Step {
                function: format!("{address:#x}"),
                ..Step::default()
            });
            let mut sums = Sums::default();
            timeline.play(&mut sums).unwrap();
            check(&format!("{name} {range}"), &timeline, &sums);
        }
    }
}

#[test]
fn sections_tile_the_lives_of_threads() {
    let mut arrows = BTreeMap::new();
    for_each_timeline(|name, timeline, sums| {
        for (number, lane) in timeline.lanes().iter().enumerate() {
            if let LaneKind::Thread(_) = lane.kind {
                let ns = sums.ns.get(&(number as u32)).copied().unwrap_or(0);
                assert_eq!(ns, lane.last - lane.first, "{name}: {}", lane.name);
            }
        }
        for arrow in timeline.arrows() {
            *arrows.entry(arrow.kind.name()).or_insert(0u64) += 1;
        }
    });
    assert_eq!(
        arrows.keys().copied().collect::<Vec<_>>(),
        ["creation", "dependence", "message", "submission", "wake"]
    );
}

#[test]
fn ranges_have_the_operations_in_them() {
    let operations = |part: Option<(u64, u64)>| {
        let mut session = opened(STORED[3], "..");
        if let Some((begin, end)) = part {
            session.execution.cut(begin, end);
        }
        let mut names = session.names();
        let timeline = Timeline::of(&session.execution, &session.devices, &mut names, Run::default());
        let (begin, end) = part.unwrap_or((0, u64::MAX));
        assert!(timeline.lanes().iter().all(|lane| lane.first >= begin && lane.last <= end), "{part:?}");
        timeline.count(Content::Operations)
    };
    let whole = operations(None);
    let (begin, end) = opened(STORED[3], "..").devices.range();
    let borders = [0, 30, 60, 80, 100].map(|percent| begin + (end + 1 - begin) * percent / 100);
    let parts: Vec<u64> = borders.windows(2).map(|pair| operations(Some((pair[0], pair[1])))).collect();
    // Operations across a border are in two parts.
    assert!(
        parts.iter().sum::<u64>() >= whole && parts.iter().all(|part| *part < whole),
        "{parts:?} of {whole}"
    );
}

#[test]
fn chrome_json_has_every_section_arrow_and_value() {
    for_each_timeline(|name, timeline, sums| {
        let mut export = ChromeWriter::new(Vec::new());
        timeline.play(&mut export).unwrap();
        let document: serde_json::Value = serde_json::from_slice(&export.into_inner()).unwrap();
        let events = document["traceEvents"].as_array().unwrap();
        let of = |phase: &str| events.iter().filter(|event| event["ph"] == phase).count() as u64;
        let counts = [of("X"), of("s"), of("f"), of("C")];
        assert_eq!(counts, [sums.sections, sums.arrows, sums.arrows, sums.values], "{name}");
        let lengths = events.iter().filter_map(|event| event["dur"].as_f64());
        let ns: f64 = lengths.map(|us| (us * 1000.0).round()).sum();
        assert_eq!(ns as u64, sums.ns.values().sum::<u64>(), "{name}");
        let samples = document["samples"].as_array().map_or(0, Vec::len);
        assert_eq!(samples as u64, sums.samples, "{name}");
    });
}

/// The parts of Perfetto's messages that are counted here.
mod perfetto {
    #[derive(Clone, PartialEq, prost::Message)]
    pub struct Trace {
        #[prost(message, repeated, tag = "1")]
        pub packet: Vec<Packet>,
    }
    #[derive(Clone, PartialEq, prost::Message)]
    pub struct Packet {
        #[prost(uint64, optional, tag = "8")]
        pub timestamp: Option<u64>,
        #[prost(message, optional, tag = "11")]
        pub event: Option<Event>,
        #[prost(message, optional, tag = "12")]
        pub interned: Option<Interned>,
        #[prost(message, optional, tag = "60")]
        pub track: Option<Track>,
        #[prost(message, optional, tag = "66")]
        pub sample: Option<Sample>,
    }
    #[derive(Clone, PartialEq, prost::Message)]
    pub struct Sample {
        #[prost(uint64, optional, tag = "4")]
        pub callstack: Option<u64>,
    }
    #[derive(Clone, PartialEq, prost::Message)]
    pub struct Callstack {
        #[prost(uint64, tag = "1")]
        pub iid: u64,
        #[prost(uint64, repeated, packed = "false", tag = "2")]
        pub frames: Vec<u64>,
    }
    #[derive(Clone, PartialEq, prost::Message)]
    pub struct Event {
        #[prost(uint64, optional, tag = "9")]
        pub kind: Option<u64>,
        #[prost(uint64, optional, tag = "10")]
        pub name: Option<u64>,
        #[prost(uint64, optional, tag = "11")]
        pub track: Option<u64>,
        #[prost(fixed64, repeated, packed = "false", tag = "47")]
        pub flows: Vec<u64>,
        #[prost(fixed64, repeated, packed = "false", tag = "48")]
        pub last_flows: Vec<u64>,
    }
    #[derive(Clone, PartialEq, prost::Message)]
    pub struct Interned {
        #[prost(message, repeated, tag = "2")]
        pub names: Vec<Name>,
        #[prost(message, repeated, tag = "5")]
        pub functions: Vec<Name>,
        #[prost(message, repeated, tag = "7")]
        pub callstacks: Vec<Callstack>,
    }
    #[derive(Clone, PartialEq, prost::Message)]
    pub struct Name {
        #[prost(uint64, tag = "1")]
        pub iid: u64,
        #[prost(string, tag = "2")]
        pub name: String,
    }
    #[derive(Clone, PartialEq, prost::Message)]
    pub struct Track {
        #[prost(uint64, tag = "1")]
        pub uuid: u64,
    }
}

#[test]
fn perfetto_has_every_section_arrow_and_value() {
    use prost::Message;
    for_each_timeline(|name, timeline, sums| {
        let mut export = PerfettoWriter::new(Vec::new());
        timeline.play(&mut export).unwrap();
        let trace = perfetto::Trace::decode(export.into_inner().as_slice()).unwrap();
        let tracks: BTreeSet<u64> =
            trace.packet.iter().filter_map(|packet| packet.track.as_ref()).map(|track| track.uuid).collect();
        let names: BTreeMap<u64, &str> = (trace.packet.iter())
            .filter_map(|packet| packet.interned.as_ref())
            .flat_map(|data| &data.names)
            .map(|name| (name.iid, name.name.as_str()))
            .collect();
        assert_eq!(names.len(), timeline.codes().len());
        let (mut counts, mut ns, mut open) = ([0u64; 5], 0u64, BTreeMap::new());
        let (mut begun, mut ended) = (BTreeSet::<u64>::new(), BTreeSet::<u64>::new());
        let mut latest = 0;
        for packet in &trace.packet {
            let Some(event) = &packet.event else { continue };
            let (at, track) = (packet.timestamp.unwrap(), event.track.unwrap());
            assert!(at >= latest && tracks.contains(&track), "{name}");
            latest = at;
            counts[event.kind.unwrap() as usize] += 1;
            match event.kind {
                Some(1) => {
                    assert!(names.contains_key(&event.name.unwrap()));
                    assert_eq!(open.insert(track, at), None);
                }
                Some(2) => ns += at - open.remove(&track).unwrap(),
                _ => {}
            }
            begun.extend(&event.flows);
            for flow in &event.last_flows {
                assert!(begun.contains(flow) && ended.insert(*flow), "{name}: flow {flow}");
            }
        }
        assert_eq!(counts, [0, sums.sections, sums.sections, 0, sums.values], "{name}");
        let interned: Vec<_> = trace.packet.iter().filter_map(|packet| packet.interned.as_ref()).collect();
        let functions: BTreeSet<u64> =
            interned.iter().flat_map(|data| &data.functions).map(|function| function.iid).collect();
        let stacks: BTreeMap<u64, &Vec<u64>> = interned
            .iter()
            .flat_map(|data| &data.callstacks)
            .map(|stack| (stack.iid, &stack.frames))
            .collect();
        let samples: Vec<_> = trace.packet.iter().filter_map(|packet| packet.sample.as_ref()).collect();
        assert_eq!(samples.len() as u64, sums.samples, "{name}");
        for sample in samples {
            assert!(stacks[&sample.callstack.unwrap()].iter().all(|frame| functions.contains(frame)));
        }
        assert_eq!((ns, begun.len() as u64, ended.len() as u64), {
            (sums.ns.values().sum::<u64>(), sums.arrows, sums.arrows)
        });
    });
}

#[test]
fn paje_has_every_section_arrow_and_value_in_order() {
    for_each_timeline(|name, timeline, sums| {
        let mut export = PajeWriter::new(Vec::new());
        timeline.play(&mut export).unwrap();
        let text = String::from_utf8(export.into_inner()).unwrap();
        let lines = || text.lines().filter(|line| !line.starts_with('%'));
        let of = |kind: &str| lines().filter(|line| line.split(' ').next() == Some(kind)).count() as u64;
        let counts = [of("7"), of("8"), of("9"), of("10"), of("11")];
        assert_eq!(counts, [sums.sections, sums.sections, sums.values, sums.arrows, sums.arrows], "{name}");
        let timed =
            lines().filter(|line| !["0", "1", "2", "3", "4"].contains(&line.split(' ').next().unwrap()));
        let times: Vec<f64> = timed.map(|line| line.split(' ').nth(1).unwrap().parse().unwrap()).collect();
        assert!(times.is_sorted(), "{name}");
    });
}

/// The records of a file of OTF2: time, kind, content. Events have times; Enter and Leave have one number and no length.
fn otf2_records(bytes: &[u8], chunk: usize, is_events: bool) -> Vec<(u64, u8, Vec<u8>)> {
    let mut records = Vec::new();
    for (number, bytes) in bytes.chunks(chunk).enumerate() {
        assert_eq!(bytes[..2], [0x03, 0x42], "chunk {number}");
        let (mut at, mut time) = (18, 0);
        loop {
            let kind = bytes[at];
            at += 1;
            let length = match kind {
                0 => break,
                2 => return records,
                5 if is_events => {
                    time = u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap());
                    at += 8;
                    continue;
                }
                12 | 13 if is_events && matches!(bytes[at], 0 | 0xff) => 1,
                12 | 13 if is_events => 1 + usize::from(bytes[at]),
                _ if bytes[at] == 0xff => {
                    let length = u64::from_le_bytes(bytes[at + 1..at + 9].try_into().unwrap());
                    at += 9;
                    length as usize
                }
                _ => {
                    at += 1;
                    usize::from(bytes[at - 1])
                }
            };
            records.push((time, kind, bytes[at..at + length].to_vec()));
            at += length;
        }
    }
    panic!("the file has no end");
}

#[test]
fn otf2_has_every_section_message_and_value() {
    for_each_timeline(|name, timeline, sums| {
        let mut export = Otf2Writer::new(BTreeMap::new());
        timeline.play(&mut export).unwrap();
        let files = export.into_inner();
        let anchor = &files["traces.otf2"];
        let number = |at: usize| u64::from_le_bytes(anchor[at..at + 8].try_into().unwrap());
        let definitions = otf2_records(&files["traces.def"], number(20) as usize, false);
        assert_eq!(number(38), definitions.len() as u64, "{name}");
        let event_files: Vec<_> = files.iter().filter(|(path, _)| path.ends_with(".evt")).collect();
        assert_eq!(number(30), event_files.len() as u64);
        let mut counts: BTreeMap<u8, u64> = BTreeMap::new();
        let mut ns = 0;
        for (path, bytes) in event_files {
            let records = otf2_records(bytes, number(12) as usize, true);
            assert!(records.is_sorted_by_key(|record| record.0), "{name}: {path}");
            let mut open = Vec::new();
            for (at, kind, content) in records {
                *counts.entry(kind).or_default() += 1;
                match kind {
                    12 => open.push((at, content)),
                    13 => {
                        let (since, region) = open.pop().unwrap();
                        assert_eq!(region, content, "{name}: {path} leaves what it entered");
                        ns += at - since;
                    }
                    _ => {}
                }
            }
            assert!(open.is_empty());
        }
        let count = |kind: u8| counts.get(&kind).copied().unwrap_or(0);
        let [messages, creations] = [Content::Messages, Content::Creations].map(|of| timeline.count(of));
        assert_eq!(count(68), sums.samples, "{name}");
        let found = [count(12), count(13), count(14), count(18), count(31), count(59), ns];
        let all = sums.ns.values().sum();
        assert_eq!(
            found,
            [sums.sections, sums.sections, messages, messages, sums.values, creations, all],
            "{name}"
        );
    });
}

/// Time of lanes beside threads.
fn beside(timeline: &Timeline<'_>, sums: &Sums) -> u64 {
    let is_beside = |lane: &u32| timeline.lanes()[*lane as usize].kind.beside().is_some();
    sums.ns.iter().filter(|(lane, _)| is_beside(lane)).map(|(_, ns)| ns).sum()
}

#[test]
fn paraver_has_every_section_and_arrow_in_order_on_declared_rows() {
    for_each_timeline(|name, timeline, sums| {
        let mut export = RunWriter::new(BTreeMap::new());
        timeline.play(&mut export).unwrap();
        let files = export.into_inner();
        let text = |file: &str| std::str::from_utf8(&files[file]).unwrap();
        let (header, body) = text("trace.prv").split_once('\n').unwrap();
        assert!(header.starts_with("#Paraver (14/11/2023 at 22:13):"), "{header}");
        // Threads of each task of each application, and CPUs of each node.
        let mut fields = header.split_once("):").unwrap().1.splitn(3, ':');
        let end: u64 = fields.next().unwrap().strip_suffix("_ns").unwrap().parse().unwrap();
        let cpus: u64 = (fields.next().unwrap().split_once('(').unwrap().1.trim_end_matches(')'))
            .split(',')
            .map(|count| count.parse::<u64>().unwrap())
            .sum();
        let (count, applications) = fields.next().unwrap().split_once(':').unwrap();
        let applications: Vec<Vec<u64>> = (applications.split("):"))
            .map(|of| {
                let tasks = of.split_once('(').unwrap().1.trim_end_matches(')').split(',');
                tasks.map(|task| task.split(':').next().unwrap().parse().unwrap()).collect()
            })
            .collect();
        assert_eq!(count.parse::<usize>().unwrap(), applications.len(), "{header}");
        let rows: u64 = applications.iter().flatten().sum();
        let lanes = timeline.lanes().iter().filter(|lane| lane.kind.beside().is_none());
        assert_eq!((rows, cpus), (lanes.count() as u64, rows), "{header}");
        let require_row = |row: &[u64]| {
            let [cpu, application, task, thread] = row.try_into().unwrap();
            let threads = applications[application as usize - 1][task as usize - 1];
            assert!((1..=threads).contains(&thread) && (1..=cpus).contains(&cpu), "{row:?} in {header}");
        };
        let (mut counts, mut ns, mut last, mut of_program) = ([0u64; 4], 0, (0, 0), 0);
        let mut types = BTreeSet::new();
        let mut open: BTreeMap<(Vec<u64>, u64), u64> = BTreeMap::new();
        for line in body.lines() {
            let record: Vec<u64> = line.split(':').map(|field| field.parse().unwrap()).collect();
            require_row(&record[1..5]);
            counts[record[0] as usize] += 1;
            let at = record[5];
            assert!((at, record[0]) >= last && at <= end, "{name}: {line} after {last:?}");
            last = (at, record[0]);
            match record[0] {
                1 => {
                    ns += record[6] - at;
                    of_program += if record[2] == 1 { record[6] - at } else { 0 };
                }
                2 => {
                    assert!(record.len().is_multiple_of(2) && record.len() > 6, "{line}");
                    for pair in record[6..].chunks(2) {
                        types.insert(pair[0]);
                        open.insert((record[2..5].to_vec(), pair[0]), pair[1]);
                    }
                }
                _ => {
                    require_row(&record[7..11]);
                    assert!(record[11] >= at && record.len() == 15, "{line}");
                }
            }
        }
        assert_eq!(ns, sums.ns.values().sum::<u64>() - beside(timeline, sums), "{name}");
        let threads =
            timeline.lanes().iter().zip(0..).filter(|(lane, _)| matches!(lane.kind, LaneKind::Thread(_)));
        let of_threads: u64 = threads.filter_map(|(_, number)| sums.ns.get(&number)).sum();
        if of_threads > 0 {
            assert_eq!(of_program, of_threads, "{name}: the program is the first application");
        }
        assert_eq!((counts[0], counts[3]), (0, sums.arrows), "{name}");
        let is_open = |((_, ty), value): &(&(Vec<u64>, u64), &u64)| **value != 0 && *ty < 9_500_100;
        assert_eq!(open.iter().find(is_open), None, "{name}: values end with their sections");
        let labels = text("trace.pcf");
        for ty in types {
            assert!(labels.contains(&format!("\n0    {ty} ")), "{name}: type {ty} has no label");
        }
        assert!(text("trace.row").starts_with(&format!("LEVEL CPU SIZE {cpus}\n")));
        assert!(!labels.lines().any(|line| !line.is_empty() && line.trim().is_empty()));
    });
}

#[test]
fn paraver_has_numbers_of_extrae_and_nanos() {
    let types = |name: &str| {
        let session = opened(name, "..");
        let mut names = session.names();
        let timeline = Timeline::of(&session.execution, &session.devices, &mut names, Run::default());
        let mut export = RunWriter::new(BTreeMap::new());
        timeline.play(&mut export).unwrap();
        String::from_utf8(export.into_inner()["trace.pcf"].clone()).unwrap()
    };
    let of_mpi = types("traces/pic");
    for text in [
        "60000023   Executed OpenMP task function\n",
        "send_task [task at pic.c:170]\n",
        "60000123   Executed OpenMP task function line and file\n",
        "170 (",
        "50000001   MPI Point-to-point\n",
        "\n3      MPI_Isend\n",
        "\n5      MPI_Wait\n",
        "9200002    Work Descriptor id:\n",
        "\n1     Running\n",
        "\n1     {0,0,255}\n",
    ] {
        assert!(of_mpi.contains(text), "{text} is not in {of_mpi}");
    }
}

#[test]
fn firefox_profile_has_every_section_arrow_and_value() {
    let directory = tempfile::tempdir().unwrap();
    for_each_timeline(|name, timeline, sums| {
        let mut export = FirefoxWriter::new(Vec::new(), &directory.path().join("profile"));
        timeline.play(&mut export).unwrap();
        let profile: serde_json::Value = serde_json::from_slice(&export.into_inner()).unwrap();
        let threads = profile["threads"].as_array().unwrap();
        assert_eq!(threads.len(), timeline.lanes().len(), "{name}");
        let (mut counts, mut ns) = ([0u64; 3], 0.0);
        let mut flows: BTreeMap<String, [u64; 2]> = BTreeMap::new();
        for (thread, lane) in threads.iter().zip(timeline.lanes()) {
            assert_eq!(thread["name"], lane.name);
            let strings = thread["stringArray"].as_array().unwrap();
            for (table, columns) in [
                ("samples", &["stack", "time", "weight"][..]),
                ("markers", &["data", "name", "startTime", "endTime", "phase", "category"]),
                ("stackTable", &["frame", "prefix"]),
                ("frameTable", &["func", "category", "line"]),
                ("funcTable", &["name", "fileName", "lineNumber"]),
            ] {
                for column in columns {
                    let length = thread[table][column].as_array().unwrap().len();
                    assert_eq!(thread[table]["length"], length, "{name}: {table}.{column}");
                }
            }
            let numbers = |table: &str, column: &str| {
                thread[table][column].as_array().unwrap().iter().map(|value| value.as_u64())
            };
            let stacks = thread["stackTable"]["length"].as_u64();
            assert!(numbers("samples", "stack").flatten().all(|stack| Some(stack) < stacks));
            assert!(numbers("markers", "name").flatten().all(|name| name < strings.len() as u64));
            assert!(numbers("funcTable", "name").flatten().all(|name| name < strings.len() as u64));
            let times: Vec<f64> =
                thread["samples"]["time"].as_array().unwrap().iter().map(|at| at.as_f64().unwrap()).collect();
            assert!(times.is_sorted(), "{name}");
            let weights = thread["samples"]["weight"].as_array().unwrap();
            ns += weights.iter().map(|ms| (ms.as_f64().unwrap() * 1e6).round()).sum::<f64>();
            for data in thread["markers"]["data"].as_array().unwrap() {
                match data["type"].as_str().unwrap() {
                    "section" => counts[0] += 1,
                    "arrow begin" | "arrow end" => {
                        counts[1] += 1;
                        let [begins, ends] = ["begins", "ends"].map(|field| data[field].as_u64());
                        let id = &strings[begins.or(ends).unwrap() as usize];
                        let halves = flows.entry(id.as_str().unwrap().to_owned()).or_default();
                        halves[usize::from(ends.is_some())] += 1;
                    }
                    _ => counts[2] += 1,
                }
            }
        }
        assert_eq!(counts, [sums.sections, 2 * sums.arrows, sums.values], "{name}");
        assert!(flows.values().all(|halves| *halves == [1, 1]), "{name}");
        assert_eq!(ns as u64, sums.ns.values().sum::<u64>(), "{name}");
    });
}

/// The fields of a CSV table, by RFC 4180.
fn csv_rows(text: &str) -> Vec<Vec<String>> {
    let (mut rows, mut row, mut field, mut is_quoted) = (Vec::new(), Vec::new(), String::new(), false);
    let mut rest = text.chars().peekable();
    while let Some(next) = rest.next() {
        match next {
            '"' if is_quoted && rest.peek() == Some(&'"') => field.extend(rest.next()),
            '"' => is_quoted = !is_quoted,
            ',' if !is_quoted => row.push(std::mem::take(&mut field)),
            '\r' if !is_quoted => {
                assert_eq!(rest.next(), Some('\n'));
                row.push(std::mem::take(&mut field));
                rows.push(std::mem::take(&mut row));
            }
            other => field.push(other),
        }
    }
    assert!(row.is_empty() && field.is_empty());
    rows
}

#[test]
fn csv_has_every_section_arrow_and_value() {
    for_each_timeline(|name, timeline, sums| {
        let mut export = CsvWriter::new(Vec::new());
        timeline.play(&mut export).unwrap();
        let rows = csv_rows(std::str::from_utf8(&export.into_inner()).unwrap());
        assert_eq!(rows[0], csv::COLUMNS);
        assert!(rows.iter().all(|row| row.len() == csv::COLUMNS.len()), "{name}");
        let (mut counts, mut ns, mut last) = ([0u64; 3], 0, 0);
        for row in &rows[1..] {
            let (start, end) = (row[3].parse::<u64>().unwrap(), row[4].parse::<u64>());
            // A dependence is placed in the section that ends at its time.
            assert!(start + 1 >= last, "{name}: {row:?}");
            last = start;
            match row[0].as_str() {
                "creation" | "dependence" | "message" | "submission" | "wake" => counts[1] += 1,
                "counter" => counts[2] += 1,
                _ => {
                    counts[0] += 1;
                    ns += end.unwrap() - start;
                }
            }
        }
        assert_eq!(counts, [sums.sections, sums.arrows, sums.values], "{name}");
        assert_eq!(ns, sums.ns.values().sum::<u64>(), "{name}");
    });
}

/// Sections as (row, begin, end, name, activity), and arrows as (kind, begin, end), in order.
type Imported = (Vec<(String, u64, u64, String, String)>, Vec<(String, u64, u64)>);

fn contents(run: &taskscope_import::spans::Run) -> Imported {
    let mut sections = Vec::new();
    for thread in run.threads.iter().filter(|thread| !thread.name.starts_with("uncertain: ")) {
        for span in &thread.spans {
            let kind = &run.kinds[span.kind as usize];
            let activity = format!("{:?}", kind.activity);
            sections.push((thread.name.clone(), span.start, span.end, kind.name.clone(), activity));
        }
    }
    sections.sort();
    let flow = |flow: &taskscope_import::spans::Flow| {
        (run.domains[flow.domain as usize].clone(), flow.from_at, flow.to_at)
    };
    let mut arrows: Vec<_> = run.flows.iter().map(flow).collect();
    arrows.sort();
    (sections, arrows)
}

#[test]
fn imported_paraver_has_the_exported_sections_and_arrows() {
    for_each_timeline(|name, timeline, sums| {
        let mut export = RunWriter::new(BTreeMap::new());
        timeline.play(&mut export).unwrap();
        let files = export.into_inner();
        let text = |file: &str| std::str::from_utf8(&files[file]).unwrap();
        let run = read_paraver(ParaverFiles {
            records: text("trace.prv"),
            labels: text("trace.pcf"),
            rows: text("trace.row"),
        });
        let (sections, arrows) = contents(&run.unwrap());
        let mut expected = Expected::default();
        timeline.play(&mut expected).unwrap();
        expected.sections.sort();
        expected.arrows.sort();
        assert_eq!(sections.len(), expected.sections.len(), "{name}");
        let different = sections.iter().zip(&expected.sections).find(|(found, wanted)| {
            (&found.0, found.1, found.2, &found.3) != (&wanted.0, wanted.1, wanted.2, &wanted.3)
        });
        assert_eq!(different, None, "{name}");
        assert_eq!((arrows.len() as u64, &arrows), (sums.arrows, &expected.arrows), "{name}");
    });
}

/// The sections and arrows of a timeline, from its begin.
#[derive(Default)]
struct Expected {
    begin: u64,
    sections: Vec<(String, u64, u64, String, String)>,
    arrows: Vec<(String, u64, u64)>,
}

impl Export for Expected {
    fn holds(&self, _: Content) -> Held {
        Held::As("rows")
    }

    fn begin(&mut self, timeline: &Timeline<'_>) -> io::Result<()> {
        self.begin = timeline.range().0;
        Ok(())
    }

    fn record(&mut self, timeline: &Timeline<'_>, record: &Record<'_>) -> io::Result<()> {
        match record {
            Record::Enter { section, .. } => {
                let lane = &timeline.lanes()[section.lane as usize];
                if lane.kind.beside().is_none() {
                    let (start, end) = (section.start - self.begin, section.end - self.begin);
                    let name = timeline.codes()[section.code as usize].name.clone();
                    self.sections.push((lane.name.clone(), start, end, name, String::new()));
                }
            }
            Record::ArrowStart { arrow, .. } => {
                let [start, end] = [false, true].map(|is_end| arrow.position(is_end) - self.begin);
                self.arrows.push((arrow.kind.name().to_owned(), start, end));
            }
            _ => {}
        }
        Ok(())
    }

    fn end(&mut self, _: &Timeline<'_>) -> io::Result<()> {
        Ok(())
    }
}
