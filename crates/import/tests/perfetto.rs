//! Perfetto's protocol buffers: a file in the form of its SDK, own exports, and damaged files.

mod common;

use common::opened;
use std::io::Write;
use taskscope_import::perfetto::{is_perfetto, read_perfetto};
use taskscope_import::spans::{Flow, Span};

/// Written with the Python package perfetto 0.59.1: two tracks of a process with an incremental clock, interned names, a
/// flow, an instant, a counter.
const SDK: &[u8] = include_bytes!("sdk.pftrace");

#[test]
fn a_file_of_the_sdk_is_read() {
    assert!(is_perfetto(SDK));
    let run = read_perfetto(SDK).unwrap();
    let [main, own] = &run.threads[..] else { panic!("{:?}", run.threads) };
    assert_eq!(
        (main.tid, main.name.as_str(), own.tid, own.name.as_str()),
        (Some(43), "main", None, "own track")
    );
    assert_eq!((run.processes.len(), run.processes[0].name.as_str()), (1, "app"));
    let spans = |spans: &[Span]| -> Vec<(String, u64, u64)> {
        spans.iter().map(|span| (run.kinds[span.kind as usize].name.clone(), span.start, span.end)).collect()
    };
    let expected = [("inner".to_owned(), 1_015_000, 1_020_000), ("outer".to_owned(), 1_010_000, 1_040_000)];
    assert_eq!(spans(&main.spans), expected);
    assert_eq!(spans(&own.spans), [("async".to_owned(), 1_025_000, 1_035_000)]);
    let outer = &run.kinds[main.spans[1].kind as usize];
    assert_eq!((outer.file.as_str(), outer.line), ("a.cc", 12));
    assert_eq!(run.flows, [Flow { from: 0, from_at: 1_010_000, to: 1, to_at: 1_025_000, domain: 0 }]);
    assert_eq!(main.points.iter().map(|point| point.at).collect::<Vec<_>>(), [1_030_000]);
    let losses: Vec<_> = run.losses.iter().map(|loss| (loss.count, loss.content)).collect();
    assert_eq!(losses, [(1, "values of counters")]);
    let session = opened(&run);
    // The track beside the thread is no worker, and its section no task.
    assert_eq!((session.execution.tasks.len(), session.execution.communication.messages.len()), (2, 1));
    assert_eq!((own.is_beside, session.execution.workers().count()), (true, 1));
}

/// A packet with these packets, compressed.
fn compressed(packets: &[u8]) -> Vec<u8> {
    let mut packed = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::fast());
    packed.write_all(packets).unwrap();
    message(1, &message(50, &packed.finish().unwrap()))
}

#[test]
fn compressed_packets_are_as_others() {
    let (plain, run) = (read_perfetto(SDK).unwrap(), read_perfetto(&compressed(SDK)).unwrap());
    assert!(is_perfetto(&compressed(SDK)));
    assert_eq!((run.span_count(), &run.flows, run.kinds.len()), (3, &plain.flows, plain.kinds.len()));
    assert_eq!(run.losses.count("values of counters"), 1);
    let cut = compressed(&SDK[..SDK.len() - 3]);
    for (bytes, expected) in [
        (compressed(&compressed(SDK)), "in its compressed packets: they are compressed again"),
        (cut, "in its compressed packets: it ends in a field"),
        (message(1, &message(50, b"no zlib")), "byte 2: in its compressed packets: "),
    ] {
        let error = read_perfetto(&bytes).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}\ninstead of\n{expected}");
    }
}

