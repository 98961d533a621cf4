"""Runs the parts of the benchmark and gathers what they found; what it does stands in the package's description."""

import argparse
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from rich.console import Console

from benchmarks.papers import privelet
from benchmarks.papers.parts import folder_for, parser_of, run_parts
from benchmarks.papers.privelet import accuracy, command_line, scaling, speed, tables, variance
from benchmarks.papers.privelet.census import BRAZIL, SMALL, UNITED_STATES, Census
from benchmarks.papers.privelet.claims import judge_accuracy
from benchmarks.papers.privelet.plot import write_plots
from benchmarks.papers.privelet.scaling import Timing
from benchmarks.papers.privelet.verdict import Claim, Verdict
from benchmarks.report import make_console, write_csv

EPSILONS = (0.5, 0.75, 1.0, 1.25)


@dataclass(frozen=True)
class Size:
    """How large a run is."""

    censuses: tuple[Census, ...]
    queries: int
    rows: tuple[int, ...]
    powers: tuple[int, ...]
    fixed_power: int
    fixed_rows: int
    queries_to_time: int
    releases: int


FULL = Size(
    censuses=(BRAZIL, UNITED_STATES),
    queries=40_000,
    rows=scaling.ROWS,
    powers=scaling.CELL_POWERS,
    fixed_power=scaling.FIXED_POWER,
    fixed_rows=scaling.FIXED_ROWS,
    queries_to_time=100_000,
    releases=15_000,
)
QUICK = Size(
    censuses=(SMALL,),
    queries=2_000,
    rows=(20_000, 40_000, 60_000),
    powers=(12, 13, 14),
    fixed_power=12,
    fixed_rows=20_000,
    queries_to_time=10_000,
    releases=50,
)


@dataclass
class Findings:
    """What the parts add to, and what is shown and drawn at the end."""

    console: Console
    folder: Path
    size: Size
    epsilons: Sequence[float]
    verdicts: list[Verdict] = field(default_factory=list)
    claims: list[Claim] = field(default_factory=list)
    quintiles: list[accuracy.Quintile] = field(default_factory=list)
    timings: dict[str, list[Timing]] = field(default_factory=dict)


def run_command_line(findings: Findings) -> None:
    """Release the first census by the command line and question the file."""
    run = command_line.run_command(findings.size.censuses[0], findings.folder, findings.size.queries_to_time)
    findings.verdicts += command_line.judge_command(run)


def run_speed(findings: Findings) -> None:
    """Time transforms beside numpy."""
    findings.verdicts += speed.judge_speeds(speed.measure_speeds(findings.size.censuses[0]))


def run_scaling(findings: Findings) -> None:
    """Time more and more rows and cells."""
    size = findings.size
    by_rows = scaling.time_sizes([(size.fixed_power, rows) for rows in size.rows])
    by_cells = scaling.time_sizes([(power, size.fixed_rows) for power in size.powers])
    findings.timings |= {"rows": by_rows, "cells": by_cells}
    for name, timings in findings.timings.items():
        tables.show_timings(findings.console, timings, f"seconds against {name}, best of {scaling.ROUNDS}")
        write_csv(findings.folder / f"time-by-{name}.csv", timings)
    verdicts, claims = scaling.judge_times(by_rows, by_cells)
    findings.verdicts += verdicts
    findings.claims += claims


def run_variance(findings: Findings) -> None:
    """Release small cubes many times."""
    for small in variance.SMALL_CUBES:
        findings.verdicts += variance.judge_spreads(variance.measure_spreads(small, findings.size.releases))


def run_accuracy(findings: Findings) -> None:
    """Ask the paper's queries."""
    for census in findings.size.censuses:
        for experiment in accuracy.run_experiments(census, findings.epsilons, findings.size.queries):
            found = accuracy.in_quintiles(experiment)
            findings.quintiles += found
            findings.claims += judge_accuracy([experiment])
            tables.show_quintiles(findings.console, found)
            tables.show_outcomes(findings.console, [experiment])
            # Anew after each, so that a run that is stopped leaves what it found.
            write_csv(findings.folder / "quintiles.csv", findings.quintiles)


PARTS: Mapping[str, Callable[[Findings], None]] = {
    "command": run_command_line,
    "speed": run_speed,
    "time": run_scaling,
    "variance": run_variance,
    "accuracy": run_accuracy,
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the parts that were asked for, by default all of them at epsilon 1."""
    options = _read_options(arguments or [])
    folder = folder_for(privelet, options)
    epsilons = EPSILONS if options.all else options.epsilon or (1.0,)
    findings = Findings(make_console(tables.WIDTH_OF_FILES), folder, QUICK if options.quick else FULL, epsilons)
    run_parts(findings, PARTS, options)
    tables.show_claims(findings.console, findings.claims)
    tables.show_verdicts(findings.console, findings.verdicts)
    write_csv(folder / "claims.csv", findings.claims)
    write_csv(folder / "bars.csv", findings.verdicts)
    drawn = write_plots(folder, findings.quintiles, findings.timings)
    if not drawn and (findings.quintiles or findings.timings):
        findings.console.print("no plot was drawn, for Altair is not installed; run pip install 'veilcube[report]'")
    findings.console.print(f"written to {folder}")
    return 0


def _read_options(arguments: Sequence[str]) -> argparse.Namespace:
    parser = parser_of(privelet, PARTS)
    parser.add_argument("--all", action="store_true", help="all of the paper's epsilons, 0.5 to 1.25")
    parser.add_argument("--epsilon", type=float, action="append", help="may be repeated (default 1)")
    return parser.parse_args(arguments)
