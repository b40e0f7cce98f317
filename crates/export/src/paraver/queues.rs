//! Device queues as a Paraver view, `device.prv`: a row for each lane of each queue, with the name of the running
//! operation as value. A second type holds its kind.

use super::{write_pcf, write_row, write_whole};
use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::Path;
use taskscope_execution::devices::{Devices, Queue};
use taskscope_execution::view::{ViewDescription, ViewType};
use taskscope_files::remove_regular;

/// Types of the view's events.
const NAME: u32 = 6600;
const KIND: u32 = 6601;

/// Writes `device.prv`, `.pcf` and `.row` into `directory`, with times since `origin_ns`. Returns whether
/// there was anything to write.
///
/// # Errors
/// Those of the files, of which none is left then.
pub fn write_queues(devices: &Devices, origin_ns: u64, directory: &Path) -> io::Result<bool> {
    let written = write_files(devices, origin_ns, directory);
    if written.is_err() {
        for extension in ["prv", "pcf", "row"] {
            remove_regular(&directory.join(format!("device.{extension}")));
        }
    }
    written
}

fn write_files(devices: &Devices, origin_ns: u64, directory: &Path) -> io::Result<bool> {
    let (rows, first_rows) = rows(devices);
    if rows.is_empty() {
        return Ok(false);
    }
    let mut names = Labels::default();
    let mut kinds = Labels::default();
    // Time, row, end before begin, name, kind.
    let mut events: Vec<(u64, usize, bool, u32, u32)> = Vec::new();
    for (queue, first) in devices.queues.iter().zip(first_rows) {
        for operation in &queue.operations {
            let Some(lane) = operation.lane else { continue };
            let [start, end] = [operation.start, operation.end].map(|time| time.saturating_sub(origin_ns));
            // Ends precede begins: of an operation without time, the row would show the begin until its next event.
            if end <= start {
                continue;
            }
            let name = match queue.name_of(operation.name) {
                "" => operation.kind_name(),
                name => name,
            };
            let (name, kind) = (names.value(name), kinds.value(operation.kind_name()));
            let row = first + lane as usize;
            events.push((start, row, true, name, kind));
            events.push((end, row, false, 0, 0));
        }
    }
    events.sort_unstable();
    let end = events.last().map_or(0, |event| event.0);
    let path = |extension: &str| directory.join(format!("device.{extension}"));
    write_whole(&path("prv"), |out| {
        writeln!(out, "#Paraver (19/01/38 at 03:14):{end:020}_ns:0:1:1({}:1)", rows.len())?;
        events.iter().try_for_each(|(time, row, _, name, kind)| {
            writeln!(out, "2:0:1:1:{}:{time}:{NAME}:{name}:{KIND}:{kind}", row + 1)
        })
    })?;
    let types = vec![
        ViewType { number: NAME, title: "Device: operation".to_owned(), values: names.list() },
        ViewType { number: KIND, title: "Device: kind of operation".to_owned(), values: kinds.list() },
    ];
    let description = ViewDescription { types, rows };
    write_whole(&path("pcf"), |out| write_pcf(out, &description))?;
    write_whole(&path("row"), |out| write_row(out, &description))?;
    Ok(true)
}

/// A label for each lane, and the first row of each queue.
fn rows(devices: &Devices) -> (Vec<String>, Vec<usize>) {
    let lanes =
        |queue: &Queue| queue.operations.iter().filter_map(|o| o.lane).max().map_or(0, |lane| lane + 1);
    let (mut rows, mut first_rows) = (Vec::new(), Vec::new());
    for queue in &devices.queues {
        first_rows.push(rows.len());
        let count = lanes(queue);
        rows.extend(
            (0..count).map(|lane| {
                if count == 1 { queue.name.clone() } else { format!("{} lane {lane}", queue.name) }
            }),
        );
    }
    (rows, first_rows)
}

/// Values from 1 for labels, in the order of their first use; 0 is idle.
#[derive(Default)]
struct Labels(BTreeMap<String, u32>);

impl Labels {
    fn value(&mut self, label: &str) -> u32 {
        if let Some(value) = self.0.get(label) {
            return *value;
        }
        let value = self.0.len() as u32 + 1;
        self.0.insert(label.to_owned(), value);
        value
    }

    fn list(self) -> Vec<(i64, String)> {
        let mut list: Vec<_> = self.0.into_iter().map(|(label, value)| (i64::from(value), label)).collect();
        list.sort_unstable();
        list
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use taskscope_execution::devices::DeviceOperation;

    #[test]
    fn a_lane_is_a_row_and_ends_precede_begins() {
        let operation = |name, start, end, lane| DeviceOperation {
            name,
            start,
            end,
            lane: Some(lane),
            kind: 1,
            ..DeviceOperation::default()
        };
        let queue = Queue {
            name: "q".into(),
            names: vec![String::new(), "a".into(), "b".into()],
            operations: vec![
                operation(1, 110, 120, 0),
                operation(2, 115, 130, 1),
                operation(1, 120, 125, 0),
                // Without time in the view.
                operation(1, 127, 127, 0),
                operation(1, 90, 100, 1),
            ],
            ..Queue::default()
        };
        let directory = tempfile::tempdir().unwrap();
        let devices = Devices { queues: vec![queue], calls: Vec::new(), ..Devices::default() };
        assert!(write_queues(&devices, 100, directory.path()).unwrap());
        let read = |name: &str| std::fs::read_to_string(directory.path().join(name)).unwrap();
        assert_eq!(
            read("device.prv"),
            "#Paraver (19/01/38 at 03:14):00000000000000000030_ns:0:1:1(2:1)\n\
             2:0:1:1:1:10:6600:1:6601:1\n\
             2:0:1:1:2:15:6600:2:6601:1\n\
             2:0:1:1:1:20:6600:0:6601:0\n\
             2:0:1:1:1:20:6600:1:6601:1\n\
             2:0:1:1:1:25:6600:0:6601:0\n\
             2:0:1:1:2:30:6600:0:6601:0\n"
        );
        assert!(read("device.row").ends_with("SIZE 2\nq lane 0\nq lane 1\n"));
        assert!(read("device.pcf").contains("1    a\n2    b\n"));
        assert!(!write_queues(&Devices::default(), 0, directory.path()).unwrap());
        // If labels cannot be written, the records are removed.
        std::fs::remove_file(directory.path().join("device.row")).unwrap();
        std::fs::create_dir(directory.path().join("device.row")).unwrap();
        assert!(write_queues(&devices, 100, directory.path()).is_err());
        assert!(!directory.path().join("device.prv").exists());
    }
}
