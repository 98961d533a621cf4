"""One protocol for what is measured: a strategy of any family gives a design for a schema, and a plan asks only that.

A design says what is measured, what that does to the data, and the exact error of the answers that are planned with. To
write a strategy that measures once, inherit ``MeasuredOnce`` and say which linear map is measured: its design and its
mechanism exist. One of several steps says its own ``Design`` and needs a mechanism (``curator/mechanisms``). Where to
register it is told step by step in CONTRIBUTING.md.
"""

from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar, Protocol, TypeAlias

import numpy as np

from veilcube.laws import Noise
from veilcube.operators import Axes, IdentityOperator, Operator
from veilcube.planner.design.half_width import AnswerNoise, answer_variances, mean_variance
from veilcube.planner.design.price import Family
from veilcube.planner.design.spending import Spending
from veilcube.privacy import Event
from veilcube.query import Workload
from veilcube.schema import Schema
from veilcube.system import Floats

DEFAULT_QUERIES = 2000
# What may be published at most: every measurement with the law of its noise.
Parts: TypeAlias = list[tuple[Operator, Noise]]


class Planned(Protocol):
    """What of a plan its design needs to know."""

    @property
    def schema(self) -> Schema:
        """The schema of the cube."""

    @property
    def operator(self) -> Operator:
        """The linear map that the error is planned with: what is measured, if that is done once."""

    @property
    def spending(self) -> Spending:
        """The whole budget, for the operator's measurements."""

    @property
    def step_spending(self) -> Spending:
        """The whole budget, for the counts of disjoint sets of cells."""

    @property
    def noise(self) -> Noise:
        """The law of the noise on the operator's measurements."""


class Design(Protocol):
    """What a strategy measures on the cubes of one schema."""

    @property
    def gain(self) -> float:
        """By how much answers may be counted on to be better than planned; 1 if what is planned is what happens."""

    @property
    def foreseen(self) -> str:
        """What errors are planned as if it happened, in words; nothing where they are those of every release."""

    @property
    def suited(self) -> Family | None:
        """The noise to take wherever both keep the promise of an epsilon; None for whichever errs less by the plan."""

    @property
    def tables(self) -> tuple[Axes, ...] | None:
        """Which tables of attributes must be counted; None if it takes the whole cube."""

    def event(self, plan: Planned) -> Event:
        """Return what carrying out the plan does to the data."""

    def measured(self, plan: Planned) -> Parts:
        """Return what may be published at most."""

    def variances(self, plan: Planned, workload: Workload) -> Floats:
        """Return the exact variance of the least-squares answer to each query."""

    def mean_variance(self, plan: Planned, workload: Workload) -> float:
        """Return the mean of these variances."""

    def half_widths(self, plan: Planned, workload: Workload, confidence: float) -> Floats:
        """Return half the width of the interval of each least-squares answer."""


class LeastSquaresErrors:
    """The errors of least squares on the plan's operator, under noise of one law."""

    gain: ClassVar[float] = 1.0
    foreseen: ClassVar[str] = ""
    tables: tuple[Axes, ...] | None = None

    @property
    def suited(self) -> Family | None:
        """None: errors are planned as they are."""
        return None

    def variances(self, plan: Planned, workload: Workload) -> Floats:
        """Return the exact variance of the least-squares answer to each query."""
        variances: Floats = answer_variances(plan.operator, workload) * plan.noise.variance
        return variances

    def mean_variance(self, plan: Planned, workload: Workload) -> float:
        """Return the mean of these variances."""
        return mean_variance(plan.operator, workload) * plan.noise.variance

    def half_widths(self, plan: Planned, workload: Workload, confidence: float) -> Floats:
        """Return half the width of the interval of each least-squares answer."""
        return AnswerNoise.of(plan.operator, workload).half_widths(plan.noise, confidence)


@dataclass(frozen=True)
class LinearDesign(LeastSquaresErrors):
    """Everything is measured at once, with independent noise of one law."""

    tables: tuple[Axes, ...] | None = None

    def event(self, plan: Planned) -> Event:
        """Return one measurement."""
        return plan.spending.event()

    def measured(self, plan: Planned) -> Parts:
        """Return the one measurement."""
        return [(plan.operator, plan.noise)]


