//! Waits with their object and place, and holders of objects.

use super::sections::mutex_state;
use super::state::frames::{Opener, Sticky};
use super::{Interpreter, Short};
use crate::payload::{i64_at, u32_at, u64_at};
use taskscope_event::Code;
use taskscope_event::models::wait::{self, kind};
use taskscope_execution::{
    Anomaly, Change, KNOWN_OTHER_PROCESS, ObjectIndex, Observer, PathIndex, Place, PlaceKind, ProcessIndex,
    Section, SiteIndex, State, ThreadIndex, ThreadWaitChange,
};

impl Interpreter {
    pub(super) fn wait_event<O: Observer>(
        &mut self,
        thread: ThreadIndex,
        at: u64,
        code: Code,
        payload: &[u8],
        out: &mut O,
    ) -> Result<(), Short> {
        match code {
            wait::WAIT_SITE => {
                let wait_kind = u32_at(payload, 0).ok_or(Short)?;
                let place = Place::site(self.site_at(thread, payload, 4)?);
                let sticky = Sticky { place, object: ObjectIndex::NONE, kind: wait_kind };
                self.set_sticky(thread, at, sticky, out);
            }
            wait::WAIT_OBJECT => {
                let id = u64_at(payload, 0).ok_or(Short)?;
                let place = Place::site(self.site_at(thread, payload, 8)?);
                let wait_kind = u32_at(payload, 12).ok_or(Short)?;
                let process = self.threads[thread.index()].process;
                let object = self.names.object(process, id, wait_kind, out);
                self.set_sticky(thread, at, Sticky { place, object, kind: wait_kind }, out);
            }
            wait::ACQUIRED | wait::RELEASED => {
                let id = u64_at(payload, 0).ok_or(Short)?;
                let wait_kind = u32_at(payload, 8).ok_or(Short)?;
                let process = self.threads[thread.index()].process;
                let object = self.names.object(process, id, wait_kind, out);
                if code == wait::RELEASED {
                    out.change(thread, at, Change::Releases { object });
                } else {
                    self.correct_wait(thread, at, object, wait_kind, out);
                    let site = self.site_of_wait(thread, wait_kind, object);
                    out.change(thread, at, Change::Acquires { object, site });
                }
            }
            _ => match self.thread_wait(thread, at, code, payload, out)? {
                Some(change) => out.change(thread, at, Change::ThreadWait(change)),
                None => out.anomaly(thread, at, Anomaly::UnknownEvent),
            },
        }
        Ok(())
    }

    /// What an event says about waits of threads for each other, if it is about them.
    fn thread_wait<O: Observer>(
        &mut self,
        thread: ThreadIndex,
        at: u64,
        code: Code,
        payload: &[u8],
        out: &mut O,
    ) -> Result<Option<ThreadWaitChange>, Short> {
        Ok(Some(match code {
            wait::WAIT_BEGIN | wait::HANDED_OVER | wait::WAKES_ONE | wait::WAKES_ALL => {
                let id = u64_at(payload, 0).ok_or(Short)?;
                let site = self.site_at(thread, payload, 8)?;
                let wait_kind = u32_at(payload, 12).ok_or(Short)?;
                let process = self.threads[thread.index()].process;
                let object = self.names.object(process, id, wait_kind, out);
                match code {
                    wait::WAIT_BEGIN => ThreadWaitChange::Begins { object, site },
                    wait::HANDED_OVER => ThreadWaitChange::HandsOver { object, site },
                    _ => ThreadWaitChange::Wakes { object, site, all: code == wait::WAKES_ALL },
                }
            }
            wait::FOUND_HELD => ThreadWaitChange::FoundHeld {
                holder: u64_at(payload, 0).ok_or(Short)?,
                site: self.site_at(thread, payload, 8)?,
            },
            wait::WAIT_END => ThreadWaitChange::Ends { outcome: u32_at(payload, 4).ok_or(Short)? },
            wait::WAITED => {
                let process = self.threads[thread.index()].process;
                let id = u64_at(payload, 0).ok_or(Short)?;
                let wait_kind = u32_at(payload, 28).ok_or(Short)?;
                ThreadWaitChange::Waited {
                    object: self.names.object(process, id, wait_kind, out),
                    begun: u64_at(payload, 8).ok_or(Short)?,
                    ended: u64_at(payload, 16).ok_or(Short)?,
                    site: self.site_at(thread, payload, 24)?,
                    outcome: u32_at(payload, 32).ok_or(Short)?,
                    waker_site: self.site_at(thread, payload, 36)?,
                    waker: u64_at(payload, 40).ok_or(Short)?,
                    woken: u64_at(payload, 48).ok_or(Short)?,
                }
            }
            wait::KNOWN_WAIT | wait::KNOWN_HOLD => self.known_wait(thread, at, code, payload, out)?,
            wait::KNOWN_THREAD => ThreadWaitChange::KnownThread {
                end: at.saturating_add_signed(i64_at(payload, 0).ok_or(Short)?.saturating_neg()),
                works: u32_at(payload, 8).ok_or(Short)? != 0,
            },
            wait::THREAD_STARTS => ThreadWaitChange::Starts {
                handle: u64_at(payload, 0).ok_or(Short)?,
                pointer: u64_at(payload, 8).ok_or(Short)?,
                site: self.site_at(thread, payload, 16)?,
            },
            _ => return Ok(None),
        }))
    }

