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
    /// What is sent, as a key; 0 for none.
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
    /// The event with this code and payload (without the size field of jumbo events); `None` where it is
    /// none of a context: a name, or of another model.
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
        let names = [i::KEY, i::KEY_VALUE, i::STATE, i::DOMAIN, i::TASK_KIND, i::PROBLEM];
        for event in i::EVENTS {
            let decoded = Raw::decode(event.code, &[1; 64]).unwrap();
            assert_eq!(decoded.is_none(), names.contains(&event.code), "{}", event.name);
            // Fields of fixed size lie where the table says.
            let bytes: usize = event.fields.iter().filter_map(|field| field.ty.size()).sum();
            if decoded.is_some() && bytes > 0 {
                assert_eq!(Raw::decode(event.code, &vec![0; bytes - 1]), Err(Short), "{}", event.name);
                assert!(Raw::decode(event.code, &vec![0; bytes]).is_ok(), "{}", event.name);
            }
        }
    }
}
