//! The records of a timeline, before they have a format.

use crate::{STORED, for_each_timeline, opened};
use std::collections::BTreeMap;
use taskscope_export::timeline::{Content, LaneKind, Run, Timeline};

#[test]
fn sections_tile_the_lives_of_threads() {
    let mut arrows = BTreeMap::new();
    for_each_timeline(|name, timeline, sums| {
        for (number, lane) in timeline.lanes().iter().enumerate() {
            if let LaneKind::Thread(_) = lane.kind {
                let ns = sums.ns.get(&(number as u32)).copied().unwrap_or(0);
                assert_eq!(ns, lane.last - lane.first, "{name}: {}", lane.name);
            }
        }
        for arrow in (0..timeline.arrow_count()).map(|number| timeline.arrow(number)) {
            *arrows.entry(arrow.kind.name()).or_insert(0u64) += 1;
        }
    });
    assert_eq!(
        arrows.keys().copied().collect::<Vec<_>>(),
        ["creation", "dependence", "message", "submission", "wake"]
    );
}

#[test]
fn ranges_have_the_operations_in_them() {
    let operations = |part: Option<(u64, u64)>| {
        let mut session = opened(STORED[3], "..");
        if let Some((begin, end)) = part {
            session.execution.cut(begin, end);
        }
        let mut names = session.names();
        let timeline = Timeline::of(&session.execution, &session.devices, &mut names, Run::default());
        let (begin, end) = part.unwrap_or((0, u64::MAX));
        assert!(timeline.lanes().iter().all(|lane| lane.first >= begin && lane.last <= end), "{part:?}");
        timeline.count(Content::Operations)
    };
    let whole = operations(None);
    let (begin, end) = opened(STORED[3], "..").devices.range();
    let borders = [0, 30, 60, 80, 100].map(|percent| begin + (end + 1 - begin) * percent / 100);
    let parts: Vec<u64> = borders.windows(2).map(|pair| operations(Some((pair[0], pair[1])))).collect();
    // Operations across a border are in two parts.
    assert!(
        parts.iter().sum::<u64>() >= whole && parts.iter().all(|part| *part < whole),
        "{parts:?} of {whole}"
    );
}
