//! The contract of `import --from device-records` and `dump --queue`.

mod common;

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn taskscope(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_taskscope")).args(arguments).output().unwrap()
}

fn corpus(file: &str) -> Option<PathBuf> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/corpus/device").join(file);
    path.exists().then_some(path)
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

fn dumped(trace: &Path, queue: &str) -> Vec<serde_json::Value> {
    let output = taskscope(&["dump", "--queue", queue, "--json", text(trace)]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let lines = String::from_utf8(output.stdout).unwrap();
    lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn the_dump_of_issue_54_gives_the_correct_streams_in_both_orders() {
    let files = ["pti-issue54-buffer1.tsv", "pti-issue54-buffer2.tsv"].map(corpus);
    let [Some(first), Some(second)] = files else { return };
    let correct = std::fs::read_to_string(corpus("pti-issue54-correct-per-queue.tsv").unwrap()).unwrap();
    let mut lines = correct.lines().map(|line| line.split('\t').collect::<Vec<_>>());
    let header = lines.next().unwrap();
    let rows: Vec<Vec<&str>> = lines.collect();
    for order in [[&first, &second], [&second, &first]] {
        let directory = tempfile::tempdir().unwrap();
        let trace = directory.path().join("t");
        let arguments =
            ["import", "--from", "device-records", text(order[0]), text(order[1]), "-o", text(&trace)];
        let output = taskscope(&arguments);
        assert!(output.status.success());
        assert!(String::from_utf8_lossy(&output.stdout).contains("foreign: id 16 of queue 0x30e63c0"));
        for queue in ["0x30e63c0", "0x7f5438017ae0"] {
            let expected = rows.iter().filter(|row| row[0] == queue);
            let records = dumped(&trace, queue);
            assert_eq!(records.len(), expected.clone().count());
            for (record, row) in records.iter().zip(expected) {
                for (name, value) in header.iter().zip(row).filter(|(n, _)| !n.contains("buffer")) {
                    let found = &record[*name];
                    let found = found.as_str().map_or_else(|| found.to_string(), str::to_owned);
                    assert_eq!(found, *value, "{name} of {record}");
                }
                assert_eq!((&record["lane"], record["anomalies"].as_array().unwrap().len()), (&0.into(), 0));
            }
        }
    }
}

/// Readers of the released records need not know the column names of the vendor's file.
#[test]
fn columns_of_other_names_are_printed_under_the_usual_ones_too() {
    let directory = tempfile::tempdir().unwrap();
    let (file, trace) = (directory.path().join("x.csv"), directory.path().join("t"));
    let text_of_file = "stream,kernel_id,start_ns,end_ns,tid\n7,12,0x10,40,5\n7,13,50,60,\n";
    std::fs::write(&file, text_of_file).unwrap();
    let import = ["import", "--from", "device-records", text(&file), "-o", text(&trace)];
    assert!(taskscope(&import).status.success());
    let info: serde_json::Value =
        serde_json::from_slice(&taskscope(&["info", "--json", text(&trace)]).stdout).unwrap();
    assert_eq!((&info["first_clock_ns"], &info["wall_ns"]), (&16.into(), &44.into()));
    let rows = dumped(&trace, "7");
    let of = |row: usize| {
        ["id", "start", "end", "thread"].map(|name| rows[row].get(name).and_then(|v| v.as_u64()))
    };
    assert_eq!(of(0), [Some(12), Some(16), Some(40), Some(5)]);
    assert_eq!(of(1), [Some(13), Some(50), Some(60), None]);
    assert_eq!((&rows[0]["kernel_id"], &rows[0]["start_ns"]), (&12.into(), &"0x10".into()));
}

#[test]
fn ranges_of_device_queues_alone_count_from_the_first_operation_and_add_up() {
    let directory = tempfile::tempdir().unwrap();
    let (file, trace) = (directory.path().join("x.csv"), directory.path().join("t"));
    std::fs::write(&file, "queue,id,start,end\nq,1,1000,2000\nq,2,3000,5000\n").unwrap();
    let import = ["import", "--from", "device-records", text(&file), "-o", text(&trace)];
    assert!(taskscope(&import).status.success());
    let times = |range: &str| -> Vec<u64> {
        let output = taskscope(&["report", "--json", "--range", range, text(&trace)]);
        assert!(output.status.success(), "{range}: {}", String::from_utf8_lossy(&output.stderr));
        let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        let times = report["devices"]["queues"][0]["time_ns"].as_object().unwrap();
        times.values().map(|ns| ns.as_u64().unwrap()).collect()
    };
    let whole = times("0%..100%");
    assert_eq!(whole.iter().sum::<u64>(), 4000);
    // From 1500 to 2000 a kernel runs, then none until 3000.
    assert_eq!(times("500ns..2500ns").iter().sum::<u64>(), 2000);
    let parts = ["..12.5%", "12.5%..500ns", "500ns..2.5us", "2.5us.."].map(times);
    let sums: Vec<u64> = (0..whole.len()).map(|at| parts.iter().map(|part| part[at]).sum()).collect();
    assert_eq!(sums, whole);
}

#[test]
fn a_queue_that_is_cut_makes_a_trace_incomplete() {
    let directory = tempfile::tempdir().unwrap();
    let (file, trace) = (directory.path().join("x.csv"), directory.path().join("t"));
    std::fs::write(&file, "queue,id,start,end\nq,1,10,20\nq,2,30,40\n").unwrap();
    let import = ["import", "--from", "device-records", text(&file), "-o", text(&trace)];
    assert!(taskscope(&import).status.success());
    let is_complete = || -> serde_json::Value {
        let info = taskscope(&["info", "--json", text(&trace)]).stdout;
        serde_json::from_slice::<serde_json::Value>(&info).unwrap()["complete"].clone()
    };
    assert_eq!(is_complete(), true);
    let events = trace.join("devices/queue.0/taskscope.obs");
    let bytes = std::fs::read(&events).unwrap();
    std::fs::write(&events, &bytes[..bytes.len() - 5]).unwrap();
    assert_eq!(is_complete(), false);
}

#[test]
fn a_tab_within_a_value_stays_a_tab() {
    let directory = tempfile::tempdir().unwrap();
    let (file, trace) = (directory.path().join("x.csv"), directory.path().join("t"));
    let rows = "queue,id,start,end,note,path\nq,1,10,20,\"a\tb\",C:\\temp\nq,2,30,40,plain,\"\t\"\n";
    std::fs::write(&file, rows).unwrap();
    let import = ["import", "--from", "device-records", text(&file), "-o", text(&trace)];
    assert!(taskscope(&import).status.success());
    let rows = dumped(&trace, "q");
    let of = |row: usize| ["note", "path"].map(|name| rows[row][name].as_str().unwrap().to_owned());
    assert_eq!((of(0), of(1)), (["a\tb", "C:\\temp"].map(str::to_owned), ["plain", "\t"].map(str::to_owned)));
}

#[test]
fn verbs_show_device_queues_and_report_missing_records() {
    let directory = tempfile::tempdir().unwrap();
    let (file, trace) = (directory.path().join("r.csv"), directory.path().join("t"));
    std::fs::write(
        &file,
        "queue,id,append,start,end,colour\nq,1,5,10,20,red\nq,2,6,15,30,\"a,b\"\nq,2,6,15,30,\"a,b\"\n",
    )
    .unwrap();
    let output =
        taskscope(&["import", "--from", "device-records", text(&file), "-o", text(&trace), "--json"]);
    let imported: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(imported["schema"], "taskscope-import-device-records/1");
    assert_eq!(imported["queues"][0]["duplicates"], 1);
    let records = dumped(&trace, "q");
    assert_eq!(records[1]["colour"], "a,b");
    assert_eq!(records[1]["anomalies"], serde_json::json!(["overlap"]));
    assert_eq!((&records[0]["lane"], &records[1]["lane"]), (&0.into(), &1.into()));

    let checked = taskscope(&["check", text(&trace)]);
    let violations = String::from_utf8(checked.stderr).unwrap();
    assert_eq!(checked.status.code(), Some(1));
    assert!(
        violations.contains("error[device-overlap]")
            && violations.contains("in:   devices/queue.0, operation 1"),
        "{violations}"
    );
    assert!(taskscope(&["check", "--allow", "device-overlap", text(&trace)]).status.success());
    let top = String::from_utf8(taskscope(&["top", text(&trace)]).stdout).unwrap();
    assert!(top.contains("2  QOr  "), "{top}");

    let info = String::from_utf8(taskscope(&["info", text(&trace)]).stdout).unwrap();
    assert!(info.contains("overlaps on this in-order queue: 1 record, by 5 ns at most"), "{info}");
    let report: serde_json::Value =
        serde_json::from_slice(&taskscope(&["report", "--json", text(&trace)]).stdout).unwrap();
    let queue = &report["devices"]["queues"][0];
    assert_eq!((&queue["span_ns"], &queue["time_ns"]["kernels"]), (&25.into(), &20.into()));
    let shown = String::from_utf8(taskscope(&["report", text(&trace)]).stdout).unwrap();
    assert!(shown.contains("Device queues"), "{shown}");

    let output = taskscope(&["dump", "--queue", "nosuch", text(&trace)]);
    let error = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(error.contains("there is no queue nosuch") && error.contains("devices/queue.0"), "{error}");
    // A directory that holds something is never written to.
    let output = taskscope(&["import", "--from", "device-records", text(&file), "-o", text(&trace)]);
    assert_eq!(output.status.code(), Some(2));
}

/// Builds an example that uses OpenMP and OpenCL; `None` if this machine cannot run it.
fn example(directory: &Path) -> Option<PathBuf> {
    built(directory, "../../examples/opencl/tasks.c")
}

fn built(directory: &Path, source: &str) -> Option<PathBuf> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join(source);
    let program = directory.join("program");
    let compiler = std::env::var("CLANG").unwrap_or_else(|_| "clang-19".to_owned());
    let built = Command::new(compiler)
        .args(["-O1", "-g", "-fopenmp", "-Wl,-rpath,/usr/lib/llvm-19/lib"])
        .arg(source)
        .arg("-o")
        .arg(&program)
        .arg("-lOpenCL")
        .output();
    let built = built.is_ok_and(|output| output.status.success());
    let runs = built && Command::new(&program).output().is_ok_and(|output| output.status.success());
    if !runs {
        taskscope_prerequisite::missing("no clang with OpenMP, or no OpenCL device");
    }
    runs.then_some(program)
}

fn recorders_are_built() -> bool {
    let own = Path::new(env!("CARGO_BIN_EXE_taskscope")).parent().unwrap();
    let is_built = |name: &str| own.join(name).is_file() || own.join("deps").join(name).is_file();
    let all = is_built("libtaskscope_ompt.so") && is_built("libtaskscope_device.so");
    if !all {
        taskscope_prerequisite::missing("the recorders were not built");
    }
    all
}

/// The host submits two kernels to the device, works, and waits: the critical path leads through the kernels,
/// one after the other, to their submission, past the host's work meanwhile.
#[test]
fn the_critical_path_goes_through_kernels() {
    let directory = tempfile::tempdir().unwrap();
    if !recorders_are_built() {
        return;
    }
    let Some(program) = built(directory.path(), "tests/programs/opencl_wait.c") else { return };
    let trace = directory.path().join("t");
    let output = taskscope(&["record", "-o", text(&trace), "--", text(&program)]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let printed =
        taskscope(&["report", "--section", "path,ledger,blame", "--intervals", "--json", text(&trace)]);
    let report: serde_json::Value = serde_json::from_slice(&printed.stdout).unwrap();
    let steps = report["path"]["steps"].as_array().unwrap();
    let at = |step: &serde_json::Value, key: &str| step[key].as_u64().unwrap();
    assert!(steps.windows(2).all(|pair| pair[0]["end_ns"] == pair[1]["begin_ns"]));
    let (first, last) = (&steps[0], &steps[steps.len() - 1]);
    assert_eq!(at(last, "end_ns") - at(first, "begin_ns"), at(&report, "wall_ns"));
    let of = |is_operation: bool| {
        steps
            .iter()
            .filter(|step| step["is_operation"] == is_operation && step["cause"] == "device")
            .collect::<Vec<_>>()
    };
    let kernels = of(true);
    assert_eq!(kernels.len(), 8, "every kernel was waited for");
    assert!(kernels.iter().all(|step| step["name"].as_str().unwrap().starts_with("spin on ")));
    // The second kernel of a round waits for the first, and so does the host: none of the host's work is in
    // between.
    for pair in kernels.chunks(2) {
        let between = |step: &&serde_json::Value| {
            at(step, "begin_ns") >= at(pair[0], "end_ns") && at(step, "end_ns") <= at(pair[1], "begin_ns")
        };
        assert!(steps.iter().filter(between).all(|step| step["cause"] == "device"));
    }
    let blamed = report["blame"].as_array().unwrap().iter().filter(|row| row["cause"] == "device");
    let sum: u64 = blamed.map(|row| at(row, "ns")).sum();
    assert_eq!(sum, at(&report["ledger"]["causes"], "device"));
}

/// A read that blocks is a wait for the kernel before it, in a program with workers and in one without.
#[test]
fn blocking_copies_are_waits_for_the_device() {
    let directory = tempfile::tempdir().unwrap();
    if !recorders_are_built() {
        return;
    }
    for flags in [&["-fopenmp"][..], &[]] {
        let program = directory.path().join(format!("blocking{}", flags.len()));
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs/opencl_blocking.c");
        let mut compiler = Command::new("gcc");
        compiler.args(["-O1", "-g", "-w"]).args(flags).arg(source).arg("-o").arg(&program).arg("-lOpenCL");
        if !compiler.output().is_ok_and(|output| output.status.success()) {
            taskscope_prerequisite::missing("there is no gcc, or OpenCL is not installed");
            return;
        }
        if Command::new(&program).output().unwrap().status.code() == Some(3) {
            taskscope_prerequisite::missing("there is no OpenCL device");
            return;
        }
        let trace = directory.path().join(format!("t{}", flags.len()));
        let output = taskscope(&["record", "-o", text(&trace), "--", text(&program)]);
        let warnings = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() && !warnings.contains("used no OpenMP"), "{warnings}");
        let report: serde_json::Value =
            serde_json::from_slice(&taskscope(&["report", "--json", text(&trace)]).stdout).unwrap();
        let devices = &report["devices"];
        let waits = devices["waits"].as_array().unwrap();
        for (call, operation) in [
            ("clEnqueueReadBuffer", "slow on opencl.0"),
            ("clEnqueueMapBuffer", "slow on opencl.0"),
            ("clFinish", "slow on opencl.0"),
            ("clWaitForEvents", "slow on opencl.0"),
        ] {
            let found = waits.iter().find(|wait| wait["call"] == call && wait["operation"] == operation);
            assert!(found.is_some_and(|wait| wait["threads"] == 1), "{call}: {waits:?}");
        }
        // A submission that does not block is none, whenever its operation ends.
        assert!(waits.iter().all(|wait| wait["call"] != "clEnqueueNDRangeKernel"), "{waits:?}");
        let [calls] = &devices["calls"].as_array().unwrap()[..] else { panic!("{devices}") };
        let waited: u64 = waits.iter().map(|wait| wait["time_ns"].as_u64().unwrap()).sum();
        assert_eq!(calls["waiting_ns"], waited);
        let shown = String::from_utf8(taskscope(&["report", text(&trace)]).stdout).unwrap();
        assert!(shown.contains("Waits for devices") && shown.contains("for slow on opencl.0"), "{shown}");
        let finding = report["findings"].as_array().unwrap().iter().find(|of| of["cause"] == "device");
        assert_eq!(finding.is_some(), !flags.is_empty());
        if let Some(finding) = finding {
            assert!(finding["text"].as_str().unwrap().contains("(slow on opencl.0"), "{finding}");
            let lost = report["efficiency"]["device_offload_loss_ns"].as_u64().unwrap();
            // Waiting without a CPU, and beside the run of the process, is apart.
            assert!(0 < lost && lost <= waited, "{lost} of {waited}");
        }
    }
}

#[test]
fn record_takes_threads_tasks_and_queues_of_one_program() {
    let directory = tempfile::tempdir().unwrap();
    if !recorders_are_built() {
        return;
    }
    let Some(program) = example(directory.path()) else { return };
    let trace = directory.path().join("t");
    let output = taskscope(&["record", "-o", text(&trace), "--", text(&program)]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(output.stdout, b"12 tasks\n");
    let report: serde_json::Value =
        serde_json::from_slice(&taskscope(&["report", "--json", text(&trace)]).stdout).unwrap();
    let queue = &report["devices"]["queues"][0];
    assert_eq!((&queue["account"]["delivered"], &queue["account"]["lost"]), (&24.into(), &0.into()));
    let time = queue["time_ns"].as_object().unwrap();
    let sum: u64 = time.values().map(|nanos| nanos.as_u64().unwrap()).sum();
    assert_eq!(sum, queue["span_ns"], "every nanosecond has one cause");
    let names = queue["names"].as_array().unwrap();
    let kernel = names.iter().find(|name| name["name"] == "scale").unwrap();
    let by = kernel["submitted_by"].as_str().unwrap();
    assert!(by.contains("in clEnqueueNDRangeKernel of main [task at tasks.c:45]"), "{by}");
    // Each operation has its call, thread and task; threads and queues are in one report.
    for record in dumped(&trace, queue["name"].as_str().unwrap()) {
        assert!(record["call"].as_str().unwrap().starts_with("clEnqueue"), "{record}");
        assert_eq!(record["task_type"], "main [task at tasks.c:45]");
        assert!(record["task"].as_u64().is_some() && record["thread"].as_u64().is_some());
    }
    let shown = taskscope(&["report", "--section", "threads,tasks,devices", text(&trace)]);
    let shown = String::from_utf8(shown.stdout).unwrap();
    for part in
        ["Threads ", "main [task at tasks.c:45]", "Device queues", "Calls for devices", "idle because"]
    {
        assert!(shown.contains(part), "{part} is missing: {shown}");
    }
    assert!(report["devices"]["calls"][0]["submitting_ns"].as_u64().unwrap() > 0);
    assert!(taskscope(&["emulate", text(&trace)]).status.success());
    let view = std::fs::read_to_string(trace.join("device.prv")).unwrap();
    assert_eq!(view.lines().count(), 1 + 2 * 24);
    assert!(std::fs::read_to_string(trace.join("device.pcf")).unwrap().contains("scale"));
}

/// The message of `record` after a program with only queues is about these.
#[test]
fn record_reports_a_trace_of_queues_alone() {
    let directory = tempfile::tempdir().unwrap();
    if !recorders_are_built() {
        return;
    }
    let Some(program) = built(directory.path(), "../../examples/opencl/queues.c") else { return };
    let trace = directory.path().join("t");
    let output = taskscope(&["record", "-o", text(&trace), "--", text(&program), "40"]);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(errors.contains("3 device queues  40 operations") && errors.contains("opencl.2"), "{errors}");
    assert!(!errors.contains("nothing to report"), "{errors}");
}

#[test]
fn record_names_its_library_to_cudas_driver_unless_the_user_did() {
    let directory = tempfile::tempdir().unwrap();
    let own = Path::new(env!("CARGO_BIN_EXE_taskscope")).parent().unwrap();
    let is_built = |name: &str| own.join(name).is_file() || own.join("deps").join(name).is_file();
    if !is_built("libtaskscope_ompt.so") || !is_built("libtaskscope_device.so") {
        taskscope_prerequisite::missing("the recorders were not built");
        return;
    }
    let recorded = |set: Option<&str>, name: &str| {
        let trace = directory.path().join(name);
        let mut command = Command::new(env!("CARGO_BIN_EXE_taskscope"));
        command.args(["record", "-o", text(&trace), "--", "sh", "-c", "echo $CUDA_INJECTION64_PATH"]);
        match set {
            Some(value) => command.env("CUDA_INJECTION64_PATH", value),
            None => command.env_remove("CUDA_INJECTION64_PATH"),
        };
        command.output().unwrap()
    };
    let output = recorded(None, "a");
    assert!(String::from_utf8_lossy(&output.stdout).trim().ends_with("/libtaskscope_device.so"));
    let output = recorded(Some("/opt/other.so"), "b");
    assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), "/opt/other.so");
    assert!(String::from_utf8_lossy(&output.stderr).contains("CUDA is not recorded"));
}

