//! Parallel regions and their teams; masked and device constructs; chunks.

use super::sections::Subsystem;
use super::state::frames::Opener;
use super::state::regions::RegionState;
use super::{Interpreter, Short};
use crate::payload::{u32_at, u64_at};
use taskscope_event::Code;
use taskscope_event::models::omp;
use taskscope_execution::{
    Anomaly, Change, ObjectIndex, Observer, PathIndex, Place, ProcessIndex, RegionIndex, Section, SiteIndex,
    State, TaskIndex, TeamLimits, ThreadIndex, ThreadKind,
};

/// OMPT's `ompt_thread_t`.
mod thread_type {
    pub const INITIAL: u32 = 1;
    pub const WORKER: u32 = 2;
    pub const OTHER: u32 = 3;
}

impl Interpreter {
    /// The construct of a region, if known.
    pub(super) fn region_place(&self, region: RegionIndex) -> Place {
        self.regions.get(region.index()).map_or(Place::UNKNOWN, |region| Place::site(region.site))
    }

    /// Whether the region's end has been reported.
    pub(super) fn region_is_over(&self, region: RegionIndex) -> bool {
        self.regions.get(region.index()).is_some_and(|region| region.over)
    }

    /// The recorder's numbers of all regions.
    pub(super) fn region_numbers(&self) -> Vec<u64> {
        self.regions.iter().map(|region| region.number.into()).collect()
    }

    fn new_region(&mut self, process: ProcessIndex, id: u32) -> RegionIndex {
        let region = RegionIndex::of(self.regions.len());
        self.regions.push(RegionState {
            number: id,
            site: SiteIndex::NONE,
            begun: false,
            over: false,
            joined: u64::MAX,
            members: Vec::new(),
        });
        self.regions_by_id.insert((process, id), region);
        region
    }

    fn region_at(&mut self, thread: ThreadIndex, payload: &[u8]) -> Result<RegionIndex, Short> {
        let id = u32_at(payload, 0).ok_or(Short)?;
        let process = self.threads[thread.index()].process;
        Ok(match self.regions_by_id.get(&(process, id)) {
            Some(region) => *region,
            None => self.new_region(process, id),
        })
    }

    /// The members of the region that an event begins or ends.
    #[inline(never)]
    pub(super) fn members_reached(&self, thread: ThreadIndex, code: Code, payload: &[u8]) -> &[ThreadIndex] {
        let begins_or_ends = matches!(code, omp::REGION_BEGIN | omp::REGION_END);
        let id = u32_at(payload, 0).filter(|_| begins_or_ends);
        let process = self.threads[thread.index()].process;
        id.and_then(|id| self.regions_by_id.get(&(process, id)))
            .map_or(&[], |region| &self.regions[region.index()].members)
    }

