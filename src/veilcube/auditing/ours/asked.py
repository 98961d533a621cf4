"""The mechanisms of protected tables and of caps, as functions of a list of records, on tables of six cells.

Each is told twice. With an argument ``noise`` exact values, laws and probabilities come from the mechanism and
noise from the audit, which can list and freeze it; without, the mechanism draws as it does for a question.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa

from veilcube.auditing.ours.strategies import CELLS, SCHEMA, unit_of
from veilcube.curator import (
    ChosenPartsMechanism,
    ExcessMechanism,
    NoisyPartsMechanism,
    PersonRows,
    PersonsMechanism,
    Protection,
    QuantileMechanism,
    RankMechanism,
    Receipt,
    Samplers,
    SumsMechanism,
)
from veilcube.laws import Noise
from veilcube.planner import plan_quantiles
from veilcube.privacy import Neighbours, PrivacyUnit, Promise, RankMethod, rank_distribution
from veilcube.query import DistributiveQuery
from veilcube.record import ExcessBins, Moment, RowBins
from veilcube.schema import Region
from veilcube.system import Integers

NUMBERS = np.arange(1, CELLS + 1)
# Rows of a person below and beyond the cap of the mechanisms that measure what a cap leaves out.
MAX_ROWS, MOST_ROWS = 1, 3
SURE = 0.9


@dataclass(frozen=True)
class Asked:
    """A mechanism with its own noise, and the same with noise from the audit, where that can be told."""

    drawn: Callable[[Sequence[Any]], object]
    by_noise: Callable[..., object] | None = None


Made = Callable[[Promise, Protection], Asked]


class AuditedSamplers(Samplers):
    """Adds the noise of an audit to exact values."""

    def __init__(self, noise: Any) -> None:
        super().__init__()
        object.__setattr__(self, "_noise", noise)

    def add_noise(self, exact: Sequence[int], noise: Noise) -> list[int]:
        """Return exact values, each plus noise that the audit knows."""
        word = "variance" if noise.family == "gaussian" else "scale"
        found: list[int] = self._noise.add(list(exact), **{word: noise.parameter})  # type: ignore[attr-defined]
        return found


def counts_of(units: Sequence[Any]) -> Integers:
    """Return how many rows lie in each cell."""
    return np.bincount(np.array([cell for unit in units for cell in unit], dtype=np.int64), minlength=CELLS)


def _with_samplers(draw: Callable[[Integers, Samplers], Sequence[int]]) -> Asked:
    return Asked(
        lambda units: tuple(draw(counts_of(units), Samplers())),
        lambda units, noise: tuple(draw(counts_of(units), AuditedSamplers(noise))),
    )


def _moment(powers: Mapping[str, int], by: Sequence[str], *, is_mean: bool = False) -> Made:
    def made(promise: Promise, protection: Protection) -> Asked:
        moment = Moment.ask(SCHEMA, Region.everything(SCHEMA.shape), powers, by, is_mean=is_mean)
        mechanism = SumsMechanism.claiming(moment, promise, protection)
        others = tuple(axis for axis in range(len(SCHEMA)) if axis not in moment.axes)

        def draw(counts: Integers, samplers: Samplers) -> list[int]:
            return mechanism.draw(counts.reshape(SCHEMA.shape).sum(axis=others), samplers)

        return _with_samplers(draw)

    return made


def _sum_of_parts(promise: Promise, protection: Protection) -> Asked:
    query = DistributiveQuery.sum(1, CELLS)
    mechanism = NoisyPartsMechanism.claiming(query, promise, protection)
    return _with_samplers(lambda counts, samplers: mechanism.draw(_parts(counts), samplers))


def _parts(counts: Integers) -> list[tuple[Integers, Integers]]:
    return [(NUMBERS[:3], counts[:3]), (NUMBERS[3:], counts[3:])]


def _maximum_of_parts(promise: Promise, protection: Protection) -> Asked:
    query = DistributiveQuery.max(range(1, CELLS + 1))
    mechanism = ChosenPartsMechanism.claiming(query, promise.pure_epsilon, protection)
    return Asked(lambda units: tuple(mechanism.draw(_parts(counts_of(units)))))


def _rank(method: RankMethod, rank: int) -> Made:
    def made(promise: Promise, protection: Protection) -> Asked:
        mechanism = RankMechanism.claiming(
            rank, method, promise.pure_epsilon, protection, share=Fraction(0), values=CELLS, confidence=SURE
        )
        value = mechanism.value

        @cache
        def law_of(counts: tuple[int, ...]) -> list[float]:
            law = rank_distribution(counts, value.epsilon, value.rank, value.method)
            logarithms: list[float] = np.log(np.maximum(law, 1e-300)).tolist()
            return logarithms

        def chosen(units: Sequence[Any], noise: Any) -> int:
            return int(noise.choose(law_of(tuple(counts_of(units).tolist())), 2))

        return Asked(lambda units: tuple(mechanism.draw(counts_of(units))), chosen)

    return made


def _quantiles(method: str, *quantiles: str) -> Made:
    def made(promise: Promise, protection: Protection) -> Asked:
        way = plan_quantiles(CELLS, quantiles, promise.pure_epsilon, method=method, steps=protection.moved_rows)
        mechanism = QuantileMechanism.claiming(way, protection)
        return Asked(lambda units: tuple(mechanism.draw(counts_of(units), SURE, Samplers())))

    return made


def _persons(units: Sequence[Any]) -> PersonRows:
    persons = PersonRows()
    persons.add(pa.array([len(unit) for unit in units], pa.int64()))
    return persons


def _of_persons(promise: Promise, protection: Protection) -> Asked:
    bins, whole = RowBins(MOST_ROWS), PrivacyUnit.whole_person("person")
    mechanism = PersonsMechanism(bins, promise.pure_epsilon, protection.neighbours, whole)

    def draw(units: Sequence[Any]) -> tuple[int, ...]:
        return tuple(mechanism.measure(_persons(units), Receipt.uncharged(mechanism.claim)).values.tolist())

    def told(units: Sequence[Any], noise: Any) -> tuple[int, ...]:
        scale = mechanism.claim.event.scale  # type: ignore[union-attr]
        return tuple(noise.add(_persons(units).measured_by(bins).tolist(), scale=scale))

    return Asked(draw, told)


def _beyond_cap(promise: Promise, protection: Protection) -> Asked:
    bins, whole = ExcessBins(MAX_ROWS, MOST_ROWS), PrivacyUnit.whole_person("person")
    mechanism = ExcessMechanism(bins, promise.pure_epsilon, protection.neighbours, whole)
    noises = bins.noises(promise.pure_epsilon, protection.neighbours)

    def draw(units: Sequence[Any]) -> tuple[int, ...]:
        return tuple(mechanism.measure(_persons(units), Receipt.uncharged(mechanism.claim)).values.tolist())

    def told(units: Sequence[Any], noise: Any) -> tuple[int, ...]:
        exact = _persons(units).measured_by(bins).tolist()
        return tuple(noise.add(value, scale=law.scale) for value, law in zip(exact, noises, strict=True))

    return Asked(draw, told)


ASKED: Mapping[str, Made] = {
    "marginal of a protected table": _moment({}, ["sex"]),
    "mean of a protected table": _moment({"age": 1}, [], is_mean=True),
    "sum by parts": _sum_of_parts,
    "maximum by parts": _maximum_of_parts,
    "maximum": _rank(RankMethod.PERMUTE_AND_FLIP, 1),
    "exponential maximum": _rank(RankMethod.EXPONENTIAL, 1),
    "second largest": _rank(RankMethod.PERMUTE_AND_FLIP, 2),
    # Several are drawn among a million slots, too slowly for many runs: tests/unit/privacy/test_rank_privacy.py.
    "median by a split": _quantiles("split", "1/2"),
    "quantiles by tree": _quantiles("tree", "1/4", "1/2", "3/4"),
    "persons by rows": _of_persons,
    "rows beyond a cap": _beyond_cap,
}


def ask(name: str, promise: Promise, neighbours: Neighbours, max_rows: int) -> Asked:
    """Return the mechanism behind a question."""
    return ASKED[name](promise, Protection(unit_of(max_rows), neighbours, is_part=False))
