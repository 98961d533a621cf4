"""What ``veilcube plan`` and ``veilcube release`` are told alike: a strategy with its options, and the questions.

Both commands read them here, so that a release of the same words measures what was planned.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Annotated, Any, TypeAlias

import typer

from veilcube.cli.shared.options import OneValueCommand
from veilcube.errors import PlanError, QueryError
from veilcube.planner import StrategyLike, named_strategy, read_strategy_file
from veilcube.query import Workload, weights_of
from veilcube.schema import Schema

RANDOM_RANGES = 2000

WantedError: TypeAlias = Annotated[
    float | None,
    typer.Option("--error", metavar="NUMBER", help="Find the epsilon whose intervals reach at most +- this far."),
]
Asked: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--workload",
        metavar="WHAT",
        help="Plan for these queries: random, prefixes, marginals-K (tables over K attributes), or a file with a line "
        "of SQL for each query, which may begin with its weight: 3 * age >= 65.",
    ),
]
Queries: TypeAlias = Annotated[
    list[str] | None,
    typer.Option("--query", metavar="SQL", help="Plan for this query, with its weight if it has one; may be repeated."),
]


def read_workload(schema: Schema, asked: str | None, queries: Sequence[str]) -> Workload | None:
    """Return the queries to plan for; None for the planner's own."""
    if asked is not None and queries:
        raise PlanError("give either --workload or --query; a file for --workload may hold the queries as well")
    if queries:
        return Workload(schema, *weights_of(queries))
    if asked is None:
        return None
    if asked == "random":
        return Workload.random_ranges(schema, RANDOM_RANGES, seed=0)
    if asked == "prefixes":
        return Workload.prefixes(schema)
    if asked.startswith("marginals-") and asked.removeprefix("marginals-").isdecimal():
        return Workload.marginals(schema, int(asked.removeprefix("marginals-")))
    if not Path(asked).exists():
        raise QueryError(
            f"the workload '{asked}' is not known and no text file; use random, prefixes, marginals-2 or a file of SQL"
        )
    return Workload.from_file(schema, asked)


def _strategy_options(
    flat: Annotated[
        list[str] | None,
        typer.Option(
            "--flat", metavar="ATTRIBUTES", help="wavelet: attributes that are not transformed; a,b or twice."
        ),
    ] = None,
    threshold: Annotated[
        str | None,
        typer.Option(
            "--threshold",
            metavar="WHAT",
            help="wavelet: pooled or separate, for thresholded answers. adaptive: by how many standard deviations "
            "neighbours of a region may differ.",
        ),
    ] = None,
    tables: Annotated[
        list[str] | None,
        typer.Option("--tables", metavar="ATTRIBUTES", help="marginals: a table to count, such as age,sex; repeat it."),
    ] = None,
    k: Annotated[
        int | None, typer.Option("--k", metavar="N", help="marginals: count every table over so many attributes.")
    ] = None,
    multipliers: Annotated[
        str | None,
        typer.Option("--multipliers", metavar="NUMBERS", help="marginals: the weight of each table, such as 3,1."),
    ] = None,
    branching: Annotated[
        list[str] | None,
        typer.Option(
            "--branching",
            metavar="FANOUTS",
            help="tree: auto, flat, hierarchy, a fan-out such as 8 or those of all levels such as 8,16; age=8,16 for "
            "one attribute, then repeat it.",
        ),
    ] = None,
    weights: Annotated[
        list[str] | None,
        typer.Option(
            "--weights", metavar="SHARES", help="tree, staged tree: those of the levels: 1/2,1/4,1/4 or age=1/2,1/2."
        ),
    ] = None,
    partition: Annotated[
        str | None, typer.Option("--partition", metavar="WAY", help="adaptive: auto, blocks, grow or kd.")
    ] = None,
    split: Annotated[
        str | None,
        typer.Option("--split", metavar="SHARE", help="adaptive, kd tree: the cells' share of the budget, or auto."),
    ] = None,
    smooth: Annotated[
        int | None,
        typer.Option("--smooth", metavar="N", help="adaptive: how often noisy cells are smoothed before regions grow."),
    ] = None,
    side: Annotated[
        str | None, typer.Option("--side", metavar="N", help="adaptive, kd tree: the length of a block, or auto.")
    ] = None,
    parts: Annotated[
        str | None,
        typer.Option("--parts", metavar="NUMBERS", help="adaptive: blocks along each attribute, such as 4,8."),
    ] = None,
    full_cells: Annotated[
        bool,
        typer.Option("--full-cells", help="grouped tables: count rows first, and cells alone where they are full."),
    ] = False,
) -> None:
    """Take the options alone: a command from which they are copied."""


