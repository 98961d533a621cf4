"""Runs the parts of the benchmark and gathers what they found; what it does stands in the package's description."""

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from rich.console import Console
from rich.table import Table as Shown

import veilcube as vc
from benchmarks.papers import refinement
from benchmarks.papers.ispe.data import AGE_EDUCATION, made_tables
from benchmarks.papers.parts import folder_for, parser_of, run_parts
from benchmarks.papers.privelet.tables import WIDTH_OF_FILES, show_verdicts
from benchmarks.papers.privelet.verdict import Verdict
from benchmarks.papers.refinement import errors, gains, privacy, speed
from benchmarks.report import make_console, write_csv


@dataclass(frozen=True)
class Size:
    """How large a run is."""

    draws: int
    queries: int
    releases: int
    shapes: tuple[tuple[str, tuple[int, ...]], ...]
    facts: int
    inequalities: tuple[tuple[str, tuple[int, ...], int], ...]


LARGE = (("identity", (1000, 1000)), ("tree", (1000, 1000)), ("wavelet", (100, 100, 100)), ("adaptive", (1000, 1000)))
MANY = (("identity", (64, 64), 2_000), ("tree", (64, 64), 2_000))
FEW = (("tree", (16, 16), 50),)
FULL = Size(draws=20_000_000, queries=1_000, releases=40, shapes=LARGE, facts=10_000, inequalities=MANY)
QUICK = Size(draws=1_000_000, queries=20, releases=2, shapes=(("wavelet", (20, 20, 20)),), facts=100, inequalities=FEW)
EPSILON = 0.2


@dataclass
class Findings:
    """What the parts add to."""

    console: Console
    folder: Path
    size: Size
    verdicts: list[Verdict] = field(default_factory=list)

    def show(self, title: str, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
        """Print an aligned table."""
        table = Shown(title=title, title_justify="left")
        for column in columns:
            table.add_column(column)
        for row in rows:
            table.add_row(*row)
        self.console.print(table)


def run_privacy(findings: Findings) -> None:
    """Simulate the densities of the paper's examples."""
    ratios = [ratio for example in privacy.examples() for ratio in privacy.simulate(example, findings.size.draws)]
    write_csv(findings.folder / "privacy.csv", ratios)
    rows = [
        (
            one.example,
            f"{one.place:g}",
            f"{one.simulated:.3f} ± {one.stderr:.3f}",
            f"{one.exact:.3f}",
            f"{one.loss:.3f}",
        )
        for one in ratios
    ]
    findings.show("log ratio of the densities, epsilon 1", ("example", "at", "simulated", "exact", "loss"), rows)
    findings.verdicts += privacy.judge_privacy(ratios)


def run_gains(findings: Findings) -> None:
    """List what facts leave of variances."""
    (table,) = (one for one in made_tables() if one.name == AGE_EDUCATION)
    found = gains.measure_gains(table, EPSILON, findings.size.queries)
    write_csv(findings.folder / "gains.csv", found)
    kinds = tuple(dict.fromkeys(one.questions for one in found))
    known = {(one.strategy, one.known, one.questions): one.ratio for one in found}
    rows = [
        (*pair, *(f"{known[(*pair, kind)]:.4f}" for kind in kinds)) for pair in dict.fromkeys(key[:2] for key in known)
    ]
    findings.show(f"refined / unrefined variance, {table.name}", ("strategy", "known", *kinds), rows)
    findings.verdicts += gains.judge_gains(found)


def run_errors(findings: Findings) -> None:
    """Compare errors on the four tables."""
    size = findings.size
    found = [
        errors.measure_errors(table, facts, EPSILON, size.queries, size.releases)
        for table in made_tables()
        for facts in ("total", "first marginal", "inequalities")
    ]
    write_csv(findings.folder / "errors.csv", found)
    findings.verdicts += errors.judge_errors(found)


def run_speed(findings: Findings) -> None:
    """Refine large cubes."""
    found = [speed.run_large(strategy, shape, findings.size.facts) for strategy, shape in findings.size.shapes]
    found += [speed.run_large(strategy, shape, many, "bounded") for strategy, shape, many in findings.size.inequalities]
    write_csv(findings.folder / "speed.csv", found)
    findings.verdicts += speed.judge_large(found)


PARTS: Mapping[str, Callable[[Findings], None]] = {
    "privacy": run_privacy,
    "gains": run_gains,
    "errors": run_errors,
    "speed": run_speed,
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the parts that were asked for; return 2, after one sentence, if what was given cannot be used."""
    options = parser_of(refinement, PARTS).parse_args(arguments or [])
    folder = folder_for(refinement, options)
    findings = Findings(make_console(WIDTH_OF_FILES), folder, QUICK if options.quick else FULL)
    try:
        run_parts(findings, PARTS, options)
    except vc.VeilcubeError as problem:
        print(problem, file=sys.stderr)
        return 2
    show_verdicts(findings.console, findings.verdicts)
    write_csv(folder / "bars.csv", findings.verdicts)
    words = [one.word for one in findings.verdicts if one.word]
    findings.console.print(f"bars missed: {words.count('MISSED')} of {len(words)}; written to {folder}")
    return 0
