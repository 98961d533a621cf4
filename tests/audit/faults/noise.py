"""Faults of noise and of what it is scaled by: too small, used twice, rounded, for the wrong sensitivity."""

import math
import random
from typing import Any

import numpy as np

from audit.faults.exhibit import BY_ALL, Exhibit

CELLS = ["a", "b", "c"]
NUMBERS = [0.0, 4.0, 10.0]
LEVELS = [0, 4, 10]
BOUND = 10


def histogram(records: list[Any]) -> list[int]:
    return [records.count(cell) for cell in CELLS]


def noisy_count(records: list[Any], noise: Any) -> int:
    return noise.add(len(records), scale=1, sensitivity=1)


def ten_percent_too_small(records: list[Any], noise: Any) -> int:
    return noise.add(len(records), scale=0.9, sensitivity=1)


def ten_percent_too_small_on_its_own(records: list[Any]) -> int:
    """The same from a generator that the audit knows nothing of: a difference of two geometric numbers."""
    ratio = math.exp(-1 / 0.9)
    first, second = (int(math.log(1 - random.random()) / math.log(ratio)) for _ in range(2))
    return len(records) + first - second


def exchanged_histogram(records: list[Any], noise: Any) -> list[int]:
    """Exchanging a row changes two cells."""
    return noise.add(histogram(records), scale=2, sensitivity=2)


def halved_sensitivity(records: list[Any], noise: Any) -> list[int]:
    return noise.add(histogram(records), scale=1, sensitivity=1)


def fractions_of_all_rows(records: list[Any], noise: Any) -> list[float]:
    """The number of rows is the denominator, and nobody added noise to it."""
    rows = max(len(records), 1)
    return [value / rows for value in noise.add(histogram(records), scale=1)]


def fractions_of_a_noisy_total(records: list[Any], noise: Any) -> list[float]:
    cells = noise.add(histogram(records), scale=1)
    return [value / max(sum(cells), 1) for value in cells]


def noise_reused(records: list[Any], noise: Any) -> tuple[int, int]:
    """Two releases of one programme that was started twice with one seed."""
    drawn = noise.laplace(2)
    return records.count("a") + drawn, len(records) + drawn


def fresh_noise(records: list[Any], noise: Any) -> tuple[int, int]:
    return records.count("a") + noise.laplace(2), len(records) + noise.laplace(2)


def rounded_laplace(records: list[Any]) -> float:
    """The textbook sampler, whose sums with a count keep the last bits of one (Mironov 2012)."""
    uniform = random.random() - 0.5
    return len(records) - math.copysign(math.log(1 - 2 * abs(uniform)), uniform)


def laplace_on_a_grid(records: list[Any]) -> float:
    """The same snapped to whole numbers before it is published, with noise a hair larger than it must be."""
    uniform = random.random() - 0.5
    return float(round(len(records) - 1.01 * math.copysign(math.log(1 - 2 * abs(uniform) + 1e-300), uniform)))


def clipped_sum(records: list[Any], noise: Any) -> int:
    return noise.add(sum(min(max(value, 0), BOUND) for value in records), scale=BOUND, sensitivity=BOUND)


def clipped_sensitivity_only(records: list[Any], noise: Any) -> int:
    """Noise for values up to the bound, and values that nobody clipped."""
    return noise.add(sum(records), scale=BOUND, sensitivity=BOUND)


def sensitivity_of_zero(records: list[Any], noise: Any) -> int:
    """A whole-number division on the way to the scale."""
    return noise.add(1000 * len(records), scale=1000 * (9 // 10))


def past_the_clip(records: list[Any], noise: Any) -> float:
    """NumPy's clip lets NaN pass, and the sum then is none."""
    return noise.add(float(np.clip(np.array([0.0, *records]), 0, BOUND).sum()), scale=BOUND, sensitivity=BOUND)


def infinite_below(records: list[Any], noise: Any) -> float:
    """Values are cut at the upper end alone."""
    return noise.add(float(sum(min(value, BOUND) for value in records)), scale=BOUND)


def every_value_clipped(records: list[Any], noise: Any) -> float:
    known = (0.0 if math.isnan(value) else value for value in records)
    return noise.add(float(sum(min(max(value, 0.0), BOUND) for value in known)), scale=BOUND, sensitivity=BOUND)


def gaussian_of_l1(records: list[Any], noise: Any) -> list[int]:
    """Each cell has the variance of a promise for one of them, and a row counts in both."""
    return noise.add([len(records), len(records)], variance=4)


def gaussian_of_l2(records: list[Any], noise: Any) -> list[int]:
    return noise.add([len(records), len(records)], variance=8)


def gaussian_without_delta(records: list[Any], noise: Any) -> int:
    return noise.add(len(records), variance=4)


RHO = {"rho": "1/8"}
EXHIBITS = (
    Exhibit("noisy count", noisy_count, CELLS),
    Exhibit("noise 10% too small", ten_percent_too_small, CELLS, BY_ALL),
    Exhibit(
        "noise 10% too small, on its own",
        ten_percent_too_small_on_its_own,
        CELLS,
        ("statistics",),
        trials=30_000,
        is_quick=False,
    ),
    Exhibit("histogram of exchanged rows", exchanged_histogram, CELLS, neighbours="replace", is_quick=False),
    Exhibit("sensitivity halved", halved_sensitivity, CELLS, ("replay", "statistics"), neighbours="replace"),
    Exhibit("fractions of all rows", fractions_of_all_rows, CELLS, ("replay", "statistics")),
    Exhibit("fractions of a noisy total", fractions_of_a_noisy_total, CELLS, is_quick=False),
    Exhibit("noise reused", noise_reused, CELLS, ("exact", "statistics")),
    Exhibit("fresh noise", fresh_noise, CELLS, is_quick=False),
    Exhibit("floating-point Laplace", rounded_laplace, CELLS, ("statistics",)),
    Exhibit("Laplace on a grid", laplace_on_a_grid, CELLS),
    Exhibit("clipped sum", clipped_sum, LEVELS),
    Exhibit("clipped sensitivity, unclipped data", clipped_sensitivity_only, [0, 5, 25], BY_ALL),
    Exhibit("sensitivity of zero", sensitivity_of_zero, CELLS, BY_ALL),
    Exhibit("NaN past the clip", past_the_clip, [0.0, 4.0, math.nan], BY_ALL),
    Exhibit("infinity past the clip", infinite_below, [0.0, 4.0, -math.inf], BY_ALL),
    Exhibit("every value clipped", every_value_clipped, [0.0, 12.0, math.nan, -math.inf]),
    Exhibit("Gaussian noise for L1", gaussian_of_l1, CELLS, ("replay",), promise=RHO),
    Exhibit("Gaussian noise for L2", gaussian_of_l2, CELLS, promise=RHO),
    Exhibit("Gaussian noise without a delta", gaussian_without_delta, CELLS, ("replay",)),
)
