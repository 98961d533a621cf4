"""The halving tree: every cell has one place, levels nest, and groups of a hierarchy stay together."""

import numpy as np
import pytest

from support.halving_trees import SCHEMAS, TREES
from veilcube.operators import HalvingTree
from veilcube.operators.staged.halving import (
    DEEPEST,
    MOST_CELLS,
    SIDES,
    AxisCodes,
    codes_of,
    halving_depth,
    read_halving_tree,
)
from veilcube.schema import Nominal, Ordinal, Schema

each_tree = pytest.mark.parametrize("name", TREES)


def nodes_of_cells(tree: HalvingTree, level: int) -> np.ndarray:
    """Return the node of each cell, in the order of the tree."""
    return np.repeat(np.arange(tree.nodes(level)), np.diff(tree.starts(level), append=tree.cells))


@each_tree
def test_order_names_every_cell_once_and_positions_increase(name: str) -> None:
    tree = TREES[name]
    assert sorted(tree.order) == list(range(SCHEMAS[name].cells))
    assert (np.diff(tree.positions) > 0).all()
    assert tree.positions[0] >= 0
    assert tree.positions[-1] < 2**tree.depth
    assert tree.shape == SCHEMAS[name].shape
    assert tree.depth == halving_depth(SCHEMAS[name])


@each_tree
def test_levels_nest_from_the_cells_to_the_whole_cube_and_every_node_has_two_halves_at_most(name: str) -> None:
    tree = TREES[name]
    assert tree.nodes(0) == tree.cells
    assert tree.nodes(tree.depth) == 1
    for level in range(tree.depth):
        parents = tree.ancestors(level, level + 1)
        np.testing.assert_array_equal(parents[nodes_of_cells(tree, level)], nodes_of_cells(tree, level + 1))
        assert set(np.bincount(parents)) <= {1, 2}


@each_tree
def test_ancestors_of_any_level_are_those_of_the_steps_between(name: str) -> None:
    tree = TREES[name]
    climbed = np.arange(tree.cells)
    for level in range(tree.depth + 1):
        np.testing.assert_array_equal(tree.ancestors(0, level), climbed)
        climbed = tree.ancestors(level, level + 1)[climbed] if level < tree.depth else climbed


@each_tree
def test_nodes_are_blocks_whose_sides_the_bits_below_bound(name: str) -> None:
    tree = TREES[name]
    coordinates = np.stack(np.unravel_index(tree.order, tree.shape), axis=1)
    for level in range(tree.depth + 1):
        sides = 2 ** np.array(tree.bits_below(level))
        assert sum(tree.bits_below(level)) == level
        for members in np.split(coordinates, tree.starts(level)[1:]):
            extent = members.max(axis=0) - members.min(axis=0) + 1
            assert (extent <= sides).all()
            assert extent.prod() == len(members)


def test_a_line_keeps_its_order_and_a_square_is_halved_in_turns() -> None:
    np.testing.assert_array_equal(TREES["odd size"].order, np.arange(11))
    square = HalvingTree.of(Schema([Ordinal("a", 1, 4), Ordinal("b", 1, 4)]))
    assert square.turns == (0, 1, 0, 1)
    assert square.order.tolist() == [0, 1, 4, 5, 2, 3, 6, 7, 8, 9, 12, 13, 10, 11, 14, 15]
    assert TREES["two axes"].turns == (0, 0, 1, 0, 1)


@pytest.mark.parametrize("name", ["uneven hierarchy", "special cells", "hierarchy and range"])
def test_groups_of_a_hierarchy_are_nodes(name: str) -> None:
    attribute = SCHEMAS[name].attributes[0]
    codes = np.array(codes_of(attribute).codes)
    for group in ("Care", "Law", "Court", "Tech", "Web", "Lab"):
        first, end = attribute.hierarchy.run_of(group)
        level = int(codes[first] ^ codes[end - 1]).bit_length()
        assert np.flatnonzero(codes >> level == codes[first] >> level).tolist() == list(range(first, end))


def test_special_cells_are_apart_from_the_whole_hierarchy() -> None:
    attribute = SCHEMAS["special cells"].attributes[0]
    codes = np.array(codes_of(attribute).codes)
    regular, level = codes[: attribute.regular_size], int(codes[0] ^ codes[attribute.regular_size - 1]).bit_length()
    assert (codes[attribute.regular_size :] >> level != regular[0] >> level).all()


