//! The C library's functions behind ours.

use core::ffi::CStr;
use core::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// The next function of a name after ours.
pub struct Next {
    name: &'static CStr,
    found: AtomicUsize,
}

/// The version of conditions' functions with today's memory layout. Other machines have one version only.
const CONDITIONS: &CStr = c"GLIBC_2.3.2";

impl Next {
    const fn new(name: &'static CStr) -> Self {
        Next { name, found: AtomicUsize::new(0) }
    }

    /// Its address; before the library is initialised it is looked up.
    #[inline(always)]
    pub fn address(&self) -> usize {
        match self.found.load(Relaxed) {
            0 => self.look_up(),
            found => found,
        }
    }

    #[cold]
    #[inline(never)]
    fn look_up(&self) -> usize {
        let is_of_condition = self.name.to_bytes().starts_with(b"pthread_cond_");
        // SAFETY: looks up C strings.
        let found = unsafe {
            let versioned = if is_of_condition {
                libc::dlvsym(libc::RTLD_NEXT, self.name.as_ptr(), CONDITIONS.as_ptr())
            } else {
                core::ptr::null_mut()
            };
            if versioned.is_null() { libc::dlsym(libc::RTLD_NEXT, self.name.as_ptr()) } else { versioned }
        };
        let found = if found.is_null() { missing as *const () as usize } else { found as usize };
        self.found.store(found, Relaxed);
        found
    }
}

/// Stands for a function that this C library does not have.
unsafe extern "C" fn missing() -> isize {
    libc::ENOSYS as isize
}

/// A [`Next`] for each name, and `look_up` for all of them.
macro_rules! next_functions {
    ($($name:ident)*) => {
        $(
            #[allow(non_upper_case_globals, reason = "the names of functions")]
            pub static $name: Next = Next::new(match CStr::from_bytes_with_nul(
                concat!(stringify!($name), "\0").as_bytes(),
            ) {
                Ok(name) => name,
                Err(_) => c"",
            });
        )*

        /// Looks all functions up.
        pub fn look_up() {
            for next in [$(&$name),*] {
                next.address();
            }
            // Those that are missing have left a message, which is not for the program.
            // SAFETY: no preconditions.
            unsafe { libc::dlerror() };
        }
    };
}

next_functions! {
    pthread_mutex_lock pthread_mutex_trylock pthread_mutex_timedlock pthread_mutex_clocklock pthread_mutex_unlock
    pthread_mutex_destroy
    pthread_spin_lock pthread_spin_trylock pthread_spin_unlock pthread_spin_destroy
    pthread_rwlock_rdlock pthread_rwlock_tryrdlock pthread_rwlock_timedrdlock pthread_rwlock_clockrdlock
    pthread_rwlock_wrlock pthread_rwlock_trywrlock pthread_rwlock_timedwrlock pthread_rwlock_clockwrlock
    pthread_rwlock_unlock pthread_rwlock_destroy
    pthread_cond_wait pthread_cond_timedwait pthread_cond_clockwait pthread_cond_signal pthread_cond_broadcast
    pthread_cond_destroy
    pthread_barrier_init pthread_barrier_wait pthread_barrier_destroy
    sem_wait sem_trywait sem_post sem_destroy
    pthread_join pthread_tryjoin_np pthread_timedjoin_np pthread_clockjoin_np
    mtx_lock mtx_trylock mtx_timedlock mtx_unlock mtx_destroy
    cnd_wait cnd_timedwait cnd_signal cnd_broadcast cnd_destroy thrd_join
    pthread_once
    pipe pipe2 eventfd socketpair close fclose close_range dup dup2 dup3 fcntl fcntl64 epoll_ctl
    fsync fdatasync syncfs sync_file_range pread pread64 __pread_chk __pread64_chk pwrite pwrite64 preadv preadv64 preadv2 preadv64v2
    pwritev pwritev64 pwritev2 pwritev64v2 sendfile sendfile64 copy_file_range
    wait waitpid wait3 wait4 waitid pclose flock lockf lockf64 mq_send mq_receive mq_timedsend mq_timedreceive
    pthread_kill pthread_sigqueue kill sigqueue
}

/// Calls the function behind ours: `call!(name(argument: type, …) -> type)`.
macro_rules! call {
    ($name:ident($($argument:ident : $type:ty),*) -> $result:ty) => {{
        type Function = unsafe extern "C-unwind" fn($($type),*) -> $result;
        core::mem::transmute::<usize, Function>($crate::c_library::$name.address())($($argument),*)
    }};
}
pub(crate) use call;
