"""The map of honesty: every combination, on both cores, and what of it falls short."""

import argparse
import os
import sys
from collections.abc import Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from math import isnan, sqrt
from pathlib import Path

from rich.console import Console
from rich.table import Table

import benchmarks.honesty as package
from benchmarks.honesty.histories import HISTORIES, MODELS
from benchmarks.honesty.kinds import KINDS
from benchmarks.honesty.measuring import ESTIMATORS, STRATEGIES, Finding, measure
from benchmarks.honesty.questions import PICKED, TOTAL
from benchmarks.report import make_console, write_csv

SOURCES, READERS = (*STRATEGIES, *HISTORIES), (*ESTIMATORS, *MODELS)
EPSILONS = (0.1, 0.5, 2.0)
QUICK_KINDS = ("ramp_line", "spikes_line", "ramp_wide", "bump_plane", "strips_plane", "sparse_plane", "ramp_hyper")
LEAST_COVERAGE, LEAST_PICKED, LEAST_WORST = 0.93, 0.80, 0.80
NARROWEST, WIDEST = 1.9, 3.5
WIDTH_OF_FILES = 140


def falls_short(finding: Finding) -> bool:
    """Tell whether coverage lies below its bar by more than two standard errors."""
    least = LEAST_PICKED if finding.question == PICKED else LEAST_COVERAGE
    return finding.coverage < least - 2 * finding.stderr


def has_biased_total(finding: Finding) -> bool:
    """Tell whether the mean error of the total exceeds its bar by more than two standard errors of that mean."""
    if finding.question != TOTAL or isnan(finding.plain_stddev):
        return False
    return abs(finding.bias) > finding.plain_stddev * (1 + 2 / sqrt(finding.releases))


def main(arguments: Sequence[str] = ()) -> None:
    """Measure what was asked for and show what falls short."""
    options = _options(arguments or sys.argv[1:])
    console = make_console(WIDTH_OF_FILES)
    findings = _measured(options, console)
    if options.out:
        options.out.mkdir(parents=True, exist_ok=True)
        write_csv(options.out / "honesty.csv", findings)
    _show(console, "below its bar", [one for one in findings if falls_short(one)])
    _show(console, "single releases below 80%", [one for one in findings if _has_a_bad_release(one)])
    biased = [one for one in findings if has_biased_total(one)]
    _show(console, "totals biased by more than a standard deviation of least squares", biased)
    default = [one for one in findings if one.estimator == "best"]
    wide = [one for one in default if one.width_over_error > WIDEST]
    widths = sorted(one.width_over_error for one in default if one.question != PICKED)
    short = sum(map(falls_short, findings))
    console.print(f"{short} of {len(findings)} below their bars; {len(wide)} of {len(default)} defaults above {WIDEST}")
    totals = sum(one.question == TOTAL for one in findings)
    console.print(f"{len(biased)} of {totals} totals biased by more than a standard deviation of least squares")
    if widths:
        middle = widths[len(widths) // 2]
        verdict = "met" if NARROWEST <= middle <= WIDEST else "MISSED"
        console.print(f"median half-width over error of defaults {middle:.2f} (bar {NARROWEST} to {WIDEST}): {verdict}")


def _has_a_bad_release(finding: Finding) -> bool:
    return finding.worst < LEAST_WORST and finding.question not in (PICKED, TOTAL, "means", "sums")


def _options(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog=f"python -m {package.__name__}",
        description=package.__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--quick", action="store_true", help="seven kinds, the default strategy, one epsilon")
    parser.add_argument("--kind", action="append", choices=KINDS, help="may be repeated (default all)")
    parser.add_argument("--strategy", action="append", choices=SOURCES, help="may be repeated (default all)")
    parser.add_argument("--estimator", action="append", choices=READERS, help="may be repeated (default all)")
    parser.add_argument("--epsilon", action="append", type=float, help="may be repeated (default 0.1, 0.5 and 2)")
    parser.add_argument("--releases", type=int, default=20)
    parser.add_argument("--out", type=Path, metavar="DIR", help="where all findings go as CSV")
    return parser.parse_args(list(arguments))


def _measured(options: argparse.Namespace, console: Console) -> list[Finding]:
    kinds = options.kind or (QUICK_KINDS if options.quick else KINDS)
    strategies = options.strategy or (["auto"] if options.quick else SOURCES)
    epsilons = options.epsilon or ([0.5] if options.quick else EPSILONS)
    estimators = tuple(options.estimator or (["best"] if options.quick else READERS))
    findings: list[Finding] = []
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        work = [
            pool.submit(measure, kind, strategy, epsilon, estimators, options.releases)
            for kind in kinds
            for strategy in strategies
            for epsilon in epsilons
        ]
        for done, one in enumerate(as_completed(work), 1):
            findings += one.result()
            if console.is_terminal:
                console.print(f"{done} of {len(work)}", end="\r")
    return sorted(findings, key=lambda one: (one.kind, one.strategy, one.epsilon, one.estimator, one.question))


def _show(console: Console, title: str, findings: Iterable[Finding]) -> None:
    table = Table(title=title, title_justify="left")
    for name in ("kind", "strategy", "epsilon", "estimator", "question"):
        table.add_column(name)
    for name in ("coverage", "±", "worst", "bias", "width / error"):
        table.add_column(name, justify="right")
    for one in findings:
        table.add_row(
            *(one.kind, one.strategy, f"{one.epsilon:g}", one.estimator, one.question),
            *(f"{one.coverage:.1%}", f"{one.stderr:.1%}", f"{one.worst:.0%}"),
            *(f"{one.bias:.3g}", f"{one.width_over_error:.2f}"),
        )
    console.print(table)
