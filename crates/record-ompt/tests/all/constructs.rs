//! Events of each OpenMP construct in a trace, from clang's and from gcc's programs, on a real runtime. Every
//! trace is also checked against the format's rules (`common/oracle.rs`).

use crate::common::{Compiler, Run, Trace, tool_under_old_kinds};
use taskscope_event::Code;
use taskscope_event::models::{dictionary, omp, openmp as p, wait};

/// Records a construct with each compiler that is installed, and hands the trace to `assert`.
fn each(name: &str, size: u32, assert: impl Fn(Compiler, &Trace)) {
    for compiler in [Compiler::Clang, Compiler::Gcc] {
        if compiler.is_installed() {
            let run = Run::construct(compiler, name, size).env("OMP_CANCELLATION", "true");
            eprintln!("{compiler:?}");
            assert(compiler, &run.trace());
        }
    }
}

/// The number of events of each code, in the order of the codes.
fn counts<const N: usize>(trace: &Trace, codes: [Code; N]) -> [usize; N] {
    codes.map(|code| trace.count(code))
}

const TASK_LIFE: [Code; 3] = [p::TASK_CREATE, p::TASK_EXECUTE, p::TASK_END];

#[test]
fn a_plain_task_costs_three_standard_events() {
    each("tasks", 1000, |_, trace| {
        assert_eq!(counts(trace, TASK_LIFE), [1000; 3]);
        assert_eq!(trace.of(p::TYPE_CREATE).filter(|e| e.text("label").starts_with("task@")).count(), 1);
        let standard: usize = trace.streams.iter().flat_map(|s| &s.events).filter(|e| !e.own).count();
        assert!(standard < 3000 + 40, "{standard} events");
        assert!(trace.streams.iter().flat_map(|s| &s.events).filter(|e| e.own).count() < 40);
    });
}

#[test]
fn task_labels_name_the_program_and_an_offset() {
    each("tasks", 1, |_, trace| {
        let label =
            trace.of(p::TYPE_CREATE).map(|e| e.text("label")).find(|l| l.starts_with("task@")).unwrap();
        assert!(label.starts_with("task@constructs.") && label.contains("+0x"), "{label}");
        let module = trace.of(dictionary::MODULE).next().unwrap();
        assert!(module.text("path").contains("/constructs."), "{}", module.text("path"));
        // The site's address is at the labelled offset.
        let offset = i128::from_str_radix(label.rsplit("+0x").next().unwrap(), 16).unwrap();
        let address = module.number("bias") + offset;
        assert!(trace.of(dictionary::SITE).any(|site| site.number("address") == address));
    });
}

#[test]
fn recursive_tasks_are_all_there() {
    // fib(n) makes 2 (fib(n + 1) − 1) tasks and fib(n + 1) − 1 taskwaits: 986 for n = 15.
    each("fibonacci", 15, |_, trace| {
        assert_eq!(counts(trace, TASK_LIFE), [2 * 986; 3]);
        assert_eq!(counts(trace, [p::TASK_TASKWAIT_BEGIN, p::TASK_TASKWAIT_END]), [986; 2]);
        // One place waits, so each thread records it once at most.
        let members = trace
            .of(wait::WAIT_SITE)
            .filter(|e| e.number("kind") == i128::from(wait::kind::TASKWAIT))
            .count();
        assert!((1..=2).contains(&members), "{members}");
    });
}

#[test]
fn dependences_have_address_and_kind() {
    const IN: u8 = 1;
    const INOUT: u8 = 3;
    const MUTEXINOUTSET: u8 = 4;
    for compiler in [Compiler::Clang, Compiler::Gcc].into_iter().filter(|c| c.is_installed()) {
        let (output, trace) = Run::construct(compiler, "depend", 0).output();
        trace.assert_sound();
        let printed = String::from_utf8(output.stdout).unwrap();
        let address = |text: &str| u64::from_str_radix(text.trim_start_matches("0x"), 16).unwrap();
        let [cell, other] = printed.split_whitespace().map(address).collect::<Vec<_>>()[..] else {
            panic!("{printed}")
        };
        let tasks: Vec<i128> = trace.of(p::TASK_CREATE).map(|e| e.number("taskid")).collect();
        let found: Vec<(i128, Vec<(u64, u8)>)> = trace
            .of(omp::TASK_DEPENDENCES)
            .map(|event| {
                let mut list: Vec<_> = event
                    .bytes("dependences")
                    .chunks_exact(omp::DEPENDENCE_BYTES)
                    .map(|d| (u64::from_le_bytes(d[..8].try_into().unwrap()), d[8]))
                    .collect();
                list.sort_by_key(|(address, _)| *address != cell);
                (event.number("taskid"), list)
            })
            .collect();
        assert_eq!(
            found,
            [
                (tasks[0], vec![(cell, INOUT)]),
                (tasks[1], vec![(cell, IN), (other, INOUT)]),
                (tasks[2], vec![(other, MUTEXINOUTSET)]),
            ]
        );
    }
}