    pub(super) fn omp_event<O: Observer>(
        &mut self,
        thread: ThreadIndex,
        at: u64,
        code: Code,
        payload: &[u8],
        out: &mut O,
    ) -> Result<(), Short> {
        match code {
            omp::THREAD_TYPE => self.thread_type(thread, at, payload, out),
            omp::REGION_BEGIN => self.region_begins(thread, at, payload, out),
            omp::TEAM_LIMITS => {
                let region = self.region_at(thread, payload)?;
                let word = |at| u32_at(payload, at).ok_or(Short);
                let limits = TeamLimits { levels: word(4)?, threads: word(8)?, is_dynamic: word(12)? != 0 };
                out.change(thread, at, Change::TeamLimits { region, limits });
                Ok(())
            }
            omp::REGION_END => self.region_ends(thread, at, payload, out),
            omp::IMPLICIT_BEGIN => self.joins_region(thread, at, payload, out),
            omp::IMPLICIT_END => {
                // The sections in it are closed by standard events.
                let region = self.region_at(thread, payload)?;
                let member_of = &mut self.threads[thread.index()].member_of;
                match member_of.iter().rposition(|known| *known == region) {
                    Some(depth) => member_of.truncate(depth),
                    None => out.anomaly(thread, at, Anomaly::EndWithoutBegin),
                }
                Ok(())
            }
            omp::CHUNK => {
                let start = u64_at(payload, 0).ok_or(Short)?;
                let iterations = u64_at(payload, 8).ok_or(Short)?;
                out.change(thread, at, Change::Chunk { start, iterations });
                Ok(())
            }
            omp::MASKED_BEGIN => {
                let place = Place::site(self.site_at(thread, payload, 0)?);
                let around = self.threads[thread.index()].now();
                let section = Section { state: State::Masked, place, object: ObjectIndex::NONE, ..around };
                self.open(thread, at, Opener::Masked, section, out);
                Ok(())
            }
            omp::MASKED_END => {
                self.close(thread, at, Opener::Masked, out);
                Ok(())
            }
            omp::TARGET_BEGIN => {
                let place = Place::site(self.site_at(thread, payload, 8)?);
                self.device_begins(thread, at, code, place, out);
                Ok(())
            }
            omp::TARGET_DATA_BEGIN => {
                let place = Place::site(self.site_at(thread, payload, 12)?);
                self.device_begins(thread, at, code, place, out);
                Ok(())
            }
            omp::TARGET_SUBMIT_BEGIN => {
                let place = self.threads[thread.index()].now().place;
                self.device_begins(thread, at, code, place, out);
                Ok(())
            }
            omp::TARGET_END | omp::TARGET_DATA_END | omp::TARGET_SUBMIT_END => {
                let begin = match code {
                    omp::TARGET_END => omp::TARGET_BEGIN,
                    omp::TARGET_DATA_END => omp::TARGET_DATA_BEGIN,
                    _ => omp::TARGET_SUBMIT_BEGIN,
                };
                self.close(thread, at, Opener::Device(begin), out);
                Ok(())
            }
            omp::TASKGROUP_BEGIN | omp::TASKGROUP_END | omp::CANCEL => Ok(()),
            omp::TASK_DEPENDENCES
            | omp::TASK_SUSPENDED
            | omp::TASK_CANCELLED
            | omp::TASK_DETACHED
            | omp::TASK_FULFILLED => self.task_detail(thread, at, code, payload, out),
            _ => {
                // Known events without an effect on states (creation of locks, flushes, …) are not anomalies.
                if taskscope_event::models::find(code).is_none() {
                    out.anomaly(thread, at, Anomaly::UnknownEvent);
                }
                Ok(())
            }
        }
    }

    /// The thread waits for its device request. (A program that falls back to its host leaves the construct
    /// first.)
    fn device_begins<O: Observer>(
        &mut self,
        thread: ThreadIndex,
        at: u64,
        code: Code,
        place: Place,
        out: &mut O,
    ) {
        let around = self.threads[thread.index()].now();
        let section = Section { state: State::TargetWait, place, object: ObjectIndex::NONE, ..around };
        self.open(thread, at, Opener::Device(code), section, out);
    }

    fn thread_type<O: Observer>(
        &mut self,
        thread: ThreadIndex,
        at: u64,
        payload: &[u8],
        out: &mut O,
    ) -> Result<(), Short> {
        let kind = match u32_at(payload, 0).ok_or(Short)? {
            thread_type::INITIAL => ThreadKind::Initial,
            thread_type::WORKER => ThreadKind::Worker,
            thread_type::OTHER => ThreadKind::Helper,
            _ => ThreadKind::Unknown,
        };
        let state = &mut self.threads[thread.index()];
        state.kind = kind;
        out.change(thread, at, Change::ThreadIs(kind));
        if state.frames.top().is_none() {
            out.change(thread, at, Change::Becomes(state.base()));
        }
        Ok(())
    }

