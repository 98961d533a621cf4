"""Exact values stay where they are: in types that neither show nor copy them, behind a wall that exceptions cross bare.

Error collectors print the local variables of a traceback. Whatever enters the private side therefore wipes the local
variables of every frame below it when an exception leaves, the arguments included, and passes the exception on.
"""

import sys
import traceback
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import NoReturn, ParamSpec, TypeVar

from veilcube.errors import PrivacyError, VeilcubeError

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")


class Private:
    """Holds exact values, or leads to them: silent, and neither copied nor pickled, which would take them elsewhere."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}(exact values not shown)"

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        """Refuse to be copied or pickled."""
        raise PrivacyError(
            f"a {type(self).__name__} holds exact values and cannot be copied or pickled; release it, or protect it, "
            "and pass on what that gives"
        )

    def __reduce__(self) -> NoReturn:
        """Refuse to be copied or pickled."""
        self.__reduce_ex__(2)

    def __getstate__(self) -> NoReturn:
        """Refuse to be copied or pickled."""
        self.__reduce_ex__(2)


def leaves_no_trace(function: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
    """Wipe the local variables of a function, and of all that it called, from whatever exception leaves it."""

    @wraps(function)
    def guarded(*args: Parameters.args, **kwargs: Parameters.kwargs) -> Result:
        outer = sys.exception()
        try:
            return function(*args, **kwargs)
        except BaseException as problem:
            del args, kwargs
            _wipe(problem, outer)
            raise

    return guarded


def paid_for(action: Callable[[], Result]) -> Result:
    """Run what sees exact values once they are paid for; a fault is told by its kind alone: its words may quote counts.

    The fault is neither cause nor context of what is raised, which has its traceback.
    """
    try:
        with _warnings_that_only_warn():
            return action()
    except (VeilcubeError, MemoryError):
        raise
    except Exception as problem:
        kind, where = type(problem).__name__, problem.__traceback__
    raise PrivacyError(
        f"a fault in the program ({kind}) stopped a measurement that was paid for; its charge stands, so report the "
        "fault before you ask again"
    ).with_traceback(where)


@contextmanager
def _warnings_that_only_warn() -> Iterator[None]:
    """Let no filter turn a warning into an exception meanwhile: it would cost what was paid for."""
    with warnings.catch_warnings():
        filters = [("default" if action == "error" else action, *rest) for action, *rest in warnings.filters]
        warnings.filters[:] = filters  # type: ignore[index]
        yield


def _wipe(problem: BaseException, outer: BaseException | None) -> None:
    """Clear the frames of an exception and of those before it, up to one that was there when the guard was entered."""
    waiting, seen = [problem], {id(outer)}
    while waiting:
        found = waiting.pop()
        if id(found) in seen:
            continue
        seen.add(id(found))
        traceback.clear_frames(found.__traceback__)
        waiting += [before for before in (found.__cause__, found.__context__) if before is not None]
