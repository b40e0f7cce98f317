//! The end of an unfinished stream.
//!
//! While a stream `NAME.obs` is being written, its newest events are in `NAME.tail`, a small file that the
//! program has mapped. Its first page holds the words below; four pairs of regions follow, each pair larger
//! than the one before. One region is active; when it is full, it is *sealed*: the page records its part of
//! the stream, and one store into the header activates another region, which is all zeros then. A sealed
//! region's bytes are *stored* when they are in `NAME.obs`.
//!
//! ```text
//!   NAME.obs   │ ovni…events…events… │ (perhaps copies of the tail, to be ignored)
//!                                    ▲ stored
//!   regions                          │ sealed, older │ sealed, newer │ active, up to the first zero model byte
//!                                                                    ▲ base
//!   NAME.tail  │ first page │ region 0 │ region 1 │ region 2 │ … │ region 7 │
//!
//!   first page │ header │ stored │ drainer │ identity │ parts │ path │ target │ side area │
//!              header   = base << 3 | number of the active region, little endian, as all words are
//!              stored   = offset of the stream up to which NAME.obs is complete
//!              drainer  = id of the process that stores sealed regions; 0: the writing thread does
//!              identity, path = of the stream file, for that process
//!              parts    = of each region: start and end of its content, as offsets of the stream
//! ```
//!
//! **Storing.** On an ordinary file system the thread stores a sealed region immediately. If writing may
//! stall, another process (`taskscope record`, the *drainer*) does:
//!
//! 1. The thread seals a region (its part, then the header) and continues in a region with a stored part,
//!    which it clears first. If there is none, it stores the oldest itself.
//! 2. The drainer copies the region whose part starts at `stored`, and reads `stored` again: if it is
//!    unchanged, the region was not reused. Then it writes the copy at its offset of `NAME.obs`, and only
//!    then moves `stored` to the part's end, by compare and exchange.
//!
//! So at every moment: `NAME.obs` is complete up to `stored`; `stored` only grows; the parts of the
//! regions join `stored` and `base` without a gap. Thread and drainer may store the same part both,
//! since they write the same bytes to the same place. A part that is to be changed later (a count of
//! losses) is not left to a drainer: the thread zeroes `drainer` before it seals it.
//!
//! **Signal handlers.** Events of a signal handler that interrupts the recorder go to the side area, and are
//! copied into the stream as soon as the interrupted event is complete; the first zero model byte ends them.
//! While they are copied, `target` is the stream's offset at which their copy starts; the copy's first event
//! is committed last. So a reader that finds an event at `target` ignores the side area, and otherwise
//! appends its events to the stream.
//!
//! **A reader** of an unfinished stream takes `NAME.obs` up to `stored`, then the sealed regions' parts from
//! there to `base`, then the active region up to the first event with a zero model byte. If no parts lead
//! from `stored` to `base`, `NAME.obs` is complete up to `base`. Without a tail file `NAME.obs` is the whole
//! stream. A finished stream has none.

/// File offset of the first region.
pub const FIRST_REGION_OFFSET: u64 = 4096;
/// Bytes of a region of each pair. The last pair serves single events of that size.
pub const PAIR_REGION_BYTES: [u64; 4] = [8 << 10, 64 << 10, 256 << 10, 4 << 20];

/// Regions in all.
pub const REGIONS: usize = 2 * PAIR_REGION_BYTES.len();

/// Offset of `stored`, the length of the complete part of the stream file.
pub const STORED_OFFSET: u64 = 8;
/// Offset of the id of the process that stores sealed regions.
pub const DRAINER_OFFSET: u64 = 16;
/// Offset of four words that identify the stream file among others of its name.
pub const IDENTITY_OFFSET: u64 = 24;
/// Offset of the regions' parts: start and end of each.
pub const PARTS_OFFSET: u64 = 64;
/// The stream file's absolute path, ended by a zero byte.
pub const PATH: Region = Region { offset: 192, bytes: 1848 };
/// Offset of the stream offset that the side events are being copied to; 0: none.
pub const SIDE_TARGET_OFFSET: u64 = 2040;
/// The side area.
pub const SIDE: Region = Region { offset: 2048, bytes: 2048 };

/// Bytes of the longest tail file.
pub const FILE_BYTES: u64 = {
    let last = region(REGIONS as u8 - 1);
    last.offset + last.bytes
};

/// A region of the tail file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Region {
    /// Offset in the tail file.
    pub offset: u64,
    /// Length.
    pub bytes: u64,
}

/// The place of region `number`, 0 to 7.
pub const fn region(number: u8) -> Region {
    let (pair, second) = ((number / 2) as usize, (number % 2) as u64);
    let mut offset = FIRST_REGION_OFFSET;
    let mut i = 0;
    while i < pair {
        offset += 2 * PAIR_REGION_BYTES[i];
        i += 1;
    }
    let bytes = PAIR_REGION_BYTES[pair];
    Region { offset: offset + second * bytes, bytes }
}

