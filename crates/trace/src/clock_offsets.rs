//! `clock-offsets.txt`: the offset to add to the clocks of each host.
//!
//! One header line, then per line `rank host median mean standard-deviation`, in nanoseconds; the median counts. A host
//! is the text of a loom's name up to its first dot.

use crate::metadata::MAX_METADATA_BYTES;
use std::fmt::Write as _;
use std::path::Path;
use taskscope_files::read_regular;

/// Maximum distance of two clocks: 73 years. Larger offsets would exceed 63 bits.
const MAX_OFFSET_NS: f64 = (1_u64 << 61) as f64;

/// The line of one host.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ClockOffset {
    /// Rank of the process that measured it.
    pub rank: i64,
    /// Host name.
    pub host: String,
    /// Added to every clock of the host, nanoseconds.
    pub median_ns: f64,
    /// Mean of the samples, nanoseconds.
    pub mean_ns: f64,
    /// Standard deviation of the samples, nanoseconds.
    pub deviation_ns: f64,
}

/// The table of all hosts.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ClockOffsets {
    /// Entries in the order of the file.
    pub entries: Vec<ClockOffset>,
}

impl ClockOffsets {
    /// Reads a table.
    ///
    /// # Errors
    /// A sentence that names the line: unreadable file, not five fields, a number that is none, an offset
    /// of more than 73 years, a host twice, no entries.
    pub fn load(path: &Path) -> Result<ClockOffsets, String> {
        let bytes = read_regular(path, MAX_METADATA_BYTES)
            .map_err(|error| format!("cannot read {}: {error}", path.display()))?;
        ClockOffsets::parse(&String::from_utf8_lossy(&bytes))
    }

    /// Reads a table from its text; errors as [`ClockOffsets::load`].
    pub fn parse(text: &str) -> Result<ClockOffsets, String> {
        let mut entries: Vec<ClockOffset> = Vec::new();
        for (index, line) in text.lines().enumerate().skip(1) {
            if line.trim().is_empty() {
                continue;
            }
            let number = index + 1;
            let fields: Vec<&str> = line.split_whitespace().collect();
            let &[rank, host, median, mean, deviation] = fields.as_slice() else {
                return Err(format!("line {number} of the clock offsets has {} fields, not 5", fields.len()));
            };
            let parse = |field: &str| {
                field
                    .parse::<f64>()
                    .ok()
                    .filter(|value| value.is_finite())
                    .ok_or_else(|| format!("line {number} of the clock offsets: `{field}` is no number"))
            };
            let entry = ClockOffset {
                rank: parse(rank)? as i64,
                host: host.to_owned(),
                median_ns: parse(median)?,
                mean_ns: parse(mean)?,
                deviation_ns: parse(deviation)?,
            };
            if let Some(far) = [median, mean, deviation]
                .into_iter()
                .find(|field| field.parse::<f64>().is_ok_and(|offset| offset.abs() > MAX_OFFSET_NS))
            {
                return Err(format!(
                    "line {number} of the clock offsets: `{far}` ns exceed the limit of 73 years"
                ));
            }
            if entry.rank as f64 != parse(rank)? {
                return Err(format!("line {number} of the clock offsets: `{rank}` is not a rank"));
            }
            if entries.iter().any(|other| other.host == entry.host) {
                return Err(format!("line {number} of the clock offsets: host `{host}` appears twice"));
            }
            entries.push(entry);
        }
        if entries.is_empty() {
            return Err("the file of clock offsets has no entries".to_owned());
        }
        Ok(ClockOffsets { entries })
    }

    /// The offset to add to the clocks of `host`, nanoseconds.
    pub fn offset_ns(&self, host: &str) -> Option<i64> {
        self.entries.iter().find(|entry| entry.host == host).map(|entry| entry.median_ns as i64)
    }

    /// The table as text, in the form that [`ClockOffsets::parse`] reads.
    pub fn to_text(&self) -> String {
        let mut text = format!(
            "{:<10} {:<20} {:<20} {:<20} {:<20}\n",
            "rank", "hostname", "offset_median", "offset_mean", "offset_std"
        );
        for entry in &self.entries {
            let _ = writeln!(
                text,
                "{:<10} {:<20} {:<20} {:<20} {:<20}",
                entry.rank, entry.host, entry.median_ns as i64, entry.mean_ns, entry.deviation_ns
            );
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_survives_writing_and_reading() {
        let text = "rank hostname median mean std\n0 nodeB 5000000 5000000.5 12.5\n1 nodeC -7 -7.5 1\n";
        let table = ClockOffsets::parse(text).unwrap();
        assert_eq!(table.offset_ns("nodeC"), Some(-7));
        assert_eq!(table.offset_ns("nodeX"), None);
        assert_eq!(ClockOffsets::parse(&table.to_text()).unwrap(), table);
    }

    #[test]
    fn malformed_tables_are_refused_with_the_line() {
        let error = ClockOffsets::parse("header\n0 a 1 2\n").unwrap_err();
        assert_eq!(error, "line 2 of the clock offsets has 4 fields, not 5");
        let error = ClockOffsets::parse("header\n0 a 1 2 3\n1 a 1 2 3\n").unwrap_err();
        assert_eq!(error, "line 3 of the clock offsets: host `a` appears twice");
        let error = ClockOffsets::parse("header\n0 a 1 2 3\n1 b -9223372036854775000 2 3\n").unwrap_err();
        assert!(error.starts_with("line 3 of the clock offsets: `-9223372036854775000` ns"), "{error}");
        let error = ClockOffsets::parse("header\n1e30 a 1 2 3\n").unwrap_err();
        assert_eq!(error, "line 2 of the clock offsets: `1e30` is not a rank");
        let error = ClockOffsets::parse("header\n0 a 1 2 1e30\n").unwrap_err();
        assert!(error.starts_with("line 2 of the clock offsets: `1e30` ns"), "{error}");
        assert_eq!(ClockOffsets::parse("header\n").unwrap_err(), "the file of clock offsets has no entries");
    }
}
