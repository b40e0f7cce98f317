//! A tree with named steps: the input of views, exports and comparisons.

use crate::profile::merge_totals;
use crate::{Frame, FrameKind, Marker, NO_MODULE, NodeId, Process, Profile, ROOT, Tree};
use std::collections::{BTreeMap, HashMap};

/// Kind of a step from the view of the program's author.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum StepKind {
    /// A function, inlined or not.
    Function,
    /// The body of a parallel construct in a function.
    Parallel,
    /// The body of a task construct in a function.
    Task,
    /// A loop in a function.
    Loop,
    /// A line of a function that took time: always innermost, except below a state.
    Line,
    /// Outer steps are unknown.
    Unknown,
    /// The whole path is unknown: the process's start and end, and the time before its first sample.
    NoPath,
}

/// One named step.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct Label {
    /// Kind of the step.
    pub what: StepKind,
    /// The function, as its author wrote it; a module and an address if it has no name.
    pub function: String,
    /// Source file of the line.
    pub file: Option<String>,
    /// For a function: the line of its call, in its caller's file. For a construct or loop: its own line. For
    /// a line: the line.
    pub line: Option<u32>,
    /// The file that contains the code, without directories; empty if unknown.
    pub module: String,
}

impl Label {
    /// `file:line` without directories, as far as known.
    pub fn place(&self) -> Option<String> {
        let file = self.file.as_deref()?.rsplit('/').next()?;
        Some(format!("{file}:{}", self.line?))
    }

    /// The text for users: a function's name; kind and place of a construct, loop or line.
    pub fn text(&self) -> String {
        let at = self.place().map(|place| format!(" at {place}")).unwrap_or_default();
        match self.what {
            StepKind::Function => self.function.clone(),
            StepKind::Parallel => format!("{} [parallel{at}]", self.function),
            StepKind::Task => format!("{} [task{at}]", self.function),
            StepKind::Loop => format!("{} [loop{at}]", self.function),
            StepKind::Line => self.place().unwrap_or_else(|| "<line not known>".to_string()),
            StepKind::Unknown => "<callers not known>".to_string(),
            StepKind::NoPath => "<path not known>".to_string(),
        }
    }
}

/// A calling-context tree with names. The frames of its tree have the number of a label as `module` and
/// 0 as `offset`; those of states are [`Marker`]s, and of waits the `module` is that of the line which waits.
#[derive(Clone, Debug, Default)]
pub struct CallTree {
    /// The tree.
    pub tree: Tree,
    /// Names, by [`Frame::module`].
    pub labels: Vec<Label>,
    /// The processes.
    pub processes: Vec<Process>,
    /// Exact sums over the run.
    pub totals: BTreeMap<String, u64>,
    numbers: HashMap<Label, u32>,
}

impl CallTree {
    /// A tree without paths, of the same run as a profile.
    pub fn without_paths(profile: &Profile) -> CallTree {
        CallTree {
            processes: profile.processes.clone(),
            totals: profile.totals.clone(),
            ..CallTree::default()
        }
    }

    /// The number of a label, new or known.
    pub fn number(&mut self, label: Label) -> u32 {
        if let Some(number) = self.numbers.get(&label) {
            return *number;
        }
        let number = self.labels.len() as u32;
        self.numbers.insert(label.clone(), number);
        self.labels.push(label);
        number
    }

    /// The child of a node by a label.
    pub fn child(&mut self, parent: NodeId, kind: FrameKind, label: Label) -> NodeId {
        let module = self.number(label);
        self.tree.child(parent, Frame { kind, module, offset: 0 })
    }

    /// The label of a node's step; none of a state and of the root.
    pub fn label(&self, node: NodeId) -> Option<&Label> {
        self.label_of(self.tree.frame(node))
    }

    /// The label of a step.
    pub fn label_of(&self, frame: Frame) -> Option<&Label> {
        if frame.kind == FrameKind::State || frame.module == NO_MODULE {
            return None;
        }
        self.labels.get(frame.module as usize)
    }

    /// For a wait: the waiting line.
    pub fn place_of(&self, frame: Frame) -> Option<&Label> {
        let is_wait = frame.kind == FrameKind::State && frame.module != NO_MODULE;
        self.labels.get(frame.module as usize).filter(|_| is_wait)
    }

    /// The words for a step.
    pub fn text_of(&self, frame: Frame) -> String {
        match (self.label_of(frame), frame.marker()) {
            (Some(label), _) => label.text(),
            (None, Some(marker)) => marker.label(),
            (None, None) => "<whole run>".to_string(),
        }
    }

    /// A tree with the steps that `keep` wants; values of the others go to the next step further out.
    pub fn kept(&self, keep: impl Fn(Frame, Option<&Label>) -> bool) -> CallTree {
        let mut kept = CallTree {
            tree: Tree::growing(),
            labels: self.labels.clone(),
            processes: self.processes.clone(),
            totals: self.totals.clone(),
            numbers: self.numbers.clone(),
        };
        kept.tree.absorb(&self.tree, |tree, parent, frame| {
            if keep(frame, self.label_of(frame)) { tree.child(parent, frame) } else { parent }
        });
        kept
    }

    /// As its author thinks of the run: without lines and loops, and without the runtime's frames. A state
    /// stays.
    pub fn functions(&self) -> CallTree {
        self.kept(|frame, label| {
            frame.kind != FrameKind::Runtime
                && !label.is_some_and(|label| matches!(label.what, StepKind::Line | StepKind::Loop))
        })
    }

    /// All steps, with the runtime's frames.
    pub fn functions_and_runtime(&self) -> CallTree {
        self.kept(|_, label| {
            !label.is_some_and(|label| matches!(label.what, StepKind::Line | StepKind::Loop))
        })
    }

    /// Functions, with the loops around their calls; with or without the runtime's frames.
    pub fn functions_and_loops(&self, runtime: bool) -> CallTree {
        self.kept(|frame, label| {
            (runtime || frame.kind != FrameKind::Runtime)
                && label.is_none_or(|label| label.what != StepKind::Line)
        })
    }

    /// The steps without the runtime's frames: lines and loops are the program's.
    pub fn without_runtime(&self) -> CallTree {
        self.kept(|frame, _| frame.kind != FrameKind::Runtime)
    }

    /// Whether a wait's marker is a step of the path of `node`.
    pub fn waits(&self, node: NodeId) -> Option<Marker> {
        self.tree.path(node).find_map(Frame::marker)
    }

    /// Adds another tree: equal paths become one.
    pub fn merge(&mut self, other: &CallTree) {
        let numbers: Vec<u32> = other.labels.iter().map(|label| self.number(label.clone())).collect();
        self.tree.absorb(&other.tree, |tree, parent, frame| {
            // States of no line are in no module.
            let module = numbers.get(frame.module as usize).copied().unwrap_or(frame.module);
            tree.child(parent, Frame { module, ..frame })
        });
        merge_totals(&mut self.totals, &other.totals);
        self.processes.extend(other.processes.iter().cloned());
    }

    /// All nodes with the root, parents first.
    pub fn nodes(&self) -> impl DoubleEndedIterator<Item = NodeId> + use<> {
        std::iter::once(ROOT).chain(self.tree.ids())
    }
}
