"""A refined release: the questions of a release, answered so that known facts hold.

A staged tree measures what earlier measurements pointed to, so it has no least-squares estimate and no covariance of
its cells. There the posterior means are moved in the metric of their standard deviations, as if those were independent:
answers obey the facts, and no variance is claimed to be smaller, except for what the facts tell for certain.
"""

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from veilcube.analyst.estimate import AdjustedEstimate, Estimate, Estimates, Guarantee
from veilcube.analyst.history import MaxEntropy
from veilcube.analyst.refine.facts import (
    Boxes,
    BoxSums,
    Fact,
    FactTest,
    GivenFacts,
    ReleaseFacts,
    exact_history,
    join_facts,
)
from veilcube.analyst.refine.release.amended import AmendedEstimate, Questions
from veilcube.analyst.refine.release.covariance import variances
from veilcube.analyst.refine.release.imposing import Imposed
from veilcube.analyst.refine.release.ranges import FactRanges
from veilcube.analyst.refine.release.refined_answers import NOTHING_LEFT, explained_variances
from veilcube.analyst.release import Release
from veilcube.analyst.synthesis import read_number_of_rows, read_target
from veilcube.errors import QueryError
from veilcube.operators import BlockSums
from veilcube.query import Answer, Query, read_query
from veilcube.record import History, ReleaseRecord
from veilcube.schema import Ordinal, Region
from veilcube.system import Floats, read_flag

if TYPE_CHECKING:
    import pandas as pd

_CELLS_AT_ONCE = 1 << 15
_LEAST_SHARE = 1e-3
_ANY_CONFIDENCE = 0.5


@dataclass(frozen=True, eq=False)
class IndependentCells:
    """A diagonal S: a variance of its own for every cell."""

    variance: Floats

    @classmethod
    def of(cls, posterior: Estimate, shape: tuple[int, ...]) -> "IndependentCells":
        """Return the posterior variance of each cell; none is zero, so that every fact can be met."""
        index = np.indices(shape).reshape(len(shape), -1).T.astype(np.int64)
        parts = (index[start : start + _CELLS_AT_ONCE] for start in range(0, len(index), _CELLS_AT_ONCE))
        deviations = np.concatenate([posterior.rectangles(part, part, _ANY_CONFIDENCE).stddev for part in parts])
        least = _LEAST_SHARE * (deviations.max() or 1.0)
        return cls(np.square(np.maximum(deviations, least)).reshape(shape))

    def spread(self, weights: Floats) -> Floats:
        """Return S u."""
        return self.variance * weights

    def of_boxes(self, left: Boxes, right: Boxes) -> Floats:
        """Return the summed variances of the cells that two boxes share."""
        found = np.empty((len(left), len(right)))
        for row in range(len(left)):
            shared = self.spread(left.take(np.array([row])).spread(np.ones(1)))
            found[row] = right.sums(BlockSums(shared), shared)
        return found

    def of_each(self, boxes: Boxes) -> Floats:
        """Return the summed variances of the cells of each box."""
        return boxes.sums(BlockSums(self.variance), self.variance)


@dataclass(frozen=True, eq=False)
class Certainty:
    """Makes the intervals of questions that the equalities determine a single point."""

    metric: IndependentCells
    imposed: Imposed

    def amend(self, found: Estimates, questions: Questions, confidence: float) -> Estimates:
        """Return the estimates, certain ones without an interval."""
        del confidence
        is_certain = np.zeros(found.value.shape, dtype=bool)
        is_certain[questions.held] = self._is_certain(questions.sums)
        low, high = np.where(is_certain, found.value, found.low), np.where(is_certain, found.value, found.high)
        return Estimates(found.value, low, high, np.where(is_certain, 0.0, found.stddev))

    def _is_certain(self, sums: BoxSums) -> NDArray[np.bool_]:
        """Return which sums the equalities determine: those without variance left in any metric."""
        own = variances(self.metric, sums)
        explained = explained_variances(self.metric, self.imposed.known, self.imposed.factored, sums)
        return np.asarray(own - explained <= NOTHING_LEFT * own)


