"""What maximum entropy learned from a history: a distribution that answers, is looked at, and makes rows."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from veilcube.analyst.history.kernel_pca import KernelPCAModel
from veilcube.analyst.history.max_entropy.answers import answer_queries
from veilcube.analyst.history.max_entropy.error import ErrorModel
from veilcube.analyst.history.max_entropy.segments import SegmentedUniverse, Segments, refine_errors
from veilcube.analyst.history.max_entropy.universe import Total, Universe, require_few_cells
from veilcube.analyst.synthesis import Rows, hand_over, read_number_of_rows, read_target
from veilcube.errors import QueryError
from veilcube.laws import widest_deviations
from veilcube.query import Answer, Answers, AnswersWorkloads, LinearQueries, Workload, read_confidence
from veilcube.schema import Schema
from veilcube.system import Floats

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Convergence:
    """How the fit went.

    ``misfit`` is the root mean square, in units of the noise, of how far the model is from the answers that it could
    meet (those not at a wall of the box); ``held`` is the share of answers at a wall. ``rounds`` counts iterations, or
    sweeps of all ``chains``.
    """

    engine: str
    alpha: float
    rounds: int
    chains: int | None
    misfit: float
    held: float
    converged: bool

    def __str__(self) -> str:
        work = (
            f"{self.rounds:,} iterations"
            if self.chains is None
            else f"{self.rounds:,} sweeps of {self.chains:,} chains"
        )
        state = "converged" if self.converged else "NOT converged"
        return (
            f"{state}: {self.engine} engine, alpha {self.alpha:.4g}, {work}; past answers that the model reproduces "
            f"are off by {self.misfit:.2g} of their noise, and {self.held:.0%} are not reproduced, because alpha keeps "
            "the model closer to its prior"
        )


@dataclass(frozen=True, eq=False)
class MaxEntropyModel(AnswersWorkloads):
    """A distribution over the cells of ``schema`` and a number of rows. ``weights`` are the w_i of the past queries.

    The weights are not unique where queries depend on each other; compare distributions, not weights.
    """

    schema: Schema
    weights: Floats
    convergence: Convergence
    privacy: str
    _universe: Universe
    _errors: ErrorModel
    _total: Total
    _beside: KernelPCAModel | None = None
    _segments: Segments | None = None

    def __repr__(self) -> str:
        return f"MaxEntropyModel({self.weights.size:,} answers over {', '.join(self.schema.names)}; {self.convergence})"

    @property
    def alpha(self) -> float:
        """How much the answers count against entropy."""
        return self.convergence.alpha

    @property
    def total(self) -> Answer:
        """The number of rows: as it was given, or as the history tells it."""
        return self.answer(LinearQueries.everything(self.schema))[0]

    def answer(self, workload: Workload | LinearQueries, confidence: float = 0.95) -> Answers:
        """Estimate the answers to past or new queries, thousands at once, with their standard deviations.

        These hold what noise and box leave unknown of the measured tables, the chains' Monte Carlo error, and the
        total's. How attributes depend on each other beyond what was measured is predicted, not known. Where the history
        is of ranges, intervals also hold those of kernel PCA, which say how much ranges leave open.
        """
        confidence = read_confidence(confidence)
        queries = LinearQueries.of(workload)
        if queries.schema != self.schema:
            raise QueryError("the queries are for another schema than the history; build them with the same schema")
        value, stddev = self._estimate(queries)
        deviations = widest_deviations(confidence)
        low, high = value - deviations * stddev, value + deviations * stddev
        if self._beside is not None:
            # The same answers read without entropy: where they leave more open, no entropy makes it known.
            other = self._beside.answer(queries, confidence)
            low, high = np.minimum(low, other.low), np.maximum(high, other.high)
            stddev = np.maximum(stddev, (high - low) / (2 * deviations))
        return Answers(value, low, high, stddev, confidence, self.privacy)

    def _estimate(self, queries: LinearQueries) -> tuple[Floats, Floats]:
        """Return expected counts and their standard deviations; queries may cut what was merged."""
        if self._segments is None:
            return answer_queries(queries, self._universe, self._errors, self._total)
        value, stddev = np.empty(len(queries)), np.empty(len(queries))
        for members, finer in self._segments.pieces(queries):
            universe = SegmentedUniverse(self._universe, self._segments, finer)
            errors = refine_errors(self._errors, self._segments, finer)
            value[members], stddev[members] = answer_queries(
                finer.merged(queries[members]), universe, errors, self._total
            )
        return value, stddev

    def distribution(self, names: Sequence[str] | str) -> Floats:
        """Return the estimated joint distribution of some attributes: one axis for each, adding up to 1."""
        listed = [names] if isinstance(names, str) else names
        if not isinstance(listed, Sequence):
            raise QueryError("a distribution is over a list of attributes; name them")
        axes = [self.schema.axis(name) for name in listed]
        if not axes or len(set(axes)) != len(axes):
            raise QueryError("a distribution is over one or more attributes, each named once")
        require_few_cells(prod(self.schema.shape[axis] for axis in axes))
        order = sorted(axes)
        universe: Universe = self._universe
        if self._segments is not None:
            universe = SegmentedUniverse(universe, self._segments, self._segments.cut_whole(order))
        found = universe.marginal(tuple(order))
        return np.transpose(found, [order.index(axis) for axis in axes])

    def rows(self, n: int) -> Iterator[Rows]:
        """Draw rows as cell numbers, a part at a time."""
        if self._segments is not None:
            return SegmentedUniverse(self._universe, self._segments, self._segments).rows(read_number_of_rows(n))
        return self._universe.rows(read_number_of_rows(n))

    def synthesize(
        self,
        n: int | None = None,
        path: str | Path | None = None,
        progress: Callable[[float | None], None] | None = None,
    ) -> "pd.DataFrame | Path":
        """Draw n rows (as many as the table has, unless said) with the types of the schema.

        Without a path they come as a pandas frame. With one they are written to a .csv, .csv.gz or .parquet file part
        by part, so their number is limited by the disk only.
        """
        target = read_target(path, progress)
        count = max(1, round(self._total.value)) if n is None else n
        return hand_over(self.schema, self.rows(count), int(count), target, self.privacy, progress)
