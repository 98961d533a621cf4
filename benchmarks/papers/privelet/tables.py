"""What was found as aligned tables for a terminal and as CSV files."""

from collections.abc import Sequence

import numpy as np
from rich.console import Console
from rich.table import Table

from benchmarks.papers.privelet.accuracy import Experiment, Quintile
from benchmarks.papers.privelet.scaling import Timing
from benchmarks.papers.privelet.verdict import Claim, Verdict

WIDTH_OF_FILES = 170


def show_quintiles(console: Console, quintiles: Sequence[Quintile]) -> None:
    """Print square and absolute error by coverage, and relative error by selectivity, an arm to a line."""
    for census, epsilon in dict.fromkeys((one.census, one.epsilon) for one in quintiles):
        here = [one for one in quintiles if (one.census, one.epsilon) == (census, epsilon)]
        for by, error, form in (
            ("coverage", "square", ".3g"),
            ("coverage", "absolute", ",.0f"),
            ("selectivity", "relative", ".3%"),
        ):
            chosen = [one for one in here if one.by == by]
            title = f"{census}, epsilon {epsilon:g}: mean {error} error by {by}, in quintiles"
            console.print(_by_quintile(chosen, title, error, form))


def _by_quintile(quintiles: Sequence[Quintile], title: str, error: str, form: str) -> Table:
    table = Table(title=title, title_justify="left")
    table.add_column("arm")
    for middle in dict.fromkeys(one.middle for one in quintiles):
        table.add_column(f"{middle:.3g}", justify="right")
    for arm in dict.fromkeys(one.arm for one in quintiles):
        table.add_row(arm, *(format(getattr(one, error), form) for one in quintiles if one.arm == arm))
    return table


def show_outcomes(console: Console, experiments: Sequence[Experiment]) -> None:
    """Print each arm's error beside the exact formula's, the coverage of its intervals, and its times.

    Within one release large queries share most of their noise, and they dominate the RMSE; standardised errors count
    each query alike and come nearer to 1.
    """
    title = "all queries of one release: RMSE measured and exact, standardised errors, 95% intervals, seconds"
    table = Table(title=title, title_justify="left")
    _add_columns(
        table,
        ["census", "arm", "planned"],
        ["epsilon", "RMSE", "exact", "ratio", "standardised", "coverage", "release", "answer"],
    )
    for experiment in experiments:
        for arm, outcome in experiment.outcomes.items():
            exact = outcome.expected
            table.add_row(
                experiment.census,
                arm,
                outcome.planned,
                f"{experiment.epsilon:g}",
                f"{outcome.rmse:,.1f}",
                "" if exact is None else f"{exact:,.1f}",
                "" if exact is None else f"{outcome.rmse / exact:.3f}",
                "" if outcome.standardised is None else f"{outcome.standardised:.3f}",
                f"{np.mean(outcome.is_covered):.1%}",
                f"{outcome.release_seconds:.1f}",
                f"{outcome.answer_seconds:.1f}",
            )
    console.print(table)


def show_claims(console: Console, claims: Sequence[Claim]) -> None:
    """Print every claim of the paper with ours beside it."""
    if not claims:
        return
    table = Table(title="claims of the paper's section 8", title_justify="left")
    _add_columns(table, ["where", "the paper says", "found", ""], [])
    for claim in claims:
        table.add_row(claim.where, claim.paper, claim.ours, claim.word)
    console.print(table)


def show_timings(console: Console, timings: Sequence[Timing], title: str) -> None:
    """Print the seconds of every step."""
    table = Table(title=title, title_justify="left")
    steps = ["count", "transform + noise", "inverse", "Basic", "Privelet+", "Privelet*"]
    _add_columns(table, ["clock"], ["rows", "cells", *steps])
    for one in timings:
        seconds = (one.count, one.transform_and_noise, one.inverse, one.basic, one.plus, one.star)
        table.add_row(one.clock, f"{one.rows:,}", f"{one.cells:,}", *(f"{second:.3f}" for second in seconds))
    console.print(table)


def show_verdicts(console: Console, verdicts: Sequence[Verdict]) -> None:
    """Print every figure beside its bar."""
    if not verdicts:
        return
    table = Table(title="bars", title_justify="left")
    _add_columns(table, ["figure"], ["value", "bar"])
    table.add_column("")
    table.add_column("note")
    for one in verdicts:
        shown = f"{one.value:,.0f}" if one.value >= 1000 else f"{one.value:.3f}"
        table.add_row(one.what, f"{shown} {one.unit}".strip(), one.bar, one.word, one.note)
    console.print(table)


def _add_columns(table: Table, texts: Sequence[str], numbers: Sequence[str]) -> None:
    for name in texts:
        table.add_column(name)
    for name in numbers:
        table.add_column(name, justify="right")