/// The header for an active region that continues the stream at `base`.
pub const fn header(base: u64, region: u8) -> u64 {
    base << 3 | region as u64
}

/// Parses a tail file: the offset in the stream file at which the tail continues it, and the present bytes of
/// the active region. `None` if the file is too short.
pub fn active(tail: &[u8]) -> Option<(u64, &[u8])> {
    let header = word(tail, 0)?;
    let Region { offset, bytes } = region((header & 7) as u8);
    let offset = (offset as usize).min(tail.len());
    let end = (offset + bytes as usize).min(tail.len());
    Some((header >> 3, &tail[offset..end]))
}

/// Parses a tail file: the length of the complete part of the stream file, and the sealed regions' parts, in
/// order; unused ones are empty. The active region follows.
pub fn sealed(tail: &[u8]) -> (u64, [&[u8]; REGIONS]) {
    let mut parts = [&[][..]; REGIONS];
    let Some(base) = word(tail, 0).map(|header| header >> 3) else { return (0, parts) };
    let stored = word(tail, STORED_OFFSET).unwrap_or(base);
    let mut at = stored;
    for part in &mut parts {
        if at >= base {
            break;
        }
        let Some((bytes, end)) = (0..REGIONS as u8).find_map(|number| part_from(tail, number, at)) else {
            break;
        };
        (*part, at) = (bytes, end);
    }
    if at == base { (stored, parts) } else { (base, [&[][..]; REGIONS]) }
}

/// The content of region `number`, if it starts at `at` in the stream, and its end.
fn part_from(tail: &[u8], number: u8, at: u64) -> Option<(&[u8], u64)> {
    let words = PARTS_OFFSET + 16 * u64::from(number);
    let (start, end) = (word(tail, words)?, word(tail, words + 8)?);
    let Region { offset, bytes } = region(number);
    let length = end.checked_sub(start).filter(|length| (1..=bytes).contains(length))?;
    let held = tail.get(offset as usize..(offset + length) as usize)?;
    (start == at).then_some((held, end))
}

fn word(tail: &[u8], offset: u64) -> Option<u64> {
    tail.get(offset as usize..)?.first_chunk().map(|bytes| u64::from_le_bytes(*bytes))
}

/// Parses a tail file: the stream's offset that the side events are being copied to (0: none), and the side
/// area's bytes, empty if there is none.
pub fn side(tail: &[u8]) -> (u64, &[u8]) {
    let area = tail.get(SIDE.offset as usize..(SIDE.offset + SIDE.bytes) as usize).unwrap_or(&[]);
    (word(tail, SIDE_TARGET_OFFSET).unwrap_or(0), area)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn regions_follow_one_another() {
        for number in 1..8 {
            let before = region(number - 1);
            assert_eq!(region(number).offset, before.offset + before.bytes);
        }
    }

    #[test]
    fn sealed_regions_join_the_file_and_the_active_region() {
        let mut tail = std::vec![0; region(4).offset as usize];
        let mut put =
            |offset: u64, word: u64| tail[offset as usize..][..8].copy_from_slice(&word.to_le_bytes());
        put(0, header(130, 1));
        put(STORED_OFFSET, 100);
        // Regions in the order 3, 0; region 2 was stored before.
        for (number, start, end) in [(2, 90, 100), (3, 100, 110), (0, 110, 130)] {
            put(PARTS_OFFSET + 16 * number, start);
            put(PARTS_OFFSET + 16 * number + 8, end);
        }
        for (number, byte) in [(0, 7), (2, 8), (3, 9)] {
            tail[region(number).offset as usize..][..100].fill(byte);
        }
        let (stored, parts) = sealed(&tail);
        assert_eq!((stored, parts.concat()), (100, [[9; 10].as_slice(), &[7; 20]].concat()));
        // With a gap, and without the words, the file is complete up to the base.
        tail[PARTS_OFFSET as usize] = 111;
        assert_eq!(sealed(&tail), (130, [&[][..]; REGIONS]));
        assert_eq!(sealed(&tail[..8]), (130, [&[][..]; REGIONS]));
        assert_eq!(sealed(&tail[..7]), (0, [&[][..]; REGIONS]));
    }

    #[test]
    fn short_files_yield_their_whole_events() {
        assert_eq!(active(&[0; 7]), None);
        assert_eq!(active(&[0; 8]), Some((0, &[][..])));
        let mut tail = [0; 4100];
        tail[..8].copy_from_slice(&header(77, 0).to_le_bytes());
        assert_eq!(active(&tail), Some((77, &[0; 4][..])));
    }
}
