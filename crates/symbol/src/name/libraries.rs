//! Functions that wait, wake and take locks for their callers: a place in one of them is named after the first caller outside of them.
//!
//! 1. Scopes: those of languages' libraries, and of libraries of locks and channels ([`SCOPES`]).
//! 2. Wrappers of any library or program: functions named after an operation on a lock, a condition or the like.
//!
//! ```text
//!   inline_mysql_mutex_lock   absl::Mutex::LockSlow   SDL_LockMutex     PyThread_acquire_lock_timed
//!                ▔▔▔▔▔ ▔▔▔▔         ▔▔▔▔▔  ▔▔▔▔▔▔▔▔       ▔▔▔▔▔▔▔▔▔              ▔▔▔▔▔▔▔ ▔▔▔▔ ▔▔▔▔▔
//! ```
//! The last words of the name, with those of the class that the function is a member of, are an object ([`OBJECTS`]), an operation
//! ([`OPERATIONS`]) and words without meaning of their own ([`OTHERS`]). A word before them does not matter, one behind them
//! (`lock_table`, `wait_for_work`) makes it a function of the program.

use super::parts::{parts_of, without_parameters, without_result};

/// Begins of names.
const SCOPES: [&str; 21] = [
    "std::",
    "__gnu_cxx::",
    "__cxxabiv1::",
    "__gthread_",
    "__glibcxx_",
    "pthread_",
    "__pthread_",
    "parking_lot::",
    "parking_lot_core::",
    "lock_api::",
    "crossbeam_channel::",
    "crossbeam_utils::",
    "g_async_queue_",
    // InnoDB's events.
    "os_event",
    // Templates of oneTBB's headers, and what these call to wait and wake; workers without work wait in other functions.
    "tbb::detail::d0::",
    "tbb::detail::d1::",
    "tbb::detail::d2::",
    "tbb::detail::r1::wait_bounded_queue_monitor",
    "tbb::detail::r1::notify_bounded_queue_monitor",
    "tbb::detail::r1::wait_on_address",
    "tbb::detail::r1::notify_by_address",
];

/// Objects that threads wait for. A lock is an operation, too.
const OBJECTS: [&str; 19] = [
    "mutex",
    "mtx",
    "mu",
    "lock",
    "locker",
    "spin",
    "spinlock",
    "rw",
    "rwlock",
    "cond",
    "condvar",
    "cv",
    "condition",
    "sem",
    "semaphore",
    "futex",
    "barrier",
    "gil",
    "thread",
];

/// Operations on them.
const OPERATIONS: [&str; 33] = [
    "lock",
    "unlock",
    "trylock",
    "try",
    "rdlock",
    "wrlock",
    "read",
    "write",
    "rd",
    "wr",
    "shared",
    "exclusive",
    "acquire",
    "release",
    "enter",
    "leave",
    "exit",
    "take",
    "get",
    "drop",
    "wait",
    "timedwait",
    "await",
    "block",
    "signal",
    "broadcast",
    "notify",
    "wake",
    "wakeup",
    "post",
    "up",
    "down",
    "join",
];

/// Words that may be between and behind them.
const OTHERS: [&str; 24] = [
    "and",
    "all",
    "one",
    "for",
    "with",
    "until",
    "timed",
    "timeout",
    "deadline",
    "slow",
    "slowpath",
    "fast",
    "contended",
    "loop",
    "common",
    "internal",
    "impl",
    "inner",
    "self",
    "raw",
    "recursive",
    "var",
    "variable",
    "guard",
];

