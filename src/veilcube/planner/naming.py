"""What strategies are called and which options they take, in Python, on the command line, in TOML and in plan files."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from veilcube.errors import PlanError, quoted
from veilcube.operators import Operator, read_axis
from veilcube.planner.design import Family, Identity, MeasuredOnce, Strategy, default_workload
from veilcube.planner.grouped import GroupedTables
from veilcube.planner.marginals import Marginals
from veilcube.planner.matched import Matched, matched_strategies
from veilcube.planner.partition import Adaptive, KdTree
from veilcube.planner.tree import Tree
from veilcube.planner.wavelet import Wavelet
from veilcube.query import Workload
from veilcube.schema import Schema, read_toml
from veilcube.system import did_you_mean

# A name such as "tree"; a name with options; or an object.
StrategyLike: TypeAlias = Strategy | str | Mapping[str, object]


@dataclass(frozen=True)
class _Matching(MeasuredOnce):
    """The wish for whatever strategy is best matched to the questions."""

    name: str = "matched"

    def operator(self, schema: Schema) -> Operator:
        """Return the map that is matched to the default questions."""
        return self.resolve(schema, default_workload(schema)).operator(schema)

    def resolve(self, schema: Schema, workload: Workload, family: Family = "laplace") -> Strategy:
        """Return the strategy that is matched to the questions."""
        return matched_strategies(schema, workload, family)[0]

    def candidates(self, schema: Schema, workload: Workload, family: Family = "laplace") -> tuple[Strategy, ...]:
        """Return the strategy that is matched to the questions."""
        return (self.resolve(schema, workload, family),)

    def to_dict(self) -> dict[str, object]:
        """Return the plain data that describes it."""
        return {"name": self.name}


def _matched(axes: object = None) -> Strategy:
    """Return the wish, or the very rows that were found for some questions, as a plan file holds them."""
    if axes is None:
        return _Matching()
    try:
        return Matched(tuple(read_axis(axis) for axis in axes))  # type: ignore[attr-defined]
    except (KeyError, TypeError, ValueError, OverflowError) as problem:
        raise PlanError("the axes of a matched strategy are not as a plan file holds them; plan again") from problem


@dataclass(frozen=True)
class _Named:
    """How a strategy is made, and the options that it takes."""

    make: Callable[..., Strategy]
    options: tuple[str, ...] = ()


_NAMED: Mapping[str, _Named] = {
    "identity": _Named(Identity),
    "tree": _Named(lambda **options: Tree(**{"refine": False, **options}), ("branching", "weights", "refine")),
    "staged tree": _Named(Tree, ("branching", "weights", "refine")),
    "marginals": _Named(Marginals, ("k", "tables", "multipliers")),
    "matched": _Named(_matched, ("axes",)),
    "wavelet": _Named(Wavelet, ("flat", "threshold")),
    "adaptive": _Named(Adaptive, ("partition", "split", "smooth", "threshold", "side", "parts")),
    "kd tree": _Named(KdTree, ("split", "side")),
    "grouped tables": _Named(GroupedTables, ("full_cells", "family")),
}


# What a staged tree was called before; programs that say so go on.
_EARLIER_WORDS = {"refined tree": "staged tree"}
OPTIONS = tuple(dict.fromkeys(option for named in _NAMED.values() for option in named.options))


def named_strategy(strategy: StrategyLike) -> Strategy | None:
    """Return the strategy that a user means; None for ``"auto"``, which allows all.

    >>> named_strategy({"name": "wavelet", "flat": ["sex"]}).flat
    ('sex',)
    """
    if isinstance(strategy, str):
        return _read(strategy, {})
    if isinstance(strategy, Mapping):
        name = strategy.get("name")
        if not isinstance(name, str):
            raise PlanError("a strategy with options names itself: {'name': 'wavelet', 'flat': ['sex']}")
        return _read(name, {str(option): value for option, value in strategy.items() if option != "name"})
    if isinstance(strategy, type) or not hasattr(strategy, "operator"):
        raise PlanError("a strategy is 'auto', a name, or an object such as veilcube.Identity()")
    return strategy


def read_strategy_file(path: str | Path) -> Strategy | None:
    """Return the strategy that the table ``[strategy]`` of a TOML file names, with its options."""
    told = read_toml(path, "strategy file", PlanError)
    found = told.get("strategy")
    if not isinstance(found, Mapping) or set(told) != {"strategy"}:
        raise PlanError(
            f"{path} does not hold one table [strategy] and nothing else; begin with [strategy] and its name"
        )
    return named_strategy(found)


def _read(written: str, options: Mapping[str, object]) -> Strategy | None:
    name = _EARLIER_WORDS.get(written, written)
    if name != "auto" and name not in _NAMED:
        hint = did_you_mean(written, _NAMED)
        raise PlanError(
            f"the strategy '{quoted(written)}' is not known; {hint}use 'auto' or one of {', '.join(_NAMED)}"
        )
    known = () if name == "auto" else _NAMED[name].options
    for option in options:
        if option not in known:
            takes = f"it takes {', '.join(known)}" if known else "it takes none"
            fitting = [other for other in _NAMED if option in _NAMED[other].options]
            of = f"; '{quoted(option)}' is an option of {', '.join(fitting)}" if fitting else ""
            hint = did_you_mean(option, known)
            raise PlanError(f"the strategy '{name}' has no option '{quoted(option)}'; {hint}{takes}{of}")
    return None if name == "auto" else _NAMED[name].make(**options)
