//! Dictionary events: the numbers of one process to numbers of the whole trace.

use super::{Interpreter, Short};
use crate::payload::{text, u32_at, u64_at};
use taskscope_event::Code;
use taskscope_event::models::dictionary;
use taskscope_execution::{
    Change, Definition, Observer, Place, SiteIndex, State, ThreadIndex, TypeIndex, TypeKind,
};

impl Interpreter {
    /// A type and the label that the runtime gave it.
    pub(super) fn define_type<O: Observer>(
        &mut self,
        thread: ThreadIndex,
        payload: &[u8],
        out: &mut O,
    ) -> Result<(), Short> {
        let ty = self.type_at(thread, payload, 0, out)?;
        let (label, _) = text(&payload[4..]);
        let process = self.threads[thread.index()].process;
        out.define(Definition::Type { ty, process, label: &label });
        Ok(())
    }

    pub(super) fn dictionary_event<O: Observer>(
        &mut self,
        thread: ThreadIndex,
        at: u64,
        code: Code,
        payload: &[u8],
        out: &mut O,
    ) -> Result<(), Short> {
        let process = self.threads[thread.index()].process;
        match code {
            dictionary::MODULE => {
                let start = u64_at(payload, 0).ok_or(Short)?;
                let end = u64_at(payload, 8).ok_or(Short)?;
                let bias = u64_at(payload, 16).ok_or(Short)?;
                let (build_id, rest) = text(&payload[24..]);
                let (path, _) = text(rest);
                out.define(Definition::Module {
                    process,
                    at,
                    start,
                    end,
                    bias,
                    build_id: &build_id,
                    path: &path,
                });
            }
            dictionary::DATA => {
                let start = u64_at(payload, 0).ok_or(Short)?;
                let bytes = u64_at(payload, 8).ok_or(Short)?;
                let (name, _) = text(&payload[16..]);
                out.define(Definition::Data {
                    process,
                    at,
                    start,
                    end: start.saturating_add(bytes),
                    name: &name,
                });
            }
            dictionary::SITE => {
                let site = self.site_at(thread, payload, 0)?;
                let number = u32_at(payload, 0).ok_or(Short)?;
                let address = u64_at(payload, 4).ok_or(Short)?;
                if site.is_some() {
                    out.define(Definition::Site { site, number, process, address, at });
                }
            }
            dictionary::SITE_BODY => {
                let site = self.site_at(thread, payload, 0)?;
                let body = u64_at(payload, 4).ok_or(Short)?;
                let (location, _) = text(payload.get(12..).unwrap_or_default());
                if site.is_some() {
                    out.define(Definition::SiteBody { site, body, location: &location });
                }
            }
            dictionary::TASK_TYPE_SITE => {
                let ty = self.type_at(thread, payload, 0, out)?;
                let site = self.site_at(thread, payload, 4)?;
                let flags = u32_at(payload, 8).ok_or(Short)?;
                out.define(Definition::TypeSite { ty, site, kind: TypeKind::Task { flags } });
            }
            dictionary::WORK_TYPE_SITE => {
                let ty = self.type_at(thread, payload, 0, out)?;
                let site = self.site_at(thread, payload, 4)?;
                let kind = u32_at(payload, 8).ok_or(Short)?;
                self.names.work_kinds[ty.index()] = kind;
                out.define(Definition::TypeSite { ty, site, kind: TypeKind::Work { kind } });
                // The construct may have begun by the standard event of the same clock.
                let state = self.names.work_state(ty);
                let top = self.threads[thread.index()].frames.top_mut();
                if let Some(top) = top.filter(|top| top.section.place == Place::task_type(ty))
                    && top.section.state == State::Worksharing
                    && top.section.state != state
                {
                    top.section.state = state;
                    let now = top.section;
                    out.change(thread, at, Change::Becomes(now));
                }
            }
            _ => out.anomaly(thread, at, taskscope_execution::Anomaly::UnknownEvent),
        }
        Ok(())
    }
}

impl Interpreter {
    /// The type with the number at byte `offset` of the payload.
    pub(super) fn type_at<O: Observer>(
        &mut self,
        thread: ThreadIndex,
        payload: &[u8],
        offset: usize,
        out: &mut O,
    ) -> Result<TypeIndex, Short> {
        let id = u32_at(payload, offset).ok_or(Short)?;
        Ok(self.names.ty(self.threads[thread.index()].process, id, out))
    }

    /// Returns the site with the number at byte `offset` of the payload; number 0 means no site.
    pub(super) fn site_at(
        &mut self,
        thread: ThreadIndex,
        payload: &[u8],
        offset: usize,
    ) -> Result<SiteIndex, Short> {
        let id = u32_at(payload, offset).ok_or(Short)?;
        Ok(self.names.site(self.threads[thread.index()].process, id))
    }
}
