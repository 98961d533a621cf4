"""Wavelets as a strategy: Privelet and Privelet+ (Xiao, Wang and Gehrke 2011), with flat attributes by exact error.

Ordinal attributes get the Haar transform, nominal ones the nominal transform of their hierarchy, flat ones none (the
paper's S_A). The error of a query is the product over the attributes of what each answers for, so all subsets of
attributes are compared exactly and not by the paper's bound.
"""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import combinations
from typing import Literal, NamedTuple, TypeAlias, get_args

import numpy as np

from veilcube.errors import PlanError
from veilcube.operators import (
    AxisOperator,
    FlatAxis,
    HaarAxis,
    NominalAxis,
    Operator,
    ProductOperator,
    hierarchy_levels,
)
from veilcube.planner.design import Family, MeasuredOnce, default_workload
from veilcube.privacy import LARGEST_COLUMN
from veilcube.query import Workload
from veilcube.schema import Attribute, Nominal, Schema
from veilcube.system import Floats, did_you_mean

Thresholding: TypeAlias = Literal["pooled", "separate"]

# The common multiples of several hierarchies multiply: together they stay below this.
LARGEST_MULTIPLES = 2**21
# All subsets of so many attributes are compared; shorter ones beyond them stay flat.
MOST_FREE = 14
MOST_OPTIONS = 16


@dataclass(frozen=True)
class Wavelet(MeasuredOnce):
    """Measure how halves and siblings differ: best for ranges on long attributes.

    ``flat`` names the attributes that are not transformed; "auto" takes those with the least exact error over the
    workload. ``threshold=True`` makes Privelet*, the soft-thresholded estimate, what the release answers with; the
    plain one stays available. Thresholds are "pooled" over the cells of flat attributes unless they are "separate".

    >>> Wavelet(flat=["sex"]).name
    'wavelet'
    """

    flat: str | Sequence[str] = "auto"
    threshold: bool | Thresholding = False
    is_identity: bool = field(default=False, compare=False, repr=False, kw_only=True)

    def __post_init__(self) -> None:
        object.__setattr__(self, "flat", _read_flat(self.flat))
        object.__setattr__(self, "threshold", _read_threshold(self.threshold))

    @property
    def name(self) -> str:
        """The word that users and files call it by."""
        return "wavelet"

    @property
    def summary(self) -> str:
        """What is measured, in few words."""
        flat = "chosen by the planner" if self.flat == "auto" else ", ".join(self.flat) or "none"
        return f"differences of halves and siblings; flat: {flat}{', which is the identity' * self.is_identity}"

    def operator(self, schema: Schema) -> Operator:
        """Return the product of the attributes' transforms; what is left open is chosen for random ranges."""
        if self.flat == "auto":
            return self.options(schema, default_workload(schema))[0].operator(schema)
        operator = ProductOperator(_axes(schema, self._flat_in(schema)), schema.names)
        if operator.column_sum > LARGEST_COLUMN:
            raise PlanError(
                "the wavelet coefficients of this cube could leave 64 bits; name more attributes as flat, "
                "such as those with a hierarchy"
            )
        return operator

    def options(self, schema: Schema, workload: Workload, family: Family = "laplace") -> "tuple[Wavelet, ...]":
        """Return the strategy with its flat attributes chosen for a family of noise, the most promising first."""
        if self.flat != "auto":
            return (replace(self, flat=self._flat_in(schema)),)
        wide = {attribute.name for attribute in schema if attribute.size > 1}
        found = _best_subsets(schema, workload, family)
        return tuple(replace(self, flat=names, is_identity=wide <= set(names)) for names in found)

    def candidates(self, schema: Schema, workload: Workload, family: Family = "laplace") -> "tuple[Wavelet, ...]":
        """Return the choices of flat attributes to compare."""
        return self.options(schema, workload, family)

    def to_dict(self) -> dict[str, object]:
        """Return the plain data that describes it."""
        flat = self.flat if isinstance(self.flat, str) else list(self.flat)
        return {"name": self.name, "flat": flat, "threshold": self.threshold}

    def _flat_in(self, schema: Schema) -> tuple[str, ...]:
        unknown = [name for name in self.flat if name not in schema.names]
        if unknown:
            hint, known = did_you_mean(unknown[0], schema.names), ", ".join(schema.names)
            raise PlanError(f"there is no attribute '{unknown[0]}' to keep flat; {hint}the schema has {known}")
        return tuple(name for name in schema.names if name in self.flat)


def _read_flat(value: object) -> str | tuple[str, ...]:
    if isinstance(value, str):
        return value if value == "auto" else (value,)
    if isinstance(value, Iterable) and not isinstance(value, bytes):
        names = tuple(value)
        if all(isinstance(name, str) for name in names):
            return tuple(dict.fromkeys(names))
    raise PlanError("flat must be 'auto' or a list of names of attributes; an empty list keeps none flat")


