"""Writes profiles of GPUs as trace events. `taskscope import PROFILE` runs it; so does, on a machine without taskscope,

    python3 -m taskscope.gpu PROFILE run.json.gz

PROFILE is a database of rocprofv3 (rocpd, schema 3), or an export of Nsight Systems: `nsys export --type sqlite`, or the
directory of `--type parquetdir` (needs pyarrow).

    tables of the profile ──▶ _Rocpd or _Nsight: rows in one form ──▶ _Events: trace events in the form of PyTorch's profiler

A stream of a device is a row of operations, a call is connected with its operations by a correlation of the same number, ranges
of NVTX and ROCTx are sections. What is left out is counted and printed. The file appears when it is complete.
"""

import argparse
import gzip
import json
import os
import pathlib
import sqlite3
import sys
import tempfile

__all__ = ["ProfileError", "convert"]

# Latest time of `taskscope import`, nanoseconds.
_LAST = 2**63 - 1
_SQLITE = b"SQLite format 3\0"


class ProfileError(Exception):
    """The profile cannot be read; the text says why."""


def convert(profile, output):
    """Writes the events of a profile; returns the numbers of written and of omitted rows by their names.

    Raises ProfileError if the profile is damaged, or has another schema.
    """
    tables = _tables(pathlib.Path(profile))
    try:
        reader = _Nsight if tables.has("StringIds") else _Rocpd
        return _write(pathlib.Path(output), reader(tables))
    except (sqlite3.Error, UnicodeError) as error:
        raise ProfileError(f"{profile}: {error}") from error
    except (TypeError, ValueError, OverflowError, AttributeError) as error:
        # SQLite keeps values of any type in any column.
        raise ProfileError(f"{profile}: a value has not the type of its column: {error}") from error
    finally:
        tables.close()


def _write(output, reader):
    """Writes the events of a reader under another name first."""
    handle, name = tempfile.mkstemp(dir=output.absolute().parent, prefix=f".{output.name}.")
    try:
        with os.fdopen(handle, "wb") as raw:
            # The mode of a file that `open` makes.
            mask = os.umask(0)
            os.umask(mask)
            os.fchmod(raw.fileno(), 0o666 & ~mask)
            is_packed = output.name.endswith(".gz")
            with gzip.GzipFile("", "wb", 6, raw, 0) if is_packed else raw as out:
                events = _Events(out, reader.origin())
                reader.read(events)
                events.finish()
        if not events.written:
            raise ProfileError("it has no operation of a device, no call and no range")
        os.replace(name, output)
    except BaseException:
        os.unlink(name)
        raise
    return events.written, events.omitted


class _Events:
    """Trace events, written one by one."""

    def __init__(self, out, origin):
        self.out, self.written, self.omitted = out, {}, {}
        self.separator, self.named = "\n", set()
        head = {} if origin is None else {"baseTimeNanoseconds": origin}
        text = json.dumps({"displayTimeUnit": "ns", **head})
        self.out.write(f'{text[:-1]}, "traceEvents": ['.encode())

    def finish(self):
        self.out.write(b"\n]}\n")

    def _put(self, event, times=""):
        self.out.write(f"{self.separator}{json.dumps(event)[:-1]}{times}}}".encode())
        self.separator = ",\n"

    def omit(self, what, count=1):
        if count:
            self.omitted[what] = self.omitted.get(what, 0) + count

    def name(self, kind, place, name):
        """Names a process (`process_name`, `process_labels`) or a thread, once."""
        key = (kind, place["pid"], place.get("tid"))
        if name and key not in self.named:
            self.named.add(key)
            member = "labels" if kind == "process_labels" else "name"
            self._put({"ph": "M", "name": kind, **place, "args": {member: name}})

    def span(self, what, place, name, category, start, end, **args):
        """A section, a call or an operation from `start` to `end`, nanoseconds."""
        if start is None or end is None or not 0 <= start <= end <= _LAST:
            self.omit(f"{what} without a begin and an end")
            return
        self.written[what] = self.written.get(what, 0) + 1
        event = {"ph": "X", "name": name or "without a name", "cat": category, **place}
        if args:
            event["args"] = args
        self._put(event, f', "ts": {_micros(start)}, "dur": {_micros(end - start)}')

    def point(self, place, name, at):
        if at is None or not 0 <= at <= _LAST:
            self.omit("marks without a time")
            return
        self.written["marks"] = self.written.get("marks", 0) + 1
        self._put({"ph": "i", "s": "t", "name": name or "without a name", **place}, f', "ts": {_micros(at)}')


