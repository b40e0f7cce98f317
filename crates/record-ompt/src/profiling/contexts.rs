//! Contexts: numbered creation paths.
//!
//! A context is its creator's context and the path from there (`task_stacks::paths`); 0 is an initial task.
//! If a task's creation path already created one of its ancestors, it has that ancestor's context: recursion
//! of any depth makes as many contexts as there are different paths. Nested regions of one path, which are
//! few, stay distinct up to a usual nesting depth.

use core::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::collections::HashMap;
use std::sync::Mutex;

use taskscope_profile::{Frame, FrameKind, NodeId, ROOT, Tree};

use super::places::Places;

/// Maximum number of distinct contexts; further ones share their creators'.
const MAX_CONTEXTS: usize = 1 << 16;
/// Maximum nesting of distinct regions of one path.
const NESTED_REGIONS: usize = 8;
const REMEMBERED: usize = 64;

/// A place to charge: context, and path in it.
pub type ChargedPath = (u32, u32);

struct All {
    /// Creator's context and path of context n + 1.
    list: Vec<(u32, u32)>,
    numbers: HashMap<(u32, u32), u32>,
    /// Frames of path n, innermost first, in the modules that were loaded when it was met.
    paths: HashMap<u32, Box<[Frame]>>,
}

/// Creator of each context, for lock-free readers; with [`RECURS`] and [`IS_TASK`].
static CREATORS: [AtomicU32; MAX_CONTEXTS + 1] = [const { AtomicU32::new(0) }; MAX_CONTEXTS + 1];
/// Tasks of this context have created tasks that have it too.
const RECURS: u32 = 1 << 31;
/// The context belongs to tasks, not to regions.
const IS_TASK: u32 = 1 << 30;

fn creator_of(context: u32) -> u32 {
    CREATORS.get(context as usize).map_or(0, |creator| creator.load(Relaxed))
}

/// Kind of the outermost frame in a context. Takes no lock.
pub fn body_of(context: u32) -> FrameKind {
    match context {
        0 => FrameKind::User,
        _ if creator_of(context) & IS_TASK != 0 => FrameKind::Task,
        _ => FrameKind::Region,
    }
}

/// Whether the context belongs to tasks.
pub fn is_of_tasks(context: u32) -> bool {
    body_of(context) == FrameKind::Task
}

fn is_above(ancestor: u32, context: u32) -> bool {
    let mut at = context;
    while at != 0 {
        at = creator_of(at) & !(RECURS | IS_TASK);
        if at == ancestor {
            return true;
        }
    }
    ancestor == context
}

/// Whether tasks of `context` may have been created, at any depth, by one of the context `ancestor`. Takes
/// no lock.
pub fn may_descend(context: u32, ancestor: u32) -> bool {
    context != ancestor && is_above(ancestor, context)
        || creator_of(context) & RECURS != 0 && is_above(context, ancestor)
}

static ALL: Mutex<Option<All>> = Mutex::new(None);

fn with_all<R>(use_all: impl FnOnce(&mut All) -> R) -> Option<R> {
    // A forked child may find it locked for ever.
    for _ in 0..1000 {
        if let Ok(mut all) = ALL.try_lock() {
            let all = all.get_or_insert_with(|| All {
                list: Vec::new(),
                numbers: HashMap::new(),
                paths: HashMap::new(),
            });
            return Some(use_all(all));
        }
        std::thread::yield_now();
    }
    None
}

/// Keeps the frames of a path: its return addresses, in the modules that are loaded now.
pub fn define_path(path: u32, addresses: &[u64]) {
    let mut places = Places::now();
    let mut frame = |address: &u64| places.frame(FrameKind::User, address.wrapping_sub(1));
    with_all(|all| {
        all.paths.entry(path).or_insert_with(|| addresses.iter().map(&mut frame).collect());
    });
}

fn number(creator: u32, path: u32, is_task: bool) -> u32 {
    with_all(|all| {
        if let Some(number) = all.numbers.get(&(creator, path)) {
            return *number;
        }
        // The innermost one that was created by this path, and how many were.
        let (mut ancestor, mut innermost, mut nested) = (creator, 0, 0);
        while let Some((above, by)) = all.list.get((ancestor as usize).wrapping_sub(1)).copied() {
            if by == path {
                innermost = if nested == 0 { ancestor } else { innermost };
                nested += 1;
            }
            ancestor = above;
        }
        if nested >= if is_task { 1 } else { NESTED_REGIONS } {
            if let Some(above) = CREATORS.get(innermost as usize) {
                above.fetch_or(RECURS, Relaxed);
            }
            all.numbers.insert((creator, path), innermost);
            return innermost;
        }
        if all.list.len() >= MAX_CONTEXTS {
            return creator;
        }
        all.list.push((creator, path));
        let number = all.list.len() as u32;
        if let Some(place) = CREATORS.get(number as usize) {
            place.store(if is_task { creator | IS_TASK } else { creator }, Relaxed);
        }
        all.numbers.insert((creator, path), number);
        number
    })
    .unwrap_or(creator)
}

