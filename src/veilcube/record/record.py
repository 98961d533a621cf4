"""The record of a release: plain public data, with no questions on it (those live on the analyst's side)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from veilcube.errors import ReleaseFileError
from veilcube.operators import HalvingTree, NodeCounts
from veilcube.privacy import (
    Currency,
    Event,
    GaussianEvent,
    NoiseKey,
    PrivacyStatement,
    SequentialEvent,
    noise_events,
    unit_sensitivity,
    unit_sensitivity_l2_squared,
)
from veilcube.record.cap import MeasuredCap
from veilcube.record.joint_blocks import joint_blocks
from veilcube.record.measurement import NoisyMeasurement
from veilcube.record.sharpening import drop_superseded
from veilcube.schema import Schema

LARGEST_SUM = 2**62
MOST_MEASUREMENTS = 1_000
_BLOCK = 2**20
# Costs of nodes are added up in floats.
ROUNDING = 1e-9


@dataclass(frozen=True, eq=False)
class ReleaseRecord:
    """Everything a release file holds.

    ``plan`` is the plan as plain data (strategy, epsilon, expected error), kept so that a reader can see what was
    promised before the budget was spent. ``created`` is a UTC time in ISO form. ``cap`` is what was measured of
    the rows beyond the cap on rows of a person, if anything was. ``known_facts`` are what a refined release was
    refined with, as plain data that the analyst's side reads.
    """

    schema: Schema
    statement: PrivacyStatement
    measurements: tuple[NoisyMeasurement, ...]
    plan: Mapping[str, object]
    created: str
    made_with: str
    cap: MeasuredCap | None = None
    known_facts: Mapping[str, object] | None = None

    def __post_init__(self) -> None:
        if not self.measurements:
            raise ReleaseFileError("a release needs at least one measurement")
        for measurement in self.measurements:
            if measurement.operator.cell_shape != self.schema.shape:
                raise ReleaseFileError("a measurement of the release is for another schema")
        if len(self.measurements) > MOST_MEASUREMENTS:
            raise ReleaseFileError(f"a release has at most {MOST_MEASUREMENTS} measurements")
        trees = {nodes.tree for _, nodes in self.steps}
        if trees and trees != {HalvingTree.of(self.schema)}:
            raise ReleaseFileError("a measurement of the release is of another tree than its schema's")
        if self.statement.epsilon <= 0 or self._declared_cost <= 0:
            raise ReleaseFileError("a release must state an epsilon above 0 and the event that spends it")
        declared = {event.noise[:2] for event in noise_events(self._event_of_counts)}
        if not declared.issuperset((part.noise.family, part.noise.charged) for part in self.measurements):
            raise ReleaseFileError("a measurement of the release has other noise than its privacy statement declares")
        joint_blocks(self.measurements)
        drop_superseded(self.measurements)  # raises where sharpened values do not fit
        if not self._has_known_parts:
            raise ReleaseFileError("regions of a release are measured once, after its cells; remake the release")
        if not self._declares_enough:
            raise ReleaseFileError("the privacy statement of the release declares less than its strategy reveals")
        if not _sums_fit([measurement.values for measurement in self.measurements]):
            raise ReleaseFileError("the measured values of the release are so large that their sums leave 64 bits")

    @property
    def telling(self) -> "ReleaseRecord":
        """What estimators read: the cells alone where every cell was counted once all rows were, else everything."""
        *before, last = self.measurements
        has_all_rows = len(before) == 1 and before[0].grouped is not None and before[0].values.size == 1
        return replace(self, measurements=(last,)) if has_all_rows and last.cells is not None else self

    @property
    def steps(self) -> list[tuple[NoisyMeasurement, NodeCounts]]:
        """The measurements of nodes of a halving tree, with the nodes."""
        return [(part, part.nodes) for part in self.measurements if part.nodes is not None]

    @property
    def is_staged(self) -> bool:
        """Whether a staged tree was measured: nodes of a halving tree, step by step, and nothing else."""
        return len(self.steps) == len(self.measurements)

    @property
    def _has_known_parts(self) -> bool:
        """Whether regions, which do not determine the cells, come once and after the cells that they were made of."""
        *before, last = self.measurements
        if all(part.parts is None for part in self.measurements):
            return True
        return last.parts is not None and len(before) == 1 and before[0].cells is not None

    @property
    def _declared_cost(self) -> Fraction:
        return self.statement.currency.cost_of(self._event_of_counts)

    @property
    def _event_of_counts(self) -> Event:
        """What the statement declares for the counts: all of it but what it declares for the rows beyond the cap."""
        declared, unit = self.statement.event, self.statement.unit
        if self.cap is None:
            return declared
        if unit.kind != "person" or self.cap.bins.max_rows != unit.max_rows:
            raise ReleaseFileError("what was measured beyond the cap is of another cap than the release's")
        of_cap = self.cap.event(self.statement.neighbours)
        if not isinstance(declared, SequentialEvent) or len(declared.events) != 2 or declared.events[1] != of_cap:
            raise ReleaseFileError("the privacy statement does not declare what was measured beyond the cap")
        return declared.events[0]

    @property
    def _declares_enough(self) -> bool:
        """Whether the statement declares no less than the measurements reveal.

        Nodes of a staged tree that share no cell reveal together what one of them does, so there the cost of the
        dearest cell counts: one likelihood ratio for each node above it, and for a sharpened value what was added.
        Other measurements add up, and each needs an event of its own with at least its sensitivity.
        """
        unit, neighbours, currency = self.statement.unit, self.statement.neighbours, self.statement.currency
        if self.steps:
            of_unit = unit_sensitivity(1, 2, unit, neighbours), unit_sensitivity_l2_squared(1, 2, unit, neighbours)
            dearest = _dearest_cell(self.steps, *of_unit, currency)
            return self.is_staged and dearest <= float(self._declared_cost) * (1 + ROUNDING)
        needed = [part.needed(unit, neighbours) for part in self.measurements]
        # What no unit can change, such as a public number of rows, reveals nothing.
        revealed = SequentialEvent(tuple(one.event for one in needed if one.sensitivity))
        if currency.cost_of(revealed) > self._declared_cost:
            return False
        declared = sorted(event.noise for event in noise_events(self._event_of_counts))
        if len(needed) == 1:
            return all(event.sensitivity >= needed[0].sensitivity for event in declared)
        return _is_matched(needed, declared)


def _is_matched(needed: Sequence[NoiseKey], declared: Sequence[NoiseKey]) -> bool:
    """Whether each measurement has an event of its own of the same noise and no smaller sensitivity."""
    left = sorted(declared)
    for one in sorted(needed, reverse=True):
        # The dearest first, each with the dearest event of its noise.
        fitting = [event for event in left if event[:2] == one[:2] and event.sensitivity >= one.sensitivity]
        if not fitting:
            return False
        left.remove(fitting[-1])
    return True


def _dearest_cell(
    parts: Sequence[tuple[NoisyMeasurement, NodeCounts]], of_unit: int, of_unit_squared: int, currency: Currency
) -> float:
    """Return the largest cost of the measured nodes that hold one cell: Laplace noise by its epsilons, squared last."""
    tree = parts[0][1].tree
    changes = np.zeros((2, tree.cells + 1))
    for part, operator in parts:
        borders = np.append(tree.starts(operator.level), tree.cells)
        is_gaussian = part.noise.family == GaussianEvent.family
        spent = float((of_unit_squared / part.noise.charged / 2) if is_gaussian else of_unit / part.noise.charged)
        np.add.at(changes[int(is_gaussian)], borders[operator.chosen], spent)
        np.add.at(changes[int(is_gaussian)], borders[operator.chosen + 1], -spent)
    laplace, gaussian = np.cumsum(changes, axis=1)
    return float((laplace if currency is Currency.EPSILON else laplace**2 / 2 + gaussian).max())


def _sums_fit(arrays: Sequence[NDArray[np.int64]]) -> bool:
    """Whether the sum of any of the values fits in 64 bits, with room to spare for the rounding of this check."""
    if sum(max(-int(values.min()), int(values.max())) * values.size for values in arrays if values.size) < LARGEST_SUM:
        return True
    flat = [values.reshape(-1) for values in arrays]
    blocks = (values[start : start + _BLOCK] for values in flat for start in range(0, values.size, _BLOCK))
    return sum(float(np.abs(block.astype(np.float64)).sum()) for block in blocks) < LARGEST_SUM