def staged_tree_estimate(posterior: Estimate, metric: IndependentCells, imposed: Imposed) -> Estimate:
    """Return posterior answers moved to obey the facts, exact where the facts leave no choice."""
    cells = imposed.refined_cells if imposed.moved_cells is None else imposed.moved_cells
    return AmendedEstimate(AdjustedEstimate(posterior, cells.copy()), Certainty(metric, imposed).amend)


@dataclass(frozen=True, eq=False)
class ImposedFacts:
    """Facts as they were imposed, with those of the schema; the estimate that answers; whether the facts fit."""

    imposed: Imposed
    estimate: Estimate
    test: FactTest
    of_schema: frozenset[Fact]
    ranges: FactRanges | None

    def told(self, rows: ReleaseFacts) -> tuple[Fact, ...]:
        """Return the facts of some rows, each once, without those that the schema tells."""
        return tuple(fact for fact in dict.fromkeys(rows.facts) if fact not in self.of_schema)


@dataclass(frozen=True)
class Manner:
    """How facts are meant: of ``counts``, never negative; of the ``kept_rows`` alone where a cap leaves some out."""

    counts: bool = True
    kept_rows: bool = False

    def beside(self, earlier: "Manner") -> "Manner":
        """Return how facts are meant together with those of an earlier refinement."""
        return Manner(self.counts and earlier.counts, self.kept_rows or earlier.kept_rows)

    def to_data(self) -> dict[str, object]:
        """Return plain data to rebuild it from."""
        return {"counts": self.counts, "kept_rows": self.kept_rows}

    @classmethod
    def from_data(cls, data: Mapping[str, object]) -> "Manner":
        """Rebuild from ``to_data``; the data may have been changed by anybody."""
        return cls(read_flag(data["counts"], "counts"), read_flag(data["kept_rows"], "kept_rows"))


ESTIMATOR = "refined"


