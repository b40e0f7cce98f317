//! Which frames of a stack are the program's, and of which task: the frame rule of OMPT.
//!
//! ```text
//!  outermost                                                                      innermost
//!  main ── f ── [fork … invoke] ── outlined ── g ── [taskwait … invoke] ── task ── [barrier]
//!  level 2       enter 2   exit 1    level 1          enter 1    exit 0   level 0    enter 0
//! ```
//!
//! A runtime tells for every task on a thread's stack the frame by which user code of that task entered
//! it, and the frame from which it called that code. With `sp` of a frame its stack pointer and `CFA`
//! that of the next one outwards, a frame is user code of level *l* iff `sp > enter` of *l* and
//! `CFA <= exit` of *l*, where a zero means no bound. Flags that say which kind of address it is are
//! not to be trusted, and not needed.
//!
//! While a thread waits for a lock, a critical or an ordered construct, runtimes leave `enter` of
//! level 0 at zero. There the runtime's code is found by its file: of the frames that would be level
//! 0's, all inwards of the outermost one that lies in the runtime are the runtime's, whatever library
//! they are in.
//!
//! Functions that runtime and program both call, `memcpy` for instance, are so on the right side.

/// A frame of an unwound stack.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct StackFrame {
    /// An address inside the instruction that runs or calls.
    pub address: u64,
    /// The stack pointer in this frame.
    pub sp: u64,
}

/// What the runtime tells of a task on the stack; zero where it tells nothing.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct TaskFrames {
    /// The frame by which user code of the task entered the runtime.
    pub enter: u64,
    /// The frame from which the runtime called the task's code.
    pub exit: u64,
}

/// Whose a frame is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Owner {
    /// The program's, in the task of this level; 0 is the innermost.
    User(u32),
    /// The runtime's.
    Runtime,
}

/// Hands the owner of every frame, innermost first, to `take` with the frame. `levels` are the tasks on
/// this thread's own stack, innermost first; without any, everything is the program's but what lies
/// inwards of the runtime's code. Allocates nothing.
pub fn owners(
    frames: &[StackFrame],
    levels: &[TaskFrames],
    mut in_runtime: impl FnMut(u64) -> bool,
    mut take: impl FnMut(StackFrame, Owner),
) {
    let none = [TaskFrames::default()];
    let levels = if levels.is_empty() { &none } else { levels };
    let level_of = |index: usize| {
        let frame = frames[index];
        let cfa = frames.get(index + 1).map_or(u64::MAX, |outer| outer.sp);
        let fits = |task: &TaskFrames| {
            (task.enter == 0 || frame.sp > task.enter) && (task.exit == 0 || cfa <= task.exit)
        };
        levels.iter().position(fits)
    };
    // How many of the innermost frames are the runtime's although no `enter` says so.
    let hidden = (0..frames.len())
        .take_while(|index| matches!(level_of(*index), Some(0) | None))
        .filter(|index| level_of(*index) == Some(0) && in_runtime(frames[*index].address))
        .last()
        .map_or(0, |outermost| outermost + 1);
    for (index, frame) in frames.iter().enumerate() {
        let owner = match level_of(index) {
            Some(level) if index >= hidden => Owner::User(level as u32),
            _ => Owner::Runtime,
        };
        take(*frame, owner);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stack(frames: &[(u64, u64)]) -> Vec<StackFrame> {
        frames.iter().map(|(address, sp)| StackFrame { address: *address, sp: *sp }).collect()
    }

    /// Addresses from 900 on lie in the runtime.
    fn owned(frames: &[(u64, u64)], levels: &[(u64, u64)]) -> String {
        let levels: Vec<TaskFrames> =
            levels.iter().map(|(enter, exit)| TaskFrames { enter: *enter, exit: *exit }).collect();
        let mut text = String::new();
        owners(
            &stack(frames),
            &levels,
            |address| address >= 900,
            |_, owner| match owner {
                Owner::User(level) => text.push_str(&level.to_string()),
                Owner::Runtime => text.push('r'),
            },
        );
        text
    }

    #[test]
    fn the_stack_of_the_drawing_is_cut_where_the_runtime_is() {
        // Innermost first: [barrier, futex in libc], task, [invoke, taskwait], g, outlined, [invoke, fork], f, main.
        let frames = [
            (100, 1000),
            (901, 1020),
            (10, 1100),
            (902, 1200),
            (903, 1220),
            (20, 1300),
            (21, 1400),
            (904, 1500),
            (905, 1520),
            (30, 1600),
            (31, 1700),
        ];
        // Frame address: CFA of the runtime's function less 16.
        let levels = [(1100 - 16, 1220 - 16), (1300 - 16, 1520 - 16), (1600 - 16, 0)];
        assert_eq!(owned(&frames, &levels), "rr0rr11rr22");
    }

    #[test]
    fn a_worker_without_a_task_is_all_runtime() {
        let frames = [(100, 1000), (901, 1020), (902, 1100), (101, 1200)];
        assert_eq!(owned(&frames, &[(1000 - 16, 1000 - 16)]), "rrrr");
    }

    #[test]
    fn library_code_is_on_the_side_of_its_caller() {
        // memcpy (address 100, in libc) called by user code, then by the runtime in a lock wait.
        assert_eq!(owned(&[(100, 1000), (10, 1100), (11, 1200)], &[(0, 0)]), "000");
        assert_eq!(owned(&[(100, 1000), (901, 1050), (10, 1100), (11, 1200)], &[(0, 0)]), "rr00");
        // Outwards of the frame that called the program's code everything is the runtime's.
        assert_eq!(owned(&[(10, 1000), (901, 1100), (102, 1200)], &[(0, 1184)]), "0rr");
    }

    #[test]
    fn a_program_without_a_runtime_is_all_user() {
        assert_eq!(owned(&[(10, 1000), (11, 1100)], &[]), "00");
        assert_eq!(owned(&[], &[(1, 2)]), "");
    }
}
