//! Loops of a function, from its machine code: no debug information lists them.
//!
//! A loop is a jump back to a block from which the jump is reached, and through which every way to it leads (a
//! natural loop; Aho, Lam, Sethi, Ullman, section 9.6). Its blocks are those that reach the jump without that
//! header. Exceptions lead from calls to their handlers; a jump through a register leads to all code that
//! nothing else leads to, as the cases of a switch.

use crate::handlers::Handler;
use iced_x86::{Decoder, DecoderOptions, FlowControl, Mnemonic};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

/// A function with more blocks than this is not searched: it is generated code, and searching takes
/// the square of them.
const MOST_BLOCKS: usize = 4000;

/// A loop of a function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Loop {
    /// Address of its first instruction, where it is entered.
    pub header: u64,
    /// Its blocks.
    pub blocks: Vec<Range<u64>>,
}

impl Loop {
    /// Whether an address lies in it.
    pub fn contains(&self, address: u64) -> bool {
        self.blocks.iter().any(|block| block.contains(&address))
    }
}

struct Block {
    end: u64,
    next: Vec<u64>,
    /// Whether it jumps to where a register tells.
    is_indirect: bool,
}

/// The loops of x86-64 code at `start`, outer ones before inner ones.
pub fn loops_of(code: &[u8], start: u64, handlers: &[Handler]) -> Vec<Loop> {
    let mut blocks = blocks_of(code, start, handlers);
    if blocks.len() > MOST_BLOCKS {
        return Vec::new();
    }
    lead_to_handlers(&mut blocks, handlers);
    lead_to_cases(&mut blocks, start, handlers);
    let mut before: BTreeMap<u64, Vec<u64>> = BTreeMap::new();
    for (from, block) in &blocks {
        block.next.iter().for_each(|to| before.entry(*to).or_default().push(*from));
    }
    let mut bodies: BTreeMap<u64, BTreeSet<u64>> = BTreeMap::new();
    for (from, block) in &blocks {
        for header in block.next.iter().filter(|to| *to <= from) {
            let is_passed_by = reaches(&blocks, start, *from, Some(*header));
            if is_passed_by || !reaches(&blocks, *header, *from, None) {
                continue;
            }
            let body = bodies.entry(*header).or_default();
            body.insert(*header);
            let mut open = vec![*from];
            while let Some(block) = open.pop() {
                if body.insert(block) {
                    open.extend(before.get(&block).into_iter().flatten());
                }
            }
        }
    }
    let mut loops: Vec<Loop> = (bodies.into_iter())
        .map(|(header, body)| Loop {
            header,
            blocks: body.into_iter().map(|at| at..blocks[&at].end).collect(),
        })
        .collect();
    loops.sort_by_key(|one| (std::cmp::Reverse(one.blocks.len()), one.header));
    loops
}

/// A handler is reached by exceptions alone: not by what lies before it, such as a call that never returns.
fn lead_to_handlers(blocks: &mut BTreeMap<u64, Block>, handlers: &[Handler]) {
    blocks.values_mut().for_each(|block| block.next.retain(|to| !is_pad(handlers, *to)));
    let pads: BTreeSet<u64> = blocks.keys().copied().collect();
    for handler in handlers.iter().filter(|handler| pads.contains(&handler.pad)) {
        // The first may begin before the calls.
        for (_, block) in blocks.range_mut(..handler.calls.end).rev() {
            if block.end <= handler.calls.start {
                break;
            }
            block.next.push(handler.pad);
        }
    }
}

fn is_pad(handlers: &[Handler], at: u64) -> bool {
    handlers.iter().any(|handler| handler.pad == at)
}

/// Jumps through registers lead to what nothing else leads to.
fn lead_to_cases(blocks: &mut BTreeMap<u64, Block>, start: u64, handlers: &[Handler]) {
    let reached: BTreeSet<u64> = blocks.values().flat_map(|block| block.next.iter().copied()).collect();
    let mut cases: Vec<u64> = blocks.keys().copied().collect();
    cases.retain(|at| *at != start && !reached.contains(at) && !is_pad(handlers, *at));
    for block in blocks.values_mut().filter(|block| block.is_indirect) {
        block.next.extend(&cases);
    }
}

/// Whether `to` can be reached from `from` without passing `without`.
fn reaches(blocks: &BTreeMap<u64, Block>, from: u64, to: u64, without: Option<u64>) -> bool {
    let mut seen = BTreeSet::new();
    let mut open = vec![from];
    while let Some(at) = open.pop() {
        if Some(at) == without || !seen.insert(at) {
            continue;
        }
        if at == to {
            return true;
        }
        open.extend(blocks.get(&at).into_iter().flat_map(|block| &block.next));
    }
    false
}

struct Step {
    after: u64,
    next: Vec<u64>,
    is_end: bool,
    is_indirect: bool,
    is_filler: bool,
}