/// LLVM's offload runtime looks for `libomp.so` to connect tools; a program may find its runtime elsewhere.
#[test]
fn record_has_the_offload_runtime_find_the_programs_own_openmp_runtime() {
    if !recorders_are_built() {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let at = |name: &str| directory.path().join(name);
    let built = |arguments: &[&str], source: &str, output: &str| {
        let output = Command::new("gcc")
            .args(["-o", text(&at(output)), text(&common::program_source(source))])
            .arg(format!("-L{}", text(directory.path())))
            .args(arguments)
            .output()
            .expect("gcc, which scripts/install-packages installs");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    };
    let rpath = format!("-Wl,-rpath,{}", text(directory.path()));
    built(&["-shared", "-fPIC", "-Wl,-soname,libomp.so.5"], "counting_runtime.c", "libomp.so.5");
    built(&["-shared", "-fPIC", "-Wl,-soname,libomptarget.so.99"], "asking_offload.c", "libomptarget.so.99");
    built(&["-l:libomp.so.5", "-l:libomptarget.so.99", &rpath, "-ldl"], "one_runtime.c", "program");
    let trace = at("t");
    let output = taskscope(&["record", "-o", text(&trace), "--", text(&at("program"))]);
    assert_eq!(output.status.code(), Some(7), "{}", String::from_utf8_lossy(&output.stderr));
    let left = std::fs::read_dir(&trace).into_iter().flatten().flatten();
    assert!(left.filter(|entry| entry.file_name().to_string_lossy().starts_with("libraries")).count() == 0);
}

/// A program that offloads to LLVM's plugin for the host and prints `printed`; `None` if the installed LLVM
/// cannot build it, or the recorders are missing.
fn offloading(directory: &Path, source: &str, printed: &str) -> Option<PathBuf> {
    let own = Path::new(env!("CARGO_BIN_EXE_taskscope")).parent().unwrap();
    let is_built = |name: &str| own.join(name).is_file() || own.join("deps").join(name).is_file();
    if !is_built("libtaskscope_ompt.so") || !is_built("libtaskscope_device.so") {
        taskscope_prerequisite::missing("the recorders were not built");
        return None;
    }
    let program = directory.join("program");
    let built = Command::new(std::env::var("CLANG").unwrap_or_else(|_| "clang-19".to_owned()))
        .args(["-g", "-fopenmp", "-fopenmp-targets=x86_64-pc-linux-gnu"])
        .args(["-L/usr/lib/llvm-19/lib", "-Wl,-rpath,/usr/lib/llvm-19/lib"])
        .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(source))
        .arg("-o")
        .arg(&program)
        .output();
    let alone = match built {
        Ok(built) if built.status.success() => Command::new(&program).output().map(|output| output.stdout),
        _ => Ok(Vec::new()),
    };
    if alone.unwrap_or_default() != printed.as_bytes() {
        eprintln!(
            "not tested: this LLVM cannot offload to the host (apt-get install clang-tools-19 libomp-19-dev)"
        );
        return None;
    }
    Some(program)
}

