"""Which values of a release are in force, and files whose sharpened values do not fit those before them."""

from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from support.staged_trees import refined_release
from veilcube.analyst import open_release
from veilcube.errors import PrivacyError, ReleaseFileError
from veilcube.laws import DiscreteGaussian, Noise
from veilcube.laws.noise import DiscreteLaplace, JointLaplace, SharpenedLaplace
from veilcube.operators import HalvingTree, IdentityOperator, NodeCounts
from veilcube.planner import Tree
from veilcube.polya_tree import node_values
from veilcube.privacy import (
    GaussianEvent,
    LaplaceEvent,
    Neighbours,
    PrivacyStatement,
    PrivacyUnit,
    SequentialEvent,
    epsilon_for,
    rho_of,
)
from veilcube.record import History, NoisyMeasurement, ReleaseRecord, drop_superseded
from veilcube.schema import Ordinal, Schema

SCHEMA = Schema([Ordinal("x", 0, 7)])
TREE = HalvingTree.of(SCHEMA)
SHARPER = SharpenedLaplace.of(Fraction(6), Fraction(3))


def measured(level: int, nodes: list[int], noise: Noise) -> NoisyMeasurement:
    operator = NodeCounts(TREE, level, len(nodes), np.array(nodes))
    return NoisyMeasurement(operator, 10 * level + np.array(nodes), noise)


def test_sharpened_values_take_the_place_of_earlier_ones_of_the_same_nodes() -> None:
    first = measured(1, [0, 1, 2, 3], DiscreteLaplace(Fraction(6)))
    cells = measured(0, [2, 3], DiscreteLaplace(Fraction(6)))
    sharper = measured(1, [0, 3], SHARPER)
    left, untouched, last = drop_superseded([first, cells, sharper])
    assert left.operator.chosen.tolist() == [1, 2]
    assert left.values.tolist() == [11, 12]
    assert untouched is cells
    assert last is sharper


def test_values_that_were_all_sharpened_are_gone() -> None:
    first, sharper = measured(1, [0, 1], DiscreteLaplace(Fraction(6))), measured(1, [0, 1], SHARPER)
    again = measured(1, [1], SharpenedLaplace.of(SHARPER.scale, Fraction(1)))
    left, last = drop_superseded([first, sharper, again])
    assert left.operator.chosen.tolist() == [0]
    assert last is again
    assert [part.scale for part in node_values([first, sharper, again])] == [2.0, pytest.approx(2 / 3)]


def test_without_sharpened_values_all_are_in_force() -> None:
    parts = (measured(1, [0, 1], DiscreteLaplace(Fraction(6))), measured(1, [0, 1], DiscreteLaplace(Fraction(3))))
    assert drop_superseded(parts) == parts


@pytest.mark.parametrize(
    "parts",
    [
        pytest.param([measured(1, [0], SHARPER)], id="nothing before"),
        pytest.param([measured(1, [1], DiscreteLaplace(Fraction(6))), measured(1, [0], SHARPER)], id="other node"),
        pytest.param([measured(0, [0], DiscreteLaplace(Fraction(6))), measured(1, [0], SHARPER)], id="other level"),
        pytest.param([measured(1, [0], DiscreteLaplace(Fraction(5))), measured(1, [0], SHARPER)], id="other scale"),
        pytest.param([measured(1, [0], JointLaplace(Fraction(6))), measured(1, [0], SHARPER)], id="joint noise"),
        pytest.param([measured(1, [0], DiscreteGaussian(Fraction(6))), measured(1, [0], SHARPER)], id="other family"),
        pytest.param([measured(1, [0], DiscreteLaplace(Fraction(6))), *[measured(1, [0], SHARPER)] * 2], id="twice"),
        pytest.param([NoisyMeasurement(IdentityOperator((8,), ("x",)), np.zeros(8, np.int64), SHARPER)], id="cells"),
    ],
)
def test_sharpened_values_that_do_not_fit_are_refused(parts: list[NoisyMeasurement]) -> None:
    with pytest.raises(ReleaseFileError, match="sharpened"):
        drop_superseded(parts)


