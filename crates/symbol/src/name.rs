//! Names of functions as their authors wrote them.

use std::borrow::Cow;

/// A linkage name without C++, Rust or Cython mangling; other names as they are.
pub fn demangle(name: &str) -> String {
    if let Ok(rust) = rustc_demangle::try_demangle(name) {
        return format!("{rust:#}");
    }
    if name.starts_with("_Z") {
        let options = cpp_demangle::DemangleOptions::default().no_return_type();
        if let Ok(symbol) = cpp_demangle::Symbol::new(name)
            && let Ok(text) = symbol.demangle_with_options(&options)
        {
            return text;
        }
    }
    cython_name(name).unwrap_or_else(|| name.to_string())
}

/// `sklearn.utils.murmurhash.hash_all` for `__pyx_pw_7sklearn_5utils_10murmurhash_3hash_all`: the qualified name of a
/// function in a module made by Cython. Suffixes for copies of the function stay.
///
/// The module's name is a list of parts, each after its length and before `_`. In functions for Python (`pw`: wrapper,
/// `pf`: body) and generators, a number that distinguishes functions of one name precedes the function's own name.
fn cython_name(name: &str) -> Option<String> {
    /// Prefixes of names, and whether a number precedes the function's own name.
    const KINDS: [(&str, bool); 4] = [("pw_", true), ("pf_", true), ("gb_", true), ("f_", false)];
    let mut rest = name.strip_prefix("__pyx_")?;
    // A function of a fused type has a copy for each combination of types.
    while let Some(numbered) = rest.strip_prefix("fuse_") {
        rest = numbered.trim_start_matches(|c: char| c.is_ascii_digit() || c == '_').strip_prefix("pyx_")?;
    }
    let (mut rest, is_numbered) =
        KINDS.iter().find_map(|(mark, is_numbered)| Some((rest.strip_prefix(mark)?, *is_numbered)))?;
    let mut parts = Vec::new();
    let mut own = None;
    while let Some((part, inner)) = part_of_cython(rest) {
        parts.push(part);
        rest = inner;
        // A number may be the length of the following text by chance.
        let unnumbered = rest.trim_start_matches(|c: char| c.is_ascii_digit());
        if !is_numbered {
            own = Some((parts.len(), rest));
        } else if unnumbered.len() < rest.len() {
            own = Some((parts.len(), unnumbered));
        }
    }
    let (modules, mut function) = own?;
    // Functions of fused types repeat the mark before their own name.
    if let Some(numbered) = function.strip_prefix("__pyx_fuse_") {
        function = numbered.trim_start_matches(|c: char| c.is_ascii_digit() || c == '_');
    }
    parts.truncate(modules);
    parts.push(Some(function).filter(|function| !function.is_empty())?);
    Some(parts.join("."))
}

/// `sklearn` and the rest, for `7sklearn_5utils_…`.
fn part_of_cython(text: &str) -> Option<(&str, &str)> {
    let digits = text.find(|c: char| !c.is_ascii_digit())?;
    let (length, text) = text.split_at(digits);
    let (part, rest) = text.split_at_checked(length.parse().ok()?)?;
    let rest = rest.strip_prefix('_').filter(|rest| !rest.is_empty() && !part.is_empty())?;
    Some((part, rest))
}

/// Suffixes and replacements of a function's name for the outlined body of an OpenMP construct: clang's
/// `X.omp_outlined`, `.omp_outlined..5`, `.omp_task_entry.`, `X_debug__`, gcc's `X._omp_fn.3`, `X._omp_cpyfn.1`. The
/// name is cut at the first of them.
const CUT_OUT: [&str; 8] = [
    ".omp_outlined",
    ".omp_task_entry",
    ".omp_task_privates_map",
    ".omp_taskloop",
    "._omp_fn.",
    "._omp_cpyfn.",
    ".omp.",
    KERNEL,
];

