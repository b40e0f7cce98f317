"""Tables of taskscope's recordings: pyarrow, pandas, polars, DuckDB, pipit, hatchet.

>>> run = taskscope.tables("run.trace")
>>> run.pandas("task")
>>> run.query("SELECT * FROM idle_by_cause ORDER BY ns DESC").df()
"""

import json
import os
import pathlib
import subprocess
import tempfile

__all__ = ["Tables", "TaskscopeError", "query", "tables"]

MANIFEST = "taskscope-tables.json"

# Relations and lazy frames read the files when they are used, so directories stay until the interpreter exits.
_TEMPORARY = []


class TaskscopeError(Exception):
    """The command failed; the text is its message."""


class Tables:
    """A directory of tables, written by `taskscope export --to parquet`."""

    def __init__(self, directory):
        """Opens a directory. Raises TaskscopeError if it has no manifest: then it is unfinished, or not of taskscope."""
        self.path = pathlib.Path(directory).resolve()
        self._connection = None
        try:
            self.manifest = json.loads((self.path / MANIFEST).read_text())
        except (OSError, ValueError) as error:
            raise TaskscopeError(f"{self.path} is not a finished directory of tables: {error}") from error

    @property
    def names(self):
        """Names of the tables."""
        return sorted(self.manifest["tables"])

    def __getitem__(self, name):
        """The table as a pyarrow dataset. Raises KeyError if there is none of this name."""
        if name not in self.manifest["tables"]:
            raise KeyError(name)
        import pyarrow.dataset

        return pyarrow.dataset.dataset(self.path / name, format="parquet", partitioning="hive")

    def pandas(self, name):
        """The table as a pandas DataFrame."""
        return self[name].to_table().to_pandas()

    def polars(self, name):
        """The table as a lazy polars frame. Raises KeyError if there is none of this name."""
        if name not in self.manifest["tables"]:
            raise KeyError(name)
        import polars

        return polars.scan_parquet(self.path / name / "**" / "*.parquet", hive_partitioning=True)

    def query(self, sql):
        """Runs SQL in DuckDB over the tables and the views of views.sql; returns its relation (`df`, `pl`, `fetchall`)."""
        if self._connection is None:
            import duckdb

            connection = duckdb.connect()
            path = str(self.path).replace("'", "''")
            connection.execute(f"SET file_search_path = '{path}'")
            connection.execute((self.path / "views.sql").read_text())
            self._connection = connection
        return self._connection.sql(sql)

    def pipit(self, run=0):
        """A run as a pipit Trace: sections of workers by task type, or by state without one.

        Processes are the data set's, threads its locations. Raises KeyError if there is no such run.
        """
        import pipit

        return pipit.Trace(None, self._events(run))

    def _events(self, run):
        """Begins and ends of the sections of a run's workers, in the columns of pipit."""
        import pandas

        places = self.pandas("location")
        places = places.loc[places["run"] == run, ["location", "process"]]
        if places.empty:
            raise KeyError(run)
        types = self.pandas("task_type").set_index("task_type")["name"]
        columns = ["location", "start_ns", "end_ns", "state", "task_type"]
        sections = self["state"].to_table(columns=columns).to_pandas().merge(places, on="location")
        sections["Name"] = sections["task_type"].map(types).fillna(sections["state"])
        sections = sections.rename(columns={"process": "Process", "location": "Thread"})
        ends = [
            sections[["Process", "Thread", "Name", column]]
            .rename(columns={column: "Timestamp (ns)"})
            .assign(**{"Event Type": kind, "order": order})
            for order, kind, column in ((0, "Leave", "end_ns"), (1, "Enter", "start_ns"))
        ]
        # At one time, a section ends before the next begins.
        events = pandas.concat(ends).sort_values(["Timestamp (ns)", "order"], kind="stable", ignore_index=True)
        events = events.astype({"Process": "int32", "Timestamp (ns)": "float64"})
        return events[["Timestamp (ns)", "Event Type", "Name", "Process", "Thread"]]

    def hatchet(self, run=0):
        """The call paths of a run as a hatchet GraphFrame: seconds of the samples of a trace, or all metrics of a profile.

        Raises TaskscopeError without call paths.
        """
        import hatchet

        return hatchet.GraphFrame.from_literal(self._profile_tree(run) or self._call_tree(run))

    def _profile_tree(self, run):
        """The call tree of a profile, in the literal form of hatchet, with times in seconds. Empty if the run is not a profile."""
        if "call_path" not in self.manifest["tables"]:
            return []
        steps = self.pandas("call_path")
        steps = steps[steps["run"] == run]
        values = self.pandas("call_path_value").merge(steps[["path"]], on="path")
        own = {}
        for path, metric, value in zip(values["path"], values["metric"], values["value"]):
            name, scale = (metric[: -len("_ns")], 1e9) if metric.endswith("_ns") else (metric, 1)
            own.setdefault(path, {})[name] = value / scale
        names = sorted({"time"}.union(*own.values()))
        labels = dict(zip(steps["path"], steps["name"]))
        roots, inner = [], {}
        for path, parent in zip(steps["path"], steps["parent"]):
            # Unknown numbers are not equal to themselves.
            siblings = inner.setdefault(int(parent), []) if parent == parent else roots
            siblings.append(path)

        def literal(path):
            children = [literal(child) for child in inner.get(path, [])]
            metrics = {name: own.get(path, {}).get(name, 0.0) for name in names}
            metrics["time (inc)"] = metrics["time"] + sum(child["metrics"]["time (inc)"] for child in children)
            return {"frame": {"name": labels[path], "type": "function"}, "metrics": metrics, "children": children}

        return [literal(path) for path in roots]

    def _call_tree(self, run):
        """Call paths of the samples of a run, in the literal form of hatchet."""
        places = self.pandas("location")
        samples = self.pandas("sample")
        samples = samples[samples["location"].isin(places.loc[places["run"] == run, "location"])]
        if samples.empty:
            raise TaskscopeError(f"{self.path} has no samples of run {run}: taskscope record --sample 100")
        weights = samples.groupby("path")["weight_ns"].sum()
        steps = self.pandas("path")
        steps = steps[steps["path"].isin(weights.index)].sort_values(["path", "depth"], ascending=[True, False])
        roots = {}
        for path, rows in steps.groupby("path", sort=False):
            children, node = roots, None
            for function, module, offset in zip(rows["function"], rows["module"], rows["offset"]):
                name = function if isinstance(function, str) else _unnamed(module, offset)
                node = children.setdefault(name, {"own": 0, "children": {}})
                children = node["children"]
            node["own"] += int(weights[path])

        def literal(name, node):
            children = [literal(*item) for item in node["children"].items()]
            total = node["own"] / 1e9 + sum(child["metrics"]["time (inc)"] for child in children)
            frame = {"name": name, "type": "function"}
            return {"frame": frame, "metrics": {"time": node["own"] / 1e9, "time (inc)": total}, "children": children}

        return [literal(*item) for item in roots.items()]

    def __repr__(self):
        rows = sum(table["rows"] for table in self.manifest["tables"].values())
        return f"<taskscope.Tables {self.path}: {len(self.manifest['runs'])} runs, {rows} rows>"


