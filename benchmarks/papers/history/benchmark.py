"""Runs the parts of the benchmark and gathers what they found; what it does stands in the package's description."""

import argparse
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from benchmarks.papers import history
from benchmarks.papers.history import kernel_parts, maxent_parts, maxent_ranges
from benchmarks.papers.history.census import PeopleTable
from benchmarks.papers.history.findings import FULL, QUICK, Findings
from benchmarks.papers.history.kdd import CensusIncome
from benchmarks.papers.history.plot import write_plot
from benchmarks.papers.parts import folder_for, parser_of, run_parts
from benchmarks.papers.privelet.tables import WIDTH_OF_FILES, show_verdicts
from benchmarks.report import make_console, write_csv

PARTS: Mapping[str, Callable[[Findings], None]] = {
    "alpha": kernel_parts.run_alpha,
    "cross-validation": kernel_parts.run_cross_validation,
    "settings": kernel_parts.run_settings,
    "time": kernel_parts.run_time,
    "publishing": maxent_parts.run_publishing,
    "ranges": maxent_ranges.run_ranges,
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the parts that were asked for, by default all of them."""
    options = _read_options(arguments or [])
    folder = folder_for(history, options)
    size = QUICK if options.quick else FULL
    table = PeopleTable(size.rows) if options.kdd is None else CensusIncome(options.kdd)
    findings = Findings(make_console(WIDTH_OF_FILES), folder, size, table)
    run_parts(findings, PARTS, options)
    findings.show("claims of the paper's section 5", findings.claims)
    show_verdicts(findings.console, findings.verdicts)
    write_csv(folder / "claims.csv", findings.claims)
    write_plot(findings)
    write_csv(folder / "bars.csv", findings.verdicts)
    findings.console.print(f"written to {folder}")
    return 0


def _read_options(arguments: Sequence[str]) -> argparse.Namespace:
    parser = parser_of(history, PARTS)
    parser.add_argument("--kdd", type=Path, metavar="DIR", help="use the KDD census-income table from this folder")
    return parser.parse_args(arguments)