    fn region_begins<O: Observer>(
        &mut self,
        thread: ThreadIndex,
        at: u64,
        payload: &[u8],
        out: &mut O,
    ) -> Result<(), Short> {
        let requested = u32_at(payload, 4).ok_or(Short)?;
        let site = self.site_at(thread, payload, 8)?;
        let mut region = self.region_at(thread, payload)?;
        if self.regions[region.index()].begun {
            // A reused id is another region.
            let id = u32_at(payload, 0).ok_or(Short)?;
            region = self.new_region(self.threads[thread.index()].process, id);
        } else if self.regions[region.index()].joined < at {
            let ns = at - self.regions[region.index()].joined;
            out.anomaly(thread, at, Anomaly::Inverted { ns });
        }
        let row = &mut self.regions[region.index()];
        row.site = site;
        row.begun = true;
        // Members that joined earlier, by their clocks, do not have the place yet.
        for member in row.members.clone() {
            let found = self.threads[member.index()].frames.implicit_task_mut(region);
            let Some((frame, innermost)) = found else { continue };
            frame.section.place = Place::site(site);
            if innermost {
                let now = frame.section;
                out.change(member, at, Change::Becomes(now));
            }
        }
        let state = &mut self.threads[thread.index()];
        let parent = state.frames.region();
        out.change(thread, at, Change::RegionBegins { region, parent, site, requested });
        if u32_at(payload, 12).ok_or(Short)? & omp::RUNTIMES_OWN != 0 {
            let (path, parent_task) = (PathIndex::NONE, TaskIndex::NONE);
            out.change(thread, at, Change::RegionPath { region, path, parent_region: parent, parent_task });
        }
        // The fork section may have been opened by the standard event of the same clock.
        let fork = state.frames.find_mut(Opener::Subsystem(Subsystem::ForkCall));
        match fork.filter(|fork| fork.since == at) {
            Some(fork) => {
                fork.section.place = Place::site(site);
                let now = state.now();
                out.change(thread, at, Change::Becomes(now));
            }
            None => state.forking = region,
        }
        Ok(())
    }

    fn region_ends<O: Observer>(
        &mut self,
        thread: ThreadIndex,
        at: u64,
        payload: &[u8],
        out: &mut O,
    ) -> Result<(), Short> {
        let region = self.region_at(thread, payload)?;
        let row = &mut self.regions[region.index()];
        row.over = true;
        let begun = row.begun;
        let members = std::mem::take(&mut row.members);
        let place = self.region_place(region);
        if !begun {
            out.anomaly(thread, at, Anomaly::EndWithoutBegin);
        }
        for member in members.into_iter().filter(|member| *member != thread) {
            let state = &mut self.threads[member.index()];
            if state.ended.is_none() && state.frames.idle_after(region, place) {
                out.change(member, at, Change::Becomes(state.now()));
            }
        }
        out.change(thread, at, Change::RegionEnds { region });
        Ok(())
    }

    fn joins_region<O: Observer>(
        &mut self,
        thread: ThreadIndex,
        at: u64,
        payload: &[u8],
        out: &mut O,
    ) -> Result<(), Short> {
        let index = u32_at(payload, 4).ok_or(Short)?;
        let team = u32_at(payload, 8).ok_or(Short)?;
        let region = self.region_at(thread, payload)?;
        self.works(thread, at, out);
        let row = &mut self.regions[region.index()];
        row.members.push(thread);
        row.joined = row.joined.min(at);
        out.change(thread, at, Change::RegionJoins { region, index, team });
        // The section may have been opened by the standard event of the same clock.
        let place = self.region_place(region);
        let state = &mut self.threads[thread.index()];
        state.member_of.push(region);
        if state.frames.adopt_region(at, region, place) {
            let now = state.now();
            out.change(thread, at, Change::Becomes(now));
        }
        Ok(())
    }

    /// The body of the region's implicit task starts.
    pub(super) fn enter_implicit_task<O: Observer>(
        &mut self,
        thread: ThreadIndex,
        at: u64,
        section: Section,
        out: &mut O,
    ) {
        // Known here only if the thread has already recorded its join; otherwise set right after.
        let member_of = &self.threads[thread.index()].member_of;
        let region = member_of.last().copied().unwrap_or(RegionIndex::NONE);
        let place = self.region_place(region);
        self.works(thread, at, out);
        let section = Section { place, region, task: TaskIndex::NONE, ..section };
        self.open(thread, at, Opener::Subsystem(Subsystem::UserMicrotask), section, out);
    }
}
