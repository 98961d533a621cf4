"""The plan itself: what will be measured, with how much noise, and how wrong the answers will be."""

from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from math import prod, sqrt
from pathlib import Path

import numpy as np

from veilcube.errors import PlanError, QueryError
from veilcube.laws import Noise
from veilcube.operators import Operator
from veilcube.planner.comparison import Candidate
from veilcube.planner.design import (
    Design,
    Family,
    GaussianSpending,
    LaplaceSpending,
    Parts,
    Spending,
    Strategy,
    root_mean_square,
)
from veilcube.planner.fitting import require_releasing, require_releasing_tables
from veilcube.planner.keeping import Comparison, Released, compare_with
from veilcube.planner.plan_file import read_plan, write_plan
from veilcube.planner.showing import ShownPlan
from veilcube.privacy import (
    LARGEST_COLUMN,
    Event,
    Neighbours,
    PrivacyUnit,
    Promise,
    unit_sensitivity,
    unit_sensitivity_l2_squared,
    write_fraction,
)
from veilcube.query import Workload, read_confidence
from veilcube.record import sensitivity_l2_squared_of, sensitivity_of
from veilcube.schema import Schema
from veilcube.system import Floats, read_kind

DEFAULT_CONFIDENCE = 0.95
# What the noise of all measurements may add up to, in its mean: half of what is left beside the largest table.
LARGEST_NOISE = 2**60


