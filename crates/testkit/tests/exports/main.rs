//! Exports over time, of stored recordings: what records promise, and that each format keeps all that it has a form for.

mod otf2;
mod other_formats;
mod paraver;
mod perfetto;
mod records;

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::PathBuf;
use taskscope_export::timeline::{Content, Export, Held, LaneKind, Record, Run, Section, Step, Timeline};
use taskscope_filter::TimeRange;
use taskscope_session::selection::Selection;
use taskscope_session::{ReadProgress, Session};

/// OpenMP tasks with MPI and samples; tasks; instrumented fibers; device queues.
const STORED: [&str; 5] = [
    "traces/pic",
    "shown/runtimes/openmp/cholesky.trace",
    "shown/howto/instrument/fibers.trace",
    "shown/howto/device-queues/queues.trace",
    "shown/howto/threads/orders.trace",
];

fn opened(name: &str, range: &str) -> Session {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../cli/tests").join(name);
    let range = TimeRange::parse(range).unwrap();
    Session::open_part(root, &Selection { range, ..Selection::default() }, &ReadProgress::default()).unwrap()
}

/// Checks and sums the records.
#[derive(Default)]
struct Sums {
    at: u64,
    open: BTreeMap<u32, Section>,
    sections: u64,
    /// Time by lane.
    ns: BTreeMap<u32, u64>,
    begun: BTreeSet<u32>,
    arrows: u64,
    values: u64,
    samples: u64,
}

impl Export for Sums {
    fn holds(&self, _: Content) -> Held {
        Held::As("sums")
    }

    fn begin(&mut self, _: &Timeline<'_>) -> io::Result<()> {
        Ok(())
    }

    fn record(&mut self, timeline: &Timeline<'_>, record: &Record<'_>) -> io::Result<()> {
        let at = match *record {
            Record::Enter { section, .. } => {
                assert!(self.open.insert(section.lane, section).is_none(), "{section:?} overlaps another");
                self.sections += 1;
                *self.ns.entry(section.lane).or_default() += section.end - section.start;
                section.start
            }
            Record::Leave { section, arrows } => {
                assert_eq!(self.open.remove(&section.lane), Some(section));
                for end in arrows {
                    assert!(*end < 2 * timeline.arrow_count());
                }
                section.end
            }
            Record::ArrowStart { number, arrow } => {
                assert!(self.begun.insert(number), "{arrow:?} begins twice");
                self.require_in_section(arrow.from, arrow.position(false));
                arrow.position(false)
            }
            Record::ArrowEnd { number, arrow } => {
                assert!(self.begun.contains(&number), "{arrow:?} ends before it begins");
                self.require_in_section(arrow.to, arrow.position(true));
                self.arrows += 1;
                arrow.position(true)
            }
            Record::Sample(sample) => {
                assert!(matches!(timeline.lanes()[sample.lane as usize].kind, LaneKind::Thread(_)));
                assert!(timeline.steps_of(sample.path).count() > 0);
                self.samples += 1;
                sample.at
            }
            Record::Counter { at, value, .. } => {
                assert!(value >= 0, "counters count things");
                self.values += 1;
                at
            }
        };
        assert!(at >= self.at, "{record:?} comes after {}", self.at);
        self.at = at;
        Ok(())
    }

    fn end(&mut self, timeline: &Timeline<'_>) -> io::Result<()> {
        assert!(self.open.is_empty());
        assert_eq!(self.arrows, u64::from(timeline.arrow_count()), "every arrow is delivered whole");
        assert_eq!(self.begun.len() as u64, self.arrows);
        assert_eq!(self.samples, timeline.samples().len() as u64);
        Ok(())
    }
}

impl Sums {
    fn require_in_section(&self, lane: u32, at: u64) {
        let section = self.open.get(&lane).unwrap_or_else(|| panic!("no section in lane {lane} at {at}"));
        assert!((section.start..=section.end).contains(&at));
    }
}

fn for_each_timeline(mut check: impl FnMut(&str, &Timeline<'_>, &Sums)) {
    for name in STORED {
        for range in ["..", "30%..60%"] {
            let session = opened(name, range);
            let mut names = session.names();
            let run = Run { name: name.to_owned(), start_unix_ns: Some(1_700_000_000_000_000_000) };
            let mut timeline = Timeline::of(&session.execution, &session.devices, &mut names, run);
            timeline.find_steps(&mut |_, address, _, _| Step {
                function: format!("{address:#x}"),
                ..Step::default()
            });
            let mut sums = Sums::default();
            timeline.play(&mut sums).unwrap();
            check(&format!("{name} {range}"), &timeline, &sums);
        }
    }
}

/// Time of lanes beside threads.
fn beside(timeline: &Timeline<'_>, sums: &Sums) -> u64 {
    let is_beside = |lane: &u32| timeline.lanes()[*lane as usize].kind.beside().is_some();
    sums.ns.iter().filter(|(lane, _)| is_beside(lane)).map(|(_, ns)| ns).sum()
}
