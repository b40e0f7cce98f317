//! Sorting many numbers of few bits: digit by digit, lowest first.
//!
//! `radsort`, which sorts the turns of a trace, takes more and smaller digits, those too that are in order already: in the
//! sweep that costs a report 3 to 5 % more.

/// Most bits of a digit: its counts fit into half the first cache of a core.
const DIGIT_BITS: u32 = 12;
/// Below so many numbers counting digits costs more than comparing.
const FEW: usize = 1024;
/// More digits than this cost more than comparing.
const MAX_PASSES: u32 = 4;

/// Sorts `numbers`, of which those that are equal but for their lowest `settled` bits come in their order already.
/// `spare` is memory for it.
pub(crate) fn sort(numbers: &mut Vec<u64>, spare: &mut Vec<u64>, settled: u32) {
    let all = numbers.iter().fold(0, |all, number| all | number);
    let bits = (u64::BITS - all.leading_zeros()).saturating_sub(settled);
    let passes = bits.div_ceil(DIGIT_BITS);
    if numbers.len() < FEW || passes > MAX_PASSES {
        numbers.sort_unstable();
        return;
    }
    spare.resize(numbers.len(), 0);
    // No wider than so many passes need: fewer counts are to be cleared and summed.
    let width = bits.div_ceil(passes.max(1));
    let mut counts = [0_u32; 1 << DIGIT_BITS];
    for pass in 0..passes {
        let shift = settled + pass * width;
        let digit = |number: u64| (number >> shift) as usize & ((1 << width) - 1);
        let next = &mut counts[..1 << width];
        next.fill(0);
        for number in numbers.iter() {
            next[digit(*number)] += 1;
        }
        let mut before = 0;
        for count in &mut *next {
            before += std::mem::replace(count, before);
        }
        for number in numbers.iter() {
            let place = &mut next[digit(*number)];
            spare[*place as usize] = *number;
            *place += 1;
        }
        std::mem::swap(numbers, spare);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn order_equals_that_of_a_comparison_sort() {
        let mut random = 1_u64;
        let mut next = || {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            random >> 12
        };
        let mut spare = Vec::new();
        for count in [0, 1, FEW - 1, FEW, 5000] {
            for bits in [1, 7, 11, 12, 22, 30, 51, 52] {
                for settled in [0, 3, 7] {
                    // As in a sweep: the lowest bits are the number of the list that a number comes from.
                    let times: Vec<u64> = (0..count).map(|_| next() >> (52 - bits) << settled).collect();
                    let lane = |at: usize| (at * (1 << settled) / times.len()) as u64;
                    let mut numbers: Vec<u64> =
                        times.iter().enumerate().map(|(at, time)| time | lane(at)).collect();
                    let mut expected = numbers.clone();
                    expected.sort_unstable();
                    sort(&mut numbers, &mut spare, settled);
                    assert_eq!(numbers, expected, "{count} numbers of {bits} bits, {settled} settled");
                }
            }
        }
    }
}