def _micros(ns):
    """Nanoseconds as microseconds, without rounding."""
    return f"{ns // 1000}.{ns % 1000:03d}"


def _device(index, name):
    """The name of a device, with its number: a node may have several of one name."""
    return f"GPU {index}: {name}" if name else f"GPU {index}"


class _Nsight:
    """Exports of Nsight Systems, by the reference of its SQLite schema. Tables and columns without content may be missing."""

    COPIES = {1: "Memcpy HtoD", 2: "Memcpy DtoH", 8: "Memcpy DtoD", 9: "Memcpy HtoH", 10: "Memcpy PtoP"}
    PUSH_POP, MARK = 59, 34
    # Further contents, which a trace has no room for.
    OMITTED = {
        "OSRT_API": "calls of the C library", "SCHED_EVENTS": "events of the scheduler", "COMPOSITE_EVENTS": "samples",
        "GPU_METRICS": "metrics of devices", "CUDA_GRAPH_NODE_EVENTS": "nodes of graphs",
    }

    def __init__(self, tables):
        self.tables = tables
        self.texts = dict(tables.rows("StringIds", "id", "value"))

    def origin(self):
        return next((ns for (ns,) in self.tables.rows("TARGET_INFO_SESSION_START_TIME", "utcEpochNs")), None)

    def read(self, events):
        devices = dict(self.tables.rows("TARGET_INFO_GPU", "id", "name"))
        processes = {pid: name for pid, name in self.tables.rows("PROCESSES", "pid", "name")}
        threads = {of: self.texts.get(name) for of, name in self.tables.rows("ThreadNames", "globalTid", "nameId")}

        def thread(of):
            # The last 24 bits are the thread, those before the process.
            pid, tid = (of >> 24) & 0xFFFFFF, of & 0xFFFFFF
            events.name("process_name", {"pid": pid}, processes.get(pid))
            events.name("thread_name", {"pid": pid, "tid": tid}, threads.get(of))
            return {"pid": pid, "tid": tid}

        def correlation(of, number):
            # Numbers are those of a process.
            return {"correlation": ((of >> 24) & 0xFFFFFF) << 32 | number & 0xFFFFFFFF}

        columns = ("start", "end", "globalTid", "correlationId", "nameId")
        for start, end, of, number, name in self.tables.rows("CUPTI_ACTIVITY_KIND_RUNTIME", *columns):
            name = (self.texts.get(name) or "").split("_v", 1)[0]
            events.span("calls", thread(of), name, "cuda_runtime", start, end, **correlation(of, number))
        columns = ("start", "end", "globalTid", "eventType", "text", "textId")
        for start, end, of, kind, text, number in self.tables.rows("NVTX_EVENTS", *columns):
            name = text or self.texts.get(number)
            if kind == self.PUSH_POP and of is not None:
                events.span("ranges", thread(of), name, "user_annotation", start, end)
            elif kind == self.MARK and of is not None:
                events.point(thread(of), name, start)
            else:
                events.omit("records of NVTX other than ranges of threads and marks")
        common = ("start", "end", "globalPid", "correlationId", "deviceId", "contextId", "streamId")
        for table, category, further in (
            ("CUPTI_ACTIVITY_KIND_KERNEL", "kernel", ("demangledName", "shortName")),
            ("CUPTI_ACTIVITY_KIND_MEMCPY", "gpu_memcpy", ("bytes", "copyKind")),
            ("CUPTI_ACTIVITY_KIND_MEMSET", "gpu_memset", ("bytes", "bytes")),
        ):
            for row in self.tables.rows(table, *common, *further):
                start, end, of, number, device, context, stream, first, second = row
                place = {"pid": f"GPU {device} of process {((of or 0) >> 24) & 0xFFFFFF}", "tid": f"{context}.{stream}"}
                events.name("process_labels", place, _device(device, devices.get(device)))
                events.name("thread_name", place, f"stream {stream}" if context in (0, 1) else f"stream {stream} of context {context}")
                args = {"stream": stream, **correlation(of or 0, number or 0)}
                if category == "kernel":
                    name = self.texts.get(first) or self.texts.get(second)
                else:
                    name = self.COPIES.get(second, "Memcpy") if category == "gpu_memcpy" else "Memset"
                    args["bytes"] = first
                events.span("operations", place, name, category, start, end, **args)
        for table, what in self.OMITTED.items():
            events.omit(what, self.tables.count(table))


