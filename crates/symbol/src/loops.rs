//! Loops of a function, from its machine code: no debug information lists them.
//!
//! A loop is a strongly connected part of the control flow graph, entered at its header; without the header, the
//! parts that remain connected are the loops inside it. If one block dominates the part, these are the natural
//! loops (Aho, Lam, Sethi, Ullman, section 9.6), in any order of their blocks. Parts with
//! several entries (Steensgaard, MSR-TR-93-6) are loops too: jump threading and computed jumps make them.
//! Exceptions lead from calls to their handlers; a jump through a register leads to all otherwise unreachable
//! code, as the cases of a switch.

use crate::handlers::Handler;
use iced_x86::{Decoder, DecoderOptions, FlowControl, Mnemonic};
use petgraph::Direction;
use petgraph::algo::kosaraju_scc;
use petgraph::graph::{DiGraph, NodeIndex};
use petgraph::visit::DfsPostOrder;
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

/// A function with more blocks than this is not searched: generated code without loops of interest.
const MAX_BLOCKS: usize = 20_000;

/// Edges from jumps through registers to their possible targets; beyond it, these lead nowhere.
const MAX_CASE_EDGES: usize = 1 << 20;

/// Levels of nesting; each searches the blocks of its loop once.
const MAX_DEPTH: u32 = 40;

/// Branches of a loop that are kept as its controls.
const MAX_CONTROLS: usize = 64;

/// A loop of a function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Loop {
    /// Address of the first instruction of its entry block.
    pub header: u64,
    /// Addresses of the branches that leave it or return to its header, ascending.
    pub controls: Vec<u64>,
    /// Its blocks.
    pub blocks: Vec<Range<u64>>,
}

impl Loop {
    /// Whether it contains an address.
    pub fn contains(&self, address: u64) -> bool {
        let after = self.blocks.partition_point(|block| block.start <= address);
        after.checked_sub(1).is_some_and(|index| self.blocks[index].contains(&address))
    }
}

struct Block {
    /// Address of its last instruction.
    last: u64,
    end: u64,
    next: Vec<u64>,
    /// Whether it ends with a jump through a register or memory.
    is_indirect: bool,
    /// Whether it ends with a direct jump, conditional or not.
    is_branch: bool,
}

/// The loops of x86-64 code at `start`, outer ones before inner ones.
pub fn loops_of(code: &[u8], start: u64, handlers: &[Handler]) -> Vec<Loop> {
    let mut blocks = blocks_of(code, start, handlers);
    if blocks.len() > MAX_BLOCKS {
        return Vec::new();
    }
    lead_to_handlers(&mut blocks, handlers);
    lead_to_cases(&mut blocks, start, handlers);
    let blocks: Vec<(u64, Block)> = blocks.into_iter().collect();
    let graph = Graph::of(&blocks, start);
    let mut loops = Vec::new();
    let mut open: Vec<(Vec<usize>, u32)> = vec![(graph.reached.clone(), 0)];
    while let Some((part, depth)) = open.pop() {
        for body in graph.cycles_in(&part) {
            let entries = graph.entries_of(&body);
            if entries.is_empty() {
                continue;
            }
            loops.push(graph.loop_of(&body, entries[0], &blocks));
            // Two entries are the header and a jump into the middle; more are copies of one dispatch.
            let headers = if entries.len() <= 2 { &entries[..1] } else { &entries[..] };
            if depth < MAX_DEPTH {
                open.push((body.into_iter().filter(|at| !headers.contains(at)).collect(), depth + 1));
            }
        }
    }
    loops.sort_by_key(|one: &Loop| (std::cmp::Reverse(one.blocks.len()), one.header));
    loops
}

/// The control flow graph; a node is a block by its place in the order of addresses.
struct Graph {
    flow: DiGraph<(), ()>,
    /// Blocks that the function's entry leads to, in reverse postorder.
    reached: Vec<usize>,
    /// Position in `reached`; `usize::MAX` for other blocks.
    order: Vec<usize>,
}