#[test]
fn packets_of_other_sources_and_gaps_are_counted() {
    let counted = |packet: &[u8]| {
        let run = read_perfetto(&[SDK, &message(1, packet)].concat()).unwrap();
        let all = ["packets of other data sources", "gaps in sequences of packets"];
        all.map(|content| run.losses.count(content))
    };
    // A process tree without a time, a sample with one.
    assert_eq!(counted(&message(2, b"")), [1, 0]);
    assert_eq!(counted(&[&[0x40, 7], &message(66, b"")[..]].concat()), [1, 0]);
    // Configuration and statistics of the recording.
    assert_eq!(counted(&[message(33, b""), message(35, b"")].concat()), [0, 0]);
    // Sequence 1 with dropped packets before; its first packet has none before.
    assert_eq!(counted(&[0x50, 1, 0xd0, 2, 1]), [0, 1]);
    assert_eq!(counted(&[0x50, 1, 0xd0, 2, 1, 0xb8, 5, 1]), [0, 0]);
}

/// A field of bytes.
fn message(number: u8, content: &[u8]) -> Vec<u8> {
    let mut bytes = match number {
        0..16 => vec![number << 3 | 2],
        _ => vec![number << 3 | 0x82, number >> 4],
    };
    let mut length = content.len();
    while length >= 0x80 {
        bytes.push(length as u8 | 0x80);
        length >>= 7;
    }
    bytes.push(length as u8);
    bytes.extend(content);
    bytes
}

/// A packet with this time (field 8) and event.
fn packet(time: &[u8], event: &[u8]) -> Vec<u8> {
    message(1, &[&[0x40], time, &message(11, event)].concat())
}

#[test]
fn damaged_files_are_refused_with_their_byte() {
    let late = [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01];
    let endless = [0xff; 11];
    for (bytes, expected) in [
        (SDK[..SDK.len() - 3].to_vec(), "it ends in a field, "),
        (packet(&late, &[0x48, 1]), "byte 2: time 18446744073709551615 is beyond the clock of 2^63 ns"),
        (packet(&endless, &[0x48, 1]), "byte 3: a number has more than 10 bytes"),
        (message(1, &message(11, &[0x48, 1])), "byte 2: a track event has no time"),
        (message(1, &[0x40, 1, 0xd0, 3, 70, 0x5a, 2, 0x48, 1]), "byte 2: clock 70 has no snapshot before"),
        (packet(&[1], &[0x4b]), "a field has the kind 3, which does not exist"),
        (message(1, &[0x02, 0]), "byte 2: a field cannot have the number 0"),
        (Vec::new(), "byte 0: it has no slice or instant of a track"),
    ] {
        let error = read_perfetto(&bytes).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}\ninstead of\n{expected}");
    }
}

#[test]
fn tracks_in_a_circle_have_no_process() {
    // Tracks 1 and 2 are each other's parents.
    let descriptor =
        |uuid: u8, parent: u8| message(1, &[&[0xe2, 0x03, 4], &[0x08, uuid, 0x28, parent][..]].concat());
    let event = |ty: u8, track: u8, time: u8| packet(&[time], &[0x48, ty, 0x58, track]);
    let all = [descriptor(1, 2), descriptor(2, 1), event(1, 1, 5), event(2, 1, 9)].concat();
    let run = read_perfetto(&all).unwrap();
    assert_eq!((run.span_count(), run.process_count()), (1, 1));
    opened(&run);
}

#[test]
fn no_damage_of_a_byte_is_a_panic() {
    let mut accepted = 0;
    for at in 0..SDK.len() {
        for value in [0, 1, 0x7f, 0xff] {
            let mut bytes = SDK.to_vec();
            bytes[at] = value;
            is_perfetto(&bytes);
            accepted += u32::from(read_perfetto(&bytes).is_ok());
        }
    }
    assert!(accepted > 0);
}

#[test]
fn other_files_are_not_recognised() {
    for bytes in [
        &b""[..],
        b"\n",
        b"\n\x05",
        b"{\"traceEvents\":[]}",
        b"Name: x\n",
        b"\n\x01\xff",
        b"\n\nName: x\nJobId: 1\n",
    ] {
        assert!(!is_perfetto(bytes), "{bytes:?}");
    }
}
