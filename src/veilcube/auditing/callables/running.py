"""Runs a mechanism of somebody's own, and watches all that it says and does beside what it returns."""

import inspect
import io
import logging
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from typing import Any

from veilcube.auditing.callables.noise import MechanismNoise
from veilcube.auditing.statistics import Raised


def takes_noise(mechanism: Callable[..., object]) -> bool:
    """Whether a mechanism has an argument ``noise``."""
    try:
        return "noise" in inspect.signature(mechanism).parameters
    except (TypeError, ValueError):
        return False


def call(mechanism: Callable[..., Any], records: Sequence[object], noise: MechanismNoise | None) -> object:
    """Run a mechanism once. What it raises is an output like any other: whoever asks gets to see it."""
    try:
        return mechanism(records) if noise is None else mechanism(records, noise=noise)
    except Exception as problem:
        return Raised(type(problem).__name__, str(problem))


@dataclass(frozen=True)
class Traces:
    """What a run said beside what it returned."""

    printed: str
    complained: str
    logged: tuple[str, ...]
    warned: tuple[str, ...]


class _Lines(logging.Handler):
    def __init__(self) -> None:
        super().__init__(logging.NOTSET)
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(f"{record.name} {record.levelname} {record.getMessage()}")


def watched(run: Callable[[], object]) -> tuple[object, Traces]:
    """Run something, and return its output and what it said."""
    printed, complained, lines, root = io.StringIO(), io.StringIO(), _Lines(), logging.getLogger()
    level = root.level
    root.addHandler(lines)
    root.setLevel(min(level, logging.INFO))
    try:
        with redirect_stdout(printed), redirect_stderr(complained), warnings.catch_warnings(record=True) as warned:
            warnings.simplefilter("always")
            output = run()
    finally:
        root.removeHandler(lines)
        root.setLevel(level)
    words = tuple(f"{one.category.__name__}: {one.message}" for one in warned)
    return output, Traces(printed.getvalue(), complained.getvalue(), tuple(lines.lines), words)


@contextmanager
def unheard() -> Iterator[None]:
    """Let a mechanism talk to nobody while it is run many times."""
    nowhere = io.StringIO()
    before = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        with redirect_stdout(nowhere), redirect_stderr(nowhere), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(before)
