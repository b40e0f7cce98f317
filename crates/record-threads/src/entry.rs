//! The symbols that programs call in the place of those of the C library.
//!
//! Each passes the return address on, as one more argument, and jumps to the function of the same name in this
//! library: no frame is added, and a call costs two instructions more.

use core::arch::naked_asm;

use crate::{barrier, condition, join, lock, once, semaphore};

/// `name arguments module`: a function with so many arguments.
macro_rules! entries {
    ($( $name:ident $arguments:tt $module:ident; )*) => { $(
        #[unsafe(no_mangle)]
        #[unsafe(naked)]
        unsafe extern "C-unwind" fn $name() {
            entries!(@jump $arguments $module::$name)
        }
    )* };
    (@jump 1 $target:path) => { entries!(@to "rsi" "x1" $target) };
    (@jump 2 $target:path) => { entries!(@to "rdx" "x2" $target) };
    (@jump 3 $target:path) => { entries!(@to "rcx" "x3" $target) };
    (@jump 4 $target:path) => { entries!(@to "r8" "x4" $target) };
    (@to $x86:literal $arm:literal $target:path) => {{
        #[cfg(target_arch = "x86_64")]
        naked_asm!(concat!("mov ", $x86, ", [rsp]"), "jmp {target}", target = sym $target);
        #[cfg(target_arch = "aarch64")]
        naked_asm!(concat!("mov ", $arm, ", x30"), "b {target}", target = sym $target);
    }};
}

entries! {
    pthread_mutex_lock 1 lock;
    pthread_mutex_trylock 1 lock;
    pthread_mutex_timedlock 2 lock;
    pthread_mutex_clocklock 3 lock;
    pthread_mutex_unlock 1 lock;
    pthread_mutex_destroy 1 lock;
    pthread_spin_lock 1 lock;
    pthread_spin_trylock 1 lock;
    pthread_spin_unlock 1 lock;
    pthread_spin_destroy 1 lock;
    pthread_rwlock_rdlock 1 lock;
    pthread_rwlock_tryrdlock 1 lock;
    pthread_rwlock_timedrdlock 2 lock;
    pthread_rwlock_clockrdlock 3 lock;
    pthread_rwlock_wrlock 1 lock;
    pthread_rwlock_trywrlock 1 lock;
    pthread_rwlock_timedwrlock 2 lock;
    pthread_rwlock_clockwrlock 3 lock;
    pthread_rwlock_unlock 1 lock;
    pthread_rwlock_destroy 1 lock;
    pthread_cond_wait 2 condition;
    pthread_cond_timedwait 3 condition;
    pthread_cond_clockwait 4 condition;
    pthread_cond_signal 1 condition;
    pthread_cond_broadcast 1 condition;
    pthread_cond_destroy 1 lock;
    pthread_barrier_init 3 barrier;
    pthread_barrier_wait 1 barrier;
    pthread_barrier_destroy 1 lock;
    sem_wait 1 semaphore;
    sem_post 1 semaphore;
    sem_destroy 1 lock;
    pthread_once 2 once;
    pthread_join 2 join;
    pthread_timedjoin_np 3 join;
    pthread_clockjoin_np 4 join;
    mtx_lock 1 lock;
    mtx_trylock 1 lock;
    mtx_timedlock 2 lock;
    mtx_unlock 1 lock;
    mtx_destroy 1 lock;
    cnd_wait 2 condition;
    cnd_timedwait 3 condition;
    cnd_signal 1 condition;
    cnd_broadcast 1 condition;
    cnd_destroy 1 lock;
    thrd_join 2 join;
}
