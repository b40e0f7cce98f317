//! Streams with tails in memory that another process stores: the program's threads write nothing while there
//! is room, and nothing is lost, whichever process dies or stops.

mod support;

use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::time::Duration;

use support::*;
use taskscope_event::StreamFile;
use taskscope_event::models::ovni;
use taskscope_record::drain::{DRAINER_VARIABLE, Drainer};
use taskscope_record::{TAIL_DIRECTORY_VARIABLE, process, thread};
use taskscope_trace::{OpenOptions, Trace};

/// Bytes of one numbered event.
const EVENT_BYTES: u64 = 24;
/// More than the regions of a tail hold.
const EVENTS: u64 = 20_000_000 / EVENT_BYTES;
/// Events that fit the regions in any case.
const EVENTS_THAT_FIT: u64 = 8_000_000 / EVENT_BYTES;
/// The drainer stores all but the active region, and that has at most so many events.
const EVENTS_IN_ACTIVE: u64 = (4 << 20) / EVENT_BYTES;

/// A place for tails, in memory if possible, and one for the trace.
fn places(name: &str) -> (PathBuf, PathBuf) {
    let memory = Path::new("/dev/shm");
    let directory = temporary(name);
    let tails =
        if memory.is_dir() { memory.join(directory.file_name().unwrap()) } else { directory.join("tails") };
    let _ = std::fs::remove_dir_all(&tails);
    std::fs::create_dir_all(&tails).unwrap();
    (directory.join("trace"), tails)
}

fn remove((trace, tails): &(PathBuf, PathBuf)) {
    let _ = std::fs::remove_dir_all(tails);
    std::fs::remove_dir_all(trace.parent().unwrap()).unwrap();
}

/// The program's command, drained by `drainer`.
fn program(name: &str, (trace, tails): &(PathBuf, PathBuf), drainer: &str) -> Command {
    let mut command = child(name, trace);
    command.env(TAIL_DIRECTORY_VARIABLE, tails).env(DRAINER_VARIABLE, drainer);
    command
}

/// How [`Drainer`] would name the process `pid`.
fn name_of(pid: u32) -> String {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let behind_name = stat.rsplit_once(") ").unwrap().1;
    format!("{pid}:{}", behind_name.split(' ').nth(19).unwrap())
}

/// Bytes that the calling thread has written to files by system calls.
fn written() -> u64 {
    let io = std::fs::read_to_string("/proc/thread-self/io").unwrap();
    io.lines().find_map(|line| line.strip_prefix("wchar: ")).unwrap().parse().unwrap()
}

/// The length of the only `stream.obs`.
fn stored_bytes(trace: &Path) -> u64 {
    std::fs::metadata(streams(trace)[0].join("stream.obs")).unwrap().len()
}

/// The numbers that the trace's only stream holds are 1 to the result, without a gap.
fn numbers_read(trace: &Path) -> u64 {
    let trace = Trace::open(trace, &OpenOptions::default()).unwrap();
    let mut expected = 1;
    let numbered = |event: &taskscope_trace::Event| event.code == ovni::THREAD_CREATES;
    for event in trace.streams()[0].events_of(StreamFile::Standard).filter(numbered) {
        assert_eq!(event.payload[4..12], u64::to_le_bytes(expected));
        expected += 1;
    }
    expected - 1
}

/// Waits for the program to report that it has reached a point.
fn wait_for(program: &mut Child, word: &str) {
    let mut message = vec![];
    let output = program.stdout.as_mut().unwrap();
    let mut byte = [0];
    while !message.ends_with(word.as_bytes()) {
        output.read_exact(&mut byte).expect("the program ends too early");
        message.push(byte[0]);
    }
}

#[test]
fn a_thread_writes_nothing_while_a_drainer_runs() {
    const NAME: &str = "a_thread_writes_nothing_while_a_drainer_runs";
    if let Some(directory) = role() {
        start(&directory);
        assert!(attach());
        let before = written();
        for first in (1..=EVENTS).step_by(10_000) {
            emit(first..=(first + 9_999).min(EVENTS));
            // On a busy machine the drainer may be late, which is another test's matter.
            while (first + 10_000 - EVENTS_IN_ACTIVE.min(first + 10_000)) * EVENT_BYTES
                > stored_bytes(&directory)
            {
                std::thread::sleep(Duration::from_millis(1));
            }
        }
        assert_eq!(written(), before);
        leave(7);
    }
    let places = places("drained");
    let (drainer, name) = Drainer::start(&places.1).unwrap();
    let status = program(NAME, &places, &name).status().unwrap();
    assert_eq!(status.code(), Some(7), "it wrote itself");
    assert_eq!(drainer.stop().streams, 0);
    // The thread left without finishing: its newest events are still in the tail.
    assert!(stored_bytes(&places.0) < EVENTS * EVENT_BYTES);
    assert_eq!(numbers_read(&places.0), EVENTS);
    remove(&places);
}

