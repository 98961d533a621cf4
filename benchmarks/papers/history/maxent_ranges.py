"""Figure 7: the error of random ranges on one to five attributes at once, from all noisy two-way marginals."""

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

import veilcube as vc
from benchmarks.papers.history.asking import PublicTable
from benchmarks.papers.history.census import random_attribute_ranges
from benchmarks.papers.history.findings import Findings
from benchmarks.papers.history.maxent_baselines import RetentionReplacement
from benchmarks.papers.history.maxent_parts import EPSILON, PART, noisy_pairs
from benchmarks.papers.privelet.verdict import Claim, Verdict
from veilcube.query import LinearQueries

Floats: TypeAlias = NDArray[np.float64]

MOST_ATTRIBUTES = 5
QUERIES, QUICK_QUERIES = 500, 20


@dataclass(frozen=True)
class RangeErrors:
    """Root mean squared errors of ranges on so many attributes, in rows, and the share of 95% intervals that held."""

    attributes: int
    mean_count: float
    maximum_entropy: float
    independence: float
    retention_replacement: float
    held: float


def run_ranges(findings: Findings) -> None:
    """Ask maximum entropy, independence and the better randomised response the same ranges."""
    table = findings.table
    history, _ = noisy_pairs(table, seed=5)
    model = vc.MaxEntropy().fit(history, total=table.rows)
    kept = RetentionReplacement(table.codes, table.schema.shape, EPSILON, seed=1)
    rows = []
    for attributes in range(1, MOST_ATTRIBUTES + 1):
        number = QUERIES if findings.is_large else QUICK_QUERIES
        asked = random_attribute_ranges(table.schema, number, seed=attributes, attributes=attributes)
        truth, answers = LinearQueries.of(asked).count_rows(table.codes), model.answer(asked)
        others = (independent_counts(table, asked), table.rows * kept.shares(asked.low, asked.high))
        ours, independence, response = (_rmse(found, truth) for found in (answers.value, *others))
        held = float(np.mean((answers.low <= truth) & (truth <= answers.high)))
        rows.append(RangeErrors(attributes, float(truth.mean()), ours, independence, response, held))
    findings.add("k-D ranges", rows)
    bar = 0.93 if findings.is_full else None
    findings.verdicts += [
        Verdict(PART, f"95% intervals that hold, ranges on {one.attributes}", one.held, low=bar) for one in rows[:3]
    ]
    findings.claims.append(
        Claim(
            "figure 7",
            "maximum entropy has the least error for ranges on k attributes",
            ", ".join(f"{one.maximum_entropy:,.0f} / {one.retention_replacement:,.0f}" for one in rows),
            all(one.maximum_entropy < one.retention_replacement for one in rows),
        )
    )


def independent_counts(table: PublicTable, asked: vc.Workload) -> Floats:
    """Return the counts that independent attributes with the exact one-way marginals would have."""
    shares = np.ones(len(asked))
    for axis in range(len(table.schema)):
        upto = np.concatenate([[0.0], np.cumsum(table.marginal(axis) / table.rows)])
        shares *= upto[asked.high[:, axis] + 1] - upto[asked.low[:, axis]]
    return table.rows * shares


def _rmse(found: Floats, truth: Floats) -> float:
    return float(np.sqrt(np.mean(np.square(found - truth))))
