//! Perfetto.

use crate::for_each_timeline;
use std::collections::{BTreeMap, BTreeSet};
use taskscope_export::perfetto::PerfettoWriter;

/// The parts of Perfetto's messages that are counted here.
mod messages {
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
        let trace = messages::Trace::decode(export.into_inner().as_slice()).unwrap();
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
