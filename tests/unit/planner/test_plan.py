"""Plans tell the error exactly, before any data is touched."""

from fractions import Fraction

import numpy as np
import pytest

from veilcube.errors import PlanError, PrivacyError, QueryError
from veilcube.planner import Identity, Marginals, Tree, choose, plan
from veilcube.query import Workload
from veilcube.schema import Nominal, Ordinal, Schema

SCHEMA = Schema([Ordinal("age", 1, 30), Ordinal("floor", 1, 3)])


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
    assert plan(SCHEMA, 0.1, "identity", neighbours=neighbours, **unit).noise.scale == scale


def test_scale_of_a_tree_grows_with_its_multipliers() -> None:
    tree = Tree({"age": (5,), "floor": "flat"}, {"age": ("1/2", "1/3", "1/6")}, refine=False)
    assert plan(SCHEMA, 0.1, tree).noise.scale == 60
    assert plan(SCHEMA, 0.1, tree, neighbours="replace").noise.scale == 120


def test_auto_names_its_candidates_and_takes_the_one_of_least_error() -> None:
    schema = Schema([Ordinal("age", 1, 30), Nominal("floor", ["low", "high", "top"])])
    chosen = plan(schema, "1/3")
    assert chosen.epsilon == Fraction(1, 3)
    assert {candidate.strategy.name for candidate in chosen.candidates} == {"identity", "tree"}
    assert chosen.expected_error == min(candidate.expected_error for candidate in chosen.candidates)
    assert chosen.expected_error < 0.97 * plan(schema, "1/3", "identity").expected_error
    assert all(candidate.summary for candidate in chosen.candidates)
    assert "trees were tried" in chosen.searched
    assert chosen.to_dict()["searched"] == chosen.searched


def test_auto_refines_a_tree_over_a_plane_of_ordinal_cells_unless_its_plan_is_far_worse() -> None:
    plane = Schema([Ordinal("age", 1, 30), Ordinal("hours", 1, 30)])
    assert plan(plane, "1/3").strategy == Tree()
    assert plan(plane, "1/3").candidates[0].strategy == Tree()
    single_cells = Workload(plane, [{"age": age, "hours": 1} for age in range(1, 31)])
    assert plan(plane, "1/3", workload=single_cells).strategy.name != "staged tree"
    assert plan(Schema([Ordinal("age", 1, 30)]), "1/3").strategy.name != "staged tree"


def test_errors_of_candidates_are_those_of_their_own_plans() -> None:
    chosen = plan(SCHEMA, 0.2, workload=Workload.marginals(SCHEMA, 1))
    assert {candidate.strategy.name for candidate in chosen.candidates} >= {"identity", "marginals", "matched"}
    for candidate in chosen.candidates:
        alone = plan(SCHEMA, 0.2, candidate.strategy, Workload.marginals(SCHEMA, 1))
        assert alone.expected_error == pytest.approx(candidate.expected_error)


def test_auto_offers_no_marginals_to_those_who_named_no_queries() -> None:
    schema = Schema([Ordinal("x", 1, 4), Ordinal("y", 1, 1), Ordinal("z", 1, 1)])
    assert "marginals" not in {candidate.strategy.name for candidate in plan(schema).candidates}


def test_choose_takes_the_least_error() -> None:
    plans = [plan(SCHEMA, 1, option) for option in ("identity", "tree")]
    assert choose(plans) is plans[1]


def test_auto_is_the_identity_where_queries_are_single_cells() -> None:
    assert plan(SCHEMA, workload=Workload.marginals(SCHEMA, 2)).strategy == Identity()


def test_an_epsilon_too_small_for_a_tree_may_still_do_for_the_identity() -> None:
    schema = Schema([Ordinal("x", 1, 200)])
    assert plan(schema, "1e-12").strategy == Identity()
    with pytest.raises(PrivacyError, match="so small"):
        plan(schema, "1e-12", "tree")


def test_many_short_attributes_do_not_multiply_the_measurements() -> None:
    schema = Schema([Ordinal(f"bit {number}", 0, 1) for number in range(18)])
    chosen = plan(schema, workload=Workload.marginals(schema, 1))
    for candidate in chosen.candidates:
        assert np.prod(candidate.strategy.operator(schema).measurement_shape) <= 4 * schema.cells


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


def test_what_is_no_workload_or_no_strategy_is_refused_in_words() -> None:
    with pytest.raises(PlanError, match="make one with"):
        plan(SCHEMA, 1, workload=[{"age": 3}])
    with pytest.raises(PlanError, match="a strategy is 'auto'"):
        plan(SCHEMA, 1, strategy=Identity)
    with pytest.raises(PlanError, match="overlap in"):
        plan(Schema([Ordinal(f"a{i}", 0, 1) for i in range(14)]), 1, strategy=Marginals(k=13))
    assert Tree(weights=np.array([0.5, 0.5])).weights == (Fraction(1, 2), Fraction(1, 2))
