"""Runs the parts of the benchmark and gathers what they found; what it does stands in the package's description."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from math import isnan
from pathlib import Path

from rich.console import Console
from rich.table import Table

from benchmarks.papers import distributive
from benchmarks.papers.distributive import intervals, maximum, parity, quantiles
from benchmarks.papers.distributive.data import Series, incomes
from benchmarks.papers.parts import folder_for, parser_of, run_parts
from benchmarks.papers.privelet.tables import show_claims, show_verdicts
from benchmarks.papers.privelet.verdict import Claim, Verdict
from benchmarks.report import make_console, write_csv

WIDTH_OF_FILES = 170


@dataclass(frozen=True)
class Size:
    """How large a run is."""

    versions: int
    queries: int
    rectangles: int
    epsilons: tuple[float, ...]
    parity_runs: int
    tables: int
    contests: tuple[quantiles.Setting, ...]


RUNS = {1000: 40, 4096: 20}  # by cells; runs on more of them take longer
CONTESTS = (
    *(
        quantiles.Setting(shape, cells, epsilon, RUNS[cells])
        for shape, cells, epsilon in product(quantiles.SHAPES, RUNS, (0.1, 0.01))
    ),
    quantiles.Setting("bell", 2**17, 0.1, 4),
)
FULL = Size(100, 1000, 10**6, intervals.EPSILONS, 400, 40, CONTESTS)
QUICK = Size(3, 200, 5000, (1.0, 0.05), 10, 4, (quantiles.Setting("bell", 1000, 0.1, 4),))


@dataclass
class Findings:
    """What the parts add to, and what is shown and written at the end."""

    console: Console
    folder: Path
    size: Size
    verdicts: list[Verdict] = field(default_factory=list)
    claims: list[Claim] = field(default_factory=list)
    figures: list[Series] = field(default_factory=list)


def run_intervals(findings: Findings) -> None:
    """Repeat both tables and figures 2 to 9."""
    size = findings.size
    findings.verdicts += intervals.judge_table_1()
    found = intervals.measure_table_2(size.versions, size.queries, size.epsilons)
    findings.claims += intervals.judge_table_2(found)
    write_csv(findings.folder / "table-2.csv", found)
    _show_table_2(findings.console, found)
    errors, claims = intervals.rectangle_errors(size.rectangles)
    findings.claims += claims
    cube = incomes()
    asked = intervals.uniform_intervals(cube.schema, size.queries)
    of_incomes = intervals.interval_errors(cube, 0.05, size.versions, asked)[intervals.OURS]
    findings.figures += intervals.draw_figures(of_incomes, errors)


def run_parity(findings: Findings) -> None:
    """Repeat figures 10 to 12."""
    findings.verdicts += parity.judge_learners(findings.size.parity_runs)
    findings.verdicts.append(parity.judge_speed())
    findings.figures += parity.draw_figures()


def run_maximum(findings: Findings) -> None:
    """Repeat figures 13 to 16, and test the promises."""
    findings.verdicts += maximum.judge_accuracy(findings.size.tables)
    findings.claims += maximum.judge_promises()
    findings.figures += maximum.draw_figures()


def run_quantiles(findings: Findings) -> None:
    """Find 99 quantiles in four ways."""
    contests = [quantiles.run_contest(setting) for setting in findings.size.contests]
    findings.verdicts += quantiles.judge_contests(contests)
    write_csv(findings.folder / "quantiles.csv", contests)


PARTS: Mapping[str, Callable[[Findings], None]] = {
    "intervals": run_intervals,
    "parity": run_parity,
    "maximum": run_maximum,
    "quantiles": run_quantiles,
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the parts that were asked for, by default all of them."""
    options = parser_of(distributive, PARTS).parse_args(arguments or [])
    folder = folder_for(distributive, options)
    findings = Findings(make_console(WIDTH_OF_FILES), folder, QUICK if options.quick else FULL)
    run_parts(findings, PARTS, options)
    show_claims(findings.console, findings.claims)
    show_verdicts(findings.console, findings.verdicts)
    write_csv(folder / "claims.csv", findings.claims)
    write_csv(folder / "bars.csv", findings.verdicts)
    write_csv(folder / "figures.csv", findings.figures)
    missed = sum(verdict.word == "MISSED" for verdict in findings.verdicts)
    findings.console.print(f"{missed} bars missed; figures and tables are in {folder}")
    return 0


def _show_table_2(console: Console, found: Sequence[intervals.Measured]) -> None:
    table = Table(title="Table 2: errors in parts of a million", title_justify="left")
    for name in ("arm", "epsilon", "mean", "largest", "printed mean", "printed largest"):
        table.add_column(name, justify="left" if name == "arm" else "right")
    for one in found:
        shares = (one.mean, one.largest, one.published_mean, one.published_largest)
        table.add_row(one.arm, f"{one.epsilon:g}", *("" if isnan(x) else f"{1e6 * x:,.4g}" for x in shares))
    console.print(table)
