//! Sorting on rayon, with its forks as tasks.
//!
//! ```text
//! TASKSCOPE_TRACE_DIR=rayon.trace cargo run --release -p taskscope-record --features rayon --example rayon_sort
//! taskscope report rayon.trace
//! ```

use taskscope_prerequisite::dice::Dice;
use taskscope_record::instrument;
use taskscope_record::rayon::{join, scope};

/// Quicksort: the two sides of the pivot are independent.
fn sort(numbers: &mut [u64]) {
    if numbers.len() < 20_000 {
        numbers.sort_unstable();
        return;
    }
    let pivot = numbers[numbers.len() / 2];
    let (mut low, mut high) = (0, numbers.len() - 1);
    while low <= high {
        while numbers[low] < pivot {
            low += 1;
        }
        while numbers[high] > pivot {
            high -= 1;
        }
        if low <= high {
            numbers.swap(low, high);
            low += 1;
            high = high.saturating_sub(1);
        }
    }
    let (left, right) = numbers.split_at_mut(low);
    join(|| sort(left), || sort(right));
}

fn main() {
    instrument::start_from_environment();
    let mut dice = Dice::new(1);
    let mut numbers: Vec<u64> = (0..1_500_000).map(|_| dice.next()).collect();
    let pool = rayon::ThreadPoolBuilder::new().num_threads(3).build().expect("threads");
    pool.install(|| {
        sort(&mut numbers);
        // Uneven pieces: the last one is long.
        scope(|scope| {
            for (number, piece) in numbers.chunks_mut(500_000).enumerate() {
                scope.spawn(move |_| {
                    (0..=number * 3).for_each(|_| piece.rotate_left(1));
                    piece.sort_by_key(|n| std::cmp::Reverse(*n));
                });
            }
        });
    });
    drop(pool);
    println!("the largest is {}", numbers[numbers.len() - 500_000]);
    instrument::finish();
}
