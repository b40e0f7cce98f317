//! `clock-drift.txt`: the drift of each host's clock against that of the first host.
//!
//! One header line, then per line `host since drift`: in addition to its offset, a clock that shows `since + t`
//! nanoseconds is corrected by `t * drift / 10^12`. `taskscope sync` writes it beside `clock-offsets.txt`. The latter
//! has ovni's form, with one number per host; tools without support for this file apply that number alone.

use crate::metadata::MAX_METADATA_BYTES;
use std::fmt::Write as _;
use std::path::Path;
use taskscope_files::read_regular;

/// No clock that keeps time is further off than a thousandth.
const MAX_DRIFT: i64 = 1_000_000_000;

const UNITS: i128 = 1_000_000_000_000;

/// The correction of a host's clocks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClockCorrection {
    /// Nanoseconds, whenever.
    pub offset_ns: i64,
    /// The uncorrected clock from which the drift counts.
    pub since_ns: i64,
    /// Added for each nanosecond since then, in units of 10⁻¹² ns.
    pub drift: i64,
}

impl ClockCorrection {
    /// The corrected clock.
    #[inline]
    pub fn apply(&self, clock_ns: i64) -> i64 {
        let clock = clock_ns.saturating_add(self.offset_ns);
        if self.drift == 0 {
            return clock;
        }
        let passed = i128::from(clock_ns) - i128::from(self.since_ns);
        clock.saturating_add((passed * i128::from(self.drift) / UNITS) as i64)
    }
}

/// The drift of one host's clock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClockDrift {
    /// Host name.
    pub host: String,
    /// See [`ClockCorrection::since_ns`].
    pub since_ns: i64,
    /// See [`ClockCorrection::drift`].
    pub drift: i64,
}

/// Reads the table of all hosts.
///
/// # Errors
/// A sentence that names the line.
pub fn load_drifts(path: &Path) -> Result<Vec<ClockDrift>, String> {
    let bytes = read_regular(path, MAX_METADATA_BYTES)
        .map_err(|error| format!("cannot read {}: {error}", path.display()))?;
    parse_drifts(&String::from_utf8_lossy(&bytes))
}

fn parse_drifts(text: &str) -> Result<Vec<ClockDrift>, String> {
    let mut drifts: Vec<ClockDrift> = Vec::new();
    for (index, line) in text.lines().enumerate().skip(1).filter(|(_, line)| !line.trim().is_empty()) {
        let number = index + 1;
        let fields: Vec<&str> = line.split_whitespace().collect();
        let &[host, since, drift] = fields.as_slice() else {
            return Err(format!("line {number} of the clock drifts has {} fields, not 3", fields.len()));
        };
        let parse = |field: &str| {
            field
                .parse::<i64>()
                .map_err(|_| format!("line {number} of the clock drifts: `{field}` is no integer"))
        };
        let (since_ns, drift) = (parse(since)?, parse(drift)?);
        if drift.unsigned_abs() > MAX_DRIFT as u64 {
            return Err(format!("line {number} of the clock drifts: {drift} is more than a thousandth"));
        }
        if drifts.iter().any(|other| other.host == host) {
            return Err(format!("line {number} of the clock drifts: host `{host}` appears twice"));
        }
        drifts.push(ClockDrift { host: host.to_owned(), since_ns, drift });
    }
    Ok(drifts)
}

/// The table as text, in the form that [`load_drifts`] reads.
pub fn drifts_to_text(drifts: &[ClockDrift]) -> String {
    let mut text = format!("{:<20} {:<20} {:<20}\n", "hostname", "since_ns", "drift_ns_per_1000_s");
    for row in drifts {
        let _ = writeln!(text, "{:<20} {:<20} {:<20}", row.host, row.since_ns, row.drift);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_that_runs_fast_is_slowed_down() {
        let correction = ClockCorrection { offset_ns: -50, since_ns: 1_000_000, drift: -20_000_000 };
        assert_eq!(correction.apply(1_000_000), 999_950);
        // 20 ppm of a second are 20 µs.
        assert_eq!(correction.apply(1_001_000_000), 1_000_999_950 - 20_000);
        assert_eq!(correction.apply(0), -50 + 20);
        for clock in [i64::MIN, i64::MAX] {
            correction.apply(clock);
        }
        let most = ClockCorrection { offset_ns: 0, since_ns: i64::MAX, drift: -MAX_DRIFT };
        assert!(most.apply(10_000) > most.apply(9_000), "time goes on");
    }

    #[test]
    fn a_table_survives_writing_and_reading() {
        let drifts = vec![ClockDrift { host: "b".to_owned(), since_ns: 7, drift: -31 }];
        assert_eq!(parse_drifts(&drifts_to_text(&drifts)).unwrap(), drifts);
        for bad in [
            "h\na 1\n",
            "h\na 1 x\n",
            "h\na 1 2\na 1 2\n",
            "h\na 1 1000000001\n",
            "h\na 1 -9223372036854775808\n",
        ] {
            assert!(parse_drifts(bad).unwrap_err().starts_with("line "), "{bad}");
        }
    }
}
