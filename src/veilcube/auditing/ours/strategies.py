"""The mechanisms of releases, one for each strategy, on tables of six cells."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from veilcube.curator import (
    Cube,
    LinearMechanism,
    Receipt,
    StagedTreeMechanism,
    mechanism_for,
)
from veilcube.planner import Adaptive, GroupedTables, Plan, Strategy, make_plan, named_strategy
from veilcube.privacy import Neighbours, PrivacyStatement, PrivacyUnit, Promise
from veilcube.record import NoisyMeasurement
from veilcube.schema import Nominal, Ordinal, Schema
from veilcube.system import Integers

CELLS = 6
SCHEMA = Schema([Ordinal("age", 1, 3), Nominal("sex", ["Female", "Male"])])
# Where declared sensitivities are searched for larger changes.
LARGE = Schema([Ordinal("age", 1, 40), Nominal("job", hierarchy={"Care": ["Nurse", "Aide"], "Office": ["Judge"]})])


def _named(name: str) -> Callable[[], Strategy]:
    def made() -> Strategy:
        strategy = named_strategy(name)
        assert strategy is not None
        return strategy

    return made


# Every strategy that has a mechanism, and those of its settings that take other courses.
MEASURED: Mapping[str, Callable[[], Strategy]] = {
    **{
        name: _named(name)
        for name in (
            "identity",
            "tree",
            "staged tree",
            "wavelet",
            "marginals",
            "matched",
            "adaptive",
            "kd tree",
            "grouped tables",
        )
    },
    "blocks": lambda: Adaptive(partition="blocks", split=0.5, side=2),
    "grown regions": lambda: Adaptive(partition="grow", split=0.7),
    "full cells": lambda: GroupedTables(full_cells=True),
}


def unit_of(rows: int) -> PrivacyUnit:
    """Return the unit: a row, or a person with at most so many."""
    return PrivacyUnit.row() if rows == 1 else PrivacyUnit.person("person", rows)


@dataclass(frozen=True)
class StrategyMechanism:
    """The mechanism that carries out a plan. A record is a unit: the numbers of the cells that its rows lie in."""

    plan: Plan

    @classmethod
    def named(
        cls, name: str, promise: Promise, neighbours: Neighbours, max_rows: int, schema: Schema = SCHEMA
    ) -> "StrategyMechanism":
        """Return the mechanism of a strategy by its name."""
        return cls(make_plan(schema, promise, MEASURED[name](), None, neighbours, unit_of(max_rows)))

    @property
    def family(self) -> str:
        """Which noise the plan draws."""
        return self.plan.family

    @cached_property
    def has_steps(self) -> bool:
        """Whether a later step may depend on what an earlier one published."""
        return not isinstance(mechanism_for(self.plan), LinearMechanism)

    @cached_property
    def statement(self) -> PrivacyStatement:
        """What is promised."""
        return mechanism_for(self.plan).claim(self.plan)

    def counts_of(self, units: Sequence[Any]) -> Integers:
        """Return how many rows lie in each cell."""
        rows = np.array([cell for unit in units for cell in unit], dtype=np.int64)
        return np.bincount(rows, minlength=self.plan.schema.cells)

    def cube_of(self, units: Sequence[Any]) -> Cube:
        """Return the table as a cube."""
        counts = self.counts_of(units).reshape(self.plan.schema.shape)
        return Cube(self.plan.schema, counts, self.plan.unit)

    def publish(self, units: Sequence[Any], sampler: Any = None) -> tuple[NoisyMeasurement, ...]:
        """Measure a table as a release does; with noise from elsewhere, where a sampler is given."""
        mechanism = mechanism_for(self.plan)
        if sampler is not None and isinstance(mechanism, StagedTreeMechanism):
            mechanism = replace(mechanism, draw_jointly=sampler.jointly, sharpen=sampler.sharpened)
        return mechanism.measure(self.cube_of(units), self.plan, Receipt.uncharged(self.statement), sampler)

    def __call__(self, units: Sequence[Any]) -> tuple[object, ...]:
        """Return all noisy values, and which rows of which tables they are of where that was chosen."""
        published = self.publish(units)
        numbers = tuple(int(value) for part in published for value in part.values.ravel())
        if not self.has_steps:
            return numbers
        chosen = "; ".join(f"{part.operator.measurement_shape}" for part in published)
        return (chosen, *numbers)
