"""Trees of counts as a strategy: what a user may ask for, and what the search makes of it."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from numbers import Integral, Real
from typing import Protocol, TypeAlias

import numpy as np

from veilcube.errors import PlanError
from veilcube.operators import HalvingTree, Operator, ProductOperator, tree_fanouts
from veilcube.planner.design import (
    Design,
    Family,
    LinearDesign,
    StrategyDefaults,
    default_workload,
    multipliers_of,
    within_column,
)
from veilcube.planner.staged import can_stage, gaussian_weights, staged_design, staged_operator
from veilcube.planner.tree.axis_options import AxisTree, Branches, count_levels, options_for
from veilcube.planner.tree.axis_search import Wish
from veilcube.planner.tree.search import QuerySample, search_trees
from veilcube.privacy import LARGEST_COLUMN, write_fraction
from veilcube.query import Workload
from veilcube.schema import Attribute, Nominal, Schema
from veilcube.system import did_you_mean, require_cells

Branching: TypeAlias = int | str | Sequence[int]
Weights: TypeAlias = str | Sequence[float | str | Fraction]

# Nodes and sums of the longest attribute's tree: measured as 17 on 2**23 cells, more with more levels.
BYTES_PER_LEAF = 40
WAYS_OUT = "use strategy='wavelet' or 'identity', or wider bins"
LARGEST_FANOUT = 2**20
MOST_FANOUTS = 64
_WORDS = ("auto", "flat", "hierarchy")
_LONGEST_WEIGHT, _LONG_EXPONENT = 100, re.compile(r"[eE][-+]?[\d_]{5}")
_SUM_TOLERANCE = Fraction(1, 10**6)


@dataclass(frozen=True)
class Tree(StrategyDefaults):
    """Measure counts of whole ranges as well as cells: best for questions about many cells.

    ``branching`` is "auto" (searched), "flat", a fan-out such as 8, or one of these for each attribute by name; a list
    such as [8, 16] gives the fan-outs of the levels between the total and the cells one by one. Nominal attributes
    follow their hierarchy ("hierarchy"). ``weights`` divide the budget among the levels, from the total down to the
    cells: "auto" (optimised), a list of sum 1, or one for each attribute by name; with one number fewer than there are
    levels the total is not measured. The noise of a level is inversely proportional to its weight: weights are shares
    of epsilon, and shares of rho are as their squares. ``refine=False`` measures everything at once; otherwise finer
    nodes are measured where it pays.

    >>> Tree(branching=8, weights=["1/2", "1/4", "1/4"], refine=False).name
    'tree'
    """

    branching: Branching | Mapping[str, Branching] = "auto"
    weights: Weights | Mapping[str, Weights] = "auto"
    refine: bool = True
    searched: str = field(default="", compare=False, repr=False, kw_only=True)

    def __post_init__(self) -> None:
        object.__setattr__(self, "branching", _for_each(self.branching, _read_branching))
        object.__setattr__(self, "weights", _for_each(self.weights, _read_weights))
        if not isinstance(self.refine, bool):
            raise PlanError("refine must be True or False")

    def __hash__(self) -> int:
        return hash(json.dumps(self.to_dict(), sort_keys=True))

    @property
    def name(self) -> str:
        """The word that users and files call it by."""
        return "staged tree" if self.refine else "tree"

    @property
    def summary(self) -> str:
        """What is measured, in few words: the fan-outs of each attribute that is not flat."""
        if self.refine:
            return "coarse counts first, finer ones where it pays"
        if not isinstance(self.branching, Mapping):
            return f"fan-out {self.branching}" if isinstance(self.branching, int) else str(self.branching)
        trees = [f"{name} {_words(branches)}" for name, branches in self.branching.items() if branches != "flat"]
        flat = [name for name, branches in self.branching.items() if branches == "flat"]
        even = ["equal weights"] if trees and self._has_equal_weights else []
        return "; ".join([*trees, *([f"flat: {', '.join(flat)}"] if flat else []), *even])

    @property
    def _has_equal_weights(self) -> bool:
        return isinstance(self.weights, Mapping) and all(len(set(shares)) == 1 for shares in self.weights.values())

    def operator(self, schema: Schema) -> Operator:
        """Return the product of the attributes' trees; what is left to the search is chosen for random ranges."""
        if self.refine:
            return staged_operator(schema, self._refined_weights())
        require_cells(max(schema.shape), BYTES_PER_LEAF, "planning a tree", WAYS_OUT)
        axes, _ = self._choose(schema, None, "laplace")
        return ProductOperator(
            tuple(axis.operator(attribute) for axis, attribute in zip(axes, schema, strict=True)), schema.names
        )

    def resolve(self, schema: Schema, workload: Workload, family: Family = "laplace") -> "Tree":
        """Return the strategy with every choice made, for the least expected error over a workload.

        What is best depends on the family of noise: Laplace noise pays for the sum of the weights of a column, Gaussian
        noise for the sum of their squares.
        """
        if self.refine:
            return self._with_weights_for(family, schema)
        require_cells(max(schema.shape), BYTES_PER_LEAF, "planning a tree", WAYS_OUT)
        axes, searched = self._choose(schema, workload, family)
        return replace(
            self,
            branching={name: axis.branches for name, axis in zip(schema.names, axes, strict=True)},
            weights={name: axis.weights for name, axis in zip(schema.names, axes, strict=True)},
            searched=searched,
        )

    def candidates(self, schema: Schema, workload: Workload, family: Family = "laplace") -> "tuple[Tree, ...]":
        """Return the strategy with every choice made for a workload."""
        return (self.resolve(schema, workload, family),)

    def design(self, schema: Schema) -> Design:
        """Return the steps of the staged tree, or everything at once."""
        return staged_design(HalvingTree.of(schema), self._refined_weights()) if self.refine else LinearDesign()

    def _refined_weights(self) -> tuple[Fraction, ...] | None:
        """Return the weights of the steps, None if they are left open; what only a one-shot tree knows is refused."""
        if self.branching != "auto" or isinstance(self.weights, Mapping):
            raise PlanError("a staged tree chooses its own fan-outs; leave branching out, or use refine=False")
        return None if isinstance(self.weights, str) else tuple(Fraction(weight) for weight in self.weights)

    def to_dict(self) -> dict[str, object]:
        """Return the plain data that describes it."""
        return {"name": self.name, "branching": _plain(self.branching), "weights": _plain(self.weights)}

    def _with_weights_for(self, family: Family, schema: Schema) -> "Tree":
        """Return the staged tree with the weights of its steps where those of Laplace noise are not the best."""
        if family == "laplace" or self._refined_weights() is not None or not can_stage(schema):
            return self
        return replace(self, weights=gaussian_weights(staged_design(HalvingTree.of(schema)).weights))

    def _choose(self, schema: Schema, workload: Workload | None, family: Family) -> tuple[tuple[AxisTree, ...], str]:
        for given in (self.branching, self.weights):
            unknown = sorted(set(given) - set(schema.names)) if isinstance(given, Mapping) else []
            if unknown:
                hint, known = did_you_mean(str(unknown[0]), schema.names), ", ".join(schema.names)
                raise PlanError(f"there is no attribute '{unknown[0]}'; {hint}the schema has {known}")
        wishes = tuple(self._wish(attribute, family) for attribute in schema)
        if all(wish.multipliers is not None and len(wish.options) == 1 for wish in wishes):
            return _capped([AxisTree(wish.options[0], wish.multipliers or (1,)) for wish in wishes]), self.searched
        found = search_trees(schema, wishes, QuerySample(workload or default_workload(schema)), family)
        return _capped(found.axes), found.searched

    def _wish(self, attribute: Attribute, family: Family) -> Wish:
        is_named = isinstance(self.branching, Mapping)
        branching = (
            self.branching.get(attribute.name, "auto") if isinstance(self.branching, Mapping) else self.branching
        )
        weights = self.weights.get(attribute.name, "auto") if isinstance(self.weights, Mapping) else self.weights
        options = _options(attribute, branching, is_named, family)
        if options == ("flat",):
            _require_levels(attribute, weights, {1})
            return Wish(options, (1,))
        if isinstance(weights, str):
            return Wish(options, may_merge=branching == "auto")
        fitting = _fitting(attribute, options, len(weights))
        return Wish(fitting, multipliers_of([Fraction(weight) for weight in weights]))


