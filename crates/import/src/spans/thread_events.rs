//! The order of events in a thread: begins and ends of spans, with flows and points between them.
//!
//! At one time ends come before begins, and both before marks, so that a mark at the border of two spans belongs to the
//! second one. A mark at the end of all open spans belongs to the innermost of them.
//!
//! Invariant: the steps of a thread never go back in time, and each opened span is closed innermost first: a span that
//! ends below others is reached by suspending these.

use super::run::{Span, Thread};
use std::cmp::Reverse;

/// Spans that may be open at one time. Contexts of tasks have room for 4096.
const MAX_DEPTH: usize = 4000;

/// Open spans that may end before a new one does: each of these ends suspends and resumes it. So a span has at most
/// `2 + 2 * MAX_CROSSED` events.
const MAX_CROSSED: usize = 64;

/// A moment in a thread, with the row of its content.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Mark {
    /// A flow ends.
    Receive(u32),
    /// A point.
    Point(u32),
    /// A flow begins.
    Send(u32),
}

/// An event of a thread. Numbers are rows of its spans.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// A span begins.
    Enter(u32),
    /// A span ends, which is the innermost.
    Leave(u32),
    /// The innermost span gives way to the end of one below it.
    Suspend(u32),
    /// It resumes.
    Resume(u32),
    /// A flow or a point.
    Mark(Mark),
}

/// Irregularities of a thread's spans.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Irregular {
    /// Spans that end below another one.
    pub overlaps: u64,
    /// Spans inside of too many others, which were left out.
    pub too_deep: u64,
    /// Spans that outlast too many others in which they begin, which were left out.
    pub too_crossed: u64,
}

/// Hands the steps of a thread to `take`, in the order of time. `marks` are sorted.
pub(super) fn play(thread: &Thread, marks: &[(u64, Mark)], mut take: impl FnMut(u64, Step)) -> Irregular {
    let spans = &thread.spans;
    let mut order: Vec<u32> = (0..spans.len() as u32).collect();
    order.sort_by_key(|row| (spans[*row as usize].start, Reverse(spans[*row as usize].end)));
    let mut irregular = Irregular::default();
    let (mut order, mut marks) = (order.into_iter().peekable(), marks.iter().peekable());
    let mut open: Vec<u32> = Vec::new();
    // Ends of the open spans: the earliest one last, of equal ones that of the newest span.
    let mut ends: Vec<(u64, u32)> = Vec::new();
    let start = |row: u32| spans[row as usize].start;
    loop {
        let enter = order.peek().map(|row| start(*row));
        let leave = ends.last().copied();
        let mark = marks.peek().map(|(at, _)| *at);
        let Some(at) = [enter, leave.map(|(at, _)| at), mark].into_iter().flatten().min() else { break };
        let takes_mark = |row: u32| start(row) == at || ends.first().is_none_or(|(latest, _)| *latest == at);
        match leave.filter(|(end, _)| *end == at) {
            Some((_, row)) if mark != Some(at) || enter == Some(at) || !takes_mark(row) => {
                ends.pop();
                close(&mut open, row, at, &mut irregular, &mut take);
            }
            None if enter == Some(at) => {
                let Some(row) = order.next() else { break };
                if open.len() == MAX_DEPTH {
                    irregular.too_deep += 1;
                    continue;
                }
                let end = spans[row as usize].end;
                // Few: those behind it are outlasted.
                let place = ends.partition_point(|(other, _)| *other >= end);
                if ends.len() - place > MAX_CROSSED {
                    irregular.too_crossed += 1;
                    continue;
                }
                open.push(row);
                ends.insert(place, (end, row));
                take(at, Step::Enter(row));
            }
            _ => {
                let Some((_, mark)) = marks.next() else { break };
                take(at, Step::Mark(*mark));
            }
        }
    }
    irregular
}

fn close(
    open: &mut Vec<u32>,
    row: u32,
    at: u64,
    irregular: &mut Irregular,
    take: &mut impl FnMut(u64, Step),
) {
    let Some(depth) = open.iter().rposition(|other| *other == row) else { return };
    irregular.overlaps += u64::from(depth + 1 < open.len());
    open[depth + 1..].iter().rev().for_each(|above| take(at, Step::Suspend(*above)));
    take(at, Step::Leave(row));
    open.remove(depth);
    open[depth..].iter().for_each(|above| take(at, Step::Resume(*above)));
}

/// The begin of the first span at or after `at`; spans are given by their begins, sorted.
pub(crate) fn next_begin(begins: &[u64], at: u64) -> Option<u64> {
    begins.get(begins.partition_point(|begin| *begin < at)).copied()
}

