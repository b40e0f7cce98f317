//! The open states of each thread: the ends of some interfaces do not name their begins.
//!
//! A begin in the middle that ends first (a wait in which tasks ran on) is popped with those above it, as states end in
//! order.

use core::cell::{Cell, RefCell};

use taskscope_record::instrument::named;

/// Maximum number of open states of a thread; deeper ones are not recorded.
const MAX_OPEN: usize = 128;

/// The kind of an open state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StateKind {
    /// A task.
    Task,
    /// The callee of a stitched stack.
    Callee,
    /// A wait for a synchronisation object.
    Wait,
    /// A kernel of Kokkos.
    Kernel,
    /// A fence of Kokkos.
    Fence,
    /// A region of Kokkos.
    Region,
    /// A copy of Kokkos.
    Copy,
    /// A range of NVTX.
    Range,
}

impl StateKind {
    const COUNT: usize = 8;

    /// Whether each end is that of the innermost begin.
    fn is_nested(self) -> bool {
        matches!(self, StateKind::Task | StateKind::Region | StateKind::Copy | StateKind::Range)
    }
}

#[derive(Clone, Copy)]
struct Open {
    kind: StateKind,
    /// Address of the object or caller, number of the kernel or fence, address of a range's domain; 0 for kinds whose ends name none.
    subject: usize,
    /// `None` if it was not recorded.
    recorded: Option<Recorded>,
    has_ended: bool,
}

/// The recorded event of an open state.
#[derive(Clone, Copy)]
pub enum Recorded {
    /// A state by its number.
    State(u32),
    /// A task of the instrument model by its number, on this thread.
    Task(u64),
}

impl Recorded {
    /// Begins a state.
    pub fn state(number: Option<u32>) -> Option<Recorded> {
        number.filter(|number| named::push_state(*number)).map(Recorded::State)
    }

    /// Begins a task of this kind.
    pub fn task(kind: Option<u32>) -> Option<Recorded> {
        Some(Recorded::Task(named::begin_task(kind?)))
    }

    fn end(self) {
        match self {
            Recorded::State(number) => named::pop_state(number),
            Recorded::Task(task) => named::end_task(task),
        }
    }
}

const NOTHING: Open = Open { kind: StateKind::Task, subject: 0, recorded: None, has_ended: true };

struct Stack {
    depth: usize,
    open: [Open; MAX_OPEN],
}

thread_local! {
    // On the heap: libraries that are loaded late have little room for data of threads.
    static STACK: RefCell<Option<Box<Stack>>> = const { RefCell::new(None) };
    /// Begins without room on the stack, of each nested kind.
    static DEEPER: Cell<[u16; StateKind::COUNT]> = const { Cell::new([0; StateKind::COUNT]) };
}

/// Begins a state, which `record` records.
pub fn begin(kind: StateKind, subject: usize, record: impl FnOnce() -> Option<Recorded>) {
    // A signal handler that interrupts this function is not recorded.
    let _ = STACK.try_with(|stack| {
        let Ok(mut stack) = stack.try_borrow_mut() else { return };
        let stack = stack.get_or_insert_with(|| Box::new(Stack { depth: 0, open: [NOTHING; MAX_OPEN] }));
        let depth = stack.depth;
        match stack.open.get_mut(depth) {
            Some(place) => {
                *place = Open { kind, subject, recorded: record(), has_ended: false };
                stack.depth += 1;
            }
            None if kind.is_nested() => change_deeper(kind, |count| count.saturating_add(1)),
            None => {}
        }
    });
}

fn deeper(kind: StateKind) -> u16 {
    DEEPER.try_with(|deeper| deeper.get().get(kind as usize).copied()).ok().flatten().unwrap_or(0)
}

fn change_deeper(kind: StateKind, change: impl FnOnce(u16) -> u16) {
    let _ = DEEPER.try_with(|deeper| {
        let mut counts = deeper.get();
        if let Some(count) = counts.get_mut(kind as usize) {
            *count = change(*count);
        }
        deeper.set(counts);
    });
}

/// Number of open begins of this kind and subject.
pub fn count(kind: StateKind, subject: usize) -> usize {
    let count = |stack: &RefCell<Option<Box<Stack>>>| {
        let stack = stack.try_borrow().ok()?;
        let stack = stack.as_ref()?;
        let open = stack.open.get(..stack.depth)?.iter();
        Some(open.filter(|open| open.kind == kind && open.subject == subject && !open.has_ended).count())
    };
    STACK.try_with(count).ok().flatten().unwrap_or(0)
}

/// Whether the innermost open state is this wait.
pub fn is_waiting_for(subject: usize) -> bool {
    STACK
        .try_with(|stack| {
            let Ok(stack) = stack.try_borrow() else { return false };
            let Some(stack) = stack.as_ref() else { return false };
            let top = stack.depth.checked_sub(1).and_then(|top| stack.open.get(top));
            top.is_some_and(|top| top.kind == StateKind::Wait && top.subject == subject)
        })
        .unwrap_or(false)
}

/// Ends the innermost state of this kind and subject. The end of a task ends waits that began in it; that of a callee, all
/// that began in it, which belongs to it.
pub fn end(kind: StateKind, subject: usize) {
    if kind.is_nested() && deeper(kind) > 0 {
        return change_deeper(kind, |count| count - 1);
    }
    let _ = STACK.try_with(|stack| {
        let Ok(mut stack) = stack.try_borrow_mut() else { return };
        let Some(stack) = stack.as_mut() else { return };
        let depth = stack.depth;
        let Some(open) = stack.open.get_mut(..depth) else { return };
        let fits = |open: &Open| !open.has_ended && open.kind == kind && open.subject == subject;
        let Some(found) = open.iter().rposition(fits) else { return };
        let ended = open.iter_mut().enumerate().skip(found);
        for (index, open) in ended {
            open.has_ended |= match kind {
                StateKind::Callee => true,
                StateKind::Task => index == found || open.kind == StateKind::Wait,
                _ => index == found,
            };
        }
        while let Some(top) = stack.depth.checked_sub(1) {
            match stack.open.get(top) {
                Some(Open { has_ended: true, recorded, .. }) => {
                    if let Some(recorded) = recorded {
                        recorded.end();
                    }
                }
                _ => break,
            }
            stack.depth = top;
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    fn depth() -> usize {
        STACK.with_borrow(|stack| stack.as_ref().map_or(0, |stack| stack.depth))
    }

    #[test]
    fn ends_find_their_begins() {
        begin(StateKind::Task, 0, || None);
        begin(StateKind::Wait, 8, || None);
        assert!(is_waiting_for(8) && !is_waiting_for(9));
        begin(StateKind::Task, 0, || None);
        end(StateKind::Wait, 8);
        assert_eq!(depth(), 3, "a task runs in the wait");
        end(StateKind::Task, 0);
        assert_eq!(depth(), 1);
        end(StateKind::Wait, 8);
        end(StateKind::Callee, 1);
        assert_eq!(depth(), 1, "ends without begins change nothing");
        begin(StateKind::Wait, 8, || None);
        end(StateKind::Task, 0);
        assert_eq!(depth(), 0);
        end(StateKind::Task, 0);
    }

    #[test]
    fn deep_nesting_is_counted() {
        (0..MAX_OPEN + 10).for_each(|_| begin(StateKind::Task, 0, || None));
        (0..10).for_each(|_| end(StateKind::Task, 0));
        assert_eq!(depth(), MAX_OPEN);
        (0..MAX_OPEN).for_each(|_| end(StateKind::Task, 0));
        assert_eq!(depth(), 0);
    }
}