#[test]
fn a_thread_writes_when_its_regions_are_full_and_its_drainer_stopped() {
    const NAME: &str = "a_thread_writes_when_its_regions_are_full_and_its_drainer_stopped";
    if let Some(directory) = role() {
        start(&directory);
        assert!(attach());
        let before = written();
        emit(1..=EVENTS_THAT_FIT);
        assert_eq!(written(), before);
        emit(EVENTS_THAT_FIT + 1..=EVENTS);
        let wrote = written() - before;
        assert!((1..EVENTS * EVENT_BYTES).contains(&wrote), "{wrote}");
        if std::env::var_os("CRASH").is_none() {
            thread::detach();
            process::finish();
        }
        leave(7);
    }
    // This process is alive, and drains nothing: like a stopped one, or one that waits for its server.
    let name = name_of(std::process::id());
    for crash in [false, true] {
        let places = places("stopped");
        let mut command = program(NAME, &places, &name);
        if crash {
            command.env("CRASH", "1");
        }
        assert_eq!(command.status().unwrap().code(), Some(7));
        assert_eq!(is_finished(&streams(&places.0)[0]), !crash);
        assert_eq!(std::fs::read_dir(&places.1).unwrap().count(), if crash { 2 } else { 0 });
        assert_eq!(numbers_read(&places.0), EVENTS);
        remove(&places);
    }
}

#[test]
fn a_size_cap_holds_while_the_drainer_is_late() {
    const NAME: &str = "a_size_cap_holds_while_the_drainer_is_late";
    if let Some(directory) = role() {
        start(&directory);
        assert!(attach());
        emit(1..=EVENTS);
        thread::detach();
        process::finish();
        leave(7);
    }
    for cap in [3_000_000, 10_000_000] {
        let places = places("capped");
        let mut command = program(NAME, &places, &name_of(std::process::id()));
        command.env("TASKSCOPE_MAX_SIZE", cap.to_string());
        assert_eq!(command.status().unwrap().code(), Some(7));
        let bytes = numbers_read(&places.0) * EVENT_BYTES;
        assert!(bytes > cap / 2 && bytes <= cap, "{bytes} of {cap}");
        assert!(is_finished(&streams(&places.0)[0]));
        assert_eq!(std::fs::read_dir(&places.1).unwrap().count(), 0);
        remove(&places);
    }
}

#[test]
fn a_drainer_that_is_killed_is_not_waited_for() {
    const NAME: &str = "a_drainer_that_is_killed_is_not_waited_for";
    if let Some(directory) = role() {
        if std::env::var_os("DRAIN").is_some() {
            let (_drainer, name) = Drainer::start(&directory).unwrap();
            println!("I am {name};");
            std::thread::sleep(Duration::from_secs(600));
            leave(1);
        }
        start(&directory);
        assert!(attach());
        emit(1..=EVENTS / 2);
        while stored_bytes(&directory) < 100_000 {
            std::thread::sleep(Duration::from_millis(1));
        }
        println!("half;");
        std::io::stdin().read_exact(&mut [0]).unwrap();
        emit(EVENTS / 2 + 1..=EVENTS);
        println!("all;");
        std::thread::sleep(Duration::from_secs(600));
        leave(1);
    }
    let places = places("killed");
    let mut drainer = child(NAME, &places.1).env("DRAIN", "1").spawn().unwrap();
    wait_for(&mut drainer, "I am ");
    let name = name_of(drainer.id());
    let mut command = program(NAME, &places, &name);
    let mut recorded = command.stdin(std::process::Stdio::piped()).spawn().unwrap();
    wait_for(&mut recorded, "half;");
    // It is not reaped: the process is a zombie then.
    drainer.kill().unwrap();
    std::io::Write::write_all(recorded.stdin.as_mut().unwrap(), b"!").unwrap();
    wait_for(&mut recorded, "all;");
    recorded.kill().unwrap();
    recorded.wait().unwrap();
    drainer.wait().unwrap();
    assert_eq!(numbers_read(&places.0), EVENTS);
    // Without a drainer the thread stored all its sealed regions.
    assert!(stored_bytes(&places.0) > (EVENTS - EVENTS_IN_ACTIVE) * EVENT_BYTES);
    remove(&places);
}

