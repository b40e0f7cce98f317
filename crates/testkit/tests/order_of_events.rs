//! Events that affect only their thread are replayed at that thread's next other event. The result must equal a replay
//! of all events in time order.

use std::path::Path;
use std::sync::Arc;
use taskscope_event::Code;
use taskscope_event::framing::file_header;
use taskscope_event::models::{MODELS, dictionary, kernel, nanos6, nosv, omp, openmp, ovni, tampi, wait};
use taskscope_event::spec::EventSpec;
use taskscope_execution::Span;
use taskscope_filter::Filter;
use taskscope_session::selection::{FIELDS_OF_EVENTS, Selection};
use taskscope_session::{ReadProgress, Session};
use taskscope_testkit::trace_builder::{StreamBuilder, push_event, push_jumbo};

/// Seeded and good enough.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % limit
    }
}

/// Writes a trace of any events of these models, whether they make sense or not, no two at the same time.
fn write_any(root: &Path, letters: &[u8], events: usize, random: &mut Random) {
    let specs: Vec<&EventSpec> = (MODELS.iter().filter(|model| letters.contains(&model.letter)))
        .flat_map(|model| model.events)
        .filter(|spec| spec.code != ovni::THREAD_ENDS)
        .collect();
    let mut clock = 1_000;
    let mut streams: Vec<StreamBuilder> = (0..4)
        .map(|thread| {
            clock += 1;
            let mut stream = StreamBuilder::new(thread / 3, 100 + thread / 3, 1000 + thread);
            if letters.contains(&nosv::LETTER) {
                stream = stream.require(&["ovni", "nosv", "nanos6"]).cpus(2);
            } else {
                stream = stream.require(&["ovni", "openmp"]);
            }
            stream.own = Some(file_header().to_vec());
            stream.execute(clock, thread as i32 % 2)
        })
        .collect();
    for number in 0..events {
        clock += 1 + random.below(50) as u64;
        let stream = &mut streams[random.below(4)];
        // Sections are most of a trace.
        let sections: Vec<&&EventSpec> = specs.iter().filter(|spec| spec.fields.is_empty()).collect();
        let spec = match random.below(3) {
            0 => specs[random.below(specs.len())],
            _ => sections[random.below(sections.len().min(12))],
        };
        let code = if number % 700 == 699 { ovni::THREAD_ENDS } else { spec.code };
        let size: usize = spec.fields.iter().filter_map(|field| field.ty.size()).sum();
        let size = if spec.jumbo { 16 } else { size };
        // Small numbers, so that ids of different events meet.
        let payload: Vec<u8> =
            (0..size).map(|byte| if byte % 4 == 0 { random.below(5) as u8 } else { 0 }).collect();
        let is_own = MODELS.iter().any(|model| model.letter == code.model() && model.own);
        let file = match &mut stream.own {
            Some(own) if is_own => own,
            _ => &mut stream.standard,
        };
        match (code, spec.jumbo) {
            (ovni::THREAD_ENDS, _) => push_event(file, code, clock, &[]),
            (_, true) => push_jumbo(file, code, clock, &payload),
            (_, false) => push_event(file, code, clock, &payload),
        }
    }
    for stream in streams {
        stream.write(root).unwrap();
    }
}

fn opened(root: &Path, selection: &Selection) -> Session {
    Session::open_part(root, selection, &ReadProgress::default()).unwrap()
}

fn check(letters: &[u8], traces: u64) {
    // A filter on each event makes all events arrive in order.
    let filter = Some(Filter::parse("time >= 0", &FIELDS_OF_EVENTS).unwrap());
    let in_order = Selection { filter, ..Selection::default() };
    for seed in 0..traces {
        let root = tempfile::tempdir().unwrap();
        let events = if seed == 0 { 120_000 } else { 1500 };
        write_any(root.path(), letters, events, &mut Random(seed));
        let (mut found, mut expected) =
            (opened(root.path(), &Selection::default()), opened(root.path(), &in_order));
        assert_eq!(found.events, expected.events);
        let what = |session: &mut Session| {
            // Simultaneous events may arrive in any order.
            session.execution.uncertain.sort_by_key(|uncertain| (uncertain.end, uncertain.thread));
            // Tracks are compared by content, not by their numbers.
            let execution = &mut session.execution;
            execution.activities = Arc::default();
            execution.filtered = false;
            let tracks = execution.threads.iter_mut().map(|thread| std::mem::take(&mut thread.track));
            let sections: Vec<Vec<Span>> = tracks.map(|track| track.spans().collect()).collect();
            format!("{:?} {sections:?}", session.execution)
        };
        let (found, expected) = (what(&mut found), what(&mut expected));
        if let Some(at) = found.bytes().zip(expected.bytes()).position(|(found, expected)| found != expected)
        {
            let around = at.saturating_sub(300)..at + 100;
            panic!("seed {seed}:\n{}\n{}", &found[around.clone()], &expected[around]);
        }
        assert_eq!(found.len(), expected.len());
    }
}

#[test]
fn openmp_is_played_as_in_order() {
    check(&[ovni::LETTER, openmp::LETTER, omp::LETTER, wait::LETTER, dictionary::LETTER, kernel::LETTER], 60);
}

#[test]
fn runtimes_on_cpus_are_played_as_in_order() {
    check(&[ovni::LETTER, nosv::LETTER, nanos6::LETTER, tampi::LETTER, kernel::LETTER], 60);
}

/// Codes and models that are not known are counted and change nothing else.
#[test]
fn unknown_events_are_played_as_in_order() {
    let root = tempfile::tempdir().unwrap();
    for thread in 0..2_u32 {
        let mut stream =
            StreamBuilder::new(0, 1, 10 + thread).execute(1000 + u64::from(thread), thread as i32);
        for step in 0..50 {
            let code = [Code(*b"VZz"), Code(*b"?ab"), nosv::API_CREATE_BEGIN, nosv::API_CREATE_END];
            stream = stream.point(2000 + 10 * step + u64::from(thread), code[step as usize % 4]);
        }
        stream.write(root.path()).unwrap();
    }
    let session = opened(root.path(), &Selection::default());
    assert_eq!(session.execution.anomalies.by_name["unknown-event"].count, 26);
    assert_eq!(session.execution.anomalies.by_name["unknown-event"].first.map(|(_, at)| at), Some(2010));
}
