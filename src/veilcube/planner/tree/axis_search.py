"""The search on one attribute: which tree, with which weights, has the least error on weighted ranges."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from veilcube.planner.design import Family, in_lowest_terms, shares, whole_multipliers
from veilcube.planner.tree.axis_options import (
    MOST_CELLS_TO_OPTIMISE,
    AxisTree,
    Branches,
    count_levels,
    inner_levels_of,
    merge_levels,
)
from veilcube.planner.tree.classes import TreeClasses
from veilcube.planner.tree.loops import PackedRanges
from veilcube.schema import Attribute
from veilcube.system import Floats, Integers

KEPT_OPTIONS = 3
RANGES_FOR_SCREENING = 800
LIGHT_WEIGHT = 0.04
WORTH_A_LEVEL = 2e-3


@dataclass(frozen=True)
class Wish:
    """What is asked for on one attribute: the trees to try, and the multipliers where they are given.

    ``may_merge`` allows to leave out levels that get next to no weight.
    """

    options: tuple[Branches, ...]
    multipliers: tuple[int, ...] | None = None
    may_merge: bool = False


@dataclass(frozen=True, eq=False)
class Ranges:
    """The distinct ranges of a workload on one attribute, and which of them each query has."""

    low: Integers
    high: Integers
    of_query: Integers

    @classmethod
    def of(cls, low: Integers, high: Integers) -> "Ranges":
        """Find the distinct ranges."""
        pairs, of_query = np.unique(np.stack([low, high], axis=1), axis=0, return_inverse=True)
        return cls(np.ascontiguousarray(pairs[:, 0]), np.ascontiguousarray(pairs[:, 1]), of_query.reshape(-1))

    def cost(self, weight: Floats) -> Floats:
        """Sum the weights of the queries that have the same range."""
        return np.bincount(self.of_query, weight, minlength=self.low.size).astype(np.float64)

    def sample(self, cost: Floats, variances: Floats) -> tuple[Integers, Floats]:
        """Return the positions and costs of ranges that stand for all, enough to tell good trees from bad ones.

        Drawn systematically in proportion to their part of the present error and weighed accordingly, so that the few
        ranges that matter most (often the whole attribute) are always among them.
        """
        if self.low.size <= RANGES_FOR_SCREENING:
            return np.arange(self.low.size), cost
        parts = cost * variances
        upto = np.cumsum(parts)
        marks = (np.arange(RANGES_FOR_SCREENING) + 0.5) * (upto[-1] / RANGES_FOR_SCREENING)
        chosen, times = np.unique(np.searchsorted(upto, marks), return_counts=True)
        return chosen, times * (upto[-1] / RANGES_FOR_SCREENING) / variances[chosen]


@dataclass(frozen=True, eq=False)
class Option:
    """A tree over one attribute with weights θ of norm 1; ``error`` is Σ cost · variance."""

    branches: Branches
    theta: Floats
    error: float
    classes: TreeClasses | None = None
    packed: PackedRanges | None = None

    @property
    def key(self) -> tuple[Branches, bool]:
        """What tells trees apart: the levels, and whether the total is one of them."""
        return self.branches, self.classes is None or self.classes.measures_total


@dataclass(frozen=True, eq=False)
class AxisSearch:
    """Searches one attribute; the workload's queries are weighed by what the other attributes make of them."""

    attribute: Attribute
    wish: Wish
    ranges: Ranges
    family: Family = "laplace"

    @property
    def is_searched(self) -> bool:
        """Whether there is anything to choose, and the attribute is not too large for it."""
        is_open = self.wish.multipliers is None or len(self.wish.options) > 1
        return is_open and self.attribute.size <= MOST_CELLS_TO_OPTIMISE

    def start(self) -> Option:
        """Return a tree to begin with: the one in the middle of the list, with equal weights or those given."""
        branches = self.wish.options[len(self.wish.options) // 2]
        levels = count_levels(self.attribute, branches)
        theta = np.array(self.wish.multipliers or (1,) * levels, dtype=np.float64)
        return Option(branches, theta / theta.sum(), np.inf)

    def screen(self, present: Option, weight: Floats) -> tuple[list[Option], int]:
        """Try every tree on some of the ranges; return the best few, best first, and how many were tried."""
        sample, cost = self.ranges.sample(self.ranges.cost(weight), self.variances(present))
        tried: dict[tuple[Branches, bool], Option] = {}
        waiting = [(branches, True) for branches in reversed(self.wish.options)]
        while waiting:
            key = waiting.pop()
            if key not in tried:
                tried[key] = self._try(*key, sample, cost)
                waiting += self._lighter(tried[key])
        # A tree that might as well do without a level was tried without it; flat stays, whatever the others do now.
        distinct = [option for option in tried.values() if not self._lighter(option)] or list(tried.values())
        best = sorted(distinct, key=_preference)
        kept = [option for rank, option in enumerate(best) if rank < KEPT_OPTIONS or option.branches == "flat"]
        return [self._on_all_ranges(option) for option in kept], len(tried)

    def improve(self, options: Sequence[Option], weight: Floats) -> list[Option]:
        """Optimise the weights of some trees further, on all ranges; return the best first."""
        cost = self.ranges.cost(weight)
        better: dict[tuple[Branches, bool], Option] = {}
        waiting = list(options)
        while waiting:
            option = self._optimised(waiting.pop(0), cost)
            better[option.key] = option
            lighter = self._lighter(option)
            known = {*better, *(other.key for other in waiting)}
            waiting += [self._option(*key) for key in lighter if key not in known]
        return sorted(better.values(), key=_preference)

    def _optimised(self, option: Option, cost: Floats) -> Option:
        if self.wish.multipliers is not None or option.classes is None or option.packed is None:
            return replace(option, error=float(cost @ self.variances(option)))
        theta, error = option.classes.optimise(option.packed, cost, option.theta, self.family)
        return replace(option, theta=theta, error=error)

    def _option(self, branches: Branches, measures_total: bool) -> Option:
        classes = TreeClasses(inner_levels_of(self.attribute, branches), measures_total)
        return self._on_all_ranges(Option(branches, np.ones(classes.weights), np.inf, classes))

    def variances(self, option: Option, theta: Floats | None = None) -> Floats:
        """Return the variance of each distinct range."""
        if option.branches == "flat" or self.attribute.size == 1:
            return (self.ranges.high - self.ranges.low + 1).astype(np.float64)
        weights = option.theta if theta is None else theta
        if option.classes is not None and option.packed is not None:
            return option.classes.variances(option.packed, weights)
        whole = in_lowest_terms(self.wish.multipliers or (1,) * weights.size)
        axis = AxisTree(option.branches, whole).operator(self.attribute)
        squared = float(sum(whole)) ** 2 if self.family == "laplace" else float(axis.largest_square)
        return axis.variance_of_ranges(self.ranges.low, self.ranges.high) * squared

    def round(self, option: Option, weight: Floats) -> tuple[AxisTree, Floats]:
        """Turn weights into the smallest whole multipliers that lose little; return them with the new variances."""
        if option.branches == "flat" or self.attribute.size == 1:
            return AxisTree("flat", (1,)), self.variances(option)
        if self.wish.multipliers is not None or option.classes is None:
            whole = in_lowest_terms(self.wish.multipliers or (1,) * option.theta.size)
            return AxisTree(option.branches, whole), self.variances(option)
        cost, price = self.ranges.cost(weight), option.classes.price(self.family)
        chosen = whole_multipliers(option.theta, lambda theta: float(cost @ self.variances(option, theta)), price)
        return AxisTree(option.branches, chosen), self.variances(option, shares(chosen, price))

    def _try(self, branches: Branches, measures_total: bool, sample: Integers, cost: Floats) -> Option:
        low, high = self.ranges.low[sample], self.ranges.high[sample]
        if branches == "flat" or self.attribute.size == 1:
            return Option("flat", np.ones(1), float(cost @ (high - low + 1)))
        classes = TreeClasses(inner_levels_of(self.attribute, branches), measures_total)
        ranges = classes.ranges(low, high)
        if self.wish.multipliers is not None:
            theta = shares(self.wish.multipliers, classes.price(self.family))
            return Option(branches, theta, float(cost @ classes.variances(ranges, theta)), classes)
        return Option(branches, *classes.optimise(ranges, cost, family=self.family), classes)

    def _on_all_ranges(self, option: Option) -> Option:
        if option.classes is None:
            return option
        return replace(option, packed=option.classes.ranges(self.ranges.low, self.ranges.high))

    def _lighter(self, option: Option) -> list[tuple[Branches, bool]]:
        """Return the trees without the levels that got next to no weight."""
        if self.wish.multipliers is not None or option.classes is None:
            return []
        has_total = option.classes.measures_total
        parts = option.classes.price(self.family).parts(option.theta)
        keeps_total = has_total and bool(parts[0] >= LIGHT_WEIGHT)
        found: list[tuple[Branches, bool]] = []
        if has_total and not keeps_total and option.theta.size > 2:
            found.append((option.branches, False))
        if self.wish.may_merge and isinstance(option.branches, tuple):
            inner = parts[1 if has_total else 0 : -1]
            merged = merge_levels(option.branches, tuple(bool(share < LIGHT_WEIGHT) for share in inner))
            if merged != option.branches:
                found.append((merged, keeps_total or merged == ()))
        return found


def _preference(option: Option) -> float:
    """A level must gain more than its keep: small numbers and few measurements are worth a little error."""
    return option.error * (1 + WORTH_A_LEVEL * option.theta.size)