#[test]
fn a_full_disk_stops_a_drained_stream_only() {
    const NAME: &str = "a_full_disk_stops_a_drained_stream_only";
    if let Some(directory) = role() {
        start(&directory);
        assert!(attach());
        for first in (1..EVENTS).step_by(100_000) {
            emit(first..first + 100_000);
            // The drainer meets the full disk, not this thread: it has come to the first sealed region.
            while first > EVENTS_IN_ACTIVE && stored_bytes(&directory) < 100_000 {
                std::thread::sleep(Duration::from_millis(1));
            }
        }
        thread::detach();
        process::finish();
        leave(42);
    }
    let places = places("drained-full");
    std::fs::create_dir_all(&places.0).unwrap();
    let mounted = Command::new("mount")
        .args(["-t", "tmpfs", "-o", "size=2000k", "taskscope-test"])
        .arg(&places.0)
        .status();
    if !mounted.is_ok_and(|status| status.success()) {
        taskscope_prerequisite::skip("only root can mount a small file system");
        return remove(&places);
    }
    let (drainer, name) = Drainer::start(&places.1).unwrap();
    let status = program(NAME, &places, &name).status().unwrap();
    let refused = drainer.stop();
    let read = numbers_read(&places.0);
    let stream = &streams(&places.0)[0];
    let text = std::fs::read_to_string(stream.join("stream.json")).unwrap();
    let own = decode(&stream.join("taskscope.obs")).0;
    assert!(Command::new("umount").arg(&places.0).status().unwrap().success());
    remove(&places);
    assert_eq!(status.code(), Some(42));
    assert_eq!(refused.streams, 1);
    assert_eq!(refused.why.unwrap().raw_os_error(), Some(libc::ENOSPC));
    // The regions' events stay in the tail; the rest is counted, there or in the metadata.
    assert!(read * EVENT_BYTES > 1_000_000 && read < EVENTS, "{read}");
    let lost = own.iter().find(|(code, ..)| *code == taskscope_event::models::recorder::LOST);
    let reported = lost.map(|(.., payload)| u64::from_le_bytes(payload[..8].try_into().unwrap()));
    let emitted = (1..EVENTS).step_by(100_000).count() as u64 * 100_000;
    assert!(
        reported.is_some_and(|reported| (emitted..emitted + 10).contains(&(reported + read))),
        "{reported:?} {read} {emitted} {text}"
    );
}

/// A file system that can be stalled: none of its files can be written, or opened for writing, until it
/// resumes.
struct Stallable {
    mounted_at: PathBuf,
}

impl Stallable {
    /// `None` if that is impossible.
    fn mount(at: &Path) -> Option<Self> {
        let image = at.with_extension("image");
        std::fs::File::create(&image).unwrap().set_len(64 << 20).unwrap();
        let run = |command: &mut Command| command.status().is_ok_and(|status| status.success());
        let made = run(Command::new("mkfs.ext4").arg("-q").arg(&image))
            && run(Command::new("mount").args(["-o", "loop"]).args([&image, at]))
            && run(Command::new("fsfreeze").arg("--help").stdout(std::process::Stdio::null()));
        made.then(|| Stallable { mounted_at: at.to_owned() })
    }

    fn stall(&self, stalled: bool) {
        let status =
            Command::new("fsfreeze").arg(if stalled { "-f" } else { "-u" }).arg(&self.mounted_at).status();
        assert!(status.unwrap().success());
    }
}

impl Drop for Stallable {
    fn drop(&mut self) {
        assert!(Command::new("umount").arg(&self.mounted_at).status().unwrap().success());
    }
}

#[test]
fn a_thread_runs_on_while_the_file_system_stalls() {
    const NAME: &str = "a_thread_runs_on_while_the_file_system_stalls";
    if let Some(directory) = role() {
        start(&directory);
        assert!(attach());
        println!("ready;");
        std::io::stdin().read_exact(&mut [0]).unwrap();
        emit(1..=EVENTS_THAT_FIT);
        println!("done;");
        std::io::stdin().read_exact(&mut [0]).unwrap();
        thread::detach();
        process::finish();
        leave(7);
    }
    for drained in [true, false] {
        let mut places = places("stalls");
        let root = places.0.clone();
        std::fs::create_dir_all(&root).unwrap();
        let Some(file_system) = Stallable::mount(&root) else {
            taskscope_prerequisite::skip("only root can mount a file system on a loop device");
            return remove(&places);
        };
        places.0 = root.join("trace");
        let (drainer, name) = Drainer::start(&places.1).unwrap();
        let mut command = program(NAME, &places, if drained { &name } else { "" });
        let mut recorded = command.stdin(std::process::Stdio::piped()).spawn().unwrap();
        let mut go_on = recorded.stdin.take().unwrap();
        wait_for(&mut recorded, "ready;");
        file_system.stall(true);
        std::io::Write::write_all(&mut go_on, b"!").unwrap();
        // With a drainer it is done while the file system stalls; without, only when it resumes.
        let waits = std::thread::spawn(move || {
            wait_for(&mut recorded, "done;");
            recorded
        });
        let patience = Duration::from_millis(if drained { 600_000 } else { 1000 });
        let begin = std::time::Instant::now();
        while !waits.is_finished() && begin.elapsed() < patience {
            std::thread::sleep(Duration::from_millis(5));
        }
        let ran_on = waits.is_finished();
        file_system.stall(false);
        let mut recorded = waits.join().unwrap();
        std::io::Write::write_all(&mut go_on, b"!").unwrap();
        assert_eq!(recorded.wait().unwrap().code(), Some(7));
        assert_eq!(drainer.stop().streams, 0);
        let read = numbers_read(&places.0);
        drop(file_system);
        places.0 = root;
        remove(&places);
        assert_eq!((ran_on, read), (drained, EVENTS_THAT_FIT));
    }
}
