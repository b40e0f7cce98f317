//! Events as a program raised them.

use taskscope_event::Code;
use taskscope_event::models::instrument as i;

/// A half of a message. The other half has the same domain and id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message {
    /// Domain; ids are unique within it.
    pub domain: u32,
    /// The other side, or [`i::NO_PARTNER`].
    pub partner: u32,
    /// Matches the halves.
    pub id: u64,
    /// The sent value's key; 0 for none.
    pub key: u32,
    /// Its value.
    pub value: u64,
}

/// Pairs of key and value in the form of [`i::COMPOSITE`]; bytes at the end that make no pair are left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pairs<'a>(pub &'a [u8]);

impl Pairs<'_> {
    /// The pairs, in order.
    pub fn iter(&self) -> impl Iterator<Item = (u32, u64)> + '_ {
        let pairs = self.0.chunks_exact(i::PAIR_BYTES);
        pairs.filter_map(|pair| Some((u32_at(pair, 0).ok()?, u64_at(pair, 4).ok()?)))
    }
}

/// One raw event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the fields are those of the event table")]
pub enum Raw<'a> {
    StatePush { state: u32 },
    StatePop { state: u32 },
    StatesHide,
    StatesShow,
    BurstOpen { key: u32, value: u64 },
    BurstClose { key: u32, value: u64 },
    StateAndBurstOpen { state: u32, key: u32, value: u64 },
    StateAndBurstClose { state: u32, key: u32, value: u64 },
    Point { key: u32, value: u64 },
    Composite(Pairs<'a>),
    Send(Message),
    Receive(Message),
    DeferredPoint { task: u64, key: u32, value: u64 },
    DeferredSend { task: u64, message: Message },
    DeferredReceive { task: u64, message: Message },
    TaskCreate { task: u64, kind: u32 },
    TaskReady { task: u64 },
    TaskEnter { task: u64 },
    TaskLeave { task: u64 },
    TaskYield { task: u64 },
    TaskSwitch { old: u64, new: u64 },
    TaskEnd { task: u64 },
}

/// The payload is too short for the event's fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Short;

impl<'a> Raw<'a> {
    /// Decodes the event with this code and payload (without the size field of jumbo events); `None` for
    /// events without effect on a context: names, and other models.
    ///
    /// # Errors
    /// If the payload is too short.
    #[inline]
    pub fn decode(code: Code, payload: &'a [u8]) -> Result<Option<Raw<'a>>, Short> {
        if code.model() != i::LETTER {
            return Ok(None);
        }
        let word = |at| u32_at(payload, at);
        let long = |at| u64_at(payload, at);
        Ok(Some(match code {
            i::STATE_PUSH => Raw::StatePush { state: word(0)? },
            i::STATE_POP => Raw::StatePop { state: word(0)? },
            i::STATES_HIDE => Raw::StatesHide,
            i::STATES_SHOW => Raw::StatesShow,
            i::BURST_OPEN => Raw::BurstOpen { key: word(0)?, value: long(4)? },
            i::BURST_CLOSE => Raw::BurstClose { key: word(0)?, value: long(4)? },
            i::STATE_AND_BURST_OPEN => {
                Raw::StateAndBurstOpen { state: word(0)?, key: word(4)?, value: long(8)? }
            }
            i::STATE_AND_BURST_CLOSE => {
                Raw::StateAndBurstClose { state: word(0)?, key: word(4)?, value: long(8)? }
            }
            i::POINT => Raw::Point { key: word(0)?, value: long(4)? },
            i::COMPOSITE => Raw::Composite(Pairs(payload)),
            i::SEND => Raw::Send(message(payload, 0)?),
            i::RECEIVE => Raw::Receive(message(payload, 0)?),
            i::DEFERRED_POINT => Raw::DeferredPoint { task: long(0)?, key: word(8)?, value: long(12)? },
            i::DEFERRED_SEND => Raw::DeferredSend { task: long(0)?, message: message(payload, 8)? },
            i::DEFERRED_RECEIVE => Raw::DeferredReceive { task: long(0)?, message: message(payload, 8)? },
            i::TASK_CREATE => Raw::TaskCreate { task: long(0)?, kind: word(8)? },
            i::TASK_READY => Raw::TaskReady { task: long(0)? },
            i::TASK_ENTER => Raw::TaskEnter { task: long(0)? },
            i::TASK_LEAVE => Raw::TaskLeave { task: long(0)? },
            i::TASK_YIELD => Raw::TaskYield { task: long(0)? },
            i::TASK_SWITCH => Raw::TaskSwitch { old: long(0)?, new: long(8)? },
            i::TASK_END => Raw::TaskEnd { task: long(0)? },
            _ => return Ok(None),
        }))
    }
}

impl Raw<'_> {
    /// The code, whether it is a jumbo event, and the payload that [`decode`](Raw::decode) takes.
    pub fn encode(&self) -> (Code, bool, Vec<u8>) {
        use Field::{Half, Long, Rest, Word};
        let (code, fields): (Code, Vec<Field>) = match *self {
            Raw::StatePush { state } => (i::STATE_PUSH, vec![Word(state)]),
            Raw::StatePop { state } => (i::STATE_POP, vec![Word(state)]),
            Raw::StatesHide => (i::STATES_HIDE, vec![]),
            Raw::StatesShow => (i::STATES_SHOW, vec![]),
            Raw::BurstOpen { key, value } => (i::BURST_OPEN, vec![Word(key), Long(value)]),
            Raw::BurstClose { key, value } => (i::BURST_CLOSE, vec![Word(key), Long(value)]),
            Raw::StateAndBurstOpen { state, key, value } => {
                (i::STATE_AND_BURST_OPEN, vec![Word(state), Word(key), Long(value)])
            }
            Raw::StateAndBurstClose { state, key, value } => {
                (i::STATE_AND_BURST_CLOSE, vec![Word(state), Word(key), Long(value)])
            }
            Raw::Point { key, value } => (i::POINT, vec![Word(key), Long(value)]),
            Raw::Composite(pairs) => (i::COMPOSITE, vec![Rest(pairs.0)]),
            Raw::Send(message) => (i::SEND, vec![Half(message)]),
            Raw::Receive(message) => (i::RECEIVE, vec![Half(message)]),
            Raw::DeferredPoint { task, key, value } => {
                (i::DEFERRED_POINT, vec![Long(task), Word(key), Long(value)])
            }
            Raw::DeferredSend { task, message } => (i::DEFERRED_SEND, vec![Long(task), Half(message)]),
            Raw::DeferredReceive { task, message } => (i::DEFERRED_RECEIVE, vec![Long(task), Half(message)]),
            Raw::TaskCreate { task, kind } => (i::TASK_CREATE, vec![Long(task), Word(kind)]),
            Raw::TaskReady { task } => (i::TASK_READY, vec![Long(task)]),
            Raw::TaskEnter { task } => (i::TASK_ENTER, vec![Long(task)]),
            Raw::TaskLeave { task } => (i::TASK_LEAVE, vec![Long(task)]),
            Raw::TaskYield { task } => (i::TASK_YIELD, vec![Long(task)]),
            Raw::TaskSwitch { old, new } => (i::TASK_SWITCH, vec![Long(old), Long(new)]),
            Raw::TaskEnd { task } => (i::TASK_END, vec![Long(task)]),
        };
        let jumbo = i::EVENTS.iter().any(|spec| spec.code == code && spec.jumbo);
        let mut bytes = Vec::new();
        fields.iter().for_each(|field| field.write(&mut bytes));
        (code, jumbo, bytes)
    }
}