class _Rocpd:
    """Databases of rocprofv3, schema 3, through the views that join the tables of all processes."""

    VERSION = "3"

    def __init__(self, tables):
        self.tables = tables
        if not tables.has("rocpd_metadata"):
            raise ProfileError("it has neither the tables of rocpd nor those of Nsight Systems")
        versions = {value for tag, value in tables.rows("rocpd_metadata", "tag", "value") if tag == "schema_version"}
        if versions != {self.VERSION}:
            found = ", ".join(sorted(map(str, versions))) or "none"
            raise ProfileError(f"its schema of rocpd is {found}; {self.VERSION} is read")

    def origin(self):
        return None

    def _by_id(self, table, *columns):
        """Rows of a table by the process that wrote it, and their number there."""
        return {(guid, number): row for guid, number, *row in self.tables.rows(table, "guid", "id", *columns)}

    def read(self, events):
        texts = {key: text for key, (text,) in self._by_id("rocpd_string", "string").items()}
        facts = self._by_id("rocpd_event", "stack_id", "category_id")
        processes = self._by_id("rocpd_info_process", "pid", "command")
        threads = self._by_id("rocpd_info_thread", "tid", "name")
        agents = self._by_id("rocpd_info_agent", "type", "type_index", "product_name", "name")
        kernels = self._by_id("rocpd_info_kernel_symbol", "display_name", "kernel_name")
        streams = self._by_id("rocpd_info_stream", "name")
        numbers = {}

        def correlation(guid, event):
            """A number for all processes: that of the call within which the event is, or a new one."""
            stack = facts.get((guid, event), (None, None))[0]
            return numbers.setdefault((guid, stack) if stack else (guid, None, len(numbers)), len(numbers) + 1)

        def process(guid, pid):
            number, command = processes.get((guid, pid), (pid, None))
            events.name("process_name", {"pid": number}, command)
            return number

        for guid, pid, tid, start, end, name, event in self.tables.rows(
            "rocpd_region", "guid", "pid", "tid", "start", "end", "name_id", "event_id"
        ):
            number, of_thread = threads.get((guid, tid), (tid, None))
            place = {"pid": process(guid, pid), "tid": number}
            events.name("thread_name", place, of_thread)
            category = texts.get((guid, facts.get((guid, event), (None, None))[1])) or ""
            name = texts.get((guid, name))
            if category.startswith(("HIP", "HSA")):
                args = {"correlation": correlation(guid, event)}
                events.span("calls", place, name, "hip_runtime", start, end, **args)
            else:
                events.span("ranges", place, name, category.lower() or "range", start, end)

        def operation(guid, pid, agent, stream, start, end, event, name, category, **args):
            _, index, product, model = agents.get((guid, agent), (None, None, None, None))
            index = agent if index is None else index
            place = {"pid": f"GPU {index} of process {process(guid, pid)}", "tid": f"stream {stream}"}
            events.name("process_labels", place, _device(index, product or model))
            events.name("thread_name", place, streams.get((guid, stream), (None,))[0])
            args = {"stream": stream, "correlation": correlation(guid, event), **args}
            events.span("operations", place, name, category, start, end, **args)

        columns = ("guid", "pid", "agent_id", "stream_id", "start", "end", "event_id", "kernel_id")
        for *row, kernel in self.tables.rows("rocpd_kernel_dispatch", *columns):
            display, name = kernels.get((row[0], kernel), (None, None))
            operation(*row, display or name, "kernel")
        columns = ("guid", "pid", "src_agent_id", "dst_agent_id", "stream_id", "start", "end", "event_id", "size", "name_id")
        for guid, pid, source, target, stream, start, end, event, size, name in self.tables.rows("rocpd_memory_copy", *columns):
            kinds = [agents.get((guid, agent), (None,))[0] for agent in (source, target)]
            letters = ["D" if kind == "GPU" else "H" for kind in kinds]
            name = f"Memcpy {letters[0]}to{letters[1]}" if all(kinds) else texts.get((guid, name))
            agent = source if kinds[0] == "GPU" else target
            operation(guid, pid, agent, stream, start, end, event, name, "gpu_memcpy", bytes=size)
        for table, what in (
            ("rocpd_memory_allocate", "allocations of memory"), ("rocpd_sample", "samples"),
            ("rocpd_pmc_event", "values of counters"),
        ):
            events.omit(what, self.tables.count(table))


