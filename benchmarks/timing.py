"""What a clock tells: how long noise, answers and refusals take, and on what that depends.

Run with ``python -m benchmarks.timing``. Figures are medians in microseconds, of two tables that are asked in turn, so
that a busy machine slows both; ratios are what matters. Nothing here is a promise: time is a side channel that is not
covered (docs/threat-model.md), and this is how wide it is.
"""

import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

import numpy as np

import veilcube as vc
from veilcube.curator import ProtectedTable
from veilcube.curator.sampling import discrete_laplace
from veilcube.errors import BudgetExceededError

REPEATS, ASKED = 300, 40


def microseconds(run: Callable[[], object], repeats: int = REPEATS) -> list[float]:
    """Return how long each of many runs took."""
    run()
    found = []
    for _ in range(repeats):
        start = time.perf_counter_ns()
        run()
        found.append((time.perf_counter_ns() - start) / 1000)
    return found


def correlation_of_noise_and_time(draws: int = 4000) -> float:
    """Return how far the size of one draw of noise and its time go together."""
    sizes, times = [], []
    for _ in range(draws):
        start = time.perf_counter_ns()
        noise = discrete_laplace(100, 1)
        times.append(time.perf_counter_ns() - start)
        sizes.append(abs(int(noise[0])))
    ranks = np.stack([np.argsort(np.argsort(np.array(one))) for one in (sizes, times)])
    return float(np.asarray(np.corrcoef(ranks))[0, 1])


def asked_in_turn(folder: Path) -> dict[str, tuple[float, float]]:
    """Return how long answers and refusals take on an empty table, and on one of 100 million rows."""
    schema = vc.Schema([vc.Ordinal("age", 1, 100)])
    views = []
    for rows in (0, 1_000_000):
        ledger = vc.Ledger(folder / f"{rows}.db")
        ledger.create("people", 1)
        views.append(vc.protect(vc.Cube(schema, [rows] * 100), ledger=ledger, dataset="people").where("age < 50"))

    def refused(view: ProtectedTable) -> None:
        try:
            view.noisy_count(epsilon=2, fresh=True)
        except BudgetExceededError:
            return
        raise AssertionError("nothing was refused")

    ways: dict[str, Callable[[ProtectedTable], object]] = {
        "fresh answer": lambda view: view.noisy_count(epsilon="1/10000", fresh=True),
        "stored answer": lambda view: view.noisy_count(epsilon="1/10000"),
        "refusal": refused,
    }
    found = {}
    for name, way in ways.items():
        times: tuple[list[float], list[float]] = ([], [])
        for _ in range(ASKED):
            for number, view in enumerate(views):
                start = time.perf_counter_ns()
                way(view)
                times[number].append((time.perf_counter_ns() - start) / 1000)
        found[name] = (median(times[0]), median(times[1]))
    return found


def main() -> None:
    """Print the figures."""
    one = median(microseconds(lambda: discrete_laplace(100, 1)))
    many = median(microseconds(lambda: discrete_laplace(100, 100_000), 30))
    print(f"one draw {one:,.0f} us; 100,000 draws {many:,.0f} us, {many / 100_000 * 1000:.0f} ns each")
    print(f"rank correlation of the size of one draw and its time: {correlation_of_noise_and_time():+.3f}")
    with TemporaryDirectory() as folder:
        for name, (empty, filled) in asked_in_turn(Path(folder)).items():
            ratio = filled / empty
            print(f"{name}: {empty:,.0f} us on an empty table, {filled:,.0f} us on 100 million rows ({ratio:.2f})")


if __name__ == "__main__":
    main()