def test_noise_is_not_sharpened_by_adding_nothing() -> None:
    with pytest.raises(PrivacyError, match="sharpened"):
        SharpenedLaplace(Fraction(5), Fraction(5))


def test_the_law_comes_back_from_its_json() -> None:
    assert DiscreteLaplace.from_json(SHARPER.to_json()) == SHARPER
    assert (SHARPER.before, SHARPER.charged, SHARPER.scale) == (6, 3, 2)
    assert "in place of scale 6" in str(SHARPER)
    with pytest.raises(PrivacyError, match="exact ratio"):
        DiscreteLaplace.from_json({"kind": "sharpened-discrete-laplace", "scale": "2"})


def sparse_release() -> object:
    counts = np.zeros(512, dtype=np.int64)
    counts[[3, 100, 101, 300]] = 5, 70, 40, 9
    return refined_release(Schema([Ordinal("x", 0, 511)]), counts, "1/2", 2, Tree())


def test_a_release_with_sharpened_values_is_read_back_and_answers_alike(tmp_path: Path) -> None:
    release = sparse_release()
    assert any(isinstance(part.noise, SharpenedLaplace) for part in release.record.measurements)
    release.save(tmp_path / "sparse.veil")
    again = open_release(tmp_path / "sparse.veil")
    for interval in ("calibrated", "guaranteed"):
        one, other = (found.count(x=(50, 200), interval=interval) for found in (release, again))
        assert (one.value, one.low, one.high) == (other.value, other.low, other.high)


def test_history_learns_from_values_in_force_only() -> None:
    record = sparse_release().record
    assert len(History.of_release(record)) == sum(part.values.size for part in drop_superseded(record.measurements))


def test_a_file_that_understates_what_was_added_is_refused() -> None:
    record = sparse_release().record
    number = next(i for i, part in enumerate(record.measurements) if isinstance(part.noise, SharpenedLaplace))
    part = record.measurements[number]
    cheaper = SharpenedLaplace.of(part.noise.before, part.noise.added / 2)
    parts = list(record.measurements)
    parts[number] = replace(part, noise=cheaper)
    with pytest.raises(ReleaseFileError, match="declares"):
        ReleaseRecord(record.schema, record.statement, tuple(parts), record.plan, record.created, record.made_with)


def test_a_file_that_sharpens_gaussian_noise_is_refused() -> None:
    """Noise of sigma² 1/16 costs a rho of 8, and Laplace noise of scale 1/16 one of 128: 120 of them undeclared."""
    few, added, delta = Fraction(1, 16), Fraction(1000), Fraction(1, 10**9)
    every_cell = list(range(8))
    event = SequentialEvent((GaussianEvent(1, few), LaplaceEvent(1, added)))
    rho, unit = rho_of(event), PrivacyUnit.row()
    statement = PrivacyStatement(
        epsilon_for(rho, delta), Neighbours.ADD_REMOVE, unit, event, "made up", delta=delta, rho=rho
    )
    parts = measured(0, every_cell, DiscreteGaussian(few)), measured(0, every_cell, SharpenedLaplace.of(few, added))
    with pytest.raises(ReleaseFileError, match="sharpened"):
        ReleaseRecord(SCHEMA, statement, parts, {}, "2026-01-01T00:00:00+00:00", "veilcube")


def test_nodes_that_hold_only_what_stopped_are_sharpened_at_their_own_level() -> None:
    """All parts of a node that went on stop at the next step: its value of the earlier step is sharpened."""
    counts = np.full(64, 4, dtype=np.int64)
    schema = Schema([Ordinal("x", 0, 63)])
    for seed in range(40):
        record = refined_release(schema, counts, "1/4", seed, Tree()).record
        looked: dict[int, set[int]] = {}
        for part in record.measurements:
            nodes = set(part.operator.chosen.tolist())
            again = looked.setdefault(part.operator.level, set()) & nodes
            if not isinstance(part.noise, JointLaplace):
                assert again == (nodes if isinstance(part.noise, SharpenedLaplace) else set())
            looked[part.operator.level] |= nodes