/// Whether a function of this name waits, wakes or takes locks for its caller: it belongs to a language's library, to a library of locks
/// and channels, or is a wrapper of one.
pub fn is_of_language_library(name: &str) -> bool {
    // Programs have namespaces of these names, too.
    const CORE: [&str; 6] = ["ops", "option", "result", "iter", "ptr", "panic"];
    const ALLOC: [&str; 4] = ["boxed", "sync", "rc", "vec"];
    let name = without_parameters(name);
    let own = without_result(&name).trim_start_matches(['<', '&', '*']);
    let own = own.strip_prefix("mut ").unwrap_or(own);
    let own = own.strip_prefix("dyn ").unwrap_or(own);
    let is_in = |scope: &str, modules: &[&str]| {
        let within = own.strip_prefix(scope).and_then(|within| within.split(['<', ':']).next());
        within.is_some_and(|module| modules.contains(&module))
    };
    SCOPES.iter().any(|scope| own.starts_with(scope))
        || is_in("core::", &CORE)
        || is_in("alloc::", &ALLOC)
        || is_wrapper(without_result(&name))
}

/// Whether a function with this name, without result and parameters, is a wrapper.
fn is_wrapper(name: &str) -> bool {
    /// Wrappers have shorter names.
    const MAX_BYTES: usize = 256;
    if name.len() > MAX_BYTES {
        return false;
    }
    let parts = parts_of(name);
    let mut parts = parts.iter().rev().map(|part| words_of(part));
    let (Some(own), class) = (parts.next(), parts.next().unwrap_or_default()) else { return false };
    let is_known = |word: &&String| {
        let word = word.as_str();
        OBJECTS.contains(&word) || OPERATIONS.contains(&word) || OTHERS.contains(&word)
    };
    let own_end: Vec<&String> = own.iter().rev().take_while(is_known).collect();
    // The whole name of a member is an operation; the class has the object.
    let class_end: Vec<&String> = match own_end.len() == own.len() {
        true => class.iter().rev().take_while(is_known).collect(),
        false => Vec::new(),
    };
    let end: Vec<&str> = own_end.iter().chain(&class_end).map(|word| word.as_str()).collect();
    let has_operation = own_end.iter().any(|word| OPERATIONS.contains(&word.as_str()));
    let is_object = |word: &&&str| OBJECTS.contains(*word);
    let objects: Vec<&str> = end.iter().filter(is_object).copied().collect();
    // A lock is not both at once, and the end of a thread is all that is waited for in it.
    let others = end.iter().filter(|word| OPERATIONS.contains(word) || OBJECTS.contains(word)).count();
    let is_of_object = match objects[..] {
        [] => false,
        ["thread"] => end.contains(&"join"),
        _ => others >= 2,
    };
    // A constructor and a destructor of a guard.
    let is_guard = !own.is_empty() && own == class && objects.contains(&"lock");
    (has_operation && is_of_object) || is_guard
}

