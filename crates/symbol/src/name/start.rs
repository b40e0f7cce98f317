//! Functions between the start of a program or a thread and the program's first function there.

use super::parts::{without_parameters, without_result};

/// Whether a function of a language's library calls `main` or the routine of a thread: if it and its callers are the outermost steps of
/// a path, the path of the program begins after it. `file` is the name of the file that has it, `source` that of its code.
pub fn starts_code(name: &str, file: &str, source: Option<&str>) -> bool {
    let name = without_parameters(name);
    let own = without_result(&name);
    starts_rust(own)
        || starts_cpp(own)
        || starts_unscoped_cpp(own, source)
        || starts_go(own)
        || starts_java(own, file)
}

/// Whether it is the first function that Rust's library calls in `main` of a program: `main` itself is made by the compiler.
pub fn starts_rust_program(name: &str) -> bool {
    name.starts_with("std::rt::lang_start")
}

fn starts_rust(own: &str) -> bool {
    let within = own.trim_start_matches('<');
    let is_call_once = own.starts_with("core::ops::function::FnOnce::call_once")
        || own.contains(" as core::ops::function::FnOnce<") && own.contains(">::call_once");
    is_call_once
        || starts_rust_program(own)
        || own == "__rust_try"
        || own.starts_with("std::sys") && own.contains("::backtrace::__rust_begin_short_backtrace")
        || within.starts_with("std::sys") && own.contains("::thread_start")
        || own.starts_with("std::thread::") && own.contains("spawn_unchecked")
        || ["std::panic::catch_unwind", "std::panicking::catch_unwind", "std::panicking::try"]
            .iter()
            .any(|begin| own.starts_with(begin))
}

fn starts_cpp(own: &str) -> bool {
    const OF_STD: [&str; 13] = [
        "thread::_State_impl<",
        "thread::_Invoker<",
        "thread::_Impl<",
        "jthread::",
        "__invoke",
        "__thread_proxy",
        "__thread_execute",
        // Routines that std::async starts.
        "__future_base::",
        "__async_assoc_state<",
        "__async_func<",
        "call_once",
        "function<",
        "_Function_handler<",
    ];
    const OTHERS: [&str; 5] = [
        "execute_native_thread_routine",
        "__gthread_once",
        "__once_proxy",
        "pthread_once",
        "__pthread_once_slow",
    ];
    let in_std = own.strip_prefix("std::").map(|within| within.strip_prefix("__1::").unwrap_or(within));
    in_std.is_some_and(|within| OF_STD.iter().any(|begin| within.starts_with(begin))) || OTHERS.contains(&own)
}

/// Inlined functions have no scope in the debug information of gcc; the headers of its library are known.
fn starts_unscoped_cpp(own: &str, source: Option<&str>) -> bool {
    const NAMES: [&str; 5] = ["operator()", "_M_invoke", "_M_run", "__invoke", "__invoke_impl"];
    let is_header = source.is_some_and(|source| source.contains("/include/c++/"));
    is_header && NAMES.contains(&own.split('<').next().unwrap_or(own))
}

fn starts_go(own: &str) -> bool {
    const NAMES: [&str; 4] = ["runtime.goexit", "runtime.main", "runtime.rt0_go", "_rt0_amd64_linux"];
    NAMES.contains(&own.strip_suffix(".abi0").unwrap_or(own))
}

fn starts_java(own: &str, file: &str) -> bool {
    // Programs have functions of these names, too.
    const OF_JVM: [&str; 11] = [
        "thread_native_entry",
        "Thread::call_run",
        "JavaThread::run",
        "JavaThread::thread_main_inner",
        "thread_entry",
        "JavaCalls::call_virtual",
        "JavaCalls::call_helper",
        "os::os_exception_wrapper",
        "jni_invoke_static",
        "jni_CallStaticVoidMethod",
        "jni_CallStaticVoidMethodV",
    ];
    const OF_LAUNCHER: [&str; 2] = ["ThreadJavaMain", "JavaMain"];
    const OF_LANGUAGE: [&str; 4] = [
        "java.lang.Thread.run",
        "java.lang.Thread.runWith",
        "java.lang.Thread::run",
        "java.lang.Thread::runWith",
    ];
    OF_LANGUAGE.contains(&own)
        || file.starts_with("libjvm.so") && OF_JVM.contains(&own)
        || file.starts_with("libjli.so") && OF_LAUNCHER.contains(&own)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_that_start_a_program_or_a_thread_are_known() {
        for name in [
            "std::rt::lang_start",
            "std::rt::lang_start::<()>::{closure#0}",
            "std::rt::lang_start::{{closure}}",
            "std::rt::lang_start_internal",
            "std::sys_common::backtrace::__rust_begin_short_backtrace",
            "std::sys::backtrace::__rust_begin_short_backtrace::<fn(), ()>",
            "core::ops::function::FnOnce::call_once{{vtable.shim}}",
            "<alloc::boxed::Box<F,A> as core::ops::function::FnOnce<Args>>::call_once",
            "<core::panic::unwind_safe::AssertUnwindSafe<F> as core::ops::function::FnOnce<()>>::call_once",
            "std::panicking::try::do_call",
            "std::panicking::catch_unwind::do_call::<F, i32>",
            "std::panic::catch_unwind",
            "__rust_try",
            "std::thread::Builder::spawn_unchecked_::{{closure}}::{{closure}}",
            "std::thread::lifecycle::spawn_unchecked::<F, ()>::{closure#1}",
            "std::sys::pal::unix::thread::Thread::new::thread_start",
            "std::sys::thread::unix::Thread::new::thread_start",
            "<std::sys::thread::unix::Thread>::new::thread_start",
            "execute_native_thread_routine",
            "std::thread::_State_impl<std::thread::_Invoker<std::tuple<main::{lambda()#1}> > >::_M_run()",
            "std::thread::_Invoker<std::tuple<void (*)(int), int> >::operator()()",
            "void std::__invoke_impl<void, main::{lambda()#1}>(std::__invoke_other, main::{lambda()#1}&&)",
            "void* std::__1::__thread_proxy[abi:ne180100]<std::__1::tuple<void (*)()> >(void*)",
            "std::__future_base::_State_baseV2::_M_do_set(std::function<int ()>*, bool*)",
            "runtime.goexit.abi0",
            "runtime.main",
            "void java.lang.Thread.run()",
        ] {
            assert!(starts_code(name, "program", None), "{name}");
        }
        for name in [
            "main",
            "prog::main",
            "main.main",
            "prog::Worker::start_thread",
            "std::thread::park",
            "std::sync::mpsc::Receiver<T>::recv",
            "std::sort<int*>",
            "main::{lambda()#1}::operator()() const",
            "thread_entry",
            "runtime.mcall",
            "prog::call_once",
        ] {
            assert!(!starts_code(name, "program", None), "{name}");
        }
        assert!(starts_code("thread_entry(JavaThread*, JavaThread*)", "libjvm.so", None));
        let header = Some("/usr/include/c++/14/bits/std_thread.h");
        for name in ["operator()", "_M_invoke<0>", "__invoke_impl<void, main()::<lambda()> >"] {
            assert!(starts_code(name, "program", header), "{name}");
            assert!(!starts_code(name, "program", Some("/home/user/main.cpp")), "{name}");
        }
    }
}
