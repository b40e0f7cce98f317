//! The event path does not allocate, from a stream's first event on, for any regions.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use taskscope_event::models::ovni;
use taskscope_record::{enter, process, thread};

struct Counting;

thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

// SAFETY: passes everything on to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.set(ALLOCATIONS.get() + 1);
        // SAFETY: by contract.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: by contract.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

#[test]
fn no_allocation_on_the_event_path() {
    let directory = tempfile::tempdir().unwrap();
    process::start(process::Config {
        trace_directory: directory.path().join("trace"),
        app_id: 1,
        require: vec![],
        own_require: vec![],
        attributes: vec![],
    })
    .unwrap();
    assert!(thread::attach(std::ptr::null_mut(), Box::new(|_, _| {})));
    let before = ALLOCATIONS.get();
    assert!(before > 0, "the counter counts");
    // Fifty regions of all usual sizes, in both streams.
    for i in 0..400_000u64 {
        let mut r = enter().unwrap();
        let at = r.now();
        r.begin(at, ovni::FLUSH_BEGIN, [], 0);
        r.point(at, ovni::BURST, i.to_le_bytes());
        r.jumbo(at, ovni::BURST, &[b"one", b"two"]);
        r.own_point(at, ovni::BURST, []);
        r.end(at, ovni::FLUSH_END, []);
        let flags = taskscope_event::framing::size_code(8);
        // SAFETY: the array has the length in the flags.
        unsafe { r.raw(at, flags, ovni::BURST, [1; 8].as_ptr(), taskscope_record::Nesting::Point) };
    }
    let allocations = ALLOCATIONS.get() - before;
    thread::detach();
    process::finish();
    let streams = streams_below(directory.path());
    assert_eq!(allocations, 0);
    // Blocks reserved ahead of a long stream are freed.
    assert!(streams.iter().any(|stream| stream.len() > 16 << 20), "{streams:?}");
    for stream in streams {
        let (on_disk, block) = (stream.blocks() * 512, stream.blksize());
        // Some file systems count a block for their own index of blocks.
        assert!(on_disk <= stream.len().next_multiple_of(block) + 4 * block, "{stream:?}");
    }
}

/// All streams' sizes.
fn streams_below(directory: &Path) -> Vec<Metadata> {
    let entries = std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    let below = entries.flat_map(|path| match path.extension() {
        Some(extension) if extension == "obs" => vec![std::fs::metadata(&path).unwrap()],
        _ if path.is_dir() => streams_below(&path),
        _ => Vec::new(),
    });
    below.collect()
}
