"""Runs the parts of the benchmark and gathers what they found; what it does stands in the package's description."""

import argparse
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from rich.console import Console

import veilcube as vc
from benchmarks.papers import ispe
from benchmarks.papers.ispe import arrays, coverage, errors, figures, speed, tables
from benchmarks.papers.ispe.claims import judge_figures, judge_intervals
from benchmarks.papers.ispe.coverage import CoverageEffort
from benchmarks.papers.ispe.data import AGE_HOURS, Table, made_tables, read_tables
from benchmarks.papers.ispe.figures import Effort
from benchmarks.papers.ispe.plot import write_plot
from benchmarks.papers.ispe.trials import Measured, summarise
from benchmarks.papers.parts import folder_for, parser_of, run_parts
from benchmarks.papers.privelet.tables import WIDTH_OF_FILES, show_verdicts
from benchmarks.papers.privelet.verdict import Claim, Verdict
from benchmarks.peers.dpbench.arrays import CountArray, InputError
from benchmarks.report import make_console, write_csv


@dataclass(frozen=True)
class Size:
    """How large a run is: queries of a kind, and how often each part releases."""

    queries: int
    error_releases: int
    coverage: CoverageEffort
    rivals: Effort
    figures: Effort
    cube: tuple[int, ...]
    queries_to_time: int
    trials: int


FULL = Size(
    queries=500,
    error_releases=200,
    coverage=CoverageEffort(of_least_squares=2400, of_default=200, of_chosen_regions=80, regions=40),
    rivals=Effort(queries=500, releases=30),
    figures=Effort(queries=500, releases=8, slow_queries=25),
    cube=speed.SHAPE,
    queries_to_time=100_000,
    trials=10,
)
QUICK = Size(
    queries=20,
    error_releases=2,
    coverage=CoverageEffort(of_least_squares=3, of_default=2, of_chosen_regions=2, regions=3),
    rivals=Effort(queries=5, releases=2),
    figures=Effort(queries=5, releases=2, slow_queries=1, settings=2),
    cube=(16, 16, 4),
    queries_to_time=1_000,
    trials=2,
)


@dataclass
class Findings:
    """What the parts add to, and what is shown and drawn at the end."""

    console: Console
    folder: Path
    size: Size
    epsilon: float
    tables: tuple[Table, ...]
    arrays: tuple[CountArray, ...]
    verdicts: list[Verdict] = field(default_factory=list)
    claims: list[Claim] = field(default_factory=list)
    measured: list[Measured] = field(default_factory=list)

    def keep(self, measured: Sequence[Measured]) -> None:
        """Show and write what was measured; anew each time, so that a run that is stopped leaves what it found."""
        self.measured += measured
        tables.show_measured(self.console, measured)
        write_csv(self.folder / "ispe.csv", self.measured)


def run_errors(findings: Findings) -> None:
    """Compare the default with the identity and with least squares."""
    size = findings.size
    for table in findings.tables:
        found = errors.measure_errors(table, findings.epsilon, size.queries, size.error_releases)
        findings.keep(summarise(errors.PART, table, findings.epsilon, found))
        findings.verdicts += errors.judge_errors(table, found)


def run_coverage(findings: Findings) -> None:
    """Count the intervals that hold the truth."""
    size = findings.size
    found: list[coverage.Coverage] = []
    for table in findings.tables:
        found += coverage.measure_coverage(table, findings.epsilon, size.queries, size.coverage)
    tables.show_coverage(findings.console, found)
    findings.verdicts += coverage.judge_coverage(found)


def run_speed(findings: Findings) -> None:
    """Time a large cube and many queries."""
    (table,) = (one for one in findings.tables if one.name == AGE_HOURS)
    findings.verdicts += speed.run_speed(table, findings.size.cube, findings.epsilon, findings.size.queries_to_time)


def run_figures(findings: Findings) -> None:
    """Draw the paper's figures and judge its claims."""
    for figure in figures.draw_figures(findings.tables, findings.epsilon, findings.size.figures):
        findings.keep(figure.measured)
        findings.claims += judge_figures([figure])
    for table in findings.tables:
        findings.claims.append(judge_intervals(table, findings.epsilon, findings.size.figures.releases))


def run_rivals(findings: Findings) -> None:
    """Compare the default with every other release."""
    for figure in figures.run_rivals(findings.tables, findings.epsilon, findings.size.rivals):
        findings.keep(figure.measured)


def run_arrays(findings: Findings) -> None:
    """Compare with "auto" on arrays that are not part of this repository."""
    if not findings.arrays:
        findings.console.print("no arrays: name the folder of the DPBench arrays by --data")
        return
    contests = arrays.run_contests(findings.arrays, findings.size.trials)
    write_csv(findings.folder / "arrays.csv", contests)
    findings.verdicts += arrays.judge_contests(contests)


PARTS: Mapping[str, Callable[[Findings], None]] = {
    "speed": run_speed,
    "errors": run_errors,
    "coverage": run_coverage,
    "rivals": run_rivals,
    "figures": run_figures,
    "arrays": run_arrays,
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the parts that were asked for; return 2, after one sentence, if what was given cannot be used."""
    options = _read_options(arguments or [])
    try:
        _run(options)
    except (InputError, vc.VeilcubeError) as problem:
        print(problem, file=sys.stderr)
        return 2
    return 0


def _run(options: argparse.Namespace) -> None:
    made = made_tables() + read_tables(options.table or ())
    contested = arrays.read_arrays(options.data) if options.data else ()
    folder = folder_for(ispe, options)
    size = QUICK if options.quick else FULL
    findings = Findings(make_console(WIDTH_OF_FILES), folder, size, options.epsilon, made, contested)
    run_parts(findings, PARTS, options)
    tables.show_claims(findings.console, findings.claims)
    show_verdicts(findings.console, findings.verdicts)
    write_csv(folder / "claims.csv", findings.claims)
    write_csv(folder / "bars.csv", findings.verdicts)
    drawn = write_plot(folder, findings.measured)
    if not drawn and any(one.setting is not None for one in findings.measured):
        findings.console.print("no plot was drawn, for Altair is not installed; run pip install 'veilcube[report]'")
    words = [one.word for one in findings.verdicts if one.word]
    findings.console.print(f"bars missed: {words.count('MISSED')} of {len(words)}; written to {folder}")


def _read_options(arguments: Sequence[str]) -> argparse.Namespace:
    parser = parser_of(ispe, PARTS)
    parser.add_argument("--epsilon", type=float, default=0.2, help="of the tables (default 0.2)")
    parser.add_argument("--table", type=Path, metavar="FILE", nargs="+", help="2-D .npy counts beside the four tables")
    parser.add_argument("--data", type=Path, metavar="DIR", help="the folder that holds the DPBench arrays, 2D/*.npy")
    return parser.parse_args(arguments)