/// Two threads offload to LLVM's plugin for the host, if the installed LLVM has it.
#[test]
fn record_stores_offloaded_openmp_operations() {
    let directory = tempfile::tempdir().unwrap();
    let printed = "30.0 on the device\n";
    let Some(program) = offloading(directory.path(), "examples/offload/two_threads.c", printed) else {
        return;
    };
    let trace = directory.path().join("t");
    let output = taskscope(&["record", "-o", text(&trace), "--", text(&program)]);
    assert_eq!(output.stdout, b"30.0 on the device\n", "{}", String::from_utf8_lossy(&output.stderr));
    let report: serde_json::Value =
        serde_json::from_slice(&taskscope(&["report", "--json", text(&trace)]).stdout).unwrap();
    let queues = report["devices"]["queues"].as_array().unwrap();
    let total = |name: &str| queues.iter().map(|queue| queue["account"][name].as_u64().unwrap()).sum::<u64>();
    // Two copies and a kernel for each construct; the first one copies back only.
    assert_eq!((queues.len(), total("delivered"), total("lost"), total("overlaps")), (2, 62, 0, 0));
    for queue in queues {
        assert_eq!((&queue["order"], &queue["clock"]["violated"]), (&"in-order".into(), &0.into()));
        let kernel = queue["names"].as_array().unwrap().iter().find(|name| name["name"] == "target kernel");
        let by = kernel.unwrap()["submitted_by"].as_str().unwrap();
        assert!(by.contains("in omp target: launch"), "{by}");
    }
}