def _names(texts: Sequence[str]) -> list[str]:
    return [name.strip() for text in texts for name in text.split(",") if name.strip()]


def _tables(texts: Sequence[str]) -> list[list[str]]:
    return [_names([text]) for text in texts]


def _numbers(text: str) -> object:
    parts = [part.strip() for part in text.split(",")]
    return [int(part) for part in parts] if all(map(_is_whole, parts)) else text


def _number(text: str) -> object:
    try:
        return float(text)
    except ValueError:
        return text


def _whole(text: str) -> object:
    return int(text) if _is_whole(text) else text


def _is_whole(text: str) -> bool:
    return text.isascii() and text.isdecimal() and len(text) < 10


def _fanouts(text: str) -> object:
    return _numbers(text) if "," in text else _whole(text)


def _shares(text: str) -> object:
    return text if text == "auto" else [part.strip() for part in text.split(",")]


def _for_each(option: str, read: Callable[[str], object]) -> Callable[[Sequence[str]], object]:
    """Return a reader of one value for all attributes, or of one for each: age=8,16."""

    def read_all(texts: Sequence[str]) -> object:
        pairs = [text.rpartition("=") for text in texts]
        named = {name: read(value) for name, equals, value in pairs if equals}
        if len(named) == len(texts):
            return named
        if named or len(texts) > 1:
            raise PlanError(f"--{option} takes one value for all attributes, or one for each by name, such as age=8")
        return read(texts[0])

    return read_all


def _as_it_is(value: object) -> object:
    return value


_READERS: Mapping[str, Callable[[Any], object]] = {
    "flat": _names,
    "threshold": _number,
    "tables": _tables,
    "k": _as_it_is,
    "multipliers": _numbers,
    "branching": _for_each("branching", _fanouts),
    "weights": _for_each("weights", _shares),
    "partition": _as_it_is,
    "split": _as_it_is,
    "smooth": _as_it_is,
    "side": _whole,
    "parts": _numbers,
    "full_cells": _as_it_is,
}


def read_strategy(named: str, options: Mapping[str, object]) -> StrategyLike:
    """Return what ``--strategy`` and its options say: a name, or an object; a name ending with .toml is a file."""
    given = {name: _READERS[name](value) for name, value in options.items() if _is_given(value)}
    if named.lower().endswith(".toml"):
        if given:
            raise PlanError("the options of a strategy stand in its file; leave them out beside it")
        return read_strategy_file(named) or "auto"
    return named_strategy({"name": named, **given}) or "auto" if given else named


def _is_given(value: object) -> bool:
    is_listed = isinstance(value, list | tuple)
    return len(value) > 0 if is_listed else value is not None and value is not False  # type: ignore[arg-type]


@cache
def _copied_options() -> tuple[Any, ...]:
    copied = typer.Typer(add_completion=False)
    copied.command()(_strategy_options)
    return tuple(typer.main.get_command(copied).params)


class StrategyCommand(OneValueCommand):
    """A command that takes the options of strategies beside ``--strategy``, whose value they become a part of."""

    def __init__(self, *words: Any, **settings: Any) -> None:
        own = settings.pop("params", None) or []
        place = next((at for at, param in enumerate(own, start=1) if param.name == "strategy"), len(own))
        super().__init__(*words, params=[*own[:place], *_copied_options(), *own[place:]], **settings)

    def invoke(self, ctx: Any) -> Any:
        """Call the command with one strategy in place of a name and its options."""
        options = {param.name: ctx.params.pop(param.name) for param in _copied_options()}
        ctx.params["strategy"] = read_strategy(ctx.params["strategy"], options)
        return super().invoke(ctx)
