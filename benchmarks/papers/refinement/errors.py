"""Refined beside unrefined answers on four tables: true equalities, and inequalities that are true of the table.

Inequalities move the cells to the nearest ones that obey them, in the metric of the noise. A true table obeys them, so
the distance to it can only shrink, in every single release: on the identity that is the sum of squared errors of cells.
"""

from dataclasses import dataclass

import numpy as np

import veilcube as vc
from benchmarks.papers.ispe.data import Table
from benchmarks.papers.privelet.verdict import Verdict
from benchmarks.papers.refinement.gains import exact_counts, refine_with

PART = "errors"
BANDS = 8
ROUNDING = 1e-9


@dataclass(frozen=True)
class Errors:
    """Root mean squared errors over releases, and the worst ratio of squared cell errors of any one release."""

    table: str
    facts: str
    cells_before: float
    cells_after: float
    ranges_before: float
    ranges_after: float
    worst_release: float
    coverage: float


def measure_errors(table: Table, facts: str, epsilon: float, queries: int, releases: int) -> Errors:
    """Release a table by the identity again and again, and refine each release."""
    asked = vc.Workload.random_ranges(table.schema, queries, seed=2)
    truth = exact_counts(table, asked)
    cells, ranges, held = [], [], []
    for _ in range(releases):
        release = vc.release(table.cube, epsilon=epsilon, strategy="identity")
        refined = _refined(release, table, facts)
        both = (release.answer(asked, estimator="least_squares"), refined.answer(asked))
        ranges.append([float(np.mean(np.square(found.value - truth))) for found in both])
        held.append(float(((both[1].low <= truth + 1e-6) & (truth <= both[1].high + 1e-6)).mean()))
        estimates = (release.to_xarray(estimator="least_squares").values, refined.to_xarray().values)
        cells.append([float(np.mean(np.square(found - table.counts))) for found in estimates])
    of_cells, of_ranges = np.array(cells), np.array(ranges)
    (cells_before, cells_after), (ranges_before, ranges_after) = np.sqrt(
        [of_cells.mean(axis=0), of_ranges.mean(axis=0)]
    )
    worst = float((of_cells[:, 1] / of_cells[:, 0]).max())
    roots = (float(cells_before), float(cells_after), float(ranges_before), float(ranges_after))
    return Errors(table.name, facts, *roots, worst, float(np.mean(held)))


def _refined(release: vc.Release, table: Table, facts: str) -> vc.Release:
    return vc.refine(release, inequalities(table)) if facts == "inequalities" else refine_with(release, table, facts)


def inequalities(table: Table) -> list[str]:
    """Return true bounds: rows within bands of public width, no row below zero, halves in their true order."""
    name, rows = table.names[0], table.counts.sum(axis=1)
    width = max(1, int(rows.max()) // BANDS)
    found = [
        f"{row // width * width} <= count({name} = {at}) <= {row // width * width + width}"
        for at, row in enumerate(rows)
    ]
    half = len(rows) // 2
    lower, upper = f"count({name} < {half})", f"count({name} >= {half})"
    is_rising = rows[:half].sum() <= rows[half:].sum()
    return [*found, f"{lower} <= {upper}" if is_rising else f"{upper} <= {lower}"]


def judge_errors(found: list[Errors]) -> list[Verdict]:
    """Return the ratios of errors; none may lie above 1."""
    verdicts = []
    for one in found:
        what = f"{one.table}, {one.facts}"
        of_ranges = one.ranges_after / one.ranges_before
        verdicts += [
            Verdict(PART, f"{what}: cells, worst single release", one.worst_release, high=1 + ROUNDING),
            Verdict(PART, f"{what}: ranges, refined / unrefined RMSE", of_ranges, high=1.0),
            Verdict(PART, f"{what}: coverage of 95% intervals", one.coverage, low=0.94),
        ]
    return verdicts