def _capped(axes: Sequence[AxisTree]) -> tuple[AxisTree, ...]:
    """Return the trees with multipliers whose products suit the largest table."""
    fitted = within_column([axis.multipliers for axis in axes], LARGEST_COLUMN)
    return tuple(replace(axis, multipliers=own) for axis, own in zip(axes, fitted, strict=True))


def _options(attribute: Attribute, branching: Branching, is_named: bool, family: Family) -> tuple[Branches, ...]:
    if attribute.size == 1 or branching == "flat":
        return ("flat",)
    if branching == "auto":
        return options_for(attribute, family)
    fixed = _fixed_branches(attribute, branching)
    if fixed is not None:
        return (fixed,)
    if is_named:
        other = "no fan-out" if isinstance(attribute, Nominal) else "no hierarchy"
        own = "'hierarchy'" if isinstance(attribute, Nominal) else "a fan-out"
        raise PlanError(f"'{attribute.name}' is {attribute.kind} and has {other}; use {own}, 'flat' or 'auto' for it")
    return options_for(attribute, family)


def _fixed_branches(attribute: Attribute, branching: Branching) -> Branches | None:
    """Return the one tree that is asked for; None if it does not suit this kind of attribute."""
    if isinstance(attribute, Nominal):
        return "hierarchy" if branching == "hierarchy" else () if branching == () else None
    if isinstance(branching, int):
        return tree_fanouts(attribute.size, branching)[1:]
    return None if isinstance(branching, str) else tuple(branching)


