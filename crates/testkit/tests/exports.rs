//! Exports over time, of stored recordings: what records promise, and that each format keeps all that it has a form for.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::PathBuf;
use taskscope_export::chrome::ChromeWriter;
use taskscope_export::otf2::Otf2Writer;
use taskscope_export::paje::PajeWriter;
use taskscope_export::perfetto::PerfettoWriter;
use taskscope_export::timeline::{Content, Export, Held, LaneKind, Record, Run, Section, Timeline};
use taskscope_filter::TimeRange;
use taskscope_session::selection::Selection;
use taskscope_session::{ReadProgress, Session};

/// OpenMP tasks with MPI and samples; tasks; instrumented fibers; device queues.
const STORED: [&str; 4] = [
    "traces/pic",
    "shown/runtimes/openmp/cholesky.trace",
    "shown/howto/instrument/fibers.trace",
    "shown/howto/device-queues/queues.trace",
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
            let timeline = Timeline::of(&session.execution, &session.devices, &mut names, run);
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
        ["creation", "dependence", "message", "submission"]
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
        let found = [count(12), count(13), count(14), count(18), count(31), count(59), ns];
        let all = sums.ns.values().sum();
        assert_eq!(
            found,
            [sums.sections, sums.sections, messages, messages, sums.values, creations, all],
            "{name}"
        );
    });
}
