"""What users may ask of a tree, what they get, and what is refused."""

from fractions import Fraction

import numpy as np
import pytest

from veilcube.errors import PlanError
from veilcube.operators import FlatAxis, TreeAxis
from veilcube.planner import Tree
from veilcube.query import Workload
from veilcube.schema import Nominal, Ordinal, Schema

JOBS = {"Care": ["Nurse", "Aide"], "Office": {"Law": ["Judge"], "IT": ["Dev", "Ops"]}}
SCHEMA = Schema([Ordinal("age", 0, 99), Nominal("sex", ["F", "M"]), Nominal("job", hierarchy=JOBS, missing="cell")])
WORKLOAD = Workload.random_ranges(SCHEMA, 400, seed=2)


def axes_of(tree: Tree, schema: Schema = SCHEMA) -> tuple[object, ...]:
    return tree.operator(schema).axes


def test_names_tell_one_shot_from_refined() -> None:
    assert Tree(refine=False).name == "tree"
    assert Tree().name == "staged tree"


def test_a_fan_out_holds_for_ordinal_attributes_and_nominal_ones_follow_their_hierarchy() -> None:
    tree = Tree({"age": 5, "sex": "flat", "job": "hierarchy"}, refine=False)
    age, sex, job = axes_of(tree)
    assert isinstance(age, TreeAxis)
    assert age.fanouts in ((1, 5, 4), (5, 4), (1, 5, 5), (5, 5))
    assert sex == FlatAxis(2)
    assert isinstance(job, TreeAxis)
    assert [len(level) for level in job.runs][-1] == 5  # Nurse, Aide, Law, IT and the missing


def test_levels_and_weights_may_be_given_one_by_one() -> None:
    tree = Tree(
        {"age": [10], "sex": (), "job": "flat"}, {"age": ["1/2", 0.25, Fraction(1, 4)], "sex": [0.4, 0.6]}, False
    )
    age, sex, job = axes_of(tree)
    assert (age.fanouts, age.multipliers) == ((1, 10), (2, 1, 1))
    assert (sex.fanouts, sex.multipliers) == ((1,), (2, 3))
    assert job == FlatAxis(6)


def test_one_weight_fewer_leaves_the_total_unmeasured() -> None:
    tree = Tree({"age": [10], "sex": "flat", "job": "hierarchy"}, {"age": [0.5, 0.5], "job": ["1/3"] * 3}, False)
    age, _, job = axes_of(tree)
    assert age.fanouts == (10,)
    assert job.rows == TreeAxis(6, [np.array([0, 2, 5, 6]), np.array([0, 1, 2, 3, 5, 6]), np.arange(7)], (1, 1, 1)).rows


def test_weights_without_fan_outs_choose_among_trees_of_as_many_levels() -> None:
    chosen = Tree("auto", {"age": (0.2, 0.3, 0.5)}, refine=False).resolve(SCHEMA, WORKLOAD)
    assert len(chosen.branching["age"]) == 1
    assert chosen.weights["age"] == (Fraction(1, 5), Fraction(3, 10), Fraction(1, 2))


def test_resolving_makes_every_choice_and_changes_nothing_after_that() -> None:
    chosen = Tree(refine=False).resolve(SCHEMA, WORKLOAD)
    assert set(chosen.branching) == set(chosen.weights) == set(SCHEMA.names)
    assert all(sum(weights) == 1 for weights in chosen.weights.values())
    assert chosen.resolve(SCHEMA, Workload.prefixes(SCHEMA)) == chosen
    assert Tree(chosen.branching, chosen.weights, refine=False).operator(SCHEMA) == chosen.operator(SCHEMA)
    assert {chosen: 1}[Tree(chosen.branching, chosen.weights, refine=False)] == 1


def test_a_given_fan_out_keeps_its_levels() -> None:
    assert Tree(2, refine=False).resolve(SCHEMA, WORKLOAD).branching["age"] == (2, 2, 2, 2, 2, 2)


def test_an_attribute_of_one_cell_is_flat() -> None:
    schema = Schema([Ordinal("x", 1, 1), Nominal("only", hierarchy={"group": ["leaf"]}), Ordinal("y", 1, 30)])
    tree = Tree(4, refine=False).resolve(schema, Workload.random_ranges(schema, 50, seed=0))
    assert tree.branching["x"] == tree.branching["only"] == "flat"
    assert np.prod(tree.operator(schema).cell_shape) == 30


def test_single_children_are_not_measured_twice() -> None:
    schema = Schema([Nominal("job", hierarchy={"A": {"B": ["x"]}, "C": {"D": ["y", "z"]}})])
    (axis,) = axes_of(Tree({"job": "hierarchy"}, refine=False), schema)
    assert axis.rows <= 1 + 2 + 2  # the total, x with all its groups, C with D, y and z
    assert set(axis.column_sums().tolist()) == {sum(axis.multipliers)}


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ({"branching": 1}, "branching must be"),
        ({"branching": True}, "branching must be"),
        ({"branching": 2**21}, "branching must be"),
        ({"branching": "magic"}, "branching must be"),
        ({"branching": {"age": 2.5}}, "branching of 'age' must be"),
        ({"branching": {"age": [4, 1]}}, "branching of 'age' must be"),
        ({"branching": {"height": 4}}, "no attribute 'height'"),
        ({"branching": {"sex": 4}}, "'sex' is nominal"),
        ({"branching": {"age": "hierarchy"}}, "'age' is ordinal"),
        ({"weights": [0.5, 0.4]}, "sum to 0.9"),
        ({"weights": [1e308, 1e308]}, "sum to more than 1"),
        ({"weights": ["1e400", 0.5]}, "sum to more than 1"),
        ({"weights": [1.5, -0.5]}, "above 0"),
        ({"weights": [1, 0]}, "above 0"),
        ({"weights": []}, "a list of numbers"),
        ({"weights": "heavy"}, "a list of numbers"),
        ({"weights": [float("nan"), 1]}, "numbers such as"),
        ({"weights": {"age": ["x"]}}, "weights of 'age' must be numbers"),
        ({"weights": {"age": ["1e999999999"]}}, "weights of 'age' must be numbers"),
        ({"weights": {"height": [1]}}, "no attribute 'height'"),
        (
            {"branching": {"age": [10]}, "weights": {"age": [0.25] * 4}},
            "4 weights do not fit 'age', whose tree takes 2 or 3",
        ),
        ({"branching": {"age": "flat"}, "weights": {"age": [0.5, 0.5]}}, "2 weights do not fit 'age'"),
        ({"weights": [0.01] * 100}, "100 weights do not fit"),
        ({"refine": "no"}, "True or False"),
    ],
)
def test_what_makes_no_sense_is_refused_in_one_sentence(asked: dict[str, object], words: str) -> None:
    with pytest.raises(PlanError, match=words) as refused:
        Tree(**({"refine": False} | asked)).operator(SCHEMA)
    assert "\n" not in str(refused.value)
