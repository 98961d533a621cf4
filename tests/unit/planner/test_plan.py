"""Plans tell the error exactly, before any data is touched."""

from fractions import Fraction

import numpy as np
import pytest

from support.releases import release_of
from veilcube.errors import PlanError, PrivacyError, QueryError
from veilcube.planner import Identity, plan
from veilcube.query import Workload
from veilcube.schema import Ordinal, Schema

SCHEMA = Schema([Ordinal("age", 1, 30), Ordinal("floor", 1, 3)])


def test_stddev_is_what_answers_state_and_what_simulation_shows() -> None:
    workload = Workload(SCHEMA, [{"age": (1, 10)}, {"floor": 2}, "age = 3 OR floor = 1"])
    chosen = plan(SCHEMA, epsilon=0.5, workload=workload)
    counts = np.full(SCHEMA.shape, 4)
    drawn = [release_of(SCHEMA, counts, epsilon=0.5, seed=seed).answer(workload) for seed in range(2000)]
    np.testing.assert_allclose(chosen.stddev(workload), drawn[0].stddev)
    measured = np.std([answers.value for answers in drawn], axis=0)
    np.testing.assert_allclose(measured, chosen.stddev(workload), rtol=0.06)
    assert chosen.expected_error == pytest.approx(np.sqrt(np.mean(chosen.stddev(workload) ** 2)))


@pytest.mark.parametrize(
    ("neighbours", "unit", "scale"),
    [
        ("add-remove", {}, Fraction(10)),
        ("replace", {}, Fraction(20)),
        ("add-remove", {"person": "id", "max_rows": 3}, Fraction(30)),
        ("replace", {"person": "id", "max_rows": 3}, Fraction(60)),
    ],
)
def test_scale_follows_neighbours_and_unit(neighbours: str, unit: dict[str, object], scale: Fraction) -> None:
    assert plan(SCHEMA, 0.1, neighbours=neighbours, **unit).noise.scale == scale


def test_auto_names_its_candidates() -> None:
    chosen = plan(SCHEMA, "1/3")
    assert chosen.epsilon == Fraction(1, 3)
    assert [candidate.strategy for candidate in chosen.candidates] == [Identity()]
    assert chosen.candidates[0].expected_error == chosen.expected_error
    assert chosen.to_dict()["strategy"] == {"name": "identity"}


@pytest.mark.parametrize(
    "epsilon",
    [0, -1, float("nan"), float("inf"), "abc", None, True, "1/0", "1e999999999", 1e-300, 10**400, "1e-30000000"],
)
def test_an_epsilon_that_makes_no_sense_is_refused(epsilon: object) -> None:
    with pytest.raises(PrivacyError, match="epsilon"):
        plan(SCHEMA, epsilon).noise  # noqa: B018 - the scale is computed when it is asked for


def test_other_bad_input_is_refused() -> None:
    other = Workload.prefixes(Schema([Ordinal("age", 1, 4)]))
    with pytest.raises(PlanError, match="another schema"):
        plan(SCHEMA, workload=other)
    with pytest.raises(QueryError, match="another schema"):
        plan(SCHEMA).stddev(other)
    with pytest.raises(PlanError, match="not known"):
        plan(SCHEMA, strategy="magic")
    with pytest.raises(PlanError, match="strategy"):
        plan(SCHEMA, strategy=42)
    with pytest.raises(PrivacyError, match="neighbours"):
        plan(SCHEMA, neighbours="siblings")
    with pytest.raises(PrivacyError, match="go together"):
        plan(SCHEMA, person="id")
