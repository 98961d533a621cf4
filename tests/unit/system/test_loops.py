"""Compiled loops that are interrupted end with the interruption, never with an error of the interpreter."""

import random
import signal
from collections import Counter
from types import FrameType

import numpy as np
import pytest

from veilcube.system import compile_loop

TRIALS = 400


@compile_loop
def _add_up(arrays: tuple[np.ndarray, np.ndarray], rounds: int) -> tuple[float, np.ndarray]:
    left, right = arrays
    total = 0.0
    for _ in range(rounds):
        for cell in range(left.size):
            total += left[cell] * right[cell]
    return total, left


@compile_loop
def _fail(number: int) -> int:
    if number > 2:
        raise ValueError("too large")
    return number


@pytest.mark.parametrize("ending", [KeyboardInterrupt, SystemExit])
def test_an_interruption_stays_what_it_is(ending: type[BaseException]) -> None:
    def interrupt(number: int, frame: FrameType | None) -> None:
        raise ending

    cells, chance, seen = np.ones(10_000), random.Random(3), Counter[str]()
    _add_up((cells, cells), 1)
    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        for _ in range(TRIALS):
            try:
                signal.setitimer(signal.ITIMER_REAL, chance.uniform(1e-4, 2e-3))
                _add_up((cells, cells), 80)
                signal.setitimer(signal.ITIMER_REAL, 0)
                seen["done"] += 1
            except BaseException as problem:
                seen[type(problem).__name__] += 1
            finally:
                signal.setitimer(signal.ITIMER_REAL, 0)
    finally:
        signal.signal(signal.SIGALRM, before)
    assert set(seen) <= {ending.__name__, "done"}
    assert seen[ending.__name__] > TRIALS / 10


def test_other_errors_pass_unchanged() -> None:
    assert _fail(2) == 2
    with pytest.raises(ValueError, match="too large"):
        _fail(3)
    with pytest.raises(TypeError):
        _fail()
