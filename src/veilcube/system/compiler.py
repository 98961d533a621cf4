"""How a loop is compiled: numba, with a cache on disk that loads fast and that no upgrade can break."""

from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cache
from hashlib import sha256
from pathlib import Path
from types import FunctionType
from typing import Any, cast

import numba
import numpy as np
from numba.core.caching import FunctionCache
from numba.core.registry import CPUDispatcher
from numba.core.runtime.nrt import rtsys

from veilcube.system.loops import Loop

# numba is typed in part only.
_FunctionCache: Any = FunctionCache
_njit: Callable[..., Any] = numba.njit


class LoopCache(_FunctionCache):  # type: ignore[misc]
    """Compiled loops on disk, loaded without what only compiling needs.

    numba makes ready to compile before it looks into a cache, which takes twice as long as importing it. Compiling does
    so by itself, and code that is loaded runs without.

    A cache names the classes of its loop's arguments. After an upgrade in place they may lie in other modules or be
    gone, and then the cache cannot be read: the loop is compiled again. So it is when a loop that it calls, a number
    that it names, or the way it is compiled has changed: numba compares the file of the loop alone.
    """

    def __init__(self, function: FunctionType, options: dict[str, object]) -> None:
        super().__init__(function)
        self._cache_file._source_stamp = sha256(b"".join(_made_of(function, options, set()))).digest()

    def load_overload(self, sig: object, target_context: Any) -> object:
        """Return the code for arguments of these types, or None if the cache has none that can be read."""
        # What is allocated inside a loop is counted by a part of numba that compiling would start.
        rtsys.initialize(target_context)
        try:
            with self._guard_against_spurious_io_errors():
                found: object = self._load_overload(sig, target_context)
                return found
        except Exception:  # reading a pickle of another version may raise anything
            return None

    def save_overload(self, sig: object, data: object) -> None:
        """Keep compiled code; an index that cannot be read is begun anew, and a full disk keeps nothing.

        The loop may be drawing noise that is paid for: it must run all the same.
        """
        try:
            super().save_overload(sig, data)
        except Exception:
            with suppress(Exception):
                self.flush()
                super().save_overload(sig, data)


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

    def enable_caching(self) -> None:
        """Keep compiled code on disk."""
        self._cache = LoopCache(cast(FunctionType, self.py_func), self.targetoptions)


def _made_of(function: FunctionType, options: dict[str, object], seen: set[FunctionType]) -> Iterator[bytes]:
    """Yield digests of how a loop is compiled, of its file, the loops that it calls, and the numbers that it names."""
    seen.add(function)
    yield sha256(repr(sorted(options.items())).encode()).digest()
    yield _file_digest(function.__code__.co_filename)
    for name in function.__code__.co_names:
        value = function.__globals__.get(name)
        if isinstance(value, Loop) and value.py_func not in seen:
            yield from _made_of(value.py_func, value.options, seen)
        elif isinstance(value, int | float | tuple | np.ndarray):
            yield sha256(value.tobytes() if isinstance(value, np.ndarray) else repr(value).encode()).digest()


@cache
def _file_digest(path: str) -> bytes:
    return sha256(Path(path).read_bytes()).digest()


def dispatcher_of(function: FunctionType, options: dict[str, object]) -> Callable[..., Any]:
    """Compile for the processor on first use, keep the result on disk, and let other threads run meanwhile."""
    loop: Callable[..., Any] = _njit(nogil=True, **options)(function)
    # Where compiling is switched off, it is the function as it was.
    if isinstance(loop, CPUDispatcher):
        loop.__class__ = InterruptibleLoop
        loop.enable_caching()
    return loop
