//! The table of waits between threads, of traces and profiles.

use crate::format::{Unit, count, time};
use crate::section::Section;
use crate::sheet::Sheet;
use crate::thread_waits::ThreadWaitTimes;

/// Writes the `top` first rows, each with as many parts; `process` returns the words for a row of a process.
pub(crate) fn write_waits(
    sheet: &mut Sheet,
    rows: &[ThreadWaitTimes],
    (unit, top): (Unit, usize),
    process: impl Fn(&str, Option<i64>) -> String,
) {
    if rows.is_empty() {
        return;
    }
    let waited = format!("waited {}", unit.short());
    let columns = [(&*waited, 10), ("waits", 10), ("longest", 10)];
    sheet.heading("Waits of threads for each other (all threads)", &columns);
    for row in rows.iter().take(top) {
        let values = [unit.show(row.waited_ns), count(row.waits), time(row.longest_ns)];
        let columns: Vec<(&str, usize)> = values.iter().map(|value| (value.as_str(), 10)).collect();
        let place = row.place.as_deref().unwrap_or("code that is not known");
        let name = match &row.object {
            Some(object) => format!("{} {object}: {place}", row.kind),
            None => format!("{}: {place}", row.kind),
        };
        sheet.row(0, &process(&name, row.pid), &columns);
        for part in row.parts.iter().take(top) {
            sheet.row(4, &part.text(), &[(&unit.show(part.ns), 10)]);
        }
    }
    sheet.more(rows.len().saturating_sub(top), Section::Waits.name(), top);
}

/// The table of a profile.
pub fn profile_waits_text(rows: &[ThreadWaitTimes], top: usize, width: usize) -> String {
    let longest = rows.iter().map(|row| row.waited_ns).max().unwrap_or(0);
    let mut sheet = Sheet::new(width);
    let pids = crate::format::Pids::of(rows.iter().map(|row| row.pid));
    write_waits(&mut sheet, rows, (Unit::for_total(longest), top), |name, pid| pids.beside(name, pid));
    sheet.text
}
