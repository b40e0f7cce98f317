"""Opens exports of stored recordings in the programs that they are for, and compares all counts and sums.

Usage: check.py TASKSCOPE TRACE...
"""

import collections
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time

import otf2
from trace_processor import TraceProcessor

ARROWS = ("task creations", "dependences", "messages", "device submissions", "ends of waits by other threads")
# Rows beside the sections of threads, which are events in Paraver.
BESIDE = ("uncertain intervals", "waits of threads for each other", "parts in collective operations")
# Names of counters; Chrome's form adds that of the value.
OWN = "name like 'waiting tasks%' or name like 'useful threads%'"
SECTIONS = ("sections", "device operations", "device calls", *BESIDE)


def expected(taskscope, trace, target):
    """The contents by `export --dry-run`, and the size."""
    text = subprocess.run(
        [taskscope, "export", "--dry-run", "--to", target, trace], check=True, capture_output=True, text=True
    ).stdout
    # Names fill 31 characters.
    counts = {name.strip(): int(count) for count, name in re.findall(r"^ +(\d+) (.{31}) ", text, re.M)}
    # Digits are in groups of three.
    return counts, int(re.sub(r"\D", "", re.search(r": ([^:]+) bytes in", text).group(1)))


def sums_of(file):
    """Counter values and time of slices of a Chrome file, by a plain reading."""
    events = json.loads(file.read_text())["traceEvents"]
    ns = sum(round(event["dur"] * 1000) for event in events if event["ph"] == "X")
    return ns, sum(event["ph"] == "C" for event in events)


def require(what, found, wanted):
    if found != wanted:
        raise SystemExit(f"error: {what}: found {found}, expected {wanted}")


def check_slices(taskscope, trace, folder):
    """Perfetto's and Chrome's forms, in Perfetto's trace processor."""
    files = {}
    for target in ("perfetto", "chrome"):
        files[target] = folder / target
        command = [taskscope, "export", "--to", target, "-o", files[target], trace]
        subprocess.run(command, check=True, capture_output=True)
    ns, values = sums_of(files["chrome"])
    for target, file in files.items():
        counts, size = expected(taskscope, trace, target)
        name = f"{target} of {trace}"
        require(f"bytes of {name}", file.stat().st_size, size)
        with TraceProcessor(file.read_bytes()) as processor:
            problems = "select name, value from stats where value > 0 and severity in ('error', 'data_loss')"
            require(f"problems of {name}", processor.query(problems), [])
            slices = sum(counts.get(kind, 0) for kind in SECTIONS)
            found = processor.query("select count(*), ifnull(sum(dur), 0) from slice")
            require(f"slices of {name}", found, [(slices, ns)])
            arrows = sum(counts.get(kind, 0) for kind in ARROWS)
            require(f"flows of {name}", processor.query("select count(*) from flow"), [(arrows,)])
            if target == "perfetto":
                samples = processor.query("select count(*) from perf_sample where callsite_id is not null")
                require(f"samples of {name}", samples[0][0], counts.get("samples", 0))
            # The processor counts samples, too.
            own = "select count(*) from counter join track on track.id = track_id where " + OWN
            require(f"values of {name}", processor.query(own), [(values,)])
        print(f"{name}: {slices} slices, {arrows} flows, {values} values of counters, {size} bytes")
    return ns, values


def check_otf2(taskscope, trace, folder, ns, values):
    """The archive, in otf2-print if it is installed and in the library's reader for Python."""
    archive = folder / "otf2"
    command = [taskscope, "export", "--to", "otf2", "-o", archive, trace]
    subprocess.run(command, check=True, capture_output=True)
    name = f"otf2 of {trace}"
    if shutil.which("otf2-print"):
        printed = subprocess.run(["otf2-print", archive / "traces.otf2"], capture_output=True, text=True)
        problems = [line for line in printed.stdout.splitlines() if line.startswith("otf2-print:")]
        require(f"problems of {name}", (printed.returncode, printed.stderr, problems), (0, "", []))
    counts, size = expected(taskscope, trace, "otf2")
    files = sum(file.stat().st_size for file in archive.rglob("*") if file.is_file())
    require(f"bytes of {name}", files, size)
    found, total, since = collections.Counter(), 0, {}
    with otf2.reader.open(str(archive / "traces.otf2")) as reader:
        for location, event in reader.events:
            kind = type(event).__name__
            found[kind] += 1
            key = (location.group.name, location.name)
            if kind == "Enter":
                since[key] = event.time
            elif kind == "Leave":
                total += event.time - since[key]
    sections = sum(counts.get(kind, 0) for kind in SECTIONS)
    require(f"regions of {name}", (found["Enter"], found["Leave"], total), (sections, sections, ns))
    messages = counts.get("messages", 0)
    require(f"messages of {name}", (found["MpiSend"], found["MpiRecv"]), (messages, messages))
    # Those without a kind in OTF2 are regions alone.
    collectives = found["MpiCollectiveBegin"]
    require(f"collective operations of {name}", found["MpiCollectiveEnd"], collectives)
    parts = counts.get("parts in collective operations", 0)
    if collectives > parts or (parts and not collectives):
        raise SystemExit(f"error: {name}: {collectives} collective operations of {parts}")
    require(f"metrics of {name}", found["Metric"], values)
    require(f"samples of {name}", found["CallingContextSample"], counts.get("samples", 0))
    require(f"tasks of {name}", found["ThreadTaskCreate"], counts.get("task creations", 0))
    print(f"{name}: {sections} regions, {messages} messages, {collectives} collectives, {values} metrics, {size} bytes")
    shutil.rmtree(archive)