fn blocks_of(code: &[u8], start: u64, handlers: &[Handler]) -> BTreeMap<u64, Block> {
    let range = start..start + code.len() as u64;
    let mut steps: BTreeMap<u64, Step> = BTreeMap::new();
    let mut targets: BTreeSet<u64> = handlers.iter().map(|handler| handler.pad).collect();
    for instruction in &mut Decoder::with_ip(64, code, start, DecoderOptions::NONE) {
        let (at, after) = (instruction.ip(), instruction.next_ip());
        let target = instruction.near_branch_target();
        let inside = range.contains(&target).then_some(target);
        let flow = instruction.flow_control();
        let (next, is_end) = match flow {
            FlowControl::ConditionalBranch => (vec![Some(after), inside], true),
            FlowControl::UnconditionalBranch => (vec![inside], true),
            FlowControl::Return | FlowControl::IndirectBranch | FlowControl::Exception => (vec![], true),
            _ => (vec![Some(after)], false),
        };
        let next: Vec<u64> = next.into_iter().flatten().filter(|to| range.contains(to)).collect();
        if is_end {
            targets.extend(inside);
        }
        let is_indirect = flow == FlowControl::IndirectBranch;
        let is_filler = matches!(instruction.mnemonic(), Mnemonic::Nop | Mnemonic::Int3);
        steps.insert(at, Step { after, next, is_end, is_indirect, is_filler });
    }
    let mut blocks = BTreeMap::new();
    let (mut first, mut is_reached) = (None, true);
    for (at, step) in &steps {
        // What fills the room before code that is aligned leads to nothing.
        if first.is_none() && !is_reached && step.is_filler && !targets.contains(at) {
            continue;
        }
        let begin = *first.get_or_insert(*at);
        is_reached = step.next.contains(&step.after);
        if step.is_end || targets.contains(&step.after) {
            let (next, is_indirect) = (step.next.clone(), step.is_indirect);
            blocks.insert(begin, Block { end: step.after, next, is_indirect });
            first = None;
        }
    }
    blocks
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nested_loops_are_found_and_jumps_to_shared_ends_are_none() {
        // 100: xor ecx,ecx; 102: xor edx,edx; 104: inc edx; 106: cmp edx,9; 109: jl 104;
        // 10b: inc ecx; 10d: cmp ecx,9; 110: jl 102; 112: ret
        let code = [
            0x31, 0xc9, 0x31, 0xd2, 0xff, 0xc2, 0x83, 0xfa, 9, 0x7c, 0xf9, 0xff, 0xc1, 0x83, 0xf9, 9, 0x7c,
            0xf0, 0xc3,
        ];
        let loops = loops_of(&code, 0x100, &[]);
        assert_eq!(loops.iter().map(|one| one.header).collect::<Vec<_>>(), [0x102, 0x104]);
        assert!(loops[0].contains(0x10b) && !loops[1].contains(0x10b) && loops[1].contains(0x106));
        assert!(!loops[0].contains(0x100) && !loops[0].contains(0x112));
        // 0: jmp 3; 2: ret; 3: jmp 2 goes back, but nothing leads from 2 to it.
        assert_eq!(loops_of(&[0xeb, 1, 0xc3, 0xeb, 0xfd], 0, &[]), []);
        // Bytes that are no code.
        assert_eq!(loops_of(&[0xff; 40], 0, &[]), []);
        assert_eq!(loops_of(&[], 7, &[]), []);
    }
    fn headers(code: &[u8], handlers: &[Handler]) -> Vec<u64> {
        loops_of(code, 0, handlers).iter().map(|one| one.header).collect()
    }

    #[test]
    fn a_handler_that_jumps_back_to_the_functions_end_is_no_loop() {
        // 0: call; 5: ret; 6: push rax (the handler); 7: jmp 5.
        let code = [0xe8, 0x10, 0, 0, 0, 0xc3, 0x50, 0xeb, 0xfc];
        assert_eq!(headers(&code, &[]), [0; 0]);
        assert_eq!(headers(&code, &[Handler { calls: 0..5, pad: 6 }]), [0; 0]);
        // 0: call; 5: jz 8; 7: ret; 8: call abort, which does not return; d: push rax (the handler); e: jmp 5.
        let code = [0xe8, 0x10, 0, 0, 0, 0x74, 1, 0xc3, 0xe8, 0x10, 0, 0, 0, 0x50, 0xeb, 0xf5];
        assert_eq!(headers(&code, &[Handler { calls: 0..5, pad: 0xd }]), [0; 0]);
        // 0: call; 5: jmp *rax; 7: ret (a case); 8: push rax (the handler); 9: jmp 5.
        let code = [0xe8, 0x10, 0, 0, 0, 0xff, 0xe0, 0xc3, 0x50, 0xeb, 0xfa];
        assert_eq!(headers(&code, &[Handler { calls: 0..5, pad: 8 }]), [0; 0]);
    }

    #[test]
    fn what_is_tried_again_after_an_exception_is_a_loop_with_its_handler() {
        // 0: push rax; 1: call; 6: ret; 7: push rax (the handler); 8: jmp 1.
        let code = [0x50, 0xe8, 0x10, 0, 0, 0, 0xc3, 0x50, 0xeb, 0xf7];
        let loops = loops_of(&code, 0, &[Handler { calls: 1..6, pad: 7 }]);
        assert_eq!(loops.len(), 1);
        assert!(loops[0].contains(7) && loops[0].contains(2) && !loops[0].contains(0), "{loops:?}");
    }

    #[test]
    fn a_switch_is_a_loop_where_a_case_leads_back_to_it() {
        // 0: push rax; 1: jmp *rax; 3: nop; 4: inc ecx; 6: jmp 1 (a case); 8: ret (a case).
        assert_eq!(headers(&[0x50, 0xff, 0xe0, 0x90, 0xff, 0xc1, 0xeb, 0xf9, 0xc3], &[]), [1]);
        // 0: jmp *rax; 2: ret; 3: inc ecx; 5: jmp 2 (a case): cases share an end.
        assert_eq!(headers(&[0xff, 0xe0, 0xc3, 0xff, 0xc1, 0xeb, 0xfb], &[]), [0; 0]);
    }
}
