//! `pic-table TRACE…`: the table of `examples/pic`, a row for each trace.

use std::path::Path;
use std::process::ExitCode;
use taskscope_testkit::pic_table::{row, table};

fn main() -> ExitCode {
    let mut rows = Vec::new();
    for trace in std::env::args().skip(1) {
        match row(Path::new(&trace)) {
            Ok(row) => rows.push(row),
            Err(why) => {
                eprintln!("error: cannot read {trace}\n  why:  {why}");
                return ExitCode::from(2);
            }
        }
    }
    print!("{}", table(&rows));
    ExitCode::from(u8::from(!rows.iter().all(|row| row.is_exact())))
}