/// Prefix of the body of a target construct: `__omp_offloading_fe00_9bc004_work_l5` is that of `work` in line 5 of the
/// file with these numbers (clang).
const KERNEL: &str = "__omp_offloading_";

/// `work_l5` of `fe00_9bc004_work_l5`.
fn without_file(numbers_and_name: &str) -> Option<&str> {
    let mut parts = numbers_and_name.splitn(3, '_');
    let mut number = || parts.next().filter(|part| part.bytes().all(|byte| byte.is_ascii_hexdigit()));
    number().and_then(|_| number())?;
    parts.next()
}

/// `work` of `work_l5`, and of `work_l5_1`, the second construct of that line.
fn without_line(name: &str) -> &str {
    fn without_number<'a>(name: &'a str, mark: &str) -> Option<&'a str> {
        let rest = name.trim_end_matches(|character: char| character.is_ascii_digit());
        rest.strip_suffix(mark).filter(|_| rest.len() < name.len())
    }
    let of_line = |name| without_number(name, "_l");
    of_line(name).or_else(|| of_line(without_number(name, "_")?)).unwrap_or(name)
}

/// Whether a compiler cut this function out of another one.
pub fn is_outlined(name: &str) -> bool {
    name.starts_with("omp_outlined") || CUT_OUT.iter().any(|mark| name.contains(mark))
}

/// Suffix of the names of stubs that call into other files.
pub(crate) const STUB: &str = "@plt";

/// Whether this is a linker's stub.
pub fn is_stub(name: &str) -> bool {
    name.ends_with(STUB)
}

/// Functions that clang generates for reductions: initialisers, combiners and destructors, which have the line of the
/// construct.
const OF_REDUCTION: [&str; 5] =
    [".red_init.", ".red_comb.", ".red_fini.", ".omp_initializer.", ".omp_combiner."];

/// Whether the function is generated by a compiler.
pub fn is_made(name: &str) -> bool {
    is_outlined(name) || OF_REDUCTION.iter().any(|mark| name.starts_with(mark))
}

/// Whether it is a body that another cut-out function calls: clang's without optimisation.
pub fn is_wrapped(name: &str) -> bool {
    is_outlined(name) && name.contains("_debug__")
}

/// Whether gcc split the function off another one, which calls it: `f.part.0`. A `f.cold` is jumped to, and has no frame of its own.
pub fn is_split_off(name: &str) -> bool {
    name.contains(".part.")
}

/// The function that contains an outlined body, by its name alone; `None` if the name lacks it. Demangled. A name that
/// was not outlined is returned demangled.
pub fn user_function(name: &str) -> Option<String> {
    if name.starts_with("omp_outlined") || OF_REDUCTION.iter().any(|mark| name.starts_with(mark)) {
        return None;
    }
    let kernel = name.strip_prefix(KERNEL).and_then(without_file);
    let is_kernel = kernel.is_some();
    let name = kernel.unwrap_or(name);
    let cut = CUT_OUT.iter().filter_map(|mark| name.find(mark)).min().unwrap_or(name.len());
    let base = name[..cut].strip_suffix("_debug__").unwrap_or(&name[..cut]);
    let base = if is_kernel { without_line(base) } else { base };
    // Clones that an optimiser made: `f.constprop.0`, `f.isra.0`, `f.part.0`, `f.cold`.
    let clone = [".constprop.", ".isra.", ".part.", ".cold", ".lto_priv."];
    let base = clone.iter().filter_map(|mark| base.find(mark)).min().map_or(base, |cut| &base[..cut]);
    // The C library's own alias of a function.
    let base = base.strip_prefix("__GI_").unwrap_or(base);
    // gcc numbers functions within functions: `inner.0`.
    let numbered = base.trim_end_matches(|c: char| c.is_ascii_digit()).strip_suffix('.');
    let base = numbered.filter(|inner| !inner.is_empty()).unwrap_or(base);
    (!base.is_empty()).then(|| demangle(base))
}