def _tables(profile):
    """The tables of a profile."""
    if profile.is_dir():
        return _Parquet(profile)
    try:
        with open(profile, "rb") as file:
            head = file.read(len(_SQLITE))
    except OSError as error:
        raise ProfileError(f"cannot read {profile}: {error.strerror}") from error
    if head != _SQLITE:
        raise ProfileError(f"{profile} is neither an SQLite database nor a directory of Parquet files")
    return _Sqlite(profile)


class _Sqlite:
    """Tables and views of a database, opened without the right to write."""

    def __init__(self, path):
        self.connection = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)
        # Names of code may have any bytes.
        self.connection.text_factory = lambda text: text.decode("utf-8", "replace")
        try:
            self.names = {name for (name,) in self.connection.execute("SELECT name FROM sqlite_master")}
        except sqlite3.Error as error:
            self.close()
            raise ProfileError(f"{path}: {error}") from error

    def has(self, table):
        return table in self.names

    def count(self, table):
        return self.connection.execute(f'SELECT COUNT(*) FROM "{table}"').fetchone()[0] if self.has(table) else 0

    def rows(self, table, *columns):
        """Rows of a table, none if it is missing; a column that is missing is NULL."""
        if not self.has(table):
            return iter(())
        known = {row[1] for row in self.connection.execute(f'PRAGMA table_info("{table}")')}
        selected = ", ".join(f'"{name}"' if name in known else "NULL" for name in columns)
        return self.connection.execute(f'SELECT {selected} FROM "{table}"')

    def close(self):
        self.connection.close()


class _Parquet:
    """A directory of one file for each table."""

    def __init__(self, path):
        try:
            import pyarrow
            import pyarrow.parquet
        except ImportError as error:
            raise ProfileError("a directory of Parquet files needs pyarrow: pip install pyarrow") from error
        self.pyarrow = pyarrow
        self.files = {file.stem: file for file in sorted(path.glob("*.parquet"))}
        if not self.files:
            raise ProfileError(f"{path} has no Parquet files")

    def has(self, table):
        return table in self.files

    def _open(self, table):
        try:
            return self.pyarrow.parquet.ParquetFile(self.files[table])
        except (OSError, self.pyarrow.ArrowException) as error:
            raise ProfileError(f"{self.files[table]}: {error}") from error

    def count(self, table):
        return self._open(table).metadata.num_rows if self.has(table) else 0

    def rows(self, table, *columns):
        if not self.has(table):
            return
        file = self._open(table)
        known = [name for name in dict.fromkeys(columns) if name in file.schema_arrow.names]
        try:
            for batch in file.iter_batches(columns=known):
                values = {name: batch.column(name).to_pylist() for name in known}
                missing = [None] * batch.num_rows
                yield from zip(*(values.get(name, missing) for name in columns))
        except (OSError, self.pyarrow.ArrowException) as error:
            raise ProfileError(f"{self.files[table]}: {error}") from error

    def close(self):
        pass


def main():
    parser = argparse.ArgumentParser(prog="python3 -m taskscope.gpu", description="Profiles of GPUs for `taskscope import`.")
    parser.add_argument("profile", help="database of rocprofv3 or of `nsys export --type sqlite`; directory of `--type parquetdir`")
    parser.add_argument("output", help="file of trace events to write, compressed if its name ends in .gz")
    arguments = parser.parse_args()
    try:
        written, omitted = convert(arguments.profile, arguments.output)
    except (ProfileError, OSError) as error:
        print(f"error: cannot convert {arguments.profile!a}\n  why:  {error}\n  kept: nothing", file=sys.stderr)
        return 1
    shown = ", ".join(f"{count} {what}" for what, count in written.items())
    print(f"{arguments.profile}: {shown}  →  {arguments.output}", file=sys.stderr)
    for what, count in omitted.items():
        print(f"note: left out: {count} {what}", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
