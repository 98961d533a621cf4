"""Adaptive releases as a strategy: cells with most of the budget, then the counts of regions with the rest (ISPE)."""

import re
from dataclasses import dataclass, replace
from fractions import Fraction
from numbers import Integral, Real
from typing import Literal, TypeAlias

from veilcube.errors import PlanError
from veilcube.operators import Operator, block_parts
from veilcube.planner.design import Family, StrategyDefaults, default_workload
from veilcube.planner.partition.design import AdaptiveDesign, best_design, planned_operator
from veilcube.privacy import write_fraction
from veilcube.query import Workload
from veilcube.schema import Schema
from veilcube.system import read_choice, require_cells

Partition: TypeAlias = Literal["auto", "blocks", "grow", "kd"]

PARTITIONS = ("auto", "blocks", "grow", "kd")
MOST_PASSES = 100
# Labels, sums and variances of the cells in their blocks.
BYTES_PER_CELL = 40
FINEST_SPLIT = 1_000_000
_FRACTION = re.compile(r"[0-9]{1,9}/[0-9]{1,9}|0?\.[0-9]{1,9}")


@dataclass(frozen=True)
class Adaptive(StrategyDefaults):
    """Measure every cell, then the regions of a partition: for cells and small ranges where neighbours are alike.

    ``partition`` is "blocks" (a grid, known beforehand; "auto" takes it), "grow" (connected cells whose smoothed noisy
    counts differ by less than ``threshold`` standard deviations of such a difference) or "kd" (boxes, split where the
    noisy cells are least uniform). ``split`` is the cells' share of the budget, "auto" the best one for the workload
    that leaves them 96%; under Gaussian noise it is their weight, and shares of rho are as the squared weights.
    ``smooth`` is how often the noisy cells are smoothed before regions grow; ``side`` the length of a block, "auto" the
    best one.

    >>> Adaptive(partition="grow").name
    'adaptive'
    """

    partition: Partition = "auto"
    split: str | float | Fraction = "auto"
    smooth: int = 5
    threshold: float = 2.0
    side: str | int = "auto"
    parts: tuple[int, ...] | None = None

    def __post_init__(self) -> None:
        read_choice(self.partition, "the partition", PARTITIONS, PlanError)
        object.__setattr__(self, "split", _read_split(self.split))
        if not _is_whole(self.smooth) or not 0 <= self.smooth <= MOST_PASSES:
            raise PlanError(f"smooth must be a whole number of passes from 0 to {MOST_PASSES}")
        if not isinstance(self.threshold, Real) or isinstance(self.threshold, bool) or not 0 < self.threshold < 1e6:
            raise PlanError("threshold must be a number above 0: how many standard deviations neighbours may differ by")
        if self.parts is not None:
            object.__setattr__(self, "parts", _read_parts(self.parts))
        is_auto = isinstance(self.side, str) and self.side == "auto"
        if not is_auto and (not _is_whole(self.side) or int(self.side) < 1):
            raise PlanError("side must be 'auto' or the whole number of cells that a block is long")

    @property
    def name(self) -> str:
        """The word that users and files call it by."""
        return "adaptive"

    @property
    def summary(self) -> str:
        """What is measured, in few words."""
        share = "" if isinstance(self.split, str) else f", {float(self.split):.1%} of the weight on cells"
        grid = "" if self.parts is None else f" of {' x '.join(map(str, self.parts))}"
        return f"cells and {self.kind}{grid if self.kind == 'blocks' else ''}{share}"

    @property
    def kind(self) -> str:
        """The partition that is made."""
        return "blocks" if self.partition == "auto" else self.partition

    def operator(self, schema: Schema) -> Operator:
        """Return the cells and blocks that the error is planned with."""
        chosen = self.design(schema)
        return planned_operator(schema, chosen.split, chosen.parts)

    def resolve(self, schema: Schema, workload: Workload, family: Family = "laplace") -> "Adaptive":
        """Return the strategy with the split and the blocks that have the least error over a workload."""
        parts = self.parts
        if parts is not None and len(parts) != len(schema):
            raise PlanError("the blocks of this strategy are for another schema; leave parts out")
        if parts is not None and any(part > size for part, size in zip(parts, schema.shape, strict=True)):
            raise PlanError("parts cut an axis into more blocks than it has cells; name fewer, or leave parts out")
        if parts is None and self.side != "auto":
            parts = block_parts(schema.shape, (int(self.side),) * len(schema))
        require_cells(
            schema.cells, BYTES_PER_CELL, "planning an adaptive release", "use wider bins or fewer attributes"
        )
        given = self.split if isinstance(self.split, Fraction) else None
        split, parts = best_design(schema, workload, given, parts, family)
        return replace(self, split=split, parts=parts)

    def candidates(self, schema: Schema, workload: Workload, family: Family = "laplace") -> "tuple[Adaptive, ...]":
        """Return the strategy with every choice made for a workload."""
        return (self.resolve(schema, workload, family),)

    def design(self, schema: Schema) -> AdaptiveDesign:
        """Return the two steps."""
        made = self if self.parts is not None else self.resolve(schema, default_workload(schema))
        if not isinstance(made.split, Fraction) or made.parts is None:
            raise PlanError("the division of the budget is open; plan with this strategy to have it chosen")
        return AdaptiveDesign(self.kind, made.split, made.parts, int(self.smooth), float(self.threshold))

    def to_dict(self) -> dict[str, object]:
        """Return the plain data that describes it."""
        return {
            "name": self.name,
            "partition": self.kind,
            "split": self.split if isinstance(self.split, str) else write_fraction(Fraction(self.split)),
            "smooth": int(self.smooth),
            "threshold": float(self.threshold),
            "parts": None if self.parts is None else list(self.parts),
        }


def KdTree(split: str | float | Fraction = "auto", side: str | int = "auto") -> Adaptive:  # noqa: N802
    """Return the adaptive strategy whose regions are boxes, split where the noisy cells are least uniform."""
    return Adaptive(partition="kd", split=split, side=side)


def _is_whole(value: object) -> bool:
    return isinstance(value, Integral) and not isinstance(value, bool)


def _read_parts(value: object) -> tuple[int, ...]:
    if isinstance(value, tuple | list) and all(_is_whole(part) and part >= 1 for part in value):
        return tuple(int(part) for part in value)
    raise PlanError("parts must name a whole number of blocks of at least 1 for each attribute, such as (4, 8)")


def _read_split(value: object) -> str | Fraction:
    if isinstance(value, str) and value == "auto":
        return value
    is_text = isinstance(value, str) and _FRACTION.fullmatch(value) is not None
    if is_text or (isinstance(value, Real) and not isinstance(value, bool)):
        try:
            exact = value if isinstance(value, Fraction | int | str) else Fraction(repr(float(value)))  # type: ignore[arg-type]
            split = Fraction(exact).limit_denominator(FINEST_SPLIT)
        except (ValueError, OverflowError, ZeroDivisionError):
            split = Fraction(0)
        if 0 < split < 1:
            return split
    raise PlanError(
        "split must be 'auto' or the cells' share of the budget, from a millionth to a millionth below 1, since both "
        "steps need some; use strategy='identity' to measure cells alone"
    )
