"""Compiled loops on both cores: compiled by a decorator, split among threads, interrupted like any Python function."""

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import Any, ParamSpec, TypeVar, cast

import numba
from numba.core.registry import CPUDispatcher

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")


class InterruptibleLoop(CPUDispatcher):
    """A compiled loop that ends with the interruption itself when somebody interrupts it.

    Where the interruption arrives while the loop hands its results back, Python would report a SystemError that the
    interruption caused.
    """

    def __call__(self, *arguments: object, **named: object) -> object:
        """Run the loop."""
        try:
            return super().__call__(*arguments, **named)
        except SystemError as problem:
            if isinstance(problem.__cause__, KeyboardInterrupt | SystemExit):
                raise problem.__cause__ from None
            raise


def compile_loop(function: Callable[Parameters, Result], **options: object) -> Callable[Parameters, Result]:
    """Compile for the processor on first use, keep the result on disk, and let other threads run meanwhile."""
    compiler: Callable[..., Any] = numba.njit
    loop = compiler(cache=True, nogil=True, **options)(function)
    # Loops call one another inside compiled code, so that each must stay what the compiler knows, a dispatcher. Where
    # compiling is switched off, it is the function as it was.
    if isinstance(loop, CPUDispatcher):
        loop.__class__ = InterruptibleLoop
    return cast(Callable[Parameters, Result], loop)


THREADS = max(1, len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1)
# Work below this many array entries is done sooner than a thread is started.
ENTRIES_WORTH_A_THREAD = 1 << 16


def compiled(function: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
    """Compile for the processor on first use, keep the result on disk, and let other threads run meanwhile."""
    return compile_loop(function, error_model="numpy")


def compiled_fast(function: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
    """Compile sums whose terms may be added in any order, several at a time."""
    return compile_loop(function, fastmath=True)


def share_out(work: Callable[[int, int], None], count: int, entries: int) -> None:
    """Call ``work(start, stop)`` on consecutive parts of ``range(count)``, in threads if ``entries`` are many.

    The parts must write to disjoint memory. Threads are started anew for each call, so a forked process has none to
    lose.
    """
    parts = min(THREADS, count)
    if parts < 2 or entries < 2 * ENTRIES_WORTH_A_THREAD:
        work(0, count)
        return
    cuts = [count * part // parts for part in range(parts + 1)]
    with ThreadPoolExecutor(parts) as pool:
        tasks = [pool.submit(work, start, stop) for start, stop in pairwise(cuts)]
    for task in tasks:
        task.result()  # raises what the thread raised
