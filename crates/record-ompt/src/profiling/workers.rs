//! The accounts of a process's threads, and its pool of workers.

use core::sync::atomic::{AtomicPtr, AtomicUsize, Ordering::*};

use taskscope_record::clock;

use super::account::Account;
use super::idleness::Pool;
use super::no_cpu::Watch;

/// Threads at a time that waits can be charged to: so many that the memory comes from the system, which gives pages as they are used.
const ACCOUNTS: usize = 1 << 14;

/// The threads of a run.
pub struct Workers {
    accounts: Box<[AtomicPtr<Account>]>,
    /// One more than the highest place used so far.
    used: AtomicUsize,
    /// Workers of teams.
    pub pool: Pool,
}

static CURRENT: AtomicPtr<Workers> = AtomicPtr::new(core::ptr::null_mut());

/// The threads of this process's run, if it has begun.
pub fn current() -> Option<&'static Workers> {
    // SAFETY: null, or a part of a leaked run.
    unsafe { CURRENT.load(Acquire).as_ref() }
}

impl Workers {
    /// Creates the workers of a run that begins now.
    pub fn new(began: u64) -> Workers {
        Workers {
            // SAFETY: null pointers are all zero. So the memory is there only as far as it is used.
            accounts: unsafe { Box::new_zeroed_slice(ACCOUNTS).assume_init() },
            used: AtomicUsize::new(0),
            pool: Pool::new(began),
        }
    }

    /// Makes them those of this process's run.
    pub fn make_current(&'static self) {
        CURRENT.store(core::ptr::from_ref(self).cast_mut(), Release);
    }

    /// Places that were ever taken.
    pub fn used(&self) -> u64 {
        self.used.load(Relaxed) as u64
    }

    /// A place for a thread that begins, with its time without a CPU watched if `is_watched`.
    pub fn new_account(&self, is_watched: bool) -> &'static Account {
        let mut account = Box::new(Account::new(clock::now()));
        if is_watched {
            account.watch = Watch::begin();
        }
        let account: &'static Account = Box::leak(account);
        let pointer = core::ptr::from_ref(account).cast_mut();
        for (index, place) in self.accounts.iter().enumerate() {
            if place.load(Relaxed).is_null()
                && place.compare_exchange(core::ptr::null_mut(), pointer, Release, Relaxed).is_ok()
            {
                self.used.fetch_max(index + 1, Release);
                break;
            }
        }
        account
    }

    /// Frees the place of a thread that has ended.
    pub fn free_account(&self, account: &'static Account) {
        let pointer = core::ptr::from_ref(account).cast_mut();
        if let Some(place) = self.accounts.iter().find(|place| place.load(Relaxed) == pointer) {
            place.store(core::ptr::null_mut(), Release);
        }
    }

    /// The accounts of the threads that live.
    pub fn accounts(&self) -> impl Iterator<Item = &'static Account> {
        let used = self.accounts.get(..self.used.load(Acquire)).unwrap_or_default();
        // SAFETY: null, or a leaked box.
        used.iter().filter_map(|place| unsafe { place.load(Acquire).as_ref() })
    }
}