    /// A wait or a hold in it, as the analysis of the whole run has found.
    fn known_wait<O: Observer>(
        &mut self,
        thread: ThreadIndex,
        at: u64,
        code: Code,
        payload: &[u8],
        out: &mut O,
    ) -> Result<ThreadWaitChange, Short> {
        let process = self.threads[thread.index()].process;
        let ago =
            |offset| Ok(at.saturating_add_signed(i64_at(payload, offset).ok_or(Short)?.saturating_neg()));
        let id_of = |id: u64| match id {
            wait::OTHER_PROCESS => KNOWN_OTHER_PROCESS,
            id => u32::try_from(id).unwrap_or(0),
        };
        let id = u64_at(payload, 0).ok_or(Short)?;
        let (start, end) = (ago(8)?, ago(16)?);
        if code == wait::KNOWN_HOLD {
            let wait_kind = u32_at(payload, 40).ok_or(Short)?;
            return Ok(ThreadWaitChange::KnownHold {
                object: self.names.object(process, id, wait_kind, out),
                holder: id_of(u64_at(payload, 24).ok_or(Short)?),
                site: self.site_at(thread, payload, 32)?,
                path: self.path_at(process, payload, 36)?,
                start,
                end,
            });
        }
        let wait_kind = u32_at(payload, 48).ok_or(Short)?;
        Ok(ThreadWaitChange::KnownWait {
            object: self.names.object(process, id, wait_kind, out),
            site: self.site_at(thread, payload, 40)?,
            path: self.path_at(process, payload, 44)?,
            start,
            end,
            outcome: u8::try_from(u32_at(payload, 52).ok_or(Short)?).unwrap_or(u8::MAX),
            waker: id_of(u64_at(payload, 32).ok_or(Short)?),
            waker_site: self.site_at(thread, payload, 56)?,
            waker_path: self.path_at(process, payload, 60)?,
            woken: ago(24)?,
        })
    }

    /// The creation path with the number at byte `offset` of the payload; number 0 means none.
    fn path_at(&mut self, process: ProcessIndex, payload: &[u8], offset: usize) -> Result<PathIndex, Short> {
        let number = u32_at(payload, offset).ok_or(Short)?;
        Ok(if number == 0 { PathIndex::NONE } else { self.paths.number(process, number) })
    }

    fn set_sticky<O: Observer>(&mut self, thread: ThreadIndex, at: u64, sticky: Sticky, out: &mut O) {
        let state = &mut self.threads[thread.index()];
        let Some(slot) = state.sticky.get_mut(sticky.kind as usize) else { return };
        *slot = Some(sticky);
        let lock_state = mutex_state(sticky.kind);
        if lock_state.is_some() {
            state.last_lock_kind = sticky.kind;
        }
        // The wait that it describes was entered by the standard event of the same clock.
        let Some(top) = state.frames.top() else { return };
        let kind_of_top = match top.opener {
            Opener::Subsystem(subsystem) => subsystem.wait_kind(),
            _ => None,
        };
        let describes = match kind_of_top {
            Some(kind::CRITICAL) => lock_state.is_some(),
            Some(kind) => kind == sticky.kind,
            None => false,
        };
        if describes && top.since == at && top.section.state != State::Idle {
            self.change_top(thread, at, out, |section| apply(section, sticky));
        }
    }

    /// Corrects the object of a wait to the one that the thread now holds, if the last entry for waits named
    /// another lock.
    fn correct_wait<O: Observer>(
        &mut self,
        thread: ThreadIndex,
        at: u64,
        object: ObjectIndex,
        wait_kind: u32,
        out: &mut O,
    ) {
        let state = &mut self.threads[thread.index()];
        let reported = state.sticky.get(wait_kind as usize).copied().flatten();
        let Some((ended, mut section)) = state.last_lock_wait.take() else { return };
        if ended != at || section.object == object {
            return;
        }
        match reported {
            Some(sticky) if sticky.object == object => apply(&mut section, sticky),
            _ => {
                section.object = object;
                section.place = Place::UNKNOWN;
                section.state = mutex_state(wait_kind).unwrap_or(section.state);
            }
        }
        out.change(thread, at, Change::Was(section));
    }

    /// Place at which the thread requested the object that it now holds.
    fn site_of_wait(&self, thread: ThreadIndex, wait_kind: u32, object: ObjectIndex) -> SiteIndex {
        match self.threads[thread.index()].sticky.get(wait_kind as usize) {
            Some(Some(sticky)) if sticky.object == object => match sticky.place.kind() {
                PlaceKind::Site(site) => site,
                _ => SiteIndex::NONE,
            },
            _ => SiteIndex::NONE,
        }
    }
}

fn apply(section: &mut Section, sticky: Sticky) {
    section.place = sticky.place;
    section.object = sticky.object;
    section.state = mutex_state(sticky.kind).unwrap_or(section.state);
}