#[test]
fn events_withheld_by_the_runtime_are_recorded_on_demand() {
    for compiler in [Compiler::Clang, Compiler::Gcc].into_iter().filter(|c| c.is_installed()) {
        let edges = |wanted: bool| {
            let run = Run::construct(compiler, "depend", 0);
            let run = if wanted { run.env("TASKSCOPE_TASK_EDGES", "1") } else { run };
            let trace = run.trace();
            let tasks: Vec<i128> = trace.of(p::TASK_CREATE).map(|e| e.number("taskid")).collect();
            let edges: Vec<_> =
                trace.of(omp::TASK_EDGE).map(|e| (e.number("source"), e.number("sink"))).collect();
            (tasks, edges)
        };
        assert_eq!(edges(false).1, []);
        // Ended tasks hold nothing back: the number of edges depends on timing.
        let (tasks, edges) = edges(true);
        let possible = [(tasks[0], tasks[1]), (tasks[1], tasks[2])];
        assert!(edges.iter().all(|edge| possible.contains(edge)), "{edges:?}");
    }
}

#[test]
fn a_taskwait_with_depend_is_a_wait_and_no_task() {
    each("wait_depend", 0, |_, trace| {
        assert_eq!(counts(trace, TASK_LIFE), [1; 3]);
        assert_eq!(counts(trace, [p::TASK_TASKWAIT_DEPS_BEGIN, p::TASK_TASKWAIT_DEPS_END]), [1; 2]);
        // The task's dependences and those of the wait.
        assert_eq!(trace.count(omp::TASK_DEPENDENCES), 2);
    });
}

#[test]
fn undeferred_and_included_tasks_run() {
    each("undeferred", 0, |_, trace| assert_eq!(counts(trace, TASK_LIFE), [3; 3]));
}

#[test]
fn untied_tasks_are_suspended_and_resumed() {
    each("untied", 20, |compiler, trace| {
        assert_eq!(trace.count(p::TASK_CREATE), 60);
        let suspended = trace.count(omp::TASK_SUSPENDED);
        assert_eq!(trace.count(p::TASK_EXECUTE), 60 + suspended);
        assert_eq!(trace.count(p::TASK_END), 60 + suspended);
        if compiler == Compiler::Clang {
            // clang splits an untied task at each scheduling point; gcc treats it as tied.
            assert!(suspended >= 20, "{suspended}");
        }
    });
}

#[test]
fn a_taskgroups_scope_and_wait_are_distinguished() {
    each("taskgroup", 0, |_, trace| {
        let once = [omp::TASKGROUP_BEGIN, omp::TASKGROUP_END, p::TASK_TASKGROUP_BEGIN, p::TASK_TASKGROUP_END];
        assert_eq!(counts(trace, once), [1; 4]);
        let at = |code| trace.of(code).next().unwrap().at;
        // The scope has two milliseconds of user code before the wait.
        assert!(at(p::TASK_TASKGROUP_BEGIN) - at(omp::TASKGROUP_BEGIN) >= 2_000_000);
        assert!(at(p::TASK_TASKGROUP_END) <= at(omp::TASKGROUP_END));
    });
}

#[test]
fn a_taskloop_makes_tasks_with_chunks() {
    each("taskloop", 0, |_, trace| {
        assert_eq!(counts(trace, TASK_LIFE), [10; 3]);
        let iterations: i128 = trace.of(omp::CHUNK).map(|e| e.number("iterations")).sum();
        assert_eq!((trace.count(omp::CHUNK), iterations), (10, 100));
        // The runtime names itself as the place; the place of the enclosing taskgroup is recorded instead.
        let labels: Vec<_> = trace.of(p::TYPE_CREATE).map(|e| e.text("label")).collect();
        assert!(labels.iter().any(|l| l.starts_with("taskloop@constructs")), "{labels:?}");
        assert!(labels.iter().any(|l| l.starts_with("task@constructs")), "{labels:?}");
    });
}

