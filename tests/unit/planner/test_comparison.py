"""What was released is compared with what was promised, by the noise of what was measured."""

from typing import Any

import numpy as np
import pytest

import veilcube as vc
from veilcube.errors import PlanError, QueryError

SCHEMA = vc.Schema([vc.Ordinal("age", 1, 64), vc.Nominal("sex", ["Female", "Male"])])
CUBE = vc.Cube(SCHEMA, np.full((64, 2), 5))
ASKED = vc.Workload(SCHEMA, ["age < 20", "sex = 'Male'", "age = 3 OR age = 60"], weights=[5, 1, 1])


@pytest.mark.parametrize("strategy", ["identity", "tree", "wavelet", "matched", "adaptive", vc.Marginals(k=1)], ids=str)
@pytest.mark.parametrize("promise", [{"epsilon": 0.5}, {"rho": 0.1}], ids=str)
def test_what_is_measured_at_once_is_as_was_promised(strategy: Any, promise: dict[str, float]) -> None:
    made = vc.plan(SCHEMA, strategy=strategy, workload=ASKED, **promise)
    found = made.compare(vc.release(CUBE, plan=made), confidence=0.9)
    assert found.is_kept
    assert found.foreseen == ""
    assert found.released == pytest.approx(found.promised, rel=1e-3)
    assert found.released_error == pytest.approx(found.promised_error, rel=1e-3)
    assert found.promised == pytest.approx(made.half_width(confidence=0.9))
    assert "for your queries; released" in str(found)


@pytest.mark.parametrize("strategy", [vc.Adaptive("grow"), vc.KdTree(), "grouped tables"], ids=str)
def test_what_depends_on_the_data_says_what_was_assumed(strategy: Any) -> None:
    made = vc.plan(SCHEMA, strategy=strategy, workload=ASKED)
    found = made.compare(vc.release(CUBE, plan=made))
    assert found.foreseen
    assert not made.is_exact
    assert found.foreseen in str(found)
    assert found.to_dict()["released"] is not None


def test_a_release_of_another_plan_is_no_comparison() -> None:
    made = vc.plan(SCHEMA, strategy="identity", workload=ASKED)
    with pytest.raises(PlanError, match="another plan"):
        made.compare(vc.release(CUBE, epsilon=0.5, strategy="identity"))
    with pytest.raises(QueryError):
        made.compare(vc.release(CUBE, plan=made), confidence=2)


def test_a_weight_counts_as_so_many_questions() -> None:
    repeated = vc.Workload(SCHEMA, ["age < 20"] * 5 + ["sex = 'Male'", "age = 3 OR age = 60"])
    for strategy in ("identity", "tree", "wavelet", "matched", "adaptive", "grouped tables"):
        weighted, listed = (vc.plan(SCHEMA, strategy=strategy, workload=one) for one in (ASKED, repeated))
        assert weighted.expected_error == pytest.approx(listed.expected_error, rel=1e-9)
        assert weighted.half_width() == pytest.approx(listed.half_width(), rel=1e-9)


def test_what_matters_more_is_answered_better() -> None:
    queries = ["age < 33", "age = 7", "age = 8", "age = 9"]
    for strategy in ("tree", "matched"):
        whole, cells = (
            vc.plan(SCHEMA, strategy=strategy, workload=vc.Workload(SCHEMA, queries, weights=weights))
            for weights in ([100, 1, 1, 1], [1, 100, 100, 100])
        )
        first = vc.Workload(SCHEMA, queries[:1])
        assert whole.stddev(first)[0] < 0.9 * cells.stddev(first)[0]


@pytest.mark.parametrize(
    "weights", [[1], [1, 2, 3], [0, 1], [-1, 1], ["a", 1], [float("nan"), 1], [1e-300, 1], "12", 3, {}]
)
def test_weights_that_make_no_sense_are_refused(weights: Any) -> None:
    with pytest.raises(QueryError, match="weight"):
        vc.Workload(SCHEMA, ["age < 3", "age > 4"], weights=weights)


def test_lines_of_a_file_may_begin_with_a_weight(tmp_path: Any) -> None:
    path = tmp_path / "questions.sql"
    path.write_text("-- elderly\n3 * age >= 50\n\n0.5 * SELECT COUNT(*) FROM t GROUP BY sex\nage < 7\n")
    found = vc.Workload.from_file(SCHEMA, path)
    assert len(found) == 4
    np.testing.assert_allclose(found.weights / found.weights[3], [3, 0.5, 0.5, 1])
    path.write_text("-- nothing\n")
    with pytest.raises(QueryError, match="holds no query"):
        vc.Workload.from_file(SCHEMA, path)
    with pytest.raises(QueryError, match="cannot be read"):
        vc.Workload.from_file(SCHEMA, tmp_path / "none.sql")
