//! Rules of instrumentation: contexts fit, names are declared and unique, messages have two halves.

use super::Machine;
use super::checker::{Checker, UnpairedMessage, named};
use crate::payload::{readable, u32_at, u64_at};
use crate::violation::ViolationCode;
use std::collections::BTreeMap;
use taskscope_context::{Item, Out, Problem, Raw};
use taskscope_event::Code;
use taskscope_event::models::instrument as i;
use taskscope_execution::view::ViewObserver;

/// Text for a mistake that the recorder noticed.
fn words_of(problem: u32) -> &'static str {
    match problem {
        i::problem::UNKNOWN_NAME => "an unregistered name was used",
        i::problem::REGISTERED_TWICE => "a name was registered again with another meaning",
        i::problem::TOO_MANY_NAMES => "the numbers of names were used up",
        i::problem::DICTIONARY_BUSY => "names could not be registered, the dictionary was locked",
        i::problem::BAD_SETTING => "a setting is invalid",
        i::problem::SINK => "a sink failed",
        i::problem::TOO_LONG => "a text was too long, and cut",
        _ => "unknown mistake",
    }
}

struct Problems<'a>(&'a mut Vec<(u32, Problem)>);

impl Out for Problems<'_> {
    fn show(&mut self, _item: Item<'_>) {}

    fn problem(&mut self, thread: u32, _at: u64, problem: Problem) {
        self.0.push((thread, problem));
    }
}

impl<O: ViewObserver> Machine<'_, O> {
    /// Checks an event of the instrument model beyond its declaration.
    pub(super) fn check_instrumentation(&mut self, thread: u32, code: Code, payload: &[u8]) {
        let process = self.system.threads[thread as usize].process;
        let place = self.current;
        let time = place.time_ns.max(0) as u64;
        match Raw::decode(code, payload) {
            Ok(Some(raw)) => {
                let Checker { contexts, problems, .. } = &mut self.instrumentation;
                contexts.event(thread, time, &raw, &mut Problems(problems));
                self.instrumentation.note_uses(process, &raw, place);
                self.report_context_problems();
            }
            // Already reported with the declaration.
            Err(_) => {}
            Ok(None) if code == i::PROBLEM => {
                if let (Some(kind), Some(count)) = (u32_at(payload, 0), u64_at(payload, 4)) {
                    let text = payload.get(12..).unwrap_or_default().to_vec();
                    let mistakes = &mut self.instrumentation.mistakes;
                    let known = mistakes.entry((process, kind, text)).or_insert((0, place));
                    known.0 = known.0.max(count);
                }
            }
            Ok(None) => {
                if let Some(conflict) = self.instrumentation.name(process, code, payload) {
                    self.report(ViolationCode::NameConflict, conflict);
                }
            }
        }
    }

    /// Ends a thread: nothing of its own may be open.
    pub(super) fn check_end_of_thread(&mut self, thread: u32) {
        let time = self.current.time_ns.max(0) as u64;
        let Checker { contexts, problems, .. } = &mut self.instrumentation;
        contexts.thread_ends(thread, time, &mut Problems(problems));
        self.report_context_problems();
    }

    /// The process of this thread has lost events from here on.
    pub(super) fn note_loss(&mut self, thread: u32) {
        let process = self.system.threads[thread as usize].process;
        self.instrumentation.lossy.entry(process).or_insert((0, self.current));
    }

    fn report_context_problems(&mut self) {
        for (thread, problem) in std::mem::take(&mut self.instrumentation.problems) {
            let process = self.system.threads[thread as usize].process;
            if let Some((misfits, _)) = self.instrumentation.lossy.get_mut(&process) {
                *misfits += 1;
                continue;
            }
            let tid = self.system.threads[thread as usize].tid;
            self.report(ViolationCode::Misuse, format!("thread {tid}: {problem} [{}]", problem.name()));
        }
    }

    /// Reports mistakes that only the whole trace shows.
    pub(super) fn finish_instrumentation(&mut self) {
        for ((_, kind, reported), (count, place)) in std::mem::take(&mut self.instrumentation.mistakes) {
            let times = if count > 1 { format!(" ({count} times)") } else { String::new() };
            let text = format!("{}: {}{times}", words_of(kind), named(&reported));
            self.report_at(ViolationCode::MisuseNoticed, text, place);
        }
        // Losses are reported; misfits that follow from them are not mistakes of the program.
        let lossy = std::mem::take(&mut self.instrumentation.lossy);
        for (misfits, place) in lossy.values().filter(|(misfits, _)| *misfits > 0) {
            let text =
                format!("{misfits} later events of this process do not fit without those that are lost");
            self.report_at(ViolationCode::EventsLost, text, *place);
        }
        for ((process, space, number), (count, place)) in std::mem::take(&mut self.instrumentation.unnamed) {
            if lossy.contains_key(&process) {
                continue;
            }
            let times = if count > 1 { format!(", {count} times") } else { String::new() };
            let text = format!("{} {number} is used{times} and has no name", space.word());
            self.report_at(ViolationCode::UnknownName, text, place);
        }
        // Halves of one message may be in different processes, with different numbers for a domain.
        let mut halves: BTreeMap<(Vec<u8>, u64), UnpairedMessage> = BTreeMap::new();
        for ((process, domain, id), (sent, place)) in std::mem::take(&mut self.instrumentation.halves) {
            let built_in = i::DOMAINS.get(domain as usize).map(|name| name.as_bytes().to_vec());
            let named = self.instrumentation.domains.get(&(process, domain)).cloned();
            let name = named.or(built_in).unwrap_or_else(|| format!("number {domain}").into_bytes());
            let half = halves.entry((name, id)).or_insert((0, place));
            half.0 += sent;
            if (place.time_ns, place.stream) < (half.1.time_ns, half.1.stream) {
                half.1 = place;
            }
        }
        if !lossy.is_empty() {
            return;
        }
        for ((name, id), (sent, place)) in halves.into_iter().filter(|(_, (sent, _))| *sent != 0) {
            let (has, lacks) = if sent > 0 { ("sent", "received") } else { ("received", "sent") };
            let name = readable(&name);
            let text = format!(
                "message {id} of domain \"{name}\" is {has} {} times more than {lacks}",
                sent.unsigned_abs()
            );
            self.report_at(ViolationCode::MessageUnmatched, text, place);
        }
    }
}