#[test]
fn detached_tasks_end_with_their_body_and_are_fulfilled() {
    if !Compiler::Clang.is_installed() {
        return;
    }
    let trace = Run::construct(Compiler::Clang, "detach", 0).trace();
    assert_eq!(counts(&trace, TASK_LIFE), [2; 3]);
    assert_eq!(counts(&trace, [omp::TASK_DETACHED, omp::TASK_FULFILLED]), [1, 2]);
}

#[test]
fn cancelled_tasks_are_recorded_whether_they_ran_or_not() {
    each("cancel", 50, |compiler, trace| {
        let [created, executed, ended] = counts(trace, TASK_LIFE);
        assert_eq!((created, executed), (50, ended));
        let cancelled = trace.count(omp::TASK_CANCELLED);
        assert!(executed >= 1 && executed + cancelled >= 50, "{executed} ran, {cancelled} were cancelled");
        if compiler == Compiler::Clang {
            assert!(trace.count(omp::CANCEL) >= 2);
        }
    });
}

#[test]
fn loops_have_their_schedule_and_chunks() {
    each("loops", 0, |compiler, trace| {
        let kinds =
            |kind: i128| trace.of(dictionary::WORK_TYPE_SITE).filter(|e| e.number("kind") == kind).count();
        // gcc computes a static split inline, and does not report it.
        let statics = usize::from(compiler == Compiler::Clang);
        assert_eq!([kinds(10), kinds(11), kinds(12)], [statics, 1, 1]);
        assert_eq!(trace.count(p::WORKSHARE_EXECUTE), 2 * (2 + statics));
        assert_eq!(trace.count(p::WORK_DISTRIBUTION_STATIC_FOR_CHUNK_BEGIN), 2 * statics);
        assert_eq!(trace.count(p::WORK_DISTRIBUTION_DYNAMIC_FOR_CHUNK_BEGIN), 4);
        let iterations: i128 = trace.of(omp::CHUNK).map(|e| e.number("iterations")).sum();
        assert_eq!(iterations, 100 * (2 + statics as i128));
        // A barrier at each loop's end, two threads; gcc leaves the last to the join barrier.
        let barriers = if compiler == Compiler::Clang { 6 } else { 4 };
        assert_eq!(counts(trace, [p::BARRIER_PLAIN_BEGIN, p::BARRIER_JOIN_BEGIN]), [barriers, 2]);
    });
}

#[test]
fn sections_are_worksharing() {
    each("sections", 0, |compiler, trace| match compiler {
        Compiler::Clang => assert_eq!(trace.count(p::WORK_DISTRIBUTION_SECTION_BEGIN), 2),
        // Under gcc they look like a dynamic loop over two iterations.
        Compiler::Gcc => {
            assert_eq!(trace.count(p::WORK_DISTRIBUTION_DYNAMIC_FOR_CHUNK_BEGIN), 2);
            assert_eq!(trace.of(omp::CHUNK).map(|e| e.number("iterations")).sum::<i128>(), 2);
        }
    });
}

#[test]
fn one_thread_executes_each_single() {
    each("singles", 7, |_, trace| {
        let once_each =
            [p::WORK_DISTRIBUTION_SINGLE_BEGIN, p::WORK_DISTRIBUTION_SINGLE_END, p::WORKSHARE_EXECUTE];
        assert_eq!(counts(trace, once_each), [7; 3]);
        assert_eq!(trace.count(p::BARRIER_PLAIN_BEGIN), 14);
        // The barrier is at the single, even if the runtime gives no code pointer.
        let barriers =
            trace.of(wait::WAIT_SITE).filter(|e| e.number("kind") == i128::from(wait::kind::BARRIER));
        let sites: Vec<_> = barriers.map(|event| event.number("site")).collect();
        assert!(!sites.is_empty() && sites.iter().all(|site| *site != 0), "{sites:?}");
    });
}