/// Whether two functions are the same but for the arguments of templates.
pub fn are_of_one_template(one: &str, other: &str) -> bool {
    parts_of(&without_parameters(one)) == parts_of(&without_parameters(other))
}

/// A function's name without its parameters and those of the functions that it is written in, for a table:
/// `ns::solve<double>` of `ns::solve<double>(int, double*)`, `f::{lambda(int)#1}::operator()` of
/// `f(long)::{lambda(int)#1}::operator()(int) const`.
pub fn without_parameters(name: &str) -> Cow<'_, str> {
    const SCOPE: &str = "::";
    // The functions before the rest, which is in them.
    let mut scopes = String::new();
    let mut rest = name;
    while let Some((start, end)) = parameters_of(rest) {
        let behind = &rest[end..];
        let Some(at) = behind.find(SCOPE).filter(|at| QUALIFIERS.contains(&behind[..*at].trim())) else {
            rest = &rest[..start];
            break;
        };
        scopes.extend([&rest[..start], SCOPE]);
        rest = &behind[at + SCOPE.len()..];
    }
    if scopes.is_empty() { Cow::Borrowed(rest) } else { Cow::Owned(scopes + rest) }
}

/// Whether a text ends in an `operator` and the symbols of one, as `operator<<` or `operator-` do.
fn ends_in_operator(text: &str) -> bool {
    /// Symbols of the longest one, `<=>`.
    const MAX_SYMBOLS: usize = 3;
    let last = text.bytes().rev().take(MAX_SYMBOLS);
    let symbols = last.take_while(|byte| b"<>-=".contains(byte)).count();
    text[..text.len() - symbols].ends_with("operator")
}

/// A C++ name as users write it: without arguments of the standard library's templates that are defaults, and without the
/// library's inner namespaces. Of a name that is still long, long lists of arguments are `<…>`.
pub fn abbreviated(name: &str) -> Cow<'_, str> {
    /// Maximum length in characters.
    const MAX_NAME: usize = 72;
    if !name.contains('<') && !name.contains("std::__") {
        return Cow::Borrowed(name);
    }
    let plain = name.replace("std::__cxx11::", "std::").replace("std::__1::", "std::");
    let usual = Arguments { text: &plain, at: 0, collapse: false }.rewritten(0);
    if usual.chars().count() <= MAX_NAME {
        return Cow::Owned(usual);
    }
    Cow::Owned(Arguments { text: &usual, at: 0, collapse: true }.rewritten(0))
}

/// Rewrites the template arguments in a name.
struct Arguments<'a> {
    text: &'a str,
    /// Bytes that were read.
    at: usize,
    /// Whether long lists become `<…>`.
    collapse: bool,
}

