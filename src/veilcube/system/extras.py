"""Packages that only some uses need: loaded when they are, and asked for in one sentence where they are missing."""

from importlib import import_module
from typing import Any

from veilcube.errors import VeilcubeError


class MissingExtraError(VeilcubeError):
    """A package that this needs, and that veilcube does not always bring along, is not installed."""


def load_extra(name: str, wanted: str, extra: str, called: str | None = None) -> Any:
    """Return a package, or say how to install what ``wanted`` needs; ``called`` is what people call it.

    >>> load_extra("json", "a line", "lines").dumps([1])
    '[1]'
    >>> load_extra("no_such_package", "a tea", "tea", "Water")
    Traceback (most recent call last):
    veilcube.system.extras.MissingExtraError: a tea needs Water; run pip install 'veilcube[tea]'
    """
    try:
        return import_module(name)
    except ImportError as problem:
        raise MissingExtraError(f"{wanted} needs {called or name}; run pip install 'veilcube[{extra}]'") from problem