def _unnamed(module, offset):
    """The name of a step without a function."""
    if not isinstance(module, str):
        return "unknown code"
    return f"{os.path.basename(module)}+{int(offset):#x}" if offset == offset else os.path.basename(module)


def tables(*sources, directory=None, range=None):
    """Tables of traces, side by side, or of a directory that has tables already.

    `directory` keeps the tables there; otherwise they are removed when Python exits. `range` selects a part of each run, such as
    "10%..20%"; both are for traces. Raises TaskscopeError if the command fails.
    """
    if not sources:
        raise TypeError("tables() needs a trace or a directory of tables")
    if len(sources) == 1 and (pathlib.Path(sources[0]) / MANIFEST).is_file():
        if range is not None or directory is not None:
            raise TypeError("a directory of tables has no other range or place: give the trace, or WHERE in the query")
        return Tables(sources[0])
    if directory is None:
        _TEMPORARY.append(tempfile.TemporaryDirectory(prefix="taskscope-"))
        directory = _TEMPORARY[-1].name
    command = [os.environ.get("TASKSCOPE", "taskscope"), "export", "--to", "parquet", "-o", os.fspath(directory)]
    if range is not None:
        command.append(f"--range={range}")
    command += ["--"] + [os.fspath(source) for source in sources]
    try:
        done = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, errors="replace")
    except OSError as error:
        raise TaskscopeError(f"cannot run {command[0]}: {error}") from error
    if done.returncode != 0:
        raise TaskscopeError(done.stderr.strip() or f"{command[0]} exited with {done.returncode}")
    return Tables(directory)


def query(source, sql):
    """Runs SQL over the tables of a trace or of a directory of tables; returns a pyarrow table."""
    return tables(source).query(sql).to_arrow_table()
