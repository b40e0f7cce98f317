//! Waits with their object and place, and who holds what.

use super::payload::{u32_at, u64_at};
use super::sections::mutex_state;
use super::{Interpreter, Short, Sticky, WAIT_KINDS};
use taskscope_event::Code;
use taskscope_event::models::wait::{self, kind};
use taskscope_execution::{Anomaly, Change, ObjectIndex, Observer, Place, PlaceKind, SiteIndex, ThreadIndex};

/// Locks, critical constructs, ordered and atomic share one section and thus one entry.
fn slot(wait_kind: u32) -> Option<usize> {
    let slot = if mutex_state(wait_kind).is_some() { kind::CRITICAL } else { wait_kind };
    (slot as usize).lt(&WAIT_KINDS).then_some(slot as usize)
}

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
                    let site = self.site_of_wait(thread, wait_kind, object);
                    out.change(thread, at, Change::Acquires { object, site });
                }
            }
            _ => out.anomaly(thread, at, Anomaly::UnknownEvent),
        }
        Ok(())
    }

    fn set_sticky<O: Observer>(&mut self, thread: ThreadIndex, at: u64, sticky: Sticky, out: &mut O) {
        let Some(slot) = slot(sticky.kind) else { return };
        let state = &mut self.threads[thread.index()];
        state.sticky[slot] = Some(sticky);
        // The wait that it describes was entered by the standard event of the same clock.
        let Some(top) = state.frames.top() else { return };
        let describes = match top.opener {
            super::Opener::Subsystem(subsystem) => subsystem.wait_kind() == Some(slot as u32),
            _ => false,
        };
        if describes && top.since == at && top.section.state.group() != taskscope_execution::Group::Idle {
            self.change_top(thread, at, out, |section| {
                section.place = sticky.place;
                section.object = sticky.object;
                section.state = mutex_state(sticky.kind).unwrap_or(section.state);
            });
        }
    }

    /// Where the thread asked for the object that it now holds.
    fn site_of_wait(&self, thread: ThreadIndex, wait_kind: u32, object: ObjectIndex) -> SiteIndex {
        let sticky = slot(wait_kind).and_then(|slot| self.threads[thread.index()].sticky[slot]);
        match sticky {
            Some(sticky) if sticky.object == object => match sticky.place.kind() {
                PlaceKind::Site(site) => site,
                _ => SiteIndex::NONE,
            },
            _ => SiteIndex::NONE,
        }
    }
}
