"""Faults of what selects: maxima, splits, the sparse vector technique, noisy maxima.

The sparse vectors are those that Lyu, Su and Li compare (Understanding the sparse vector technique, 2017, Figure 1);
the noisy maxima those of Ding et al. (Detecting violations of differential privacy, 2018). Of both the private ones
must pass.
"""

import math
import random
from collections.abc import Callable
from typing import Any

from benchmarks.papers.distributive.paper import published_max_law

from audit.faults.exhibit import Exhibit

EPSILON = 1
SVT_EPSILON = 0.5


def published_maximum(records: list[Any], noise: Any) -> int:
    """The max mechanism of the distributive paper: one record touches the weights of many values."""
    law = published_max_law(records, 5, EPSILON, 0) if records else [0.2] * 5
    return noise.choose([math.log(chance) for chance in law], 2)


def ranked_maximum(records: list[Any], noise: Any) -> int:
    """The exponential mechanism with the number of records above a value, of sensitivity 1."""
    scores = [
        -max(sum(record > value for record in records), 1 - sum(record >= value for record in records))
        for value in range(1, 6)
    ]
    return noise.choose(scores, EPSILON)


def split_scores(records: list[Any]) -> list[int]:
    """How much heavier each half is, twice: an exchanged row leaves one for the other, which changes a score by 4."""
    left = sum(record < 1 for record in records)
    return [2 * (2 * left - len(records)), 2 * (len(records) - 2 * left)]


def split_with_sensitivity_2(records: list[Any], noise: Any) -> int:
    return noise.choose(split_scores(records), EPSILON, sensitivity=2)


def split_with_sensitivity_4(records: list[Any], noise: Any) -> int:
    return noise.choose(split_scores(records), EPSILON, sensitivity=4)


def laplace(scale: float) -> float:
    """Noise for comparisons only, so that its rounding shows nowhere."""
    return random.expovariate(1 / scale) - random.expovariate(1 / scale)


def queries(records: list[Any]) -> list[int]:
    """A record says to which queries it adds 1."""
    return [sum(column) for column in zip(*records, strict=True)] if records else []


THRESHOLD = 0.5


def sparse_vector(
    first: float, each: float | None, most: int | None, *, renewed: float | None = None, shows: bool = False
) -> Callable[[list[Any]], tuple[Any, ...]]:
    """Return a variant: scales of the noise on the threshold and on answers, and how many are above at most."""

    def variant(records: list[Any]) -> tuple[Any, ...]:
        found: list[Any] = []
        threshold, above = THRESHOLD + laplace(first), 0
        for query in queries(records):
            noisy = query + (laplace(each) if each else 0)
            if noisy < threshold:
                found.append(False)
                continue
            found.append(round(noisy, 1) if shows else True)
            above += 1
            if renewed is not None:
                threshold = THRESHOLD + laplace(renewed)
            if above == most:
                break
        return tuple(found)

    return variant


HALF, MOST = SVT_EPSILON / 2, 1
SVT = {
    "1": sparse_vector(1 / HALF, 2 * MOST / HALF, MOST),
    "2": sparse_vector(MOST / HALF, 2 * MOST / HALF, MOST, renewed=MOST / HALF),
    "3": sparse_vector(1 / HALF, MOST / HALF, MOST, shows=True),
    "4": sparse_vector(4 / SVT_EPSILON, 4 / (3 * SVT_EPSILON), 3),
    "5": sparse_vector(1 / HALF, None, None),
    "6": sparse_vector(1 / HALF, 1 / HALF, None),
}
# One record is exchanged: each query then changes by at most 1, some up and some down.
ANSWERS = [(1, 1, 1, 1, 0, 0, 0, 0), (0, 0, 0, 0, 1, 1, 1, 1), (0,) * 8, (1,) * 8]


def noisy_max(draw: Callable[[], float], *, shows: bool) -> Callable[[list[Any]], float]:
    def variant(records: list[Any]) -> float:
        noisy = [query + draw() for query in queries(records)]
        return round(max(noisy), 1) if shows else float(noisy.index(max(noisy)))

    return variant


def double_laplace() -> float:
    return laplace(2 / EPSILON)


def double_exponential() -> float:
    return random.expovariate(EPSILON / 2)


NOISY_MAX = {
    "a": noisy_max(double_laplace, shows=False),
    "b": noisy_max(double_exponential, shows=False),
    "c": noisy_max(double_laplace, shows=True),
    "d": noisy_max(double_exponential, shows=True),
}
CANDIDATES = [(1, 0, 0, 0, 0), (0, 1, 1, 1, 1), (0,) * 5, (1,) * 5]
ALONE = {"neighbours": "replace", "records": 1}
SVT_PROMISE = {"epsilon": SVT_EPSILON}
STATISTICS = ("statistics",)
EXHIBITS = (
    Exhibit("published maximum", published_maximum, [1, 2, 3, 4, 5], ("exact", "replay", "statistics")),
    Exhibit("ranked maximum", ranked_maximum, [1, 2, 3, 4, 5]),
    Exhibit(
        "split of sensitivity 2",
        split_with_sensitivity_2,
        [0, 1, 2],
        ("exact", "replay", "statistics"),
        neighbours="replace",
    ),
    Exhibit("split of sensitivity 4", split_with_sensitivity_4, [0, 1, 2], neighbours="replace"),
    *(
        Exhibit(
            f"sparse vector {name}",
            variant,
            ANSWERS,
            () if name in "12" else STATISTICS,
            SVT_PROMISE,
            trials=100_000,
            is_quick=name == "5",
            **ALONE,
        )
        for name, variant in SVT.items()
    ),
    *(
        Exhibit(
            f"noisy max {name}",
            variant,
            CANDIDATES,
            () if name in "ab" else STATISTICS,
            trials=60_000,
            is_quick=name == "d",
            **ALONE,
        )
        for name, variant in NOISY_MAX.items()
    ),
)