def _read_threshold(value: object) -> bool | Thresholding:
    if isinstance(value, bool | np.bool_):
        return "pooled" if value else False
    if isinstance(value, str):
        for word in get_args(Thresholding):
            if value == word:
                return word  # type: ignore[no-any-return]
    raise PlanError("threshold must be True, False, 'pooled' or 'separate'")


@lru_cache(maxsize=64)
def _flat_axis(size: int) -> FlatAxis:
    return FlatAxis(size)


def _axes(schema: Schema, flat: Collection[str]) -> tuple[AxisOperator, ...]:
    """Return the transform of each attribute; hierarchies share the room that whole multipliers may take."""
    trees = sum(isinstance(item, Nominal) and item.size > 1 and item.name not in flat for item in schema)
    limit = int(LARGEST_MULTIPLES ** (1 / max(trees, 1)))
    return tuple(_flat_axis(item.size) if item.name in flat else _transform(item, limit) for item in schema)


@lru_cache(maxsize=256)
def _transform(attribute: Attribute, limit: int) -> AxisOperator:
    if attribute.size == 1:
        return _flat_axis(1)
    if isinstance(attribute, Nominal):
        levels = hierarchy_levels(attribute.hierarchy, attribute.size)[:-1]
        return NominalAxis(attribute.size, levels, largest_multiple=limit)
    return HaarAxis(attribute.size)


def _best_subsets(schema: Schema, workload: Workload, family: Family) -> list[tuple[str, ...]]:
    """Return the sets of flat attributes with the least error when rows come and go, the best first.

    When rows are exchanged, only the transform of ALL attributes has a sensitivity below twice its column's, so that
    one is always among them.
    """
    wide = sorted((item for item in schema if item.size > 1), key=lambda item: -item.size)
    free, always = [item.name for item in wide[:MOST_FREE]], [item.name for item in wide[MOST_FREE:]]
    errors, found = _Errors(workload, family), {}
    for count in range(len(free) + 1):
        for chosen in combinations(free, count):
            flat = tuple(name for name in schema.names if name in chosen or name in always)
            error = errors.mean(_axes(schema, flat))
            if error is not None:
                found[flat] = error
    ranked = sorted(found, key=found.__getitem__)
    return ranked[:MOST_OPTIONS] + [flat for flat in ranked[MOST_OPTIONS:] if not flat]


class _Errors:
    """The mean error of a workload under products of transforms: what each axis answers for is found once.

    A block's variance is a product over the axes; that of a union of boxes is the sum over pairs of boxes of products
    of inner products of their noise weights.
    """

    def __init__(self, workload: Workload, family: Family) -> None:
        self._family = family
        self._blocks = np.ones(len(workload), dtype=np.bool_)
        self._blocks[list(workload.regions)] = False
        self._low, self._high = workload.low[self._blocks], workload.high[self._blocks]
        self._regions = list(workload.regions.values())
        weights = workload.weights
        self._weights = [weights[self._blocks], *(weights[row] for row in workload.regions)]
        self._known: dict[tuple[int, int], _AxisFactors] = {}

    def mean(self, axes: Sequence[AxisOperator]) -> float | None:
        """Return the mean variance under noise that is scaled to the columns' norm; None if that is too large."""
        norm, squared, factors = 1, 1, self._weights
        for place, axis in enumerate(axes):
            own = self._factors(place, axis)
            norm, squared = norm * own.norm, squared * own.squared
            factors = [ours * theirs for ours, theirs in zip(factors, own.factors, strict=True)]
        if norm > LARGEST_COLUMN:
            return None
        total = sum(float(factor.sum()) for factor in factors)
        price = float(norm) ** 2 if self._family == "laplace" else float(squared)
        return price * total / (len(self._low) + len(self._regions))

    def _factors(self, place: int, axis: AxisOperator) -> "_AxisFactors":
        key = place, id(axis)
        if key not in self._known:
            own = [axis.variance_of_ranges(self._low[:, place], self._high[:, place])]
            for region in self._regions:
                masks = np.array([box.mask(place) for box in region.boxes], dtype=np.float64)
                weights = axis.noise_weights(masks.reshape(-1, axis.size))  # a region of nobody has no boxes
                own.append(weights @ weights.T)
            squared = 1 if self._family == "laplace" else axis.largest_square
            self._known[key] = _AxisFactors(axis, axis.largest_column, squared, own)
        return self._known[key]


class _AxisFactors(NamedTuple):
    """The norms of an axis, its variances of all blocks, and the inner products of each region's boxes.

    The L1 norm of a column bounds what is measured, whatever the noise; the squared L2 norm prices Gaussian noise.
    """

    axis: AxisOperator
    norm: int
    squared: int
    factors: list[Floats]