class RefinedRelease(Release):
    """A release whose answers obey known facts; every question of a release can be asked.

    ``facts`` are the ones that said something new, ``redundant`` those that followed from the others, ``unrefined`` is
    the release as it was, and ``fact_test`` tells whether the facts fit what was measured. Its one estimator, refined
    least squares, is unbiased with exact variances under equalities; inequalities move the values, and the intervals
    stay those before them, widened to hold the value and cut where no counts obey the facts. On a staged tree the
    posterior is moved, and its intervals are cut.
    """

    def __init__(
        self,
        unrefined: Release,
        given: Sequence[GivenFacts],
        manner: Manner,
        imposed: ImposedFacts,
        record: ReleaseRecord,
    ) -> None:
        super().__init__(record)
        self._unrefined, self._given, self._manner, self._imposed = unrefined, tuple(given), manner, imposed
        self._chosen = dict.fromkeys(("best", ESTIMATOR), _Course(imposed.estimate))

    @cached_property
    def answered(self) -> History:
        """Every measurement as a linear query with its noisy value, and the facts that are equalities as exact answers.

        What models learn from; they know no inequalities, so these are left out, with a warning.
        """
        if not self.rows.is_equality.all():
            warnings.warn(
                "a history has no inequalities: it holds the measurements and the facts that are equalities",
                stacklevel=3,
            )
        return self._history(self._imposed.imposed.used.is_equality)

    @property
    def drawn_from(self) -> History:
        """What synthetic rows are drawn from: as ``answered``, with the inequalities that bind as equalities."""
        return self._history(self._imposed.imposed.used.is_equality | self._imposed.imposed.binding)

    def _history(self, exact: NDArray[np.bool_]) -> History:
        measured = History.of_release(replace(self.record.telling, known_facts=None))
        facts = self._imposed.imposed.used.take(np.flatnonzero(exact))
        return History.merge(measured, exact_history(self.schema, facts)) if len(facts) else measured

    @property
    def unrefined(self) -> Release:
        """The release that was refined."""
        return self._unrefined

    @property
    def facts(self) -> tuple[Fact, ...]:
        """The facts that said something new."""
        return self._imposed.told(self._imposed.imposed.used)

    @property
    def redundant(self) -> tuple[Fact, ...]:
        """The facts that followed from others."""
        return self._imposed.told(self._imposed.imposed.redundant)

    @property
    def fact_test(self) -> FactTest:
        """Whether the facts fit what was measured, and how far each is off."""
        return self._imposed.test

    @property
    def refinement(self) -> Mapping[str, object]:
        """The facts and their sources, which of them followed from others, and the test of them, as plain data."""
        return {
            "facts": [{"sentence": fact.sentence, "source": fact.source} for fact in self.facts],
            "redundant": [fact.sentence for fact in self.redundant],
            "fact_test": self.fact_test.to_dict(),
        }

    @property
    def given(self) -> tuple[GivenFacts, ...]:
        """All facts as they were given."""
        return self._given

    @property
    def manner(self) -> Manner:
        """How the facts are meant."""
        return self._manner

    @property
    def rows(self) -> ReleaseFacts:
        """All facts that were given, as sums of cells."""
        return join_facts(self.schema, [part.rows for part in self._given])

    def __repr__(self) -> str:
        known = f"{len(self.facts):,} known {'fact' if len(self.facts) == 1 else 'facts'}"
        return f"Refined{super().__repr__().removesuffix(')')} Refined with {known}.)"

    def sum(
        self, attribute: str, *, where: Query | None = None, estimator: str = "best", confidence: float = 0.95
    ) -> Answer:
        """Estimate the sum of an ordinal attribute, missing and other values aside.

        Value and interval are those of the equalities, cut to what inequalities leave.
        """
        found = super().sum(attribute, where=where, estimator=estimator, confidence=confidence)
        ranges, axis = self._imposed.ranges, self.schema.axis(attribute)
        ordinal = self.schema.attributes[axis]
        if ranges is None or not isinstance(ordinal, Ordinal):
            return found
        regular = Region.on_axis(self.schema.shape, axis, ordinal.mask(0, ordinal.regular_size))
        region = read_query(self.schema, where if where is not None else {}).intersect(regular)
        values = np.zeros((2, ordinal.size))
        values[:, : ordinal.regular_size] = ordinal.spans()
        least, greatest = ranges.of_values(region, axis, *values)
        value, half = float(np.clip(found.value, least, greatest)), (found.high - found.low) / 2
        # A value that moved would be left with a sliver of its interval: it reaches as far as before, then it is cut.
        reach = half if value != found.value else 0.0
        low, high = np.clip([min(found.low, value - reach), max(found.high, value + reach)], least, greatest)
        return replace(found, value=value, low=float(low), high=float(high))

    def synthesize(
        self,
        n: int | None = None,
        path: str | Path | None = None,
        progress: Callable[[float | None], None] | None = None,
    ) -> "pd.DataFrame | Path":
        """Draw n rows (as many as the refined release counts, unless said) that follow what was measured and the facts.

        The model of maximum entropy is fitted to the measurements, with the facts as exact answers; inequalities that
        bind count as equalities. Without a path the rows come as a pandas frame; with one they are written to a file.
        """
        target = read_target(path, progress)
        count = None if n is None else read_number_of_rows(n)
        # A staged tree is too uneven for its total to be read off its measurements alone.
        total = max(float(np.asarray(self.count().value)), 1.0) if self.record.is_staged else None
        return MaxEntropy().fit(self.drawn_from, total).synthesize(count, target, progress)

    @cached_property
    def _guarantee(self) -> Guarantee:
        raise QueryError("a refined release has no guaranteed intervals; ask the release itself, .unrefined, for them")

    def _estimate(self, name: str) -> Estimate:
        if not isinstance(name, str) or name not in self._chosen:
            raise QueryError(
                f"a refined release has one estimator, '{ESTIMATOR}'; ask .unrefined for those of the release itself"
            )
        return super()._estimate(name)


@dataclass(frozen=True, eq=False)
class _Course:
    """The estimator of a refined release, fitted already."""

    estimate: Estimate

    @property
    def name(self) -> str:
        """The word that users call it by."""
        return ESTIMATOR

    def can_read(self, record: ReleaseRecord) -> bool:
        """Whether there is something to read: it was fitted to the only record that it is asked about."""
        return bool(record.measurements)

    def fit(self, record: ReleaseRecord) -> Estimate:
        """Return the answers that were found."""
        del record
        return self.estimate
