//! Buckets and values, packed for a browser.

use rayon::prelude::*;
use taskscope_execution::lod::{Bucket, Values, Window};
use taskscope_session::model_views::ValueRow;

/// One bucket in 32 bits: class, share of 255, flags, share of 255 that is uncertain.
pub(super) fn packed(bucket: Bucket) -> u32 {
    u32::from(bucket.class)
        | u32::from(bucket.share_of_255) << 8
        | u32::from(bucket.flags.0) << 16
        | u32::from(bucket.uncertain_of_255) << 24
}

/// Rows of buckets for rows of values, little-endian: all buckets row by row, then the value of the longest
/// interval of each, 0 for none. If most of a bucket is empty, its class marks it as empty and its value is
/// that of an interval in it, so that short intervals stay visible. `mark` may flag the buckets of a row.
pub(super) fn packed_values(
    rows: &[&ValueRow],
    window: Window,
    mark: impl Fn(usize, &mut [Bucket]) + Sync,
) -> Vec<u8> {
    let buckets: Vec<Vec<Bucket>> = (rows.par_iter().enumerate())
        .map(|(number, row)| {
            let mut buckets = Vec::with_capacity(window.count as usize);
            row.pyramid.buckets(&row.values, window, |bucket| buckets.push(bucket));
            show_what_is_short(&row.values, window, &mut buckets);
            mark(number, &mut buckets);
            buckets
        })
        .collect();
    let mut bytes = Vec::with_capacity(8 * rows.len() * window.count as usize);
    for bucket in buckets.iter().flatten() {
        bytes.extend_from_slice(&packed(*bucket).to_le_bytes());
    }
    for (row, buckets) in rows.iter().zip(&buckets) {
        for bucket in buckets {
            let value = row.values.value.get(bucket.longest as usize).copied().unwrap_or(0);
            bytes.extend_from_slice(&small(value).to_le_bytes());
        }
    }
    bytes
}

/// Replaces the longest interval of buckets by a value that begins or ends in them, if the longest is empty.
fn show_what_is_short(values: &Values, window: Window, buckets: &mut [Bucket]) {
    let (start, value): (&[u64], &[i64]) = (&values.start, &values.value);
    for (number, bucket) in (0_u64..).zip(buckets).filter(|(_, bucket)| bucket.starts > 0) {
        let gap = bucket.longest as usize;
        if value.get(gap) != Some(&0) {
            continue;
        }
        let from = (window.first + number) << window.width_log2;
        let to = from.saturating_add(1 << window.width_log2);
        // Neighbours differ, so those of a gap are something.
        if start[gap] > from && gap > 0 {
            bucket.longest -= 1;
        } else if start.get(gap + 1).is_some_and(|next| *next < to) {
            bucket.longest += 1;
        }
    }
}

/// A value in 32 bits for the browser: itself if it fits, else a hash that is never 0 for a nonzero value.
fn small(value: i64) -> u32 {
    match u32::try_from(value) {
        Ok(small) => small,
        Err(_) => ((value ^ value >> 32) as u32).max(1),
    }
}
