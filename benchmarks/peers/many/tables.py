"""Results as aligned tables for a terminal and as JSON."""

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from rich.console import Console
from rich.table import Table

from benchmarks.peers.dpbench.arrays import InputError
from benchmarks.peers.many.coded import CodedTable, metric_of
from benchmarks.peers.many.comparison import AgainstOthers, AgainstPeers, mean_ratio
from benchmarks.peers.many.measure import Promise, Result
from benchmarks.peers.many.published import DELTA_FOR_PURE

WIDTH_OF_FILES = 120


def show_title(console: Console, table: CodedTable, promise: Promise, strategies: Sequence[str], runs: int) -> None:
    """Print what is measured next, for it may take minutes."""
    cells = f"{table.cells:,}" if table.cells < 10**9 else f"{table.cells:.2g}"
    facts = f"{len(table.codes):,} rows, {len(table.columns)} attributes, {cells} cells"
    console.print(f"{table.name} ({facts}), {promise}, {', '.join(strategies)}; runs: {runs}")


def show_against_peers(console: Console, found: AgainstPeers) -> None:
    """Print every kind of one result beside the best peer."""
    result = found.result
    if result.refused is not None:
        console.print(f"refused: {result.refused}\n")
        return
    table = Table()
    _add_columns(table, "kind", "questions", "error", "ours", "best peer", "ratio", "coverage", "width/rmse")
    for kind, figures in result.kinds.items():
        peer = found.peers.get(kind)
        table.add_row(
            kind,
            f"{figures.questions:,}",
            metric_of(kind),
            _figure(figures.error),
            "" if peer is None else f"{_figure(peer.error)} {peer.algorithm}",
            _ratio(found.ratios.get(kind)),
            f"{figures.coverage:.1%}",
            _ratio(figures.width_to_rmse),
        )
    console.print(table)
    _show_remarks(console, result)
    console.print(f"geometric mean of the ratios: {_ratio(found.ratio) or 'no peer was measured'}")
    if result.delta is None and found.peers:
        console.print(f"the promise is pure, that of the peers has delta {DELTA_FOR_PURE:g}")
    console.print(_times(result) + "\n")


def show_ratios(console: Console, found: Sequence[AgainstPeers]) -> None:
    """Print the mean ratio of each table and strategy, and that over tables."""
    table = Table(title="geometric mean of the ratios to the best peers", title_justify="left")
    _add_columns(table, "promise", "strategy", *dict.fromkeys(one.result.table for one in found), "all")
    groups: dict[tuple[str, str], dict[str, AgainstPeers]] = {}
    for one in found:
        key = (str(_promise(one.result)), one.result.strategy)
        groups.setdefault(key, {})[one.result.table] = one
    for key, group in groups.items():
        cells = [
            "" if name not in group else _said(group[name].result, group[name].ratio)
            for name in dict.fromkeys(one.result.table for one in found)
        ]
        table.add_row(*key, *cells, _ratio(mean_ratio([one.ratio for one in group.values()])))
    console.print(table)


def show_strategies(console: Console, results: Sequence[Result]) -> None:
    """Print the errors of all strategies on one table, kind by kind."""
    able = [result for result in results if result.refused is None]
    for result in results:
        if result.refused is not None:
            console.print(f"{result.strategy}: refused: {result.refused}")
    if not able:
        return
    table = Table(title="error, coverage, width/rmse", title_justify="left")
    _add_columns(table, "kind", "questions", *(result.strategy for result in able))
    asked = {kind: figures.questions for result in able for kind, figures in result.kinds.items()}
    for kind, questions in asked.items():
        table.add_row(kind, f"{questions:,}", *(_in_brief(result, kind) for result in able))
    console.print(table)
    for result in able:
        _show_remarks(console, result)
        console.print(f"{result.strategy}: {_times(result)}")
    console.print()


def show_comparisons(console: Console, found: Sequence[AgainstOthers]) -> None:
    """Print the ratios of the first strategy to the best of the others."""
    name = found[0].strategy
    table = Table(title=f"{name} / best of the others, geometric mean over the kinds", title_justify="left")
    _add_columns(table, "table", "promise", "best other", "ratio", "to the best of each kind")
    for one in found:
        promise = str(Promise(one.epsilon, one.delta))
        table.add_row(one.table, promise, one.best or "none", _ratio(one.ratio), _ratio(one.ratio_by_kind))
    table.add_row(
        "all",
        "",
        "",
        _ratio(mean_ratio([one.ratio for one in found])),
        _ratio(mean_ratio([one.ratio_by_kind for one in found])),
    )
    console.print(table)


def write_json(
    path: Path | None,
    form: str,
    results: Sequence[AgainstPeers | Result],
    comparisons: Sequence[AgainstOthers] = (),
) -> None:
    """Write all that was found, if a file was named."""
    if path is None:
        return
    found = {"results": [asdict(one) for one in results], "comparisons": [asdict(one) for one in comparisons]}
    text = json.dumps({"form": form, **found}, indent=1)
    try:
        path.write_text(text + "\n", encoding="utf-8")
    except OSError as problem:
        raise InputError(f"{path} cannot be written: {problem.strerror}; name another file by --json") from problem


def _show_remarks(console: Console, result: Result) -> None:
    for kind, figures in result.kinds.items():
        if figures.sliced:
            console.print(
                f"{result.strategy}, {kind}: tables that were refused whole and asked in slices: {figures.sliced}"
            )
    for kind, reason in result.refused_kinds.items():
        console.print(f"{result.strategy}, {kind}: refused: {reason}")


def _promise(result: Result) -> Promise:
    return Promise(result.epsilon, result.delta)


def _times(result: Result) -> str:
    return (
        f"release {_seconds(result.release_seconds)}, fit {_seconds(result.fit_seconds)}, "
        f"{result.answers_per_second or 0:,.0f} answers and "
        f"{result.table_cells_per_second or 0:,.0f} cells of tables a second"
    )


def _in_brief(result: Result, kind: str) -> str:
    figures = result.kinds.get(kind)
    if figures is None:
        return "refused"
    return f"{_figure(figures.error)}  {figures.coverage:.0%}  {_ratio(figures.width_to_rmse)}"


def _said(result: Result, ratio: float | None) -> str:
    return "refused" if result.refused is not None else _ratio(ratio) or "no peer"


def _add_columns(table: Table, first: str, *others: str) -> None:
    table.add_column(first)
    for name in others:
        table.add_column(name, justify="right")


def _figure(value: float) -> str:
    return f"{value:,.1f}" if value >= 10 else f"{value:.3g}" if value < 1 else f"{value:.2f}"


def _ratio(value: float | None) -> str:
    return "" if value is None else f"{value:.3f}"


def _seconds(value: float | None) -> str:
    return "" if value is None else f"{value:.3f} s"
