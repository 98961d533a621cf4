"""Run in a process of its own: releases under ever tighter limits on memory, and what each charged.

    python limited_release.py FOLDER SHAPE STRATEGY MEGABYTES...

Prints a line for each limit: how the release ended, and what the ledger says was spent.
"""

import resource
import sys
from math import prod
from pathlib import Path

import numpy as np

import veilcube as vc
from veilcube.errors import CapacityError


def _in_use() -> int:
    return int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()


def _attempt(cube: vc.Cube, plan: vc.Plan, ledger: vc.Ledger, folder: Path, dataset: str) -> str:
    try:
        vc.release(cube, plan=plan, ledger=ledger, dataset=dataset).save(folder / "made.veil")
    except CapacityError:
        return "refused"
    except BaseException as problem:  # whatever it is, the test wants to see it
        return type(problem).__name__
    return "made"


def main(folder: Path, shape: tuple[int, ...], strategy: object, limits: list[int]) -> None:
    ledger = vc.Ledger(folder / "budget.db")
    for megabytes in limits:
        ledger.create(f"at {megabytes}", 1)
    schema = vc.Schema([vc.Ordinal(f"a{axis}", 1, size) for axis, size in enumerate(shape)])
    cube = vc.Cube(schema, np.ones(prod(shape), dtype=np.int64).reshape(shape))
    plan = vc.plan(schema, 1, strategy)
    small = vc.Schema([vc.Ordinal(f"a{axis}", 1, 2) for axis in range(len(shape))])
    # Loads what a release needs, which is not what is measured here.
    vc.release(vc.Cube(small, np.ones(small.shape, dtype=np.int64)), 1, strategy).save(folder / "small.veil")
    for megabytes in limits:
        dataset = f"at {megabytes}"
        resource.setrlimit(resource.RLIMIT_AS, (_in_use() + megabytes * 2**20, resource.RLIM_INFINITY))
        ended = _attempt(cube, plan, ledger, folder, dataset)
        resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        print(ended, int(ledger.budget(dataset).spent), flush=True)  # noqa: T201 - read by the test


if __name__ == "__main__":
    main(Path(sys.argv[1]), eval(sys.argv[2]), eval(sys.argv[3]), [int(text) for text in sys.argv[4:]])