/// The report of a trace or profile.
fn report_of(recording: &Path) -> serde_json::Value {
    serde_json::from_slice(&taskscope(&["report", "--json", text(recording)]).stdout).unwrap()
}

/// Nanoseconds in the rows of a report's table that pass.
fn sum_of(report: &serde_json::Value, table: &str, passes: &dyn Fn(&serde_json::Value) -> bool) -> u64 {
    let rows = report[table].as_array().unwrap().iter().filter(|row| passes(row));
    rows.map(|row| row["ns"].as_u64().unwrap()).sum()
}

/// Identities between the numbers of `waiting.c`, for any duration of its run: the time that the thread waits
/// for the device, that charged to the kernel, that the other thread waits for the first, and the part of it
/// charged to the construct.
fn waits_of_waiting(report: &serde_json::Value) -> [u64; 4] {
    let sum =
        |table: &str, passes: &dyn Fn(&serde_json::Value) -> bool| -> u64 { sum_of(report, table, passes) };
    let waited = sum("causes", &|row| row["state"] == "target_wait");
    assert_eq!(report["efficiency"]["device_offload_loss_ns"], waited);
    assert_eq!(sum("blame", &|row| row["state"] == "target_wait"), waited);
    let by_kernel = |row: &serde_json::Value| {
        row["blamed"] == "operation"
            && row["where"].as_str().unwrap().starts_with("target kernel on target.0.")
    };
    let joined = sum("blame", &|row| row["state"] == "join_barrier");
    let for_construct = |row: &serde_json::Value| {
        let at = row["where"].as_str().unwrap_or_default();
        row["state"] == "join_barrier" && at.starts_with("compute [target at waiting.c:")
    };
    [waited, sum("blame", &by_kernel), joined, sum("blame", &for_construct)]
}

