//! The plugin of the Nanos++ articles as a sink: it requests stacked bursts and prints the items of each
//! switch, as their template plugin does with its list of events.
//!
//! `cargo run -p taskscope-record --example stacked_bursts_sink`

use taskscope_record::instrument::sinks::{self, Behaviour, LiveEvent, Shown, Sink};
use taskscope_record::instrument::{Key, StateName, TaskKind};

struct Plugin {
    events: usize,
}

impl Sink for Plugin {
    fn behaviour(&self) -> Behaviour {
        Behaviour::StackedBursts
    }

    fn event(&mut self, event: &LiveEvent<'_>) {
        self.events += 1;
        let names = &event.names;
        let line = match event.shown {
            Shown::StateStart(state) => format!("STATE_START {}", names.state(state)),
            Shown::StateEnd(state) => format!("STATE_END {}", names.state(state)),
            Shown::SubstateStart(state) => format!("SUBSTATE_START {}", names.state(state)),
            Shown::SubstateEnd(state) => format!("SUBSTATE_END {}", names.state(state)),
            Shown::BurstStart { key, value } => format!("BURST_START {}={value}", names.key(key)),
            Shown::BurstEnd { key, value } => format!("BURST_END {}={value}", names.key(key)),
            Shown::Point { key, value } => format!("POINT {}={value}", names.key(key)),
            Shown::Send(message) => format!("PTP_START {} {}", names.domain(message.domain), message.id),
            Shown::Receive(message) => format!("PTP_END {} {}", names.domain(message.domain), message.id),
            other => format!("{other:?}"),
        };
        println!("thread {}: {line}", event.thread);
    }

    fn finish(&mut self) {
        println!("{} events", self.events);
    }
}

static RUNNING: StateName = StateName::new("RUNNING", "");
static API: Key = Key::new("api", "Nanos Runtime API").stacked();
static WORK: TaskKind = TaskKind::new("work");

fn main() {
    sinks::add(Plugin { events: 0 });
    let (one, two) = (WORK.create(), WORK.create());
    one.enter_now();
    let running = RUNNING.enter();
    let outer = API.burst(1);
    let inner = API.burst(2);
    // Both bursts end and begin again around the other task.
    one.switch_to(two);
    two.switch_to(one);
    drop((inner, outer));
    drop(running);
    one.end();
    two.end();
    sinks::remove_all();
}