@lru_cache(maxsize=64)
def default_workload(schema: Schema) -> Workload:
    """Return random ranges, always the same ones: over all of one or two attributes, and over one to three of more.

    People ask about few attributes at a time: a third of the questions narrow one of them, a third two and a third
    three.
    """
    ranges = Workload.random_ranges(schema, DEFAULT_QUERIES, seed=0)
    if len(schema) < 3:
        return ranges
    order = np.random.default_rng(0).permuted(np.tile(np.arange(len(schema)), (DEFAULT_QUERIES, 1)), axis=1)
    is_narrowed = order < (1 + np.arange(DEFAULT_QUERIES) % 3)[:, np.newaxis]
    last = np.array(schema.shape, dtype=np.int64) - 1
    low, high = np.where(is_narrowed, ranges.low, 0), np.where(is_narrowed, ranges.high, last)
    return Workload.ranges(schema, low, high).made_by("ranges")


class Strategy(Protocol):
    """A choice of measurements for any schema."""

    @property
    def name(self) -> str:
        """The word that users and files call it by."""

    @property
    def summary(self) -> str:
        """What is measured, in few words."""

    @property
    def searched(self) -> str:
        """What was compared to find it, in words; nothing if nothing was."""

    @property
    def is_fitted(self) -> bool:
        """Whether it is made for some questions, and answers others badly or not at all."""

    @property
    def counts_tables(self) -> bool:
        """Whether only some tables of attributes need to be counted, so that the cube may have any size."""

    def operator(self, schema: Schema) -> Operator:
        """Return the linear map that its error is planned with: what it measures, if that is done once."""

    def design(self, schema: Schema) -> Design:
        """Return what it measures on a cube of this schema."""

    def natural_workload(self, schema: Schema) -> Workload:
        """Return the questions that are planned for when nobody names any."""

    def candidates(self, schema: Schema, workload: Workload, family: Family = "laplace") -> "tuple[Strategy, ...]":
        """Return the strategies to compare, with every choice made for the least expected error over a workload.

        ``family`` is the noise that they are chosen for: what is best by L1 sensitivities is not by L2 ones.
        """

    def to_dict(self) -> dict[str, object]:
        """Return the plain data that describes it."""

    def settings(self) -> dict[str, object]:
        """Return the plain data that it can be made from again: its name and all that was chosen."""


class StrategyDefaults:
    """What strategies say of themselves unless they know better."""

    @property
    def summary(self) -> str:
        """What is measured, in few words."""
        return "rows made for the workload"

    @property
    def searched(self) -> str:
        """What was compared to find it, in words; nothing if nothing was."""
        return ""

    @property
    def is_fitted(self) -> bool:
        """Whether it is made for some questions, and answers others badly or not at all."""
        return False

    @property
    def counts_tables(self) -> bool:
        """Whether only some tables of attributes need to be counted, so that the cube may have any size."""
        return False

    def natural_workload(self, schema: Schema) -> Workload:
        """Return the questions that are planned for when nobody names any."""
        return default_workload(schema)

    def candidates(
        self: Strategy, schema: Schema, workload: Workload, family: Family = "laplace"
    ) -> tuple[Strategy, ...]:
        """Return the strategies to compare, with every choice made; there is none to make here."""
        return (self,)

    def settings(self: Strategy) -> dict[str, object]:
        """Return the plain data that it can be made from again: what describes it, unless it knows more."""
        return self.to_dict()


class MeasuredOnce(StrategyDefaults):
    """A strategy that measures everything at once."""

    def design(self, schema: Schema) -> Design:
        """Return the design: all at once."""
        return LinearDesign()


@dataclass(frozen=True)
class Identity(MeasuredOnce):
    """Measure every cell on its own: best for questions about few cells."""

    @property
    def name(self) -> str:
        """The word that users and files call it by."""
        return "identity"

    @property
    def summary(self) -> str:
        """What is measured, in few words."""
        return "every cell"

    def operator(self, schema: Schema) -> Operator:
        """Return the identity on the schema's cells."""
        return IdentityOperator(schema.shape, schema.names)

    def to_dict(self) -> dict[str, object]:
        """Return the plain data that describes it."""
        return {"name": self.name}
