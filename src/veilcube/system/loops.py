"""Compiled loops that can be interrupted like any other Python function."""

from collections.abc import Callable
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