impl Arguments<'_> {
    /// Deeper ones are left as they are.
    const MAX_DEPTH: u32 = 48;
    /// Longer lists are collapsed, in bytes.
    const MAX_LIST: usize = 24;

    /// The text up to the end of an argument at this depth; all of it at depth 0.
    fn rewritten(&mut self, depth: u32) -> String {
        let mut out = String::new();
        let mut parentheses = 0_i32;
        while let Some(character) = self.text[self.at..].chars().next() {
            let in_operator = ends_in_operator(&out);
            match character {
                '<' if !in_operator && depth < Arguments::MAX_DEPTH => {
                    self.at += 1;
                    let list = self.list(depth + 1, &out);
                    if list == "char" && out.ends_with("std::basic_string") {
                        out.truncate(out.len() - "basic_string".len());
                        out.push_str("string");
                    } else {
                        let is_long = self.collapse && list.len() > Arguments::MAX_LIST;
                        out.extend(["<", if is_long { "…" } else { &list }, ">"]);
                    }
                    continue;
                }
                '>' | ',' if depth > 0 && parentheses <= 0 && !in_operator && !out.ends_with('-') => break,
                '(' | '{' | '[' => parentheses += 1,
                ')' | '}' | ']' => parentheses -= 1,
                _ => {}
            }
            out.push(character);
            self.at += character.len_utf8();
        }
        out
    }

    /// The arguments up to the closing bracket, without those at the end that are defaults of the template `of`.
    fn list(&mut self, depth: u32, of: &str) -> String {
        const DEFAULTS: [&str; 6] = [
            "std::allocator<",
            "std::less<",
            "std::char_traits<",
            "std::default_delete<",
            "std::hash<",
            "std::equal_to<",
        ];
        let mut all: Vec<String> = Vec::new();
        loop {
            all.push(self.rewritten(depth).trim().to_string());
            let end = self.text[self.at..].chars().next();
            self.at += usize::from(end.is_some());
            if end != Some(',') {
                break;
            }
        }
        let is_of_name = |c: char| c.is_alphanumeric() || matches!(c, '_' | ':');
        let is_standard = of[of.trim_end_matches(is_of_name).len()..].starts_with("std::");
        let is_default = |argument: &String| DEFAULTS.iter().any(|default| argument.starts_with(default));
        while is_standard && all.len() > 1 && all.last().is_some_and(is_default) {
            all.pop();
        }
        all.join(", ")
    }
}

/// Qualifiers that may follow a function's parameters before the name of an inner function.
const QUALIFIERS: [&str; 6] = ["", "const", "&", "&&", "const &", "const&&"];

/// A function's name without scopes, parameters and arguments of templates: `solve` of `ns::Solver<int>::solve<double>(int)`.
pub fn own_name(name: &str) -> String {
    parts_of(&without_parameters(name)).last().map_or_else(String::new, |own| own.to_string())
}

/// Begin and end of the first list of parameters, outside of template arguments.
fn parameters_of(name: &str) -> Option<(usize, usize)> {
    let (mut depth, mut start, mut parentheses) = (0_i32, None, 0_i32);
    // The brackets of `operator<`, `operator->` and `operator<<` are none.
    let after_operator = |at: usize| ends_in_operator(&name[..at]);
    for (at, character) in name.char_indices() {
        match character {
            '(' if parentheses > 0 => parentheses += 1,
            ')' if parentheses > 1 => parentheses -= 1,
            ')' if parentheses == 1 => return start.map(|start| (start, at + 1)),
            _ if parentheses > 0 => {}
            // gcc's `{lambda(int)#1}`, Rust's `{closure#0}`.
            '{' => depth += 1,
            '}' => depth -= 1,
            '<' if !after_operator(at) => depth += 1,
            '>' if !name[..at].ends_with('-') && !after_operator(at) => depth -= 1,
            // `operator()` and `(anonymous namespace)::f` begin with a parenthesis of their own.
            '(' if depth == 0
                && at > 0
                && !name[..at].ends_with("operator")
                && !name[at..].starts_with("(anonymous") =>
            {
                (start, parentheses) = (Some(at), 1);
            }
            _ => {}
        }
    }
    // One that does not end: a name that was cut.
    start.map(|start| (start, name.len()))
}

/// Whether a function of this name takes a lock for the one that calls it: a constructor (of a guard), or a method that
/// is called so.
pub fn acquires_for_its_caller(name: &str) -> bool {
    let name = without_parameters(name);
    let mut parts = parts_of(&name).into_iter().rev();
    let (Some(own), Some(class)) = (parts.next(), parts.next()) else { return false };
    own == class || ["lock", "try_lock", "lock_shared", "acquire", "enter"].contains(&own)
}