impl Graph {
    fn of(blocks: &[(u64, Block)], start: u64) -> Graph {
        let number = |at: &u64| blocks.binary_search_by_key(at, |(start, _)| *start).ok();
        let mut flow = nodes(blocks.len());
        for (from, (_, block)) in blocks.iter().enumerate() {
            // The edge that was added last is followed first.
            for to in block.next.iter().rev().filter_map(number) {
                flow.add_edge(NodeIndex::new(from), NodeIndex::new(to), ());
            }
        }
        let mut reached = Vec::new();
        if let Some(first) = number(&start) {
            let mut walk = DfsPostOrder::new(&flow, NodeIndex::new(first));
            reached.extend(std::iter::from_fn(|| walk.next(&flow)).map(NodeIndex::index));
            reached.reverse();
        }
        let mut order = vec![usize::MAX; blocks.len()];
        reached.iter().enumerate().for_each(|(position, at)| order[*at] = position);
        Graph { flow, reached, order }
    }

    fn next(&self, at: usize) -> impl Iterator<Item = usize> + '_ {
        self.flow.neighbors(NodeIndex::new(at)).map(NodeIndex::index)
    }

    /// The strongly connected parts with a cycle among some blocks.
    fn cycles_in(&self, part: &[usize]) -> Vec<Vec<usize>> {
        let local: FxHashMap<usize, usize> = part.iter().copied().zip(0..).collect();
        let mut inner = nodes(part.len());
        for (from, at) in part.iter().enumerate() {
            for to in self.next(*at).filter_map(|to| local.get(&to)) {
                inner.add_edge(NodeIndex::new(from), NodeIndex::new(*to), ());
            }
        }
        // Not Tarjan's algorithm, which is recursive there: functions have many thousand blocks.
        let mut cycles = kosaraju_scc(&inner);
        cycles.retain(|body| body.len() > 1 || inner.contains_edge(body[0], body[0]));
        cycles.into_iter().map(|body| body.into_iter().map(|at| part[at.index()]).collect()).collect()
    }

    /// Blocks of a cycle that others lead to, the first to be reached first.
    fn entries_of(&self, body: &[usize]) -> Vec<usize> {
        let inside: FxHashSet<usize> = body.iter().copied().collect();
        let is_entry = |at: &usize| {
            let before = self.flow.neighbors_directed(NodeIndex::new(*at), Direction::Incoming);
            let mut before = before.map(NodeIndex::index).filter(|from| self.order[*from] != usize::MAX);
            self.order[*at] == 0 || before.any(|from| !inside.contains(&from))
        };
        let mut entries: Vec<usize> = body.iter().copied().filter(is_entry).collect();
        entries.sort_unstable_by_key(|at| self.order[*at]);
        entries
    }

    fn loop_of(&self, body: &[usize], header: usize, blocks: &[(u64, Block)]) -> Loop {
        let mut inside = body.to_vec();
        inside.sort_unstable();
        let is_control = |at: &usize| {
            let leaves = |to: &usize| *to == header || inside.binary_search(to).is_err();
            blocks[*at].1.is_branch && self.next(*at).any(|to| leaves(&to))
        };
        let controls = inside.iter().filter(|at| is_control(at)).take(MAX_CONTROLS);
        Loop {
            header: blocks[header].0,
            controls: controls.map(|at| blocks[*at].1.last).collect(),
            blocks: inside.iter().map(|at| blocks[*at].0..blocks[*at].1.end).collect(),
        }
    }
}

/// A graph without edges.
fn nodes(count: usize) -> DiGraph<(), ()> {
    let mut graph = DiGraph::with_capacity(count, 2 * count);
    for _ in 0..count {
        graph.add_node(());
    }
    graph
}

/// Makes a handler reachable by exceptions alone, not from the preceding code, such as a call that never returns.
fn lead_to_handlers(blocks: &mut BTreeMap<u64, Block>, handlers: &[Handler]) {
    let pads: BTreeSet<u64> = handlers.iter().map(|handler| handler.pad).collect();
    blocks.values_mut().for_each(|block| block.next.retain(|to| !pads.contains(to)));
    let starts: BTreeSet<u64> = blocks.keys().copied().collect();
    for handler in handlers.iter().filter(|handler| starts.contains(&handler.pad)) {
        // The first may begin before the calls.
        for (_, block) in blocks.range_mut(..handler.calls.end).rev() {
            if block.end <= handler.calls.start {
                break;
            }
            block.next.push(handler.pad);
        }
    }
}

