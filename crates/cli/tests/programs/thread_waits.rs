//! Threads of Rust that wait for each other, one way a run: `thread_waits WAY`. The lines that wait and wake are marked.

use std::sync::atomic::{AtomicU32, Ordering::SeqCst};
use std::sync::{Mutex, mpsc};
use std::thread;
use std::time::Duration;

static CACHE: Mutex<u64> = Mutex::new(0);
static IS_HELD: AtomicU32 = AtomicU32::new(0);
/// Id of the thread that is about to wait.
static WAITING: AtomicU32 = AtomicU32::new(0);

fn nap(milliseconds: u64) {
    thread::sleep(Duration::from_millis(milliseconds));
}

fn about_to_wait() {
    let own = std::fs::read_link("/proc/thread-self").unwrap();
    WAITING.store(own.file_name().unwrap().to_str().unwrap().parse().unwrap(), SeqCst);
}

/// Until that thread waits in the kernel, and a while longer.
fn until_it_waits() {
    let mut times = 0;
    while times < 5 {
        nap(1);
        let stat = std::fs::read_to_string(format!("/proc/self/task/{}/stat", WAITING.load(SeqCst)));
        let sleeps = stat.is_ok_and(|stat| stat.rsplit(')').next().unwrap().starts_with(" S"));
        times = if sleeps { times + 1 } else { 0 };
    }
    nap(60);
}

/// A call that is its function's last is a jump: the function is on the stack no more.
fn stay() {
    IS_HELD.store(2, SeqCst);
}

#[inline(never)]
fn evict() {
    let mut cache = CACHE.lock().unwrap();
    IS_HELD.store(1, SeqCst);
    until_it_waits();
    *cache += 1;
    drop(cache); /* releases the mutex */
    stay();
}

#[inline(never)]
fn produce(sender: mpsc::Sender<u64>) {
    until_it_waits();
    sender.send(42).unwrap(); /* sends */
    stay();
}

fn main() {
    let way = std::env::args().nth(1).unwrap_or_default();
    match way.as_str() {
        "mutex" => {
            let holder = thread::spawn(evict);
            while IS_HELD.load(SeqCst) == 0 {
                nap(1);
            }
            about_to_wait();
            *CACHE.lock().unwrap() += 1; /* waits for the mutex */
            holder.join().unwrap();
        }
        "channel" => {
            let (sender, receiver) = mpsc::channel();
            let producer = thread::spawn(move || produce(sender));
            about_to_wait();
            assert_eq!(receiver.recv(), Ok(42)); /* receives */
            producer.join().unwrap();
        }
        _ => std::process::exit(2),
    }
    println!("{way}");
}
