//! A run as records in time order, for formats that show it over time.
//!
//! ```text
//! Execution ─┐            ┌ lanes, codes, counters, arrows (tables)
//! Devices   ─┼▶ Timeline ─┤
//! Names     ─┘            └ play: Enter, Leave, arrow ends, counter values in time order ──▶ an Export
//! ```
//!
//! **Invariants** that an [`Export`] may rely on:
//! - times never decrease; times of one lane are complete: `Enter` and `Leave` alternate, and `Leave` is at the end
//!   that `Enter` announced;
//! - intervals of a lane do not overlap; overlapping operations of a queue are in several lanes;
//! - both ends of an arrow are delivered, inside of a section, the begin before the end or at the same time;
//! - each number that a record has is an index into a table of the [`Timeline`].
//!
//! Lanes beside a thread ([`LaneKind::beside`]) show some of its time once more: uncertain intervals, waits for other
//! threads, collective operations.
//!
//! Nothing is dropped without a count: [`Timeline::dropped`] has the arrows that cannot be drawn and operations without times, and an export declares
//! with [`Export::holds`] the contents that its format has no form for; [`losses`] joins both.
//!
//! Samples are records of exports that hold them, if [`Timeline::find_steps`] was called before.
//!
//! Memory beside the execution: about 50 bytes an arrow, 24 a sample, 32 a task with a recorded creation, 4 an operation of a device.
//! Sections are read from the execution one by one.
//!
//! # An export of one's own
//!
//! A list of the longest sections of each thread, as text:
//!
//! ```
//! use std::io;
//! use taskscope_execution::devices::Devices;
//! use taskscope_execution::graph::{NamedAddress, Names, TaskType};
//! use taskscope_execution::{Change, ExecutionBuilder, ObjectIndex, Observer, Place, Section, SiteIndex, State};
//! use taskscope_export::timeline::{Content, Export, Held, Record, Run, Timeline, losses};
//!
//! /// The longest section of each lane.
//! struct Longest<W: io::Write> {
//!     out: W,
//!     longest: Vec<(u64, u32)>,
//! }
//!
//! impl<W: io::Write> Export for Longest<W> {
//!     fn holds(&self, content: Content) -> Held {
//!         match content {
//!             Content::Sections => Held::As("the longest one of each thread"),
//!             _ => Held::Not("the list has sections only"),
//!         }
//!     }
//!     fn begin(&mut self, timeline: &Timeline<'_>) -> io::Result<()> {
//!         self.longest = vec![(0, 0); timeline.lanes().len()];
//!         Ok(())
//!     }
//!     fn record(&mut self, _: &Timeline<'_>, record: &Record<'_>) -> io::Result<()> {
//!         if let Record::Enter { section, .. } = record {
//!             let longest = &mut self.longest[section.lane as usize];
//!             *longest = (*longest).max((section.end - section.start, section.code));
//!         }
//!         Ok(())
//!     }
//!     fn end(&mut self, timeline: &Timeline<'_>) -> io::Result<()> {
//!         for (lane, (ns, code)) in timeline.lanes().iter().zip(&self.longest) {
//!             writeln!(self.out, "{}: {} {ns} ns", lane.name, timeline.codes()[*code as usize].name)?;
//!         }
//!         Ok(())
//!     }
//! }
//!
//! /// Names of code come from outside: `taskscope_session::Session::names` has those of a recorded program.
//! struct StateNames;
//! impl Names for StateNames {
//!     fn code(&mut self, state: State, _: Place) -> TaskType {
//!         TaskType { name: state.label().to_owned(), ..TaskType::default() }
//!     }
//!     fn site(&mut self, _: SiteIndex) -> TaskType {
//!         TaskType::default()
//!     }
//!     fn object(&mut self, _: ObjectIndex) -> String {
//!         String::new()
//!     }
//!     fn data(&mut self, addresses: &[NamedAddress]) -> Vec<String> {
//!         vec![String::new(); addresses.len()]
//!     }
//! }
//!
//! let mut builder = ExecutionBuilder::new();
//! let process = builder.add_process("host", 1);
//! let thread = builder.add_thread(process, 7);
//! for (at, state) in [(10, State::Serial), (50, State::Task)] {
//!     builder.event(thread, at);
//!     builder.change(thread, at, Change::Becomes(Section::of(state)));
//! }
//! builder.event(thread, 60);
//! let (execution, devices) = (builder.finish(), Devices::default());
//!
//! let timeline = Timeline::of(&execution, &devices, &mut StateNames, Run::default());
//! let mut export = Longest { out: Vec::new(), longest: Vec::new() };
//! timeline.play(&mut export)?;
//! assert_eq!(String::from_utf8(export.out.clone()).unwrap(), format!("thread 7: {} 40 ns\n", State::Serial.label()));
//! assert!(losses(&timeline, &export).iter().any(|loss| loss.content == "counters"));
//! # Ok::<(), io::Error>(())
//! ```

mod arrows;
mod codes;
mod content;
mod counters;
mod export;
mod lanes;
mod play;
mod samples;
mod tables;

pub use arrows::{Arrow, ArrowKind};
pub use codes::Code;
pub use content::{Content, Held, Kept, Loss};
pub use counters::Counter;
pub use export::{Export, Record, Section, holdings, losses};
pub use lanes::{Lane, LaneKind};
pub use samples::{CallPath, FindStep, Sample, Step};
pub use tables::{Collective, Run, Timeline};
