"""The interval of a count merged from noisy parts covers as often as it says."""

from pathlib import Path

import numpy as np

import veilcube as vc

SCHEMA = vc.Schema(
    [
        vc.Ordinal("age", 0, 49),
        vc.Nominal("sex", ["F", "M"]),
        vc.Ordinal("pay", edges=[0, 10, 20, 50]),
        vc.Ordinal("since", "2020-01", "2020-06", unit="month"),
    ]
)
COUNTS = np.random.default_rng(7).poisson(1.0, SCHEMA.shape)
COUNTS[:10] = COUNTS[40:] = 0
COUNTS[:, :, :, 5] = 0


def test_the_interval_of_merged_counts_covers_as_often_as_it_says(tmp_path: Path) -> None:
    cube = vc.Cube(SCHEMA, COUNTS)
    table = vc.protect(cube, ledger=f"sqlite:///{tmp_path}/budget.db", dataset="people", epsilon=10**6)
    query = vc.DistributiveQuery.count()
    held = []
    for _ in range(60):
        found = table.distributive(query, "age", by=["sex", "pay"], epsilon=1, confidence=0.8)
        held.append(found.low <= COUNTS.sum() <= found.high)
    assert 0.6 < np.mean(held) < 0.99
