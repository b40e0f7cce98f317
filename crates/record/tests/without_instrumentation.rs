//! Without the feature `instrument` every call does nothing:
//! `cargo test -p taskscope-record --no-default-features --test without_instrumentation`.

#![cfg(not(feature = "instrument"))]

use taskscope_record::instrument::sinks::{self, LiveEvent, Sink};
use taskscope_record::instrument::{self, *};
use taskscope_record::span;

/// Fails when it hears of anything.
struct Deaf;

impl Sink for Deaf {
    fn event(&mut self, _: &LiveEvent<'_>) {
        panic!("an event was shown");
    }
}

#[test]
fn nothing_is_recorded() {
    static KEY: Key = Key::new("key", "").unit("bytes").stacked();
    static STATE: StateName = StateName::new("state", "").counts_as(Class::Idle);
    static DOMAIN: Domain = Domain::new("domain", "");
    static KIND: TaskKind = TaskKind::new("kind");
    static TYPE: TaskType = TaskType::new("type");
    static VALUE: Value = Value::new("value");
    let parent = tempfile::tempdir().unwrap();
    let directory = parent.path().join("trace");
    sinks::add(Deaf);
    instrument::start(&directory).unwrap();
    assert!(!instrument::start_from_environment() && !instrument::attach());
    instrument::switch_on();
    instrument::set_enabled("", true);
    assert!(!instrument::is_on());
    let names = (KEY.number(), STATE.number(), find_key("key"), task_kind("kind", "file", 1));
    assert_eq!(names, (None, None, Err(UnknownName), None));
    assert_eq!((KEY.value("name", ""), KEY.is_on()), (0, false));
    {
        let _span = span!("span");
        let _burst = KEY.burst(1);
        let mut state = STATE.enter_with(&KEY, 1);
        state = STATE.enter_with(&KEY, 2);
        let _hidden = hide_states();
        drop(state);
        STATE.enter().change_to(&STATE);
        composite(&[(&KEY, 1)]);
        VALUE.set(1);
        point();
        KEY.point(1);
        DOMAIN.send(DOMAIN.next_id(), Content::default());
        name_data(&directory, "name");
    }
    assert_eq!(TYPE.create().id(), 0);
    assert_eq!(TYPE.create().run(|| 7), 7);
    let task = KIND.create();
    assert_eq!((task.id(), TaskContext::with_kind(1).id()), (0, 0));
    task.enter().end();
    TaskContext::with_id(5).enter().yield_now();
    TaskContext::with_id(5).ready();
    assert_eq!((instrument::finish(), directory.exists()), (0, false));
    sinks::remove_all();
}
