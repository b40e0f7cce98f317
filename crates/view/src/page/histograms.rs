//! Histograms of body times.

use rustc_hash::FxHashMap;
use taskscope_analysis::Analysis;
use taskscope_execution::{Execution, NO_TIME, TypeIndex};

/// Body times of each task type, in the order of the report's: classes of a quarter octave, each
/// with its lower limit in nanoseconds and the number of tasks in it.
pub(super) fn histograms(execution: &Execution, analysis: &Analysis) -> Vec<Vec<(u64, u64)>> {
    let shown = analysis.task_types.iter().map(|row| row.ty).zip(0..);
    let rows: FxHashMap<TypeIndex, usize> = shown.collect();
    let mut classes = vec![[0_u64; CLASSES]; rows.len()];
    // A task mostly is of the type of the one before.
    let mut last = (TypeIndex::NONE, rows.get(&TypeIndex::NONE).copied());
    let begun = execution.tasks.began.iter().zip(&execution.tasks.ty).zip(&analysis.body_times);
    for ((_, ty), ns) in begun.filter(|((began, _), _)| **began != NO_TIME) {
        if last.0 != *ty {
            last = (*ty, rows.get(ty).copied());
        }
        if let Some(row) = last.1 {
            classes[row][quarter_octave(*ns) as usize] += 1;
        }
    }
    let counted = |classes: &[u64; CLASSES]| {
        let rows = classes.iter().enumerate().filter(|(_, count)| **count > 0);
        rows.map(|(class, count)| (lower_limit(class as u32), *count)).collect()
    };
    classes.iter().map(counted).collect()
}

/// Classes of times of 64 bits.
const CLASSES: usize = 252;

/// The class of a time: its power of two and the two bits below.
fn quarter_octave(ns: u64) -> u32 {
    if ns < 4 {
        return ns as u32;
    }
    let power = ns.ilog2();
    4 * (power - 1) + ((ns >> (power - 2)) & 3) as u32
}

fn lower_limit(class: u32) -> u64 {
    if class < 4 { u64::from(class) } else { u64::from(4 + class % 4) << (class / 4 - 1) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_of_times_start_at_their_lower_limits() {
        assert_eq!(quarter_octave(u64::MAX) as usize + 1, CLASSES);
        for ns in (0..5000).chain([1 << 40, (1 << 40) + (1 << 38), u64::MAX]) {
            let class = quarter_octave(ns);
            assert!(lower_limit(class) <= ns, "{ns}");
            assert!(class == quarter_octave(u64::MAX) || lower_limit(class + 1) > ns, "{ns}");
        }
    }
}