#[test]
fn singles_without_barrier_stay_apart() {
    each("single_nowait", 0, |_, trace| {
        assert_eq!(counts(trace, [p::WORK_DISTRIBUTION_SINGLE_BEGIN, p::CRITICAL_SECTION_BEGIN]), [2; 2]);
        assert_eq!(trace.count(p::BARRIER_PLAIN_BEGIN), 2);
    });
}

#[test]
fn masked_constructs_are_recorded_where_the_runtime_reports_them() {
    each("masked", 0, |compiler, trace| {
        let expected = usize::from(compiler == Compiler::Clang);
        assert_eq!(counts(trace, [omp::MASKED_BEGIN, omp::MASKED_END]), [expected; 2]);
    });
}

/// Objects of a kind that were acquired, with how often.
fn held(trace: &Trace, code: Code, kind: u32) -> Vec<(i128, usize)> {
    let mut objects = std::collections::BTreeMap::new();
    for event in trace.of(code).filter(|e| e.number("kind") == i128::from(kind)) {
        *objects.entry(event.number("object")).or_insert(0) += 1;
    }
    objects.into_iter().collect()
}

#[test]
fn ordered_waits_have_an_object() {
    each("ordered", 0, |_, trace| {
        assert_eq!(trace.count(p::CRITICAL_ACQUIRING_BEGIN), 10);
        let acquired = held(trace, wait::ACQUIRED, wait::kind::ORDERED);
        assert_eq!(acquired.iter().map(|(_, times)| times).sum::<usize>(), 10);
        assert_eq!(held(trace, wait::RELEASED, wait::kind::ORDERED), acquired);
    });
}

#[test]
fn criticals_nest() {
    each("critical", 50, |_, trace| {
        let both = [p::CRITICAL_ACQUIRING_BEGIN, p::CRITICAL_ACQUIRING_END, p::CRITICAL_SECTION_BEGIN];
        assert_eq!(counts(trace, both), [200; 3]);
        assert_eq!(trace.count(p::CRITICAL_SECTION_END), 200);
        let acquired = held(trace, wait::ACQUIRED, wait::kind::CRITICAL);
        assert_eq!(acquired.iter().map(|(_, times)| *times).collect::<Vec<_>>(), [100, 100]);
        assert_eq!(held(trace, wait::RELEASED, wait::kind::CRITICAL), acquired);
    });
}

#[test]
fn locks_need_not_nest_and_a_failed_test_holds_nothing() {
    each("locks", 0, |_, trace| {
        // Per thread a, b, a; the master tests a once more and gets it.
        assert_eq!(trace.count(p::CRITICAL_ACQUIRING_BEGIN), 6);
        assert_eq!(trace.count(p::CRITICAL_SECTION_BEGIN), 0);
        let acquired = held(trace, wait::ACQUIRED, wait::kind::LOCK);
        let mut times: Vec<usize> = acquired.iter().map(|(_, times)| *times).collect();
        times.sort_unstable();
        assert_eq!(times, [2, 5]);
        assert_eq!(held(trace, wait::RELEASED, wait::kind::LOCK), acquired);
        // A holder has recorded its acquisition's place, also after a test: three places, and the test's.
        let mut sites = trace.streams.iter().map(|stream| {
            let mut sites: Vec<_> = stream.of(wait::WAIT_OBJECT).map(|e| e.number("site")).collect();
            sites.dedup();
            sites.len()
        });
        assert!(sites.clone().all(|sites| sites == 3 || sites == 4));
        assert!(sites.any(|sites| sites == 4));
    });
}

#[test]
fn criticals_and_locks_share_one_entry_for_the_awaited_object() {
    each("alternating", 9, |_, trace| {
        // Each wait is for something else than the one before it on the thread.
        assert_eq!(counts(trace, [p::CRITICAL_ACQUIRING_BEGIN, wait::WAIT_OBJECT]), [36; 2]);
        for stream in &trace.streams {
            let kinds: Vec<_> = stream.of(wait::WAIT_OBJECT).map(|e| e.number("kind") as u32).collect();
            assert_eq!(kinds, [wait::kind::CRITICAL, wait::kind::LOCK].repeat(9));
        }
    });
    // A constant object costs one entry per thread.
    each("ordered", 0, |_, trace| assert!(trace.count(wait::WAIT_OBJECT) <= 2));
}

