//! The threads that share the work on a trace: as many as can be made, or none but the calling one.

use rayon::{ThreadBuilder, ThreadPoolBuilder};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

/// Prepares the threads. Made later, a thread that cannot be made would end the program.
pub fn prepare() {
    let wanted = std::thread::available_parallelism().map_or(1, |cores| cores.get());
    let wanted = std::env::var("RAYON_NUM_THREADS").ok().and_then(|text| text.parse().ok()).unwrap_or(wanted);
    let (give, take): (Vec<SyncSender<ThreadBuilder>>, Vec<Receiver<_>>) =
        (0..wanted.max(1)).map(|_| sync_channel(1)).unzip();
    let made = take.into_iter().map_while(|take| {
        let wait = move || take.recv().into_iter().for_each(ThreadBuilder::run);
        std::thread::Builder::new().spawn(wait).ok()
    });
    let made = made.count();
    let built = if made == 0 {
        ThreadPoolBuilder::new().num_threads(1).use_current_thread().build_global()
    } else {
        let mut threads = give.into_iter().take(made);
        let hand_over = move |thread: ThreadBuilder| {
            let next = threads.next().ok_or(std::io::ErrorKind::WouldBlock)?;
            next.send(thread).map_err(|_| std::io::ErrorKind::WouldBlock.into())
        };
        ThreadPoolBuilder::new().num_threads(made).spawn_handler(hand_over).build_global()
    };
    // Fails if the pool exists already.
    let _ = built;
}