/// Whether a function of this name belongs to a language's library, or to a library of locks and channels: it waits, wakes
/// and takes locks for its caller.
pub fn is_of_language_library(name: &str) -> bool {
    const SCOPES: [&str; 11] = [
        "std::",
        "__gnu_cxx::",
        "__cxxabiv1::",
        "__gthread_",
        "__glibcxx_",
        "pthread_",
        "parking_lot::",
        "parking_lot_core::",
        "lock_api::",
        "crossbeam_channel::",
        "crossbeam_utils::",
    ];
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
    SCOPES.iter().any(|scope| own.starts_with(scope)) || is_in("core::", &CORE) || is_in("alloc::", &ALLOC)
}

/// Whether a file has the interpreter of Python, by its name.
pub fn is_python_interpreter(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    name.starts_with("libpython3") || name.starts_with("python3")
}

/// A function's name without the type of its result, which those of templates begin with.
fn without_result(name: &str) -> &str {
    let mut depth = 0_i32;
    let mut begin = 0;
    for (at, character) in name.char_indices() {
        match character {
            '<' | '(' | '{' | '[' => depth += 1,
            '>' | ')' | '}' | ']' => depth -= 1,
            // Not the operator of a conversion, nor a qualified type of Rust.
            ' ' if depth == 0 && !name[..at].ends_with("operator") => begin = at + 1,
            _ => {}
        }
    }
    &name[begin..]
}

