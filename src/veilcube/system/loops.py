"""Compiled loops on both cores: the decorators that compile a loop, and the split of a range among threads.

The compiler is loaded when a loop first needs it (``compiler``): that takes as long as tens of thousands of steps in
plain Python, so that a short loop is sooner done without.
"""

import os
import sys
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from functools import update_wrapper
from importlib import import_module
from itertools import pairwise
from threading import Lock
from types import FunctionType
from typing import Any, ParamSpec, TypeVar, cast

import numpy as np

_COMPILER = "veilcube.system.compiler"
# The entries of arrays, in one call and in all calls of a process, up to which plain Python is sooner done.
_FEW_ENTRIES = 1 << 12
_PLAIN_ENTRIES = 1 << 14

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")


class Loop:
    """A loop that is compiled when it is first called, and known to the compiler where other loops call it."""

    _dispatchers = Lock()
    _plain_entries_left = _PLAIN_ENTRIES

    def __init__(self, function: FunctionType, options: dict[str, object], *, may_be_plain: bool) -> None:
        update_wrapper(self, function)
        self.py_func, self.options, self._may_be_plain = function, options, may_be_plain
        self._dispatcher: Callable[..., Any] | None = None

    def __call__(self, *arguments: object, **named: object) -> object:
        """Run the loop."""
        if self._may_be_plain and self._is_sooner_plain(arguments):
            with np.errstate(all="ignore"):  # as compiled code, which divides by zero without a word
                return self.py_func(*arguments, **named)
        return (self._dispatcher or self._compiled())(*arguments, **named)

    @property
    def _numba_type_(self) -> object:
        """What the compiler asks a value of a class that it does not know."""
        return self._compiled()._numba_type_  # type: ignore[attr-defined]

    def _compiled(self) -> Callable[..., Any]:
        compiler = import_module(_COMPILER)
        with Loop._dispatchers:
            if self._dispatcher is None:
                self._dispatcher = compiler.dispatcher_of(self.py_func, self.options)
            return self._dispatcher

    def _is_sooner_plain(self, arguments: tuple[object, ...]) -> bool:
        if _COMPILER in sys.modules or Loop._plain_entries_left <= 0:
            return False
        entries = _count_entries(arguments)
        if entries > _FEW_ENTRIES:
            return False
        Loop._plain_entries_left -= entries
        return True


def _count_entries(arguments: Iterable[object]) -> int:
    return sum(
        each.size if isinstance(each, np.ndarray) else _count_entries(each)
        for each in arguments
        if isinstance(each, np.ndarray | tuple)
    )


def compile_loop(
    function: Callable[Parameters, Result], *, may_be_plain: bool = False, **options: object
) -> Callable[Parameters, Result]:
    """Compile for the processor on first use, keep the result on disk, and let other threads run meanwhile."""
    return cast(Callable[Parameters, Result], Loop(cast(FunctionType, function), options, may_be_plain=may_be_plain))


THREADS = max(1, len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1)
# Work below this many array entries is done sooner than a thread is started.
ENTRIES_WORTH_A_THREAD = 1 << 16


def compiled(function: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
    """Compile for the processor on first use, keep the result on disk, and let other threads run meanwhile."""
    return compile_loop(function, error_model="numpy")


def compiled_if_long(function: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
    """Compile a loop that visits each entry of its arrays a few times, unless they have few entries.

    For loops whose results do not depend on it, to the last bit: they have no powers but products, call no functions
    that the compiler and numpy compute each in its own way, and where they divide, one of the two is from an array.
    """
    return compile_loop(function, may_be_plain=True, error_model="numpy")


def compiled_inside(function: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
    """Compile a step of a loop into the loops that call it, where handing over its arrays would cost as much."""
    return compile_loop(function, error_model="numpy", forceinline=True)


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
