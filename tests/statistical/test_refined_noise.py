"""Every step of a refined tree publishes the noise that it declares, and a scale 3% off is noticed at any step."""

from fractions import Fraction

import numpy as np
import pytest
from numpy.typing import NDArray

from support.refined_trees import EveryLevel
from support.seeded import SeededWords
from veilcube.curator.cube import Cube
from veilcube.curator.ledger import Receipt
from veilcube.curator.mechanisms import RefinedTreeMechanism, refined_tree
from veilcube.curator.noise import discrete_laplace
from veilcube.planner import plan
from veilcube.planner.refined_tree import RefinedDesign
from veilcube.release import NoisyMeasurement
from veilcube.schema import Ordinal, Schema

CELLS = 2**18
PARTS = 5  # three steps, and the refunds of the first two
# At least 32,768 values a part: a scale 3% off moves the mean size of the noise by 5 of its standard deviations.
MOST_DEVIATIONS = 3.5


class FineLevels(EveryLevel):
    """Runs of four cells, of two, and cells: enough nodes at each step for a test of their noise."""

    def design(self, schema: Schema) -> RefinedDesign:
        return RefinedDesign((2, 1, 0), (Fraction(1, 4), Fraction(3, 10), Fraction(9, 20)), (3.0, 3.0))


def published(monkeypatch: pytest.MonkeyPatch, wrong_part: int | None, factor: Fraction) -> tuple[tuple, Cube]:
    """Measure a cube with every second node stopping, the noise of one part drawn with a wrong scale."""
    monkeypatch.setattr(
        refined_tree._Refinement, "stops", lambda _self, _level, active, _threshold: np.arange(active.size) % 2 == 0
    )
    schema = Schema([Ordinal("position", 1, CELLS)])
    chosen = plan(schema, "1/5", FineLevels())
    cube, source, drawn = Cube(schema, np.arange(CELLS) % 5), SeededWords(41), []

    def draw(scale: Fraction, shape: tuple[int, ...]) -> NDArray[np.int64]:
        drawn.append(scale)
        actual = scale * factor if len(drawn) - 1 == wrong_part else scale
        return discrete_laplace(actual, shape, source=source)

    receipt = Receipt.uncharged(RefinedTreeMechanism().claim(chosen))
    return RefinedTreeMechanism().measure(cube, chosen, receipt, draw), cube


def deviations(part: NoisyMeasurement, cube: Cube) -> float:
    """Return by how many standard deviations the mean size of a part's noise misses what it declares."""
    sizes = np.abs(part.values - part.operator.apply(cube.exact_counts))
    p = np.exp(-1 / float(part.noise.scale))
    mean = 2 * p / (1 - p**2)
    return float((sizes.mean() - mean) / np.sqrt((part.noise.variance - mean**2) / sizes.size))


def test_the_noise_of_every_step_has_the_declared_scale(monkeypatch: pytest.MonkeyPatch) -> None:
    parts, cube = published(monkeypatch, None, Fraction(1))
    assert len(parts) == PARTS
    assert min(part.values.size for part in parts) >= 32_768
    scales = [part.noise.scale for part in parts]
    assert scales == [Fraction(20), Fraction(20, 3), Fraction(50, 3), Fraction(100, 9), Fraction(100, 9)]
    assert max(abs(deviations(part, cube)) for part in parts) < MOST_DEVIATIONS


@pytest.mark.parametrize("factor", [Fraction(97, 100), Fraction(103, 100)], ids=["too little", "too much"])
@pytest.mark.parametrize("wrong_part", range(PARTS))
def test_a_scale_three_percent_off_is_noticed_at_every_step(
    monkeypatch: pytest.MonkeyPatch, wrong_part: int, factor: Fraction
) -> None:
    parts, cube = published(monkeypatch, wrong_part, factor)
    missed = [abs(deviations(part, cube)) > MOST_DEVIATIONS for part in parts]
    assert missed == [part == wrong_part for part in range(PARTS)]


def test_noises_of_different_steps_are_uncorrelated(monkeypatch: pytest.MonkeyPatch) -> None:
    parts, cube = published(monkeypatch, None, Fraction(1))
    noises = [(part.values - part.operator.apply(cube.exact_counts))[:32_768] for part in parts]
    correlations = np.corrcoef(np.array(noises, dtype=np.float64)) - np.eye(PARTS)
    assert np.abs(correlations).max() < 4 / np.sqrt(32_768)
