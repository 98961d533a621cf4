"""Gaussian noise beside Laplace noise: plans at the same promise, and planned errors beside simulated ones.

Run: python -m benchmarks.zcdp [--quick]

No table is read: three schemas are planned for from public facts, and releases of empty tables show noise alone, drawn
by the samplers that releases are drawn by.
"""

import argparse
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import comb, isqrt, sqrt

import numpy as np
from rich.table import Table

import veilcube as vc
from benchmarks.papers.privelet.census import BRAZIL
from benchmarks.papers.privelet.tables import WIDTH_OF_FILES, show_verdicts
from benchmarks.papers.privelet.verdict import Verdict
from benchmarks.report import make_console
from veilcube.planner import Strategy, make_plan
from veilcube.privacy import Neighbours, PrivacyUnit, Promise

PART = "zcdp"
EPSILON, DELTA = Fraction(1), Fraction(1, 10**9)
# What epsilon 1 costs a budget in rho.
EQUAL_RHO = EPSILON**2 / 2
# The sizes of the fourteen attributes of the Adult table; amounts of money and weights in a hundred bins.
ADULT = (74, 9, 100, 16, 16, 7, 15, 6, 5, 2, 100, 100, 99, 42)
VISITS = (74, 9, 16, 7, 15, 6, 2)
MOST_ROWS = 6
RELEASES, RELEASES_OF_A_QUICK_RUN = 10_000, 40
QUERIES = 60
NEAR = (0.99, 1.01)
COVERAGE_BAR = (0.94, 0.965)
SIMULATED_RHO = Fraction(1, 10)


@dataclass(frozen=True)
class Case:
    """A schema to plan for, by a strategy, for persons with so many rows if any."""

    name: str
    schema: vc.Schema
    strategy: str
    max_rows: int | None = None

    def plan(self, promise: Promise) -> vc.Plan:
        """Plan under a promise, with the questions that are natural for the strategy."""
        unit = PrivacyUnit.read(None if self.max_rows is None else "person", self.max_rows)
        return make_plan(self.schema, promise, self.strategy, None, Neighbours.ADD_REMOVE, unit)


def cases(quick: bool) -> list[Case]:
    """Return what is planned for; a quick run leaves out the large cube."""
    adult = vc.Schema([vc.Ordinal(f"a{number}", 1, size) for number, size in enumerate(ADULT)])
    visits = vc.Schema([vc.Ordinal(f"a{number}", 1, size) for number, size in enumerate(VISITS)])
    brazil = [
        Case("Privelet's Brazil cube, wavelet", BRAZIL.schema, "wavelet"),
        Case("Privelet's Brazil cube, auto", BRAZIL.schema, "auto"),
    ]
    tables = [
        Case("all 2-way marginals of 14 attributes", adult, "marginals"),
        Case("6 rows a person, 21 tables of 7 attributes", visits, "marginals", MOST_ROWS),
    ]
    return tables if quick else brazil + tables


@dataclass(frozen=True)
class Compared:
    """The expected errors of one case: epsilon alone, with a delta, and either noise at one rho."""

    case: Case
    pure: vc.Plan
    pair: vc.Plan
    at_rho: vc.Plan

    @classmethod
    def of(cls, case: Case) -> "Compared":
        """Plan under the three promises."""
        promises = (Promise.read(EPSILON), Promise.read(EPSILON, DELTA), Promise.read(rho=EQUAL_RHO))
        return cls(case, *map(case.plan, promises))

    @property
    def laplace_at_rho(self) -> float:
        """The least error of Laplace noise at the rho, which buys it epsilon 1."""
        return min(option.expected_error for option in self.at_rho.candidates if option.family == "laplace")

    @property
    def row(self) -> tuple[str, ...]:
        """What is shown."""
        pair = self.pair
        return (
            self.case.name,
            f"{self.pure.expected_error:,.4g} ({self.pure.strategy.name})",
            f"{pair.expected_error:,.4g} ({pair.strategy.name}, {pair.family})",
            f"{pair.expected_error / self.pure.expected_error:.3f}",
            f"{self.laplace_at_rho:,.4g}",
            f"{self.at_rho.expected_error:,.4g} ({self.at_rho.strategy.name}, {self.at_rho.family})",
            f"{self.at_rho.expected_error / self.laplace_at_rho:.3f}",
        )


