"""The standard deviation of answers over many releases is the one that was planned."""

import numpy as np
import pytest

from support.releases import release_of
from veilcube.planner import plan
from veilcube.query import Workload
from veilcube.schema import Ordinal, Schema

SCHEMA = Schema([Ordinal("age", 1, 30), Ordinal("floor", 1, 3)])


def test_stddev_is_what_answers_state_and_what_simulation_shows() -> None:
    workload = Workload(SCHEMA, [{"age": (1, 10)}, {"floor": 2}, "age = 3 OR floor = 1"])
    chosen = plan(SCHEMA, epsilon=0.5, strategy="identity")
    counts = np.full(SCHEMA.shape, 4)
    drawn = [
        release_of(SCHEMA, counts, epsilon=0.5, seed=seed).answer(workload, estimator="least_squares")
        for seed in range(600)
    ]
    np.testing.assert_allclose(chosen.stddev(workload), drawn[0].stddev)
    measured = np.std([answers.value for answers in drawn], axis=0)
    np.testing.assert_allclose(measured, chosen.stddev(workload), rtol=0.1)
    assert chosen.expected_error == pytest.approx(np.sqrt(np.mean(chosen.stddev(chosen.workload) ** 2)))
