//! One pass over a stream file before it is replayed: its real end, the number of its events, its problems, and the
//! parts that were recorded unsorted.

use crate::event_head::{EventHead, clock_of};
use crate::falling_clocks::Falls;
use crate::finding::Finding;
use crate::occurrences::Occurrences;
use crate::problem::ProblemKind;
use crate::turn_clocks::TurnClocks;
use crate::unsorted::{Disorder, Window, windows};
use taskscope_event::Code;
use taskscope_event::framing::{FILE_HEADER_BYTES, MAGIC, STREAM_VERSION};
use taskscope_event::models::ovni;

/// Events between two checkpoints; a search for a clock walks at most this many.
const CHECKPOINT_EVENTS: u64 = 64;

/// Result of the pass.
#[derive(Debug, Default)]
pub(crate) struct Survey {
    pub(crate) events: u64,
    /// Uncorrected clocks; `None` without events.
    pub(crate) first_clock: Option<i64>,
    pub(crate) highest_clock: i64,
    /// Some clock is lower than one before it.
    pub(crate) clocks_fall: bool,
    /// Falls outside of regions of unsorted events.
    pub(crate) falls: Falls,
    /// Byte after the last whole event.
    pub(crate) end: usize,
    /// Parts to read in another order, ascending, disjoint.
    pub(crate) windows: Vec<Window>,
    pub(crate) findings: Vec<Finding>,
    /// Clocks of turns, if requested and events are read as stored.
    pub(crate) turns: Option<TurnClocks>,
}

/// Passes over `bytes`. An `unfinished` file ends at the first event without a model letter. `turns` asks
/// for the clocks of the events that have a turn.
pub(crate) fn survey(bytes: &[u8], unfinished: bool, turns: bool) -> Survey {
    let mut turns = turns.then(|| TurnClocks::new(bytes.len()));
    let mut result = match &mut turns {
        Some(turns) => pass(bytes, unfinished, |is_first, code, clock| match is_first {
            true => turns.first(code, clock),
            false => turns.later(code, clock),
        }),
        None => pass(bytes, unfinished, |_, _, _| {}),
    };
    result.turns = turns.filter(|_| !result.clocks_fall);
    result
}

/// Calls `each` for every event, with whether it is the first, its code and its clock.
fn pass(bytes: &[u8], unfinished: bool, mut each: impl FnMut(bool, Code, i64)) -> Survey {
    let mut result = Survey::default();
    if let Some(finding) = check_file_header(bytes) {
        result.findings.push(finding);
        return result;
    }
    let mut position = FILE_HEADER_BYTES;
    let mut highest = i64::MIN;
    let mut checkpoints: Vec<(usize, i64)> = Vec::new();
    let mut disorders: Vec<Disorder> = Vec::new();
    // (offset of the region's first byte, earliest clock that is too early in it)
    let mut region: Option<(usize, Option<i64>)> = None;
    let mut goes_back = Occurrences::default();
    let mut too_large = Occurrences::default();

    let end_finding = loop {
        let before_checkpoint = result.events.wrapping_neg() % CHECKPOINT_EVENTS;
        let plain =
            pass_plain(bytes, position, highest, before_checkpoint, |code, clock| each(false, code, clock));
        (position, highest) = (plain.position, plain.highest);
        result.events += plain.events;
        if position == bytes.len() {
            break None;
        }
        let Some(head) = EventHead::read(bytes, position) else {
            break Some(tail(bytes, position, unfinished, "the file ends in the middle of an event"));
        };
        if head.code.model() == 0 {
            break Some(tail(bytes, position, unfinished, "an event has no model letter"));
        }
        if head.end > bytes.len() {
            let text = format!(
                "the file ends in the middle of an event: `{}` announces {} bytes, {} are there",
                head.code,
                head.end - position,
                bytes.len() - position
            );
            break Some(Finding {
                kind: ProblemKind::TruncatedEvent,
                offset: position,
                clock: Some(highest).filter(|_| result.events > 0),
                count: 1,
                text,
            });
        }
        if result.events.is_multiple_of(CHECKPOINT_EVENTS) {
            checkpoints.push((position, highest));
        }
        let clock = clock_of(head.raw_clock);
        if head.raw_clock > i64::MAX as u64 {
            too_large.add(position, clock);
        }
        if result.events == 0 {
            result.first_clock = Some(clock);
        }
        each(result.events == 0, head.code, clock);
        result.events += 1;
        if head.code == ovni::UNSORTED_END
            && let Some((_, earliest)) = region.take()
            && let Some(earliest_clock) = earliest
        {
            disorders.push(Disorder { earliest_clock, end: position });
        }
        if clock >= highest {
            highest = clock;
        } else {
            result.clocks_fall = true;
            match &mut region {
                Some((_, earliest)) => *earliest = Some(earliest.map_or(clock, |other| other.min(clock))),
                // Reported at its assumed clock, as shown by every reader.
                None => {
                    goes_back.add(position, highest);
                    result.falls.add(clock, highest);
                }
            }
        }
        if head.code == ovni::UNSORTED_BEGIN {
            region = Some((position, None));
        }
        position = head.end;
    };
    result.end = position;
    result.highest_clock = highest;
    result.findings.extend(end_finding);
    if let Some((offset, earliest)) = region {
        if let Some(earliest_clock) = earliest {
            disorders.push(Disorder { earliest_clock, end: position });
        }
        result.findings.push(Finding {
            kind: ProblemKind::OpenUnsortedRegion,
            offset,
            clock: None,
            count: 1,
            text: "a region of unsorted events is never closed".to_owned(),
        });
    }
    goes_back.report(
        ProblemKind::ClockGoesBack,
        "stream_step: clock goes backwards; the event is taken to be at the latest clock before it",
        &mut result.findings,
    );
    too_large.report(
        ProblemKind::ClockTooLarge,
        "the clock is beyond 2^63 ns and taken as 2^63 - 1",
        &mut result.findings,
    );
    let mut unsorted = Occurrences::default();
    disorders.iter().for_each(|disorder| unsorted.add(disorder.end, disorder.earliest_clock));
    unsorted.report(
        ProblemKind::UnsortedRegion,
        "clock goes backwards within a region of unsorted events, which was sorted while reading",
        &mut result.findings,
    );
    result.windows = windows(bytes, &disorders, &checkpoints);
    result
}

