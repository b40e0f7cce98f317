//! The example of docs/instrumenting.md: a parallel iterator and a fork of rayon, as tasks.

use rayon::prelude::*;
use taskscope_record::instrument;
use taskscope_record::rayon::{AsTasks, join};

fn heavy(n: u64) -> u64 {
    (0..n % 5_000).fold(n, |sum, x| sum ^ (sum << 1) ^ x)
}

fn main() {
    // Records if TASKSCOPE_TRACE_DIR is set, as it is under `taskscope record`; otherwise free of cost.
    instrument::start_from_environment();
    let sum: u64 = (0..20_000_u64).into_par_iter().map(heavy).as_tasks().reduce(|| 0, |a, b| a ^ b);
    let (left, right) = join(|| heavy(7), || heavy(8));
    println!("{}", sum ^ left ^ right);
    instrument::finish();
}
