//! Files: round trip, and no panic of the reader for any bytes.

use std::time::Instant;
use taskscope_event::{FNV_START, fnv1a};
use taskscope_profile::{
    Frame, Marker, Metric, Module, NO_MODULE, NodeId, Process, Profile, ROOT, ReadErrorKind, Tree, WaitCall,
    WaitEnd, WaitPart, WaitRow, WaitTie,
};

/// A generator with the same numbers in every run.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 ^ self.0 >> 29) >> 8
    }

    fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit
    }
}

fn some_profile(seed: u64, paths: usize) -> Profile {
    let mut random = Random(seed);
    let mut profile = Profile { modules: vec![Module::default(); 5], ..Profile::default() };
    for (i, module) in profile.modules.iter_mut().enumerate() {
        module.build_id = format!("{i:x}0ff");
        module.path = format!("/opt/größe/lib{i}.so");
    }
    profile.processes.push(Process::from([("host".to_string(), "n1".to_string())]));
    profile.processes.push(Process::new());
    let metrics: Vec<Metric> = Metric::all().collect();
    for _ in 0..paths {
        let depth = 1 + random.below(12);
        let node = (0..depth).fold(ROOT, |node, _| {
            let frame = match random.below(8) {
                0 => Frame::state(Marker::ALL[random.below(14) as usize]),
                1 => Frame::cut(),
                2 => Frame::runtime(4, random.next()),
                _ => Frame::user(random.below(5) as u32, random.below(4) * 0x10),
            };
            profile.tree.child(node, frame)
        });
        let metric = metrics[random.below(metrics.len() as u64) as usize];
        profile.tree.add(node, metric, random.next());
    }
    profile.totals.insert("state.task".to_string(), u64::MAX);
    profile.thread_waits =
        (0..(paths as u64 / 20).min(50)).map(|_| some_waits(&mut random, &profile)).collect();
    profile
}

fn some_waits(random: &mut Random, profile: &Profile) -> WaitRow {
    let nodes = profile.tree.len() as u64;
    let call = |random: &mut Random| {
        let module = if random.below(3) == 0 { NO_MODULE } else { random.below(5) as u32 };
        WaitCall { module, offset: random.next(), path: NodeId(random.below(nodes) as u32) }
    };
    let tie = |random: &mut Random| match random.below(4) {
        0 => None,
        1 => Some(WaitTie::Holds(call(random))),
        2 => Some(WaitTie::Wakes(call(random))),
        _ => Some(WaitTie::IsJoined(call(random))),
    };
    let parts = (0..random.below(4)).map(|_| WaitPart {
        end: WaitEnd::ALL[random.below(8) as usize],
        first: tie(random),
        last: tie(random),
        blocked: if random.below(2) == 0 { None } else { Some((1 + random.below(30) as u32, call(random))) },
        length: random.below(5) as u32,
        ns: random.next(),
        cpu_ns: random.below(3) * 1000,
    });
    let parts = parts.collect();
    let (module, object) = (random.below(5) as u32, random.next());
    let (waits, longest_ns) = (random.next(), random.next());
    WaitRow { process: 0, kind: 12, module, object, call: call(random), waits, threads: 3, longest_ns, parts }
}

fn bytes_of(profile: &Profile) -> Vec<u8> {
    let mut bytes = Vec::new();
    profile.write(&mut bytes).unwrap();
    bytes
}

type Row = (Vec<Frame>, Vec<(Metric, u64)>);

fn rows(tree: &Tree) -> Vec<Row> {
    tree.ids()
        .map(|node| {
            let mut values: Vec<_> = tree.values(node).filter(|(_, value)| *value > 0).collect();
            values.sort();
            (tree.path(node).collect(), values)
        })
        .collect()
}

#[test]
fn written_profiles_are_read_back() {
    for (seed, paths) in [(1, 0), (2, 3), (3, 20_000)] {
        let profile = some_profile(seed, paths);
        let bytes = bytes_of(&profile);
        let read = Profile::read(&bytes).unwrap();
        assert_eq!(read.modules, profile.modules);
        assert_eq!(read.totals, profile.totals);
        assert_eq!(rows(&read.tree), rows(&profile.tree));
        assert_eq!(read.thread_waits, profile.thread_waits);
        // A process without metadata is not written.
        assert_eq!(read.processes, profile.processes[..1]);
        assert!(bytes_of(&read) == bytes, "the same profile is the same file");
    }
}

#[test]
fn a_path_takes_few_bytes() {
    let profile = some_profile(3, 20_000);
    let plain = profile.tree.ids().filter(|n| profile.tree.frame(*n).offset < 0x100).count();
    let bytes = bytes_of(&profile).len() as f64 / plain as f64;
    assert!(bytes < 16.0, "{bytes}");
}

#[test]
fn losses_are_in_the_file() {
    let mut profile = Profile { tree: Tree::with_limit(2, 1), ..Profile::default() };
    let node = profile.tree.descend(ROOT, [Frame::cut(), Frame::cut(), Frame::cut()]);
    profile.tree.add(node, Metric::TIME, 3);
    profile.tree.add(node, Metric::WORK, 3);
    let read = Profile::read(&bytes_of(&profile)).unwrap();
    assert_eq!((read.tree.unfit(), read.tree.total(Metric::WORK)), (3, 3));
}