/// Makes jumps through registers lead to all otherwise unreachable code.
fn lead_to_cases(blocks: &mut BTreeMap<u64, Block>, start: u64, handlers: &[Handler]) {
    let reached: BTreeSet<u64> = blocks.values().flat_map(|block| block.next.iter().copied()).collect();
    let mut cases: Vec<u64> = blocks.keys().copied().collect();
    let pads: BTreeSet<u64> = handlers.iter().map(|handler| handler.pad).collect();
    cases.retain(|at| *at != start && !reached.contains(at) && !pads.contains(at));
    let jumps = blocks.values().filter(|block| block.is_indirect).count();
    if jumps.saturating_mul(cases.len()) > MAX_CASE_EDGES {
        return;
    }
    for block in blocks.values_mut().filter(|block| block.is_indirect) {
        block.next.extend(&cases);
    }
}

struct Step {
    after: u64,
    next: Vec<u64>,
    is_end: bool,
    is_indirect: bool,
    is_branch: bool,
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
        let is_branch = matches!(flow, FlowControl::ConditionalBranch | FlowControl::UnconditionalBranch);
        let is_filler = matches!(instruction.mnemonic(), Mnemonic::Nop | Mnemonic::Int3);
        steps.insert(at, Step { after, next, is_end, is_indirect, is_branch, is_filler });
    }
    let mut blocks = BTreeMap::new();
    let (mut first, mut is_reached) = (None, true);
    for (at, step) in &steps {
        // Padding before aligned code leads to nothing.
        if first.is_none() && !is_reached && step.is_filler && !targets.contains(at) {
            continue;
        }
        let begin = *first.get_or_insert(*at);
        is_reached = step.next.contains(&step.after);
        if step.is_end || targets.contains(&step.after) {
            let (next, is_indirect) = (step.next.clone(), step.is_indirect);
            let is_branch = step.is_branch;
            blocks.insert(begin, Block { last: *at, end: step.after, next, is_indirect, is_branch });
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
        // Bytes that are not code.
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
    fn a_retry_after_an_exception_is_a_loop_with_its_handler() {
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

    #[test]
    fn rotated_loop_with_its_header_behind_the_branch_back_is_found() {
        // 0: jmp 8; 2: inc ecx (the latch); 4: cmp eax,edx; 6: jz f; 8: call (the header); d: jmp 2; f: ret
        let code = [0xeb, 6, 0xff, 0xc1, 0x39, 0xd0, 0x74, 7, 0xe8, 0x10, 0, 0, 0, 0xeb, 0xf3, 0xc3];
        let loops = loops_of(&code, 0, &[]);
        assert_eq!(loops.len(), 1, "{loops:?}");
        assert_eq!((loops[0].header, &loops[0].controls[..]), (8, &[6][..]));
        assert!([2, 4, 6, 8, 0xd].iter().all(|at| loops[0].contains(*at)));
        assert!(!loops[0].contains(0) && !loops[0].contains(0xf));
    }

    #[test]
    fn loop_that_is_entered_in_the_middle_too_is_one_loop() {
        // 0: jz 4; 2: inc ecx; 4: inc ecx; 6: jnz 2; 8: ret
        let loops = loops_of(&[0x74, 2, 0xff, 0xc1, 0xff, 0xc1, 0x75, 0xfa, 0xc3], 0, &[]);
        assert_eq!(loops.len(), 1, "{loops:?}");
        assert!(loops[0].contains(2) && loops[0].contains(6) && !loops[0].contains(8));
    }

    #[test]
    fn copies_of_one_dispatch_are_one_loop() {
        // 0: jmp *rax; then three times inc ecx; jmp *rax; ret
        let code = [0xff, 0xe0, 0xff, 0xc1, 0xff, 0xe0, 0xff, 0xc1, 0xff, 0xe0, 0xff, 0xc1, 0xff, 0xe0, 0xc3];
        let loops = loops_of(&code, 0, &[]);
        assert_eq!(loops.len(), 1, "{loops:?}");
        assert!(loops[0].contains(2) && loops[0].contains(0xc) && !loops[0].contains(0));
    }

    #[test]
    fn deep_nests_are_bounded() {
        // n times inc ecx, then n times jnz to each of them: all loops share their end.
        let depth = 60u8;
        let mut code = [0xff, 0xc1].repeat(depth.into());
        for back in 0..depth {
            let to = i32::from(depth - 1 - back) * 2;
            code.extend([0x75, (to - (code.len() as i32 + 2)) as i8 as u8]);
            if code.len() > 240 {
                break;
            }
        }
        let loops = loops_of(&code, 0, &[]);
        assert!(loops.len() > 10 && loops.len() <= MAX_DEPTH as usize + 1, "{}", loops.len());
        assert!(loops.windows(2).all(|pair| pair[0].blocks.len() >= pair[1].blocks.len()));
    }
}
