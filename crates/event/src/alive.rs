//! Form of `alive.tail`: a page that a recorded process keeps up to date while it lives.
//!
//! A killed, aborted or hung process cannot record its end. Its recorder stores the time into this mapped
//! page every few tens of milliseconds, so a reader knows that no event was recorded until then. The page
//! also lists the threads that have used no CPU lately, or are in a call that may block. It is in the process's directory, or a link of its
//! name leads to it, as with the tails of streams ([`crate::tail`]); a process that ends properly removes it.
//!
//! ```text
//!   0    64 bytes, zero
//!   64   mark          "tskalive"
//!   72   until         CLOCK_MONOTONIC, nanoseconds: the process lived at this time
//!   80   table         number of the valid table << 32 | rows in it
//!   128  table 0       time of the look, 0; then rows: thread id, time since when the thread has slept
//!   2112 table 1
//!   4096 more of the page's rows, each in the place of the row: kind of the call's wait, 0 without one, and its object
//! ```
//! All words are little endian. A table is written while the other one is valid. Older pages end after the tables.

/// Name of the file in the directory of a process.
pub const FILE: &str = "alive.tail";
/// Length of the page.
pub const BYTES: usize = 8192;
/// Offset and value of the word that identifies the page.
pub const MARK: (u64, u64) = (64, u64::from_le_bytes(*b"tskalive"));
/// Offset of the time.
pub const UNTIL_OFFSET: u64 = 72;
/// Offset of the word that names the valid table.
pub const TABLE_OFFSET: u64 = 80;
/// Rows of a table.
pub const MAX_ROWS: u64 = 123;

/// Offset of a table, which begins with the time of the check.
pub const fn look(table: u64) -> u64 {
    128 + table * 16 * (1 + MAX_ROWS)
}

/// Offset of a row of a table, which has two words.
pub const fn row(table: u64, row: u64) -> u64 {
    look(table) + 16 * (1 + row)
}

/// Offset of the call of a row of a table, which has two words: its kind in [`wait::kind`](crate::models::wait::kind), and the object.
pub const fn call(table: u64, number: u64) -> u64 {
    4096 + row(table, number)
}

/// Word that names the valid table.
pub const fn table(number: u64, rows: u64) -> u64 {
    number << 32 | rows
}

/// The last time at which the process was alive, nanoseconds; `None` if these bytes are not such a page, or
/// it has no time yet.
pub fn until(page: &[u8]) -> Option<u64> {
    let is_page = word(page, MARK.0)? == MARK.1;
    word(page, UNTIL_OFFSET).filter(|until| is_page && *until > 0)
}

/// Time of the last check for sleeping threads, nanoseconds; `None` before the first one.
pub fn looked(page: &[u8]) -> Option<u64> {
    word(page, look(valid_table(page).0)).filter(|at| *at > 0)
}

fn valid_table(page: &[u8]) -> (u64, u64) {
    let valid = word(page, TABLE_OFFSET).unwrap_or(0);
    (valid >> 32 & 1, (valid & 0xffff_ffff).min(MAX_ROWS))
}

/// A thread asleep at the time of that check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Asleep {
    /// Thread id.
    pub tid: u64,
    /// Start of the sleep, or of the call, nanoseconds.
    pub since: u64,
    /// The call that it is in, if one is known: kind of wait, and object.
    pub call: Option<(u32, u64)>,
}

/// Threads asleep at the time of that check.
pub fn asleep(page: &[u8]) -> impl Iterator<Item = Asleep> + '_ {
    let (table, rows) = valid_table(page);
    (0..rows).filter_map(move |number| {
        let (row, call) = (row(table, number), call(table, number));
        let kind = word(page, call).and_then(|kind| u32::try_from(kind).ok()).filter(|kind| *kind != 0);
        Some(Asleep {
            tid: word(page, row)?,
            since: word(page, row + 8)?,
            call: kind.zip(word(page, call + 8)),
        })
    })
}

fn word(page: &[u8], offset: u64) -> Option<u64> {
    page.get(offset as usize..)?.first_chunk().map(|bytes| u64::from_le_bytes(*bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_fit_into_the_page_and_do_not_overlap() {
        assert_eq!(row(0, MAX_ROWS), look(1));
        assert!(row(1, MAX_ROWS) <= call(0, 0));
        assert!(call(1, MAX_ROWS) <= BYTES as u64);
    }

    #[test]
    fn damaged_pages_have_no_more_rows_than_a_table() {
        let mut page = [0xff; BYTES];
        assert_eq!(until(&page), None);
        assert_eq!(asleep(&page).count() as u64, MAX_ROWS);
        assert_eq!(asleep(&page[..200]).count(), 0);
        page[64..72].copy_from_slice(b"tskalive");
        page[72..80].copy_from_slice(&17_u64.to_le_bytes());
        page[80..88].copy_from_slice(&table(1, 1).to_le_bytes());
        page[2112..2120].copy_from_slice(&5_u64.to_le_bytes());
        page[2128..2136].copy_from_slice(&9_u64.to_le_bytes());
        page[2136..2144].copy_from_slice(&3_u64.to_le_bytes());
        assert_eq!((until(&page), looked(&page)), (Some(17), Some(5)));
        let known = Asleep { tid: 9, since: 3, call: None };
        // Older pages have no calls; this one has an impossible kind.
        assert!(asleep(&page[..4096]).eq([known]) && asleep(&page).eq([known]));
        page[6224..6232].copy_from_slice(&27_u64.to_le_bytes());
        page[6232..6240].copy_from_slice(&5_u64.to_le_bytes());
        assert!(asleep(&page).eq([Asleep { call: Some((27, 5)), ..known }]));
        assert_eq!(until(&page[..75]), None);
    }
}