/// The words of a name in lower case: `lock`, `slow` of `LockSlow` and `lock_slow`.
fn words_of(part: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    let (mut word, mut last) = (String::new(), ' ');
    let mut characters = part.chars().peekable();
    while let Some(character) = characters.next() {
        // `QMutex` and `PyMutex` end in the same word.
        let is_before_lower = characters.peek().is_some_and(char::is_ascii_lowercase);
        let begins = character.is_ascii_uppercase() && (last.is_ascii_lowercase() || is_before_lower);
        if (begins || !character.is_ascii_alphanumeric()) && !word.is_empty() {
            words.push(core::mem::take(&mut word));
        }
        if character.is_ascii_alphanumeric() {
            word.push(character.to_ascii_lowercase());
        }
        last = character;
    }
    if !word.is_empty() {
        words.push(word);
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_of_language_libraries_are_known_by_their_scope() {
        for name in [
            "std::mutex::lock()",
            "__gthread_mutex_lock(pthread_mutex_t*)",
            "__glibcxx_rwlock_rdlock",
            "void std::atomic<unsigned int>::wait(unsigned int, std::memory_order) const",
            "bool std::condition_variable::wait_for<long, std::ratio<1l, 10l>, main::{lambda()#1}>(int)",
            "std::sys::sync::mutex::futex::Mutex::lock_contended",
            "<std::sync::mpsc::Receiver<u64>>::recv",
            "<std::sync::mutex::MutexGuard<T> as core::ops::drop::Drop>::drop",
            "core::ops::function::FnOnce::call_once{{vtable.shim}}",
            "<alloc::boxed::Box<F,A> as core::ops::function::FnOnce<Args>>::call_once",
            "parking_lot::raw_mutex::RawMutex::lock_slow",
            "void tbb::detail::d2::concurrent_bounded_queue<int>::push(int const&)",
            "tbb::detail::r1::wait_bounded_queue_monitor(tbb::detail::r1::concurrent_monitor*, unsigned long, long)",
        ] {
            assert!(is_of_language_library(name), "{name}");
        }
        for name in [
            "main",
            "stdlike::mutex::lock_all_tables()",
            "core::Engine::run()",
            "Cache::evict(std::vector<int>&)",
            "std_cache",
            "rayon_core::sleep::Sleep::sleep",
            "tbb::detail::r1::rml::private_worker::run()",
            "int work<std::mutex>(std::mutex&)",
            "main::{lambda(std::future<int>)#1}::operator()(std::future<int>) const",
        ] {
            assert!(!is_of_language_library(name), "{name}");
        }
    }

    #[test]
    fn wrappers_are_known_by_an_object_and_an_operation() {
        for name in [
            "inline_mysql_mutex_lock(mysql_mutex_t*, char const*, unsigned int)",
            "psi_mutex_lock",
            "inline_mysql_cond_timedwait",
            "my_cond_wait",
            "srw_mutex_impl<true>::wait_and_lock()",
            "ssux_lock_impl<false>::rd_wait()",
            "PolicyMutex<TTASEventMutex<GenericPolicy>>::enter(unsigned int)",
            "os_event::wait_low(long)",
            "g_mutex_lock",
            "g_mutex_lock_slowpath_impl_slow",
            "g_cond_wait_until",
            "g_rec_mutex_lock",
            "g_thread_join",
            "PyThread_acquire_lock",
            "PyThread_acquire_lock_timed",
            "PyMutex_Lock",
            "_PyMutex_LockTimed",
            "take_gil",
            "absl::Mutex::Lock()",
            "absl::lts_20240116::Mutex::LockSlow(absl::lts_20240116::MuHowS const*, int)",
            "absl::lts_20240116::MutexLock::MutexLock(absl::lts_20240116::Mutex*)",
            "absl::CondVar::WaitWithTimeout(absl::Mutex*, absl::Duration)",
            "rocksdb::port::Mutex::Lock()",
            "rocksdb::InstrumentedMutex::Lock()",
            "QMutex::lock()",
            "QWaitCondition::wait(QMutex*, unsigned long)",
            "boost::condition_variable::wait(boost::unique_lock<boost::mutex>&)",
            "boost::unique_lock<boost::mutex>::lock()",
            "boost::thread::join()",
            "folly::SharedMutexImpl<false>::lock_shared()",
            "uv_mutex_lock",
            "uv_cond_wait",
            "uv_sem_wait",
            "apr_thread_mutex_lock",
            "SDL_LockMutex",
            "SDL_CondWait",
            "CRYPTO_THREAD_write_lock",
            "nsync_mu_lock",
            "gpr_cv_wait",
            "barrier_wait",
            "spin_lock",
        ] {
            assert!(is_of_language_library(name), "{name}");
        }
        for name in [
            "lock",
            "update",
            "wait",
            "wait_for_work",
            "Table::lock()",
            "lock_table",
            "Cache::lock_and_evict(int)",
            "log_writer",
            "signal_handler",
            "mutex_test",
            "thread_wait_loop",
            "Queue::get()",
            "Pool::wait_idle()",
            "worker_thread",
            "run_thread",
            "condition",
            "MutexTable::find(int)",
            "Locker::Locker(Table&)",
            "get_condition_number",
            "read_barrier_log",
            "{lambda()#1}::operator()",
        ] {
            assert!(!is_of_language_library(name), "{name}");
        }
    }
}