/// State at the end of a pass over plain events.
struct Plain {
    position: usize,
    highest: i64,
    events: u64,
}

/// Passes over `most` events about which there is nothing to say, which nearly all are: whole, with a model, no earlier
/// than those before, and no border of a region.
#[inline(always)]
fn pass_plain(
    bytes: &[u8],
    mut position: usize,
    mut highest: i64,
    most: u64,
    mut each: impl FnMut(Code, i64),
) -> Plain {
    const BEGIN: u32 = ovni::UNSORTED_BEGIN.to_u32();
    const END: u32 = ovni::UNSORTED_END.to_u32();
    let mut events = 0;
    while events < most {
        let Some(head) = EventHead::read(bytes, position) else { break };
        let (code, clock) = (head.code.to_u32(), head.raw_clock as i64);
        let is_border = code == BEGIN || code == END;
        // Clocks beyond 2^63 are negative here.
        if clock < highest || highest < 0 || code & 0xff == 0 || is_border || head.end > bytes.len() {
            break;
        }
        (position, highest) = (head.end, clock);
        events += 1;
        each(head.code, clock);
    }
    Plain { position, highest, events }
}

fn check_file_header(bytes: &[u8]) -> Option<Finding> {
    let finding = |kind, text: String| Some(Finding { kind, offset: 0, clock: None, count: 1, text });
    if bytes.len() < FILE_HEADER_BYTES {
        let text = format!("the file has {} bytes, too few for the header of a stream", bytes.len());
        return finding(ProblemKind::BadMagic, text);
    }
    if bytes[..4] != MAGIC {
        return finding(ProblemKind::BadMagic, "the file does not start with `ovni`".to_owned());
    }
    let version = u32::from_le_bytes([bytes[4], bytes[5], bytes[6], bytes[7]]);
    if version != STREAM_VERSION {
        let text = format!("stream version mismatch {version} (expected {STREAM_VERSION})");
        return finding(ProblemKind::StreamVersion, text);
    }
    None
}

/// Classifies the bytes from `position` on if no event can be read there.
fn tail(bytes: &[u8], position: usize, unfinished: bool, text: &str) -> Finding {
    let rest = &bytes[position..];
    let zeros = rest.iter().all(|byte| *byte == 0);
    let kind = match (unfinished, zeros) {
        // The space that a recorder had prepared: the regular end of an unfinished stream, which its missing
        // `ovni.finished` already shows.
        (true, true) => ProblemKind::UnfinishedStream,
        (true, false) => ProblemKind::TornEvent,
        (false, true) => ProblemKind::ZeroTail,
        (false, false) => ProblemKind::TruncatedEvent,
    };
    let text = match kind {
        ProblemKind::UnfinishedStream => "ends in room prepared for more events".to_owned(),
        ProblemKind::TornEvent => "one event was being written when recording stopped".to_owned(),
        ProblemKind::ZeroTail => format!("{} zero bytes follow the last event", rest.len()),
        _ => text.to_owned(),
    };
    Finding { kind, offset: position, clock: None, count: 1, text }
}