/// A thread in a device construct waits for the device's operation, and its team waits for that construct
/// meanwhile: shares, in a recording of `waiting.c` (traces/README.md).
#[test]
fn waits_for_a_device_are_charged_to_it() {
    let report = report_of(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/traces/waiting"));
    assert_eq!(report["wall_ns"], 388_778_304_u64);
    assert_eq!(waits_of_waiting(&report), [357_772_170, 356_965_061, 359_839_825, 357_772_170]);
    let first = &report["findings"][0];
    assert_eq!((&first["cause"], &first["function"]), (&"device".into(), &"compute".into()), "{first}");
}

/// Names and identities hold in new runs too, as a trace and as a profile, on a busy machine.
#[test]
fn recorded_waits_for_a_device_are_charged_to_it() {
    let directory = tempfile::tempdir().unwrap();
    let here = directory.path();
    let Some(program) = offloading(here, "crates/cli/tests/programs/waiting.c", "36.2\n") else { return };
    let recorded = |name: &str, options: &[&str]| -> serde_json::Value {
        let trace = here.join(name);
        let record = [&["record", "-o", text(&trace)], options, &["--", text(&program)]].concat();
        let output = taskscope(&record);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        report_of(&trace)
    };
    let report = recorded("t", &[]);
    // The other thread may come later than the device ends.
    let [waited, for_kernel, ..] = waits_of_waiting(&report);
    assert!(0 < for_kernel && for_kernel <= waited, "{}", report["blame"]);
    let finding = report["findings"].as_array().unwrap().iter().find(|of| of["cause"] == "device");
    assert_eq!(finding.unwrap()["function"], "compute", "{}", report["findings"]);

    let totals = recorded("p", &["--mode", "profile"])["call_paths"]["totals"].clone();
    assert!(totals["taken_target_wait_ns"].as_u64().unwrap() > 0, "{totals}");
    assert_eq!(totals["given_target_wait_ns"], totals["taken_target_wait_ns"]);
}

#[test]
fn the_report_of_queues_fits_a_narrow_terminal() {
    let directory = tempfile::tempdir().unwrap();
    let (file, trace) = (directory.path().join("x.csv"), directory.path().join("t"));
    std::fs::write(&file, "stream,kernel_id,start_ns,end_ns\n7,12,16,40\n7,13,50,60\n8,14,20,70\n").unwrap();
    let import = ["import", "--from", "device-records", text(&file), "-o", text(&trace)];
    assert!(taskscope(&import).status.success());
    let report = taskscope(&["report", "--width", "40", text(&trace)]);
    let shown = String::from_utf8(report.stdout).unwrap();
    assert!(shown.contains("Device queues"), "{shown}");
    // The trace's path stays one word.
    for line in shown.lines().filter(|line| !line.contains(text(&trace))) {
        assert!(line.chars().count() <= 40, "{line}");
    }
}
