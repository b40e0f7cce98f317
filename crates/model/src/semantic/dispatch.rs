//! Routes events to their handlers.

use super::kinds::Kind;
use super::sections::{Edge, Subsystem};
use super::state::frames::Opener;
use super::state::thread_state::ThreadState;
use super::{Interpreter, Short};
use crate::payload;
use taskscope_event::Code;
use taskscope_event::models::{self, mpi, nanos6, nosv, omp, openmp, ovni, recorder, wait};
use taskscope_execution::{
    Anomaly, Change, ObjectIndex, Observer, OpenTrack, Place, Section, State, ThreadIndex,
};

impl ThreadState {
    /// Takes an event that affects this thread alone and that its kind describes completely.
    #[inline(always)]
    pub fn own_event(&mut self, at: u64, code: Code, kind: Kind, track: &mut OpenTrack<'_>) {
        match kind {
            Kind::Step(step) => self.step(at, code.model(), step, Place::UNKNOWN, track),
            Kind::Plain(subsystem, state) => {
                let section =
                    Section { state, place: Place::UNKNOWN, object: ObjectIndex::NONE, ..self.now() };
                self.open(at, Opener::Subsystem(subsystem), section, track);
            }
            Kind::Subsystem(subsystem, Edge::Begin) => self.open_subsystem(at, subsystem, track),
            Kind::Subsystem(subsystem, Edge::End) => {
                if subsystem == Subsystem::Acquiring {
                    self.last_lock_wait = self.frames.top().map(|top| (at, top.section));
                }
                self.close(at, Opener::Subsystem(subsystem), track);
            }
            Kind::OutOfCpu | Kind::BackOnCpu if self.has_os_times => {}
            Kind::OutOfCpu => self.open(at, Opener::OutOfCpu, Section::of(State::OutOfCpu), track),
            Kind::BackOnCpu => {
                self.close(at, Opener::OutOfCpu, track);
            }
            Kind::OfTeam(_) | Kind::Task(_) | Kind::ServesAs(..) | Kind::Nothing | Kind::Other => {}
        }
    }
}

impl Interpreter {
    /// Takes an event that its kind describes completely, of a thread that has begun and not ended.
    #[inline(always)]
    pub(super) fn event_of_kind<O: Observer>(
        &mut self,
        thread: ThreadIndex,
        at: u64,
        code: Code,
        kind: Kind,
        out: &mut O,
    ) {
        match kind {
            Kind::Step(step) if code.model() == mpi::LETTER => self.step(thread, at, code.model(), step, out),
            Kind::OfTeam(subsystem) => self.open_subsystem(thread, at, subsystem, out),
            Kind::ServesAs(role, step) => {
                out.change(thread, at, Change::ThreadServesAs(role));
                if let Some(step) = step {
                    self.step(thread, at, code.model(), step, out);
                }
            }
            kind => {
                let state = &mut self.threads[thread.index()];
                state.own_event(at, code, kind, &mut out.open_track(thread));
            }
        }
    }

    /// Takes any other event of a thread that has begun and not ended.
    pub(super) fn dispatch<O: Observer>(
        &mut self,
        thread: ThreadIndex,
        at: u64,
        code: Code,
        payload: &[u8],
        out: &mut O,
    ) -> Result<(), Short> {
        match code {
            openmp::WORKSHARE_EXECUTE => self.work_begins(thread, at, payload, out),
            openmp::WORKSHARE_END => self.work_ends(thread, at, payload, out),
            ovni::THREAD_ENDS if self.threads[thread.index()].recorders > 1 => {
                self.threads[thread.index()].recorders -= 1;
                Ok(())
            }
            ovni::THREAD_ENDS => {
                self.instrumented_thread_ends(thread, at, out);
                self.threads[thread.index()].ended = Some(at);
                out.change(thread, at, Change::ThreadEnds);
                Ok(())
            }
            ovni::THREAD_PAUSES => {
                self.open(thread, at, Opener::Paused, Section::of(State::Paused), out);
                Ok(())
            }
            ovni::THREAD_RESUMES => {
                self.close(thread, at, Opener::Paused, out);
                Ok(())
            }
            _ => match code.model() {
                openmp::LETTER | nanos6::LETTER | nosv::LETTER
                    if matches!(code, openmp::TYPE_CREATE | nanos6::TYPE_CREATE | nosv::TYPE_CREATE) =>
                {
                    self.define_type(thread, payload, out)
                }
                omp::LETTER => self.omp_event(thread, at, code, payload, out),
                wait::LETTER => self.wait_event(thread, at, code, payload, out),
                models::instrument::LETTER => self.instrument_event(thread, at, code, payload, out),
                models::messages::LETTER => self.message_event(thread, at, code, payload, out),
                models::dictionary::LETTER => self.dictionary_event(thread, at, code, payload, out),
                models::samples::LETTER => self.path_event(thread, at, code, payload, out),
                recorder::LETTER if code == recorder::PAUSE_BEGIN => {
                    self.open(thread, at, Opener::NotRecorded, Section::of(State::Unknown), out);
                    Ok(())
                }
                recorder::LETTER if code == recorder::PAUSE_END => {
                    // Instrumentation may have begun a section meanwhile, which continues.
                    self.close(thread, at, Opener::NotRecorded, out);
                    Ok(())
                }
                recorder::LETTER => {
                    let events = payload::u64_at(payload, 0).ok_or(Short)?;
                    let reason = payload::u32_at(payload, 8);
                    let lasts = matches!(reason, Some(recorder::loss::NO_SPACE | recorder::loss::SIZE_CAP));
                    self.threads[thread.index()].frames.may_lack_ends = true;
                    out.change(thread, at, Change::Lost { events, lasts });
                    Ok(())
                }
                _ => {
                    if models::model_of(code.model()).is_none() {
                        out.anomaly(thread, at, Anomaly::UnknownEvent);
                    }
                    Ok(())
                }
            },
        }
    }

    /// After a thread's end, only names and releases still have an effect.
    pub(super) fn after_end<O: Observer>(
        &mut self,
        thread: ThreadIndex,
        at: u64,
        code: Code,
        payload: &[u8],
        out: &mut O,
    ) {
        // As with events that need no order.
        if self.kinds.of(code) == Kind::Nothing {
            return;
        }
        let named = match code.model() {
            models::dictionary::LETTER => Some(self.dictionary_event(thread, at, code, payload, out)),
            models::samples::LETTER => Some(self.path_event(thread, at, code, payload, out)),
            _ => None,
        };
        if let Some(named) = named {
            if named.is_err() {
                out.anomaly(thread, at, Anomaly::ShortPayload);
            }
        } else if code == recorder::LOST {
            if let Some(events) = payload::u64_at(payload, 0) {
                out.change(thread, at, Change::Lost { events, lasts: false });
            }
        } else {
            out.anomaly(thread, at, Anomaly::AfterEnd);
        }
    }
}