def _fitting(attribute: Attribute, options: tuple[Branches, ...], levels: int) -> tuple[Branches, ...]:
    """Return the trees that ``levels`` weights fit; where the tree is given, the total may be left out."""
    if len(options) == 1:
        has = count_levels(attribute, options[0])
        _require_levels(attribute, (Fraction(1, levels),) * levels, {has, has - 1} - {1})
        return options
    fitting = tuple(option for option in options if option != "flat" and count_levels(attribute, option) == levels)
    if not fitting:
        known = {count_levels(attribute, option) for option in options}
        _require_levels(attribute, (Fraction(1, levels),) * levels, known - {1})
    return fitting


def _require_levels(attribute: Attribute, weights: Weights, allowed: set[int]) -> None:
    if isinstance(weights, str) or len(weights) in allowed:
        return
    numbers = " or ".join(map(str, sorted(allowed)))
    raise PlanError(
        f"{len(weights)} weights do not fit '{attribute.name}', whose tree takes {numbers}; give weights by attribute"
    )


def _for_each(given: object, read: "_Reader") -> object:
    if isinstance(given, Mapping):
        return {str(name): read(value, f" of '{name}'") for name, value in given.items()}
    return read(given, "")


class _Reader(Protocol):
    """Checks one value that a user gave; ``where`` names the attribute it is for."""

    def __call__(self, value: object, where: str) -> object:
        """Return the value in its normal form."""


def _read_branching(value: object, where: str) -> Branching:
    if isinstance(value, str):
        if value in _WORDS:
            return value
    elif _is_fanout(value):
        return int(value)  # type: ignore[call-overload, no-any-return]
    elif isinstance(value, Sequence) and len(value) <= MOST_FANOUTS and all(map(_is_fanout, value)):
        return tuple(int(fanout) for fanout in value)
    raise PlanError(
        f"the branching{where} must be 'auto', 'flat', 'hierarchy', a whole number from 2 to {LARGEST_FANOUT:,}, "
        "or a list of such numbers"
    )


def _is_fanout(value: object) -> bool:
    return isinstance(value, Integral) and not isinstance(value, bool) and 2 <= int(value) <= LARGEST_FANOUT


def _read_weights(value: object, where: str) -> Weights:
    if isinstance(value, str) and value == "auto":
        return "auto"
    if isinstance(value, np.ndarray):
        value = value.tolist()
    if isinstance(value, str) or not isinstance(value, Sequence) or not value:
        raise PlanError(f"the weights{where} must be 'auto' or a list of numbers above 0 that sum to 1")
    weights = tuple(_read_weight(weight, where) for weight in value)
    if min(weights) <= 0:
        raise PlanError(f"the weights{where} must all be above 0; leave a level out to spend nothing on it")
    total = sum(weights, start=Fraction(0))
    if abs(total - 1) > _SUM_TOLERANCE:
        said = f"{float(total):.6g}" if total < 1 else "more than 1"
        raise PlanError(f"the weights{where} sum to {said}; they must sum to 1")
    return weights


def _read_weight(value: object, where: str) -> Fraction:
    try:
        if isinstance(value, Fraction):
            return value
        # A text such as 1e999999999 would take gigabytes to expand: no weight needs more than a few digits.
        if isinstance(value, str) and len(value) <= _LONGEST_WEIGHT and not _LONG_EXPONENT.search(value):
            return Fraction(value)
        if isinstance(value, Real) and not isinstance(value, bool):
            return Fraction(repr(float(value)))
    except (ValueError, ZeroDivisionError, OverflowError):
        pass
    raise PlanError(f"the weights{where} must be numbers such as 0.25 or '1/4'")


def _words(branches: object) -> str:
    if branches == ():
        return "total + cells"
    return " x ".join(map(str, branches)) + " x cells" if isinstance(branches, tuple) else str(branches)


def _plain(value: object) -> object:
    """Return branching or weights as JSON knows them, fractions as text."""
    if isinstance(value, Mapping):
        return {name: _plain(inner) for name, inner in value.items()}
    if isinstance(value, Fraction):
        return write_fraction(value)
    return [_plain(inner) for inner in value] if isinstance(value, tuple) else value