def show_plans(compared: Sequence[Compared]) -> None:
    """Print the errors side by side, Laplace noise being the reference."""
    table = Table(title="expected error of one count", title_justify="left")
    table.add_column("planned for")
    pair = f"epsilon 1, delta {float(DELTA):g}"
    for name in ("epsilon 1", pair, "ratio", "Laplace at rho 1/2", "taken at rho 1/2", "ratio"):
        table.add_column(name, justify="right")
    for one in compared:
        table.add_row(*one.row)
    console = make_console(WIDTH_OF_FILES)
    console.print(table)
    for one in compared:
        console.print(f"{one.case.name}: {one.pair.reason}.")


def price_verdicts() -> list[Verdict]:
    """Return what six rows of one person cost in 21 tables, each of weight 1, beside what they must cost."""
    tables = comb(len(VISITS), 2)
    case = next(one for one in cases(quick=True) if one.max_rows == MOST_ROWS)
    even = vc.plan(
        case.schema, rho=EQUAL_RHO, strategy=vc.Marginals(2, (1,) * tables), person="person", max_rows=MOST_ROWS
    )
    length = sqrt(even.sensitivity_l2_squared)
    most = MOST_ROWS * tables
    return [
        Verdict(PART, "6 rows in 21 tables, in sum", even.sensitivity, low=most, high=most),
        Verdict(PART, "6 rows in 21 tables, in length", length, high=isqrt(MOST_ROWS**2 * tables) + 1),
    ]


SMALL = vc.Schema([vc.Ordinal("age", 1, 16), vc.Nominal("job", hierarchy={"A": ["a", "b"], "B": ["c", "d"]})])
THREE = vc.Schema([vc.Ordinal("a", 1, 6), vc.Ordinal("b", 1, 4), vc.Ordinal("c", 1, 3)])
FAMILIES: dict[str, tuple[vc.Schema, Strategy | str]] = {
    "identity": (SMALL, "identity"),
    "tree": (SMALL, "tree"),
    "wavelet": (SMALL, "wavelet"),
    "marginals": (THREE, "marginals"),
    "matched": (SMALL, "matched"),
    "adaptive blocks": (SMALL, vc.Adaptive(partition="blocks")),
}


def simulate(name: str, releases: int) -> list[Verdict]:
    """Return the error of many releases of an empty table over the planned one, and how many intervals hold its 0."""
    schema, strategy = FAMILIES[name]
    asked = vc.Workload.marginals(schema, 2) if name == "marginals" else vc.Workload.random_ranges(schema, QUERIES, 1)
    chosen = vc.plan(schema, rho=SIMULATED_RHO, strategy=strategy, workload=asked)
    empty = vc.Cube(schema, np.zeros(schema.shape, dtype=np.int64))
    squares, held = 0.0, 0.0
    for _ in range(releases):
        answers = vc.release(empty, plan=chosen).answer(asked, estimator="least_squares")
        squares += float(np.square(answers.value).mean())
        held += float(((answers.low <= 0) & (answers.high >= 0)).mean())
    found = sqrt(squares / releases)
    note = f"{found:.4g} found, {chosen.expected_error:.4g} planned, {chosen.family} noise, {releases:,} releases"
    return [
        Verdict(PART, f"{name}: error / planned", found / chosen.expected_error, low=NEAR[0], high=NEAR[1], note=note),
        Verdict(PART, f"{name}: 95% intervals that hold", held / releases, low=COVERAGE_BAR[0], high=COVERAGE_BAR[1]),
    ]


def main(arguments: Sequence[str] | None = None) -> int:
    """Plan, simulate, and show every figure beside its bar."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.zcdp", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="few releases: proves that it runs, and nothing else")
    options = parser.parse_args(arguments or [])
    show_plans([Compared.of(case) for case in cases(options.quick)])
    verdicts = price_verdicts()
    for name in FAMILIES:
        verdicts += simulate(name, RELEASES_OF_A_QUICK_RUN if options.quick else RELEASES)
    show_verdicts(make_console(WIDTH_OF_FILES), verdicts)
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
