//! OTF2.

use crate::for_each_timeline;
use std::collections::BTreeMap;
use taskscope_export::otf2::Otf2Writer;
use taskscope_export::timeline::Content;

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
        assert_eq!(count(22), count(23), "{name}: parts in collective operations begin and end");
        assert!(count(22) <= timeline.count(Content::Collectives), "{name}");
        let all = sums.ns.values().sum();
        assert_eq!(
            found,
            [sums.sections, sums.sections, messages, messages, sums.values, creations, all],
            "{name}"
        );
    });
}