@dataclass(frozen=True, eq=False)
class Plan(ShownPlan):
    """What to measure, with how much noise, and the error of its least-squares answers.

    It is exact for strategies that measure once. For a staged tree it is that of the same tree when nothing stops.
    ``reason`` says which noise was taken and why, and why tables of attributes are counted where a cube does not fit;
    nothing where there was no choice. ``save`` writes a file that ``read`` and ``veilcube release --plan`` take.
    """

    schema: Schema
    strategy: Strategy
    operator: Operator
    promise: Promise
    neighbours: Neighbours
    unit: PrivacyUnit
    workload: Workload = field(repr=False)
    candidates: tuple[Candidate, ...] = ()
    searched: str = field(default="", repr=False)
    family: Family = "laplace"
    reason: str = field(default="", repr=False)

    @property
    def epsilon(self) -> Fraction:
        """The epsilon that is promised: alone, or with ``delta``."""
        return self.promise.epsilon

    @property
    def delta(self) -> Fraction:
        """The delta that is promised with epsilon; 0 if epsilon is promised alone."""
        return self.promise.delta

    @property
    def rho(self) -> Fraction | None:
        """The rho of zero-concentrated differential privacy that is promised; None if epsilon is promised alone."""
        return self.promise.rho

    @cached_property
    def sensitivity(self) -> int:
        """The largest L1 change of the measurements when one unit changes."""
        return sensitivity_of(self.operator, self.unit, self.neighbours)

    @cached_property
    def sensitivity_l2_squared(self) -> int:
        """The largest squared L2 change of the measurements when one unit changes."""
        return sensitivity_l2_squared_of(self.operator, self.unit, self.neighbours)

    @property
    def spending(self) -> Spending:
        """The whole budget, for the operator's measurements."""
        if self.family == "laplace":
            return LaplaceSpending(self.promise.pure_epsilon, self.sensitivity)
        return GaussianSpending(self._concentrated, self.sensitivity_l2_squared)

    @property
    def step_spending(self) -> Spending:
        """The whole budget, for the counts of disjoint sets of cells."""
        if self.family == "laplace":
            return LaplaceSpending(self.promise.pure_epsilon, self.step_sensitivity)
        squared = unit_sensitivity_l2_squared(1, 2, self.unit, self.neighbours)
        return GaussianSpending(self._concentrated, squared)

    @property
    def _concentrated(self) -> Fraction:
        if self.promise.rho is None:
            raise PlanError("Gaussian noise keeps no promise of epsilon alone; plan with delta= or rho=")
        return self.promise.rho

    @cached_property
    def noise(self) -> Noise:
        """The law of the noise on every measurement."""
        return self.spending.law()

    @cached_property
    def design(self) -> Design:
        """What is measured, at once or in steps."""
        return self.strategy.design(self.schema)

    @cached_property
    def step_sensitivity(self) -> int:
        """The largest L1 change of the counts of disjoint nodes when one unit changes."""
        return unit_sensitivity(1, 2, self.unit, self.neighbours)

    @property
    def event(self) -> Event:
        """What carrying out the plan does to the data."""
        return self.design.event(self)

    @property
    def parts(self) -> Parts:
        """What may be published at most: every measurement with the law of its noise."""
        return self.design.measured(self)

    @property
    def is_exact(self) -> bool:
        """Whether the errors are those of the release, whatever the data are, and not those of a worse case."""
        return self.design.foreseen == ""

    def require_memory(self) -> None:
        """Refuse what this machine cannot count and measure: a release would refuse it with the same sentence."""
        measured = prod(self.operator.measurement_shape)
        if self.strategy.counts_tables:
            require_releasing_tables(self.schema, measured)
        else:
            require_releasing(self.schema, self.operator.words_to_apply + measured)

    def require_column(self) -> None:
        """Refuse, from public facts alone, measurements of the largest table that could leave 64 bits."""
        if sum(operator.sensitivity("add-remove") for operator, _ in self.parts) > LARGEST_COLUMN:
            raise PlanError(
                "the measurements of a large table could leave 64 bits under this strategy; use fewer levels or "
                "simpler weights, keep more attributes flat, or use strategy='identity'"
            )

    def require_range(self) -> None:
        """Refuse, from public facts alone, what could leave 64 bits, its noise included: before it is charged."""
        self.require_column()
        if sum(prod(operator.measurement_shape) * noise.size for operator, noise in self.parts) > LARGEST_NOISE:
            raise PlanError(
                "the noise of all measurements could leave 64 bits; use a larger epsilon or rho, or fewer cells"
            )

    def stddev(self, workload: Workload) -> Floats:
        """Return the exact standard deviation of the least-squares answer to each query."""
        self._require_schema(workload)
        return np.sqrt(self.design.variances(self, workload))

    def half_widths(self, workload: Workload | None = None, confidence: float = DEFAULT_CONFIDENCE) -> Floats:
        """Return half the width of the interval of each least-squares answer, by default over the plan's workload."""
        asked = self.workload if workload is None else workload
        self._require_schema(asked)
        return self.design.half_widths(self, asked, confidence)

    def half_width(self, workload: Workload | None = None, confidence: float = DEFAULT_CONFIDENCE) -> float:
        """Return the root mean square of the half-widths over a workload, each question with its weight."""
        asked = self.workload if workload is None else workload
        return root_mean_square(asked, self.half_widths(asked, confidence))

    def compare(self, release: Released, confidence: float = DEFAULT_CONFIDENCE) -> Comparison:
        """Compare what was promised for the plan's questions with the intervals of a release that it led to."""
        read_confidence(confidence)
        if not (hasattr(release, "record") and hasattr(release, "answer")):
            raise PlanError(
                "a plan is compared with a release that was made from it; pass what veilcube.release returns"
            )
        return compare_with(self, release, confidence)

    def _require_schema(self, workload: Workload) -> None:
        read_kind(workload, Workload, "a plan predicts the error of a veilcube.Workload")
        if workload.schema != self.schema:
            raise QueryError("the workload is for another schema than the plan; build it with the plan's schema")

    @cached_property
    def expected_error(self) -> float:
        """The root mean squared error of least squares over the workload, exact."""
        return sqrt(self.design.mean_variance(self, self.workload))

    def save(self, path: str | Path) -> Path:
        """Write the plan to a public file, which holds all that was chosen; return where.

        By convention its name ends with .plan. ``Plan.read`` and ``veilcube release --plan`` take it.
        """
        return write_plan(self, path)

    @classmethod
    def read(cls, path: str | Path) -> "Plan":
        """Read a plan file; refuses one that was changed by hand, or that this version would not keep."""
        said = read_plan(path)
        operator = said.strategy.operator(said.schema)
        public = (said.promise, said.neighbours, said.unit, said.workload)
        notes = (said.candidates, said.searched, said.family, said.reason)
        found = cls(said.schema, said.strategy, operator, *public, *notes)
        said.require_kept(found)
        found.require_memory()
        return found

    def to_dict(self) -> dict[str, object]:
        """Return the plan as plain data, as it is kept in the release."""
        return {
            "strategy": self.strategy.to_dict(),
            "epsilon": write_fraction(self.epsilon),
            **self._noise_to_dict(),
            "neighbours": str(self.neighbours),
            "unit": self.unit.to_dict(),
            "expected_error": self.expected_error,
            "candidates": [
                {"strategy": candidate.strategy.to_dict(), "expected_error": candidate.expected_error}
                | ({} if self.promise.is_pure else {"noise": candidate.family})
                for candidate in self.candidates
            ],
            "searched": self.searched,
            **({} if self.promise.is_pure and not self.reason else {"reason": self.reason}),
        }

    def _noise_to_dict(self) -> dict[str, object]:
        """Return the noise as plain data: of a pure promise its scale, which is all there is to know."""
        if self.promise.rho is None:
            return {"scale": write_fraction(self.noise.parameter)}
        promised = {"delta": write_fraction(self.delta), "rho": write_fraction(self.promise.rho)}
        return {**promised, "noise": self.noise.to_json()}

    def __repr__(self) -> str:
        return (
            f"Plan({self.strategy.name}, {self._promise_in_words}, {self.neighbours}, "
            f"expected error {self.expected_error:.4g} per query)"
        )

    @property
    def _promise_in_words(self) -> str:
        return self.promise.words if self.promise.is_pure else f"{self.promise.words}, {self.family} noise"