/// The begins of spans, sorted.
pub(crate) fn begins(spans: &[Span]) -> Vec<u64> {
    let mut begins: Vec<u64> = spans.iter().map(|span| span.start).collect();
    begins.sort_unstable();
    begins
}

#[cfg(test)]
mod tests {
    use super::*;

    fn thread(spans: &[(u64, u64)]) -> Thread {
        let spans = spans.iter().map(|(start, end)| Span { start: *start, end: *end, kind: 0 });
        Thread { spans: spans.collect(), ..Thread::default() }
    }

    fn steps(spans: &[(u64, u64)], marks: &[u64]) -> (Vec<String>, Irregular) {
        let marks: Vec<_> = marks.iter().map(|at| (*at, Mark::Point(0))).collect();
        let mut steps = Vec::new();
        let irregular = play(&thread(spans), &marks, |at, step| {
            steps.push(match step {
                Step::Enter(row) => format!("{at} +{row}"),
                Step::Leave(row) => format!("{at} -{row}"),
                Step::Suspend(row) => format!("{at} <{row}"),
                Step::Resume(row) => format!("{at} >{row}"),
                Step::Mark(_) => format!("{at} !"),
            });
        });
        (steps, irregular)
    }

    #[test]
    fn nested_spans_close_innermost_first() {
        let (steps, irregular) = steps(&[(2, 5), (0, 10), (2, 8), (5, 8), (10, 10)], &[]);
        let expected = ["0 +1", "2 +2", "2 +0", "5 -0", "5 +3", "8 -3", "8 -2", "10 -1", "10 +4", "10 -4"];
        assert_eq!((steps, irregular), (expected.map(str::to_owned).to_vec(), Irregular::default()));
    }

    #[test]
    fn a_span_that_ends_below_others_suspends_them() {
        let (steps, irregular) = steps(&[(0, 10), (2, 6), (4, 8)], &[]);
        assert_eq!(steps, ["0 +0", "2 +1", "4 +2", "6 <2", "6 -1", "6 >2", "8 -2", "10 -0"]);
        assert_eq!(irregular, Irregular { overlaps: 1, ..Irregular::default() });
    }

    #[test]
    fn marks_belong_to_the_span_that_begins() {
        assert_eq!(steps(&[(0, 5), (5, 9)], &[5]).0, ["0 +0", "5 -0", "5 +1", "5 !", "9 -1"]);
        assert_eq!(steps(&[(0, 5)], &[5]).0, ["0 +0", "5 !", "5 -0"]);
        assert_eq!(steps(&[(0, 9), (2, 5)], &[5]).0, ["0 +0", "2 +1", "5 -1", "5 !", "9 -0"]);
        assert_eq!(steps(&[(0, 9), (5, 5)], &[5]).0, ["0 +0", "5 +1", "5 !", "5 -1", "9 -0"]);
        assert_eq!(steps(&[], &[5]).0, ["5 !"]);
    }

    #[test]
    fn spans_in_too_many_others_are_counted() {
        let spans: Vec<_> = (0..MAX_DEPTH as u64 + 2).map(|depth| (depth, 100_000 - depth)).collect();
        let (steps, irregular) = steps(&spans, &[]);
        assert_eq!((steps.len(), irregular.too_deep), (2 * MAX_DEPTH, 2));
    }

    #[test]
    fn spans_with_the_same_end_close_newest_first() {
        let (steps, irregular) = steps(&[(0, 9), (1, 5), (2, 9), (3, 9), (4, 7)], &[9]);
        let expected =
            ["0 +0", "1 +1", "2 +2", "3 +3", "4 +4", "5 <4", "5 <3", "5 <2", "5 -1", "5 >2", "5 >3", "5 >4"];
        assert_eq!(steps[..12], expected);
        assert_eq!(steps[12..], ["7 -4", "9 !", "9 -3", "9 -2", "9 -0"]);
        assert_eq!(irregular, Irregular { overlaps: 1, ..Irregular::default() });
    }

    #[test]
    fn spans_that_outlast_too_many_others_are_counted() {
        let spans: Vec<_> = (0..1000).map(|begin| (begin, begin + 500)).collect();
        let (steps, irregular) = steps(&spans, &[]);
        assert!(irregular.too_crossed > 0 && irregular.too_deep == 0, "{irregular:?}");
        let kept = 1000 - irregular.too_crossed as usize;
        assert!(steps.len() <= kept * (2 + 2 * MAX_CROSSED), "{kept}: {}", steps.len());
        let count = |sign: &str| steps.iter().filter(|step| step.contains(sign)).count();
        assert_eq!((count("+"), count("-"), count("<")), (kept, kept, count(">")));
    }
}
