"""Plans: what will be measured, with how much noise, and how wrong the answers will be, before any budget is spent."""

from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from veilcube.errors import PlanError, QueryError
from veilcube.operators import Operator
from veilcube.planner.strategy import Strategy, candidates_for
from veilcube.privacy import (
    EpsilonLike,
    Event,
    LaplaceEvent,
    Neighbours,
    PrivacyUnit,
    read_epsilon,
    scale_for,
    show_fraction,
    unit_sensitivity,
    write_fraction,
)
from veilcube.privacy.noise import DiscreteLaplace
from veilcube.query import Workload
from veilcube.schema import Schema

DEFAULT_QUERIES = 2000


@dataclass(frozen=True)
class Candidate:
    """A strategy that was considered, with its expected error on the workload."""

    strategy: Strategy
    expected_error: float


@dataclass(frozen=True, eq=False)
class Plan:
    """One measurement to take, and the exact error of its least-squares answers."""

    schema: Schema
    strategy: Strategy
    operator: Operator
    epsilon: Fraction
    neighbours: Neighbours
    unit: PrivacyUnit
    workload: Workload = field(repr=False)
    candidates: tuple[Candidate, ...] = ()

    @cached_property
    def sensitivity(self) -> int:
        """The largest L1 change of the measurements when one unit changes."""
        return unit_sensitivity(
            self.operator.sensitivity("add-remove"), self.operator.sensitivity("replace"), self.unit, self.neighbours
        )

    @cached_property
    def noise(self) -> DiscreteLaplace:
        """The law of the noise on every measurement."""
        return DiscreteLaplace(scale_for(self.epsilon, self.sensitivity))

    @property
    def event(self) -> Event:
        """What carrying out the plan does to the data."""
        return LaplaceEvent(self.sensitivity, self.noise.scale)

    def stddev(self, workload: Workload) -> NDArray[np.float64]:
        """Return the exact standard deviation of the least-squares answer to each query."""
        if workload.schema != self.schema:
            raise QueryError("the workload is for another schema than the plan; build it with the plan's schema")
        units = self.operator.variance_of_rectangles(workload.low, workload.high)
        for row, region in workload.regions.items():
            units[row] = self.operator.variance_of_region(region)
        deviations: NDArray[np.float64] = np.sqrt(units * self.noise.variance)
        return deviations

    @cached_property
    def expected_error(self) -> float:
        """The root mean squared error of least squares over the workload, exact."""
        return float(np.sqrt(np.mean(np.square(self.stddev(self.workload)))))

    def to_dict(self) -> dict[str, object]:
        """Return the plan as plain data, as it is kept in the release."""
        return {
            "strategy": self.strategy.to_dict(),
            "epsilon": write_fraction(self.epsilon),
            "neighbours": str(self.neighbours),
            "unit": self.unit.to_dict(),
            "scale": write_fraction(self.noise.scale),
            "expected_error": self.expected_error,
            "candidates": [
                {"strategy": candidate.strategy.to_dict(), "expected_error": candidate.expected_error}
                for candidate in self.candidates
            ],
        }

    def __repr__(self) -> str:
        return (
            f"Plan({self.strategy.name}, epsilon {show_fraction(self.epsilon)}, {self.neighbours}, "
            f"expected error {self.expected_error:.4g} per query)"
        )


def plan(
    schema: Schema | str | Path,
    epsilon: EpsilonLike = 1.0,
    strategy: Strategy | str = "auto",
    workload: Workload | None = None,
    neighbours: str = "add-remove",
    *,
    person: str | None = None,
    max_rows: int | None = None,
) -> Plan:
    """Choose what to measure, from public facts only: no data is read and no budget is spent.

    The default workload is random ranges over all attributes. ``person`` and ``max_rows`` describe the privacy unit,
    as in ``count``.

    >>> from veilcube.schema import Ordinal
    >>> plan(Schema([Ordinal("age", 17, 90)]), epsilon=0.1)
    Plan(identity, epsilon 0.1, add-remove, expected error 87.62 per query)
    """
    schema = Schema.read(schema)
    budget, relation = read_epsilon(epsilon), Neighbours.read(neighbours)
    unit = PrivacyUnit.read(person, max_rows)
    workload = workload or Workload.random_ranges(schema, DEFAULT_QUERIES, seed=0)
    if workload.schema != schema:
        raise PlanError("the workload is for another schema; build it with the schema that is planned for")
    plans = [
        Plan(schema, option, option.operator(schema), budget, relation, unit, workload)
        for option in candidates_for(strategy)
    ]
    considered = tuple(Candidate(option.strategy, option.expected_error) for option in plans)
    best = min(plans, key=lambda option: option.expected_error)
    return Plan(schema, best.strategy, best.operator, budget, relation, unit, workload, considered)
