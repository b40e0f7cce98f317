//! The part of a stream's dropped beginning that the rest depends on: definitions, open states, tasks that
//! have not ended.
//!
//! It follows the event table: pushes are kept until they are popped, a set replaces the one before,
//! a task's creation and execution are kept until it ends. The events keep their clocks.

use taskscope_event::Code;
use taskscope_event::framing::{EVENT_HEADER_BYTES, JUMBO_FLAG, JUMBO_HEADER_BYTES, payload_bytes};
use taskscope_event::models::{self, ovni};
use taskscope_event::spec::{Channel, Effect};

/// Events that are still needed, in their order.
#[derive(Default)]
pub struct Checkpoint {
    kept: Vec<Kept>,
}

struct Kept {
    what: EventMeaning,
    bytes: Vec<u8>,
}

#[derive(Clone, Copy, PartialEq)]
enum EventMeaning {
    Definition,
    State(u8, Channel),
    Value(u8, Channel),
    Creation(u8, u32),
    Execution(u8, u32, u32),
    Pause(u8, u32, u32),
    Workshare,
    ThreadExecutes,
    ThreadRests,
    Affinity,
    Mark(i32),
    MarkValue(i32),
}

impl Checkpoint {
    /// Takes in whole events that are about to be dropped.
    pub fn absorb(&mut self, mut bytes: &[u8]) {
        while bytes.len() >= EVENT_HEADER_BYTES {
            let mut size = EVENT_HEADER_BYTES + payload_bytes(bytes[0]);
            let mut payload = EVENT_HEADER_BYTES;
            if bytes[0] & JUMBO_FLAG != 0 && bytes.len() >= JUMBO_HEADER_BYTES {
                payload = JUMBO_HEADER_BYTES;
                size = JUMBO_HEADER_BYTES + word(&bytes[EVENT_HEADER_BYTES..]) as usize;
            }
            if size > bytes.len() {
                return;
            }
            let (event, rest) = bytes.split_at(size);
            self.take(Code([event[1], event[2], event[3]]), &event[payload.min(size)..], event);
            bytes = rest;
        }
    }

    fn take(&mut self, code: Code, payload: &[u8], event: &[u8]) {
        let model = code.model();
        let Some(spec) = models::model_of(model).and_then(|model| model.find(code)) else { return };
        match spec.effect {
            Effect::Push(channel, ..) => self.keep(EventMeaning::State(model, channel), event),
            Effect::Pop(channel, ..) => self.drop_last(EventMeaning::State(model, channel)),
            Effect::Set(channel, ..) => self.replace(EventMeaning::Value(model, channel), event),
            Effect::Ignore => {}
            Effect::Rule if model == ovni::LETTER => self.take_of_ovni(code, payload, event),
            Effect::Rule => {
                let task = field(payload, 0);
                let body = field(payload, 4);
                match spec.name {
                    "TYPE_CREATE" => self.keep(EventMeaning::Definition, event),
                    "PARALLEL_TASK_CREATE" => self.keep(EventMeaning::Definition, event),
                    "TASK_CREATE" => self.keep(EventMeaning::Creation(model, task), event),
                    "TASK_EXECUTE" => self.keep(EventMeaning::Execution(model, task, body), event),
                    "TASK_PAUSE" => self.replace(EventMeaning::Pause(model, task, body), event),
                    "TASK_RESUME" => self.drop_last(EventMeaning::Pause(model, task, body)),
                    "TASK_END" => {
                        self.drop_last(EventMeaning::Execution(model, task, body));
                        self.drop_last(EventMeaning::Creation(model, task));
                    }
                    "WORKSHARE_EXECUTE" => self.keep(EventMeaning::Workshare, event),
                    "WORKSHARE_END" => self.drop_last(EventMeaning::Workshare),
                    _ => {}
                }
            }
        }
    }

    fn take_of_ovni(&mut self, code: Code, payload: &[u8], event: &[u8]) {
        let mark_type = field(payload, 8) as i32;
        match code {
            ovni::THREAD_EXECUTES => self.keep(EventMeaning::ThreadExecutes, event),
            ovni::THREAD_COOLS | ovni::THREAD_PAUSES | ovni::THREAD_WARMS => {
                self.keep(EventMeaning::ThreadRests, event);
            }
            ovni::THREAD_RESUMES => self.kept.retain(|kept| kept.what != EventMeaning::ThreadRests),
            ovni::SET_AFFINITY => self.replace(EventMeaning::Affinity, event),
            ovni::MARK_PUSH => self.keep(EventMeaning::Mark(mark_type), event),
            ovni::MARK_POP => self.drop_last(EventMeaning::Mark(mark_type)),
            ovni::MARK_SET => self.replace(EventMeaning::MarkValue(mark_type), event),
            _ => {}
        }
    }

    fn keep(&mut self, what: EventMeaning, event: &[u8]) {
        self.kept.push(Kept { what, bytes: event.to_vec() });
    }

    fn drop_last(&mut self, what: EventMeaning) {
        if let Some(index) = self.kept.iter().rposition(|kept| kept.what == what) {
            self.kept.remove(index);
        }
    }

    fn replace(&mut self, what: EventMeaning, event: &[u8]) {
        self.drop_last(what);
        self.keep(what, event);
    }

    /// Appends the kept events.
    pub fn write(&self, to: &mut Vec<u8>) {
        self.kept.iter().for_each(|kept| to.extend_from_slice(&kept.bytes));
    }
}

fn word(bytes: &[u8]) -> u32 {
    bytes.first_chunk().map_or(0, |word| u32::from_le_bytes(*word))
}

fn field(payload: &[u8], offset: usize) -> u32 {
    payload.get(offset..).map_or(0, word)
}

#[cfg(test)]
mod tests {
    use super::*;
    use taskscope_event::framing::{head_word, size_code};
    use taskscope_event::models::nosv;

    fn event(clock: u64, code: Code, payload: &[u8]) -> Vec<u8> {
        let mut bytes = head_word(size_code(payload.len()), code).to_le_bytes().to_vec();
        bytes.extend(clock.to_le_bytes());
        bytes.extend(payload);
        bytes
    }

    fn task(clock: u64, code: Code, id: u32, second: u32) -> Vec<u8> {
        event(clock, code, &[id.to_le_bytes(), second.to_le_bytes()].concat())
    }

    #[test]
    fn open_entries_stay_and_closed_ones_are_removed() {
        let mut checkpoint = Checkpoint::default();
        let open = [
            event(2, nosv::SCHEDULER_HUNGRY_BEGIN, &[]),
            task(5, nosv::TASK_CREATE, 2, 1),
            task(6, nosv::TASK_EXECUTE, 2, 0),
        ];
        let all = [
            task(1, nosv::TASK_CREATE, 1, 1),
            open[0].clone(),
            task(3, nosv::TASK_EXECUTE, 1, 0),
            task(4, nosv::TASK_END, 1, 0),
            open[1].clone(),
            event(5, nosv::SCHEDULER_SERVING_BEGIN, &[]),
            event(5, nosv::SCHEDULER_SERVING_END, &[]),
            open[2].clone(),
        ];
        checkpoint.absorb(&all[..4].concat());
        checkpoint.absorb(&all[4..].concat());
        let mut written = vec![];
        checkpoint.write(&mut written);
        assert_eq!(written, open.concat());
    }
}