#[test]
fn every_cut_and_every_changed_byte_is_noticed() {
    let bytes = bytes_of(&some_profile(4, 40));
    for end in 0..bytes.len() {
        let error = Profile::read(&bytes[..end]).unwrap_err();
        assert!(matches!(error.kind, ReadErrorKind::Short | ReadErrorKind::NotAProfile), "{end} {error}");
    }
    for at in 0..bytes.len() {
        for bit in [1, 0x10, 0x80] {
            let mut changed = bytes.clone();
            changed[at] ^= bit;
            assert!(Profile::read(&changed).is_err(), "byte {at}");
        }
    }
    let mut longer = bytes.clone();
    longer.push(0);
    assert_eq!(Profile::read(&longer).unwrap_err().kind, ReadErrorKind::AfterEnd);
}

/// The form without its checksum, as a hand-made file would have it right.
fn sealed(mut body: Vec<u8>) -> Vec<u8> {
    let hash = fnv1a(FNV_START, &body);
    body.extend_from_slice(&[255, 8]);
    body.extend_from_slice(&hash.to_le_bytes());
    body
}

fn file(sections: &[&[u8]]) -> Vec<u8> {
    let mut body = b"tsprof\r\n\x01\x00".to_vec();
    sections.iter().for_each(|section| body.extend_from_slice(section));
    sealed(body)
}

#[test]
fn hostile_files_are_refused_by_name() {
    use ReadErrorKind::*;
    let huge: &[u8] = &[3, 11, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1, 1];
    for (sections, expected) in [
        (&[&[3, 5, 1, 0, 1, 0, 0][..]][..], Parent),
        (&[&[3, 5, 1, 2, 1, 0, 0]], Parent),
        (&[&[3, 5, 1, 1, 9, 0, 0]], Kind),
        (&[&[3, 5, 1, 1, 1, 1, 0]], Module),
        (&[&[4, 5, 1, 1, 1, 1, 1]], Node),
        (&[&[4, 7, 1, 0, 1, 0xff, 0xff, 0x7f, 1]], MetricNumber),
        (&[&[4, 6, 1, 0, 1, 0x80, 0x20, 1]], MetricNumber),
        (&[&[2, 4, 1, 1, 0xff, 0]], Text),
        (&[&[2, 3, 1, 0, 40]], Short),
        (&[&[6, 2, 1, 1]], Excess),
        (&[&[6, 10, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2]], LongNumber),
        // A count beyond any memory: its rows end with the section.
        (&[huge], Short),
        (&[&[1, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1]], Short),
    ] {
        assert_eq!(Profile::read(&file(sections)).map(|_| ()).unwrap_err().kind, expected, "{sections:?}");
    }
    assert!(Profile::read(&file(&[])).unwrap().tree.is_empty());
    // Sections of a later time are passed over.
    assert!(Profile::read(&file(&[&[77, 2, 9, 9]])).is_ok());
    let later = sealed(b"tsprof\r\n\x02\x00".to_vec());
    assert_eq!(Profile::read(&later).unwrap_err().kind, Version(2));
}

#[test]
fn no_bytes_make_the_reader_panic() {
    let mut random = Random(9);
    let whole = bytes_of(&some_profile(5, 60));
    for _ in 0..5_000 {
        let mut body = whole[..whole.len() - 10].to_vec();
        for _ in 0..1 + random.below(6) {
            let at = 10 + random.below(body.len() as u64 - 10) as usize;
            body[at] = random.next() as u8;
        }
        // With a right checksum, so that the following checks run too.
        if let Ok(profile) = Profile::read(&sealed(body)) {
            let mut merged = Profile::default();
            merged.merge(&profile);
            assert!(merged.tree.len() <= profile.tree.len());
        }
    }
}

#[test]
#[ignore = "a measurement: prints how long things take"]
fn speed() {
    let mut tree = Tree::with_limit(1 << 16, 1 << 18);
    let path: Vec<Frame> = (0..20).map(|i| Frame::user(0, i * 64)).collect();
    let rounds = 1_000_000;
    let start = Instant::now();
    let mut node = ROOT;
    for _ in 0..rounds {
        node = tree.descend(ROOT, path.iter().copied());
    }
    println!("a path of 20 known frames: {:?}", start.elapsed() / rounds);
    let start = Instant::now();
    for round in 0..rounds {
        tree.add(node, Metric::TIME, round as u64);
    }
    println!("adding to a node: {:?}", start.elapsed() / rounds);
}

/// Older versions count waits for nestable locks apart.
#[test]
fn waits_for_nestable_locks_of_older_files_are_waits_for_locks() {
    let mut profile = Profile::default();
    let node = profile.tree.child(ROOT, Frame::state(Marker::NestLock));
    for (metric, value) in [(0x108, 5), (0x107, 3), (0x208, 8), (0x308, 8)] {
        profile.tree.add(node, Metric(metric), value);
    }
    let read = Profile::read(&bytes_of(&profile)).unwrap();
    let total = |metric| read.tree.total(metric);
    assert_eq!(total(Metric::taken(Marker::NestLock)), 8);
    assert_eq!([total(Metric::given(Marker::Lock)), total(Metric::shared(Marker::Lock))], [8, 8]);
    assert!(Marker::NestLock.label() == Marker::Lock.label());
    assert!(read.tree.ids().all(|node| read.tree.values(node).all(|(metric, _)| metric.name().is_some())));
}