#[test]
fn a_nest_lock_is_held_once_however_often_its_owner_takes_it() {
    each("nest_locks", 0, |_, trace| {
        assert_eq!(counts(trace, [p::CRITICAL_ACQUIRING_BEGIN, p::CRITICAL_ACQUIRING_END]), [4; 2]);
        for code in [wait::ACQUIRED, wait::RELEASED] {
            let objects = held(trace, code, wait::kind::NEST_LOCK);
            assert_eq!(objects.iter().map(|(_, times)| *times).collect::<Vec<_>>(), [2]);
        }
    });
}

#[test]
fn regions_nest_three_deep() {
    each("nested", 0, |_, trace| {
        // Eight members at a time, unless a thread is done with one region before another begins.
        assert!((5..=8).contains(&trace.streams.len()), "{}", trace.streams.len());
        assert_eq!(counts(trace, [omp::REGION_BEGIN, omp::REGION_END, p::RUNTIME_FORK_CALL_BEGIN]), [7; 3]);
        assert_eq!(
            counts(trace, [omp::IMPLICIT_BEGIN, omp::IMPLICIT_END, p::RUNTIME_USER_MICROTASK_BEGIN]),
            [14; 3]
        );
        // Every region has members 0 and 1.
        let mut members: Vec<_> =
            trace.of(omp::IMPLICIT_BEGIN).map(|e| (e.number("region"), e.number("index"))).collect();
        members.sort_unstable();
        members.dedup();
        assert_eq!(members.len(), 14);
    });
}

#[test]
fn teams_are_regions_of_their_own() {
    each("teams", 0, |_, trace| {
        // The league, and in each of its two teams at least one region.
        assert!(trace.count(omp::REGION_BEGIN) >= 3);
        assert_eq!(trace.count(omp::REGION_BEGIN), trace.count(omp::REGION_END));
    });
}

#[test]
fn serialized_regions_and_orphaned_constructs_are_recorded() {
    each("serial", 0, |compiler, trace| {
        assert_eq!(trace.streams.len(), 1);
        assert_eq!(counts(trace, [omp::REGION_BEGIN, omp::IMPLICIT_BEGIN]), [2; 2]);
        assert_eq!(counts(trace, TASK_LIFE), [2; 3]);
        assert_eq!(trace.count(p::WORKSHARE_EXECUTE), usize::from(compiler == Compiler::Clang));
    });
}

/// LLVM's runtimes up to 16 report the barriers at the ends of loops and of regions as one kind.
#[test]
fn barriers_of_one_kind_in_the_runtime_are_distinguished() {
    if !Compiler::Clang.is_installed() {
        return;
    }
    for preloaded in [String::new(), tool_under_old_kinds()] {
        let trace = Run::construct(Compiler::Clang, "loops", 0).env("LD_PRELOAD", preloaded).trace();
        assert_eq!(counts(&trace, [p::BARRIER_PLAIN_BEGIN, p::BARRIER_JOIN_BEGIN]), [6, 2]);
    }
}

#[test]
fn every_region_has_its_members_and_join_barriers() {
    each("regions", 100, |_, trace| {
        let per_thread = [
            omp::IMPLICIT_BEGIN,
            p::RUNTIME_USER_MICROTASK_BEGIN,
            p::BARRIER_JOIN_BEGIN,
            p::BARRIER_JOIN_END,
        ];
        assert_eq!(counts(trace, per_thread), [200; 4]);
        assert_eq!(trace.count(omp::REGION_BEGIN), 100);
        // A worker waits at the site of its region, though the runtime gives it no code pointer.
        let region = trace.of(omp::REGION_BEGIN).next().unwrap().number("site");
        let joins =
            trace.of(wait::WAIT_SITE).filter(|e| e.number("kind") == i128::from(wait::kind::JOIN_BARRIER));
        let sites: Vec<_> = joins.map(|e| e.number("site")).collect();
        assert_eq!(sites, [region, region]);
    });
}