/// The parts between the `::` of a name, without template arguments: `a`, `B`, `f` for `a::B<c::D>::f<int>`.
fn parts_of(name: &str) -> Vec<&str> {
    let (mut parts, mut begin, mut depth, mut end) = (Vec::new(), 0, 0_i32, None);
    for (at, character) in name.char_indices() {
        match character {
            '<' => {
                end = end.or((depth == 0).then_some(at));
                depth += 1;
            }
            '>' => depth -= 1,
            ':' if depth == 0 => {
                if begin < at {
                    parts.push(&name[begin..end.unwrap_or(at)]);
                }
                (begin, end) = (at + 1, None);
            }
            _ => {}
        }
    }
    parts.push(&name[begin..end.unwrap_or(name.len())]);
    parts
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
        ] {
            assert!(is_of_language_library(name), "{name}");
        }
        for name in [
            "main",
            "stdlike::mutex::lock()",
            "core::Engine::run()",
            "Cache::evict(std::vector<int>&)",
            "std_cache",
            "rayon_core::sleep::Sleep::sleep",
            "int work<std::mutex>(std::mutex&)",
            "main::{lambda(std::future<int>)#1}::operator()(std::future<int>) const",
        ] {
            assert!(!is_of_language_library(name), "{name}");
        }
    }

    #[test]
    fn long_names_of_many_scopes_and_brackets_are_read() {
        assert_eq!(without_parameters("f(long)::g(int) const"), "f::g");
        let scopes = |scope: &str| scope.repeat(100_000) + "f";
        assert_eq!(without_parameters(&scopes("a()::")), scopes("a::"));
        assert!(abbreviated(&"<".repeat(100_000)).contains('…'));
    }

    #[test]
    fn guards_and_methods_of_locks_take_them_for_others() {
        for name in [
            "Guard::Guard(omp_lock_t*)",
            "ns::guard<ns::mutex<int> >::guard(ns::mutex<int>&)",
            "std::lock_guard<Mutex>::lock_guard",
            "Mutex::lock()",
            "a::Spin<4>::try_lock",
        ] {
            assert!(acquires_for_its_caller(name), "{name}");
        }
        for name in
            ["lock", "update", "Table::insert(int)", "ns::relock", "operator()", "A::B::~B()", "a::b<c::b>"]
        {
            assert!(!acquires_for_its_caller(name), "{name}");
        }
    }

    #[test]
    fn cut_out_bodies_are_named_after_their_function() {
        for (name, user) in [
            ("compute.omp_outlined", Some("compute")),
            ("__GI_exit", Some("exit")),
            ("compute.omp_outlined.5", Some("compute")),
            ("compute.omp_outlined_debug__", Some("compute")),
            (".omp_outlined..5", None),
            (".omp_task_entry.", None),
            (".omp_task_entry..6", None),
            (".red_comb.", None),
            (".red_init..3", None),
            ("omp_outlined_debug__", None),
            ("main._omp_fn.0", Some("main")),
            ("main._omp_fn.0.constprop.0", Some("main")),
            ("_Z5solveIdEvPT_.omp_outlined", Some("solve<double>(double*)")),
            ("__omp_offloading_fe00_9bc004_work_l5", Some("work")),
            ("__omp_offloading_fe00_9bc004_work_l5_debug__.omp_outlined_debug__.omp_outlined", Some("work")),
            ("__omp_offloading_10305_2a__ZN2ns4workEi_l12_1.omp_outlined", Some("ns::work(int)")),
            ("__omp_offloading_x", None),
            ("plain", Some("plain")),
            ("plain.isra.0", Some("plain")),
            ("inner.0._omp_fn.3", Some("inner")),
            ("f32", Some("f32")),
        ] {
            assert_eq!(user_function(name).as_deref(), user, "{name}");
        }
    }

    #[test]
    fn template_arguments_do_not_distinguish_functions() {
        assert!(are_of_one_template("ns::create<int>", "ns::create<std::vector<ns::A>>(int)"));
        assert!(are_of_one_template("A<int>::f<4>", "A<long>::f<5>"));
        assert!(!are_of_one_template("A<int>::f<4>", "A<int>::g<4>") && !are_of_one_template("f", "g"));
        assert!(is_wrapped("main.omp_outlined_debug__.3") && is_wrapped(".omp_outlined._debug__."));
        assert!(!is_wrapped("main.omp_outlined") && !is_wrapped("my_debug__"));
    }

    #[test]
    fn outlined_names_are_recognised() {
        assert!(is_outlined(".omp_outlined..5") && is_outlined("main._omp_fn.0"));
        assert!(!is_outlined("main") && !is_outlined("my_omp_function"));
        assert!(
            is_made(".red_comb.")
                && is_made(".red_fini..4")
                && is_made(".omp_task_entry.")
                && !is_made("main")
        );
    }

    #[test]
    fn called_parts_are_distinguished_from_jumped_to_parts() {
        assert!(is_split_off("work.part.0") && is_split_off("work.part.0.constprop.0"));
        assert!(!is_split_off("work.cold") && !is_split_off("work"));
    }

    #[test]
    fn mangled_names_are_demangled() {
        assert_eq!(demangle("_ZN4core3fmt9Formatter3pad17h0123456789abcdefE"), "core::fmt::Formatter::pad");
        assert_eq!(demangle("_ZN2ns4workEi"), "ns::work(int)");
        assert_eq!(demangle("c_function"), "c_function");
        for (name, demangled) in [
            ("__pyx_pw_4heat_5steps_7advance", "heat.steps.advance"),
            ("__pyx_pf_4heat_5steps_6advance", "heat.steps.advance"),
            ("__pyx_pw_4heat_5steps_4Grid_3sum_up", "heat.steps.Grid.sum_up"),
            // The number is the length of a word by chance.
            ("__pyx_pw_4heat_5steps_9_relocate_rows", "heat.steps._relocate_rows"),
            ("__pyx_f_4heat_5steps__inner", "heat.steps._inner"),
            ("__pyx_f_4heat_7_steps2_4Grid_sum_up.isra.0", "heat._steps2.Grid.sum_up.isra.0"),
            ("__pyx_fuse_1__pyx_f_4heat_5steps__norm", "heat.steps._norm"),
            ("__pyx_fuse_0_1__pyx_pw_4heat_5steps_11norm", "heat.steps.norm"),
            ("__pyx_pf_4heat_5steps_4__pyx_fuse_0norm", "heat.steps.norm"),
            ("__pyx_gb_4heat_5steps_4rows_2generator1", "heat.steps.rows.generator1"),
        ] {
            assert_eq!(demangle(name), demangled);
        }
        for name in [
            "__pyx_pw_",
            "__pyx_f_4heat",
            "__pyx_f_99heat_x",
            "__pyx_f_99999999999999999999heat_x",
            "__pyx_pw_4heat_2",
            "__pyx_f_1é_x",
            "__pyx_fuse_",
            "__pyx_mdef_4heat_1f",
            "__Pyx_PyObject_Call",
        ] {
            assert_eq!(demangle(name), name);
        }
    }

    #[test]
    fn names_are_abbreviated_as_users_write_them() {
        let string = "std::__cxx11::basic_string<char, std::char_traits<char>, std::allocator<char> >";
        let vector = format!("std::vector<{string}, std::allocator<{string} > >");
        let pair = format!("std::pair<int const, {string} >");
        let map = format!("std::map<int, {string}, std::less<int>, std::allocator<{pair} > >");
        let many = "physics::Grid<std::shared_ptr<physics::detail::Cell>, physics::detail::Periodic>::each<main::$_0>";
        for (name, short) in [
            (string, "std::string"),
            (&format!("{vector}::push_back"), "std::vector<std::string>::push_back"),
            (&map, "std::map<int, std::string>"),
            ("std::__1::vector<int, std::__1::allocator<int> >", "std::vector<int>"),
            ("std::vector<int, my::pool<int> >", "std::vector<int, my::pool<int>>"),
            (
                "std::map<int, int, std::greater<int>, std::allocator<int> >",
                "std::map<int, int, std::greater<int>>",
            ),
            // A default of a template of the program's is not known to be one.
            ("my::list<int, std::allocator<int> >", "my::list<int, std::allocator<int>>"),
            ("f<std::function<void (int, long)> >", "f<std::function<void (int, long)>>"),
            ("a::operator< <int>", "a::operator< <int>"),
            ("P::operator->", "P::operator->"),
            ("solve<double>", "solve<double>"),
            ("plain", "plain"),
            (many, "physics::Grid<…>::each<main::$_0>"),
        ] {
            assert_eq!(abbreviated(name), short, "{name}");
        }
        // Names of any form.
        for name in ["<", ">", "a<b", "a<b,", "a<<<>>>", "a<é,>é", "operator<", "f<(>)>", "std::__"] {
            abbreviated(name);
        }
        abbreviated(&"a<".repeat(10_000));
    }

    #[test]
    fn parameters_go_but_template_arguments_stay() {
        assert_eq!(
            without_parameters("ns::solve<std::pair<int, int>(*)()>(int)"),
            "ns::solve<std::pair<int, int>(*)()>"
        );
        assert_eq!(without_parameters("F::operator()(int) const"), "F::operator()");
        assert_eq!(
            without_parameters("main::{lambda(int)#1}::operator()(int) const"),
            "main::{lambda(int)#1}::operator()"
        );
        assert_eq!(without_parameters("(anonymous namespace)::f(int)"), "(anonymous namespace)::f");
        assert_eq!(without_parameters("main"), "main");
        for (name, short) in [
            ("two(int)::$_0::operator()(int) const", "two::$_0::operator()"),
            ("two(int)::{lambda(int)#2}::operator()(int) const", "two::{lambda(int)#2}::operator()"),
            ("A::f(int) const::Local::run()", "A::f::Local::run"),
            ("two(void (*)(int))::Local::run()", "two::Local::run"),
            ("Op::operator<(Op const&) const", "Op::operator<"),
            ("std::operator<< <int>(std::ostream&, int)", "std::operator<< <int>"),
            ("P::operator->() const", "P::operator->"),
            (
                "ns::solve<(anonymous namespace)::T>((anonymous namespace)::T)",
                "ns::solve<(anonymous namespace)::T>",
            ),
            ("f(int", "f"),
        ] {
            assert_eq!(without_parameters(name), short);
        }
    }
}
