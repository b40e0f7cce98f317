//! Loops of a function, from its machine code: no debug information lists them.
//!
//! A loop is a jump back to a block through which every way to the jump leads (a natural loop; Aho, Lam,
//! Sethi, Ullman, section 9.6). Its blocks are those that reach the jump without that header. Code with
//! jumps through registers is followed as far as its direct jumps tell.

use iced_x86::{Decoder, DecoderOptions, FlowControl};
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
}

/// The loops of x86-64 code at `start`, outer ones before inner ones.
pub fn loops_of(code: &[u8], start: u64) -> Vec<Loop> {
    let blocks = blocks_of(code, start);
    if blocks.len() > MOST_BLOCKS {
        return Vec::new();
    }
    let mut before: BTreeMap<u64, Vec<u64>> = BTreeMap::new();
    for (from, block) in &blocks {
        block.next.iter().for_each(|to| before.entry(*to).or_default().push(*from));
    }
    let mut bodies: BTreeMap<u64, BTreeSet<u64>> = BTreeMap::new();
    for (from, block) in &blocks {
        for header in block.next.iter().filter(|to| *to <= from) {
            if reaches(&blocks, start, *from, *header) {
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

/// Whether `to` can be reached from `from` without passing `without`.
fn reaches(blocks: &BTreeMap<u64, Block>, from: u64, to: u64, without: u64) -> bool {
    let mut seen = BTreeSet::new();
    let mut open = vec![from];
    while let Some(at) = open.pop() {
        if at == without || !seen.insert(at) {
            continue;
        }
        if at == to {
            return true;
        }
        open.extend(blocks.get(&at).into_iter().flat_map(|block| &block.next));
    }
    false
}

fn blocks_of(code: &[u8], start: u64) -> BTreeMap<u64, Block> {
    let range = start..start + code.len() as u64;
    // End and successors of each instruction.
    let mut instructions: BTreeMap<u64, (u64, Vec<u64>, bool)> = BTreeMap::new();
    let mut leaders = BTreeSet::from([start]);
    for instruction in &mut Decoder::with_ip(64, code, start, DecoderOptions::NONE) {
        let (at, after) = (instruction.ip(), instruction.next_ip());
        let target = instruction.near_branch_target();
        let inside = range.contains(&target).then_some(target);
        let (next, ends) = match instruction.flow_control() {
            FlowControl::ConditionalBranch => (vec![Some(after), inside], true),
            FlowControl::UnconditionalBranch => (vec![inside], true),
            FlowControl::Return | FlowControl::IndirectBranch | FlowControl::Exception => (vec![], true),
            _ => (vec![Some(after)], false),
        };
        let next: Vec<u64> = next.into_iter().flatten().filter(|to| range.contains(to)).collect();
        if ends {
            leaders.extend(inside);
            leaders.insert(after);
        }
        instructions.insert(at, (after, next, ends));
    }
    let mut blocks = BTreeMap::new();
    let mut first = None;
    for (at, (after, next, ends)) in &instructions {
        let begin = *first.get_or_insert(*at);
        if *ends || leaders.contains(after) {
            blocks.insert(begin, Block { end: *after, next: next.clone() });
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
        let loops = loops_of(&code, 0x100);
        assert_eq!(loops.iter().map(|one| one.header).collect::<Vec<_>>(), [0x102, 0x104]);
        assert!(loops[0].contains(0x10b) && !loops[1].contains(0x10b) && loops[1].contains(0x106));
        assert!(!loops[0].contains(0x100) && !loops[0].contains(0x112));
        // 0: jmp 3; 2: ret; 3: jmp 2 goes back, but nothing leads from 2 to it.
        assert_eq!(loops_of(&[0xeb, 1, 0xc3, 0xeb, 0xfd], 0), []);
        // Bytes that are no code.
        assert_eq!(loops_of(&[0xff; 40], 0), []);
        assert_eq!(loops_of(&[], 7), []);
    }
}
