"""Writes the tasks that a Dask cluster executes as a neutral trace, for `taskscope import`.

    with taskscope.dask.record(client, "run.json"):
        collection.compute()

A node is a worker process, a thread of it that executes tasks is a worker. The event loop of a process transfers data: it is a
thread of the runtime. The time of an input's arrival is not known.
"""

import contextlib
import json

from dask.utils import key_split
from distributed.diagnostics.plugin import SchedulerPlugin

NAME = "taskscope"


class Transitions(SchedulerPlugin):
    """Keeps each executed task, in the scheduler."""

    name = NAME

    def start(self, scheduler):
        self.scheduler, self.rows = scheduler, []

    def transition(self, key, start, finish, *_, **facts):
        if (start, finish) == ("processing", "memory") and facts.get("startstops"):
            inputs = [str(task.key) for task in self.scheduler.tasks[key].dependencies]
            known = {name: facts.get(name) for name in ("worker", "thread", "nbytes", "startstops")}
            self.rows.append({"key": str(key), "type": key_split(key), "inputs": inputs, **known})


@contextlib.contextmanager
def record(client, path):
    """Writes the tasks that the client's cluster executes meanwhile to the file `path`."""
    client.register_plugin(Transitions())
    try:
        yield
        rows = client.run_on_scheduler(lambda dask_scheduler: dask_scheduler.plugins[NAME].rows)
    finally:
        client.unregister_scheduler_plugin(NAME)
    with open(path, "w", encoding="utf-8") as file:
        json.dump({"schema": "slo-case/1", "name": "dask", "trace": neutral(rows)}, file)


def neutral(rows):
    """The tables of the neutral form, times in nanoseconds since the first one."""
    # A task that is computed again, as its result was lost, replaces nothing: it is another task.
    times = [at for row in rows for part in row["startstops"] for at in (part["start"], part["stop"])]
    zero, end = min(times, default=0), max(times, default=0)
    clock = lambda at: round((at - zero) * 1e9)
    nodes, workers, tables = {}, {}, {"workers": [], "tasks": [], "data": [], "runtime": []}

    def worker(node, thread, kind):
        if (node, thread) not in workers:
            workers[node, thread] = number = len(workers)
            # A task lasts a nanosecond at least.
            life = {"begin": 0, "end": clock(end) + 1}
            tables["workers"].append({"id": number, "node": node, "kind": kind, **life})
        return workers[node, thread]

    newest = {}
    for number, row in enumerate(rows):
        node = nodes.setdefault(row["worker"], len(nodes))
        for part in row["startstops"]:
            start, stop = clock(part["start"]), clock(part["stop"])
            if part["action"] == "compute":
                of = worker(node, row["thread"], "worker")
                inputs = [newest[key] for key in row["inputs"] if key in newest]
                task = {"id": number, "type": row["type"], "node": node, "worker": of, "start": start}
                tables["tasks"].append({**task, "end": max(stop, start + 1), "inputs": inputs})
                data = {"id": number, "producer": number, "produced": max(stop, start + 1), "home": node}
                tables["data"].append({**data, "bytes": row["nbytes"] or 0, "name": row["key"]})
            else:
                kind = "mpi.transfer" if part["action"] == "transfer" else part["action"]
                loop = worker(node, None, "runtime")
                tables["runtime"].append({"worker": loop, "start": start, "end": stop, "kind": kind})
        newest[row["key"]] = number
    return tables
