"""Fitting the posterior to default releases of synthetic arrays: lines and planes, empty, smooth and rough.

Bars: 4096 cells in under 0.2 s, 65,536 cells in under 3 s, on both cores and for every kind of array.
The arrays are made here and the same every time; the noise is fresh, so no two runs agree exactly.
Run: python -m benchmarks.posterior
"""

from collections.abc import Callable
from math import prod

import numpy as np
from numpy.typing import NDArray

import veilcube as vc
from benchmarks.report import best_seconds
from veilcube.analyst.estimate.polya.posterior import Posterior
from veilcube.record import ReleaseRecord

Counts = NDArray[np.int64]

SHAPES = ((4096,), (64, 64), (65_536,), (256, 256))
EPSILONS = (0.1, 1.0)
BARS = {4096: 0.2, 65_536: 3.0}
ROUNDS = 3
SEED = 3
USUAL_COUNT = 100
SHARE_OF_EMPTY_CELLS = 0.99


def sparse(shape: tuple[int, ...], generator: np.random.Generator) -> Counts:
    """Return cells of which all but one in a hundred are empty."""
    is_empty = generator.random(shape) < SHARE_OF_EMPTY_CELLS
    return np.where(is_empty, 0, generator.lognormal(np.log(USUAL_COUNT), 1.5, shape)).astype(np.int64)


def smooth(shape: tuple[int, ...], generator: np.random.Generator) -> Counts:
    """Return cells that scatter about one slow wave along every axis."""
    waves = [1 + 0.5 * np.sin(np.linspace(0, 2 * np.pi, size)) for size in shape]
    expected = USUAL_COUNT * np.prod(np.meshgrid(*waves, indexing="ij"), axis=0)
    counts: Counts = generator.poisson(expected).astype(np.int64)
    return counts


def rough(shape: tuple[int, ...], generator: np.random.Generator) -> Counts:
    """Return cells that are not alike at all."""
    return generator.lognormal(np.log(USUAL_COUNT), 1.5, shape).astype(np.int64)


def release_of(counts: Counts, epsilon: float) -> ReleaseRecord:
    schema = vc.Schema([vc.Ordinal(name, 1, size) for name, size in zip("xy", counts.shape, strict=False)])
    return vc.release(vc.Cube(schema, counts), epsilon=epsilon).record


def measure(shape: tuple[int, ...], make: Callable[[tuple[int, ...], np.random.Generator], Counts]) -> None:
    """Print one line for each epsilon."""
    counts, bar = make(shape, np.random.default_rng(SEED)), BARS[prod(shape)]
    for epsilon in EPSILONS:
        record = release_of(counts, epsilon)
        Posterior().fit(record)  # nobody counts the run that compiles
        seconds = best_seconds(lambda record=record: Posterior().fit(record), ROUNDS)  # type: ignore[misc]
        verdict = "reached" if seconds <= bar else "MISSED"
        cells = " x ".join(map(str, shape))
        print(f"{cells:<12}{make.__name__:<8}{epsilon:>8g}{seconds:>10.3f} s    bar {bar:g} s {verdict}", flush=True)


def main() -> None:
    print(f"the posterior of a default release, best of {ROUNDS}: cells, kind of array, epsilon, seconds")
    for shape in SHAPES:
        for make in (sparse, smooth, rough):
            measure(shape, make)


if __name__ == "__main__":
    main()