#[test]
fn regions_begin_at_their_fork_with_more_places_than_a_thread_remembers() {
    each("many_places", 10, |_, trace| {
        assert_eq!(trace.count(omp::REGION_BEGIN), 1000);
        let forking = trace.streams.iter().find(|stream| stream.count(omp::REGION_BEGIN) > 0).unwrap();
        let times = |code| forking.of(code).map(|event| event.at);
        let first_round = 100;
        // The runtime forks the team between the two callbacks, and time passes.
        for (begin, joined) in times(omp::REGION_BEGIN).zip(times(omp::IMPLICIT_BEGIN)).skip(first_round) {
            assert!(begin < joined, "{begin} ns is the time of the member's begin");
        }
    });
}

#[test]
fn the_runtimes_helper_threads_are_no_workers() {
    if !Compiler::Clang.is_installed() {
        return;
    }
    let trace = Run::construct(Compiler::Clang, "target_nowait", 0).trace();
    // The explicit task, and two target tasks in it.
    assert_eq!(counts(&trace, TASK_LIFE), [3; 3]);
    assert_eq!(counts(&trace, [p::TASK_TASKWAIT_BEGIN, omp::TASK_SUSPENDED]), [1, 0]);
    assert_eq!(counts(&trace, [omp::REGION_BEGIN, omp::IMPLICIT_BEGIN]), [1, 2]);
    let helpers = trace.of(omp::THREAD_TYPE).filter(|e| e.number("type") == 3).count();
    assert_eq!(helpers, trace.streams.len() - 2);
    assert!(helpers > 0);
}

#[test]
fn deep_recursion_stays_within_ovnis_stacks() {
    // The oracle holds the limit of 512; the tool shows only the innermost task beyond it.
    each("deep", 2000, |_, trace| {
        assert_eq!(trace.count(p::TASK_CREATE), 2000);
        let suspended = trace.count(omp::TASK_SUSPENDED);
        assert!(suspended > 0);
        assert_eq!(trace.count(p::TASK_EXECUTE), 2000 + suspended);
    });
}

#[test]
fn many_threads_have_a_stream_each() {
    for compiler in [Compiler::Clang, Compiler::Gcc].into_iter().filter(|c| c.is_installed()) {
        let trace = Run::construct(compiler, "tasks", 500).env("OMP_NUM_THREADS", "64").trace();
        assert_eq!(trace.streams.len(), 64);
        assert_eq!(counts(&trace, TASK_LIFE), [500; 3]);
        assert_eq!(trace.count(omp::IMPLICIT_BEGIN), 64);
    }
}

#[test]
fn omp_control_tool_pauses_starts_flushes_and_ends() {
    if !Compiler::Clang.is_installed() {
        return;
    }
    let (output, trace) = Run::construct(Compiler::Clang, "control", 0).output();
    assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "0\n0\n0\n0\n", "every command was obeyed");
    trace.assert_sound();
    // Thirty tasks run, ten of them while recording is paused.
    assert_eq!(counts(&trace, TASK_LIFE), [20; 3]);
    assert_eq!(trace.count(omp::CONTROL), 4);
    // The region that comes after the end is not there.
    assert_eq!(trace.count(omp::REGION_BEGIN), 2);
}

/// A section that is in one of the two files only ends before the enclosing one, even if all end at once.
#[test]
fn a_pause_or_an_end_inside_of_a_construct_ends_it_first() {
    if !Compiler::Clang.is_installed() {
        return;
    }
    for construct in ["pause_inside", "exit_in_master"] {
        // A thread that begins while the process ends is not ended.
        let (output, trace) = Run::construct(Compiler::Clang, construct, 0).output();
        assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
        for stream in &trace.streams {
            let of = |code| stream.events.iter().find(|event| event.code == code).map(|event| event.at);
            if let Some(masked) = of(omp::MASKED_END) {
                let body = of(p::RUNTIME_USER_MICROTASK_END);
                assert!(body.is_some_and(|body| masked < body), "{construct}: {masked}, {body:?}");
            }
        }
        assert_eq!(trace.count(omp::MASKED_END), 1, "{construct}");
    }
}

#[test]
fn the_switch_from_outside_starts_paused() {
    if Compiler::Clang.is_installed() {
        let trace = Run::construct(Compiler::Clang, "tasks", 10).env("TASKSCOPE_SWITCH", "off").trace();
        assert_eq!(counts(&trace, TASK_LIFE), [0; 3]);
        assert_eq!(trace.count(omp::REGION_BEGIN), 0);
    }
}
