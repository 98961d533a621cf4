"""Joint noise is read in whole blocks only: anything else in a file is refused in words."""

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from support.releases import release_of
from veilcube.errors import PlanError, ReleaseFileError
from veilcube.laws import BlockGaussian, DiscreteLaplace, JointLaplace
from veilcube.operators import HalvingTree, NodeCounts
from veilcube.planner import Tree
from veilcube.record import NoisyMeasurement, joint_blocks
from veilcube.schema import Nominal, Ordinal, Schema

TREE = HalvingTree.of(Schema([Ordinal("x", 0, 12)]))


def part(level: int, nodes: list[int], values: list[int] | None = None, *, joint: bool = True) -> NoisyMeasurement:
    chosen = np.array(nodes)
    counts = np.array(values if values is not None else [2**level] * len(nodes))
    law = JointLaplace(Fraction(9 - level)) if joint else DiscreteLaplace(Fraction(9 - level))
    return NoisyMeasurement(NodeCounts(TREE, level, chosen.size, chosen), counts, law)


def two_blocks() -> list[NoisyMeasurement]:
    return [part(2, [0, 2]), part(1, [0, 1, 4, 5]), part(0, [0, 1, 2, 3, 8, 9, 10, 11])]


def test_blocks_are_found_with_their_scales() -> None:
    found = joint_blocks([part(3, [0], joint=False), *two_blocks(), part(0, [4, 5], joint=False), part(0, [6, 7, 12])])
    assert [blocks.scales for blocks in found] == [(9, 8, 7), (9,)]
    np.testing.assert_array_equal(found[0].starts, [0, 8])
    np.testing.assert_array_equal(found[1].cells(), [[6], [7], [12]])


@pytest.mark.parametrize(
    "change",
    [
        lambda parts: parts[:-1],
        lambda parts: [parts[0], parts[2], parts[1]],
        lambda parts: parts[::-1],
        lambda parts: [parts[0], part(1, [0, 1, 4]), parts[2]],
        lambda parts: [part(2, [0, 2], [4, 5]), *parts[1:]],
        lambda parts: [part(2, [3]), part(1, [6]), part(0, [12])],
        lambda parts: [*parts[:2], part(0, [0, 1, 2, 3, 8, 9, 10, 11], joint=False)],
        lambda parts: [*parts, part(0, [3], joint=False)],
        lambda parts: [*parts, part(3, [0], joint=False)],
        lambda parts: [*parts, *parts],
    ],
    ids=[
        "no cells",
        "swapped",
        "fine first",
        "a half missing",
        "sums that do not fit",
        "a node with missing cells",
        "cells drawn alone",
        "a cell measured again",
        "a node measured again",
        "twice",
    ],
)
def test_anything_but_whole_blocks_is_refused(change: Callable[[list], list]) -> None:
    with pytest.raises(ReleaseFileError, match="remake"):
        joint_blocks(change(two_blocks()))


@pytest.mark.parametrize("cells", [1536, 2560, 3072, 3584, 513, 1000])
def test_rich_lines_of_any_size_are_measured_in_whole_blocks(cells: int) -> None:
    for counts in (np.full(cells, 1000), np.where(np.arange(cells) >= cells // 512 * 512 - 512, 1000, 0)):
        release = release_of(Schema([Ordinal("x", 1, cells)]), counts, 1, 1, Tree())
        assert joint_blocks(release.record.measurements)
        assert release.count(x=(1, cells)).value == pytest.approx(counts.sum(), abs=300)


def test_a_deep_hierarchy_without_whole_nodes_has_no_survey() -> None:
    spec: object = ["a", "b"]
    for number in range(9, 0, -1):
        spec = {f"group {number}": spec, f"other {number}": [f"value {number}"]}
    schema = Schema([Nominal("job", hierarchy=spec)])
    release = release_of(schema, np.zeros(schema.shape, dtype=np.int64), 1, 1, Tree())
    assert not joint_blocks(release.record.measurements)


def test_joint_noise_is_not_drawn_for_nodes_with_missing_cells() -> None:
    from veilcube.curator.mechanisms.staged import _Course

    refinement = _Course(np.zeros(13, np.int64), TREE, *[lambda *_: None] * 3)
    with pytest.raises(PlanError, match="each of their positions"):
        refinement.measure_below(3, np.array([1]), [Fraction(1)] * 4)


def in_gaussian_block(measured: NoisyMeasurement) -> NoisyMeasurement:
    return replace(measured, noise=BlockGaussian(measured.noise.parameter))


def test_blocks_of_gaussian_noise_are_found_with_their_values_which_need_not_add_up() -> None:
    parts = [part(2, [0, 2], [4, 5]), *two_blocks()[1:]]
    (found,) = joint_blocks([in_gaussian_block(one) for one in parts])
    assert (found.is_gaussian, found.scales) == (True, (9, 8, 7))
    assert [values.tolist() for values in found.values[1:]] == [[[2, 2], [2, 2]], [[4], [5]]]


def test_a_block_with_noise_of_two_kinds_is_refused() -> None:
    first, *others = two_blocks()
    with pytest.raises(ReleaseFileError, match="two kinds"):
        joint_blocks([first, *(in_gaussian_block(one) for one in others)])
    with pytest.raises(ReleaseFileError, match="remake"):
        joint_blocks([in_gaussian_block(one) for one in (first, *others[:1])])
