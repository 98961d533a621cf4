"""The release as an analyst meets it: a public record with questions on it."""

import logging
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from numbers import Real
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from veilcube.analyst import history, synthesis
from veilcube.analyst.cap import CapAnswers
from veilcube.analyst.check import ReleaseCheck
from veilcube.analyst.estimate import (
    Estimate,
    Estimates,
    Estimator,
    GroupedCounts,
    Guarantee,
    LatentClasses,
    MixtureEstimate,
    Nonnegative,
    choose_estimator,
    distribution_of_groups,
    mean_of_groups,
    quantile_of_groups,
)
from veilcube.analyst.export import Exports
from veilcube.analyst.quantile import DateAnswer, answer_distributive, locate_quantile
from veilcube.analyst.report import Reports
from veilcube.errors import QueryError
from veilcube.privacy import PrivacyStatement
from veilcube.query import (
    Answer,
    Answers,
    DistributiveQuery,
    Query,
    Workload,
    held_groups,
    read_confidence,
    read_marginal,
    read_query,
    read_question,
)
from veilcube.record import History, ReleaseRecord
from veilcube.schema import Bins, Ordinal, Region, Schema, attributes_as_html
from veilcube.system import read_kind, show

if TYPE_CHECKING:
    import pandas as pd

_log = logging.getLogger(__name__)


