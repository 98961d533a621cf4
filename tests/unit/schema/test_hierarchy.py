import math

import numpy as np
import pytest

from veilcube.errors import SchemaError
from veilcube.schema import Hierarchy, Nominal
from veilcube.schema.hierarchy import MAX_DEPTH

UNEVEN = {"Office": {"Law": ["Judge"], "IT": ["Dev", "Ops"]}, "Care": ["Nurse", {"Home": ["Aide", "Cook"]}, "Doctor"]}


def test_leaves_read_from_left_to_right_are_the_cells() -> None:
    tree = Hierarchy.read(UNEVEN)
    assert tree.leaves == ("Judge", "Dev", "Ops", "Nurse", "Aide", "Cook", "Doctor")


def test_every_node_knows_its_run_of_leaves() -> None:
    tree = Hierarchy.read(UNEVEN)
    assert {name: tree.run_of(name) for name in ("Office", "Law", "IT", "Care", "Home", "Doctor")} == {
        "Office": (0, 3),
        "Law": (0, 1),
        "IT": (1, 3),
        "Care": (3, 7),
        "Home": (4, 6),
        "Doctor": (6, 7),
    }
    assert tree.run_of("Nobody") is None


def test_groups_come_parents_first() -> None:
    assert Hierarchy.read(UNEVEN).groups == ("Office", "Law", "IT", "Care", "Home")


def test_the_root_spans_every_leaf_and_has_no_name() -> None:
    root = Hierarchy.read(UNEVEN).root
    assert (root.name, root.first, root.end, root.is_leaf) == ("", 0, 7, False)
    assert [child.name for child in root.children] == ["Office", "Care"]


def test_a_flat_tree_has_no_groups() -> None:
    tree = Hierarchy.flat(["a", "b"])
    assert (tree.leaves, tree.groups, tree.to_spec()) == (("a", "b"), (), ["a", "b"])
    assert all(child.is_leaf for child in tree.root.children)


def test_values_become_text() -> None:
    assert Hierarchy.flat([1, 2.5, True, np.int64(7), ""]).leaves == ("1", "2.5", "True", "7", "")
    assert Hierarchy.read({1: [2, 3]}).groups == ("1",)


def test_a_spec_comes_back_with_its_order() -> None:
    tree = Hierarchy.read(UNEVEN)
    assert list(tree.to_spec()) == ["Office", "Care"]
    assert tree.to_spec() == UNEVEN
    assert Hierarchy.read(tree.to_spec()) == tree


def test_a_list_of_groups_is_the_same_as_a_mapping_of_them() -> None:
    assert Hierarchy.read({"A": [{"B": ["x"]}, {"C": ["y"]}]}) == Hierarchy.read({"A": {"B": ["x"], "C": ["y"]}})


def test_a_group_may_be_called_like_its_only_value() -> None:
    tree = Hierarchy.read({"Gardener": ["Gardener"], "Care": ["Nurse"]})
    assert tree.run_of("Gardener") == (0, 1)
    assert Hierarchy.read(tree.to_spec()) == tree


def _nested(levels: int) -> object:
    spec: object = ["leaf"]
    for level in range(levels):
        spec = {f"group {level}": spec}
    return spec


def test_depth_is_limited() -> None:
    assert Hierarchy.read(_nested(MAX_DEPTH)).run_of(f"group {MAX_DEPTH - 1}") == (0, 1)
    with pytest.raises(SchemaError, match=f"deeper than {MAX_DEPTH} levels"):
        Hierarchy.read(_nested(MAX_DEPTH + 1))


@pytest.mark.parametrize("values", ["ab", b"ab", 5, None, {"a": ["b"]}, {"a", "b"}])
def test_flat_values_must_be_a_list(values: object) -> None:
    with pytest.raises(SchemaError, match="values must be a list"):
        Hierarchy.flat(values)


def test_flat_values_hold_no_groups() -> None:
    with pytest.raises(SchemaError, match="use hierarchy="):
        Hierarchy.flat(["a", {"G": ["b"]}])


@pytest.mark.parametrize("entry", [None, math.nan, ["a"], ("a",), b"a"])
def test_refuses_entries_that_are_not_values(entry: object) -> None:
    with pytest.raises(SchemaError, match="the list of values holds something that is not a value"):
        Hierarchy.flat(["x", entry])
    with pytest.raises(SchemaError, match="the group 'G' holds something that is not a value"):
        Hierarchy.read({"G": ["x", entry]})


@pytest.mark.parametrize("spec", [["a"], "a", None, 3])
def test_a_hierarchy_must_be_a_mapping(spec: object) -> None:
    with pytest.raises(SchemaError, match="a hierarchy must be a mapping"):
        Hierarchy.read(spec)


@pytest.mark.parametrize("below", ["Nurse", None, 3])
def test_a_group_must_hold_a_list_or_groups(below: object) -> None:
    with pytest.raises(SchemaError, match="the group 'Care' must hold a list"):
        Hierarchy.read({"Care": below})


@pytest.mark.parametrize(
    ("spec", "place"),
    [({}, "the list of values"), ({"Care": []}, "the group 'Care'"), ({"A": ["x"], "B": {"C": {}}}, "the group 'C'")],
)
def test_refuses_empty_groups(spec: object, place: str) -> None:
    with pytest.raises(SchemaError, match=f"{place} is empty; list at least one value"):
        Hierarchy.read(spec)


def test_refuses_an_empty_list_of_values() -> None:
    with pytest.raises(SchemaError, match="is empty; list at least one value"):
        Hierarchy.flat([])


@pytest.mark.parametrize("spec", [{"A": ["x", "x"]}, {"A": ["x"], "B": ["x"]}, {"A": [1, "1"], "B": ["x"]}])
def test_refuses_a_value_in_two_places(spec: object) -> None:
    with pytest.raises(SchemaError, match="is listed twice; each value belongs in one place"):
        Hierarchy.read(spec)


@pytest.mark.parametrize("spec", [{"A": ["B"], "B": ["x"]}, {"A": {"C": ["x"]}, "B": {"C": ["y"]}}])
def test_refuses_a_name_that_means_two_things(spec: object) -> None:
    with pytest.raises(SchemaError, match="stands for two different things; rename one of them"):
        Hierarchy.read(spec)


def test_whole_floats_are_spelled_as_whole_numbers() -> None:
    rating = Nominal("rating", [1.0, 2.0, 2.5])
    assert rating.values == ("1", "2", "2.5")
    assert rating.cells_of(1.0) == rating.cells_of("1") == rating.cells_of(1) == (0, 1)
    assert Nominal("rating", np.array([1, 2])).values == ("1", "2")