def check_paje(taskscope, trace, folder, values):
    """The text, in pj_dump if it is installed."""
    if not shutil.which("pj_dump"):
        print(f"note: paje of {trace} is not checked: pj_dump is not installed (package pajeng)")
        return
    file = folder / "paje"
    subprocess.run([taskscope, "export", "--to", "paje", "-o", file, trace], check=True, capture_output=True)
    dumped = subprocess.run(["pj_dump", file], check=True, capture_output=True, text=True).stdout
    found = collections.Counter(line.split(",")[0] for line in dumped.splitlines())
    counts, size = expected(taskscope, trace, "paje")
    sections = sum(counts.get(kind, 0) for kind in SECTIONS)
    arrows = sum(counts.get(kind, 0) for kind in ARROWS)
    name = f"paje of {trace}"
    require(name, (found["State"], found["Link"], found["Variable"]), (sections, arrows, values))
    print(f"{name}: {sections} states, {arrows} links, {values} variables, {size} bytes")


def check_paraver(taskscope, trace, folder):
    """The trace in ptd, a strict reader."""
    archive = folder / "paraver"
    command = [taskscope, "export", "--to", "paraver", "-o", archive, trace]
    subprocess.run(command, check=True, capture_output=True)
    counts, size = expected(taskscope, trace, "paraver")
    name = f"paraver of {trace}"
    files = sum(file.stat().st_size for file in archive.iterdir())
    require(f"bytes of {name}", files, size)
    ptd = pathlib.Path(sys.executable).with_name("ptd")
    checked = subprocess.run([ptd, "comprovar", "-e", archive / "trace.prv"], capture_output=True, text=True)
    require(f"problems of {name}", (checked.returncode, checked.stderr), (0, ""))
    found = collections.Counter(line.split(":")[0] for line in (archive / "trace.prv").open())
    states = sum(counts.get(kind, 0) for kind in SECTIONS if kind not in BESIDE)
    arrows = sum(counts.get(kind, 0) for kind in ARROWS)
    require(name, (found["1"], found["3"]), (states, arrows))
    print(f"{name}: {states} states, {arrows} communications, {size} bytes")
    shutil.rmtree(archive)


def check_firefox(taskscope, trace, folder):
    """The profile in the Firefox Profiler's own command, if it is installed (npm: node@24, @firefox-devtools/profiler-cli)."""
    tools = pathlib.Path("target/exports-firefox/node_modules/.bin")
    if not (tools / "profiler-cli").exists():
        print(f"note: firefox of {trace} is not checked: profiler-cli is not installed")
        return
    file = folder / "firefox.json"
    subprocess.run([taskscope, "export", "--to", "firefox", "-o", file, trace], check=True, capture_output=True)
    counts, size = expected(taskscope, trace, "firefox")
    name = f"firefox of {trace}"
    require(f"bytes of {name}", file.stat().st_size, size)
    # Of its own for each daemon: one that is killed leaves its files.
    sessions = tempfile.mkdtemp(dir=folder)
    environment = {**os.environ, "PATH": f"{tools.resolve()}:{os.environ['PATH']}", "PROFILER_CLI_SESSION_DIR": sessions}

    command = [tools / "profiler-cli"]

    def ask(*words):
        done = subprocess.run([*command, *words, "--session", "check"], capture_output=True, text=True, env=environment)
        require(f"problems of {name}, {words}", (done.returncode, done.stderr), (0, ""))
        return done.stdout

    # `load` gives its daemon half a second to begin, which a busy machine needs for node alone.
    silent = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    daemon = subprocess.Popen([*command, "--daemon", file, "--session", "check"], env=environment, **silent)
    try:
        # Commands before it is ready remove its files.
        log = pathlib.Path(sessions) / "check.log"
        for _ in range(240):
            if daemon.poll() is not None or (log.exists() and "Profile loaded" in log.read_text()):
                break
            time.sleep(0.25)
        lanes = len(json.loads(file.read_text())["threads"])
        markers = re.search(r"([\d,]+) markers? across", ask("profile", "markers", "--limit", "1"))
        values = sum(len(thread["markers"]["name"]) for thread in json.loads(file.read_text())["threads"])
        require(name, int(markers.group(1).replace(",", "")), values)
        require(f"threads of {name}", len(re.findall(r"^[* ] t-\d+", ask("thread", "list", "--limit", "0"), re.M)), lanes)
    finally:
        daemon.kill()
        daemon.wait()
    print(f"{name}: {lanes} threads, {values} markers, {size} bytes")


def main(taskscope, *traces):
    with tempfile.TemporaryDirectory() as folder:
        for trace in traces:
            ns, values = check_slices(taskscope, trace, pathlib.Path(folder))
            check_otf2(taskscope, trace, pathlib.Path(folder), ns, values)
            check_paje(taskscope, trace, pathlib.Path(folder), values)
            check_paraver(taskscope, trace, pathlib.Path(folder))
            check_firefox(taskscope, trace, pathlib.Path(folder))


if __name__ == "__main__":
    main(*sys.argv[1:])
