//! Parallel regions at the begin of a slice, and the order in which threads are restored: each after the masters of the
//! regions of which it is a member.
//!
//! The end of a worker's last barrier in a region is recorded when the runtime next needs the worker. Until then it is a
//! member of a region that is over, and idle. Such a region begins again in the slice, and ends before the range; so does
//! the last one of a master, after which its serial code has its name.

use super::request::Process;
use super::thread_state::ThreadState;
use crate::Event;
use rustc_hash::FxHashMap;
use taskscope_event::models::omp;

/// A region that has begun.
#[derive(Clone, Copy)]
pub(super) struct Region<'a> {
    /// The stream of its master.
    pub master: usize,
    pub begin: Event<'a>,
    /// Its end, if it is over.
    pub end: Option<Event<'a>>,
}

/// The latest region of each number, by process, and the last one that each stream ended.
#[derive(Default)]
pub(super) struct Regions<'a> {
    by_number: FxHashMap<(Process<'a>, [u8; 4]), Region<'a>>,
    last: FxHashMap<usize, Region<'a>>,
}

impl<'a> Regions<'a> {
    /// Takes an event of a thread.
    pub fn follow(&mut self, process: Process<'a>, stream: usize, event: &Event<'a>) {
        let Some(number) = event.payload.first_chunk() else { return };
        match event.code {
            omp::REGION_BEGIN => {
                let region = Region { master: stream, begin: *event, end: None };
                self.by_number.insert((process, *number), region);
            }
            omp::REGION_END => {
                if let Some(region) = self.by_number.get_mut(&(process, *number)) {
                    region.end = Some(*event);
                    self.last.insert(stream, *region);
                }
            }
            _ => {}
        }
    }

    /// The region of a number.
    pub fn get(&self, process: Process<'a>, number: [u8; 4]) -> Option<&Region<'a>> {
        self.by_number.get(&(process, number))
    }

    /// The last region that a stream ended.
    pub fn last_of(&self, stream: usize) -> Option<&Region<'a>> {
        self.last.get(&stream)
    }

    /// Moves streams behind the masters of their regions. Otherwise their order is kept.
    pub fn order(
        &self,
        streams: &[usize],
        process: impl Fn(usize) -> Process<'a>,
        states: &[ThreadState],
    ) -> Vec<usize> {
        const OUTSIDE: u8 = 0;
        const WAITS: u8 = 1;
        const SEEN: u8 = 2;
        let mut of = vec![OUTSIDE; states.len()];
        streams.iter().for_each(|stream| of[*stream] = WAITS);
        let mut ordered = Vec::with_capacity(streams.len());
        for stream in streams {
            let mut path = if of[*stream] == WAITS { vec![*stream] } else { Vec::new() };
            while let Some(now) = path.last().copied() {
                of[now] = SEEN;
                let masters = states[now].member_of().filter_map(|number| self.get(process(now), number));
                match masters.map(|region| region.master).find(|master| of[*master] == WAITS) {
                    Some(master) => path.push(master),
                    None => ordered.extend(path.pop()),
                }
            }
        }
        ordered
    }
}