/// A piece of a payload.
enum Field<'a> {
    Word(u32),
    Long(u64),
    Half(Message),
    Rest(&'a [u8]),
}

impl Field<'_> {
    fn write(&self, bytes: &mut Vec<u8>) {
        match *self {
            Field::Word(word) => bytes.extend(word.to_le_bytes()),
            Field::Long(long) => bytes.extend(long.to_le_bytes()),
            Field::Half(Message { domain, partner, id, key, value }) => {
                [
                    Field::Word(domain),
                    Field::Word(partner),
                    Field::Long(id),
                    Field::Word(key),
                    Field::Long(value),
                ]
                .iter()
                .for_each(|field| field.write(bytes));
            }
            Field::Rest(rest) => bytes.extend(rest),
        }
    }
}

fn message(payload: &[u8], at: usize) -> Result<Message, Short> {
    Ok(Message {
        domain: u32_at(payload, at)?,
        partner: u32_at(payload, at + 4)?,
        id: u64_at(payload, at + 8)?,
        key: u32_at(payload, at + 16)?,
        value: u64_at(payload, at + 20)?,
    })
}

fn u32_at(bytes: &[u8], at: usize) -> Result<u32, Short> {
    bytes.get(at..).and_then(|rest| rest.first_chunk()).map(|four| u32::from_le_bytes(*four)).ok_or(Short)
}

fn u64_at(bytes: &[u8], at: usize) -> Result<u64, Short> {
    bytes.get(at..).and_then(|rest| rest.first_chunk()).map(|eight| u64::from_le_bytes(*eight)).ok_or(Short)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_event_of_the_table_is_decoded_or_names_something() {
        for event in i::EVENTS {
            let decoded = Raw::decode(event.code, &[1; 64]).unwrap();
            let names_or_problem = i::NAMES.contains(&event.code) || event.code == i::PROBLEM;
            assert_eq!(decoded.is_none(), names_or_problem, "{}", event.name);
            // Fields of fixed size are at the offsets of the table.
            let bytes: usize = event.fields.iter().filter_map(|field| field.ty.size()).sum();
            if decoded.is_some() && bytes > 0 {
                assert_eq!(Raw::decode(event.code, &vec![0; bytes - 1]), Err(Short), "{}", event.name);
                assert!(Raw::decode(event.code, &vec![0; bytes]).is_ok(), "{}", event.name);
            }
            // Encoding a decoded event yields the same bytes.
            if decoded.is_some() {
                let payload: Vec<u8> = (0..bytes as u8).collect();
                let raw = Raw::decode(event.code, &payload).unwrap().unwrap();
                assert_eq!(raw.encode(), (event.code, event.jumbo, payload.clone()), "{}", event.name);
            }
        }
    }
}
