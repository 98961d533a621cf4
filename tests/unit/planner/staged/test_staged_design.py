"""The design of a staged tree: every path's budget adds up, and what cannot be refined is refused in words."""

from fractions import Fraction

import pytest

from veilcube.errors import PlanError
from veilcube.operators import HalvingTree
from veilcube.planner import Tree, plan
from veilcube.planner.staged.design import TALLEST, can_stage, shares_below, shares_with_root, staged_design
from veilcube.privacy import epsilon_of
from veilcube.schema import Nominal, Ordinal, Schema

SCHEMAS = [
    Schema([Ordinal("a", 1, 1)]),
    Schema([Ordinal("a", 1, 2)]),
    Schema([Ordinal("a", 1, 9)]),
    Schema([Ordinal("a", 1, 4096)]),
    Schema([Ordinal("a", 1, 2**18)]),
    Schema([Ordinal("a", 1, 2), Ordinal("b", 1, 2)]),
    Schema([Ordinal("a", 1, 64), Ordinal("b", 1, 48)]),
    Schema([Nominal("job", hierarchy={"Care": ["Nurse", "Aide"], "Law": {"Court": ["Judge"]}}), Ordinal("b", 1, 3)]),
]


@pytest.mark.parametrize("schema", SCHEMAS, ids=repr)
def test_levels_fall_to_the_cells_and_weights_sum_to_one(schema: Schema) -> None:
    tree = HalvingTree.of(schema)
    design = staged_design(tree)
    assert design.levels[-1] == 0
    assert sorted(set(design.levels), reverse=True) == list(design.levels)
    assert max(design.levels) <= tree.depth
    assert sum(design.weights) == 1
    assert min(design.weights) > 0
    assert len(design.thresholds) == len(design.levels) - 1


@pytest.mark.parametrize("schema", SCHEMAS, ids=repr)
@pytest.mark.parametrize("epsilon", ["1", "1/10", "7/3"])
def test_the_event_of_a_plan_costs_its_epsilon(schema: Schema, epsilon: str) -> None:
    chosen = plan(schema, epsilon, Tree())
    assert epsilon_of(chosen.event) == chosen.epsilon
    design = chosen.design
    spending = chosen.step_spending
    paid, steps = chosen.epsilon * design.survey, design.laws(spending)
    for level in design.surveyed:
        assert paid + sum(1 / law.scale for law in design.surveyed_laws(level, spending)) == chosen.epsilon
    for number, refund in enumerate(design.refund_laws(spending)):
        paid += 1 / steps[number].scale
        assert paid + 1 / refund.scale == chosen.epsilon
        joint = design.joint_laws(number, spending)
        assert not joint or paid + sum(1 / law.scale for law in joint) == chosen.epsilon
    assert paid + 1 / steps[-1].scale == chosen.epsilon


def test_lines_look_for_rich_nodes_and_survey_where_that_is_cheap() -> None:
    surveyed = {}
    for cells in (512, 513, 1000, 1024, 3000, 4096, 4097, 2**16):
        design = staged_design(HalvingTree.of(Schema([Ordinal("a", 1, cells)])))
        assert design.rich == 4.0
        assert bool(design.survey) == bool(design.surveyed)
        surveyed[cells] = design.surveyed
    assert surveyed[512] == surveyed[4097] == surveyed[2**16] == ()
    assert surveyed[513] == surveyed[1000] == (9,)
    assert surveyed[1024] == (9, 10)
    assert surveyed[3000] == surveyed[4096] == (9, 10, 11)
    plane = staged_design(HalvingTree.of(Schema([Ordinal("a", 1, 64), Ordinal("b", 1, 64)])))
    assert (plane.rich, plane.survey) == (float("inf"), 0)


def test_shares_of_joint_noise_add_up_at_every_height() -> None:
    for height in range(TALLEST + 1):
        shares = shares_with_root(height)
        assert (len(shares), sum(shares)) == (height + 1, 1)
        assert min(shares) > 0
    for level in range(2, 10):
        assert sum(shares_below(level)) == 1
        assert len(shares_below(level)) <= level
    with pytest.raises(ValueError, match="height 0 to 11"):
        shares_with_root(12)


def test_weights_that_miss_one_by_a_hair_are_spent_as_one() -> None:
    chosen = plan(Schema([Ordinal("a", 1, 512)]), 1, Tree(weights=[0.3333334, 0.3333334, 0.3333334]))
    assert chosen.design.weights == (Fraction(1, 3),) * 3
    assert epsilon_of(chosen.event) == 1


def test_another_number_of_weights_is_refused() -> None:
    with pytest.raises(PlanError, match="2 weights do not fit this staged tree, which has 3 levels"):
        plan(Schema([Ordinal("a", 1, 512)]), 1, Tree(weights=[0.5, 0.5]))


def test_cubes_that_are_too_large_or_hierarchies_that_are_too_deep_are_refused_in_words() -> None:
    spec: dict = {"last": ["x", "y"]}
    for number in range(25):
        spec = {f"group {number}": [f"value {number}", spec]}
    deep = Schema([Nominal(name, hierarchy=spec) for name in "abc"])
    large = Schema([Ordinal("a", 1, 2**18 + 1)])
    for schema in (deep, large, Schema(deep.attributes[:1])):
        assert not can_stage(schema)
        with pytest.raises(PlanError, match=r"halvings tell apart.*use Tree\(refine=False\)"):
            plan(schema, 1, Tree())
