//! The lines of a call path: the line of its time, and the call sites of its functions.

use rustc_hash::FxHashMap;
use taskscope_profile::named::{CallTree, Label, StepKind};
use taskscope_profile::{Frame, FrameKind};

/// Finds the rows of paths in a view of lines.
#[derive(Default)]
pub(crate) struct PathLines {
    /// The line from which a step calls another; cached, as paths share most pairs.
    calls: FxHashMap<(Frame, Frame), Option<Frame>>,
}

impl PathLines {
    /// The rows of a path, both innermost first: the line of its time, then the calling lines.
    pub(crate) fn push_path(&mut self, names: &mut CallTree, path: &[Frame], lines: &mut Vec<Frame>) {
        lines.push(spent_at(names, path));
        for (inner, outer) in path.iter().zip(path.iter().skip(1)) {
            let call = self.calls.entry((*inner, *outer)).or_insert_with(|| call_line(names, *inner, *outer));
            lines.extend(*call);
        }
    }
}

/// The line of the innermost function, or a row for unknown lines; without a function, the state.
fn spent_at(names: &mut CallTree, path: &[Frame]) -> Frame {
    let what = |frame: &Frame| names.label_of(*frame).map(|label| label.what);
    // If a line in the runtime is unknown, its call site is shown.
    let is_place = |frame: &&Frame| match what(frame) {
        Some(StepKind::Line) => true,
        Some(what) => is_code(what) && frame.kind != FrameKind::Runtime,
        None => false,
    };
    let found = (path.iter().find(is_place))
        .or_else(|| path.iter().find(|frame| frame.kind == FrameKind::State))
        .or_else(|| path.iter().find(|frame| what(frame).is_some()));
    match found {
        Some(state) if state.kind == FrameKind::State => state.without_place(),
        Some(frame) if !what(frame).is_some_and(is_code) => *frame,
        code => {
            let label = code.and_then(|frame| names.label_of(*frame));
            let (function, module) =
                label.map(|label| (label.text(), label.module.clone())).unwrap_or_default();
            let line = Label { what: StepKind::Line, function, file: None, line: None, module };
            Frame { kind: FrameKind::User, module: names.number(line), offset: 0 }
        }
    }
}

fn call_line(names: &mut CallTree, inner: Frame, outer: Frame) -> Option<Frame> {
    let call = names.label_of(inner).filter(|label| is_code(label.what) && label.line.is_some())?;
    let caller = names.label_of(outer).filter(|label| is_code(label.what) || label.what == StepKind::Loop)?;
    let (function, module) = (caller.function.clone(), caller.module.clone());
    let line = Label { what: StepKind::Line, function, module, ..call.clone() };
    Some(Frame { kind: outer.kind, module: names.number(line), offset: 0 })
}

fn is_code(what: StepKind) -> bool {
    matches!(what, StepKind::Function | StepKind::Parallel | StepKind::Task)
}

#[cfg(test)]
mod tests {
    use crate::call_views::{Column, FlatBy, FlatRow, flat, total};
    use taskscope_profile::named::{CallTree, Label, StepKind};
    use taskscope_profile::{Frame, FrameKind, Marker, Metric, NodeId, ROOT};

    fn step(run: &mut CallTree, outer: NodeId, what: StepKind, function: &str, line: Option<u32>) -> NodeId {
        let kind = match function {
            "yield" => FrameKind::Runtime,
            "" => FrameKind::Cut,
            _ => FrameKind::User,
        };
        let (function, file) = (function.to_string(), line.map(|_| "a.c".to_string()));
        let label = Label { what, function, file, line, module: "a".to_string() };
        run.child(outer, kind, label)
    }