/// The node of a context below the root.
pub fn expand(tree: &mut Tree, context: u32) -> NodeId {
    let mut steps = Vec::new();
    with_all(|all| {
        let mut at = context;
        while let Some((creator, path)) = all.list.get((at as usize).wrapping_sub(1)).copied() {
            steps.push((body_of(creator), all.paths.get(&path).cloned().unwrap_or_default()));
            at = creator;
        }
    });
    let mut node = ROOT;
    for (body, path) in steps.iter().rev() {
        node = descend_frames(tree, node, *body, path);
    }
    node
}

/// Returns the node of these return addresses, innermost first, below `from`; the outermost is a frame of
/// kind `body`. A body is a step even without a frame: its last call was a tail call.
pub fn descend(tree: &mut Tree, from: NodeId, body: FrameKind, addresses: &[u64]) -> NodeId {
    let mut places = Places::now();
    let mut frame = |address: &u64| places.frame(FrameKind::User, address.wrapping_sub(1));
    let frames: Box<[Frame]> = addresses.iter().map(&mut frame).collect();
    descend_frames(tree, from, body, &frames)
}

/// [`descend`] by a numbered path; number 0 is the empty path.
pub fn descend_path(tree: &mut Tree, from: NodeId, body: FrameKind, path: u32) -> NodeId {
    let frames = with_all(|all| all.paths.get(&path).cloned()).flatten().unwrap_or_default();
    descend_frames(tree, from, body, &frames)
}

fn descend_frames(tree: &mut Tree, from: NodeId, body: FrameKind, frames: &[Frame]) -> NodeId {
    if frames.is_empty() && body != FrameKind::User {
        return tree.child(from, Frame::body(body));
    }
    let kinds = std::iter::once(body).chain(std::iter::repeat(FrameKind::User));
    tree.descend(from, frames.iter().rev().zip(kinds).map(|(frame, kind)| Frame { kind, ..*frame }))
}

/// Per-thread cache of contexts.
pub struct Contexts {
    known: [Known; REMEMBERED],
}

#[derive(Clone, Copy, Default)]
struct Known {
    creator: u32,
    path: u32,
    context: u32,
}

impl Default for Contexts {
    fn default() -> Self {
        Contexts { known: [Known::default(); REMEMBERED] }
    }
}

impl Contexts {
    /// Returns the context of a task or region created by this path in this context.
    #[inline(always)]
    pub fn of(&mut self, creator: u32, path: u32, is_task: bool) -> u32 {
        let slot = (creator.wrapping_mul(0x9e37_79b1) ^ path.wrapping_mul(0x85eb_ca6b)) >> 26;
        let Some(known) = self.known.get_mut(slot as usize % REMEMBERED) else { return creator };
        if (known.creator, known.path) != (creator, path) || known.context == 0 {
            *known = Known { creator, path, context: number(creator, path, is_task) };
        }
        known.context
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recursion_makes_as_many_contexts_as_there_are_paths() {
        let (left, right) = (7001, 7002);
        let outer = number(0, 7000, false);
        let first = number(outer, left, true);
        assert_eq!(number(first, left, true), first, "a left within a left");
        let second = number(first, right, true);
        assert_ne!(second, first);
        assert_eq!(number(second, left, true), first);
        assert_eq!(number(second, right, true), second);
        assert_eq!(number(0, 7000, false), outer);
        let mut region = outer;
        let nested: Vec<u32> = (0..10)
            .map(|_| {
                region = number(region, 7003, false);
                region
            })
            .collect();
        assert!(nested[..NESTED_REGIONS].is_sorted_by(|one, other| one < other), "{nested:?}");
        assert!(nested[NESTED_REGIONS..].iter().all(|deeper| *deeper == nested[NESTED_REGIONS - 1]));
        assert_eq!([0, outer, first, second].map(body_of), {
            use FrameKind::*;
            [User, Region, Task, Task]
        });
        assert!(may_descend(first, outer) && may_descend(second, first));
        assert!(may_descend(first, first) && may_descend(first, second), "a left within a right");
        assert!(!may_descend(outer, first) && !may_descend(outer, outer));
        assert!(may_descend(outer, 0));
    }
}