def test_a_chain_of_single_children_costs_no_halving() -> None:
    assert TREES["hierarchy of one leaf"].depth == 0
    with_chain, without = {"A": {"B": {"C": ["x", "y"]}}, "D": ["z"]}, {"A": ["x", "y"], "D": ["z"]}
    assert codes_of(Nominal("job", hierarchy=with_chain)) == codes_of(Nominal("job", hierarchy=without))


@each_tree
def test_plain_data_brings_it_back(name: str) -> None:
    again = read_halving_tree(TREES[name].to_dict())
    assert again == TREES[name]
    np.testing.assert_array_equal(again.order, TREES[name].order)


@pytest.mark.parametrize(
    "data",
    [
        None,
        {},
        [],
        "tree",
        [3],
        [{"size": 4, "bits": 2}],
        [{"size": "4", "bits": 2, "codes": None}],
        [{"size": 4, "bits": 2.0, "codes": None}],
        [{"size": True, "bits": 2, "codes": None}],
        [{"size": 0, "bits": 2, "codes": None}],
        [{"size": -1, "bits": 2, "codes": None}],
        [{"size": 4, "bits": 1, "codes": None}],
        [{"size": 4, "bits": -1, "codes": None}],
        [{"size": 4, "bits": DEEPEST + 1, "codes": None}],
        [{"size": 4, "bits": 10**30, "codes": None}],
        [{"size": 4, "bits": 40, "codes": None}, {"size": 4, "bits": 40, "codes": None}],
        [{"size": MOST_CELLS + 1, "bits": 23, "codes": None}],
        [{"size": 2048, "bits": 11, "codes": None}, {"size": 2049, "bits": 12, "codes": None}],
        [{"size": 2, "bits": 2, "codes": "01"}],
        [{"size": 2, "bits": 2, "codes": [0, 1, 2]}],
        [{"size": 2, "bits": 2, "codes": [0, 4]}],
        [{"size": 2, "bits": 2, "codes": [-1, 0]}],
        [{"size": 2, "bits": 2, "codes": [1, 1]}],
        [{"size": 2, "bits": 2, "codes": [1, 0]}],
        [{"size": 2, "bits": 2, "codes": [0, 1.0]}],
        [{"size": 2, "bits": 2, "codes": [False, True]}],
        [{"size": 2, "bits": 2, "codes": [0, None]}],
    ],
)
def test_untrusted_data_is_refused(data: object) -> None:
    with pytest.raises((ValueError, TypeError, KeyError)):
        read_halving_tree(data)


@pytest.mark.parametrize("level", [-1, 5])
def test_a_level_that_the_tree_lacks_is_refused(level: int) -> None:
    with pytest.raises(ValueError, match="no such level"):
        TREES["power of two"].starts(level)


def test_trees_share_arrays_that_nobody_can_change() -> None:
    tree = TREES["odd axes"]
    for array in (tree.order, tree.positions, tree.starts(1)):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1


def test_the_depth_of_hierarchies_that_no_tree_holds_is_known() -> None:
    spec: dict = {"last": ["x", "y"]}
    for number in range(30):
        spec = {f"group {number}": [f"value {number}", spec]}
    deep = [Nominal(name, hierarchy=spec) for name in "abc"]
    assert halving_depth(Schema(deep)) == 3 * halving_depth(Schema(deep[:1])) > DEEPEST
    with pytest.raises(ValueError, match="at most"):
        HalvingTree.of(Schema(deep))


def test_nodes_at_the_ends_of_the_axis_that_they_divide_are_of_classes_of_their_own() -> None:
    line, odd, plane = TREES["power of two"], TREES["odd size"], TREES["two axes"]
    assert (line.kinds(2) - 2 * SIDES).tolist() == [1, 0, 0, 2]
    assert (odd.kinds(1) - SIDES).tolist() == [1, 0, 0, 0, 0, 2]
    assert plane.turns[2] == 1
    assert set(plane.kinds(3) - 3 * SIDES) == {0}  # the second axis is still whole: at both ends, so at neither
    assert (plane.kinds(2) - 2 * SIDES).tolist() == [1, 1, 0, 0, 0, 0, 2, 2]
    for tree in (line, odd, plane):
        assert set(tree.kinds(0)) == {0}
        assert set(tree.kinds(tree.depth)) == {SIDES * tree.depth}
        assert tree.kinds(tree.depth)[0] < tree.classes


def test_codes_that_skip_places_make_no_empty_nodes() -> None:
    tree = HalvingTree((AxisCodes(3, 40, (0, 2**20, 2**40 - 1)),))
    assert [tree.nodes(level) for level in (0, 20, 21, 39, 40)] == [3, 3, 2, 2, 1]