    /// A time for each way in which a path can end.
    fn run() -> CallTree {
        let mut run = CallTree::default();
        let mut spent = Vec::new();
        let main = step(&mut run, ROOT, StepKind::Function, "main", None);
        // It works in a loop, and waits in the runtime, which has line numbers.
        let work = step(&mut run, main, StepKind::Function, "work", Some(9));
        let around = step(&mut run, work, StepKind::Loop, "work", Some(2));
        let line = step(&mut run, around, StepKind::Line, "work", Some(3));
        spent.push((line, 1));
        let wait = run.tree.child(line, Frame::state(Marker::Taskwait));
        spent.push((wait, 2));
        let inside = step(&mut run, wait, StepKind::Function, "yield", None);
        spent.push((inside, 4));
        let line_inside = step(&mut run, inside, StepKind::Line, "yield", Some(120));
        spent.push((line_inside, 8));
        // A body without a frame of its own, which has no line.
        let body = step(&mut run, main, StepKind::Parallel, "main", Some(8));
        let wait = run.tree.child(body, Frame::state(Marker::Barrier));
        let inside = step(&mut run, wait, StepKind::Function, "yield", None);
        let line_inside = step(&mut run, inside, StepKind::Line, "yield", Some(120));
        spent.push((line_inside, 16));
        // No function of the program.
        let idle = run.tree.child(ROOT, Frame::state(Marker::Idle));
        spent.push((idle, 32));
        let inside = step(&mut run, idle, StepKind::Function, "yield", None);
        spent.push((inside, 64));
        let line_inside = step(&mut run, inside, StepKind::Line, "yield", Some(120));
        spent.push((line_inside, 128));
        let cut = step(&mut run, ROOT, StepKind::Unknown, "", None);
        spent.push((cut, 256));
        for (node, time) in spent {
            run.tree.add(node, Metric::TIME, time);
        }
        run
    }

    fn rows(tree: &CallTree) -> Vec<(String, u64, u64)> {
        let name = |row: &FlatRow| match (&row.label, row.marker) {
            (Some(label), _) => format!("{} {}", label.text(), label.function),
            (None, marker) => marker.map(|marker| marker.label()).unwrap_or_default(),
        };
        let rows = flat(tree, FlatBy::Line, Column::Time);
        let sum: u64 = rows.iter().map(|row| row.own).sum();
        assert_eq!(sum, total(&tree.tree, Column::Time), "{rows:?}");
        rows.iter().map(|row| (name(row), row.own, row.total)).collect()
    }

    #[test]
    fn work_is_at_the_innermost_line_of_each_file() {
        let mut run = CallTree::default();
        let at = |run: &mut CallTree, outer, what, function: &str, file: &str, line| {
            let (function, file) = (function.to_owned(), Some(file.to_owned()));
            run.child(outer, FrameKind::User, Label { what, function, file, line, module: String::new() })
        };
        let main = step(&mut run, ROOT, StepKind::Function, "main", None);
        // a.c:9 calls `solve`, which works at a.c:3 and calls a library there, and calls it again at a.c:4.
        let solve = step(&mut run, main, StepKind::Function, "solve", Some(9));
        let own = step(&mut run, solve, StepKind::Line, "solve", Some(3));
        run.tree.add(own, Metric::WORK, 1);
        for (call, library, ns) in [(3, 70, 10), (4, 71, 100)] {
            let sin = step(&mut run, solve, StepKind::Function, "sin", Some(call));
            let line = at(&mut run, sin, StepKind::Line, "sin", "sin.c", Some(library));
            run.tree.add(line, Metric::WORK, ns);
        }
        // Waiting is no work.
        run.tree.add(own, Metric::TIME, 1000);
        let found = crate::call_views::work_by_line(&run);
        let row = |file: &str, line, ns| ((file.to_owned(), line), ns);
        assert_eq!(
            found,
            [row("a.c", 4, 100), row("sin.c", 71, 100), row("a.c", 3, 11), row("sin.c", 70, 10)]
        );
    }

    #[test]
    fn lines_are_the_programs_and_time_without_a_line_has_a_row() {
        let row = |name: &str, own, total| (name.to_string(), own, total);
        let expected = [
            row("<callers not known> ", 256, 256),
            row("<idle or absent>", 224, 224),
            row("<line not known> main [parallel at a.c:8]", 16, 16),
            row("a.c:3 work", 15, 15),
            row("a.c:8 main", 0, 16),
            row("a.c:9 main", 0, 15),
        ];
        assert_eq!(rows(&run().without_runtime()), expected);
    }

    #[test]
    fn lines_of_the_runtime_are_shown_where_its_frames_are() {
        let row = |name: &str, own, total| (name.to_string(), own, total);
        let expected = [
            row("<callers not known> ", 256, 256),
            row("a.c:120 yield", 152, 152),
            row("<idle or absent>", 96, 96),
            row("a.c:3 work", 7, 7),
            row("a.c:8 main", 0, 16),
            row("a.c:9 main", 0, 15),
        ];
        assert_eq!(rows(&run()), expected);
    }
}
