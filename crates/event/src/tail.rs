//! Where the end of an unfinished stream lies.
//!
//! While a stream `NAME.obs` is being written, its newest events are in `NAME.tail`, a small file
//! that the program has mapped. It has an 8-byte header and four pairs of regions, each pair larger
//! than the one before. One region is active; when it is full, it is appended to `NAME.obs`, and one
//! store into the header makes another region active, which is all zeros then.
//!
//! ```text
//!   NAME.obs   │ ovni…events…events… │ (at most a copy of the active region, to be ignored)
//!                                    ▲ base
//!   NAME.tail  │ header │ …pad to 4096 │ region 0 │ region 1 │ region 2 │ … │ region 7 │
//!              header = base << 3 | number of the active region, little endian
//! ```
//!
//! What a signal handler emits while it interrupts the recorder goes to the side area, in the first
//! page, and is copied into the stream as soon as the interrupted event is complete:
//!
//! ```text
//!   first page │ header │ … │ target │ side area: events, the first zero model byte ends them │
//! ```
//! While they are copied, `target` is the stream's offset at which their copy starts; the copy's
//! first event is committed last. So a reader that finds an event at `target` ignores the side area,
//! and else appends its events to the stream.
//!
//! A reader of an unfinished stream takes `NAME.obs` up to `base`, then the active region up to the
//! first event whose model byte is zero. Without a tail file `NAME.obs` is the whole stream. A
//! finished stream has none.

/// Bytes of the header that count.
pub const HEADER_BYTES: usize = 8;
/// File offset of the first region.
pub const FIRST_REGION_OFFSET: u64 = 4096;
/// Bytes of a region of each pair. The last pair serves single events of that size.
pub const PAIR_REGION_BYTES: [u64; 4] = [8 << 10, 64 << 10, 256 << 10, 4 << 20];

/// Offset of the word that says where in the stream the side events are being copied to; 0: nowhere.
pub const SIDE_TARGET_OFFSET: u64 = 2040;
/// The side area.
pub const SIDE: Region = Region { offset: 2048, bytes: 2048 };

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

/// From the content of a tail file: the offset in the stream file at which the tail continues it,
/// and the bytes of the active region that are there. `None` if the file is too short to say.
pub fn active(tail: &[u8]) -> Option<(u64, &[u8])> {
    let header = u64::from_le_bytes(tail.get(..HEADER_BYTES)?.try_into().ok()?);
    let Region { offset, bytes } = region((header & 7) as u8);
    let offset = (offset as usize).min(tail.len());
    let end = (offset + bytes as usize).min(tail.len());
    Some((header >> 3, &tail[offset..end]))
}

/// From the content of a tail file: the stream's offset that the side events are being copied to (0:
/// nowhere), and the side area's bytes, empty where there is none.
pub fn side(tail: &[u8]) -> (u64, &[u8]) {
    let area = tail.get(SIDE.offset as usize..(SIDE.offset + SIDE.bytes) as usize).unwrap_or(&[]);
    let target = tail.get(SIDE_TARGET_OFFSET as usize..).and_then(|rest| rest.first_chunk());
    (target.map_or(0, |target| u64::from_le_bytes(*target)), area)
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
    fn short_files_give_what_is_there() {
        assert_eq!(active(&[0; 7]), None);
        assert_eq!(active(&[0; 8]), Some((0, &[][..])));
        let mut tail = [0; 4100];
        tail[..8].copy_from_slice(&header(77, 0).to_le_bytes());
        assert_eq!(active(&tail), Some((77, &[0; 4][..])));
    }
}
