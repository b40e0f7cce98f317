//! A server on tokio, in small: requests that wait and work, and one kind that never gives way.
//!
//! ```text
//! TASKSCOPE_TRACE_DIR=tokio.trace cargo run --release -p taskscope-record --features tracing,tokio --example tokio_tasks
//! taskscope report tokio.trace                  # names the task that starved the others
//! taskscope dump --shown task tokio.trace       # each span in its own time, over all workers
//! ```

use std::time::Duration;
use taskscope_record::instrument::TaskKind;
use tracing::Instrument;

/// Busy for about this long.
fn work(micros: u64) {
    let begun = std::time::Instant::now();
    while begun.elapsed() < Duration::from_micros(micros) {
        std::hint::spin_loop();
    }
}

/// A polite request: works a little, waits, works a little.
async fn request(number: u64) {
    for step in 0..10_u64 {
        work(100);
        tracing::info!(step, "worked");
        tokio::time::sleep(Duration::from_micros(500)).await;
    }
    let _ = number;
}

/// Parses a large text in one go: meanwhile its worker runs no other task.
async fn report_of_the_month() {
    for _ in 0..4 {
        work(30_000);
        tokio::task::yield_now().await;
    }
}

fn main() -> std::io::Result<()> {
    let _taskscope = taskscope_record::tracing::init();

    let mut builder = tokio::runtime::Builder::new_multi_thread();
    let runtime = taskscope_record::tokio::observe(&mut builder).worker_threads(2).enable_all().build()?;
    static REPORT: TaskKind = TaskKind::new("report_of_the_month");
    static PING: TaskKind = TaskKind::new("ping");
    runtime.block_on(async {
        let mut all = Vec::new();
        for number in 0..8_u64 {
            all.push(tokio::spawn(request(number).instrument(tracing::info_span!("request", number))));
        }
        for _ in 0..2 {
            all.push(taskscope_record::tokio::spawn(&REPORT, report_of_the_month()));
        }
        for _ in 0..4 {
            all.push(taskscope_record::tokio::spawn(&PING, async {
                for _ in 0..20 {
                    work(20);
                    tokio::time::sleep(Duration::from_millis(1)).await;
                }
            }));
        }
        for task in all {
            let _ = task.await;
        }
    });
    drop(runtime);
    Ok(())
}