class Release(CapAnswers, Exports, Reports):
    """A differentially private release: any number of questions, at no further cost in privacy."""

    def __init__(self, record: ReleaseRecord) -> None:
        self._record = read_kind(record, ReleaseRecord, "a release is made of a ReleaseRecord")
        self._telling = self._record.telling
        self._chosen: dict[str, Estimator] = {}
        self._fitted: dict[str, Estimate] = {}

    @property
    def record(self) -> ReleaseRecord:
        """The plain public data behind the release."""
        return self._record

    @property
    def schema(self) -> Schema:
        """The public description of the table."""
        return self._record.schema

    @property
    def privacy(self) -> PrivacyStatement:
        """The promise, in words (``str``) and as data."""
        return self._record.statement

    @property
    def plan(self) -> Mapping[str, object]:
        """The plan it was made from, as plain data."""
        return self._record.plan

    @property
    def counted(self) -> str | None:
        """What a reader must know about the rows behind the counts: a sentence for a person unit, None for rows."""
        counted = self.privacy.unit.counted
        if counted is None or self._record.cap is None:
            return counted
        return f"{counted} How many those are was measured, so that answers can also be given for all rows."

    @property
    def refinement(self) -> Mapping[str, object] | None:
        """The known facts that its answers obey, as plain data; None but for a refined release."""
        return None

    @property
    def has_model(self) -> bool:
        """Whether a model of the whole table answers it, from which rows can be drawn: on grouped tables."""
        return LatentClasses().can_read(self._telling)

    @cached_property
    def answered(self) -> History:
        """Every measurement as a linear query with its noisy value: what models learn from."""
        return History.of_release(self._record)

    @property
    def drawn_from(self) -> History:
        """What a model of all rows is fitted to before synthetic rows are drawn from it."""
        return self.answered

    @cached_property
    def _words(self) -> str:
        return self.privacy.words

    def __repr__(self) -> str:
        return f"Release({', '.join(self.schema.names)}: {self.schema.cells:,} cells; {self._words})"

    def _repr_html_(self) -> str:
        words = f"{self._words} {self.counted or ''}".strip()
        return attributes_as_html(f"{type(self).__name__}: {self.schema.cells:,} cells", self.schema, words)

    def count(
        self,
        query: Query | None = None,
        *,
        estimator: str = "best",
        confidence: float = 0.95,
        interval: str = "calibrated",
        rows: str = "kept",
        spread: float | None = None,
        **conditions: object,
    ) -> Answer | Answers:
        """Estimate how many rows meet a condition.

        ``interval="guaranteed"`` gives an interval that holds whatever the data are, from the noise alone.
        ``rows="all"`` asks for all rows of a person, those beyond the cap too, where the release measured them; with
        a ``spread`` of 2 dropped rows are taken to be at most twice as frequent, or as rare, as kept ones are.

        The condition is given by keywords (``age=(30, 39), sex="Female"``), as a mapping, or as SQL text: a WHERE
        condition or a whole ``SELECT COUNT(*) ...``. SQL with GROUP BY gives ``Answers``, one per group.
        """
        region, group_by = read_question(self.schema, query, conditions)
        if group_by:
            if _is_guaranteed(interval):
                raise QueryError("guaranteed intervals are for single counts and workloads; leave out GROUP BY")
            return self._grouped(region, group_by, estimator, confidence, rows, spread)
        of_all = self._all_rows(rows, spread, confidence)
        level = read_confidence(confidence) if of_all is None else of_all.of_kept
        found = self._estimate(estimator).region(region, level)
        if _is_guaranteed(interval):
            found = self._guarantee.region(found, region, level)
        if of_all is not None:
            found = self._for_all_rows(of_all, found, np.array(float(region.cells)), estimator)
        return self._many(found, confidence, estimator)[()]

    def answer(
        self,
        workload: Workload,
        *,
        estimator: str = "best",
        confidence: float = 0.95,
        interval: str = "calibrated",
        rows: str = "kept",
        spread: float | None = None,
    ) -> Answers:
        """Estimate every query of a workload at once, ``interval``, ``rows`` and ``spread`` as in ``count``."""
        if not isinstance(workload, Workload):
            raise QueryError("release.answer takes a veilcube.Workload; use release.count for a single query")
        if workload.schema != self.schema:
            raise QueryError("the workload is for another schema; build it with release.schema")
        of_all = self._all_rows(rows, spread, confidence)
        level = read_confidence(confidence) if of_all is None else of_all.of_kept
        fitted = self._estimate(estimator)
        guarantee = self._guarantee if _is_guaranteed(interval) else None
        found = fitted.rectangles(workload.low, workload.high, level)
        if guarantee is not None:
            found = guarantee.rectangles(found, workload.low, workload.high, level)
        for row, region in workload.regions.items():
            single = fitted.region(region, level)
            if guarantee is not None:
                single = guarantee.region(single, region, level)
            for name in ("value", "low", "high", "stddev"):
                getattr(found, name)[row] = getattr(single, name)
        if of_all is not None:
            sizes = np.maximum(workload.high - workload.low + 1, 0).astype(np.float64).prod(axis=1)
            for row, region in workload.regions.items():
                sizes[row] = region.cells
            found = self._for_all_rows(of_all, found, sizes, estimator)
        return self._many(found, confidence, estimator)

    def marginal(
        self,
        *names: str,
        where: Query | None = None,
        estimator: str = "best",
        confidence: float = 0.95,
        rows: str = "kept",
        spread: float | None = None,
    ) -> Answers:
        """Estimate the counts of every combination of the named attributes' cells, the others summed out.

        ``rows`` and ``spread`` are as in ``count``.
        """
        return self._grouped(*read_marginal(self.schema, names, where), estimator, confidence, rows, spread)

    def sum(
        self, attribute: str, *, where: Query | None = None, estimator: str = "best", confidence: float = 0.95
    ) -> Answer:
        """Estimate the sum of an ordinal attribute, missing and other values aside.

        A bin counts as its middle, and the interval also covers where in their bins the values may lie.
        """
        ordinal, groups = self._ordinal_groups(attribute, where, estimator, may_be_empty=True)
        centres = ordinal.centres()
        value, stddev = float((centres * groups.counts).sum()), float(np.sqrt(groups.variance_of(centres)))
        least, largest = ordinal.spans()
        low = float((least * groups.counts).sum()) - groups.half_width_of(least, read_confidence(confidence))
        high = float((largest * groups.counts).sum()) + groups.half_width_of(largest, confidence)
        return Answer(value, min(low, value), max(high, value), confidence, stddev, self._words)

    def mean(
        self, attribute: str, *, where: Query | None = None, estimator: str = "best", confidence: float = 0.95
    ) -> Answer:
        """Estimate the mean of an ordinal attribute, missing and other values aside.

        A bin counts as its middle, and the interval also covers where in their bins the values may lie.
        """
        ordinal, groups = self._ordinal_groups(attribute, where, estimator)
        found = mean_of_groups(groups, ordinal.centres(), read_confidence(confidence))
        low, high = found.low, found.high
        if isinstance(ordinal.division, Bins):
            least, largest = ordinal.spans()
            low = min(low, mean_of_groups(groups, least, confidence).low)
            high = max(high, mean_of_groups(groups, largest, confidence).high)
        return Answer(found.value, low, high, confidence, found.stddev, self._words)

    def quantile(
        self,
        attribute: str,
        rank: float = 0.5,
        *,
        where: Query | None = None,
        estimator: str = "best",
        confidence: float = 0.95,
    ) -> Answer | DateAnswer:
        """Estimate the least value of an ordinal attribute that a share ``rank`` of the rows does not exceed."""
        if isinstance(rank, bool) or not isinstance(rank, Real) or not 0.0 <= rank <= 1.0:
            raise QueryError("the rank of a quantile lies between 0 and 1, 0.5 being the median")
        ordinal, groups = self._ordinal_groups(attribute, where, estimator)
        cells = quantile_of_groups(groups, rank, read_confidence(confidence))
        return locate_quantile(ordinal, cells, confidence, self._words)

    def cdf(
        self, attribute: str, *, where: Query | None = None, estimator: str = "best", confidence: float = 0.95
    ) -> Answers:
        """Estimate, for every cell of an ordinal attribute, the share of rows at or below it."""
        ordinal, groups = self._ordinal_groups(attribute, where, estimator)
        found = distribution_of_groups(groups, read_confidence(confidence))
        labels = {ordinal.name: tuple(ordinal.labels()[: ordinal.regular_size])}
        return self._many(found, confidence, estimator, labels)

    def distributive(
        self,
        query: DistributiveQuery,
        attribute: str,
        *,
        where: Query | None = None,
        estimator: str = "best",
        confidence: float = 0.95,
    ) -> Answer:
        """Estimate a distributive query whose parts add up, such as a clipped sum, over an attribute's values."""
        axis = self.schema.axis(attribute)
        asked = self.schema.attributes[axis]

        def read_groups() -> GroupedCounts:
            region = read_query(self.schema, where if where is not None else {})
            return self._estimate(estimator).grouped(region, [axis]).first(asked.regular_size)

        return answer_distributive(query, asked, read_groups, read_confidence(confidence), self._words)

    def check(self, *, estimator: str = "best") -> ReleaseCheck:
        """Tell how well what the answers rest on agrees with what was measured, by kind of question."""
        fitted = self._estimate(estimator)
        return ReleaseCheck.of(self._chosen[estimator].name, fitted, self.schema.names)

    def synthesize(
        self,
        n: int | None = None,
        path: str | Path | None = None,
        progress: Callable[[float | None], None] | None = None,
    ) -> "pd.DataFrame | Path":
        """Draw n rows (as many as the table has, unless said) that follow what was measured.

        Grouped tables have a model to draw them from, or full cells; to other releases the model of maximum entropy is
        fitted first.
        Without a path they come as a pandas frame; with one they are written to a .csv, .csv.gz or .parquet file.
        """
        target = synthesis.read_target(path, progress)
        count = None if n is None else synthesis.read_number_of_rows(n)
        if self._telling is not self._record:
            cells = self._fit(Nonnegative()).cells()
            wanted = max(1, round(float(cells.sum()))) if count is None else count
            parts = synthesis.draw_cells(cells, wanted)
            return synthesis.hand_over(self.schema, parts, wanted, target, self._words, progress)
        if not self.has_model:
            return history.MaxEntropy().fit(self).synthesize(count, target, progress)
        fitted = self._fit(LatentClasses())
        if not isinstance(fitted, MixtureEstimate):
            raise TypeError("latent classes give a mixture")
        wanted = max(1, round(fitted.model.rows)) if count is None else count
        return synthesis.hand_over(self.schema, fitted.draw_rows(wanted), wanted, target, self._words, progress)

    @cached_property
    def _guarantee(self) -> Guarantee:
        return Guarantee(self._telling)

    def _estimate(self, name: str) -> Estimate:
        if not isinstance(name, str) or name not in self._chosen:
            self._chosen[name] = choose_estimator(self._telling, name, self._fit)
        return self._fit(self._chosen[name])

    def _fit(self, estimator: Estimator) -> Estimate:
        if estimator.name not in self._fitted:
            _log.info("fitting the estimator %s to the release", estimator.name)
            self._fitted[estimator.name] = estimator.fit(self._telling)
        return self._fitted[estimator.name]

    def _grouped(
        self,
        region: Region,
        names: Sequence[str],
        estimator: str,
        confidence: float,
        rows: str = "kept",
        spread: float | None = None,
    ) -> Answers:
        axes = self.schema.axes(names)
        groups = self._estimate(estimator).grouped(region, axes)
        held, labels = held_groups(self.schema, axes, groups.sizes)
        of_all = self._all_rows(rows, spread, confidence)
        found = groups.estimates(read_confidence(confidence) if of_all is None else of_all.of_kept)
        kept = Estimates(found.value[held], found.low[held], found.high[held], found.stddev[held], found.estimator)
        if of_all is not None:
            kept = self._for_all_rows(of_all, kept, groups.sizes[held].astype(np.float64), estimator)
        return self._many(kept, confidence, estimator, labels)

    def _ordinal_groups(
        self, attribute: str, where: Query | None, estimator: str, *, may_be_empty: bool = False
    ) -> tuple[Ordinal, GroupedCounts]:
        axis = self.schema.axis(attribute)
        ordinal = self.schema.attributes[axis]
        if not isinstance(ordinal, Ordinal):
            raise QueryError(f"'{attribute}' has no order, so it has no sum, mean or quantile; ask for its marginal")
        region = read_query(self.schema, where if where is not None else {})
        regular = Region.on_axis(self.schema.shape, axis, ordinal.mask(0, ordinal.regular_size))
        region = region.intersect(regular)
        if not region.cells and not may_be_empty:
            raise QueryError(
                f"the condition selects no cell of '{attribute}', so there is nobody to take a mean or a quantile of; "
                "widen the condition"
            )
        groups = self._estimate(estimator).grouped(region, [axis])
        return ordinal, groups.first(ordinal.regular_size)

    def _many(
        self, found: Estimates, confidence: float, asked: str, axes: Mapping[str, tuple[str, ...]] | None = None
    ) -> Answers:
        arrays = (found.value, found.low, found.high, found.stddev)
        return Answers(*arrays, confidence, self._words, axes or {}, found.estimator or self._chosen[asked].name)


def _is_guaranteed(interval: str) -> bool:
    if not isinstance(interval, str) or interval not in ("calibrated", "guaranteed"):
        raise QueryError(f"the interval must be 'calibrated' or 'guaranteed', not {show(interval)}")
    return interval == "guaranteed"
