"""Results as aligned tables for a terminal and as CSV files."""

from collections.abc import Sequence

from rich.console import Console
from rich.table import Table

from benchmarks.peers.dpbench.arms import DEFAULT
from benchmarks.peers.dpbench.measure import Missing, Result
from benchmarks.peers.dpbench.published import PEER_SOURCE
from benchmarks.peers.dpbench.summary import Summary, Verdict

WIDTH_OF_FILES = 150


def show_results(console: Console, results: Sequence[Result]) -> None:
    """Print what the default arm reached on every array."""
    table = Table(title=f"default release and answers, times in seconds; peer: {PEER_SOURCE}", title_justify="left")
    _add_columns(table, "task array workload", "epsilon RMSE ± peer ratio matched ratio coverage ± release fit answer")
    for result in results:
        if result.arm != DEFAULT.name:
            continue
        table.add_row(
            result.task,
            result.array,
            result.workload,
            f"{result.epsilon:g}",
            _figure(result.rmse),
            _figure(result.rmse_stderr),
            f"{_figure(result.peer)} {result.peer_algorithm or ''}".strip(),
            _ratio(result.to_peer),
            _figure(result.matched),
            _ratio(result.to_matched),
            f"{result.coverage:.1%}",
            "" if result.coverage_stderr is None else f"{result.coverage_stderr:.1%}",
            f"{result.release_seconds:.3f}",
            f"{result.fit_seconds:.3f}",
            f"{result.answer_seconds:.3f}",
        )
    console.print(table)


def show_summaries(console: Console, summaries: Sequence[Summary], missing: Sequence[Missing]) -> None:
    """Print the ablation: every arm that ran, and why others did not."""
    table = Table(
        title="arms: geometric means of the ratios to the best peer and to the matched strategy, times in seconds",
        title_justify="left",
    )
    _add_columns(table, "task arm", "epsilon peers ratio ± worst matched worst coverage least release answer")
    for summary in summaries:
        table.add_row(
            summary.task,
            summary.arm,
            f"{summary.epsilon:g}",
            str(summary.peers),
            _ratio(summary.to_peer),
            _ratio(summary.to_peer_stderr),
            _ratio(summary.worst_to_peer),
            _ratio(summary.to_matched),
            _ratio(summary.worst_to_matched),
            f"{summary.coverage:.1%}",
            f"{summary.least_coverage:.1%}",
            f"{summary.release_seconds:.3f}",
            f"{summary.answer_seconds:.3f}",
        )
    console.print(table)
    for reason in dict.fromkeys(f"{arm.arm} was not run on {arm.task}: {arm.reason}" for arm in missing):
        console.print(reason)


def show_verdicts(console: Console, verdicts: Sequence[Verdict]) -> None:
    """Print every figure beside its bar."""
    table = Table(title="bars", title_justify="left")
    table.add_column("figure")
    for name in ("value", "±", "bar"):
        table.add_column(name, justify="right")
    table.add_column("")
    table.add_column("where")
    for verdict in verdicts:
        table.add_row(
            verdict.what,
            f"{verdict.value:.3f}",
            _ratio(verdict.stderr),
            f"{'≤' if verdict.at_most else '≥'} {verdict.bar:g}",
            "reached" if verdict.is_reached else "MISSED",
            verdict.where,
        )
    console.print(table)


def _add_columns(table: Table, texts: str, numbers: str) -> None:
    for name in texts.split():
        table.add_column(name)
    for name in numbers.split():
        table.add_column(name, justify="right")


def _figure(value: float | None) -> str:
    return "" if value is None else f"{value:,.1f}" if value >= 10 else f"{value:.2f}"


def _ratio(value: float | None) -> str:
    return "" if value is None else f"{value:.3f}"
