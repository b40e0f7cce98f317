"""Records a tree of 31 tasks on two processes with two threads each. Usage: dask_tree.py FILE"""

import sys
import time

import dask
import taskscope.dask
from distributed import Client, LocalCluster


@dask.delayed
def leaf(number):
    time.sleep(0.01)
    return number


@dask.delayed
def add(first, second):
    time.sleep(0.01)
    return first + second


def main(path):
    with LocalCluster(n_workers=2, threads_per_worker=2, dashboard_address=None) as cluster:
        with Client(cluster) as client:
            level = [leaf(number) for number in range(16)]
            while len(level) > 1:
                level = [add(*pair) for pair in zip(level[::2], level[1::2], strict=True)]
            with taskscope.dask.record(client, path):
                total = level[0].compute(optimize_graph=False)
    if total != sum(range(16)):
        raise SystemExit(f"error: the sum is {total}")


if __name__ == "__main__":
    main(*sys.argv[1:])
