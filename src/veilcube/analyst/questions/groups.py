"""Statistics by group: one question for each combination of groups, each with its own interval."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

import numpy as np

from veilcube.analyst.estimate import Estimates
from veilcube.analyst.questions.asking import Asking
from veilcube.analyst.questions.contrasts import share_of
from veilcube.analyst.questions.quantile import DateAnswer, DateAnswers
from veilcube.analyst.questions.spread import variance_of
from veilcube.errors import QueryError
from veilcube.query import (
    Answer,
    Answers,
    Query,
    grouped_regions,
    held_groups,
    read_query,
)
from veilcube.schema import Box, Grouping, Ordinal, Region, Schema, read_groupings, require_groups
from veilcube.system import Integers, show

# Each group is a question of its own, of some milliseconds.
MOST_GROUPS = 10_000
STATISTICS = ("count", "share", "sum", "mean", "variance", "median", "quantile")
_OF_A_COLUMN = ("sum", "mean", "variance", "median", "quantile")
_Found: TypeAlias = Answer | DateAnswer | None


@dataclass(frozen=True)
class Statistic:
    """What is asked about each group: checked, so that nothing is left over that would be passed over in silence."""

    name: str
    column: str | None = None
    rank: float | None = None
    condition: Region | None = None

    @classmethod
    def read(cls, schema: Schema, name: object, column: object, rank: object, condition: Query | None) -> "Statistic":
        """Check what is asked."""
        if not isinstance(name, str) or name not in STATISTICS:
            raise QueryError(f"the statistic must be one of {', '.join(STATISTICS)}, not {show(name)}")
        if (name in _OF_A_COLUMN) != (column is not None):
            needed = f"needs column=, the attribute to take the {name} of" if column is None else "takes no column="
            raise QueryError(f"the statistic '{name}' {needed}")
        if rank is not None and name != "quantile":
            raise QueryError(f"the statistic '{name}' takes no rank=; a quantile does")
        if condition is not None and name != "share":
            raise QueryError(f"the statistic '{name}' takes no condition; a share does, and where= is for all of them")
        if column is not None and not isinstance(schema.attributes[schema.axis(column)], Ordinal):  # type: ignore[arg-type]
            raise QueryError(f"{show(column)} has no order, so it has no {name}; ask for its share or its count")
        region = None if condition is None else read_query(schema, condition)
        return cls(name, column, 0.5 if rank is None else rank, region)  # type: ignore[arg-type]


@dataclass(frozen=True)
class GroupedQuestion:
    """A statistic of the rows of a region, asked of each group of them."""

    release: Asking
    statistic: Statistic
    among: Region
    estimator: str
    confidence: float

    def answers(self, by: Sequence[str] | str) -> Answers:
        """Return the statistic of every group that holds any cell."""
        schema = self.release.schema
        groupings = read_groupings(schema, [by] if isinstance(by, str) else by)
        if not groupings:
            raise QueryError(f"by= needs at least one attribute of {', '.join(schema.names)}")
        names = tuple(grouping.name for grouping in groupings)
        if self.statistic.name == "count":
            return self.release._grouped(self.among, names, self.estimator, self.confidence)
        require_groups(groupings, MOST_GROUPS, "group by fewer attributes, or by a level of a hierarchy")
        regions = grouped_regions(schema, self.among, names)
        sizes = np.array([min(group.cells, 1) for group in regions]).reshape([len(one) for one in groupings])
        return self._arranged(groupings, sizes, [self._one(group) for group in regions])

    def _one(self, group: Region) -> _Found:
        """Return the statistic of one group; None where nobody can be, so that there is nobody to take it of."""
        statistic, release = self.statistic, self.release
        counted = group.intersect(self._regular)
        nobody = not counted.cells or any(_lies_in(counted, region) for region in self._impossible)
        if statistic.name == "sum" or (statistic.name == "share" and statistic.condition is None):
            if nobody:
                return Answer(0.0, 0.0, 0.0, self.confidence, 0.0)
        elif nobody:
            return None
        if statistic.name == "share":
            inside, whole = (group, self.among) if statistic.condition is None else (statistic.condition, group)
            return share_of(release, inside, whole, self.estimator, self.confidence)
        column = str(statistic.column)
        if statistic.name == "variance":
            return variance_of(release, column, group, self.estimator, self.confidence)
        if statistic.name in ("median", "quantile"):
            how = {"estimator": self.estimator, "confidence": self.confidence}
            return release.quantile(column, statistic.rank, where=group, **how)  # type: ignore[arg-type]
        ask = release.sum if statistic.name == "sum" else release.mean
        return ask(column, where=group, estimator=self.estimator, confidence=self.confidence)

    @cached_property
    def _regular(self) -> Region:
        """The rows that have a value, where the statistic is of a column."""
        schema, column = self.release.schema, self.statistic.column
        if column is None:
            return Region.everything(schema.shape)
        axis = schema.axis(column)
        attribute = schema.attributes[axis]
        return Region.on_axis(schema.shape, axis, attribute.mask(0, attribute.regular_size))

    @cached_property
    def _impossible(self) -> tuple[Region, ...]:
        """What the schema forbids, as regions."""
        shape = self.release.schema.shape
        return tuple(
            Region(shape, (Box(shape, tuple(None if mask.all() else mask for mask in masks)),))
            for masks in self.release.schema.impossible_boxes
        )

    def _arranged(self, groupings: Sequence[Grouping], sizes: Integers, found: Sequence[_Found]) -> Answers:
        """Lay single answers out along the groups' axes, those left out that hold no cell."""
        held, labels = held_groups(groupings, sizes)
        release, estimator = self.release, self.estimator
        if self._is_of_dates:
            none = np.datetime64("NaT", "D")
            ends = [
                np.array([none if one is None else getattr(one, name) for one in found], dtype="datetime64[D]")
                for name in ("value", "low", "high")
            ]
            value, low, high = (part.reshape(sizes.shape)[held] for part in ends)
            return DateAnswers(value, low, high, np.full(value.shape, np.nan), self.confidence, release._words, labels)
        numbers = [
            np.array([np.nan if one is None else getattr(one, name) for one in found], dtype=np.float64)
            for name in ("value", "low", "high", "stddev")
        ]
        value, low, high, stddev = (part.reshape(sizes.shape)[held] for part in numbers)
        release._estimate(estimator)  # so that its name is known where nobody was asked about
        return release._many(Estimates(value, low, high, stddev), self.confidence, estimator, labels)

    @property
    def _is_of_dates(self) -> bool:
        column = self.statistic.column
        attribute = None if column is None else self.release.schema[column]
        return isinstance(attribute, Ordinal) and attribute.is_date


def _lies_in(region: Region, other: Region) -> bool:
    return region.intersect(other).cells == region.cells
